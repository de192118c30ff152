//! OpenCL kernels against the reference: random forms on a covering array of every choice, on the
//! device that `WF_OPENCL` names, or the first: PoCL, where there is no GPU.
//!
//! Cells and degrees, rules, shapes of cells, stored geometry and coefficients, tasks, precisions,
//! strategies, ways of addressing, settings of the generator and kinds of forms: every pair of choices
//! that a plan supports occurs in at least one kernel, each with a random form of its own.
//! `WF_KERNELS=N` draws N more rows of choices at random, `WF_SEED` chooses other forms, and
//! `WF_WORK=N` lets a thread do so many multiply-adds. Without a device nothing is compared, and
//! `WF_REQUIRE=opencl` makes that a failure.
#![cfg(feature = "opencl")]

#[path = "threads/choices.rs"]
mod choices;
#[path = "compiled/cover.rs"]
mod cover;
#[path = "threads/device.rs"]
mod device;
#[path = "threads/draw.rs"]
mod draw;
#[path = "opencl/device.rs"]
mod here;
#[path = "conformance/launch.rs"]
mod launch;
#[path = "compiled/levels.rs"]
mod levels;
#[path = "device/parts.rs"]
mod parts;
#[path = "threads/run.rs"]
mod run;
#[path = "conformance/setting.rs"]
mod setting;

use draw::Limits;
use run::compare;
use runtime::device::Device;
use runtime::device::jit::{Environment, Jit};
use runtime::device::opencl::OpenCl;
use std::path::Path;

#[test]
fn opencl_kernels_agree_with_the_reference() {
    let Some(device) = here::opencl() else { return };
    let name = "opencl_kernels_agree_with_the_reference";
    let Some(part) = parts::part(name, [&device as &dyn Device]) else { return };
    // A cache beside the other results of the build: kernels that did not change are not compiled
    // again.
    let cache = Path::new(env!("CARGO_TARGET_TMPDIR")).join("opencl_kernels");
    let jit = || {
        let cache_dir = Some(cache.clone());
        Jit::new(Environment { cache_dir, ..Environment::from_process() })
    };
    let limits = Limits { full: false, work: 120 };
    let (device, plain) = (device.with_jit(jit()), OpenCl::new().expect("the same device"));
    let devices: [&dyn Device; 2] = [&device, &plain.with_jit(jit()).unoptimised()];
    let kernels = compare(devices, &limits, 24, |number| part.has(number));
    // A few minutes on the processor's OpenCL.
    let more = draw::number("WF_KERNELS").is_some() || draw::number("WF_WORK").is_some();
    assert!(more || kernels <= 400, "{kernels} kernels");
}
