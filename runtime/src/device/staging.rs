//! Host memory for transfers to and from a device ([`StagingBuffer`]).

use super::DeviceError;
use std::fmt;

/// Host memory that a device copies to and from, pinned if this saves a copy by the driver. It should be reused:
/// pinning takes longer than a copy.
pub trait StagingBuffer: fmt::Debug + Send + Sync {
    /// Returns the bytes.
    ///
    /// # Errors
    ///
    /// The driver fails.
    fn bytes(&mut self) -> Result<&mut [u8], DeviceError>;
}

impl StagingBuffer for Vec<u8> {
    fn bytes(&mut self) -> Result<&mut [u8], DeviceError> {
        Ok(self)
    }
}
