//! The OpenCL device of this machine; `None` if that is permitted.

use runtime::device::opencl::OpenCl;
use std::io::Write as _;

/// Returns the device selected by the environment. Without one, a test is skipped, or fails if `WF_REQUIRE` names
/// `opencl`.
pub(crate) fn opencl() -> Option<OpenCl> {
    match OpenCl::new() {
        Ok(device) => Some(device),
        Err(error) => {
            let list = std::env::var("WF_REQUIRE").unwrap_or_default();
            assert!(!list.split([',', ' ']).any(|name| name == "opencl"), "{error}");
            let _ = writeln!(std::io::stderr(), "OpenCL is not tested: {error}");
            None
        }
    }
}
