//! Kernels compiled into the program: plans → their module, or the missing kernel.

use super::Target;
use crate::device::cpu::{LinkedKernels, Module};
use fem_dsl::point::PointForm;
use fem_dsl::problem::Quadrature;
use kernels_gen::choose::MeshFacts;
use kernels_gen::dialect::{Language, SourceFile};
use kernels_gen::element::{LinePoints, Rule, default_rule};
use kernels_gen::generate::interfaces;
use kernels_gen::plan::{Elements, Plan, PlanError};

/// Returns the kernels of `plans`, or the name of the first missing one.
pub(super) fn find(
    form: &PointForm,
    elements: &Elements,
    plans: &[Plan],
    target: &Target,
) -> Result<Result<(SourceFile, Module), String>, PlanError> {
    let isa = target.isa;
    let linked: Vec<LinkedKernels> =
        target.linked.iter().filter(|linked| linked.isa() == isa).copied().collect();
    let kernels = interfaces(form, elements, plans)?;
    let missing = match Module::linked(&linked, &kernels) {
        Ok(module) => {
            let source = SourceFile { kernels, ..SourceFile::empty(Language::Rust) };
            return Ok(Ok((source, module)));
        }
        Err(missing) => missing.name.clone(),
    };
    tracing::info!("`{missing}` was not compiled ahead of time for {isa}");
    Ok(Err(missing))
}

/// Returns the macro setting for these elements, such as `hex(2)`.
pub(super) fn setting(elements: &Elements, facts: &MeshFacts) -> String {
    let Elements { cell, degree, rule, .. } = elements;
    let largest = elements.largest();
    let mut setting = format!("{cell}({degree}");
    if facts.order > 2 {
        setting.push_str(&format!(", order = {}", facts.order));
    }
    if *rule != default_rule(*cell, largest, facts.order, None) {
        let quadrature = match rule {
            Rule::Tensor { line: LinePoints::GaussLobatto(_), .. } => Quadrature::Collocated,
            Rule::Tensor { line, .. } => Quadrature::Degree(2 * line.count().saturating_sub(1)),
            Rule::Simplex { degree, .. } => Quadrature::Degree(*degree),
            Rule::Nodes(element) => Quadrature::Degree(element.degree()),
        };
        setting.push_str(&format!(", quadrature = {quadrature}"));
    }
    setting + ")"
}
