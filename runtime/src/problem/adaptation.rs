//! The mesh of an adaptive run: error estimate of a state → marks → next mesh, by the rule of `adapt`.
//!
//! With several processes all gather the squared indicators and mark identically. For quadrilaterals and hexahedra, each
//! process builds its part of the next forest. Triangles and tetrahedra are bisected redundantly on every process.

use super::RunError;
use super::collective_errors::{agree_on_error, together};
use super::context::{Context, with_periodic_sides};
use super::platform::Platform;
use crate::estimate::adapt::AdaptiveMesh;
use crate::estimate::{ErrorEstimate, Estimator};
use crate::mesh::Mesh;
use crate::mesh::distributed::PartInterface;
use crate::mesh::refine::mark::{MarkError, coarsen, mark};
use crate::processes::{ProcessGroup, SingleProcess};
use crate::space::Space;
use crate::space::discretisation::Discretisation;
use crate::support::timers::in_step;
use fem_dsl::problem::{AdaptiveRefinement, Problem};
use std::borrow::Cow;
use std::sync::Arc;

/// Factor of θ while the next mesh has too many degrees of freedom.
const LESS: f64 = 0.7;
/// Ratio of predicted degrees of freedom to the limit from which no mesh is built.
const NEAR: f64 = 1.2;
/// Number of such reductions; then the mesh is only coarsened.
const REDUCTIONS: usize = 12;

/// Mesh of an adaptive run, with the rule by which it changes.
pub(super) struct MeshAdaptation {
    rule: AdaptiveRefinement,
    adaptive: AdaptiveMesh,
    group: Arc<dyn ProcessGroup>,
}

/// Result of an adaptation.
pub(super) enum NextMesh {
    /// Another mesh.
    Mesh(Arc<Mesh>),
    /// The same mesh, with an optional reason.
    Same(Option<String>),
}

impl MeshAdaptation {
    /// Starts with the mesh of a problem.
    ///
    /// # Errors
    ///
    /// Periodic sides that do not match, cells that cannot be divided.
    pub(super) fn new(
        problem: &Problem,
        rule: &AdaptiveRefinement,
        mesh: Arc<Mesh>,
    ) -> Result<Self, RunError> {
        let group = mesh.cut().map(|cut| Arc::clone(cut.group()));
        let mesh = match mesh.cut() {
            Some(cut) => Arc::clone(cut.whole()?),
            None => mesh,
        };
        let adaptive = AdaptiveMesh::new(with_periodic_sides(problem, mesh)?)?;
        let group = group.unwrap_or_else(|| Arc::new(SingleProcess));
        Ok(Self { rule: *rule, adaptive, group })
    }

    /// Builds this process's part of the current mesh.
    ///
    /// # Errors
    ///
    /// Cells that fold when divided.
    pub(super) fn part(&self) -> Result<Arc<Mesh>, RunError> {
        Ok(self.adaptive.part(&self.group)?)
    }

    /// Marks cells and builds the next mesh, unless a limit is reached.
    ///
    /// # Errors
    ///
    /// Indicators that are not finite, cells that fold when divided.
    pub(super) fn refine(
        &mut self,
        on: &Discretisation,
        estimate: &ErrorEstimate,
    ) -> Result<NextMesh, RunError> {
        let squares = by_leaves(&on.mesh, &estimate.squares)?;
        let shares = [self.rule.fraction, self.rule.coarsen];
        let [refine, coarser] = match self.marks(&squares, shares) {
            Err(error @ MarkError::Nothing) => return Ok(NextMesh::Same(Some(error.to_string()))),
            marks => marks?,
        };
        if self.rule.levels.is_some() && !refine.contains(&true) && !coarser.contains(&true) {
            let levels = self.rule.levels.unwrap_or_default();
            return Ok(NextMesh::Same(Some(format!(
                "`adapt` stops: all cells with large errors are divided {levels} times, `levels`"
            ))));
        }
        let mut adaptive = self.adaptive.clone();
        match adaptive.adapt_leaves(&refine, &coarser) {
            Err(finest) if finest.is_finest() => {
                return Ok(NextMesh::Same(Some(format!("`adapt` stops: {finest}"))));
            }
            adapted => adapted?,
        };
        let next = self.built(on, &adaptive)?;
        let unknowns = unknowns(on, &next);
        if self.rule.max_dofs.is_some_and(|most| unknowns > most) {
            return Ok(NextMesh::Same(Some(format!(
                "`adapt` stops: the next step would have {unknowns} unknowns, more than `max_dofs`"
            ))));
        }
        self.adaptive = adaptive;
        Ok(NextMesh::Mesh(next))
    }

    /// Lets the mesh follow a solution: cells are divided where the error is large, as far as the limits allow, and merged
    /// where it is small if `merges`. `None` if the mesh stays as it is.
    ///
    /// # Errors
    ///
    /// Indicators that are not finite, cells that fold when divided.
    pub(super) fn follow(
        &mut self,
        on: &Discretisation,
        estimate: &ErrorEstimate,
        merges: bool,
    ) -> Result<Option<Arc<Mesh>>, RunError> {
        let squares = by_leaves(&on.mesh, &estimate.squares)?;
        let met = |until: f64| estimate.relative().is_some_and(|found| found <= until);
        let is_met = self.rule.until.is_some_and(met);
        let mut fraction = if is_met { 0.0 } else { self.rule.fraction };
        for reduction in 0..=REDUCTIONS {
            if reduction == REDUCTIONS {
                fraction = 0.0;
            }
            let shares = [fraction, if merges { self.rule.coarsen } else { 0.0 }];
            let [refine, coarser] = match self.marks(&squares, shares) {
                Err(MarkError::Nothing) => return Ok(None),
                marks => marks?,
            };
            if !refine.contains(&true) && !coarser.contains(&true) {
                return Ok(None);
            }
            let mut adaptive = self.adaptive.clone();
            adaptive.adapt_leaves(&refine, &coarser)?;
            if adaptive.has_same_cells(&self.adaptive) {
                return Ok(None);
            }
            let most = self.rule.max_dofs.filter(|_| fraction > 0.0).map(|most| most as f64);
            let predicted = adaptive.n_cells() as f64 / on.mesh.cells_in_all() as f64;
            let predicted = predicted * on.dofs_in_all() as f64;
            let is_beyond = |unknowns: f64| most.is_some_and(|most| unknowns > most);
            if !is_beyond(predicted / NEAR) {
                let next = self.built(on, &adaptive)?;
                if !is_beyond(unknowns(on, &next) as f64) {
                    self.adaptive = adaptive;
                    return Ok(Some(next));
                }
            }
            fraction *= LESS;
        }
        Ok(None)
    }

    /// Marks leaves to divide and to merge, by their shares of the sum of squares; 0 marks none.
    fn marks(
        &self,
        squares: &[f64],
        [fraction, merged]: [f64; 2],
    ) -> Result<[Vec<bool>; 2], MarkError> {
        let mut refine = match fraction > 0.0 {
            true => mark(squares, fraction)?,
            false => vec![false; squares.len()],
        };
        let mut coarser = match merged > 0.0 {
            true => coarsen(squares, merged)?,
            false => vec![false; squares.len()],
        };
        coarser.iter_mut().zip(&refine).for_each(|(coarser, refine)| *coarser &= !refine);
        if let Some(levels) = self.rule.levels {
            let is_coarse = |leaf: usize| self.adaptive.level(leaf) < levels;
            refine.iter_mut().enumerate().for_each(|(leaf, refine)| *refine &= is_coarse(leaf));
        }
        Ok([refine, coarser])
    }

    /// Builds this process's part of the mesh of a hierarchy. Collective.
    fn built(&self, on: &Discretisation, adaptive: &AdaptiveMesh) -> Result<Arc<Mesh>, RunError> {
        // Cells may fold on one process only.
        agree_on_error(&on.mesh, adaptive.part(&self.group).map_err(RunError::from))
    }
}

/// Estimates the error of a state, whose time, data and derivatives are those of the context. Collective.
///
/// # Errors
///
/// Kernels that cannot be compiled, indicators that are not finite.
pub(super) fn estimated(context: &Context, u: &[f64]) -> Result<ErrorEstimate, RunError> {
    let Context { elements, on, parameters, platform, .. } = context;
    let Platform { target, device, .. } = platform;
    let estimate = || {
        let (form, params) = (context.form(), &parameters.values);
        let estimator = Estimator::new(form, elements, on, params, target, device.as_ref())?;
        Ok(estimator.estimate(u)?)
    };
    in_step("error estimate", || together(&on.mesh, estimate()))
}

/// Returns the number of degrees of freedom of the fields of a discretisation on another mesh.
fn unknowns(on: &Discretisation, next: &Mesh) -> usize {
    let of_field = |space: &Space| Space::count_in_all(next, space.element()) * space.components();
    on.fields.iter().map(|field| of_field(&field.space)).sum()
}

/// Gathers cell values of all subdomains, in leaf order.
fn by_leaves(mesh: &Mesh, own: &[f64]) -> Result<Vec<f64>, RunError> {
    let whole = |cut: &Arc<PartInterface>| -> Result<Vec<u32>, RunError> {
        let leaves = cut.whole()?.leaves().unwrap_or_default();
        Ok(cut.cells()?.iter().map(|&cell| leaves[cell as usize]).collect())
    };
    let leaves = match (mesh.leaves(), mesh.cut()) {
        (None, Some(cut)) => Cow::Owned(whole(cut)?),
        (leaves, _) => leaves.unwrap_or_default(),
    };
    let mut all = vec![0.0; mesh.cells_in_all()];
    let mut put = |leaf: u32, number: f64| all[leaf as usize] = number;
    let Some(cut) = mesh.cut() else {
        leaves.iter().zip(own).for_each(|(&leaf, &number)| put(leaf, number));
        return Ok(all);
    };
    let mut bytes = Vec::with_capacity(12 * own.len());
    for (leaf, number) in leaves.iter().zip(own) {
        bytes.extend_from_slice(&leaf.to_le_bytes());
        bytes.extend_from_slice(&number.to_le_bytes());
    }
    for bytes in cut.group().gather(&bytes) {
        for one in bytes.chunks_exact(12) {
            let (leaf, number) = one.split_at(4);
            let leaf = u32::from_le_bytes(leaf.try_into().unwrap_or_default());
            put(leaf, f64::from_le_bytes(number.try_into().unwrap_or_default()));
        }
    }
    Ok(all)
}
