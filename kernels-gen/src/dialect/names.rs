//! `names`: the form's names in a kernel → identifiers that are valid in the target language.
//!
//! A user may call a field `double`, `float4`, `gen` or `V`. A name from the form gets an underscore if the language,
//! the preamble or another part of the kernel uses it, and is unchanged otherwise. Other names in a kernel get a number
//! on a conflict: a parameter may be called `cell`.

use crate::kir::{Kernel, Rule, Statement, Thread};
use std::collections::{BTreeMap, BTreeSet};

/// Reserved names of a language.
#[derive(Debug)]
pub(super) struct ReservedNames {
    /// Keywords of the language; functions that kernels call; types, variables and macros of the preamble.
    taken: &'static str,
    /// Types with vector variants: their name followed by a number.
    types: &'static str,
    /// Prefixes reserved for the compiler.
    prefixes: &'static [&'static str],
    /// True if upper-case names can be macros of headers.
    macros: bool,
    /// True if functions on vectors end with the name of their type.
    vectors: bool,
}

/// Reserved names of C, C++, OpenCL and CUDA.
pub(super) const C: ReservedNames = ReservedNames { taken: TAKEN_IN_C, vectors: false, ..GNU_C };

/// Reserved names of C, and of the functions on GNU vector types.
pub(super) const GNU_C: ReservedNames = ReservedNames {
    taken: TAKEN_IN_GNU_C,
    types: TYPES_OF_C,
    prefixes: &["__"],
    macros: true,
    vectors: true,
};

/// Reserved names of Rust 2024, and the functions on vectors.
pub(super) const RUST: ReservedNames =
    ReservedNames { taken: TAKEN_IN_RUST, types: "", prefixes: &[], macros: false, vectors: false };

const TAKEN_IN_C: &str = "
    auto break case char const continue default do double else enum extern float for goto if inline
    int long register restrict return short signed sizeof static struct switch typedef union unsigned
    void volatile while bool true false asm complex imaginary

    alignas alignof and and_eq bitand bitor catch char16_t char32_t class compl constexpr const_cast
    decltype delete dynamic_cast explicit export friend mutable namespace new noexcept not not_eq
    nullptr operator or or_eq private protected public reinterpret_cast static_assert static_cast
    template this thread_local throw try typeid typename using virtual wchar_t xor xor_eq

    kernel global local constant generic pipe uniform read_only write_only read_write half quad size_t
    ptrdiff_t intptr_t uintptr_t event_t sampler_t image1d_t image1d_array_t image1d_buffer_t image2d_t
    image2d_array_t image3d_t barrier get_local_id get_group_id vec_step cl_khr_fp64
    cl_khr_int64_base_atomics threadIdx blockIdx blockDim gridDim warpSize

    sqrt fabs exp log sin cos tan asin acos atan sinh cosh tanh pow atan2 fma atomic_add atomicAdd
    atomic_add_real gather_masked add_edge edge_of Edge edge again thread_again pair fence reciprocal atom_cmpxchg atomic_cmpxchg

    T U uint32 INLINE listed listed_at group_of REGISTERS first end lane thread own writes batch number to from slot of mine INFINITY NAN MAXFLOAT NULL HUGE_VAL
    HUGE_VALF EOF linux unix i386 vector pixel";

const TAKEN_IN_GNU_C: &str = "
    auto break case char const continue default do double else enum extern float for goto if inline
    int long register restrict return short signed sizeof static struct switch typedef union unsigned
    void volatile while bool true false asm typeof constexpr nullptr alignas alignof static_assert thread_local

    size_t ptrdiff_t wchar_t max_align_t intptr_t uintptr_t intmax_t uintmax_t
    int8_t int16_t int32_t int64_t uint8_t uint16_t uint32_t uint64_t

    sqrt fabs exp log sin cos tan asin acos atan sinh cosh tanh pow atan2 fma

    INLINE NOINLINE prefetch_0 prefetch_1 lesser begin end first last batch active_lanes arguments
    NULL linux unix i386 vector pixel";

const TYPES_OF_C: &str =
    "char uchar short ushort int uint long ulong longlong ulonglong float double half bool quad";

const TAKEN_IN_RUST: &str = "
    as async await break const continue crate dyn else enum extern false fn for gen if impl in let loop
    match mod move mut pub ref return self Self static struct super trait true type unsafe use where while

    abstract become box do final macro override priv try typeof unsized virtual yield

    Some None Ok Err

    V M LANES scatter scatter_masked scatter_run scatter_lanes scatter_long gather_masked flags gather_run gather_long
    gather_lanes gather_lines gather_axis gather_piece columns_at sum_lines scatter_lines scatter_axis scatter_piece
    columns_onto spread_lines stride_of by_line by_halves by_chunk halves_of halves_to
    prefetch prefetch_indexed transpose columns_of columns_to fours row_of row_to BY_FOURS

    run entry begin end first last batch active_lanes";

/// Returns the kernel with valid, distinct names for every named argument, table, array, variable and value. Loop
/// variables share a name unless their loops are nested.
pub(super) fn rename(kernel: &Kernel, words: &ReservedNames) -> Kernel {
    let mut kernel = kernel.clone();
    let used = BTreeSet::from([kernel.name.clone()]);
    let mut names = NameTable { words, used, numbers: BTreeMap::new() };
    for argument in kernel.arguments.iter_mut() {
        argument.name = names.of_argument(&argument.name);
    }
    for table in kernel.tables.iter_mut() {
        table.name = names.numbered(&words.of_table(&table.name));
    }
    let own = kernel.locals.iter_mut().chain(kernel.integers.iter_mut());
    for array in kernel.shared.iter_mut().chain(own) {
        array.name = names.numbered(&array.name);
    }
    let batch = kernel.batch();
    for id in kernel.vars.ids().collect::<Vec<_>>() {
        let member = if kernel.threads == 0 { "lane" } else { "thread" };
        let var = &mut kernel.vars[id];
        if var.thread() == Some(Thread::Member) {
            // Already named.
            member.clone_into(&mut var.name);
        } else if id != batch && var.rule != Rule::Counted {
            var.name = names.numbered(&var.name);
            let of_batch = ["own", "writes"].map(|word| format!("{word}_{}", var.name));
            names.used.extend(of_batch);
        }
    }
    let body = std::mem::take(&mut kernel.body);
    names.of_loops(&mut kernel, &body);
    names.used.extend(kernel.vars.iter().map(|var| var.name.clone()));
    kernel.body = body;
    for value in kernel.values.iter_mut() {
        value.name = value.name.as_ref().map(|name| names.numbered(name));
    }
    kernel
}

/// Returns whether a name of several letters is reserved in C, C++, OpenCL or CUDA.
pub(crate) fn is_reserved_in_c(name: &str) -> bool {
    name.len() > 1 && C.is_taken(name)
}

/// The names in use.
struct NameTable<'w> {
    words: &'w ReservedNames,
    used: BTreeSet<String>,
    /// The next number for each name; lower ones are in use.
    numbers: BTreeMap<String, usize>,
}

impl NameTable<'_> {
    /// Returns an argument's name: that of the form, with an underscore if it is reserved.
    fn of_argument(&mut self, name: &str) -> String {
        let mut own = self.words.own(name);
        while self.words.is_taken(&own) || !self.used.insert(own.clone()) {
            own.push('_');
        }
        own
    }

    /// Returns any other name, with a number if it is in use.
    fn numbered(&mut self, name: &str) -> String {
        let mut own = self.words.own(name);
        if is_label(&own) {
            own.push('_');
        }
        let Self { words, used, numbers } = self;
        let mut number = numbers.get(&own).copied().unwrap_or_default();
        loop {
            let name = if number == 0 { own.clone() } else { format!("{own}_{number}") };
            if !used.contains(&name) && !words.is_taken(&name) {
                used.insert(name.clone());
                numbers.insert(own, number + 1);
                return name;
            }
            number += 1;
        }
    }

    fn of_loops(&mut self, kernel: &mut Kernel, body: &[Statement]) {
        for statement in body {
            match statement {
                // The depth of loop nests is bounded by the strategies, for any input.
                Statement::For { var, body, .. } => {
                    let name = self.numbered(&kernel.vars[*var].name);
                    kernel.vars[*var].name.clone_from(&name);
                    self.of_loops(kernel, body);
                    self.used.remove(&name);
                    self.numbers.clear();
                }
                Statement::When { body, .. } => self.of_loops(kernel, body),
                _ => {}
            }
        }
    }
}

impl ReservedNames {
    /// Returns whether a name may belong to the compiler or to a header.
    fn is_foreign(&self, name: &str) -> bool {
        let capitals = name.contains('_') && !name.contains(|c: char| c.is_ascii_lowercase());
        self.prefixes.iter().any(|prefix| name.starts_with(prefix)) || self.macros && capitals
    }

    /// Returns the name, with an underscore if it may be foreign.
    fn own(&self, name: &str) -> String {
        if self.is_foreign(name) { format!("a_{name}") } else { name.to_owned() }
    }

    /// Returns whether a name is reserved.
    fn is_taken(&self, name: &str) -> bool {
        let stem = name.trim_end_matches(|c: char| c.is_ascii_digit());
        let of_vectors = |kind: &&str| stem.len() < name.len() && stem.ends_with(*kind);
        let of_vectors = self.vectors && ["f64x", "f32x", "m64x", "m32x"].iter().any(of_vectors);
        is_label(name) || of_vectors || is_one(self.types, stem) || is_one(self.taken, name)
    }

    fn of_table(&self, name: &str) -> String {
        if self.macros { name.to_owned() } else { name.to_uppercase() }
    }
}

/// Returns whether a name is that of an unnamed value, as `v3_7`, or would become one by a number, as `v3`.
fn is_label(name: &str) -> bool {
    let Some(numbers) = name.strip_prefix('v') else { return false };
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let (section, number) = numbers.split_once('_').unwrap_or((numbers, "0"));
    is_number(section) && is_number(number)
}

fn is_one(words: &str, word: &str) -> bool {
    words.split_whitespace().any(|one| one == word)
}

#[cfg(test)]
mod tests {
    use super::{C, GNU_C, RUST, ReservedNames, rename};
    use crate::dialect::rust::{Isa, words_of_vectors};
    use crate::kir::build::Builder;
    use crate::kir::{Element, Index, Precision};

    #[test]
    fn every_function_on_vectors_has_a_reserved_name() {
        for (precision, lanes) in
            [(Precision::F64, 4), (Precision::F64, 8), (Precision::F32, 8), (Precision::F32, 2)]
        {
            let words = crate::dialect::gnu::words(precision, lanes);
            assert!(words.len() > 30, "{words:?}");
            for word in words {
                let is_safe = GNU_C.is_taken(&word) || GNU_C.is_foreign(&word);
                assert!(is_safe, "{word} for {precision:?}x{lanes}");
            }
        }
    }

    /// Arrays and values whose names in the form are those of variables; separate loops share names.
    #[test]
    fn everything_has_a_name_of_its_own() {
        let mut b = Builder::new("f", Precision::F64, 1);
        let params = b.argument("params", Element::Real, false);
        b.set_threads(4, 1);
        let (cell, t) = (b.thread_var("cell", 4, 1), b.thread_var("t", 1, 4));
        assert!(cell < t);
        let local = b.local("cell", 4);
        for (at, name) in ["time", "cell", "t", "t", "q"].into_iter().enumerate() {
            let value = b.load_uniform(params, Index::from(at));
            b.name(value, name);
            b.store(local, Index::from(at % 4), value);
        }
        for _ in 0..2 {
            b.repeat("q", 4, false, |b, i| {
                b.repeat("q", 4, false, |b, j| {
                    let value = b.load(local, i.clone());
                    b.store(local, j, value);
                });
            });
        }
        let kernel = rename(&b.finish(), &C);
        let names: Vec<&str> = kernel.values.iter().filter_map(|v| v.name.as_deref()).collect();
        assert_eq!(names, ["time", "cell_2", "t_1", "t_2", "q_2"]);
        assert_eq!(kernel.locals[local].name, "cell");
        let vars: Vec<&str> = kernel.vars.iter().map(|var| var.name.as_str()).collect();
        assert_eq!(vars, ["batch", "cell_1", "t", "q", "q_1", "q", "q_1"]);
    }

    fn renamed(names: &[&str], words: &ReservedNames) -> Vec<String> {
        let mut b = Builder::new("f", Precision::F64, 1);
        for name in names {
            b.argument(name, Element::Real, false);
        }
        let kernel = rename(&b.finish(), words);
        kernel.arguments.iter().map(|argument| argument.name.clone()).collect()
    }

    #[test]
    fn reserved_names_of_c_get_an_underscore() {
        let names = ["u", "double", "double_", "float4", "sin", "v7", "u_12", "u1", "kernel", "u"];
        let names = [&names[..], &["M_PI", "v", "f", "uint", "FLT_MAX", "E", "gen", "i7"]].concat();
        let want =
            ["u", "double_", "double__", "float4_", "sin_", "v7_", "u_12", "u1", "kernel_", "u_"];
        let rest = ["a_M_PI", "v", "f_", "uint_", "a_FLT_MAX", "E", "gen", "i7"];
        assert_eq!(renamed(&names, &C), [&want[..], &rest].concat());
    }

    #[test]
    fn reserved_names_of_rust_get_an_underscore() {
        let names = ["u", "gen", "gen_", "double", "V", "v", "v1", "v1_0", "M_PI", "i7", "T", "u"];
        let want =
            ["u", "gen_", "gen__", "double", "V_", "v", "v1_", "v1_0_", "M_PI", "i7", "T", "u_"];
        assert_eq!(renamed(&names, &RUST), want);
    }

    #[test]
    fn every_word_of_the_vectors_is_taken() {
        for (isa, precision, lanes) in Isa::ALL.into_iter().flat_map(|isa| {
            [Precision::F64, Precision::F32]
                .into_iter()
                .flat_map(move |precision| [4, 8, 16].map(|lanes| (isa, precision, lanes)))
        }) {
            for word in words_of_vectors(isa, precision, lanes) {
                assert!(RUST.is_taken(&word) || word == "T", "{word} for {isa}");
            }
        }
    }
}
