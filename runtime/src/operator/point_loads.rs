//! Sources at points: part of the load of an operator, evaluated again when time or parameters change.
//!
//! ```text
//! l_i = Σ_s v_s(t) φ_i(a_s)
//! ```

use super::Operator;
use crate::algebra::vector::Vector;
use crate::support::expression::{Parameters, evaluate};
use fem_dsl::point::{Input, Node};
use fem_dsl::problem::Expression;

/// A source with the degrees of freedom whose functions differ from 0 at its point.
#[derive(Clone, Debug)]
pub struct PointLoad {
    /// v.
    pub value: Expression,
    /// a.
    pub place: [f64; 3],
    /// Degree of freedom, component of v, and φ_i(a); complete on every process.
    pub entries: Vec<(usize, usize, f64)>,
}

/// The sources of an operator.
#[derive(Clone, Debug)]
pub struct PointLoads {
    loads: Vec<PointLoad>,
    parameters: Parameters,
    /// The values of the last load.
    values: Vec<f64>,
}

impl PointLoads {
    /// Sources at a time with some parameters.
    pub fn new(loads: Vec<PointLoad>, parameters: Parameters) -> Self {
        let mut own = Self { loads, parameters, values: Vec::new() };
        own.values = own.evaluated();
        own
    }

    /// Returns all values, source by source.
    fn evaluated(&self) -> Vec<f64> {
        let of = |load: &PointLoad| {
            let roots = &load.value.value;
            evaluate(&load.value, roots, &[load.place], &self.parameters, |_| f64::NAN)
        };
        self.loads.iter().flat_map(of).collect()
    }

    /// Returns whether a value depends on t.
    fn follow_time(&self) -> bool {
        let mut nodes = self.loads.iter().flat_map(|load| load.value.graph.nodes().iter());
        nodes.any(|node| matches!(node, Node::Input(Input::Time)))
    }

    /// Adds the load to the entries of a vector.
    pub fn add_to(&self, entries: &mut [f64]) {
        let mut first = 0;
        for load in &self.loads {
            for &(dof, component, weight) in &load.entries {
                entries[dof] += weight * self.values[first + component];
            }
            first += load.value.value.len();
        }
    }

    /// Takes other parameters; returns whether a value changed.
    fn move_to(&mut self, params: &[f64]) -> bool {
        self.parameters.values.clear();
        self.parameters.values.extend_from_slice(params);
        let values = self.evaluated();
        let changed =
            values.iter().zip(&self.values).any(|(new, old)| new.to_bits() != old.to_bits());
        self.values = values;
        changed
    }
}

/// The sources of an operator with their load.
pub(super) struct LoadedPoints {
    loads: PointLoads,
    pub(super) vector: Vector,
}

impl Operator {
    /// Sets or removes the sources at points; entries of constrained degrees of freedom have no effect.
    pub fn set_point_loads(&mut self, loads: Option<PointLoads>) {
        self.points = loads.map(|mut loads| {
            let mut is_constrained = vec![false; self.n()];
            self.blocks.on.conditions().for_each(|(dof, _)| is_constrained[dof] = true);
            for load in &mut loads.loads {
                load.entries.retain(|(dof, ..)| !is_constrained[*dof]);
            }
            let mut own = LoadedPoints { loads, vector: self.vector() };
            own.update();
            own
        });
    }

    /// Takes the sources at points away, for another operator on the same spaces.
    pub(crate) fn take_point_loads(&mut self) -> Option<PointLoads> {
        self.points.take().map(|own| own.loads)
    }

    /// Returns whether a source at a point depends on t.
    pub(crate) fn point_loads_follow_time(&self) -> bool {
        self.points.as_ref().is_some_and(|own| own.loads.follow_time())
    }
}

impl LoadedPoints {
    /// Evaluates the load with other parameters.
    pub(super) fn set_params(&mut self, params: &[f64]) {
        if self.loads.move_to(params) {
            self.update();
        }
    }

    fn update(&mut self) {
        let mut entries = vec![0.0; self.vector.len()];
        self.loads.add_to(&mut entries);
        self.vector.set(&entries);
    }
}
