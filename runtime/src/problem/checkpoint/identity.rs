//! Identity of a problem in checkpoints: its equations, parameters, conditions and data, and their comparison on
//! restart.

use super::super::RunError;
use super::whole_mesh::EXACT;
use crate::support::expression::Parameters;
use fem_dsl::point::PointForm;
use fem_dsl::problem::{Problem, Scheme};
use kernels_gen::abi::hash;

/// Hashes of a problem, compared on restart.
#[derive(Clone, Debug, PartialEq)]
pub(in crate::problem) struct ProblemIdentity {
    /// Hash of the form's integrals.
    pub(super) form: u64,
    /// Hash of its conditions and data.
    pub(super) prescribed: u64,
    /// Parameter values of the form, in order.
    pub(super) params: Vec<f64>,
}

fn number(text: &str) -> u64 {
    hash(text) % EXACT
}

/// Hashes a scheme, and the parts of a form that determine its states.
pub(in crate::problem) fn of_states(scheme: Scheme, form: &PointForm) -> f64 {
    let fields: Vec<_> = form.fields.iter().map(|field| (&field.name, field.shape)).collect();
    let rates: Vec<_> = form.rates.iter().map(|rate| (rate.field, rate.order)).collect();
    number(&format!("{scheme:?} {fields:?} {rates:?}")) as f64
}

/// Returns the error of a checkpoint that does not fit.
pub(in crate::problem) fn refused(what: &str) -> RunError {
    RunError::Setting(format!(
        "the checkpoint {what}\nhelp: restart the problem that wrote it, with its mesh, degree and scheme; or leave --restart out"
    ))
}

impl ProblemIdentity {
    /// Computes the identity of a problem with its parameter values.
    pub(in crate::problem) fn of(problem: &Problem, parameters: &Parameters) -> Self {
        let form = &problem.form;
        let own = 0..form.own_params().len();
        let params = own.flat_map(|param| parameters.values[parameters.range(param)].to_vec());
        let Problem { dirichlet, aux, periodic, sources, .. } = problem;
        let sources = match sources.is_empty() {
            true => String::new(),
            false => format!(" {sources:?}"),
        };
        Self {
            form: number(&format!("{:?}", form.integrals)),
            prescribed: number(&format!("{dirichlet:?} {aux:?} {periodic:?}{sources}")),
            params: params.collect(),
        }
    }

    /// Compares with the problem of a restart; returns notes on differences.
    ///
    /// # Errors
    ///
    /// Different equations.
    pub(in crate::problem) fn compare(
        &self,
        own: &Self,
        form: &PointForm,
    ) -> Result<Vec<String>, RunError> {
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

/// Formats a value.
fn shown(values: &[f64]) -> String {
    match values {
        [one] => one.to_string(),
        several => format!("{several:?}"),
    }
}
