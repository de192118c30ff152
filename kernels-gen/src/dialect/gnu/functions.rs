//! Functions on GNU vector types: the templates for a precision, a number of lanes, and the runs of kernels.

use super::spelling::{scalar, suffix};
use super::vector_name;
use crate::dialect::rust::Isa;
use crate::dialect::vectors::{for_each_lane, replace_marked};
use crate::kir::{Kernel, Precision, Run, Statement};
use std::collections::BTreeSet;
use std::fmt::Write;

/// The text for all types.
pub(super) const COMMON: &str = include_str!("common.c");

/// Functions of one argument that are called lane by lane.
const UNARY: [&str; 11] =
    ["exp", "log", "sin", "cos", "tan", "asin", "acos", "atan", "sinh", "cosh", "tanh"];

/// Functions of two arguments that are called lane by lane.
const BINARY: [&str; 2] = ["pow", "atan2"];

/// A set of functions on the runs of a cell, for constants that are known when the kernel is printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Instance {
    /// Runs of a length, with the factor of their starts.
    Run { length: usize, scale: usize },
    /// Lines of runs that are summed with weights: nodes of a line, components, arrays.
    Lines { length: usize, scale: usize, n: usize, components: usize, arrays: usize },
}

impl Instance {
    /// One of each.
    #[cfg(test)]
    pub(super) const EXAMPLES: [Self; 2] = [
        Self::Run { length: 27, scale: 1 },
        Self::Lines { length: 27, scale: 1, n: 3, components: 1, arrays: 2 },
    ];

    /// Returns its functions.
    fn text(self, lanes: usize) -> String {
        let (length, scale, text) = match self {
            Self::Run { length, scale } => (length, scale, include_str!("runs.c").to_owned()),
            Self::Lines { length, scale, n, components, arrays } => {
                let chunked = [1, n, n * n].into_iter().map(|stride| stride * components);
                let mut chunked: Vec<usize> =
                    chunked.filter(|&chunk| n * chunk <= length).collect();
                chunked.retain(|&chunk| sums_chunks(length, n, arrays, chunk, lanes));
                let condition: Vec<String> =
                    chunked.iter().map(|chunk| format!("chunk == {chunk}")).collect();
                let condition =
                    if chunked.is_empty() { "0".to_owned() } else { condition.join(" || ") };
                let text = include_str!("lines.c").replace("$CHUNKED", &condition);
                let text = text.replace("$N", &n.to_string()).replace("$W", &arrays.to_string());
                (length, scale, text.replace("$C", &components.to_string()))
            }
        };
        let rest = length % lanes;
        let kept = |part: &str| if rest > 0 { part.to_owned() } else { String::new() };
        // Without a remainder a line of spaces is left, and an empty line would end the function's block.
        let text = replace_marked(&text, "$REMAINDER{", kept);
        let is_whole = |line: &&str| line.is_empty() || !line.trim().is_empty();
        let lines: Vec<&str> = text.split('\n').filter(is_whole).collect();
        lines
            .join("\n")
            .replace("$LENGTH", &length.to_string())
            .replace("$SCALE", &scale.to_string())
            .replace("$REST", &rest.to_string())
            .replace("$WHOLE", &(length - rest).to_string())
    }
}

/// Returns whether the lines of a cell whose entries are `chunk` elements apart are summed after the transposition of
/// chunks. Sums are rounded in another order than those of a whole cell, and the Rust kernels decide in the same way.
fn sums_chunks(length: usize, n: usize, arrays: usize, chunk: usize, lanes: usize) -> bool {
    let chunks = length / n / chunk;
    let halves = 2 * chunk == lanes && chunks.is_multiple_of(2);
    let pieces = if halves { length / n / lanes } else { chunks * chunk.div_ceil(lanes) };
    (halves || chunk >= lanes) && arrays * pieces <= length.div_ceil(lanes)
}

/// Returns the instances that a kernel calls.
pub(super) fn instances(kernel: &Kernel) -> BTreeSet<Instance> {
    let mut all = BTreeSet::new();
    let mut one = |run: &Run| {
        let Run { length, scale, lines, .. } = run;
        let (length, scale) = (*length, *scale);
        all.insert(Instance::Run { length, scale });
        all.extend(lines.as_ref().map(|lines| Instance::Lines {
            length,
            scale,
            n: lines.n,
            components: lines.components,
            arrays: run.locals().count(),
        }));
    };
    let mut each = |statement: &Statement| match statement {
        Statement::GatherRun { run, .. } | Statement::ScatterRun { run, .. } => one(run),
        _ => {}
    };
    kernel.body.iter().for_each(|statement| statement.for_each(&mut each));
    all
}

/// Returns the lines that refuse processors without the instructions of a vector type; none for other types.
pub(super) fn required(isa: Isa, precision: Precision, lanes: usize) -> String {
    let bytes = lanes * precision.bytes();
    let (macro_name, flags) = match (isa, bytes) {
        (Isa::Avx512, 64) => ("__AVX512F__", "-mavx512f -mavx512dq -mavx512vl -mfma"),
        (Isa::Avx512 | Isa::Avx2, 32) => ("__FMA__", "-mavx2 -mfma -mbmi2"),
        _ => return String::new(),
    };
    format!(
        "#if !defined({macro_name})\n\
         #error \"kernels for {isa}: compile with -march=native, or with {flags}\"\n\
         #endif\n\n"
    )
}

/// Returns the types of a precision and a number of lanes, and all functions on them.
pub(super) fn text(precision: Precision, lanes: usize, instances: &BTreeSet<Instance>) -> String {
    let mut text = include_str!("vectors.c").to_owned();
    for name in UNARY {
        let _ = write!(
            text,
            "\nNOINLINE $V {name}_$V($V a)\n{{\n    \
             return ($V){{$EACH{{__builtin_{name}$F(a[$I])}}}};\n}}\n"
        );
    }
    for name in BINARY {
        let _ = write!(
            text,
            "\nNOINLINE $V {name}_$V($V a, $V b)\n{{\n    \
             return ($V){{$EACH{{__builtin_{name}$F(a[$I], b[$I])}}}};\n}}\n"
        );
    }
    for instance in instances {
        let _ = write!(text, "\n{}", instance.text(lanes));
    }
    let (bytes, size) = (lanes * precision.bytes(), precision.bytes());
    let vector = vector_name(precision, lanes);
    let integer = format!("int{}_t", 8 * size);
    let builtin = fma_builtin(precision, bytes);
    let text = text.replace("$TRANSPOSE", &transposition(precision, lanes));
    for_each_lane(&text, lanes)
        .replace("\n$BUILTIN", &builtin)
        .replace("$LANES", &lanes.to_string())
        .replace("$BYTES", &bytes.to_string())
        .replace("$SIZE", &size.to_string())
        .replace("$INTEGER", &integer)
        .replace("$V", &vector)
        .replace("$M", &vector.replacen('f', "m", 1))
        .replace("$T", scalar(precision))
        .replace("$F", suffix(precision))
}

/// Returns the lines with GCC's function for a fused operation: a loop over the lanes gives the same instructions, but
/// takes three times as long to compile.
fn fma_builtin(precision: Precision, bytes: usize) -> String {
    let kind = match precision {
        Precision::F64 => "pd",
        Precision::F32 => "ps",
    };
    let (macro_name, call) = match bytes {
        16 => ("__FMA__", format!("__builtin_ia32_vfmadd{kind}(a, b, c)")),
        32 => ("__FMA__", format!("__builtin_ia32_vfmadd{kind}256(a, b, c)")),
        64 => ("__AVX512F__", format!("__builtin_ia32_vfmadd{kind}512_mask(a, b, c, -1, 4)")),
        _ => return String::new(),
    };
    format!("\n#elif defined({macro_name})\n    return {call};")
}

/// Returns the body of a transposition: of vectors of 128 bits first, then of blocks that double.
fn transposition(precision: Precision, lanes: usize) -> String {
    if !lanes.is_power_of_two() || lanes == 1 {
        return in_memory(lanes);
    }
    let mut text = "#if __has_builtin(__builtin_shufflevector)\n".to_owned();
    let mut step = 0;
    // The names of the rows after a step.
    let row = |step: usize, i: usize| {
        if step == 0 { format!("rows[{i}]") } else { format!("r{step}_{i}") }
    };
    let shuffled = |text: &mut String, name: &str, a: &str, b: &str, order: &[usize]| {
        let order: Vec<String> = order.iter().map(ToString::to_string).collect();
        let order = order.join(", ");
        let _ = writeln!(text, "    const $V {name} = __builtin_shufflevector({a}, {b}, {order});");
    };
    let mut block = 1;
    if precision == Precision::F32 && lanes >= 4 {
        // Four rows to four columns, in each 128 bits.
        let within = |order: [usize; 4]| -> Vec<usize> {
            let of = |base: usize, i: usize| if i < 4 { base + i } else { lanes + base + i - 4 };
            (0..lanes).step_by(4).flat_map(|base| order.map(|i| of(base, i))).collect()
        };
        for first in (0..lanes).step_by(4) {
            for (pair, low) in [(0, 0), (1, 2)] {
                let [a, b] = [low, low + 1].map(|i| row(0, first + i));
                shuffled(&mut text, &format!("l{first}_{pair}"), &a, &b, &within([0, 4, 1, 5]));
                shuffled(&mut text, &format!("h{first}_{pair}"), &a, &b, &within([2, 6, 3, 7]));
            }
            for (i, (half, order)) in
                [("l", [0, 1, 4, 5]), ("l", [2, 3, 6, 7]), ("h", [0, 1, 4, 5]), ("h", [2, 3, 6, 7])]
                    .into_iter()
                    .enumerate()
            {
                let [a, b] = [0, 1].map(|pair| format!("{half}{first}_{pair}"));
                shuffled(&mut text, &row(1, first + i), &a, &b, &within(order));
            }
        }
        (step, block) = (1, 4);
    }
    while block < lanes {
        for i in (0..lanes).filter(|i| i & block == 0) {
            let (a, b) = (row(step, i), row(step, i + block));
            let low = |j: usize| if j & block == 0 { j } else { lanes + j - block };
            let high = |j: usize| if j & block == 0 { j + block } else { lanes + j };
            let [low, high]: [Vec<usize>; 2] =
                [(0..lanes).map(low).collect(), (0..lanes).map(high).collect()];
            shuffled(&mut text, &row(step + 1, i), &a, &b, &low);
            shuffled(&mut text, &row(step + 1, i + block), &a, &b, &high);
        }
        (step, block) = (step + 1, 2 * block);
    }
    for i in 0..lanes {
        let _ = writeln!(text, "    rows[{i}] = {};", row(step, i));
    }
    format!("{text}#else\n{}\n#endif", in_memory(lanes))
}

/// Returns the body of a transposition without operations on vectors.
fn in_memory(lanes: usize) -> String {
    let exchange = "const $T own = rows[i][j]; rows[i][j] = rows[j][i]; rows[j][i] = own;";
    format!(
        "    for (size_t i = 0; i < {lanes}; ++i) {{\n        for (size_t j = 0; j < i; ++j) {{\n            \
         {exchange}\n        }}\n    }}"
    )
}

#[cfg(test)]
mod tests {
    use super::{Instance, text};
    use crate::kir::Precision;
    use std::collections::BTreeSet;

    /// Sources are joined block by block, and blocks end at empty lines.
    #[test]
    fn blocks_are_whole_functions() {
        for lanes in [2, 4, 8, 16] {
            let mut all: BTreeSet<Instance> =
                (1..=2 * lanes).map(|length| Instance::Run { length, scale: 1 }).collect();
            all.extend([2, 3, 4].map(|n| {
                let (length, scale, components, arrays) = (n * n * n, 1, 1, 2);
                Instance::Lines { length, scale, n, components, arrays }
            }));
            let all = text(Precision::F64, lanes, &all);
            let lines: Vec<&str> = all.lines().map(str::trim_end).collect();
            for block in lines.join("\n").split("\n\n") {
                let [open, close] = ['{', '}'].map(|brace| block.matches(brace).count());
                assert_eq!(open, close, "{lanes} lanes: {block}");
            }
        }
    }
}
