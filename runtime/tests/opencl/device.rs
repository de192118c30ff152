//! The OpenCL device of this machine, or none, where that is allowed.

use runtime::device::opencl::OpenCl;
use std::io::Write as _;

/// The device that the environment asks for. Where there is none, a test is left out, unless `WF_REQUIRE` names
/// `opencl`: then it fails.
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
