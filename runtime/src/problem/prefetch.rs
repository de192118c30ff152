//! Kernels of a planned solve, compiled on other threads from its beginning.

use super::assess::IntegrationBackend;
use super::context::Context;
use super::kernels::operator_request;
use super::plan::{HierarchySettings, SolvePlan};
use crate::kernels::compile::prefetch::Prefetch;
use fem_dsl::problem::PreconditionerSettings;

impl Context {
    /// Starts to compile the kernels of a planned solve on other threads.
    pub(super) fn prefetch(&self, plan: &SolvePlan) -> Prefetch {
        // Each of several processes would ask for the same.
        if self.on.mesh.cut().is_some() {
            return Prefetch::begin([]);
        }
        let (form, elements, on) = (self.form(), &*self.elements, &*self.on);
        let (linear, settings) = (&plan.linear, &plan.linear.preconditioner.settings);
        let by_diagonal = !linear.is_direct() && *settings == PreconditionerSettings::Jacobi;
        let own = self.platform.with_target(plan.represented(&self.platform.target, on));
        let mut all = vec![operator_request(form, elements, on, &own, by_diagonal)];
        if let Some(settings) = HierarchySettings::of(settings).filter(|_| !linear.is_direct()) {
            all.extend(self.hierarchy(&settings).requests().unwrap_or_default());
        }
        all.extend(IntegrationBackend::new(&self.platform).requests(&self.problem, on, elements));
        Prefetch::begin(all)
    }
}
