//! NVRTC: CUDA source → the code of one architecture. Needs no GPU.

use super::CudaError;
use cudarc::nvrtc::{result, sys};
use std::ffi::{CStr, CString};

/// Whether NVRTC can be loaded.
pub fn find_nvrtc() -> bool {
    // SAFETY: looks for the library and loads it, no more.
    unsafe { sys::is_culib_present() }
}

/// The code of a source for an architecture such as `sm_90`.
pub fn compile(text: &str, arch: &str) -> Result<Vec<u8>, CudaError> {
    if !find_nvrtc() {
        return Err(CudaError::NoCompiler);
    }
    let fail = |what: &str| {
        let what = what.to_owned();
        move |error: result::NvrtcError| CudaError::Driver { what, error: format!("{error:?}") }
    };
    let source = CString::new(text).map_err(|_| CudaError::Driver {
        what: "compile".to_owned(),
        error: "the source has a zero byte".to_owned(),
    })?;
    let program = Program(
        result::create_program(&source, None).map_err(fail("make a program of the source"))?,
    );
    let options = vec![format!("--gpu-architecture={arch}"), "--std=c++17".to_owned()];
    // SAFETY: the program is alive until the end of this function.
    let compiled = unsafe { result::compile_program(program.0, &options) };
    if compiled.is_err() {
        // SAFETY: as above.
        let log = unsafe { result::get_program_log(program.0) }.unwrap_or_default();
        // SAFETY: NVRTC ends its log with a zero, and `get_program_log` keeps it.
        let log = unsafe { CStr::from_ptr(log.as_ptr()) }.to_string_lossy().into_owned();
        let path = std::env::temp_dir().join("weakform_rejected.cu");
        let path = match std::fs::write(&path, text) {
            Ok(()) => path.display().to_string(),
            Err(error) => format!("no file ({error})"),
        };
        return Err(CudaError::Compile { arch: arch.to_owned(), path, log });
    }
    let mut size = 0;
    // SAFETY: the program is compiled, and `size` is written before it is read.
    unsafe { sys::nvrtcGetCUBINSize(program.0, &mut size) }.result().map_err(fail("size"))?;
    let mut image = vec![0_u8; size];
    // SAFETY: the image has room for the size that NVRTC has just named.
    unsafe { sys::nvrtcGetCUBIN(program.0, image.as_mut_ptr().cast()) }
        .result()
        .map_err(fail("read the code"))?;
    Ok(image)
}

/// Destroyed when it goes out of scope.
struct Program(sys::nvrtcProgram);

impl Drop for Program {
    fn drop(&mut self) {
        // SAFETY: made by `create_program` and destroyed once.
        let _ = unsafe { result::destroy_program(self.0) };
    }
}
