//! OpenCL source → a program of one device, by the driver's compiler or from the cache.

use std::ffi::CString;

use kernels_gen::dialect::SourceFile;

use super::api::{Context, Program, Status};
use super::choice::Facts;
use super::error::{OpenClError, driver};
use crate::jit::{Foreign, Jit};

/// Options of the compiler: the language that the sources are written in, and nothing that changes their arithmetic.
const FLAGS: &str = "-cl-std=CL1.2";

/// Compiles a source, or takes what was compiled of it before; and whether it was.
pub(super) fn build(
    context: &Context,
    device: &Facts,
    source: &SourceFile,
    jit: &Jit,
) -> Result<(Program, bool), OpenClError> {
    let name = source.kernels.first().map_or("kernels", |abi| &abi.name);
    let compiler = format!("{device}, {}", device.driver);
    let foreign =
        Foreign { name, extension: "cl", compiler: &compiler, flags: FLAGS, source: &source.text };
    let flags = CString::new(FLAGS).expect("options should have no zero byte");
    if let Some(binary) = jit.recall(&foreign)
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
    if let Err(status) = program.build(device.id, &flags) {
        return Err(rejected(status, program.log(device.id).unwrap_or_default()));
    }
    if let Ok(binary) = program.made() {
        jit.keep(&foreign, &binary);
    }
    Ok((program, false))
}
