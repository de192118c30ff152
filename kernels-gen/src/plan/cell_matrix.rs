//! Element matrices: their entries and the numbering of these.
//!
//! ```text
//! A_ij = Σ_q  ∇φ_i · gg ∇φ_j + ∇φ_i · gv φ_j + φ_i vg · ∇φ_j + φ_i vv φ_j
//! ```
//!
//! for each pair of a test and a trial component that the form couples; the others have no entries. Given the
//! coefficients at the points (defined by [`Task::Linearise`](super::Task::Linearise)), column j is the action on one
//! basis function, sum-factorised on tensor cells. With hanging nodes it is Cᵀ A C with the constraints C of the cell,
//! and therefore refers to the DoFs that the cell reads.

use super::Elements;
use super::traces::with_all_traces;
use fem_dsl::point::PointForm;

/// The block of one pair of components.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pair {
    /// The test component, among those of all fields.
    pub test: usize,
    /// The trial component.
    pub trial: usize,
    /// The index of entry (0, 0); entry (i, j) is at `first + j · rows + i`.
    pub first: usize,
    /// Nodes of the test component.
    pub rows: usize,
    /// Nodes of the trial component.
    pub columns: usize,
    /// The first of the cell's nodes of the test and of the trial component: 0, but for components of vector-valued
    /// functions.
    pub from: [usize; 2],
}

/// The entries of the element matrices of one of a form's integrals.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CellMatrix {
    /// The blocks, test component by test component, trial components ascending in each.
    pub pairs: Vec<Pair>,
    /// Entries per cell.
    pub entries: usize,
}

impl CellMatrix {
    /// Returns the entries of an integral's element matrices; of pairs of cells, rows and columns are those of traces:
    /// of all components of the inside, and then of the outside. Vector-valued functions are one component.
    pub fn of(form: &PointForm, elements: &Elements, integral: usize) -> Self {
        let (form, split) = with_all_traces(form, elements, integral);
        let mut matrix = Self::new(&form, &split, integral);
        let rows = || {
            let fields = split.components.iter().zip(&split.origins);
            fields.flat_map(|(&count, origin)| (0..count).map(move |c| (origin, c)))
        };
        // The first component of each field, and of its trace on the outside.
        let (all, mut firsts) = (elements.components.iter(), vec![0]);
        for count in all.clone().chain(all) {
            firsts.push(firsts[firsts.len() - 1] + count);
        }
        let rows: Vec<(usize, usize)> =
            rows().map(|(origin, c)| (firsts[origin.index] + c, origin.first)).collect();
        for pair in &mut matrix.pairs {
            let [test, trial] = [pair.test, pair.trial].map(|row| rows[row]);
            (pair.test, pair.trial) = (test.0, trial.0);
            pair.from = [test.1, trial.1];
        }
        matrix
    }

    /// Returns the same for a form whose fields are traces, if the integral is over pairs of cells.
    pub(crate) fn new(form: &PointForm, elements: &Elements, integral: usize) -> Self {
        // Vector-valued functions are one component.
        let row = |field: usize, component: usize| -> usize {
            let own = elements.components[field];
            elements.components[..field].iter().sum::<usize>() + component.min(own - 1)
        };
        let jacobian = &form.integrals[integral].jacobian;
        let counts = |entry: &&fem_dsl::point::Coefficient| {
            !elements.vanishes(entry.test) && !elements.vanishes(entry.trial)
        };
        let mut pairs: Vec<((usize, usize), (usize, usize))> = jacobian
            .iter()
            .filter(counts)
            .map(|entry| {
                let (test, trial) = (entry.test, entry.trial);
                let rows = (row(test.field, test.component), row(trial.field, trial.component));
                (rows, (test.field, trial.field))
            })
            .collect();
        pairs.sort_unstable();
        pairs.dedup();
        let mut entries = 0;
        let pairs = pairs
            .into_iter()
            .map(|((test, trial), fields)| {
                let nodes = |field: usize| elements.fields[field].count();
                let (rows, columns) = (nodes(fields.0), nodes(fields.1));
                let first = entries;
                entries += rows * columns;
                Pair { test, trial, first, rows, columns, from: [0, 0] }
            })
            .collect();
        Self { pairs, entries }
    }

    /// Returns the block of a pair of components, if they are coupled.
    pub fn pair(&self, test: usize, trial: usize) -> Option<&Pair> {
        self.pairs.iter().find(|pair| (pair.test, pair.trial) == (test, trial))
    }
}
