//! `names`: the arguments of a kernel, whose names come from the form → names that C allows.
//!
//! A user may call a field `double`, `float4` or `sin`. What has a number behind its name (arrays,
//! values, variables) is no word of the language; an argument stands as it is, and gets an underscore where
//! the language, the preamble or another part of the kernel already has that name. So does a value whose
//! name from the form, with its number, is that of an array or a variable: a parameter may be called `cell`.

use super::statement::{local_name, shared_name, terms_name, unique, var_name};
use crate::kir::Kernel;
use fem_dsl::arena::Id as _;
use std::collections::BTreeSet;

/// Words of C, C++, OpenCL and CUDA; functions that kernels call; types, variables and macros of
/// their text.
const TAKEN: &str = "
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
    HUGE_VALF WEAKFORM_PREAMBLE";

/// Types that have variants of several components in OpenCL, and in CUDA.
const SCALARS: &str =
    "char uchar short ushort int uint long ulong longlong ulonglong float double half bool quad";

/// How names begin that belong to the compiler, or to macros of OpenCL.
const PREFIXES: &[&str] = &["__", "M_", "CL_", "CLK_"];

/// The kernel with the name of every argument and value one that can stand in its text.
pub(super) fn rename(kernel: &Kernel) -> Kernel {
    let taken = numbered(kernel);
    let mut kernel = kernel.clone();
    let values: Vec<_> = kernel.values.ids().collect();
    for id in values {
        let Some(name) = &mut kernel.values[id].name else { continue };
        if taken.contains(&unique(name, id.index())) {
            name.push('_');
        }
    }
    let mut used = BTreeSet::from([kernel.name.clone()]);
    let ids: Vec<_> = kernel.arguments.ids().collect();
    for id in ids {
        let name = &mut kernel.arguments[id].name;
        if PREFIXES.iter().any(|prefix| name.starts_with(prefix)) {
            name.insert_str(0, "a_");
        }
        while is_taken(name) || used.contains(name) {
            name.push('_');
        }
        used.insert(name.clone());
    }
    kernel
}

/// The names of arrays and variables.
fn numbered(kernel: &Kernel) -> BTreeSet<String> {
    let vars = kernel.vars.ids().map(|id| var_name(kernel, id)).flat_map(|name| {
        let of_batch = ["own", "writes"].map(|word| format!("{word}_{name}"));
        of_batch.into_iter().chain([name])
    });
    let locals = kernel.locals.ids().map(|id| local_name(kernel, id));
    let shared = kernel.shared.ids().map(|id| shared_name(kernel, id));
    let terms = kernel.terms.ids().map(|id| terms_name(kernel, id));
    vars.chain(locals).chain(shared).chain(terms).collect()
}

/// Whether an underscore must follow.
fn is_taken(name: &str) -> bool {
    let stem = name.trim_end_matches(|c: char| c.is_ascii_digit());
    // `v7` is a value without a name, and `grad_u_7` an array or a value with one.
    let numbered = stem.len() < name.len() && (stem == "v" || stem.ends_with('_'));
    numbered || is_one(SCALARS, stem) || is_one(TAKEN, name)
}

fn is_one(words: &str, word: &str) -> bool {
    words.split_whitespace().any(|one| one == word)
}

#[cfg(test)]
mod tests {
    use super::rename;
    use crate::kir::build::Builder;
    use crate::kir::{Element, Index, Precision};

    #[test]
    fn a_value_is_not_called_as_a_variable() {
        let mut b = Builder::new("f", Precision::F64, 1);
        let params = b.argument("params", Element::Real, false);
        b.set_threads(4, 1);
        let (cell, t) = (b.thread_var("cell", 4, 1), b.thread_var("t", 1, 4));
        assert!(cell < t);
        for (at, name) in ["time", "cell", "t", "t"].into_iter().enumerate() {
            let value = b.load_uniform(params, Index::from(at));
            b.name(value, name);
        }
        let kernel = rename(&b.finish());
        let names: Vec<&str> = kernel.values.iter().filter_map(|v| v.name.as_deref()).collect();
        assert_eq!(names, ["time", "cell_", "t_", "t"]);
    }

    #[test]
    fn names_that_mean_something_get_an_underscore() {
        let names = ["u", "double", "double_", "float4", "sin", "v7", "u_12", "u1", "kernel", "u"];
        let mut b = Builder::new("f", Precision::F64, 1);
        for name in names.into_iter().chain(["M_PI", "v", "f", "uint"]) {
            b.argument(name, Element::Real, false);
        }
        let renamed = rename(&b.finish());
        let renamed: Vec<&str> = renamed.arguments.iter().map(|a| a.name.as_str()).collect();
        let want =
            ["u", "double_", "double__", "float4_", "sin_", "v7_", "u_12_", "u1", "kernel_", "u_"];
        let want: Vec<&str> = want.into_iter().chain(["a_M_PI", "v", "f_", "uint_"]).collect();
        assert_eq!(renamed, want);
    }
}
