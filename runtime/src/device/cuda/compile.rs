//! NVRTC: CUDA source → code for one architecture, from the cache if known. It needs no GPU, and for cached code no
//! library.

use std::ffi::CString;
use std::sync::atomic::{AtomicUsize, Ordering};
#[cfg(target_os = "linux")]
use std::{fs, path::Path, time::UNIX_EPOCH};

use cudarc::nvrtc::{result, sys};
use kernels_gen::dialect::SourceFile;

use super::CudaError;
use crate::device::jit::{ForeignSource, Jit};
use crate::support::progress::doing;

/// The language version, and nothing that changes arithmetic.
const FLAGS: &str = "--std=c++17";
/// Assembler options that roughly preserve the order of a source.
const IN_ORDER: &str = "--ptxas-options=-O1";
/// The same options, as part of the cache key.
const FLAGS_IN_ORDER: &str = "--std=c++17 --ptxas-options=-O1";

/// Returns whether NVRTC can be loaded.
pub fn find_nvrtc() -> bool {
    // SAFETY: only searches for the library and loads it.
    unsafe { sys::is_culib_present() }
}

/// Returns the version of NVRTC.
///
/// # Errors
///
/// NVRTC is missing.
pub fn version() -> Result<(i32, i32), CudaError> {
    if !find_nvrtc() {
        return Err(CudaError::NoCompiler);
    }
    let (mut major, mut minor) = (0, 0);
    // SAFETY: writes two numbers.
    let asked = unsafe { sys::nvrtcVersion(&mut major, &mut minor) };
    asked.result().map_err(failed("ask NVRTC for its version"))?;
    Ok((major, minor))
}

/// Returns the version, from the cache if possible: loading the library takes too long for a warm start.
fn remembered_version(jit: &Jit) -> Result<String, CudaError> {
    let ask = || version().map(|(major, minor)| format!("{major}.{minor}"));
    match places() {
        Some(places) => jit.remembered(&format!("the version of NVRTC\n{places}"), ask),
        None => ask(),
    }
}

/// Returns everything that determines which file the loader uses for NVRTC, and the version of that file.
#[cfg(target_os = "linux")]
fn places() -> Option<String> {
    let stamp = |path: &Path| {
        let found = fs::metadata(path).ok()?;
        let time = found.modified().ok()?.duration_since(UNIX_EPOCH).ok()?.as_nanos();
        Some(format!("{} {} {time}", path.display(), found.len()))
    };
    let mut places = vec![stamp(Path::new("/etc/ld.so.cache"))?];
    let folders = std::env::var_os("LD_LIBRARY_PATH").unwrap_or_default();
    for folder in std::env::split_paths(&folders) {
        let entries = fs::read_dir(&folder).into_iter().flatten().flatten();
        let libraries = entries.map(|entry| entry.path()).filter(|path| {
            let name = path.file_name().unwrap_or_default();
            name.to_string_lossy().starts_with("libnvrtc")
        });
        let mut stamps: Vec<String> = libraries.filter_map(|path| stamp(&path)).collect();
        stamps.sort();
        places.push(folder.display().to_string());
        places.extend(stamps);
    }
    Some(places.join("\n"))
}

/// On other systems the version is not cached.
#[cfg(not(target_os = "linux"))]
fn places() -> Option<String> {
    None
}

fn failed(what: &str) -> impl Fn(result::NvrtcError) -> CudaError + '_ {
    move |error| CudaError::Driver { what: what.to_owned(), error: format!("{error:?}") }
}

/// Returns the code of a source for an architecture such as `sm_90`, and whether it was cached.
///
/// # Errors
///
/// NVRTC is missing, or it rejects the source, which is saved; the error names the file.
pub fn compile_through(
    jit: &Jit,
    source: &SourceFile,
    arch: &str,
) -> Result<(Vec<u8>, bool), CudaError> {
    let version = remembered_version(jit)?;
    let compiler = format!("NVRTC {version} for {arch}");
    let foreign = foreign(source, &compiler);
    if let Some(image) = jit.recall_code(&foreign) {
        return Ok((image, true));
    }
    // Of several processes or threads that want a kernel, only one compiles it.
    let _turn = jit.turn_to_compile(&foreign);
    if let Some(image) = jit.recall_code(&foreign) {
        return Ok((image, true));
    }
    let more: Vec<&str> = in_order(source).then_some(IN_ORDER).into_iter().collect();
    let (image, _) = accepted(jit, &foreign, arch, build(&source.text, arch, &more)?)?;
    jit.keep_code(&foreign, &image);
    Ok((image, false))
}

/// Returns the code of each part of a source, and whether all was cached. Missing code is compiled in parallel on all
/// processors.
///
/// # Errors
///
/// Those of [`compile_through`], for the first rejected part.
pub fn compile_parts(
    jit: &Jit,
    parts: &[SourceFile],
    arch: &str,
) -> Result<(Vec<Vec<u8>>, bool), CudaError> {
    let version = remembered_version(jit)?;
    let compiler = format!("NVRTC {version} for {arch}");
    let recall = |part: &SourceFile| jit.recall_code(&foreign(part, &compiler));
    let known: Vec<Option<Vec<u8>>> = parts.iter().map(recall).collect();
    let missing: Vec<usize> = (0..parts.len()).filter(|&part| known[part].is_none()).collect();
    let _said = (!missing.is_empty()).then(|| doing("compiling kernels"));
    let next = AtomicUsize::new(0);
    let work = || {
        let mut done = Vec::new();
        while let Some(&part) = missing.get(next.fetch_add(1, Ordering::Relaxed)) {
            done.push((part, compile_through(jit, &parts[part], arch)));
        }
        done
    };
    let jobs = std::thread::available_parallelism().map_or(1, usize::from).min(missing.len());
    let made = std::thread::scope(|scope| {
        let start = || std::thread::Builder::new().stack_size(STACK).spawn_scoped(scope, work);
        let threads: Vec<_> = (0..jobs).filter_map(|_| start().ok()).collect();
        let made: Vec<_> = threads.into_iter().filter_map(|thread| thread.join().ok()).collect();
        made.into_iter().flatten().collect::<Vec<_>>()
    });
    let cached = missing.is_empty();
    let mut images = known;
    for (part, image) in made {
        images[part] = Some(image?.0);
    }
    // On this thread, if no thread could be started.
    let image = |(part, image): (&SourceFile, Option<Vec<u8>>)| match image {
        Some(image) => Ok(image),
        None => compile_through(jit, part, arch).map(|(image, _)| image),
    };
    let images = parts.iter().zip(images).map(image).collect::<Result<_, _>>()?;
    Ok((images, cached))
}

/// Stack size of a compiling thread: NVRTC recurses over the expressions of a kernel.
const STACK: usize = 64 << 20;

/// Returns the cache key of a source.
fn foreign<'a>(source: &'a SourceFile, compiler: &'a str) -> ForeignSource<'a> {
    let name = source.kernels.first().map_or("kernels", |abi| &abi.name);
    let flags = if in_order(source) { FLAGS_IN_ORDER } else { FLAGS };
    ForeignSource { name, extension: "cu", compiler, flags, source: &source.text }
}

/// Returns whether the assembler shall roughly preserve the order of a source.
fn in_order(source: &SourceFile) -> bool {
    !source.kernels.is_empty() && source.kernels.iter().all(|abi| abi.in_order)
}

/// Returns the code of a text for an architecture, without the cache.
///
/// # Errors
///
/// Those of [`compile_through`].
pub fn compile(text: &str, arch: &str) -> Result<Vec<u8>, CudaError> {
    Ok(compile_with(text, arch, &[])?.0)
}

/// Returns the code of a text and the compiler's log.
fn compile_with(text: &str, arch: &str, more: &[&str]) -> Result<(Vec<u8>, String), CudaError> {
    let (name, extension) = ("kernels", "cu");
    let foreign = ForeignSource { name, extension, compiler: arch, flags: FLAGS, source: text };
    accepted(Jit::global(), &foreign, arch, build(text, arch, more)?)
}

/// Resources of a kernel's thread, as reported by the assembler.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ThreadResources {
    /// The kernel's name.
    pub kernel: String,
    /// The number of 32-bit registers.
    pub registers: usize,
    /// Bytes of stack: arrays and register spills.
    pub stack: usize,
}

/// Returns the resources of the kernels of a source on an architecture. It needs no GPU.
///
/// # Errors
///
/// Those of [`compile`].
pub fn resources(source: &SourceFile, arch: &str) -> Result<Vec<ThreadResources>, CudaError> {
    let mut all = Vec::new();
    for part in source.parts() {
        let mut options = vec!["--ptxas-options=-v"];
        options.extend(in_order(&part).then_some(IN_ORDER));
        let (_, log) = compile_with(&part.text, arch, &options)?;
        all.extend(resources_of(&log));
    }
    Ok(all)
}

/// Parses `Function properties for NAME`, `N bytes stack frame` and `Used N registers`.
fn resources_of(log: &str) -> Vec<ThreadResources> {
    let number = |line: &str, before: &str| -> Option<usize> {
        let text = &line[..line.find(before)?];
        text.trim_end().rsplit(|c: char| !c.is_ascii_digit()).next()?.parse().ok()
    };
    let mut all: Vec<ThreadResources> = Vec::new();
    for line in log.lines() {
        if let Some((_, name)) = line.split_once("Function properties for ") {
            all.push(ThreadResources { kernel: name.trim().to_owned(), registers: 0, stack: 0 });
        } else if let Some(last) = all.last_mut() {
            last.stack = number(line, "bytes stack frame").unwrap_or(last.stack);
            last.registers = number(line, "registers").unwrap_or(last.registers);
        }
    }
    all
}

/// Returns the code, or an error with the path of the saved source.
fn accepted(
    jit: &Jit,
    foreign: &ForeignSource<'_>,
    arch: &str,
    built: Result<(Vec<u8>, String), String>,
) -> Result<(Vec<u8>, String), CudaError> {
    built.map_err(|log| {
        let dump = match jit.keep_rejected(foreign) {
            Ok(path) => path.display().to_string(),
            Err(error) => format!("lost ({error})"),
        };
        CudaError::Rejected { name: foreign.name.to_owned(), arch: arch.to_owned(), dump, log }
    })
}

/// Returns the code of a text and the compiler's log, or the log of a rejected text.
fn build(
    text: &str,
    arch: &str,
    more: &[&str],
) -> Result<Result<(Vec<u8>, String), String>, CudaError> {
    if !find_nvrtc() {
        return Err(CudaError::NoCompiler);
    }
    let Ok(source) = CString::new(text) else {
        return Ok(Err("the source has a zero byte".to_owned()));
    };
    let made = result::create_program(&source, None);
    let program = Program(made.map_err(failed("make a program of the source"))?);
    let mut options = vec![format!("--gpu-architecture={arch}"), FLAGS.to_owned()];
    options.extend(more.iter().map(|&option| option.to_owned()));
    // SAFETY: the program lives until the end of this function.
    let compiled = unsafe { result::compile_program(program.0, &options) };
    // SAFETY: as above.
    let log = unsafe { result::get_program_log(program.0) }.unwrap_or_default();
    let bytes = log.iter().take_while(|&&byte| byte != 0).map(|&byte| byte.cast_unsigned());
    let bytes: Vec<u8> = bytes.collect();
    let log = String::from_utf8_lossy(&bytes).into_owned();
    if compiled.is_err() {
        return Ok(Err(log));
    }
    let mut size = 0;
    // SAFETY: the program is compiled, and `size` is written before it is read.
    let asked = unsafe { sys::nvrtcGetCUBINSize(program.0, &mut size) };
    asked.result().map_err(failed("ask for the size of the code"))?;
    let mut image = vec![0_u8; size];
    // SAFETY: the image has the size that NVRTC has just returned.
    let read = unsafe { sys::nvrtcGetCUBIN(program.0, image.as_mut_ptr().cast()) };
    read.result().map_err(failed("read the code"))?;
    Ok(Ok((image, log)))
}

/// Owning handle of a program.
struct Program(sys::nvrtcProgram);

impl Drop for Program {
    fn drop(&mut self) {
        // SAFETY: created by `create_program` and destroyed once.
        let _ = unsafe { result::destroy_program(self.0) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_assemblers_log_is_read() {
        let log = "ptxas info    : 64 bytes gmem, 40 bytes cmem[3]
ptxas info    : Compiling entry function 'first' for 'sm_90'
ptxas info    : Function properties for first
    160 bytes stack frame, 148 bytes spill stores, 164 bytes spill loads
ptxas info    : Used 80 registers, used 1 barriers, 47104 bytes smem
ptxas info    : Compiling entry function 'second' for 'sm_90'
ptxas info    : Function properties for second
    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
ptxas info    : Used 8 registers";
        let of = |kernel: &str, registers, stack| ThreadResources {
            kernel: kernel.to_owned(),
            registers,
            stack,
        };
        assert_eq!(resources_of(log), [of("first", 80, 160), of("second", 8, 0)]);
    }
}
