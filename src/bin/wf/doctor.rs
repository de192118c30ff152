//! `wf doctor`: the software and hardware of this machine that weakform can use, missing parts, and instructions to
//! obtain them.

mod calibrate;

use std::fmt::Write as _;
use std::time::Instant;

use clap::Args;
use runtime::device::cpu::{Machine, VendorLibrary};
use runtime::device::jit::{Candidate, CompilerKind, Environment, Jit};
use runtime::support::scratch::ScratchFolder;
use serde_json::{Value, json};

use crate::console::Console;
use crate::report::{Failure, Report};

/// Show what this machine has, what is missing, and how to get it.
///
/// Everything is tried, not only looked for: the compiler compiles a kernel, which is loaded and run.
#[derive(Args)]
#[command(after_help = "\
Examples:
  wf doctor
  wf doctor --json
  wf doctor --calibrate                      measures what this machine does in a second, for `wf plan`
  WF_RUSTC=/opt/rust/bin/rustc wf doctor     with another compiler
  WF_CC=clang wf doctor                      with a C compiler")]
pub(crate) struct Arguments {
    /// Measure what this machine copies, multiplies, divides, adds and launches in a second, with one thread, with all, and on
    /// its devices, and keep it: predictions are of this machine from then on.
    #[arg(long)]
    pub(crate) calibrate: bool,
}

/// The state of a component of the machine.
#[derive(Clone, Copy, PartialEq, Eq)]
enum ComponentState {
    Good,
    /// Absent, and optional.
    Missing,
    /// Present or expected, but not working.
    Broken,
}

impl ComponentState {
    fn word(self) -> &'static str {
        match self {
            Self::Good => "ok",
            Self::Missing => "missing",
            Self::Broken => "broken",
        }
    }
}

/// One component of the machine.
struct Finding {
    name: &'static str,
    state: ComponentState,
    detail: String,
    help: Option<String>,
    facts: Value,
}

impl Finding {
    fn good(name: &'static str, detail: impl Into<String>, facts: Value) -> Self {
        Self { name, state: ComponentState::Good, detail: detail.into(), help: None, facts }
    }

    fn bad(
        name: &'static str,
        state: ComponentState,
        detail: impl Into<String>,
        help: &str,
    ) -> Self {
        Self { name, state, detail: detail.into(), help: Some(help.into()), facts: json!({}) }
    }

    /// Creates a finding from an error whose text ends with its own `help:` line.
    fn error(name: &'static str, state: ComponentState, error: &str) -> Self {
        let (detail, help) = error.split_once("\nhelp: ").unwrap_or((error, ""));
        let help = (!help.is_empty()).then(|| help.to_owned());
        Self { name, state, detail: detail.to_owned(), help, facts: json!({}) }
    }

    fn json(&self) -> Value {
        let mut object = json!({ "state": self.state.word(), "detail": self.detail });
        if let Some(help) = &self.help {
            object["help"] = json!(help);
        }
        for (name, fact) in self.facts.as_object().into_iter().flatten() {
            object[name] = fact.clone();
        }
        object
    }
}

/// Examines every component.
pub(crate) fn execute(arguments: &Arguments, console: &Console) -> Result<Report, Failure> {
    if arguments.calibrate {
        return calibrate::calibrate(console);
    }
    let jit = Jit::global();
    let compilers = jit.candidates();
    let mut findings = vec![processor(&Machine::detect()), rustc(jit, &compilers)];
    findings.push(c_compilers(&compilers));
    findings.push(match jit.compiler() {
        Ok(_) => kernels(jit, &compilers),
        Err(_) => interpreted(),
    });
    findings.extend([cache(jit), cuda_driver(), nvrtc()]);
    findings.push(nccl());
    findings.extend([opencl(), mpi()]);

    let version = env!("CARGO_PKG_VERSION");
    let (arch, system) = (std::env::consts::ARCH, std::env::consts::OS);
    let mut text = format!("weakform {version} on {arch} {system}\n\n");
    let mut object = json!({ "version": version, "arch": arch, "system": system });
    for finding in &findings {
        let detail = finding.detail.replace('\n', &format!("\n{:24}", ""));
        let _ = writeln!(text, "  {:8} {:12} {detail}", finding.state.word(), finding.name);
        if let Some(help) = &finding.help {
            let _ = writeln!(text, "{:24}help: {help}", "");
        }
        object[finding.name.replace(' ', "_").to_lowercase()] = finding.json();
    }
    Ok(Report::new(text, object))
}

fn processor(machine: &Machine) -> Finding {
    let (simd, cores) = (machine.simd, machine.cores);
    let plural = if cores == 1 { "" } else { "s" };
    let detail = format!(
        "{}, {cores} core{plural}\nvectors: {}, {} lanes of f64 or {} of f32",
        machine.model,
        simd.name(),
        simd.lanes_f64(),
        simd.lanes_f32()
    );
    let facts = json!({
        "model": machine.model, "cores": cores, "simd": simd.name(), "features": machine.features,
        "lanes_f64": simd.lanes_f64(), "lanes_f32": simd.lanes_f32(),
    });
    Finding::good("processor", detail, facts)
}

/// Examines the library for several processes.
#[cfg(feature = "mpi")]
fn mpi() -> Finding {
    let version = fem_mpi::version();
    let pointers = fem_mpi::takes_device_pointers();
    let taken = match pointers {
        Some(true) => {
            "takes device pointers: GPUs reach each other by it where neither their memory nor NCCL connects them"
        }
        Some(false) => {
            "takes no device pointers: where neither their memory nor NCCL connects GPUs, the host carries what they tell each other"
        }
        None => {
            "whether it takes device pointers it knows when it has started: `mpirun -n 1 wf doctor`"
        }
    };
    let detail = format!(
        "{version}\nseveral processes: `mpirun -n 4 wf run FILE`, with `--backend cuda` a GPU each\n{taken}"
    );
    Finding::good("MPI", detail, json!({ "version": version, "device_pointers": pointers }))
}

/// Examines the library for several processes.
#[cfg(not(feature = "mpi"))]
fn mpi() -> Finding {
    let help = "to work with several processes, install an MPI and libclang (Debian: libopenmpi-dev openmpi-bin libclang-dev), \
                and build with `--features mpi`";
    Finding::bad("MPI", ComponentState::Missing, "this build of wf knows of one process", help)
}

/// Returns whether a compiler that was looked for is `rustc`.
fn is_rustc(candidate: &Candidate) -> bool {
    match candidate.variable {
        Some(variable) => variable != "WF_CC",
        None => candidate.name == "rustc",
    }
}

/// Examines `rustc`.
fn rustc(jit: &Jit, compilers: &[Candidate]) -> Finding {
    let own = compilers.iter().find(|candidate| is_rustc(candidate));
    match own.and_then(|candidate| candidate.compiler.as_ref()) {
        Some(Ok(compiler)) => {
            let path = compiler.path().display().to_string();
            let seconds = jit.bound().as_secs_f64();
            let detail = format!(
                "{}\n{path}\nended where it takes more than {seconds} s (WF_COMPILE_SECONDS)",
                compiler.version()
            );
            let version = compiler.version();
            let facts = json!({ "version": version, "path": path, "compile_seconds": seconds });
            Finding::good("rustc", detail, facts)
        }
        Some(Err(error)) => {
            let text = format!("{error}");
            let (what, help) = text.split_once("\nhelp: ").unwrap_or((&text, "install Rust"));
            Finding::bad("rustc", ComponentState::Missing, what, help)
        }
        None => Finding::bad(
            "rustc",
            ComponentState::Missing,
            "there is no `rustc` on the search path",
            "install Rust (https://rustup.rs), or name a compiler with WF_RUSTC",
        ),
    }
}

/// Examines the C compilers, which compile kernels where there is no `rustc`.
fn c_compilers(compilers: &[Candidate]) -> Finding {
    let name = "C compiler";
    let own: Vec<&Candidate> = compilers.iter().filter(|one| !is_rustc(one)).collect();
    let line = |candidate: &&Candidate| {
        let Candidate { name, compiler, .. } = candidate;
        Some(match compiler.as_ref()? {
            Ok(compiler) => {
                format!("{name}: {}, {}", compiler.version(), compiler.path().display())
            }
            Err(error) => format!("{name}: {}", error.to_string().replace('\n', "; ")),
        })
    };
    let lines: Vec<String> = own.iter().filter_map(line).collect();
    let value = |candidate: &&Candidate| {
        let usable = candidate.usable();
        let error = candidate.compiler.as_ref().and_then(|found| found.as_ref().err());
        json!({
            "name": candidate.name,
            "variable": candidate.variable,
            "version": usable.map(|compiler| compiler.version()),
            "path": usable.map(|compiler| compiler.path().display().to_string()),
            "error": error.map(ToString::to_string),
        })
    };
    let facts = json!({ "compilers": own.iter().map(value).collect::<Vec<_>>() });
    if own.iter().any(|candidate| candidate.usable().is_some()) {
        return Finding::good(name, lines.join("\n"), facts);
    }
    let detail = if lines.is_empty() {
        "there is no cc, clang, gcc or Python package `ziglang` on the search path".to_owned()
    } else {
        lines.join("\n")
    };
    let help = "for kernels without rustc, install gcc, clang or `pip install ziglang`, or name one with WF_CC";
    Finding { facts, ..Finding::bad(name, ComponentState::Missing, detail, help) }
}

/// Compiles a kernel without caches, loads it and runs it.
fn kernels(jit: &Jit, compilers: &[Candidate]) -> Finding {
    let started = Instant::now();
    let (title, because) = selected(jit, compilers);
    match try_kernel() {
        Ok(()) => {
            let seconds = started.elapsed().as_secs_f64();
            let detail = format!(
                "one was compiled, loaded and run in {seconds:.2} s\nby {title}: {because}"
            );
            let facts = json!({
                "kernels": "compiled", "seconds": seconds, "compiler": title, "because": because,
            });
            Finding::good("kernels", detail, facts)
        }
        Err(error) if error.contains("\nhelp: ") => {
            Finding::error("kernels", ComponentState::Broken, &error)
        }
        Err(error) => {
            let help =
                "rustc needs a linker: install `gcc` or `clang` (Debian: apt-get install gcc)";
            Finding::bad("kernels", ComponentState::Broken, error, help)
        }
    }
}

/// Returns the compiler that is used, and the reason.
fn selected(jit: &Jit, compilers: &[Candidate]) -> (String, String) {
    let Ok(compiler) = jit.compiler() else { return Default::default() };
    let of_this = |candidate: &&Candidate| candidate.usable() == Some(compiler);
    let variable = compilers.iter().find(of_this).and_then(|candidate| candidate.variable);
    let because = match (variable, compiler.kind()) {
        (Some(variable), _) => format!("{variable} names it"),
        (None, CompilerKind::Rustc) => {
            "rustc comes first; WF_CC=cc selects a C compiler".to_owned()
        }
        (None, CompilerKind::C) => {
            "it is the first C compiler, and there is no usable rustc".to_owned()
        }
    };
    (compiler.title(), because)
}

/// Returns the finding for a machine without a compiler.
fn interpreted() -> Finding {
    let mut finding = Finding::bad(
        "kernels",
        ComponentState::Missing,
        "none can be compiled: they are interpreted",
        "install Rust (https://rustup.rs), gcc or clang, or name a compiler with WF_RUSTC or WF_CC",
    );
    finding.facts = json!({ "kernels": "interpreted" });
    finding
}

fn try_kernel() -> Result<(), String> {
    // An empty cache: the test is for a working compiler, not for earlier results.
    let folder = ScratchFolder::new().map_err(|error| error.to_string())?;
    let cache_dir = Some(folder.path().into());
    let jit = Jit::new(Environment { cache_dir, dump_dir: None, ..Environment::from_process() });
    jit.try_kernel().map_err(|error| error.to_string())
}

fn cache(jit: &Jit) -> Finding {
    match jit.cache() {
        Ok(cache) => {
            let (contents, folder) = (cache.contents(), cache.folder().display().to_string());
            let megabytes = contents.bytes as f64 / f64::from(1 << 20);
            let plural = if contents.modules == 1 { "" } else { "s" };
            let detail = format!(
                "{folder}: {} compiled module{plural}, {megabytes:.1} MiB",
                contents.modules
            );
            let facts =
                json!({ "folder": folder, "modules": contents.modules, "bytes": contents.bytes });
            Finding::good("cache", detail, facts)
        }
        Err(error) => Finding::error("cache", ComponentState::Broken, &error.to_string()),
    }
}

fn cuda_driver() -> Finding {
    let name = "CUDA driver";
    match VendorLibrary::Cuda.loads() {
        Some(library) => match runtime::device::cuda::devices() {
            Ok(devices) if devices.is_empty() => Finding::bad(
                name,
                ComponentState::Missing,
                format!("{library} finds no GPU"),
                "look at what `nvidia-smi` says",
            ),
            Ok(devices) => {
                let shown = devices.iter().enumerate().map(|(i, one)| format!("{i}: {one}"));
                let peers = runtime::device::cuda::have_peer_access();
                let reached = match peers {
                    Some(true) => {
                        "\nthey reach each other's memory: the shortest way for what several tell each other"
                    }
                    Some(false) => {
                        "\nthey do not reach each other's memory: what several tell each other goes by NCCL"
                    }
                    None => "",
                };
                let shown = shown.collect::<Vec<_>>().join("\n");
                let detail = format!("{library}\n{shown}{reached}");
                let facts = json!({ "library": library, "devices": devices, "peer_access": peers });
                Finding::good(name, detail, facts)
            }
            Err(error) => Finding::error(name, ComponentState::Broken, &error.to_string()),
        },
        None => Finding::bad(
            name,
            ComponentState::Missing,
            "libcuda.so.1 does not load: no NVIDIA GPU can be used",
            "install NVIDIA's driver",
        ),
    }
}

fn nvrtc() -> Finding {
    match VendorLibrary::Nvrtc.loads() {
        Some(library) => match runtime::device::cuda::version() {
            Ok((major, minor)) => {
                let version = format!("{major}.{minor}");
                let facts = json!({ "library": library, "version": version });
                Finding::good("NVRTC", format!("{version}, {library}"), facts)
            }
            Err(error) => Finding::error("NVRTC", ComponentState::Broken, &error.to_string()),
        },
        None => Finding::bad(
            "NVRTC",
            ComponentState::Missing,
            "libnvrtc.so does not load: CUDA kernels cannot be compiled",
            "install the CUDA toolkit; or `pip install nvidia-cuda-nvrtc-cu12`, and name the folder of its \
             libraries in LD_LIBRARY_PATH",
        ),
    }
}

/// Examines the communication library between GPUs.
fn nccl() -> Finding {
    match runtime::device::cuda::nccl_version() {
        Some(version) => {
            let detail = format!(
                "{version}\nseveral GPUs: `wf run FILE --backend cuda --devices 0,1`, between hosts and where they do not reach each other's memory by it"
            );
            Finding::good("NCCL", detail, json!({ "version": version }))
        }
        None => Finding::bad(
            "NCCL",
            ComponentState::Missing,
            "libnccl.so.2 does not load: GPUs that do not reach each other's memory go by MPI where it takes device pointers, else by way of the host",
            "to use GPUs of several hosts, install NCCL; or `pip install nvidia-nccl-cu12`, and name the folder of its library in \
             LD_LIBRARY_PATH",
        ),
    }
}

fn opencl() -> Finding {
    use runtime::device::Device as _;
    use runtime::device::opencl::{OpenCl, devices};
    let (device, all) = match (OpenCl::new(), devices()) {
        (Ok(device), Ok(all)) => (device, all),
        (Err(error), _) | (_, Err(error)) => {
            return Finding::error("OpenCL", ComponentState::Missing, &error.to_string());
        }
    };
    let mut detail = device.name();
    for other in all.iter().filter(|other| other.to_string() != device.name()) {
        let _ = write!(detail, "\nalso {other}");
        if !other.doubles {
            detail.push_str(", without double precision");
        }
    }
    let names: Vec<String> = all.iter().map(ToString::to_string).collect();
    let facts = device.facts();
    let facts = json!({
        "device": device.name(), "driver": facts.driver, "memory": facts.memory, "devices": names,
    });
    Finding::good("OpenCL", detail, facts)
}
