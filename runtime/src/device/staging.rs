//! Host memory that numbers pass through on their way to a device and from it ([`Staging`]).

use super::DeviceError;
use std::fmt;

/// Host memory that a device copies to and from: pinned, where that saves its driver a copy of its own. To be made once and used
/// again: pinning takes longer than a copy.
pub trait Staging: fmt::Debug + Send + Sync {
    /// The bytes.
    ///
    /// # Errors
    ///
    /// A driver that fails.
    fn bytes(&mut self) -> Result<&mut [u8], DeviceError>;
}

impl Staging for Vec<u8> {
    fn bytes(&mut self) -> Result<&mut [u8], DeviceError> {
        Ok(self)
    }
}
