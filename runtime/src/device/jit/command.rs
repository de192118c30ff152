//! Options of a compilation, and the command that performs it.

use std::ffi::OsString;
use std::path::Path;
use std::process::Command;

use kernels_gen::dialect::gnu::FLAGS;
use kernels_gen::dialect::rust::Isa;

use super::cache::MODULE;
use super::compiler::{Compiler, CompilerKind};
use crate::device::cpu::limit;

/// Compilation options of a source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JitOptions {
    /// A description of the source, used in names of dumped files.
    pub name: String,
    /// The instruction set; that of this processor without one.
    pub(super) tuned: Option<Isa>,
    /// True if the compiler optimises.
    pub(super) optimised: bool,
    /// Flags in addition to those of [`JitOptions::flags`]. They can change the behaviour of code, and are private to
    /// this crate.
    pub(crate) further: Vec<String>,
    /// The number of codegen units of `rustc`: more of them compile in parallel, one optimises best.
    pub(crate) codegen_units: u32,
}

impl Default for JitOptions {
    fn default() -> Self {
        let (name, further) = ("kernels".into(), Vec::new());
        Self { name, tuned: limit(), optimised: true, further, codegen_units: 1 }
    }
}

impl JitOptions {
    /// Creates the options of a source with this description.
    pub fn new(name: impl Into<String>) -> Self {
        Self { name: name.into(), ..Self::default() }
    }

    /// Disables optimisation: for kernels that do little, or run once.
    #[must_use]
    pub fn unoptimised(mut self) -> Self {
        self.optimised = false;
        self
    }

    /// Generates code for any processor with an instruction set, instead of this one.
    #[must_use]
    pub fn tuned_for(mut self, isa: Isa) -> Self {
        self.tuned = Some(isa);
        self
    }

    /// Returns the flags of a kind of compiler that affect the binary.
    pub(super) fn flags(&self, kind: CompilerKind) -> Vec<String> {
        let flags: Vec<String> = match kind {
            CompilerKind::Rustc => {
                let level = if self.optimised { "opt-level=3" } else { "opt-level=0" };
                let processor = format!("target-cpu={}", self.processor());
                // Without optimisation their default is on, and checking borrows then takes two to three times as long.
                let checks = "debug-assertions=off";
                let flags = [level, &processor, "panic=abort", "strip=symbols", checks];
                flags.iter().map(|flag| format!("-C{flag}")).collect()
            }
            CompilerKind::C => {
                let [level, others @ ..] = FLAGS;
                let level = if self.optimised { level } else { "-O0" };
                let machine = self.machine_flags().iter().copied();
                let flags = [level].into_iter().chain(others).chain(machine);
                flags.map(str::to_owned).collect()
            }
        };
        flags.into_iter().chain(self.further.iter().cloned()).collect()
    }

    /// Returns the processor in the words of `rustc`.
    fn processor(&self) -> &'static str {
        match self.tuned {
            Some(Isa::Avx2) if cfg!(target_arch = "x86_64") => "x86-64-v3",
            Some(Isa::Portable) if cfg!(target_arch = "x86_64") => "x86-64",
            _ => "native",
        }
    }

    /// Returns the processor in the words of GCC and Clang, of any release.
    fn machine_flags(&self) -> &'static [&'static str] {
        match self.tuned {
            _ if cfg!(target_arch = "aarch64") => &["-mcpu=native"],
            _ if !cfg!(target_arch = "x86_64") => &[],
            Some(Isa::Avx2) => &["-march=x86-64", "-mavx2", "-mfma", "-mbmi2"],
            Some(Isa::Portable) => &["-march=x86-64"],
            Some(Isa::Avx512) | None => &["-march=native"],
        }
    }
}

impl Compiler {
    /// Returns the file name of the source during compilation.
    pub(super) fn source(&self) -> &'static str {
        match self.kind() {
            CompilerKind::Rustc => "kernels.rs",
            CompilerKind::C => "kernels.c",
        }
    }

    /// Returns whether it is the Clang of Zig.
    fn is_zig(&self) -> bool {
        let is_named = self.path().file_stem().is_some_and(|stem| stem == "zig");
        is_named || self.leading().iter().any(|word| word == "ziglang")
    }

    /// Returns the command from [`Self::source`] to [`MODULE`] in `folder`.
    ///
    /// Paths are relative, so that the module does not depend on the folder.
    pub(super) fn command(&self, folder: &Path, options: &JitOptions) -> Command {
        let mut command = Command::new(self.path());
        command.args(self.leading());
        match self.kind() {
            CompilerKind::Rustc => {
                command
                    .args(["--edition=2024", "--crate-type=cdylib", "--crate-name=kernels"])
                    .args(["--cap-lints=allow", "--color=never"])
                    .arg(format!("-Ccodegen-units={}", options.codegen_units.max(1)))
                    .args(options.flags(CompilerKind::Rustc))
                    .args(["-o", MODULE, self.source()]);
            }
            CompilerKind::C => {
                command.args(["-std=gnu11", "-shared", "-w", "-fno-sanitize=undefined"]);
                if cfg!(unix) {
                    command.arg("-fPIC");
                }
                let flags = options.flags(CompilerKind::C).into_iter();
                command.args(flags.map(|flag| if self.is_zig() { in_zig(flag) } else { flag }));
                command.args(["-o", MODULE, self.source()]);
                if cfg!(unix) {
                    command.arg("-lm");
                }
            }
        }
        // Temporary files of a killed compiler or linker are removed with the folder.
        let temporary: OsString = folder.into();
        command
            .current_dir(folder)
            .env("TMPDIR", temporary)
            .env("LC_ALL", "C")
            .env_remove("RUSTC_BOOTSTRAP")
            .env_remove("RUSTC_LOG");
        command
    }
}

/// Returns a flag in the words of Zig, which names processors in another way.
fn in_zig(flag: String) -> String {
    if flag == "-march=x86-64" { "-march=x86_64".to_owned() } else { flag }
}
