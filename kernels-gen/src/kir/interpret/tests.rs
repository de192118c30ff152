//! Each operation, each statement and each fault on kernels built by hand.

use super::*;
use crate::kir::build::Builder;
use crate::kir::{
    Binary, Cache, Comparison, Condition, Element, Entries, Index, Integer, LocalId, Op, Positions,
    Precision, Run, Statement, Unary, Value, ValueId, WeightedLines, Write,
};

const LANES: usize = 4;

fn builder(precision: Precision) -> Builder {
    Builder::new("test", precision, LANES)
}

fn run(b: Builder, batches: Range<usize>, arguments: &[Array<'_>]) -> Result<(), Fault> {
    Interpreter::new(b.finish()).expect("a well-formed kernel").run(batches, arguments)
}

/// Applies an expression of two loaded values to lanes.
fn apply(
    precision: Precision,
    a: [f64; LANES],
    c: [f64; LANES],
    f: impl Fn(&mut Builder, ValueId, ValueId) -> ValueId,
) -> [f64; LANES] {
    let mut b = builder(precision);
    let (x, y) = (b.argument("x", Element::Real, false), b.argument("y", Element::Real, false));
    let z = b.argument("z", Element::Real, true);
    let at = Index::from(b.batch());
    let (left, right) = (b.load_lanes(x, at.clone()), b.load_lanes(y, at.clone()));
    let value = f(&mut b, left, right);
    b.store_lanes(z, at, value);
    let single = |v: [f64; LANES]| v.map(|v| v as f32);
    match precision {
        Precision::F64 => {
            let mut z = [0.0; LANES];
            let arrays = &[Array::F64(&a), Array::F64(&c), Array::from(&mut z[..])];
            run(b, 0..1, arrays).expect("no fault");
            z
        }
        Precision::F32 => {
            let (a, c, mut z) = (single(a), single(c), [0.0f32; LANES]);
            let arrays = &[Array::F32(&a), Array::F32(&c), Array::from(&mut z[..])];
            run(b, 0..1, arrays).expect("no fault");
            z.map(f64::from)
        }
    }
}

const A: [f64; LANES] = [0.5, 2.0, 0.75, 1.0];
const C: [f64; LANES] = [3.0, 0.25, 0.75, -1.0];

#[test]
fn arithmetic_is_that_of_the_language() {
    let check = |f: &dyn Fn(&mut Builder, ValueId, ValueId) -> ValueId,
                 want: &dyn Fn(f64, f64) -> f64| {
        let got = apply(Precision::F64, A, C, f);
        for lane in 0..LANES {
            assert_eq!(got[lane].to_bits(), want(A[lane], C[lane]).to_bits(), "lane {lane}");
        }
    };
    check(&|b, x, y| b.add(x, y), &|x, y| x + y);
    check(&|b, x, y| b.sub(x, y), &|x, y| x - y);
    check(&|b, x, y| b.mul(x, y), &|x, y| x * y);
    check(&|b, x, y| b.binary(Binary::Div, x, y), &|x, y| x / y);
    check(&|b, x, y| b.binary(Binary::Pow, x, y), &libm::pow);
    check(&|b, x, y| b.binary(Binary::Atan2, x, y), &libm::atan2);
    check(&|b, x, y| b.binary(Binary::Min, x, y), &f64::min);
    check(&|b, x, y| b.binary(Binary::Max, x, y), &f64::max);
    check(&|b, x, y| b.fma(x, y, x), &|x, y| x.mul_add(y, x));
    check(&|b, x, y| b.fma_neg(x, y, x), &|x, y| (-x).mul_add(y, x));
    check(&|b, x, _| b.reciprocal(x), &|x, _| 1.0 / x);
    check(&|b, x, _| b.unary(Unary::Exp, x), &|x, _| libm::exp(x));
    check(&|b, x, _| b.unary(Unary::Sqrt, x), &|x, _| x.sqrt());
    check(&|b, _, y| b.unary(Unary::Sign, y), &|_, y| y.signum());
}

#[test]
fn truth_values_select() {
    let got = apply(Precision::F64, A, C, |b, x, y| {
        let less = b.compare(Comparison::Lt, x, y);
        let equal = b.compare(Comparison::Eq, x, y);
        let not = b.not(equal);
        let positive = {
            let zero = b.constant(0.0);
            b.compare(Comparison::Gt, y, zero)
        };
        let both = b.and(not, positive);
        let either = b.or(less, both);
        let (one, two) = (b.constant(1.0), b.constant(2.0));
        b.select(either, one, two)
    });
    assert_eq!(got, [1.0, 1.0, 2.0, 2.0]);
}

#[test]
fn singles_are_rounded_after_every_operation() {
    let a = [0.1, 1.0e-3, 7.3, 1.0e7];
    let c = [0.7, 3.1, 1.0 / 3.0, 0.1];
    let got = apply(Precision::F32, a, c, |b, x, y| {
        let sum = b.add(x, y);
        let product = b.mul(sum, y);
        let fused = b.fma(product, x, y);
        b.binary(Binary::Div, fused, x)
    });
    for lane in 0..LANES {
        let (x, y) = (a[lane] as f32, c[lane] as f32);
        let want = (((x + y) * y).mul_add(x, y)) / x;
        assert_eq!(got[lane], f64::from(want));
    }
}

/// y += map-scattered table-weighted sums of gathered x: loops, tables, private arrays, activity.
#[test]
fn a_small_operator_runs_over_batches() {
    let mut b = builder(Precision::F64);
    let x = b.argument("x", Element::Real, false);
    let y = b.argument("y", Element::Real, true);
    let map = b.argument("map", Element::U32, false);
    let active = b.argument("active", Element::U32, false);
    b.set_active(active);
    let local = b.local("u", 2);
    let table = b.table("B", Entries::Real(vec![2.0, 1.0, 1.0, 2.0]));
    let batch = Index::from(b.batch());
    b.repeat("i", 2, false, |b, i| {
        let value = b.gather(x, map, &batch.times(2) + &i, (1, 0), true);
        b.store(local, i, value);
    });
    b.repeat("i", 2, false, |b, i| {
        let mut sum = b.constant(0.0);
        for j in 0..2 {
            let weight = b.load_table(table, i.times(2).plus(j));
            let value = b.load(local, Index::from(j));
            sum = b.fma(weight, value, sum);
        }
        b.scatter(y, map, &batch.times(2) + &i, (1, 0), true, sum);
    });
    // Cells (n, n + 1) for n = 0, …, 5; node 3 is masked; two lanes of the second batch pad.
    let node = |n: u32| if n == 3 { u32::MAX } else { n };
    let cell = |c: usize| c.min(5) as u32;
    let map: Vec<u32> = (0..2)
        .flat_map(|batch| {
            (0..2).flat_map(move |i| (0..LANES).map(move |l| node(cell(batch * LANES + l) + i)))
        })
        .collect();
    let x: Vec<f64> = (0..7).map(f64::from).collect();
    let mut y = vec![0.0; 7];
    let arrays = &[Array::F64(&x), Array::from(&mut y[..]), Array::U32(&map), Array::U32(&[4, 2])];
    run(b, 0..2, arrays).expect("no fault");
    let masked = |n: usize| if n == 3 { 0.0 } else { x[n] };
    let mut want = vec![0.0; 7];
    for c in 0..6 {
        want[c] += 2.0 * masked(c) + masked(c + 1);
        want[c + 1] += masked(c) + 2.0 * masked(c + 1);
    }
    want[3] = 0.0;
    assert_eq!(y, want);
}

/// Returns a kernel that reads runs of three, and writes them back elsewhere.
fn copy_runs(write: Write) -> Builder {
    let mut b = builder(Precision::F64);
    let x = b.argument("x", Element::Real, false);
    let y = b.argument("y", Element::Real, true);
    let (from, to) =
        (b.argument("from", Element::U32, false), b.argument("to", Element::U32, false));
    let local = b.local("u", 4);
    let positions = b.table("positions", Entries::Position(vec![9, 3, 0, 1]));
    let at = Index::from(b.batch());
    let run = |map| Run {
        map,
        at: at.clone(),
        scale: 1,
        local,
        positions: Positions::Table(positions),
        first: 1,
        length: 3,
        masked: false,
        lines: None,
    };
    b.statement(Statement::GatherRun { source: x, run: run(from) });
    b.statement(Statement::Prefetch(x, at.plus(1000), Cache::Second));
    b.comment("and back");
    b.statement(Statement::ScatterRun { target: y, run: run(to), write });
    b
}

#[test]
fn runs_move_consecutive_elements() {
    let x: Vec<f64> = (0..12).map(f64::from).collect();
    let go = |to: [u32; LANES], write| {
        let mut y = vec![100.0; 12];
        let arrays =
            &[Array::F64(&x), Array::from(&mut y[..]), Array::U32(&[9, 3, 0, 6]), Array::U32(&to)];
        run(copy_runs(write), 0..1, arrays).map(|()| y)
    };
    let stored = go([0, 3, 6, 9], Write::Exclusive).expect("no fault");
    assert_eq!(stored, [9, 10, 11, 3, 4, 5, 0, 1, 2, 6, 7, 8].map(f64::from));
    let added = go([0, 0, 1, 9], Write::LaneSerial).expect("no fault");
    assert_eq!(added[..4], [112.0, 114.0, 117.0, 102.0]);
    let race = go([0, 3, 7, 9], Write::Exclusive);
    assert_eq!(race, Err(Fault::Race { array: "y".to_owned(), index: 9 }));
    let beyond = Fault::OutOfBounds { array: "y".to_owned(), index: 12, length: 12 };
    assert_eq!(go([0, 3, 6, 10], Write::LaneSerial), Err(beyond));
}

#[test]
fn positions_of_runs_are_read_batch_by_batch_and_masked_runs_move_nothing() {
    let mut b = builder(Precision::F64);
    let x = b.argument("x", Element::Real, false);
    let y = b.argument("y", Element::Real, true);
    let [from, to, turns] =
        ["from", "to", "turns"].map(|name| b.argument(name, Element::U32, false));
    let local = b.local("u", 3);
    let at = Index::from(b.batch());
    let (scale, first, length, masked) = (1, 0, 3, true);
    let table = Positions::Table(b.table("positions", Entries::Position(vec![0, 1, 2])));
    let gathered = Run {
        map: from,
        at: at.clone(),
        scale,
        local,
        positions: table,
        first,
        length,
        masked,
        lines: None,
    };
    b.statement(Statement::GatherRun { source: x, run: gathered.clone() });
    let positions = Positions::Row(turns, at.times(3));
    let added = Run { map: to, positions, ..gathered };
    b.statement(Statement::ScatterRun { target: y, run: added, write: Write::LaneSerial });
    let x: Vec<f64> = (0..24).map(f64::from).collect();
    let starts: Vec<u32> = (0..8).map(|cell| 3 * cell).collect();
    let to = [&[u32::MAX; LANES], &starts[LANES..]].concat();
    let mut y = [0.0; 24];
    let (turns, reals) = ([0, 1, 2, 2, 0, 1], Array::from(&mut y[..]));
    let arrays = &[Array::F64(&x), reals, Array::U32(&starts), Array::U32(&to), Array::U32(&turns)];
    run(b, 0..2, arrays).expect("no fault");
    assert_eq!(y[..12], [0.0; 12]);
    assert_eq!(y[12..15], [14.0, 12.0, 13.0]);
}

#[test]
fn lines_of_rotated_cells_are_summed_with_weights() {
    let mut b = builder(Precision::F64);
    let x = b.argument("x", Element::Real, false);
    let y = b.argument("y", Element::Real, true);
    let [cells, turns] = ["cells", "turns"].map(|name| b.argument(name, Element::U32, false));
    let (local, slope) = (b.local("face", 2), b.local("slope", 2));
    let at = Index::from(b.batch());
    let weights = b.table("weights", Entries::Real(vec![1.0, 0.5, -1.0, 1.0]));
    let lines = WeightedLines { n: 2, components: 1, weights, others: vec![slope] };
    let cell = Run {
        map: cells,
        at: at.clone(),
        scale: 1,
        local,
        positions: Positions::Row(turns, at.times(4)),
        first: 0,
        length: 4,
        masked: false,
        lines: Some(lines),
    };
    b.statement(Statement::GatherRun { source: x, run: cell.clone() });
    b.statement(Statement::ScatterRun { target: y, run: cell, write: Write::LaneSerial });
    let x: Vec<f64> = (0..16).map(f64::from).collect();
    let starts: Vec<u32> = (0..4).map(|cell| 4 * cell).collect();
    let mut y = [0.0; 16];
    // The second axis, backwards, comes first.
    let arrays =
        &[Array::F64(&x), Array::from(&mut y[..]), Array::U32(&starts), Array::U32(&[1, 3, 0, 2])];
    run(b, 0..1, arrays).expect("no fault");
    // Of the second cell: lines [6, 4] and [7, 5] have 6 + 4 / 2 and 7 + 5 / 2, and slopes of −2.
    assert_eq!(y[4..8], [8.0 / 2.0 - 2.0, 9.5 / 2.0 - 2.0, 8.0 + 2.0, 9.5 + 2.0]);
}

fn local_use(write_first: bool) -> Result<(), Fault> {
    let mut b = builder(Precision::F64);
    let y = b.argument("y", Element::Real, true);
    let local: LocalId = b.local("u", 2);
    let batch = Index::from(b.batch());
    let one = b.constant(1.0);
    b.store(local, Index::from(0), one);
    if write_first {
        b.store(local, Index::from(1), one);
    }
    b.repeat("i", 2, false, |b, i| {
        let value = b.load(local, i);
        b.store_lanes(y, batch.clone(), value);
    });
    run(b, 0..1, &[Array::from(&mut [0.0f64; LANES][..])])
}

#[test]
fn unwritten_private_entries_are_reported() {
    assert_eq!(local_use(true), Ok(()));
    assert_eq!(local_use(false), Err(Fault::Unwritten { array: "u".to_owned(), index: 1 }));
}

#[test]
fn private_entries_do_not_outlive_their_batch() {
    let mut b = builder(Precision::F64);
    let y = b.argument("y", Element::Real, true);
    let when = b.argument("when", Element::U32, false);
    let x = b.argument("x", Element::Real, false);
    let local = b.local("u", 1);
    let positions = b.table("p", Entries::Position(vec![0]));
    // No statement is conditional, so the second batch is made to differ by hand.
    let batch = Index::from(b.batch());
    let value = b.load(local, Index::from(0));
    b.store_lanes(y, batch.clone(), value);
    let positions = Positions::Table(positions);
    let (first, length, masked) = (0, 1, false);
    let run = Run {
        map: when,
        at: batch,
        scale: 1,
        local,
        positions,
        first,
        length,
        masked,
        lines: None,
    };
    b.statement(Statement::GatherRun { source: x, run });
    let interpreter = Interpreter::new(b.finish()).expect("a well-formed kernel");
    let mut y = [0.0; 2 * LANES];
    let arrays = &[Array::from(&mut y[..]), Array::U32(&[0; 2 * LANES]), Array::F64(&[5.0])];
    let fault = Fault::Unwritten { array: "u".to_owned(), index: 0 };
    assert_eq!(interpreter.run(0..2, arrays), Err(fault));
}

#[test]
fn wrong_arguments_are_refused() {
    let kernel = || {
        let mut b = builder(Precision::F64);
        let y = b.argument("y", Element::Real, true);
        let value = b.constant(1.0);
        b.store_lanes(y, Index::from(b.batch()), value);
        b
    };
    let y = || "y".to_owned();
    let go = |arrays: &[Array<'_>], batches| run(kernel(), batches, arrays);
    assert_eq!(go(&[], 0..1), Err(Fault::WrongCount { expected: 1, found: 0 }));
    assert_eq!(go(&[Array::F64(&[0.0; 4])], 0..1), Err(Fault::ReadOnly { array: y() }));
    let wrong = Fault::WrongElement { array: y(), expected: "f64", found: "f32" };
    assert_eq!(go(&[Array::from(&mut [0.0f32; 4][..])], 0..1), Err(wrong));
    let short = Fault::OutOfBounds { array: y(), index: 4, length: 4 };
    assert_eq!(go(&[Array::from(&mut [0.0f64; 4][..])], 0..2), Err(short));
    assert_eq!(go(&[Array::from(&mut [0.0f64; 8][..])], 0..2), Ok(()));
}

#[test]
fn uniform_values_reach_all_lanes() {
    let mut b = builder(Precision::F64);
    let (p, y) = (b.argument("p", Element::Real, false), b.argument("y", Element::Real, true));
    let value = b.load_uniform(p, Index::from(1));
    b.store_lanes(y, Index::from(b.batch()), value);
    // As after `legalise`.
    let mut kernel = b.finish();
    let wide = kernel.values.push(Value { op: Op::Broadcast(value), varying: true, name: None });
    let store = Statement::StoreLanes(y, Index::from(kernel.batch()), wide);
    kernel.body = vec![Statement::Let(value), Statement::Let(wide), store];
    verify(&kernel, Phase::Legal).expect("a legal kernel");
    let mut y = [0.0; LANES];
    let arrays = &[Array::F64(&[1.0, 2.5]), Array::from(&mut y[..])];
    Interpreter::new(kernel).expect("a well-formed kernel").run(0..1, arrays).expect("no fault");
    assert_eq!(y, [2.5; LANES]);
}

/// Returns two threads per batch: each writes its value and reads that of the other.
fn exchange(barrier: bool) -> Result<Vec<f64>, Fault> {
    let mut b = Builder::new("exchange", Precision::F64, 1);
    b.set_threads(6, 3);
    let own = b.thread_var("own", 1, 2);
    let cell = b.thread_var("cell", 2, 3);
    let shared = b.shared("pair", 6);
    let x = b.argument("x", Element::Real, false);
    let y = b.argument("y", Element::Real, true);
    let map = b.argument("map", Element::U32, false);
    let batch = Index::from(b.batch());
    let pair = Index::from(cell).times(2);
    let place = &batch.times(2) + &Index::from(own);
    let value = b.load_lanes(x, place.clone());
    b.store_shared(shared, &pair + &Index::from(own), value);
    if barrier {
        b.barrier();
    }
    // 1 − own.
    let other = Index { constant: 1, terms: vec![(own, -1)] };
    let taken = b.load_shared(shared, &pair + &other);
    b.open_when();
    let doubled = b.add(taken, taken);
    b.scatter(y, map, place.clone(), (1, 0), false, doubled);
    b.close_when(vec![Condition::Below(own, 1)]);
    b.scatter(y, map, place, (1, 0), false, taken);
    let interpreter = Interpreter::new(b.finish()).expect("a sound kernel");
    // Five batches: the last group lacks one.
    let x: Vec<f64> = (1..=10).map(f64::from).collect();
    let mut y = vec![0.0; 10];
    let map: Vec<u32> = (0..10).collect();
    interpreter.run(0..5, &[Array::F64(&x), Array::from(&mut y[..]), Array::U32(&map)])?;
    Ok(y)
}

#[test]
fn writes_before_a_barrier_are_visible_to_all_threads() {
    let swapped = exchange(true).expect("no fault");
    assert_eq!(swapped, [6.0, 1.0, 12.0, 3.0, 18.0, 5.0, 24.0, 7.0, 30.0, 9.0]);
}

#[test]
fn a_missing_barrier_is_a_race_or_an_unwritten_entry() {
    let fault = exchange(false).expect_err("a fault");
    let array = "pair".to_owned();
    let unwritten = Fault::Unwritten { array: array.clone(), index: 1 };
    assert!(fault == unwritten || fault == Fault::Race { array, index: 1 }, "{fault}");
}

#[test]
fn a_write_and_a_read_by_two_threads_in_one_phase_are_a_race() {
    let mut b = Builder::new("overwrite", Precision::F64, 1);
    b.set_threads(2, 1);
    let own = b.thread_var("own", 1, 2);
    let shared = b.shared("pair", 2);
    let x = b.argument("x", Element::Real, false);
    let value = b.load_lanes(x, Index::from(own));
    b.store_shared(shared, Index::from(own), value);
    b.barrier();
    let other = b.load_shared(shared, Index { constant: 1, terms: vec![(own, -1)] });
    b.store_shared(shared, Index::from(own), other);
    let interpreter = Interpreter::new(b.finish()).expect("a sound kernel");
    let fault = interpreter.run(0..1, &[Array::F64(&[1.0, 2.0])]).expect_err("a race");
    assert_eq!(fault, Fault::Race { array: "pair".to_owned(), index: 0 });
}

/// Returns two batches of two cells in sequence, distributed over two threads: each reads the other's value, and only
/// cells that write add.
fn series(barriers: usize) -> Result<Vec<f64>, Fault> {
    let mut b = Builder::new("series", Precision::F64, 2);
    b.set_threads(2, 1);
    b.set_series(2);
    b.set_cells(2);
    let own = b.thread_var("own", 1, 2);
    let shared = b.shared("pair", 2);
    let x = b.argument("x", Element::Real, false);
    let y = b.argument("y", Element::Real, true);
    let map = b.argument("map", Element::U32, false);
    let active = b.argument("active", Element::U32, false);
    b.set_active(active);
    b.at_cell(Index::from(own));
    let value = b.load_lanes(x, Index::from(b.batch()));
    b.store_shared(shared, Index::from(own), value);
    b.barrier();
    let other = Index { constant: 1, terms: vec![(own, -1)] };
    let taken = b.load_shared(shared, other);
    b.open_when();
    b.scatter(y, map, Index::from(b.batch()), (1, 0), false, taken);
    b.close_when_written();
    (1..barriers).for_each(|_| b.barrier());
    let interpreter = Interpreter::new(b.finish()).expect("a sound kernel");
    // Three batches: the second group has one, whose last cell does not write.
    let x: Vec<f64> = (1..=6).map(f64::from).collect();
    let mut y = vec![0.0; 6];
    let map: Vec<u32> = (0..6).collect();
    let arrays =
        [Array::F64(&x), Array::from(&mut y[..]), Array::U32(&map), Array::U32(&[2, 2, 1])];
    interpreter.run(0..3, &arrays)?;
    Ok(y)
}

#[test]
fn a_group_does_batches_one_after_another() {
    assert_eq!(series(2).expect("no fault"), [2.0, 1.0, 4.0, 3.0, 6.0, 0.0]);
}

#[test]
fn a_batch_that_overtakes_the_one_before_is_a_race() {
    let fault = series(1).expect_err("a race");
    assert_eq!(fault, Fault::Race { array: "pair".to_owned(), index: 0 });
}

/// Lanes that double the values of their slots and sum by slots, with or without the barriers.
fn slots(barriers: [bool; 2]) -> Builder {
    let mut b = builder(Precision::F64);
    let (x, y) = (b.argument("x", Element::Real, false), b.argument("y", Element::Real, true));
    let (map, terms) =
        (b.argument("nodes", Element::U32, false), b.argument("terms", Element::U32, false));
    let active = b.argument("active", Element::U32, false);
    b.set_active(active);
    let (values, sums) = (b.shared("values", 3), b.shared("sums", 6));
    let batch = Index::from(b.batch());
    let of = |b: &mut Builder, slot: &Index| {
        b.integer("of", Integer::Element(map, &batch.times(3) + slot))
    };
    let term = b.load_index("term", terms, &batch);
    b.distribute(3, &mut |b, slot, mine| {
        let of = of(b, slot);
        b.open_when();
        let value = b.load_at(x, of, (1, 0), true);
        b.store_shared(values, slot.clone(), value);
        b.close_when(mine);
    });
    let zero = b.constant(0.0);
    b.distribute(6, &mut |b, entry, mine| {
        b.open_when();
        b.store_shared(sums, entry.clone(), zero);
        b.close_when(mine);
    });
    if barriers[0] {
        b.barrier();
    }
    let slot = b.integer("slot", Integer::Rest(term, 3));
    let value = b.load_shared(values, Index::from(slot));
    let value = b.add(value, value);
    b.open_when();
    b.store_shared(sums, Index::from(term), value);
    b.close_when(vec![Condition::Active]);
    if barriers[1] {
        b.barrier();
    }
    b.distribute(3, &mut |b, slot, mut conditions| {
        let var = of(b, slot);
        conditions.push(Condition::Something(var));
        b.open_when();
        let both = [0, 3].map(|term| b.load_shared(sums, slot.plus(term)));
        let (value, write) = (b.add(both[0], both[1]), Write::LaneSerial);
        b.statement(Statement::StoreAt { target: y, var, scale: 1, offset: 0, value, write });
        b.close_when(conditions);
    });
    b
}

#[test]
fn lanes_sum_by_slots() {
    let x = [10.0, 20.0, 30.0, 40.0];
    let go = |barriers, terms: [u32; LANES], active: u32| {
        let mut y = [1.0; 4];
        // The last slot is empty.
        let arrays = &[
            Array::F64(&x),
            Array::from(&mut y[..]),
            Array::U32(&[3, 1, u32::MAX]),
            Array::U32(&terms),
            Array::U32(&[active]),
        ];
        run(slots(barriers), 0..1, arrays).map(|()| y)
    };
    let both = [true, true];
    // Two terms of slot 0, one of slot 1; an empty slot reads 0. Padding lanes write nothing.
    assert_eq!(go(both, [0, 3, 1, 2], 4), Ok([1.0, 41.0, 1.0, 161.0]));
    assert_eq!(go(both, [0, 3, 1, 1], 3), Ok([1.0, 41.0, 1.0, 161.0]));
    // Two lanes in one position, and a missing barrier.
    let race = |array: &str, index| Err(Fault::Race { array: array.to_owned(), index });
    assert_eq!(go(both, [0, 1, 2, 1], 4), race("sums", 1));
    assert_eq!(go([false, true], [3, 0, 1, 2], 4), race("values", 0));
    assert_eq!(go([true, false], [3, 0, 1, 2], 4), race("sums", 0));
    let beyond = Fault::OutOfBounds { array: "sums".to_owned(), index: 6, length: 6 };
    assert_eq!(go(both, [0, 6, 1, 2], 4), Err(beyond));
}

/// Lanes that each load and store a mask: lanes whose mask has bit 1 and is even double their value.
fn masks(entry: usize) -> Builder {
    let mut b = builder(Precision::F64);
    let (x, y) = (b.argument("x", Element::Real, false), b.argument("y", Element::Real, true));
    let masks = b.argument("masks", Element::U32, false);
    let (kept, own) = (b.integers("kept", 2), b.local("own", 1));
    let batch = Index::from(b.batch());
    let mask = b.load_index("mask", masks, &batch);
    b.statement(Statement::StoreInteger(kept, Index::from(1), mask));
    let value = b.load_lanes(x, batch.clone());
    b.store(own, Index::default(), value);
    b.open_when();
    let again = b.integer("again", Integer::Entry(kept, Index::from(entry)));
    let rest = b.integer("rest", Integer::Rest(again, 2));
    b.open_when();
    let double = b.add(value, value);
    b.store(own, Index::default(), double);
    b.close_when(vec![Condition::Equals(rest, 0)]);
    b.close_when(vec![Condition::Something(mask), Condition::Bit(mask, 1)]);
    let last = b.load(own, Index::default());
    b.store_lanes(y, batch, last);
    b
}

#[test]
fn masks_decide_for_lanes() {
    let go = |entry| {
        let mut y = [0.0; LANES];
        let masks = [6, 3, u32::MAX, 4];
        let x = Array::F64(&[1.0, 2.0, 3.0, 4.0]);
        run(self::masks(entry), 0..1, &[x, Array::from(&mut y[..]), Array::U32(&masks)]).map(|()| y)
    };
    assert_eq!(go(1), Ok([2.0, 2.0, 3.0, 4.0]));
    assert_eq!(go(0), Err(Fault::Unwritten { array: "kept".to_owned(), index: 0 }));
}
