//! Problems whose solutions are data of another problem.

use super::Program;
use crate::ast;
use crate::check::problem::{Overrides, StagesRequest};
use crate::codes::Code;
use crate::diagnostic::Diagnostic;
use crate::problem::{Problem, SolutionField, Stages, ValueSource};
use std::sync::Arc;

impl Program {
    /// Adds the problems whose solutions a problem takes, on its mesh. The text is known to have no cycle of them.
    pub(super) fn find_sources(
        &self,
        written: &ast::Problem,
        problem: &mut Problem,
        overrides: &Overrides,
        (stages, group): (Option<StagesRequest>, &[String]),
    ) -> Result<(), Vec<Diagnostic>> {
        let dim = problem.form.dim;
        let mut group = group.to_vec();
        if let Some(StagesRequest { names, steps, step, until }) = stages {
            group.clone_from(&names);
            group.push(written.name.name.clone());
            let stage = |name: &String| {
                let taken =
                    SolutionField { problem: name.clone(), field: String::new(), source: None };
                self.source_of(written, (dim, problem.refine), &taken, overrides, &group)
                    .map(Arc::new)
            };
            let before = names.iter().map(stage).collect::<Result<Vec<_>, _>>()?;
            for stage in &before {
                let is_steady = stage.stepping.is_none() && stage.stages.is_none();
                if !is_steady {
                    let message = format!("the stage `{}` goes through time itself", stage.name);
                    let help =
                        "write the step into its form, and its length as `step: …` of `repeat`";
                    return Err(self.at(written, message, help));
                }
            }
            problem.stages = Some(Stages { before, steps, step, until });
        }
        let form = &problem.form;
        let data = problem.aux.iter_mut().map(|data| {
            (form.aux[data.aux].name.as_str(), form.aux[data.aux].shape, &mut data.value)
        });
        let starts = problem.initial.iter_mut().chain(&mut problem.initial_rate);
        let starts = starts.map(|(field, value)| {
            (form.fields[*field].name.as_str(), form.fields[*field].shape, value)
        });
        for (name, shape, value) in data.chain(starts) {
            let ValueSource::Solution(taken) = value else { continue };
            // The latest solution of a stage.
            if group.contains(&taken.problem) {
                continue;
            }
            if problem.adapt.is_some() {
                let message = format!("`{name}` is a solution on one mesh, and `adapt` changes it");
                return Err(self.at(written, message, "leave `adapt` out, and refine the mesh"));
            }
            let source = self.source_of(written, (dim, problem.refine), taken, overrides, &[])?;
            let Some(field) = source.form.fields.iter().find(|own| own.name == taken.field) else {
                let message =
                    format!("the problem `{}` has no field `{}`", taken.problem, taken.field);
                let names: Vec<String> =
                    source.form.fields.iter().map(|own| format!("`{}`", own.name)).collect();
                return Err(self.at(written, message, &format!("it has {}", names.join(", "))));
            };
            if field.shape != shape || field.space.is_piola() {
                let (found, of) = (crate::form::Shape::from(field.shape), &taken.problem);
                let message = format!(
                    "`{name}` is {}, and `{}` of `{of}` is {found} in `{}`",
                    crate::form::Shape::from(shape),
                    taken.field,
                    field.space
                );
                return Err(self.at(
                    written,
                    message,
                    "take a field in `H1` or `L2` of the same shape",
                ));
            }
            taken.source = Some(Arc::new(source));
        }
        Ok(())
    }

    /// Returns a source on the mesh of another problem.
    fn source_of(
        &self,
        written: &ast::Problem,
        (dim, refine): (usize, usize),
        taken: &SolutionField,
        overrides: &Overrides,
        group: &[String],
    ) -> Result<Problem, Vec<Diagnostic>> {
        let Overrides { mesh, refine: refined, ends, from_program, .. } = overrides;
        let of_mesh = Overrides {
            mesh: mesh.clone(),
            refine: refined.clone(),
            ends: *ends,
            from_program: *from_program,
            ..Overrides::default()
        };
        let source = self.problem_among(&taken.problem, dim, &of_mesh, group)?;
        let meshes = [&written.name.name, &taken.problem].map(|name| self.mesh(name, &of_mesh));
        let [Ok(own), Ok(other)] = meshes else { return Ok(source) };
        let is_same = own == other && source.refine == refine && source.adapt.is_none();
        if !is_same || source.eigen.is_some() {
            let message = format!(
                "the solution of `{}` is not one on the mesh of `{}`",
                taken.problem, written.name.name
            );
            let help =
                "give both problems the same `mesh` and `refine`, without `adapt` or `eigen`";
            return Err(self.at(written, message, help));
        }
        Ok(source)
    }

    fn at(&self, written: &ast::Problem, message: String, help: &str) -> Vec<Diagnostic> {
        let diagnostic = Diagnostic::new(Code::BadValue, message);
        vec![diagnostic.label(written.name.span, "in this problem").help(help)]
    }
}
