//! CUDA kernels against the reference on a GPU: random forms on a covering array of all choices, and as many more as
//! `WF_KERNELS` requests.
//!
//! The cases are those of the OpenCL test for the same `WF_SEED` and `WF_WORK`. Without a GPU nothing is compared;
//! `WF_REQUIRE=cuda` makes that a failure.

#[path = "threads/device.rs"]
mod device;
#[path = "threads/run.rs"]
mod run;

use super::conformance::launch;
use super::threads::{choices, draw};
use draw::Limits;
use run::compare;
use runtime::device::cuda::Cuda;
use std::io::Write as _;

#[test]
fn cuda_kernels_agree_with_the_reference() {
    match Cuda::new(0) {
        Ok(device) => {
            compare([&device; 2], &Limits { full: false, work: 3000 }, 24, |_| true);
        }
        Err(error) => {
            let required = std::env::var("WF_REQUIRE").unwrap_or_default();
            assert!(!required.split([',', ' ']).any(|name| name == "cuda"), "{error}");
            let _ = writeln!(std::io::stderr(), "CUDA is not tested: {error}");
        }
    }
}
