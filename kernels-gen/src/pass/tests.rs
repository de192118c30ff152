//! A broken statement after each pass, and who refuses it; the list of passes in the documentation.

mod texts;

use super::*;
use crate::aot;
use crate::dialect::cuda::CUDA;
use crate::dialect::opencl::OPENCL;
use crate::dialect::rust::Isa;
use crate::element::Cell;
use crate::generate::{elements, generate, generate_for_threads, interpret};
use crate::kir::{Index, Statement};
use crate::plan::{Geometry, Plan, PlanError, Target, Task};
use fem_dsl::source::Source;
use std::cell::Cell as Value;

thread_local! {
    /// The pass after which kernels of this thread are broken.
    static BROKEN: Value<Option<&'static str>> = const { Value::new(None) };
}

/// Stores beyond the end of a private array after this pass.
pub(super) fn plant(pass: &str, kernels: &mut [Kernel]) {
    if BROKEN.get() != Some(pass) {
        return;
    }
    for kernel in kernels {
        let value = kernel.values.ids().next().expect("a value");
        let array = kernel.locals.ids().next().expect("a private array");
        let beyond = Index::from(kernel.locals[array].length);
        kernel.body.push(Statement::StoreLocal(array, beyond, value));
    }
}

/// Returns whether a stage of the compiler rejects the broken kernel of a pass, and names the pass.
fn refused<T>(pass: &'static str, stage: impl FnOnce() -> Result<T, PlanError>) -> bool {
    BROKEN.set(Some(pass));
    let made = stage();
    BROKEN.set(None);
    match made {
        Ok(_) => false,
        Err(PlanError::Malformed(error)) => {
            assert!(error.violation.contains(&format!("`{pass}`")), "{error}");
            assert!(error.to_string().contains("bug in weakform"), "{error}");
            true
        }
        Err(error) => panic!("{pass}: {error}"),
    }
}

#[test]
fn every_generator_rejects_kernels_broken_by_a_pass() {
    let text = "form f { field u: scalar; f0[u] = u^3; f1[u] = (1 + u^2) * grad(u); }";
    let (program, _) = fem_dsl::program::compile(&Source::new("f", text));
    let form = program.expect("a program").point_form("f", 2).expect("a form");
    let elements = elements(&form, Cell::Quadrilateral, 2, 1, None).expect("elements");
    let plans = [Task::Residual, Task::Action].map(|task| {
        Plan::new(Target::Vectors, task, 4, crate::kir::Precision::F64, Geometry::Vertices)
    });
    let setting = aot::Setting { cell: Cell::Quadrilateral, degree: 2, order: 1, quadrature: None };
    let passes = PASSES.iter().map(|pass| (pass.name, pass.targets));
    for (pass, targets) in std::iter::once((LOWER, Targets::All)).chain(passes) {
        let compiled =
            Isa::ALL.map(|isa| refused(pass, || generate(&form, &elements, &plans, isa)));
        let words = [&CUDA, &OPENCL];
        let threads = words
            .map(|words| refused(pass, || generate_for_threads(&form, &elements, &plans, words)));
        let interpreted = refused(pass, || interpret(&form, &elements, &plans));
        let aot = refused(pass, || aot::kernels(&form, setting, Isa::Avx2));
        let vectors = targets != Targets::Threads;
        let devices = targets != Targets::Vectors;
        assert_eq!(compiled, [vectors; 3], "{pass}");
        assert_eq!(threads, [devices; 2], "{pass}");
        assert_eq!((interpreted, aot), (vectors && devices, vectors), "{pass}");
    }
}

#[test]
fn the_documentation_lists_the_passes() {
    let page = include_str!("../../../docs/design/kir.md");
    let rows: Vec<String> = PASSES.iter().map(Pass::to_string).collect();
    let listed: Vec<&str> = page.lines().filter(|line| line.starts_with("| `")).collect();
    for row in &rows {
        assert!(page.contains(row.as_str()), "docs/design/kir.md needs the row\n{row}");
    }
    let first = listed.iter().position(|line| *line == rows[0]).expect("the first pass");
    assert_eq!(listed[first..first + rows.len()], rows, "docs/design/kir.md lists them in order");
}
