//! OpenCL kernels against the reference: random forms on a covering array of all choices, on the device selected by
//! `WF_OPENCL`, or the first one: PoCL without a GPU.
//!
//! Choices are cells and degrees, rules, cell shapes, stored geometry and coefficients, tasks, precisions, strategies,
//! index types, generator settings and kinds of forms. Every supported pair of choices occurs in at least one kernel,
//! each with its own random form. `WF_KERNELS=N` adds N random rows of choices, `WF_SEED` selects other forms, and
//! `WF_WORK=N` limits the multiply-adds per thread. Without a device nothing is compared; `WF_REQUIRE=opencl` makes
//! that a failure.

#[path = "conformance/between.rs"]
mod between;
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
#[path = "conformance/pairs.rs"]
mod pairs;
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
    // A cache in the build folder: unchanged kernels are not recompiled.
    let cache = Path::new(env!("CARGO_TARGET_TMPDIR")).join("opencl_kernels");
    let jit = || {
        let cache_dir = Some(cache.clone());
        Jit::new(Environment { cache_dir, ..Environment::from_process() })
    };
    let limits = Limits { full: false, work: 120 };
    let (device, plain) = (device.with_jit(jit()), OpenCl::new().expect("the same device"));
    let devices: [&dyn Device; 2] = [&device, &plain.with_jit(jit()).unoptimised()];
    let kernels = compare(devices, &limits, 24, |number| part.has(number));
    // A few minutes with OpenCL on the CPU.
    let more = draw::number("WF_KERNELS").is_some() || draw::number("WF_WORK").is_some();
    assert!(more || kernels <= 400, "{kernels} kernels");
}
