//! Use of constant memory by files, and equality of tables in all memories.

use super::*;
use crate::abi::Role;
use crate::choose::{MeshFacts, PlanOverrides, choose_for_threads};
use crate::dialect::GeneratedSource;
use crate::dialect::c::Vocabulary;
use crate::dialect::cuda::CUDA;
use crate::dialect::opencl::OPENCL;
use crate::element::Cell;
use crate::generate::{elements, generate_for_threads};
use crate::kir::Value;
use crate::kir::build::Builder;
use crate::kir::interpret::{Array, Interpreter};
use crate::kir::verify::{Phase, verify};
use crate::pass::for_threads;
use crate::plan::{Plan, Strategy, Task};
use fem_dsl::point::PointForm;
use fem_dsl::source::Source;

const SCALAR: &str =
    "form f { field u: scalar; f0[u] = u^3 + sin(x[0]); f1[u] = (1 + u^2) * grad(u); }";
const VECTOR: &str = "form f { field u: vector; f1[u] = 2 * sym(grad(u)) + tr(grad(u)) * I; }";

fn form(text: &str, cell: Cell) -> PointForm {
    let (program, found) = fem_dsl::program::compile(&Source::new("f", text));
    let program = program.unwrap_or_else(|| panic!("{found:?}"));
    program.point_form("f", cell.dim()).expect("a form")
}

/// Returns the plans of all tasks.
fn plans(text: &str, cell: Cell, degree: usize, strategy: Strategy) -> Vec<Plan> {
    let form = form(text, cell);
    let elements = elements(&form, cell, degree, 1, None).expect("elements");
    let facts = MeshFacts { affine: !cell.is_tensor(), ..MeshFacts::default() };
    let overrides = PlanOverrides { strategy: Some(strategy), ..PlanOverrides::default() };
    let tasks = [Task::Residual, Task::Action, Task::Diagonal];
    choose_for_threads(&form, &elements, &facts, &tasks, Precision::F64, &overrides).expect("plans")
}

fn source(
    text: &str,
    cell: Cell,
    degree: usize,
    plans: &[Plan],
    words: &Vocabulary,
) -> GeneratedSource {
    let form = form(text, cell);
    let elements = elements(&form, cell, degree, 1, None).expect("elements");
    generate_for_threads(&form, &elements, plans, words).expect("a source")
}

/// Returns the bytes that a text declares as constants.
fn declared(source: &GeneratedSource, words: &Vocabulary) -> usize {
    let constants = source.text.lines().filter_map(|line| {
        let (scalar, rest) =
            line.trim_start().strip_prefix(words.constant)?.trim_start().split_once(' ')?;
        let (_, rest) = rest.split_once('[')?;
        let (count, _) = rest.split_once("] = {")?;
        let count: usize = count.parse().expect("a number of entries");
        Some(count * if scalar == "T" { 8 } else { 4 })
    });
    constants.sum()
}

/// Checks that the declared bytes of a file match its text, and fit.
fn check(source: &GeneratedSource, words: &Vocabulary, what: &str) -> (usize, usize) {
    let bytes: usize = source.kernels.iter().map(|abi| abi.constant_bytes).sum();
    assert_eq!(bytes, declared(source, words), "{what}");
    assert!(bytes <= CONSTANT_BYTES, "{what} has {bytes} bytes of constants");
    for abi in &source.kernels {
        let last = abi.arguments.last().filter(|argument| argument.role == Role::Tables);
        assert_eq!(last.map_or(0, |argument| argument.extent), abi.tables.len(), "{what}");
        let others = abi.arguments.iter().filter(|argument| argument.role == Role::Tables);
        assert_eq!(others.count(), usize::from(last.is_some()), "{what}");
    }
    (bytes, source.kernels.iter().map(|abi| 8 * abi.tables.len()).sum())
}

#[test]
fn large_tables_are_not_in_the_memory_of_constants() {
    let transposition = Strategy::ThreadTransposition { blocks: 1, batches: 1 };
    let lines = Strategy::ThreadPerLine { cells: 0 };
    let cases = [
        (SCALAR, Cell::Tetrahedron, 4, Strategy::CellPerLane, [true, true]),
        (VECTOR, Cell::Tetrahedron, 3, Strategy::CellPerLane, [true, true]),
        (SCALAR, Cell::Tetrahedron, 4, transposition, [false, true]),
        (VECTOR, Cell::Tetrahedron, 4, transposition, [false, true]),
        (SCALAR, Cell::Triangle, 4, Strategy::CellPerLane, [false, false]),
        (SCALAR, Cell::Hexahedron, 8, Strategy::CellPerLane, [true, true]),
        (SCALAR, Cell::Hexahedron, 8, Strategy::ThreadPerDof, [false, true]),
        (SCALAR, Cell::Hexahedron, 8, lines, [false, false]),
    ];
    let mut seen = 0;
    for (text, cell, degree, strategy, moved) in cases {
        let plans = plans(text, cell, degree, strategy);
        for (words, moved) in [&CUDA, &OPENCL].into_iter().zip(moved) {
            let what = format!("{cell} of degree {degree} by {strategy} in {}", words.language);
            let source = source(text, cell, degree, &plans, words);
            let (bytes, elsewhere) = check(&source, words, &what);
            assert_eq!(elsewhere > 0, moved, "{what}: {elsewhere} bytes are elsewhere");
            seen = seen.max(bytes + elsewhere);
        }
    }
    assert!(seen > 250_000, "at most {seen} bytes of tables");
}

#[test]
fn constants_of_many_kernels_stay_within_the_budget() {
    let all = plans(SCALAR, Cell::Triangle, 4, Strategy::CellPerLane);
    for words in [&CUDA, &OPENCL] {
        let one = source(SCALAR, Cell::Triangle, 4, &all, words);
        assert!(one.kernels.iter().all(|abi| abi.tables.is_empty()));
        let plans = [&all[..]; 4].concat();
        let four = source(SCALAR, Cell::Triangle, 4, &plans, words);
        let (once, _) = check(&one, words, "one");
        let (constants, elsewhere) = check(&four, words, "four");
        assert_eq!(constants + elsewhere, 4 * once, "nothing is lost");
        let full = constants + LARGE > CONSTANT_BYTES;
        assert!(elsewhere > 0 && full, "{constants} bytes are constants");
    }
}

/// out[7 i + j] = first[i] · third[2 i + 1] − second[j].
fn products(precision: Precision, spread: bool) -> Kernel {
    let mut b = Builder::new("f", precision, 1);
    let out = b.argument("out", Element::Real, true);
    let count = LARGE / precision.bytes() + 1;
    let reals = |scale: f64, count: usize| {
        Entries::Real((0..count).map(|i| (scale * (i as f64 + 0.3)).sin()).collect())
    };
    let first = b.table("first", reals(1.0, count));
    let second = b.table("second", reals(2.0, 7));
    let third = reals(3.0, 2 * count);
    let third = if spread { b.spread_table("third", third) } else { b.table("third", third) };
    let (i, j) = (b.open_loop("i"), b.open_loop("j"));
    let at = Index::from(i);
    let x = b.load_table(first, at.clone());
    let y = b.load_table(third, at.times(2).plus(1));
    let z = b.load_table(second, Index::from(j));
    let product = b.mul(x, y);
    let value = b.sub(product, z);
    b.store_lanes(out, &at.times(7) + &Index::from(j), value);
    b.close_loop(j, 7);
    b.close_loop(i, count);
    b.finish()
}

#[test]
fn tables_move_to_an_argument() {
    for (precision, spread) in
        [(Precision::F64, true), (Precision::F64, false), (Precision::F32, true)]
    {
        let count = LARGE / precision.bytes() + 1;
        let kernel = products(precision, spread);
        let run = |kernel: &Kernel, tables: &[f64]| {
            assert_eq!(verify(kernel, Phase::Lowered), Ok(()));
            let interpreter = Interpreter::new(kernel.clone()).expect("a kernel");
            let single: Vec<f32> = tables.iter().map(|&number| number as f32).collect();
            let (mut out, mut out_single) = (vec![0.0; 7 * count], vec![0.0_f32; 7 * count]);
            let mut arrays = match precision {
                Precision::F64 => vec![Array::from(&mut out[..]), Array::F64(tables)],
                Precision::F32 => vec![Array::from(&mut out_single[..]), Array::F32(&single)],
            };
            arrays.truncate(kernel.arguments.len());
            interpreter.run(0..1, &arrays).expect("no fault");
            drop(arrays);
            (out, out_single)
        };
        let before = run(&kernel, &[]);
        for others in [true, false] {
            let mut legal = [kernel.clone()];
            let placed = for_threads(&mut legal, others).expect("sound kernels");
            let kept = if spread && others { 0 } else { 2 * count };
            assert_eq!(placed[0].tables.len(), count + kept, "{precision:?}");
            assert_eq!(placed[0].bytes, 7 * precision.bytes());
            assert_eq!(run(&legal[0], &placed[0].tables), before, "{precision:?}");
        }
    }
}

#[test]
fn numbers_beyond_the_budget_are_literals() {
    let mut b = Builder::new("f", Precision::F64, 1);
    let out = b.argument("out", Element::Real, true);
    b.set_threads(32, 1);
    for i in 0..600_usize {
        let third = b.constant((i as f64 + 1.0) / 3.0);
        b.store_lanes(out, Index::from(i), third);
    }
    let mut kernels = [b.finish()];
    let placed = for_threads(&mut kernels, true).expect("sound kernels");
    // Every third one is short.
    assert_eq!(placed, [Constants { bytes: LARGE, tables: Vec::new() }]);
    assert_eq!(verify(&kernels[0], Phase::Lowered), Ok(()));
    let is_literal = |value: &&Value| matches!(value.op, Op::Constant(_));
    assert_eq!(kernels[0].values.iter().filter(is_literal).count(), 600 - LARGE / 8);
}
