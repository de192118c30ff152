//! `names`: what the form names in a kernel → names that the language of its text allows.
//!
//! A user may call a field `double`, `float4`, `gen` or `V`. A name of the form gets an underscore where the language, the
//! preamble or another part of the kernel already has it, and stands as it is anywhere else. So does a value whose
//! name from the form, with its number, is that of an array or a variable: a parameter may be called `cell`.

use crate::kir::{Kernel, LocalId, ValueId};
use std::collections::BTreeSet;

/// What names mean something in a language.
#[derive(Debug)]
pub(super) struct Words {
    /// Words of the language; functions that kernels call; types, variables and macros of their text.
    taken: &'static str,
    /// Types that have variants of several components, a number behind their name.
    types: &'static str,
    /// How names begin that belong to the compiler.
    prefixes: &'static [&'static str],
    /// Whether names of capital letters can be macros of headers.
    macros: bool,
}

/// C, C++, OpenCL and CUDA.
pub(super) const C: Words =
    Words { taken: TAKEN_IN_C, types: TYPES_OF_C, prefixes: &["__"], macros: true };

/// Rust 2024, with the functions on vectors.
pub(super) const RUST: Words =
    Words { taken: TAKEN_IN_RUST, types: "", prefixes: &[], macros: false };

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

    T U uint32 INLINE listed number_at group_of REGISTERS first end lane thread own writes batch number to from slot of mine INFINITY NAN MAXFLOAT NULL HUGE_VAL
    HUGE_VALF WEAKFORM_PREAMBLE EOF linux unix i386 vector pixel";

const TYPES_OF_C: &str =
    "char uchar short ushort int uint long ulong longlong ulonglong float double half bool quad";

const TAKEN_IN_RUST: &str = "
    as async await break const continue crate dyn else enum extern false fn for gen if impl in let loop
    match mod move mut pub ref return self Self static struct super trait true type unsafe use where while

    abstract become box do final macro override priv try typeof unsized virtual yield

    Some None Ok Err

    V M LANES scatter scatter_masked scatter_run scatter_lanes scatter_long gather_masked gather_run gather_long
    gather_lanes prefetch prefetch_indexed transpose columns_of columns_to

    run entry begin end first last batch active_lanes";

/// How the text of a language calls what has a number.
pub(super) struct Numbered<'n> {
    /// The names of variables, of tables and of arrays that the form has no part in.
    pub(super) fixed: BTreeSet<String>,
    /// The name of a private array.
    pub(super) local: &'n dyn Fn(&Kernel, LocalId) -> String,
    /// The name of a value.
    pub(super) value: &'n dyn Fn(&str, ValueId) -> String,
}

/// The kernel with the name of every argument, private array and value one that can stand in its text.
pub(super) fn rename(kernel: &Kernel, words: &Words, numbered: &Numbered<'_>) -> Kernel {
    let mut kernel = kernel.clone();
    let mut used = BTreeSet::from([kernel.name.clone()]);
    let ids: Vec<_> = kernel.arguments.ids().collect();
    for id in ids {
        let name = &mut kernel.arguments[id].name;
        if words.is_foreign(name) {
            name.insert_str(0, "a_");
        }
        while words.is_taken(name) || used.contains(name) || numbered.fixed.contains(name) {
            name.push('_');
        }
        used.insert(name.clone());
    }
    let mut taken = numbered.fixed.clone();
    let ids: Vec<_> = kernel.locals.ids().collect();
    for id in ids {
        if words.is_foreign(&kernel.locals[id].name) {
            kernel.locals[id].name.insert_str(0, "a_");
        }
        let clashes = |name: &String| words.is_word(name) || numbered.fixed.contains(name);
        while clashes(&(numbered.local)(&kernel, id)) {
            kernel.locals[id].name.push('_');
        }
        taken.insert((numbered.local)(&kernel, id));
    }
    let ids: Vec<_> = kernel.values.ids().collect();
    for id in ids {
        let Some(name) = &mut kernel.values[id].name else { continue };
        if words.is_foreign(name) {
            name.insert_str(0, "a_");
        }
        if taken.contains(&(numbered.value)(name, id)) {
            name.push('_');
        }
    }
    kernel
}

impl Words {
    /// Whether a name can belong to the compiler, or to a header.
    fn is_foreign(&self, name: &str) -> bool {
        let capitals = name.contains('_') && !name.contains(|c: char| c.is_ascii_lowercase());
        self.prefixes.iter().any(|prefix| name.starts_with(prefix)) || self.macros && capitals
    }

    /// Whether an underscore must follow the name of an argument.
    fn is_taken(&self, name: &str) -> bool {
        let stem = name.trim_end_matches(|c: char| c.is_ascii_digit());
        // `v7` is a value without a name, and `grad_u_7` an array or a value with one.
        let numbered = stem.len() < name.len() && (stem == "v" || stem.ends_with('_'));
        numbered || is_one(self.types, stem) || self.is_word(name)
    }

    fn is_word(&self, name: &str) -> bool {
        is_one(self.taken, name)
    }
}

fn is_one(words: &str, word: &str) -> bool {
    words.split_whitespace().any(|one| one == word)
}

#[cfg(test)]
mod tests {
    use super::{C, Numbered, RUST, Words, rename};
    use crate::dialect::rust::{Isa, words_of_vectors};
    use crate::kir::build::Builder;
    use crate::kir::{Element, Precision};
    use std::collections::BTreeSet;

    fn renamed(names: &[&str], words: &Words) -> Vec<String> {
        let mut b = Builder::new("f", Precision::F64, 1);
        for name in names {
            b.argument(name, Element::Real, false);
        }
        let fixed = BTreeSet::from(["i7".to_owned()]);
        let numbered =
            Numbered { fixed, local: &|_, _| String::new(), value: &|_, _| String::new() };
        let kernel = rename(&b.finish(), words, &numbered);
        kernel.arguments.iter().map(|argument| argument.name.clone()).collect()
    }

    #[test]
    fn names_that_mean_something_in_c_get_an_underscore() {
        let names = ["u", "double", "double_", "float4", "sin", "v7", "u_12", "u1", "kernel", "u"];
        let names = [&names[..], &["M_PI", "v", "f", "uint", "FLT_MAX", "E", "gen", "i7"]].concat();
        let want =
            ["u", "double_", "double__", "float4_", "sin_", "v7_", "u_12_", "u1", "kernel_", "u_"];
        let rest = ["a_M_PI", "v", "f_", "uint_", "a_FLT_MAX", "E", "gen", "i7_"];
        assert_eq!(renamed(&names, &C), [&want[..], &rest].concat());
    }

    #[test]
    fn names_that_mean_something_in_rust_get_an_underscore() {
        let names = ["u", "gen", "gen_", "double", "V", "v", "v1", "v1_0", "M_PI", "i7", "T", "u"];
        let want =
            ["u", "gen_", "gen__", "double", "V_", "v", "v1_", "v1_0_", "M_PI", "i7_", "T", "u_"];
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
