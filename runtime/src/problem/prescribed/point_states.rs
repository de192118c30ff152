//! Values of states at points, which converged steps replace: [`PointStates`].

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The current values of states, by index of the data: `[cell][point][component]`.
#[derive(Debug, Default)]
pub struct PointStates(Mutex<BTreeMap<usize, Vec<f64>>>);

impl PointStates {
    fn values(&self) -> MutexGuard<'_, BTreeMap<usize, Vec<f64>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the values of a state that has been replaced.
    pub(super) fn get(&self, aux: usize) -> Option<Vec<f64>> {
        self.values().get(&aux).cloned()
    }

    /// Replaces values.
    pub(in crate::problem) fn put(&self, values: Vec<(usize, Vec<f64>)>) {
        self.values().extend(values);
    }

    /// Returns all values.
    pub(in crate::problem) fn all(&self) -> Vec<(usize, Vec<f64>)> {
        self.values().iter().map(|(aux, values)| (*aux, values.clone())).collect()
    }
}
