//! Essential boundary conditions: the constrained degrees of freedom of a space, and their values.
//!
//! Constrained entries stay in every vector. Kernels read 0 there in directions, and write nothing; the operator adds
//! the identity to their rows. Of two conditions on one degree of freedom, the later takes precedence. Conditions on
//! combinations of components ([`oblique`]) and of arbitrary degrees of freedom ([`affine`]) are separate, because
//! kernels do not support them.

pub mod affine;
pub mod oblique;

use crate::space::Space;
use crate::support::parallel::filled;
use oblique::{NodeConditions, ObliqueCondition};
use std::sync::Arc;

/// Marks an unconstrained degree of freedom in `place`.
const FREE: u32 = u32::MAX;

/// The constrained degrees of freedom of a space.
#[derive(Clone, Debug, PartialEq)]
pub struct Constraints {
    components: usize,
    /// The number of degrees of freedom.
    unknowns: usize,
    /// For each degree of freedom, its index in `dofs`, or [`FREE`]; empty without constraints.
    place: Arc<Vec<u32>>,
    /// Constrained degrees of freedom, in the order of their first constraint.
    dofs: Vec<u32>,
    values: Vec<f64>,
    /// The number of the first of them that lie outside of the cells on which the field lives; they stay 0.
    outside: usize,
    oblique: Vec<ObliqueCondition>,
    /// The prescribed mean of each component, if the field is determined up to a constant; else empty.
    mean: Vec<f64>,
}

/// A condition whose value is not finite.
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
#[error(
    "the value of an essential condition is {value} in component {component} at \
     ({}, {}, {})", .point[0], .point[1], .point[2]
)]
pub struct NonFiniteValue {
    /// The value.
    pub value: f64,
    /// The field's component.
    pub component: usize,
    /// The point.
    pub point: [f64; 3],
}

impl Constraints {
    /// Creates empty constraints.
    pub fn none(space: &Space) -> Self {
        Self {
            components: space.components(),
            unknowns: space.n_dofs(),
            place: Arc::default(),
            dofs: Vec::new(),
            values: Vec::new(),
            outside: 0,
            oblique: Vec::new(),
            mean: Vec::new(),
        }
    }

    /// Creates constraints without conditions: the nodes outside of the cells on which a field lives are 0.
    pub fn outside(space: &Space, nodes: &[u32]) -> Self {
        let mut own = Self::none(space);
        nodes.iter().for_each(|&node| own.hold(node as usize));
        own.outside = own.dofs.len();
        own
    }

    /// Constrains all components, or one, at some nodes: `value` writes the components, or the one, at a node's point.
    /// `points` are the points of all nodes of the space.
    pub fn fix(
        &mut self,
        nodes: &[u32],
        component: Option<usize>,
        points: &[[f64; 3]],
        value: impl FnMut(&[f64; 3], &mut [f64]),
    ) -> Result<(), NonFiniteValue> {
        let places: Vec<[f64; 3]> = nodes.iter().map(|&node| points[node as usize]).collect();
        self.fix_at(nodes, component, &places, value)
    }

    /// Like [`Constraints::fix`], but `places` are the points of these nodes only.
    pub fn fix_at(
        &mut self,
        nodes: &[u32],
        component: Option<usize>,
        places: &[[f64; 3]],
        mut value: impl FnMut(&[f64; 3], &mut [f64]),
    ) -> Result<(), NonFiniteValue> {
        let range = match component {
            Some(one) => one..one + 1,
            None => 0..self.components,
        };
        let mut values = vec![0.0; range.len()];
        for (&node, &point) in nodes.iter().zip(places) {
            value(&point, &mut values);
            for (component, &value) in range.clone().zip(&values) {
                if !value.is_finite() {
                    return Err(NonFiniteValue { value, component, point });
                }
                self.set(node as usize * self.components + component, value);
            }
        }
        Ok(())
    }

    /// Constrains all components of a node to 0.
    pub fn hold(&mut self, node: usize) {
        for component in 0..self.components {
            self.set(node * self.components + component, 0.0);
        }
    }

    /// Adds mean-value constraints: the field is determined up to a constant, and `mean` gives the mean of each
    /// component.
    pub fn set_mean(&mut self, mean: Vec<f64>) {
        debug_assert_eq!(mean.len(), self.components, "a mean should have a number a component");
        self.mean = mean;
    }

    /// Returns the prescribed mean of each component, if the field is determined up to a constant.
    pub fn mean(&self) -> Option<&[f64]> {
        (!self.mean.is_empty()).then_some(&self.mean[..])
    }

    /// Adds the conditions at a node, on components or on combinations of them; to be called once per node.
    pub fn hold_rows(&mut self, node: u32, rows: &NodeConditions) {
        for component in 0..self.components {
            if let Some(value) = rows.component(component) {
                self.set(node as usize * self.components + component, value);
            }
        }
        self.oblique.extend(rows.oblique(node));
    }

    /// Sets the constrained entries of a vector to their values.
    pub fn impose(&self, own: &mut [f64]) {
        self.iter().for_each(|(unknown, value)| own[unknown] = value);
        for oblique in &self.oblique {
            let node = &mut own[oblique.node as usize * self.components..][..self.components];
            let all = std::array::from_fn(|c| node.get(c).copied().unwrap_or(0.0));
            let part = oblique.part(&all);
            let changes = oblique.value.iter().zip(part);
            node.iter_mut().zip(changes).for_each(|(own, (value, part))| *own += value - part);
        }
    }

    /// Returns the nodes with conditions on combinations of components, in the order of insertion.
    pub fn oblique(&self) -> &[ObliqueCondition] {
        &self.oblique
    }

    /// Removes the conditions on combinations of components at some nodes.
    pub fn release_oblique(&mut self, is_released: impl Fn(u32) -> bool) {
        self.oblique.retain(|own| !is_released(own.node));
    }

    /// Constrains one degree of freedom.
    fn set(&mut self, dof: usize, value: f64) {
        if self.place.is_empty() {
            self.place = Arc::new(filled(self.unknowns, FREE));
        }
        match self.place[dof] {
            FREE => {
                Arc::make_mut(&mut self.place)[dof] = self.dofs.len() as u32;
                self.dofs.push(dof as u32);
                self.values.push(value);
            }
            place if (place as usize) < self.outside => {}
            place => self.values[place as usize] = value,
        }
    }

    /// Returns the number of constrained degrees of freedom.
    pub fn len(&self) -> usize {
        self.dofs.len()
    }

    /// Returns the number of degrees of freedom outside of the cells on which the field lives.
    pub fn n_outside(&self) -> usize {
        self.outside
    }

    /// Returns the degrees of freedom with conditions, without those outside of the cells on which the field lives.
    pub fn given(&self) -> impl ExactSizeIterator<Item = (usize, f64)> {
        self.iter().skip(self.outside)
    }

    /// Returns whether a degree of freedom has a condition.
    pub fn is_given(&self, dof: usize) -> bool {
        let place = self.place.get(dof);
        place.is_some_and(|&place| place != FREE && place as usize >= self.outside)
    }

    /// Returns whether no degree of freedom is constrained.
    pub fn is_empty(&self) -> bool {
        self.dofs.is_empty()
    }

    /// Returns the number of free degrees of freedom.
    pub fn n_free(&self) -> usize {
        self.unknowns - self.dofs.len()
    }

    /// Returns whether a degree of freedom is constrained.
    pub fn is_constrained(&self, dof: usize) -> bool {
        self.place.get(dof).is_some_and(|&place| place != FREE)
    }

    /// Returns the constrained degrees of freedom with their values.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (usize, f64)> {
        self.dofs.iter().map(|&dof| dof as usize).zip(self.values.iter().copied())
    }
}
