//! Properties of the host processor, and detection of vendor libraries.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::sync::LazyLock;

use kernels_gen::dialect::rust::Isa;

/// Vector instructions of kernels on this machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Simd {
    /// 512-bit vectors: 8 lanes of f64.
    Avx512,
    /// 256-bit vectors with fused multiply-add: 4 lanes of f64.
    Avx2Fma,
    /// 128-bit vectors of x86-64: 2 lanes of f64.
    Sse2,
    /// 128-bit vectors of aarch64: 2 lanes of f64.
    Neon,
    /// No known vector instructions: one lane.
    Scalar,
}

impl Simd {
    /// Returns the number of f64 in one vector.
    pub fn lanes_f64(self) -> usize {
        match self {
            Self::Avx512 => 8,
            Self::Avx2Fma => 4,
            Self::Sse2 | Self::Neon => 2,
            Self::Scalar => 1,
        }
    }

    /// Returns the number of f32 in one vector.
    pub fn lanes_f32(self) -> usize {
        match self {
            Self::Scalar => 1,
            _ => 2 * self.lanes_f64(),
        }
    }

    /// Returns the best supported instruction set of kernels.
    pub fn isa(self) -> Isa {
        match self {
            Self::Avx512 => Isa::Avx512,
            Self::Avx2Fma => Isa::Avx2,
            Self::Sse2 | Self::Neon | Self::Scalar => Isa::Portable,
        }
    }

    /// Returns the usual name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Avx512 => "AVX-512",
            Self::Avx2Fma => "AVX2 and FMA",
            Self::Sse2 => "SSE2",
            Self::Neon => "NEON",
            Self::Scalar => "none",
        }
    }
}

/// The host processor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Machine {
    /// The model name reported by the system.
    pub model: String,
    /// The vector instructions that kernels use.
    pub simd: Simd,
    /// The features of the instruction set that affect kernels.
    pub features: Vec<&'static str>,
    /// The number of cores available to this process.
    pub cores: usize,
    /// Text that determines native code for this processor; part of the key of compiled kernels.
    pub identity: String,
}

impl Machine {
    /// Queries the processor and the system.
    pub fn detect() -> Self {
        let lines = processor_lines();
        let model = lines.iter().find_map(|line| {
            let (name, value) = line.split_once(':')?;
            (name.trim() == "model name").then(|| value.trim().to_owned())
        });
        let features = features();
        let mut identity = format!("{} {}\n", std::env::consts::ARCH, features.join(" "));
        for line in &lines {
            identity.push_str(line);
            identity.push('\n');
        }
        Self {
            model: model.unwrap_or_else(|| format!("{} processor", std::env::consts::ARCH)),
            simd: limited(simd(), limit()),
            features,
            cores: std::thread::available_parallelism().map_or(1, usize::from),
            identity,
        }
    }
}

/// Returns the lines of the system's processor description that identify the first processor, in order.
///
/// Empty if the system has no such file; the detected features are then used alone.
fn processor_lines() -> Vec<String> {
    const TELLING: [&str; 12] = [
        "vendor_id",
        "cpu family",
        "model",
        "model name",
        "stepping",
        "flags",
        "CPU implementer",
        "CPU architecture",
        "CPU variant",
        "CPU part",
        "CPU revision",
        "Features",
    ];
    let Ok(file) = File::open("/proc/cpuinfo") else { return Vec::new() };
    // The file is generated while it is read, one processor after another: stop at the first blank line.
    let lines =
        BufReader::new(file).lines().map_while(Result::ok).take_while(|line| !line.is_empty());
    lines
        .filter(|line| line.split(':').next().is_some_and(|name| TELLING.contains(&name.trim())))
        .collect()
}

macro_rules! detect {
    ($ask:ident: $($name:tt),*) => {{
        let mut found = Vec::new();
        $(if std::arch::$ask!($name) {
            found.push($name);
        })*
        found
    }};
}

#[cfg(target_arch = "x86_64")]
fn features() -> Vec<&'static str> {
    detect!(is_x86_feature_detected: "sse2", "sse4.1", "sse4.2", "avx", "avx2", "fma", "f16c", "bmi2",
        "avx512f", "avx512dq", "avx512bw", "avx512vl", "avx512fp16", "avx512bf16")
}

#[cfg(target_arch = "aarch64")]
fn features() -> Vec<&'static str> {
    detect!(is_aarch64_feature_detected: "neon", "fp16", "dotprod", "sve", "sve2")
}

#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
fn features() -> Vec<&'static str> {
    Vec::new()
}

fn simd() -> Simd {
    let features = features();
    let has = |name: &str| features.contains(&name);
    // The features that kernels of these widths enable.
    let avx2 = has("avx2") && has("fma") && has("bmi2");
    if avx2 && has("avx512f") && has("avx512dq") && has("avx512vl") {
        Simd::Avx512
    } else if avx2 {
        Simd::Avx2Fma
    } else if has("sse2") {
        Simd::Sse2
    } else if has("neon") {
        Simd::Neon
    } else {
        Simd::Scalar
    }
}

/// Returns the upper limit of the instruction set, from `WF_ISA`.
pub fn limit() -> Option<Isa> {
    static LIMIT: LazyLock<Option<Isa>> =
        LazyLock::new(|| parse_limit(&std::env::var("WF_ISA").ok()?, simd().isa()));
    *LIMIT
}

/// Parses `WF_ISA`; `None`, with a warning, if it is unknown or not supported by `best`.
fn parse_limit(text: &str, best: Isa) -> Option<Isa> {
    if text.is_empty() {
        return None;
    }
    match text.parse::<Isa>() {
        Ok(isa) if isa.runs_on(best) => return Some(isa),
        Ok(isa) => {
            tracing::warn!("WF_ISA is `{isa}`, but this processor has {best}, which is used")
        }
        Err(error) => tracing::warn!("WF_ISA: {error}; {best} is used"),
    }
    None
}

/// Returns the vector instructions within a limit.
fn limited(own: Simd, limit: Option<Isa>) -> Simd {
    match limit {
        Some(isa) if isa > own.isa() => match isa {
            Isa::Avx512 => Simd::Avx512,
            Isa::Avx2 => Simd::Avx2Fma,
            Isa::Portable => Simd::Sse2,
        },
        _ => own,
    }
}

/// Vendor library of a backend.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VendorLibrary {
    /// The CUDA driver.
    Cuda,
    /// The CUDA compiler NVRTC.
    Nvrtc,
}

impl VendorLibrary {
    /// Returns the possible file names.
    fn names(self) -> &'static [&'static str] {
        match self {
            Self::Cuda => &["libcuda.so.1", "nvcuda.dll"],
            Self::Nvrtc => &["libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so"],
        }
    }

    /// Returns the name that the system's loader finds, if any; the library is unloaded at once.
    pub fn loads(self) -> Option<&'static str> {
        self.names().iter().copied().find(|name| loads(name))
    }
}

/// Returns whether the system's loader finds a library.
fn loads(name: &'static str) -> bool {
    // SAFETY: this runs the initialisers of a library that the administrator installed, as linking would; no function
    // is called. All names are those of drivers.
    unsafe { libloading::Library::new(name) }.is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_identity_is_stable_and_lanes_fit_the_features() {
        let machine = Machine::detect();
        assert_eq!(machine, Machine::detect());
        assert!(machine.cores >= 1);
        assert!(machine.identity.starts_with(std::env::consts::ARCH));
        assert_eq!(machine.simd == Simd::Scalar, machine.features.is_empty());
        assert!(machine.simd.lanes_f32() >= machine.simd.lanes_f64());
    }

    #[test]
    fn an_instruction_set_can_be_left_out() {
        assert_eq!(parse_limit("", Isa::Avx512), None);
        assert_eq!(parse_limit("portable", Isa::Avx512), Some(Isa::Portable));
        assert_eq!(parse_limit("avx2", Isa::Avx2), Some(Isa::Avx2));
        assert_eq!(parse_limit("avx512", Isa::Avx2), None);
        assert_eq!(parse_limit("mmx", Isa::Avx2), None);
        assert_eq!(limited(Simd::Avx512, Some(Isa::Avx2)), Simd::Avx2Fma);
        assert_eq!(limited(Simd::Avx512, Some(Isa::Portable)), Simd::Sse2);
        assert_eq!(limited(Simd::Avx512, None), Simd::Avx512);
        // The only instruction set of such a processor is no restriction.
        assert_eq!(limited(Simd::Neon, Some(Isa::Portable)), Simd::Neon);
    }

    #[test]
    fn a_library_that_is_not_there_is_no_panic() {
        assert!(!loads("libweakform-is-not-installed.so.1"));
    }
}
