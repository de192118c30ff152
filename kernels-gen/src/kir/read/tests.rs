//! Texts that are read back, and texts that are refused.

mod corpus;

use super::{DEEPEST, read, read_all};
use crate::kir::build::Builder;
use crate::kir::verify::{Phase, verify};
use crate::kir::{
    ArgumentId, Cache, Condition, Element, Entries, Index, IndirectIndex, Integer, IntegersId,
    Kernel, LocalId, Op, Positions, Precision, Rule, Run, Statement, TableId, Thread, Unary, Value,
    ValueId, Var, VarId, WeightedLines, Write,
};
use crate::plan::{Strategy, Task};
use std::collections::BTreeSet;

/// Reads a kernel's text back: the same kernel, and the same text.
fn round_trip(kernel: &Kernel) {
    let text = kernel.to_string();
    match read(&text) {
        Ok(back) => {
            assert_eq!(back.to_string(), text, "{}", kernel.name);
            assert!(back == *kernel, "{} differs:\n{text}", kernel.name);
        }
        Err(error) => panic!("{error}\n{text}"),
    }
}

#[test]
fn kernels_of_all_plans_are_read_back() {
    let (mut plans, mut kernels, mut seen) = (0, 0, BTreeSet::new());
    corpus::for_each(|case| {
        plans += 1;
        kernels += case.kernels.len();
        case.kernels.iter().for_each(round_trip);
        let strategy = case.plan.strategy.to_string();
        seen.insert((case.plan.task, strategy, case.kernels[0].precision));
    });
    let precisions = [Precision::F64, Precision::F32];
    for (task, precision) in Task::ALL.into_iter().flat_map(|task| precisions.map(|p| (task, p))) {
        let by = |strategy: Strategy| seen.contains(&(task, strategy.to_string(), precision));
        assert!(by(Strategy::CellPerLane), "{task:?} in {precision:?}");
        if !task.is_of_matrices() && task != Task::Flux {
            let transposition = Strategy::ThreadTransposition { blocks: 1, batches: 1 };
            for strategy in
                [Strategy::ThreadPerDof, Strategy::ThreadPerLine { cells: 1 }, transposition]
            {
                assert!(by(strategy), "{task:?} by {strategy} in {precision:?}");
            }
        }
    }
    assert!(plans > 400 && kernels > 800, "{plans} plans, {kernels} kernels");
}

/// Statements that the builder has no function for: reads of `x`, and writes to `y` and `own`.
fn other_statements(
    (x, y, map, own): (ArgumentId, ArgumentId, ArgumentId, IntegersId),
    (local, positions, reals): (LocalId, TableId, TableId),
    (slot, border): (VarId, VarId),
    at: &Index,
    value: ValueId,
) -> Vec<Statement> {
    let positions = Positions::Table(positions);
    let run = Run {
        map,
        at: at.clone(),
        scale: 3,
        local,
        positions,
        first: 1,
        length: 2,
        masked: false,
        lines: None,
    };
    let turned = Positions::Row(map, at.clone());
    let turned = Run { positions: turned, masked: true, ..run.clone() };
    let lines = WeightedLines { n: 2, components: 1, weights: reals, others: vec![local] };
    let summed = Run { first: 0, length: 4, lines: Some(lines), ..turned.clone() };
    let to = IndirectIndex { map, at: at.clone(), scale: 1, offset: 0, masked: false };
    vec![
        Statement::GatherRun { source: x, run: run.clone() },
        Statement::GatherRun { source: x, run: turned.clone() },
        Statement::ScatterRun { target: y, run: turned, write: Write::LaneSerial },
        Statement::GatherRun { source: x, run: summed.clone() },
        Statement::ScatterRun { target: y, run: summed, write: Write::Exclusive },
        Statement::ScatterRun { target: y, run, write: Write::Alone },
        Statement::Scatter { target: y, to, value, write: Write::Inside(border) },
        Statement::StoreAt {
            target: y,
            var: slot,
            scale: 2,
            offset: 1,
            value,
            write: Write::Exclusive,
        },
        Statement::StoreAt {
            target: y,
            var: slot,
            scale: 2,
            offset: 1,
            value,
            write: Write::Atomic,
        },
        Statement::StoreInteger(own, Index::from(1), slot),
        Statement::Recompute(border),
        Statement::Fence,
        Statement::Stage,
        Statement::Prefetch(x, at.clone(), Cache::First),
        Statement::Prefetch(x, at.clone(), Cache::Second),
        Statement::PrefetchIndexed { array: x, map, entries: 4, entry: 2, scale: 3, batches: 8 },
        Statement::When { conditions: Vec::new(), body: Vec::new() },
    ]
}

/// A kernel that has each kind of statement, operation, condition, variable and array, and names that need quotes. It is
/// not one that `verify` accepts.
fn everything() -> Kernel {
    let mut b = Builder::new("every thing", Precision::F32, 4);
    let x = b.argument("x", Element::Real, false);
    let y = b.argument("y \"quoted\"\n", Element::Real, true);
    let map = b.argument("map", Element::U32, false);
    let active = b.argument("active", Element::U32, false);
    b.set_active(active);
    let local = b.local("l", 6);
    let shared = b.shared("s", 3);
    let own = b.integers("own", 2);
    let reals = b.spread_table("t", Entries::Real((0..19).map(|i| f64::from(i).sqrt()).collect()));
    b.table("empty", Entries::Real(Vec::new()));
    let positions = b.table("p", Entries::Position(vec![5, 0, 3]));
    let member = b.member();
    let digit = b.thread_var("for", 2, 3);
    let other = b.thread_var("active", 6, 4);
    let border = b.border_var("border", [digit, other], 3);
    b.batch_var("cell", 8);
    b.listed_var("listed", vec![0, 2]);
    b.set_threads(2, 5);
    b.set_series(7);
    b.comment("plain");
    b.comment("\"two\nlines\" \u{1}");
    b.comment("");
    b.comment("  spaces ");
    let at = &Index::from(b.batch()).times(12) + &Index::from(member);
    let a = b.load_uniform(x, at.plus(3));
    let c = b.load_lanes(x, at.clone());
    let flag = b.flag(map, at.clone(), 31);
    let g = b.gather(x, map, at.clone(), (3, 1), true);
    let h = b.gather(x, map, at.clone(), (1, 0), false);
    let slot = b.integer("slot", Integer::Element(map, at.clone()));
    let entry = b.integer("entry", Integer::Entry(own, Index::from(1)));
    let rest = b.integer("rest", Integer::Rest(member, 3));
    let e = b.load_at(x, slot, (2, 5), true);
    let f = b.load_at(x, entry, (1, 0), false);
    let i = b.load(local, Index { constant: -2, terms: vec![(member, -3), (rest, 1)] });
    let j = b.load_shared(shared, Index::from(rest));
    let var = b.open_loop("q");
    let k = b.load_table(reals, Index::from(var));
    b.close_loop(var, 19);
    b.open_when();
    b.barrier();
    b.close_when(vec![
        Condition::Below(digit, 2),
        Condition::Something(slot),
        Condition::Equals(entry, u32::MAX),
        Condition::Bit(slot, 3),
        Condition::NoBit(slot, 4),
        Condition::Meet(slot, entry),
        Condition::Active,
        Condition::ActiveCell(at.clone()),
        Condition::ActiveCell(Index::from(other)),
        Condition::ActiveCell(Index::from(7)),
    ]);
    let numbers = [0.1, -1e300, 5e-324, 3.0, f64::MAX].map(|number| b.constant(number));
    let mut last = numbers.into_iter().fold(a, |sum, number| b.fma(sum, number, c));
    for function in [Unary::Sin, Unary::Sign, Unary::Neg] {
        last = b.unary(function, last);
    }
    let truth = b.compare(fem_dsl::point::Comparison::Le, last, flag);
    let (not, or) = (b.not(truth), b.or(truth, truth));
    let both = b.and(not, or);
    let value = b.select(both, g, h);
    let value = b.name(value, "  value // \"of\"");
    let quotient = b.quotient(e, f);
    let inverse = b.reciprocal(i);
    let value = [quotient, inverse, j, k].into_iter().fold(value, |sum, x| b.fma_neg(sum, x, c));
    b.store(local, Index::from(0), numbers[3]);
    b.store_shared(shared, Index::from(2), value);
    b.store_lanes(y, at.clone(), value);
    b.scatter(y, map, at.clone(), (3, 2), true, value);
    let arrays = (x, y, map, own);
    for statement in other_statements(arrays, (local, positions, reals), (slot, border), &at, value)
    {
        b.statement(statement);
    }
    for values in [vec![], vec![(0, [value, g])], vec![(0, [value, g]), (4, [numbers[0], h])]] {
        let at = [at.clone(), Index::from(5)];
        b.statement(Statement::ScatterEdge { target: y, map, at, scale: 2, values });
    }
    let mut kernel = b.finish();
    kernel.block = 9;
    let rule = Rule::Integer(Integer::Rest(member, 4));
    kernel.vars.push(Var { name: "never set".to_owned(), rule });
    for number in [0.1, -0.0, f64::INFINITY, f64::NEG_INFINITY] {
        let constant = Value { op: Op::Constant(number), varying: false, name: None };
        let constant = kernel.values.push(constant);
        kernel.body.push(Statement::StoreLocal(local, Index::from(0), constant));
    }
    let broadcast = Value { op: Op::Broadcast(a), varying: true, name: None };
    let broadcast = kernel.values.push(broadcast);
    kernel.body.push(Statement::Let(broadcast));
    kernel.renumber();
    kernel
}

#[test]
fn every_part_of_a_kernel_is_read_back() {
    let kernel = everything();
    round_trip(&kernel);
    let text = kernel.to_string();
    for part in ["0x7ff0000000000000", "0xfff0000000000000", "= -0\n", "5e-324", "\"never set\""] {
        assert!(text.contains(part), "{part}: {text}");
    }
    let listed = kernel.vars.iter().filter_map(Var::thread);
    assert!(listed.filter(|thread| matches!(thread, Thread::Listed(_))).count() == 1);
    // Bit by bit.
    let bits = |kernel: &Kernel| -> Vec<u64> {
        let numbers = kernel.values.iter().filter_map(|value| match value.op {
            Op::Constant(number) => Some(number.to_bits()),
            _ => None,
        });
        numbers.collect()
    };
    assert_eq!(bits(&read(&text).expect("a kernel")), bits(&kernel));
}

#[test]
fn kernels_stand_one_after_another() {
    let (one, text) = (everything(), small());
    let both = format!("{one}\n{text}\n");
    let kernels = read_all(&both).expect("two kernels");
    assert_eq!(kernels, [one, read(&text).expect("a kernel")]);
    let error = read(&both).expect_err("two kernels");
    assert!(error.found.contains("kernel") && error.help.contains("read_all"), "{error}");
    assert_eq!(read_all(""), Ok(Vec::new()));
}

/// A kernel that `verify` accepts.
fn small() -> String {
    "\
kernel axpy : F64 x 4
  in arg0 x: Real
  inout arg1 y: Real
  local0 sum[3]
  table0 weights: real[2] = 0.5, 0.25
  counted batch.0 i.1
  for i.1 < 2
    %0.0 = arg0[2*batch.0 + i.1, lane]
    %0.1 uniform = table0[i.1]
    %0.2 = Fma 2 %0.0 %0.1  // sum
    arg1[2*batch.0 + i.1, lane] = %0.2
"
    .to_owned()
}

#[test]
fn a_kernel_is_written_by_hand() {
    let kernel = read(&small()).expect("a kernel");
    assert_eq!(verify(&kernel, Phase::Lowered), Ok(()));
    assert_eq!(kernel.to_string(), small());
}

#[test]
fn mistakes_are_shown_with_their_place_and_a_remedy() {
    let cases = [
        ("kernel axpy : F64", "kernel axpy : F16", (1, 15), "`F64` or `F32`", "`F16`"),
        ("F64 x 4", "F64 x 4, 3 turns", (1, 24), "`N times`", "`3`"),
        ("arg1 y", "arg2 y", (3, 9), "`arg1`", "`arg2`"),
        ("x: Real", "x: Double", (2, 14), "`Real` or `U32`", "`Double`"),
        ("sum[3]", "sum[3", (4, 15), "`]`", "the end of the line"),
        ("real[2]", "real[3]", (5, 38), "`,`", "the end of the line"),
        ("= 0.5", "= 1e999", (5, 29), "double precision", "`1e999,`"),
        ("counted batch.0 i.1", "counted batch.0", (7, 7), "declared", "`i.1`"),
        ("counted batch.0 i.1", "counted batch.0 i.1 j.3", (1, 1), "variable 2", "none"),
        ("  for i.1 < 2", "   for i.1 < 2", (7, 4), "even number", "`for`"),
        ("  for i.1 < 2\n", "", (7, 5), "indented by 2 spaces", "`%0.0`"),
        ("i.1 < 2", "i.1 < -2", (7, 13), "not negative", "`-2`"),
        ("0.0 = arg0", "0.0 = arg7", (8, 12), "an `arg` that is declared", "`arg7[2*batch.0`"),
        ("= arg0[2*batch.0", "= arg0[2*batch", (8, 19), "such as `q.3`", "`batch`"),
        ("+ i.1, lane]\n", "+ j.1, lane]\n", (8, 29), "`i.1`", "`j.1,`"),
        ("%0.1 uniform", "%0.0 uniform", (9, 5), "`%0.1`", "`%0.0`"),
        ("%0.1 uniform", "%1 uniform", (9, 5), "such as `%3.7`", "`%1`"),
        ("Fma 2 %0.0 %0.1", "Fma 2 %0.0", (10, 23), "such as `%3.7`", "`//`"),
        ("Fma 2 %0.0 %0.1", "Fma 2 %0.0 %0.2", (10, 23), "a value that is defined", "`%0.2`"),
        ("Fma 2", "Fma two", (10, 16), "such as `%3.7`", "`two`"),
        ("Fma 2", "Fms 2", (10, 12), "an operation", "`Fms`"),
        ("lane] = %0.2", "lane] += %0.2", (11, 32), "` = `", "`+=`"),
        ("    arg1[2", "    store arg1[2", (11, 5), "a statement", "`store`"),
        ("= %0.2\n", "= %0.2\n  local1 late[2]\n", (12, 3), "a statement", "`local1`"),
        ("= %0.2\n", "= %0.2\n  %0.3 = Neg 1\n", (12, 3), "`%1.0`", "`%0.3`"),
        ("= %0.2\n", "= %0.2 again\n", (11, 39), "the end of the line", "`again`"),
        ("x: Real", "\"x: Real", (2, 19), "`\"`", "the end of the line"),
        ("arg0 x", "arg0 \"\\q\"", (2, 12), "an escape", "`\\q\":`"),
    ];
    let mut wrong = Vec::new();
    for (old, new, place, expected, found) in cases {
        let text = small().replacen(old, new, 1);
        assert_ne!(text, small(), "{old}");
        let error = read(&text).expect_err(new);
        let right = (error.line, error.column) == place
            && error.expected.contains(expected)
            && error.found.contains(found)
            && !error.help.is_empty();
        wrong.extend((!right).then(|| format!("{new}: {error}")));
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
    let error = read("").expect_err("no kernel");
    assert_eq!((error.line, error.column), (1, 1), "{error}");
}

#[test]
fn a_text_of_any_depth_is_read_or_refused() {
    let nested = |depth: usize| {
        let mut text = "kernel deep : F64 x 1\n  counted batch.0".to_owned();
        (1..=depth).for_each(|i| text.push_str(&format!(" i.{i}")));
        (1..=depth).for_each(|i| text.push_str(&format!("\n{}for i.{i} < 2", "  ".repeat(i))));
        text + "\n"
    };
    let kernel = read(&nested(DEEPEST)).expect("not too deep");
    round_trip(&kernel);
    for depth in [DEEPEST + 1, 2000] {
        let error = read(&nested(depth)).expect_err("too deep");
        assert!(error.expected.contains("at most 64 levels"), "{error}");
    }
    let spaces = format!("{}\n{}fence\n", nested(1), " ".repeat(1 << 20));
    assert!(read(&spaces).is_err());
    let quoted = format!("kernel \"{}", "\\\"".repeat(1 << 16));
    assert!(read(&quoted).is_err());
}

/// A sequence of numbers that differs from seed to seed (xorshift).
struct Dice(u64);

impl Dice {
    fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % bound.max(1) as u64) as usize
    }
}

/// Changes a text in one place: characters, words or lines are dropped, doubled, swapped or replaced.
fn mutated(text: &str, dice: &mut Dice) -> String {
    const WORDS: [&str; 30] = [
        "4294967295",
        "4294967296",
        "18446744073709551616",
        "-1",
        "-9223372036854775808",
        "0",
        "%",
        "%0.0",
        "arg0[",
        "local0[",
        "table0[",
        "shared0[",
        "integers0[",
        "batch.0",
        "]",
        ", lane]",
        " masked",
        "for i.1 < 2",
        "when active:",
        "  ",
        "\n",
        "\"",
        "// ",
        "0x7ff8000000000000",
        "1e999",
        "NaN",
        "stage",
        "%0.1 = Neg 3",
        "é",
        "kernel k : F64 x 1\n",
    ];
    if dice.below(2) == 0 {
        let mut lines: Vec<&str> = text.split('\n').collect();
        let (at, other) = (dice.below(lines.len()), dice.below(lines.len()));
        match dice.below(4) {
            0 => drop(lines.remove(at)),
            1 => lines.insert(at, lines[other]),
            2 => lines.swap(at, other),
            _ => lines.truncate(at),
        }
        return lines.join("\n");
    }
    let starts: Vec<usize> = text.char_indices().map(|(at, _)| at).collect();
    let at = dice.below(starts.len());
    let length = 1 + dice.below(6);
    let end = starts.get(at + length).copied().unwrap_or(text.len());
    let start = starts.get(at).copied().unwrap_or(0);
    let word = WORDS[dice.below(WORDS.len())];
    match dice.below(3) {
        0 => format!("{}{}", &text[..start], &text[end..]),
        1 => format!("{}{word}{}", &text[..start], &text[start..]),
        _ => format!("{}{word}{}", &text[..start], &text[end..]),
    }
}

#[test]
fn no_text_makes_the_reader_panic() {
    let texts = [everything().to_string(), small(), format!("{}{}", small(), everything())];
    let (mut dice, mut read_back, mut refused) = (Dice(0x9e37_79b9_7f4a_7c15), 0, 0);
    for round in 0..6000 {
        let mut text = texts[round % texts.len()].clone();
        for _ in 0..=dice.below(4) {
            text = mutated(&text, &mut dice);
        }
        match read_all(&text) {
            Ok(kernels) => {
                read_back += 1;
                for kernel in kernels {
                    let text = kernel.to_string();
                    assert_eq!(read(&text).map(|back| back.to_string()), Ok(text));
                    let _ = verify(&kernel, Phase::Lowered);
                }
            }
            Err(error) => {
                refused += 1;
                let lines = text.split('\n').count();
                assert!(error.line >= 1 && error.line <= lines, "{error}: {text}");
            }
        }
    }
    assert!(read_back > 200 && refused > 2000, "{read_back} are read, {refused} are refused");
}
