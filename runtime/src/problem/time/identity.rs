//! What a checkpoint is of: a problem → its equations, its parameters, its conditions and data, and how those of another differ.

use super::super::RunError;
use super::stages::Staged;
use super::whole::EXACT;
use fem_dsl::point::PointForm;
use fem_dsl::problem::{Problem, Scheme};
use kernels_gen::abi::hash;

/// The equations of a problem and what they are solved with, as numbers that whoever goes on compares.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Identity {
    /// Of the form's integrals.
    pub(super) form: u64,
    /// Of its conditions and data.
    pub(super) prescribed: u64,
    /// The values of the form's parameters, in their order.
    pub(super) params: Vec<f64>,
}

fn number(text: &str) -> u64 {
    hash(text) % EXACT
}

/// Of a scheme, and of what a form has that its states depend on.
pub(super) fn of_states(scheme: Scheme, form: &PointForm) -> f64 {
    let fields: Vec<_> = form.fields.iter().map(|field| (&field.name, field.shape)).collect();
    let rates: Vec<_> = form.rates.iter().map(|rate| (rate.field, rate.order)).collect();
    number(&format!("{scheme:?} {fields:?} {rates:?}")) as f64
}

/// Why a run does not go on from a checkpoint.
pub(super) fn refused(what: &str) -> RunError {
    RunError::Setting(format!(
        "the checkpoint {what}\nhelp: restart the problem that wrote it, with its mesh, degree and scheme; or leave --restart out"
    ))
}

impl Identity {
    /// Of a problem at the values of its parameters.
    pub(super) fn of(problem: &Problem, staged: &Staged<'_>) -> Self {
        let (form, parameters) = (&problem.form, staged.parameters());
        let own = 0..form.own_params().len();
        let params = own.flat_map(|param| parameters.values[parameters.range(param)].to_vec());
        let Problem { dirichlet, aux, periodic, .. } = problem;
        Self {
            form: number(&format!("{:?}", form.integrals)),
            prescribed: number(&format!("{dirichlet:?} {aux:?} {periodic:?}")),
            params: params.collect(),
        }
    }

    /// What a run should know that goes on from what this is of.
    ///
    /// # Errors
    ///
    /// Other equations.
    pub(super) fn compare(&self, own: &Self, form: &PointForm) -> Result<Vec<String>, RunError> {
        if self.form != own.form || self.params.len() != own.params.len() {
            return Err(refused(&format!(
                "is of another form: the equations are not those of `{}`",
                form.name
            )));
        }
        let mut notes = Vec::new();
        let mut start = 0;
        for param in form.own_params() {
            let range = start..start + param.shape.components();
            let [there, here] = [&self.params[range.clone()], &own.params[range.clone()]];
            if there.iter().zip(here).any(|(there, here)| there.to_bits() != here.to_bits()) {
                let [there, here] = [there, here].map(shown);
                notes.push(format!(
                    "the checkpoint was left with `{}` = {there}, and the run goes on with {here}",
                    param.name
                ));
            }
            start = range.end;
        }
        if self.prescribed != own.prescribed {
            notes.push("the checkpoint was left with other conditions or data, and the run goes on with its own".to_owned());
        }
        Ok(notes)
    }
}

/// A value as it is written.
fn shown(values: &[f64]) -> String {
    match values {
        [one] => one.to_string(),
        several => format!("{several:?}"),
    }
}
