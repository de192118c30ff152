//! The devices of this build and this machine.

use runtime::device::{Backend, Device, open};
use std::io::Write as _;
use std::sync::Arc;

/// Returns one device of each backend. A missing backend is skipped with a notice, unless `WF_REQUIRE` names it: then
/// the test fails.
pub(crate) fn devices() -> Vec<Arc<dyn Device>> {
    let list = std::env::var("WF_REQUIRE").unwrap_or_default();
    let mut found = Vec::new();
    for backend in [Backend::Cuda, Backend::OpenCl] {
        match open(backend, None) {
            Ok(device) => found.push(device),
            Err(error) => {
                let required = list.split([',', ' ']).any(|name| name == backend.word());
                assert!(!required, "{error}");
                let _ = writeln!(std::io::stderr(), "{backend} is not tested: {error}");
            }
        }
    }
    found
}
