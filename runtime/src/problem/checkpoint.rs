//! Checkpoints of time integration, serialised as a list of numbers. A run that writes a checkpoint and one that
//! resumes from it both discard factors and levels there, so that both continue with identical bits. Vectors refer to
//! the whole mesh, independently of the number of processes.

mod identity;
mod whole_mesh;

pub(super) use identity::{ProblemIdentity, of_states, refused};
pub(super) use whole_mesh::WholeMeshMap;

use super::RunError;
use crate::solve::time::InitialState;
use whole_mesh::{EXACT, MeshIdentity};

/// First number of a list: encodes "weakform".
const MAGIC: f64 = 8_619_717.0;
/// Version of the layout, the second number. Version 1 lacks the mesh, 2 the equations, 3 the checksum, 4 states at
/// points.
const VERSION: f64 = 4.0;
/// Version of a layout with states at points.
const WITH_STATES: f64 = 5.0;
/// Length of the header, by version.
const HEADS: [(f64, usize); 5] =
    [(1.0, 10), (2.0, 13), (3.0, 19), (VERSION, 19), (WITH_STATES, 19)];

/// Computes the bitwise checksum, the last number of a list.
fn checksum(numbers: &[f64]) -> f64 {
    let mut hash = blake3::Hasher::new();
    numbers.iter().for_each(|number| {
        hash.update(&number.to_le_bytes());
    });
    let number = hash
        .finalize()
        .as_bytes()
        .iter()
        .take(8)
        .fold(0, |all: u64, &byte| all << 8 | u64::from(byte));
    (number % EXACT) as f64
}

/// State of a time integration, for a restart.
#[derive(Clone, Debug, PartialEq)]
pub struct Checkpoint {
    /// Hash of the scheme and of the form's fields and time derivatives.
    pub(super) identity: f64,
    /// Identity of the mesh and its degrees of freedom; missing in version 1.
    pub(super) mesh: Option<MeshIdentity>,
    /// Identity of the equations; missing in versions 1 and 2.
    pub(super) problem: Option<ProblemIdentity>,
    /// State of the initial rates.
    pub(super) begun: InitialState,
    /// True for a form of second order in time.
    pub(super) second: bool,
    /// States, newest first: the current one, then the history of the scheme.
    pub(super) past: Vec<StoredState>,
    /// States at points, one after the other, on the whole mesh.
    pub(super) points: Vec<f64>,
    /// Length of the next step.
    pub(super) length: f64,
    /// Largest ‖u‖, and largest initial ‖R‖ of a solve.
    pub(super) largest: [f64; 2],
    /// Number of solutions output so far.
    pub shown: usize,
}

/// State at a time, on the whole mesh.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct StoredState {
    /// t.
    pub(super) time: f64,
    /// u.
    pub(super) u: Vec<f64>,
    /// u̇.
    pub(super) v: Vec<f64>,
    /// ü; empty for forms of first order.
    pub(super) a: Vec<f64>,
}

impl Checkpoint {
    /// Returns t.
    pub fn time(&self) -> f64 {
        self.past[0].time
    }

    /// Serialises to a list: 19 numbers, the parameter values, then t, u, u̇ and (for second-order forms) ü of each
    /// state, newest first, and a checksum.
    pub fn numbers(&self) -> Vec<f64> {
        let second = f64::from(u8::from(self.second));
        let size = self.past[0].u.len() as f64;
        let version = match (&self.mesh, &self.problem) {
            (None, _) => HEADS[0].0,
            (_, None) => HEADS[1].0,
            _ if self.points.is_empty() => VERSION,
            _ => WITH_STATES,
        };
        let mut all = vec![MAGIC, version];
        all.extend([self.identity, second, size, self.past.len() as f64]);
        all.extend([self.length, self.shown as f64]);
        all.extend(self.largest);
        if let Some(MeshIdentity { order, cells, vertices }) = self.mesh {
            all.extend([order, cells, vertices].map(|number| number as f64));
        }
        if let Some(ProblemIdentity { form, prescribed, params }) = &self.problem {
            let InitialState { rates, norm, tried } = self.begun;
            all.extend([f64::from(u8::from(rates)), norm, tried]);
            all.extend([*form as f64, *prescribed as f64, params.len() as f64]);
            all.extend_from_slice(params);
        }
        for StoredState { time, u, v, a } in &self.past {
            all.push(*time);
            [u, v, a].into_iter().for_each(|numbers| all.extend_from_slice(numbers));
        }
        if version == WITH_STATES {
            all.extend_from_slice(&self.points);
            all.push(self.points.len() as f64);
        }
        if version >= VERSION {
            all.push(checksum(&all));
        }
        all
    }

    /// Deserialises a list.
    ///
    /// # Errors
    ///
    /// A list that is not a complete checkpoint.
    pub fn from_numbers(numbers: &[f64]) -> Result<Self, RunError> {
        let damaged = || RunError::Setting("the file holds no checkpoint, or a part of one".into());
        let [MAGIC, version, ..] = *numbers else { return Err(damaged()) };
        let found = HEADS.iter().find(|(own, _)| *own == version);
        let &(_, length) = found.ok_or_else(|| {
            let found = format!("the checkpoint is of version {version} of its layout");
            RunError::Setting(format!(
                "{found}, and this build knows those up to {WITH_STATES}\nhelp: go on with the build that wrote it, or leave --restart out"
            ))
        })?;
        let numbers = match numbers.split_last() {
            Some((&own, before)) if version >= VERSION => {
                if own.to_bits() != checksum(before).to_bits() {
                    return Err(RunError::Setting(
                        "the checkpoint is damaged: its checksum is not that of its numbers\n\
                         help: restart from another checkpoint, or leave --restart out"
                            .into(),
                    ));
                }
                before
            }
            _ => numbers,
        };
        let (numbers, points) = match numbers.split_last() {
            Some((&count, before)) if version == WITH_STATES => {
                let start = before.len().checked_sub(count as usize).ok_or_else(damaged)?;
                before.split_at(start)
            }
            _ => (numbers, &[][..]),
        };
        let (head, rest) = numbers.split_at_checked(length).ok_or_else(damaged)?;
        let count = |at: usize| {
            let whole = (0.0..EXACT as f64).contains(&head[at]) && head[at].fract() == 0.0;
            if whole { Ok(head[at] as usize) } else { Err(damaged()) }
        };
        let knows = version >= 3.0;
        let params = if knows { count(18)? } else { 0 };
        let (params, mut rest) = rest.split_at_checked(params).ok_or_else(damaged)?;
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
            past.push(StoredState { time, u, v, a: if second { take(size) } else { Vec::new() } });
        }
        let (length, shown, largest) = (head[6], count(7)?, [head[8], head[9]]);
        let begun = match knows {
            true => InitialState { rates: count(13)? == 1, norm: head[14], tried: head[15] },
            false => InitialState { rates: true, norm: largest[0], tried: 0.0 },
        };
        let problem = match knows {
            true => {
                let [form, prescribed] = [count(16)?, count(17)?].map(|n| n as u64);
                Some(ProblemIdentity { form, prescribed, params: params.to_vec() })
            }
            false => None,
        };
        let mesh = match version > HEADS[0].0 {
            true => {
                let [order, cells, vertices] =
                    [count(10)?, count(11)?, count(12)?].map(|n| n as u64);
                Some(MeshIdentity { order, cells, vertices })
            }
            false => None,
        };
        let (identity, points) = (head[2], points.to_vec());
        Ok(Self { identity, mesh, problem, begun, second, past, points, length, largest, shown })
    }

    /// Checks that the checkpoint belongs to this mesh and its degrees of freedom, as far as its version allows.
    pub(super) fn check_mesh(&self, whole: &WholeMeshMap) -> Result<(), RunError> {
        let (size, own) = (self.past[0].u.len(), whole.size);
        if size != own {
            return Err(refused(&format!("has {size} unknowns, where the problem has {own}")));
        }
        let (Some(there), here) = (self.mesh, whole.mesh) else { return Ok(()) };
        if there == here {
            return Ok(());
        }
        let [there, here] =
            [there, here].map(|MeshIdentity { cells, vertices, .. }| [cells, vertices]);
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
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_is_a_checkpoint_again_or_none() {
        let past =
            |time: f64| StoredState { time, u: vec![time, 1.0], v: vec![2.0, 3.0], a: Vec::new() };
        let (length, largest) = (0.125, [4.0, 0.0]);
        let past = vec![past(0.5), past(0.25)];
        let (identity, mesh) = (7.0, Some(MeshIdentity { order: 11, cells: 1, vertices: 4 }));
        let begun = InitialState { rates: true, norm: 4.0, tried: 0.0 };
        let second = Checkpoint {
            identity,
            mesh,
            problem: None,
            begun,
            second: false,
            past,
            points: Vec::new(),
            length,
            largest,
            shown: 3,
        };
        let first = Checkpoint { mesh: None, ..second.clone() };
        let problem = ProblemIdentity { form: 5, prescribed: 6, params: vec![0.5, 0.25] };
        let begun = InitialState { rates: false, norm: 0.5, tried: 2.0 };
        let left = Checkpoint { problem: Some(problem), begun, ..second.clone() };
        for earlier in [first, second] {
            assert_eq!(Checkpoint::from_numbers(&earlier.numbers()).expect("whole"), earlier);
        }
        let with_states = Checkpoint { points: vec![0.5, 0.25, 2.0], ..left.clone() };
        assert_eq!(Checkpoint::from_numbers(&with_states.numbers()).expect("whole"), with_states);
        let numbers = left.numbers();
        assert_eq!(Checkpoint::from_numbers(&numbers).expect("whole"), left);
        for cut in 0..numbers.len() {
            assert!(Checkpoint::from_numbers(&numbers[..cut]).is_err(), "{cut}");
        }
        for at in 0..numbers.len() {
            for bit in [0, 20, 51, 52, 62, 63] {
                let mut flipped = numbers.clone();
                flipped[at] = f64::from_bits(flipped[at].to_bits() ^ 1 << bit);
                assert!(Checkpoint::from_numbers(&flipped).is_err(), "{at} {bit}");
            }
        }
        let mut third = numbers[..numbers.len() - 1].to_vec();
        third[1] = 3.0;
        assert_eq!(Checkpoint::from_numbers(&third).expect("whole"), left);
        let mut other = third;
        other[5] = 1e300;
        assert!(Checkpoint::from_numbers(&other).is_err());
        let mut later = numbers.clone();
        later[1] = WITH_STATES + 1.0;
        let error = Checkpoint::from_numbers(&later).expect_err("unknown").to_string();
        assert!(error.contains("version 6"), "{error}");
    }
}
