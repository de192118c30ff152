//! Each invariant is broken once in an otherwise sound kernel.

use super::*;
use crate::kir::build::Builder;
use crate::kir::{
    ArgumentId, Comparison, Element, Entries, IndirectIndex, IntegersId, Positions, Precision, Run,
    Unary, Value, Var, Write,
};

/// Loads, loops, a private array, a table, a gather and a scatter.
fn sound() -> Kernel {
    let mut b = Builder::new("sound", Precision::F64, 4);
    let x = b.argument("x", Element::Real, false);
    let y = b.argument("y", Element::Real, true);
    let map = b.argument("map", Element::U32, false);
    let active = b.argument("active", Element::U32, false);
    b.set_active(active);
    let local = b.local("u", 3);
    let table = b.table("B", Entries::Real(vec![1.0, 2.0, 3.0]));
    b.table("positions", Entries::Position(vec![0, 2, 2]));
    let batch = Index::from(b.batch());
    b.repeat("i", 3, false, |b, i| {
        let value = b.gather(x, map, &batch.times(3) + &i, (1, 0), false);
        let weight = b.load_table(table, i.clone());
        let product = b.mul(value, weight);
        b.store(local, i, product);
    });
    let (first, zero) = (b.load(local, Index::from(0)), b.constant(0.0));
    let positive = b.compare(Comparison::Gt, first, zero);
    let value = b.select(positive, first, zero);
    b.scatter(y, map, batch, (1, 0), false, value);
    b.finish()
}

fn value(kernel: &Kernel, wanted: impl Fn(&Op) -> bool) -> ValueId {
    kernel.values.ids().find(|&id| wanted(&kernel.values[id].op)).expect("such a value")
}

fn push(kernel: &mut Kernel, op: Op, varying: bool) -> ValueId {
    let id = kernel.values.push(Value { op, varying, name: None });
    kernel.body.push(Statement::Let(id));
    id
}

/// Breaks the kernel and expects an error message that contains `words`.
#[track_caller]
fn broken(words: &str, phase: Phase, breaking: impl FnOnce(&mut Kernel)) {
    let mut kernel = sound();
    breaking(&mut kernel);
    let error = verify(&kernel, phase).expect_err(words);
    assert!(error.violation.contains(words), "{error}");
}

#[test]
fn a_sound_kernel_passes() {
    assert_eq!(verify(&sound(), Phase::Lowered), Ok(()));
}

#[test]
fn lanes_and_ids_exist() {
    use Phase::Lowered;
    broken("no lanes", Lowered, |k| k.lanes = 0);
    broken("no batch", Lowered, |k| k.vars = IndexVec::new());
    broken("does not exist", Lowered, |k| {
        k.body.push(Statement::Let(ValueId::from_index(1000)));
    });
    broken("does not exist", Lowered, |k| {
        push(k, Op::LoadLanes(ArgumentId::from_index(9), Index::from(0)), true);
    });
    broken("cannot count", Lowered, |k| k.active = Some(ArgumentId::from_index(0)));
}

#[test]
fn values_are_typed_and_in_order() {
    use Phase::Lowered;
    let truth = |op: &Op| matches!(op, Op::Compare(..));
    broken("precedes its operand", Lowered, |k| {
        let later = ValueId::from_index(k.values.len());
        push(k, Op::Unary(Unary::Abs, later), true);
    });
    broken("takes a real", Lowered, |k| {
        let truth = value(k, truth);
        push(k, Op::Unary(Unary::Abs, truth), true);
    });
    broken("takes a truth value", Lowered, |k| {
        let real = value(k, |op| matches!(op, Op::Constant(_)));
        push(k, Op::Not(real), false);
    });
    broken("truth value", Lowered, |k| {
        let truth = value(k, truth);
        k.body.push(Statement::StoreLocal(LocalId::from_index(0), Index::from(0), truth));
    });
    broken("is NaN", Lowered, |k| {
        k.values.push(Value { op: Op::Constant(f64::NAN), varying: false, name: None });
    });
}

#[test]
fn values_are_used_where_they_are_known() {
    use Phase::Lowered;
    let load = |op: &Op| matches!(op, Op::LoadLocal(..));
    broken("two lets", Lowered, |k| {
        let id = value(k, load);
        k.body.push(Statement::Let(id));
    });
    broken("has a let", Lowered, |k| {
        let id = value(k, |op| matches!(op, Op::Constant(_)));
        k.body.push(Statement::Let(id));
    });
    broken("before its let", Lowered, |k| {
        let id = value(k, load);
        k.body.retain(|statement| *statement != Statement::Let(id));
    });
    broken("outside its block", Lowered, |k| {
        let inner = value(k, |op| matches!(op, Op::Gather { .. }));
        push(k, Op::Unary(Unary::Abs, inner), true);
    });
}

#[test]
fn uniformity_is_checked() {
    broken("says that varying", Phase::Lowered, |k| {
        let id = value(k, |op| matches!(op, Op::LoadLocal(..)));
        k.values[id].varying = false;
    });
    broken("broadcasts", Phase::Lowered, |k| {
        let id = value(k, |op| matches!(op, Op::LoadLocal(..)));
        push(k, Op::Broadcast(id), true);
    });
    // The sound kernel mixes: its table is uniform.
    broken("uniform operand", Phase::Legal, |_| ());
}

#[test]
fn loops_have_their_own_variables() {
    use Phase::Lowered;
    let var = VarId::from_index(1);
    let again = |var, extent| Statement::For { var, extent, body: Vec::new() };
    broken("two loops", Lowered, |k| k.body.push(again(var, 1)));
    broken("no loop variable", Lowered, |k| k.body.push(again(k.batch(), 1)));
    broken("never runs", Lowered, |k| {
        let var = k.vars.push(Var { name: "j".to_owned(), rule: Rule::Counted });
        k.body.push(again(var, 0));
    });
    broken("outside its loop", Lowered, |k| {
        push(k, Op::LoadLocal(LocalId::from_index(0), Index::from(var)), true);
    });
}

#[test]
fn accesses_are_in_bounds() {
    use Phase::Lowered;
    let local = LocalId::from_index(0);
    let load = move |k: &mut Kernel, index: Index| {
        push(k, Op::LoadLocal(local, index), true);
    };
    broken("u[3 to 3] is out of bounds", Lowered, |k| load(k, Index::from(3)));
    broken("out of bounds", Lowered, |k| load(k, Index { constant: -1, terms: Vec::new() }));
    broken("depends on the batch", Lowered, |k| load(k, Index::from(k.batch())));
    broken("zero factor", Lowered, |k| load(k, Index { constant: 0, terms: vec![(k.batch(), 0)] }));
    broken("u[1 to 3] is out of bounds", Lowered, |k| {
        let Some(Statement::For { body, .. }) = k.body.first_mut() else { panic!("a loop") };
        let Some(Statement::StoreLocal(_, index, _)) = body.last_mut() else { panic!("a store") };
        index.constant += 1;
    });
    broken("negative index", Lowered, |k| {
        let index = Index { constant: 5, terms: vec![(k.batch(), -1)] };
        push(k, Op::LoadLanes(ArgumentId::from_index(0), index), true);
    });
    broken("not sorted", Lowered, |k| {
        let terms = vec![(VarId::from_index(1), 1), (VarId::from_index(0), 1)];
        load(k, Index { constant: 0, terms });
    });
}

#[test]
fn tables_and_runs_fit() {
    use Phase::Lowered;
    let run = |positions: usize, first, length| {
        let (map, at, local) = (ArgumentId::from_index(2), Index::from(0), LocalId::from_index(0));
        let positions = Positions::Table(TableId::from_index(positions));
        let run =
            Run { map, at, scale: 1, local, positions, first, length, masked: false, lines: None };
        Statement::GatherRun { source: ArgumentId::from_index(0), run }
    };
    let mut kernel = sound();
    kernel.body.push(run(1, 0, 2));
    assert_eq!(verify(&kernel, Lowered), Ok(()));
    broken("twice", Lowered, |k| k.body.push(run(1, 0, 3)));
    broken("not within", Lowered, |k| k.body.push(run(1, 2, 2)));
    broken("not within", Lowered, |k| k.body.push(run(1, 2, usize::MAX)));
    broken("lists no positions", Lowered, |k| k.body.push(run(0, 0, 2)));
    broken("leaves u", Lowered, |k| {
        k.locals[LocalId::from_index(0)].length = 3;
        k.tables[TableId::from_index(1)].entries = Entries::Position(vec![0, 3]);
        k.body.push(run(1, 0, 2));
    });
    broken("holds positions", Lowered, |k| {
        push(k, Op::LoadTable(TableId::from_index(1), Index::from(0)), false);
    });
    broken("not finite", Lowered, |k| {
        let entries = vec![1.0, f64::INFINITY, 3.0];
        k.tables[TableId::from_index(0)].entries = Entries::Real(entries);
    });
}

#[test]
fn arguments_are_used_as_declared() {
    use Phase::Lowered;
    let indexed = |map: usize| {
        let (map, at) = (ArgumentId::from_index(map), Index::from(0));
        IndirectIndex { map, at, scale: 1, offset: 0, masked: false }
    };
    let scatter = |k: &Kernel, target: usize, map: usize| Statement::Scatter {
        target: ArgumentId::from_index(target),
        to: indexed(map),
        value: value(k, |op| matches!(op, Op::Select(..))),
        write: Write::LaneSerial,
    };
    broken("not declared so", Lowered, |k| k.body.push(scatter(k, 0, 2)));
    broken("no index array", Lowered, |k| k.body.push(scatter(k, 1, 0)));
    broken("holds no reals", Lowered, |k| k.body.push(scatter(k, 2, 2)));
    broken("both gathered and written", Lowered, |k| {
        let source = ArgumentId::from_index(1);
        push(k, Op::Gather { source, from: indexed(2) }, true);
    });
}

/// Returns a variable of the kernel that a statement computes, and the statement.
fn set(kernel: &mut Kernel, integer: Integer) -> VarId {
    let var = kernel.vars.push(Var { name: "n".to_owned(), rule: Rule::Integer(integer) });
    kernel.body.push(Statement::Set(var));
    var
}

#[test]
fn integers_are_computed_once_and_bound_nothing() {
    use Phase::{Legal, Lowered};
    let map = ArgumentId::from_index(2);
    let loaded = |k: &mut Kernel| set(k, Integer::Element(map, Index::from(0)));
    let at = |k: &mut Kernel, of: VarId| {
        push(k, Op::LoadLocal(LocalId::from_index(0), Index::from(of)), true);
    };
    broken("computed twice", Lowered, |k| {
        let var = loaded(k);
        k.body.push(Statement::Set(var));
    });
    broken("not computed", Lowered, |k| k.body.push(Statement::Set(k.batch())));
    broken("no index array", Lowered, |k| {
        set(k, Integer::Element(ArgumentId::from_index(0), Index::from(0)));
    });
    broken("division by 0", Lowered, |k| {
        let var = loaded(k);
        set(k, Integer::Rest(var, 0));
    });
    broken("does not exist", Lowered, |k| {
        set(k, Integer::Entry(IntegersId::from_index(0), Index::from(0)));
    });
    broken("a lane's own", Lowered, |k| {
        let var = loaded(k);
        at(k, var);
    });
    broken("a lane's own", Lowered, |k| {
        let var = loaded(k);
        let rest = set(k, Integer::Rest(var, 3));
        at(k, rest);
    });
    broken("by what was loaded", Lowered, |k| {
        let var = loaded(k);
        set(k, Integer::Element(map, Index::from(var)));
    });
    broken("outside its loop", Lowered, |k| {
        let var = loaded(k);
        let body = vec![k.body.pop().expect("what computes it")];
        k.body.push(Statement::When { conditions: vec![Condition::Active], body });
        at(k, var);
    });
    broken("is a condition outside", Lowered, |k| {
        let var = loaded(k);
        k.body.pop();
        let conditions = vec![Condition::Bit(var, 3)];
        k.body.push(Statement::When { conditions, body: Vec::new() });
    });
    broken("was not loaded", Lowered, |k| {
        let (source, var) = (ArgumentId::from_index(0), k.batch());
        push(k, Op::LoadAt { source, var, scale: 1, offset: 0, masked: false }, true);
    });
    let member = |k: &mut Kernel| {
        let rule = Rule::Thread(Thread::Member);
        k.vars.push(Var { name: "member".to_owned(), rule })
    };
    let empty = |k: &mut Kernel| (k.values, k.body) = (IndexVec::new(), Vec::new());
    broken("differs between", Legal, |k| {
        empty(k);
        let var = member(k);
        set(k, Integer::Rest(var, 3));
    });
    broken("a vector cannot go to", Legal, |k| {
        empty(k);
        let (var, source) = (loaded(k), ArgumentId::from_index(0));
        push(k, Op::LoadAt { source, var, scale: 1, offset: 0, masked: false }, true);
    });
    broken("lanes of a vector differ", Legal, |k| {
        empty(k);
        let conditions = vec![Condition::Active];
        k.body = vec![Statement::When { conditions, body: Vec::new() }];
    });
}
