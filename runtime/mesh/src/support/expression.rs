//! Pointwise expressions of a problem, evaluated at many points at once.

use crate::support::parallel::*;
use fem_dsl::eval::Batch;
use fem_dsl::point::{Input, NodeId, Param};
use fem_dsl::problem::Expression;
use std::ops::Range;

/// Points per block.
const BLOCK: usize = 512;

/// Time and parameters of a run.
#[derive(Clone, Debug, PartialEq)]
pub struct Parameters {
    /// t, followed by the components of each parameter.
    pub values: Vec<f64>,
    /// The start of each parameter in `values`.
    starts: Vec<usize>,
    /// The degree k.
    pub degree: usize,
}

impl Parameters {
    /// Returns a form's default parameters, with some replaced.
    pub fn new(params: &[Param], time: f64, replaced: &[(usize, Vec<f64>)], degree: usize) -> Self {
        let mut values = vec![time];
        let mut starts = Vec::new();
        for (index, param) in params.iter().enumerate() {
            starts.push(values.len());
            let own = replaced.iter().rev().find(|(at, _)| *at == index);
            values.extend(own.map_or(&param.value, |(_, value)| value));
        }
        Self { values, starts, degree }
    }

    /// The same with another scalar parameter after all others.
    #[must_use]
    pub fn with(&self, value: f64) -> Self {
        let mut more = self.clone();
        more.starts.push(more.values.len());
        more.values.push(value);
        more
    }

    /// Returns the range of a parameter in `values`.
    pub fn range(&self, param: usize) -> Range<usize> {
        let end = self.starts.get(param + 1).copied().unwrap_or(self.values.len());
        self.starts[param]..end
    }

    /// Returns the value of an input that is constant in space.
    pub fn constant(&self, input: Input) -> Option<f64> {
        match input {
            Input::Time => Some(self.values[0]),
            Input::Param(param, component) => Some(self.values[self.starts[param] + component]),
            Input::Degree => Some(self.degree as f64),
            _ => None,
        }
    }
}

/// Evaluates some nodes of an expression at points, `[point][node]`. `diameter` gives h at a point's index.
pub fn evaluate(
    expression: &Expression,
    roots: &[NodeId],
    points: &[[f64; 3]],
    parameters: &Parameters,
    diameter: impl Fn(usize) -> f64 + Sync,
) -> Vec<f64> {
    let mut values = vec![0.0; points.len() * roots.len()];
    if roots.is_empty() {
        return values;
    }
    let blocks = values.par_chunks_mut(BLOCK * roots.len()).zip(points.par_chunks(BLOCK));
    blocks.enumerate().each(|(block, (values, points))| {
        let mut batch = Batch::new(&expression.graph, roots);
        batch.run(points.len(), |input, row| match input {
            Input::Coordinate(axis) => {
                row.iter_mut().zip(points).for_each(|(value, point)| *value = point[axis]);
            }
            Input::Diameter(_) => row
                .iter_mut()
                .enumerate()
                .for_each(|(i, value)| *value = diameter(block * BLOCK + i)),
            // Inputs that an expression of a problem cannot use are NaN.
            input => row.fill(parameters.constant(input).unwrap_or(f64::NAN)),
        });
        for (at, &root) in roots.iter().enumerate() {
            for (point, &value) in batch.values(root).iter().enumerate() {
                values[point * roots.len() + at] = value;
            }
        }
    });
    values
}
