//! Compilation of OpenCL source to a program, by the driver's compiler or from the cache.

use std::ffi::CString;

use kernels_gen::abi::KernelAbi;
use kernels_gen::dialect::SourceFile;

use super::api::{Context, Program, Status};
use super::choice::DeviceProperties;
use super::error::{OpenClError, driver};
use crate::device::jit::{ForeignSource, Jit};
use crate::support::progress::doing;

/// Compiler options: the language version; no warnings, which are irrelevant for correct kernels; nothing that changes
/// arithmetic.
const FLAGS: &str = "-cl-std=CL1.2 -w";

/// Returns the programs of a source with their kernels, in source order, and whether all were cached. If the compiler
/// supports a register limit, each kernel is a separate program.
pub(super) fn build(
    context: &Context,
    device: &DeviceProperties,
    source: &SourceFile,
    optimises: bool,
    jit: &Jit,
) -> Result<(Vec<(Program, Vec<KernelAbi>)>, bool), OpenClError> {
    let parts = if device.bounds_registers { source.parts() } else { vec![source.clone()] };
    let (mut programs, mut cached) = (Vec::new(), true);
    for part in parts {
        let mut flags = FLAGS.to_owned();
        if !optimises {
            flags.push_str(" -cl-opt-disable");
        }
        if let [abi] = &part.kernels[..]
            && device.bounds_registers
        {
            let most = abi.registers();
            flags.push_str(&format!(" -DREGISTERS={most}"));
            if most < 255 {
                flags.push_str(&format!(" -cl-nv-maxrregcount={most}"));
            }
            if abi.in_order {
                flags.push_str(" -cl-nv-opt-level=1");
            }
        }
        let (program, known) = build_with(context, device, &part, &flags, jit)?;
        cached &= known;
        programs.push((program, part.kernels));
    }
    Ok((programs, cached))
}

/// Compiles a source or takes it from the cache; also returns whether it was cached.
fn build_with(
    context: &Context,
    device: &DeviceProperties,
    source: &SourceFile,
    flags: &str,
    jit: &Jit,
) -> Result<(Program, bool), OpenClError> {
    let name = source.kernels.first().map_or("kernels", |abi| &abi.name);
    let compiler = format!("{device}, {}", device.driver);
    let foreign =
        ForeignSource { name, extension: "cl", compiler: &compiler, flags, source: &source.text };
    let flags = CString::new(flags).expect("options should have no zero byte");
    if !device.keeps_kernels()
        && let Some(binary) = jit.recall_code(&foreign)
        && let Ok(program) = context.binary(device.id, &binary)
        && program.build(device.id, &flags).is_ok()
    {
        return Ok((program, true));
    }
    let rejected = |status: Status, log: String| OpenClError::Rejected {
        device: device.to_string(),
        name: name.to_owned(),
        status,
        log,
        dump: match jit.keep_rejected(&foreign) {
            Ok(path) => path.display().to_string(),
            Err(error) => format!("lost ({error})"),
        },
    };
    let text = CString::new(source.text.as_str())
        .map_err(|error| rejected(Status(0), error.to_string()))?;
    let program = context.source(&text).map_err(driver("take a source"))?;
    let _said = doing("compiling kernels");
    if let Err(status) = program.build(device.id, &flags) {
        return Err(rejected(status, program.log(device.id).unwrap_or_default()));
    }
    // PoCL recompiles every kernel for any group size if asked for its binary; it has its own cache of launched
    // kernels.
    if !device.keeps_kernels()
        && let Ok(binary) = program.made()
    {
        jit.keep_code(&foreign, &binary);
    }
    Ok((program, false))
}
