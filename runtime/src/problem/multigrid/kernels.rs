//! Kernels of a hierarchy, as far as they are known before its levels are made.

use super::transfer::{TRANSFERS, rule_of_children, rule_of_degrees, transfer_kernels};
use super::{HierarchyInput, SMOOTHED, has_matrix};
use crate::kernels::compile::facts;
use crate::kernels::compile::prefetch::KernelRequest;
use crate::problem::RunError;
use crate::problem::kernels::{DEFERRED, product_tasks};
use crate::problem::plan::{LevelSettings, MULTIGRID_STOPS, halved};
use fem_dsl::point::PointForm;
use kernels_gen::choose::MeshFacts;
use kernels_gen::generate::elements;
use kernels_gen::plan::{Elements, Task};

impl HierarchyInput<'_> {
    /// Returns the kernels of the levels of the only field, of their transfers and of the coarse-grid solver, in the
    /// order of their use. Coarser meshes are assumed to be like the finest one.
    pub(super) fn level_requests(
        &self,
        settings: LevelSettings,
    ) -> Result<Vec<KernelRequest>, RunError> {
        self.level_requests_with(settings, facts(self.on))
    }

    /// Returns the same for a space with other properties than the field's own.
    pub(super) fn level_requests_with(
        &self,
        settings: LevelSettings,
        facts: MeshFacts,
    ) -> Result<Vec<KernelRequest>, RunError> {
        if self.suited().is_err() {
            return Ok(Vec::new());
        }
        let mesh = &self.on.mesh;
        let below = match self.first_continuous_form() {
            Some((form, k)) => {
                let elements = elements(&form, mesh.cell(), k, mesh.order(), None)?;
                Some((form, elements))
            }
            None => None,
        };
        let request = |form: &PointForm, elements, tasks: &[Task]| KernelRequest {
            form: form.clone(),
            elements,
            facts,
            tasks: tasks.to_vec(),
            deferred: Vec::new(),
            needs_deferred: false,
            target: self.target(),
            device: self.platform.device.clone(),
        };
        let form = below.as_ref().map_or(self.form, |(form, _)| form);
        let level = |elements: Elements| request(form, elements, &SMOOTHED);
        let transfer = |coarse: &Elements, rule| {
            let (form, elements) = transfer_kernels(coarse.fields[0], coarse.components[0], rule)?;
            Ok::<_, RunError>(request(&form, elements, &TRANSFERS))
        };
        // On the same mesh.
        let between = |fine: &Elements, coarse: &Elements| {
            if has_matrix(self.on) {
                return Ok(Vec::new());
            }
            let mut both = vec![transfer(coarse, rule_of_degrees(fine.fields[0])?)?];
            if !self.is_linear() && fine.fields[0].whitney().is_none() {
                both.push(transfer(fine, rule_of_degrees(coarse.fields[0])?)?);
            }
            Ok::<_, RunError>(both)
        };
        let mut fine = self.elements.clone();
        let mut all = vec![request(self.form, fine.clone(), &SMOOTHED)];
        if let Some((_, elements)) = &below {
            all.push(level(elements.clone()));
            all.extend(between(&fine, elements)?);
            fine = elements.clone();
        }
        while fine.fields[0].degree() > 1 && !settings.is_algebraic {
            let degree = fine.fields[0].degree();
            let Some(lower) = fine.degree.checked_sub(degree - halved(degree)) else { break };
            let coarse = elements(form, mesh.cell(), lower, mesh.order(), None)?;
            if coarse.fields[0].degree() >= degree {
                break;
            }
            all.push(level(coarse.clone()));
            all.extend(between(&fine, &coarse)?);
            fine = coarse;
        }
        let dofs = mesh.n_vertices() * fine.components[0];
        let has_coarser = match mesh.cell().is_tensor() {
            true => mesh.n_cells().is_multiple_of(mesh.cell().vertex_count()),
            false => mesh.refined_from().is_some(),
        };
        let continues = !settings.is_algebraic && dofs > MULTIGRID_STOPS && has_coarser;
        if continues && !has_matrix(self.on) {
            all.push(transfer(&fine, rule_of_children(fine.fields[0])?)?);
        }
        let target = self.coarse_target(continues || self.is_factorised(dofs, settings));
        let (tasks, deferred) = (product_tasks(&target), DEFERRED.to_vec());
        all.push(KernelRequest { tasks, deferred, target, ..request(form, fine, &[]) });
        Ok(all)
    }
}
