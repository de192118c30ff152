//! Where a run through time has come to, as a list of numbers ⇄ what its next steps depend on. Both a run that leaves a checkpoint and
//! one that begins at it forget what was made for Jacobians there, so that both go on to the same bits. Vectors are those of the whole
//! mesh, of however many processes.

use super::super::RunError;
use super::stages::Staged;
use super::whole::{EXACT, Known, Whole};
use super::{Way, parameters_at};
use crate::time::{State, Stepper};
use crate::vector::Vector;
use fem_dsl::problem::Scheme;
use kernels_gen::abi::hash;
use std::collections::VecDeque;

/// What a list begins with: "weakform".
const MAGIC: f64 = 8_619_717.0;
/// The version of its layout, which follows. The first did not know its mesh.
const VERSION: f64 = 2.0;
/// Numbers before the states, of each version.
const HEADS: [(f64, usize); 2] = [(1.0, 10), (VERSION, 13)];

/// A point from which a run through time can go on.
#[derive(Clone, Debug, PartialEq)]
pub struct Checkpoint {
    /// Of the scheme and of the form's fields and derivatives.
    identity: f64,
    /// Of the mesh and its unknowns; a list of the first version does not say it.
    mesh: Option<Known>,
    second: bool,
    /// The newest first: the state, and before it what the scheme knows of the past.
    past: Vec<Past>,
    /// The length of the next step.
    pub(super) length: f64,
    /// The largest ‖u‖, and the largest ‖R‖ that a solve began with.
    largest: [f64; 2],
    /// Solutions that were shown until then.
    pub shown: usize,
}

#[derive(Clone, Debug, PartialEq)]
struct Past {
    time: f64,
    u: Vec<f64>,
    v: Vec<f64>,
    a: Vec<f64>,
}

impl Past {
    fn of(state: &State, whole: &Whole) -> Self {
        let numbers = |vector: &Vector| whole.gathered(vector.to_vec());
        let a = state.a.as_ref().map_or_else(Vec::new, numbers);
        Self { time: state.time, u: numbers(&state.u), v: numbers(&state.v), a }
    }

    fn state(&self, like: &Vector, whole: &Whole) -> State {
        let vector = |numbers: &[f64]| {
            let mut made = like.like();
            made.set(&whole.part(numbers));
            made
        };
        let a = (!self.a.is_empty()).then(|| vector(&self.a));
        State { time: self.time, u: vector(&self.u), v: vector(&self.v), a }
    }
}

/// Of a scheme, and of what a form has that its states depend on.
fn identity(scheme: Scheme, staged: &Staged<'_>) -> f64 {
    let form = staged.system().form;
    let fields: Vec<_> = form.fields.iter().map(|field| (&field.name, field.shape)).collect();
    let rates: Vec<_> = form.rates.iter().map(|rate| (rate.field, rate.order)).collect();
    (hash(&format!("{scheme:?} {fields:?} {rates:?}")) % EXACT) as f64
}

fn refused(what: &str) -> RunError {
    RunError::Setting(format!(
        "the checkpoint {what}\nhelp: restart the problem that wrote it, with its mesh, degree and scheme; or leave --restart out"
    ))
}

impl Checkpoint {
    /// t.
    pub fn time(&self) -> f64 {
        self.past[0].time
    }

    /// As a list: 13 numbers, then of each state, the newest first, t, u, u̇ and, where the form has it, ü.
    pub fn numbers(&self) -> Vec<f64> {
        let second = f64::from(u8::from(self.second));
        let size = self.past[0].u.len() as f64;
        let version = if self.mesh.is_some() { VERSION } else { HEADS[0].0 };
        let mut all = vec![MAGIC, version];
        all.extend([self.identity, second, size, self.past.len() as f64]);
        all.extend([self.length, self.shown as f64]);
        all.extend(self.largest);
        if let Some(Known { order, cells, vertices }) = self.mesh {
            all.extend([order, cells, vertices].map(|number| number as f64));
        }
        for Past { time, u, v, a } in &self.past {
            all.push(*time);
            [u, v, a].into_iter().for_each(|numbers| all.extend_from_slice(numbers));
        }
        all
    }

    /// From a list.
    ///
    /// # Errors
    ///
    /// One that is none of a checkpoint, or not whole.
    pub fn from_numbers(numbers: &[f64]) -> Result<Self, RunError> {
        let damaged = || RunError::Setting("the file holds no checkpoint, or a part of one".into());
        let [MAGIC, version, ..] = *numbers else { return Err(damaged()) };
        let found = HEADS.iter().find(|(own, _)| *own == version);
        let &(_, length) = found.ok_or_else(|| {
            let found = format!("the checkpoint is of version {version} of its layout");
            RunError::Setting(format!(
                "{found}, and this build knows those up to {VERSION}\nhelp: go on with the build that wrote it, or leave --restart out"
            ))
        })?;
        let (head, mut rest) = numbers.split_at_checked(length).ok_or_else(damaged)?;
        let count = |at: usize| {
            let whole = (0.0..EXACT as f64).contains(&head[at]) && head[at].fract() == 0.0;
            if whole { Ok(head[at] as usize) } else { Err(damaged()) }
        };
        let (second, size, states) = (count(3)? == 1, count(4)?, count(5)?);
        let vectors = if second { 3 } else { 2 };
        let each = size.checked_mul(vectors).and_then(|all| all.checked_add(1));
        if states == 0 || each.and_then(|each| each.checked_mul(states)) != Some(rest.len()) {
            return Err(damaged());
        }
        let mut take = |n: usize| {
            let (own, others) = rest.split_at(n);
            rest = others;
            own.to_vec()
        };
        let mut past = Vec::with_capacity(states);
        for _ in 0..states {
            let time = take(1)[0];
            let (u, v) = (take(size), take(size));
            past.push(Past { time, u, v, a: if second { take(size) } else { Vec::new() } });
        }
        let (length, shown, largest) = (head[6], count(7)?, [head[8], head[9]]);
        let mesh = match version == VERSION {
            true => {
                let [order, cells, vertices] =
                    [count(10)?, count(11)?, count(12)?].map(|n| n as u64);
                Some(Known { order, cells, vertices })
            }
            false => None,
        };
        Ok(Self { identity: head[2], mesh, second, past, length, largest, shown })
    }

    /// Of what takes steps, where it is, of all processes; what does so forgets all that a run which begins there would not know.
    pub(super) fn leave(
        way: &mut Way,
        (scheme, length, shown): (Scheme, f64, usize),
        staged: &mut Staged<'_>,
        whole: &Whole,
    ) -> Result<Self, RunError> {
        let of = |state: &State| Past::of(state, whole);
        let (past, largest): (Vec<Past>, f64) = match &*way {
            Way::Implicit(stepper) => (stepper.past().map(of).collect(), stepper.largest()),
            Way::Explicit(explicit) => (vec![of(explicit.state())], 0.0),
        };
        let second = way.state().a.is_some();
        let largest = [largest, staged.largest()];
        let identity = identity(scheme, staged);
        let mesh = Some(whole.mesh);
        let left = Self { identity, mesh, second, past, length, largest, shown };
        forget(way, scheme, staged)?;
        Ok(left)
    }

    /// Whether it is of this mesh and its unknowns, as far as it says.
    fn check_mesh(&self, whole: &Whole) -> Result<(), RunError> {
        let (size, own) = (self.past[0].u.len(), whole.size);
        if size != own {
            return Err(refused(&format!("has {size} unknowns, where the problem has {own}")));
        }
        let (Some(there), here) = (self.mesh, whole.mesh) else { return Ok(()) };
        if there == here {
            return Ok(());
        }
        let [there, here] = [there, here].map(|Known { cells, vertices, .. }| [cells, vertices]);
        let how = match there == here {
            true => {
                "whose cells, vertices or unknowns are elsewhere, or in another order".to_owned()
            }
            false => {
                let [[cells, vertices], [own, of_own]] = [there, here];
                format!(
                    "with {cells} cells and {vertices} vertices, where the problem has {own} and {of_own}"
                )
            }
        };
        Err(refused(&format!("is of another mesh or degree, {how}")))
    }

    /// What takes steps, as it goes on.
    ///
    /// # Errors
    ///
    /// A checkpoint of another problem, scheme or mesh.
    pub(super) fn resume(
        &self,
        scheme: Scheme,
        like: &Vector,
        staged: &mut Staged<'_>,
        whole: &Whole,
    ) -> Result<Way, RunError> {
        self.check_mesh(whole)?;
        if self.identity != identity(scheme, staged) {
            return Err(refused("is of another scheme, or of a form with other fields"));
        }
        let mut past: VecDeque<State> =
            self.past.iter().map(|past| past.state(like, whole)).collect();
        let [largest, begun] = self.largest;
        staged.set_largest(begun);
        let mut way = match scheme {
            Scheme::RungeKutta { .. } | Scheme::Leapfrog { .. } => {
                let Some(state) = past.pop_front() else { unreachable!("there is one state") };
                at(staged, state.time);
                Way::new(scheme, state, None, staged)?
            }
            scheme => Way::Implicit(Stepper::resume(scheme, self.second, past, largest)),
        };
        if let Way::Explicit(explicit) = &mut way {
            explicit.quieten(staged)?;
        }
        Ok(way)
    }
}

/// Parameters as before a step from a time.
fn at(staged: &mut Staged<'_>, time: f64) {
    let form = staged.system().form;
    parameters_at(form, staged.parameters_mut(), time, [0.0; 2]);
}

/// Leaves nothing that was made for earlier steps.
fn forget(way: &mut Way, scheme: Scheme, staged: &mut Staged<'_>) -> Result<(), RunError> {
    staged.forget();
    if let Way::Explicit(explicit) = way {
        let state = explicit.state().clone();
        at(staged, state.time);
        *way = Way::new(scheme, state, None, staged)?;
        if let Way::Explicit(explicit) = way {
            explicit.quieten(staged)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_is_a_checkpoint_again_or_none() {
        let past = |time: f64| Past { time, u: vec![time, 1.0], v: vec![2.0, 3.0], a: Vec::new() };
        let (length, largest) = (0.125, [4.0, 0.0]);
        let past = vec![past(0.5), past(0.25)];
        let (identity, mesh) = (7.0, Some(Known { order: 11, cells: 1, vertices: 4 }));
        let left = Checkpoint { identity, mesh, second: false, past, length, largest, shown: 3 };
        let first = Checkpoint { mesh: None, ..left.clone() };
        assert_eq!(Checkpoint::from_numbers(&first.numbers()).expect("whole"), first);
        let numbers = left.numbers();
        assert_eq!(Checkpoint::from_numbers(&numbers).expect("whole"), left);
        for cut in 0..numbers.len() {
            assert!(Checkpoint::from_numbers(&numbers[..cut]).is_err(), "{cut}");
        }
        let mut other = numbers.clone();
        other[5] = 1e300;
        assert!(Checkpoint::from_numbers(&other).is_err());
        let mut later = numbers.clone();
        later[1] = VERSION + 1.0;
        let error = Checkpoint::from_numbers(&later).expect_err("unknown").to_string();
        assert!(error.contains("version 3"), "{error}");
    }
}
