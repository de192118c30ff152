//! The instruction sets that the Rust dialect knows, and the words that they have for vectors.

use super::scalar;
use crate::kir::Precision;
use std::fmt;
use std::str::FromStr;

/// An instruction set of a CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Isa {
    /// AVX-512 F, DQ and VL: vectors of 64 and of 32 bytes.
    Avx512,
    /// AVX2 with FMA: vectors of 32 bytes.
    Avx2,
    /// Whatever the compiler makes of short arrays: SSE2, NEON and others, vectors of 16 bytes.
    Portable,
}

impl fmt::Display for Isa {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Avx512 => "avx512",
            Self::Avx2 => "avx2",
            Self::Portable => "portable",
        })
    }
}

impl FromStr for Isa {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "avx512" => Ok(Self::Avx512),
            "avx2" => Ok(Self::Avx2),
            "portable" => Ok(Self::Portable),
            _ => {
                Err(format!("unknown instruction set `{text}`: expected avx512, avx2 or portable"))
            }
        }
    }
}

impl Isa {
    /// Every instruction set, the best first.
    pub const ALL: [Self; 3] = [Self::Avx512, Self::Avx2, Self::Portable];

    /// Whether kernels for it run on a processor whose best is `best`: each has what follows it in
    /// [`Isa::ALL`] too.
    pub fn runs_on(self, best: Self) -> bool {
        self >= best
    }

    /// The widest vector, in lanes.
    pub fn widest(self, precision: Precision) -> usize {
        let bytes = match self {
            Self::Avx512 => 64,
            Self::Avx2 => 32,
            Self::Portable => 16,
        };
        bytes / precision.bytes()
    }

    /// The target features that a kernel's function must enable.
    pub(super) fn features(self, precision: Precision, lanes: usize) -> Option<&'static str> {
        match self.bytes(precision, lanes) {
            (Self::Avx512, _) => Some("avx512f,avx512dq,avx512vl,avx2,fma,bmi2"),
            (Self::Avx2, _) => Some("avx2,fma,bmi2"),
            (Self::Portable, _) => None,
        }
    }

    /// The instruction set that really serves a width, and the width in bytes.
    fn bytes(self, precision: Precision, lanes: usize) -> (Self, usize) {
        let bytes = lanes * precision.bytes();
        match (self, bytes) {
            (Self::Avx512, 64 | 32) | (Self::Avx2, 32) => (self, bytes),
            _ => (Self::Portable, bytes),
        }
    }

    /// The vector type `V`, its truth type `M` and all functions on them; those that go from lane to lane (`sin`, `exp`, …)
    /// are `called` or written out where they are used.
    pub(super) fn vocabulary(self, precision: Precision, lanes: usize, called: bool) -> String {
        let (isa, bytes) = self.bytes(precision, lanes);
        let template = match isa {
            Self::Avx512 | Self::Avx2 => include_str!("../preamble/avx.rs"),
            Self::Portable => include_str!("../preamble/portable.rs"),
        };
        let bits = bytes * 8;
        let (suffix, letter) = match precision {
            Precision::F64 => ("pd", "d"),
            Precision::F32 => ("ps", ""),
        };
        let prefix = format!("_mm{}", if bits == 512 { "512" } else { "256" });
        let mask = if lanes > 8 { "__mmask16" } else { "__mmask8" };
        let common = include_str!("../preamble/common.rs");
        let whole = include_str!("../preamble/columns_whole.rs");
        let transpose = match (isa, precision, lanes) {
            (Self::Avx512, Precision::F64, 8) => {
                [include_str!("../preamble/transpose_f64x8.rs"), ""]
            }
            (Self::Avx512 | Self::Avx2, Precision::F64, 4) => {
                [include_str!("../preamble/transpose_f64x4.rs"), whole]
            }
            _ => [include_str!("../preamble/transpose_memory.rs"), whole],
        };
        let transpose = transpose.concat();
        let enable = self.features(precision, lanes);
        let enable = enable.map_or_else(String::new, |features| {
            format!("#[target_feature(enable = \"{features}\")]")
        });
        let function = match (called, enable.as_str()) {
            (false, _) => "#[inline(always)]".to_owned(),
            (true, "") => "#[inline(never)]".to_owned(),
            (true, enable) => format!("#[inline(never)]\n    {enable}"),
        };
        let text = [template, &transpose, common].join(
            "
",
        );
        write_out_lanes(&for_isa(&text, isa), lanes)
            .replace("$P", &prefix)
            .replace("$S", suffix)
            .replace("$VECTOR", &format!("__m{bits}{letter}"))
            .replace("$MASK", mask)
            .replace("$FUNCTION", &function)
            .replace("$ENABLE", &enable)
            .replace("$LANES", &lanes.to_string())
            .replace("$BYTES", &bytes.to_string())
            .replace("$T", scalar(precision))
    }
}

/// Keeps what stands in `$AVX512{…}` or in `$AVX2{…}` for that instruction set alone.
fn for_isa(text: &str, isa: Isa) -> String {
    let alternatives = [("$AVX512{", Isa::Avx512), ("$AVX2{", Isa::Avx2)];
    alternatives.into_iter().fold(text.to_owned(), |text, (mark, of)| {
        replace_marked(&text, mark, |part| if isa == of { part.to_owned() } else { String::new() })
    })
}

/// Writes each `$EACH{… $I …}` out, once a lane. The compiler takes several times as long over loops
/// of closures, and comes to the same code.
fn write_out_lanes(text: &str, lanes: usize) -> String {
    replace_marked(text, "$EACH{", |part| {
        let each = (0..lanes).map(|lane| part.replace("$I", &lane.to_string()));
        each.collect::<Vec<_>>().join(", ")
    })
}

/// Replaces what stands between a mark and the brace that closes its own, with both.
fn replace_marked(text: &str, mark: &str, replaced: impl Fn(&str) -> String) -> String {
    let mut parts = text.split(mark);
    let mut out = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let end = closing(part);
        out.push_str(&replaced(&part[..end]));
        out.push_str(part.get(end + 1..).unwrap_or_default());
    }
    out
}

/// Where the brace closes that was opened before `text`.
fn closing(text: &str) -> usize {
    let mut open = 1;
    for (at, byte) in text.bytes().enumerate() {
        open += i32::from(byte == b'{') - i32::from(byte == b'}');
        if open == 0 {
            return at;
        }
    }
    text.len()
}
