//! State at which functionals are evaluated: [`EvaluationState`].

use super::context::Context;
use crate::algebra::vector::Vector;
use crate::operator::Operator;
use crate::space::discretisation::Discretisation;
use crate::support::expression::Parameters;
use fem_dsl::point::PointForm;
use fem_dsl::problem::Bound;
use kernels_gen::plan::Elements;
use std::borrow::Cow;
use std::sync::Arc;

/// A state of a form's fields, for evaluation.
#[derive(Clone, Copy)]
pub struct EvaluationState<'a> {
    /// The form that was solved.
    pub form: &'a PointForm,
    /// Its discretisation.
    pub on: &'a Arc<Discretisation>,
    /// The elements of its form.
    pub elements: &'a Elements,
    /// Time and parameters.
    pub parameters: &'a Parameters,
    /// Bounds of its fields.
    pub bounds: &'a [Bound],
    /// Degrees of freedom.
    pub u: &'a [f64],
    /// The same as an operator's vector, if there is one.
    pub vector: Option<&'a Vector>,
    /// Right-hand side in addition to the form's, if there is one.
    pub load: Option<&'a [f64]>,
}

impl<'a> EvaluationState<'a> {
    /// The degrees of freedom `u` of a context.
    pub fn of(context: &'a Context, u: &'a [f64]) -> Self {
        let Context { elements, on, parameters, .. } = context;
        let (form, bounds) = (context.form(), &context.problem.bounds[..]);
        Self { form, on, elements, parameters, bounds, u, vector: None, load: None }
    }

    /// Returns the state as a vector of an operator, with 0 in additional fields.
    pub(super) fn vector_for(&self, operator: &Operator) -> Cow<'a, Vector> {
        if let Some(vector) = self.vector.filter(|vector| operator.reads(vector)) {
            return Cow::Borrowed(vector);
        }
        let (mut vector, on) = (operator.zeros(), operator.discretisation());
        let mut entries = vec![0.0; vector.len()];
        for field in 0..self.on.fields.len() {
            let (own, start) = (self.on.dofs_of(field), on.dofs_of(field).start);
            entries[start..start + own.len()].copy_from_slice(&self.u[own]);
        }
        // Integrals over facets between cells may reach cells beyond a part that the form does not.
        if let Some(sharing) = on.sharing().filter(|_| on.beyond().is_some()) {
            sharing.synchronise(&mut entries);
        }
        vector.set(&entries);
        Cow::Owned(vector)
    }
}
