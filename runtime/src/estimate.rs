//! Estimating: a form's own f0 and f1 at a state → what each cell has of the error of a solution, in units of the energy.
//!
//! With σ the polynomial that f1, pulled back, is at the quadrature points ([`points`]), the discrete equations are those of σ:
//! their residual against all functions is, by parts,
//!
//! ```text
//! R(φ) = Σ_K ∫ (f0 − div σ) φ dx + Σ_F ∫ [σ · n] φ ds + Σ_F on the boundary ∫ (σ · n + f0_tag) φ ds
//! η_K² = s_K a h_K² ‖f0 − div σ‖²_K + Σ_F s_F b h_F ‖[σ · n]‖²_F        a = 1 / 2p (p + 1) (2p + 1),  b = 1 / 8 (2p + 1)
//! ```
//!
//! with a halved where p is odd (R. Verfürth, "A Posteriori Error Estimation Techniques for Finite Element Methods", Oxford 2013;
//! jumps alone: D. W. Kelly, J. P. Gago, O. C. Zienkiewicz and I. Babuška, Int. J. for Numerical Methods in Engineering 19 (1983)).
//! The constants a and b are those with which η is the error of smooth solutions on cubes ([`scale`]). An inner facet's part is
//! halved between its cells. The weights s make an energy of it, ‖u‖² = u · J u with the Jacobian J at the state:
//!
//! ```text
//! s_K = θ / κ_K        κ_K the mean coefficient of ∇u : G ∇u in K,  θ = ∫ ∇u : G ∇u / ∫ |G ∇u|² / κ
//! s_F = min s_K        of both sides (C. Bernardi and R. Verfürth, Numerische Mathematik 85 (2000), for coefficients that jump)
//! ```
//!
//! so that η is that of κ⁻¹ in diffusion with constant κ, whatever units it has. A field whose equation has no flux, as Stokes'
//! pressure, has the dual of L2: ‖f0‖² with the scale that the fluxes' energy has beside ∫ |∇u|². See docs/design/estimate.md.
//!
//! Of several processes each estimates on its part of the mesh; what lies beyond a facet between two of them is told ([`across`]).

mod across;
pub mod adapt;
mod boundary;
mod cells;
mod faces;
mod points;
mod scale;
mod surface;
#[cfg(test)]
mod tests;
mod views;
mod wanted;

use crate::algebra::vector::{Precision, powers};
use crate::device::{Device, DeviceError};
use crate::kernels::compile::{
    CompileError, Execution, Target, compile, compile_for_device, facts,
};
use crate::mesh::Facet;
use crate::operator::functional::fine_rule;
use crate::operator::{BuildError, Operator};
use crate::solve::OperatorError;
use crate::space::discretisation::{AuxValues, Discretisation};
use crate::support::parallel::*;
use across::{Across, Beyond, Met, Other};
use boundary::{Conditions, Sources, leave_free};
use cells::{Cells, Reduction};
use faces::{Faces, Pair};
use fem_dsl::measures::estimated;
use fem_dsl::point::{Part, PointForm};
use kernels_gen::element::ElementError;
use kernels_gen::plan::{Elements, PlanError, Task};
use points::Points;
use scale::Scales;
use std::sync::Arc;
use surface::{Surface, length};
use views::Views;
use wanted::Wanted;

/// The points for which kernels are interpreted at most: compiling takes longer.
const FEW: usize = 100_000;

/// Bytes of what comes from the kernels at once: what caches hold; from a device more, for each transfer waits.
const PIECE: [usize; 2] = [4 << 20, 64 << 20];

/// Why there is no estimate.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum EstimateError {
    /// The elements are not possible.
    #[error(transparent)]
    Plan(#[from] PlanError),
    /// An element is not possible.
    #[error(transparent)]
    Element(#[from] ElementError),
    /// The kernels cannot be made.
    #[error(transparent)]
    Compile(#[from] CompileError),
    /// What they read cannot be made.
    #[error(transparent)]
    Build(#[from] BuildError),
    /// They cannot be run.
    #[error(transparent)]
    Operator(#[from] OperatorError),
    /// A device fails.
    #[error(transparent)]
    Device(#[from] DeviceError),
    /// A state of another length.
    #[error("a state of {found} unknowns does not fit a discretisation of {expected}")]
    Length {
        /// How many there are.
        found: usize,
        /// How many there should be.
        expected: usize,
    },
    /// A part of an estimate that is no number.
    #[error(
        "the estimate of `{field}` is {value} in cell {cell}, at ({}, {}, {})\n\
         help: f0, f1 or their derivatives are not finite there for this state",
        .centre[0], .centre[1], .centre[2]
    )]
    NotFinite {
        /// The field.
        field: String,
        /// The cell.
        cell: usize,
        /// Its centre.
        centre: [f64; 3],
        /// η_K² of the field.
        value: f64,
    },
}

/// What is known of the error of a solution. Where squares of residuals would under- or overflow, all numbers are those of residuals that
/// are a power of two times as large.
#[derive(Clone, Debug, PartialEq)]
pub struct Estimate {
    /// η_K², the sum over the fields, of the cells of the mesh or of the part that this process has of it.
    pub squares: Vec<f64>,
    /// η², their sum over all parts, as all that follows.
    pub total: f64,
    /// ‖u‖², to which η² is compared.
    pub energy: f64,
    /// What each field has of it.
    pub fields: Vec<OfField>,
}

/// What a field has of an estimate.
#[derive(Clone, Debug, PartialEq)]
pub struct OfField {
    /// Its name.
    pub name: String,
    /// Its part of η² from within cells.
    pub residual: f64,
    /// Its part of η² from facets.
    pub jumps: f64,
    /// Its part of ‖u‖².
    pub energy: f64,
}

impl Estimate {
    /// η / ‖u‖; none where there is no energy to compare with.
    pub fn relative(&self) -> Option<f64> {
        let comparable = self.energy > 0.0 && self.energy.is_finite();
        comparable.then(|| (self.total / self.energy).sqrt())
    }
}

/// Estimates the errors of solutions of a form on a mesh.
pub struct Estimator {
    on: Arc<Discretisation>,
    elements: Elements,
    wanted: Wanted,
    operator: Operator,
    views: Views,
    faces: Faces,
    across: Across,
    points: Points,
}

impl Estimator {
    /// Compiles what gives the numbers at the points, on a device where one is given; `params` are the time and the form's
    /// parameters. They are in double precision whatever the solve was in: of its solution only that knows how far it is off. On a part of a
    /// mesh all processes call it, and so they do what it offers.
    ///
    /// # Errors
    ///
    /// Kernels that cannot be made, tables that cannot be filled.
    pub fn new(
        form: &PointForm,
        elements: &Elements,
        on: &Arc<Discretisation>,
        params: &[f64],
        target: &Target,
        device: Option<&Arc<dyn Device>>,
    ) -> Result<Self, EstimateError> {
        let read = estimated(form);
        // What has no flux is solved at the points of the solve's rule, where nothing is left of it; data at these has no other values.
        let rows = || form.integrals.iter().flat_map(|integral| &integral.residual);
        let has_flux = rows().any(|(slot, _)| slot.part != Part::Value);
        let at_points = on.aux.iter().any(|aux| matches!(aux, AuxValues::Points(_)));
        let rule = if has_flux || at_points { elements.rule } else { fine_rule(on) };
        let elements = Elements::new(&read.form, elements.cell, elements.degree, rule)?;
        let wanted = Wanted::new(form, &read, &elements);
        let operator = operator(&read.form, &elements, on, params, target, device)?;
        let views = Views::new(on.mesh.cell());
        let (faces, points) = (Faces::new(&on.mesh, &views), Points::new(rule, &views));
        let sizes = [wanted.fields.len(), points.on_facet, wanted.traced * points.on_facet];
        let across = Across::new(&on.mesh, &faces, sizes);
        let on = Arc::clone(on);
        Ok(Self { on, elements, wanted, operator, views, faces, across, points })
    }

    /// Replaces the time and the parameters.
    ///
    /// # Errors
    ///
    /// A device that fails.
    pub fn set_params(&mut self, params: &[f64]) -> Result<(), EstimateError> {
        Ok(self.operator.set_params(params)?)
    }

    /// What is known of the error of a state, the unknowns of all fields.
    ///
    /// # Errors
    ///
    /// A state of another length, numbers that are not finite, a device that fails. Numbers of a part that are not finite are an error of
    /// its process; what others have is not finite either.
    pub fn estimate(&self, u: &[f64]) -> Result<Estimate, EstimateError> {
        let expected = self.on.n_dofs();
        if u.len() != expected {
            return Err(EstimateError::Length { found: u.len(), expected });
        }
        let mut found = self.scaled(u, 1.0);
        let sum = match &found {
            Ok(estimate) => estimate.total,
            Err(EstimateError::NotFinite { value, .. }) => *value,
            Err(_) => 1.0,
        };
        for &power in powers(sum) {
            found = self.scaled(u, 2f64.powi(power));
            if found.as_ref().is_ok_and(|estimate| powers(estimate.total).is_empty()) {
                break;
            }
        }
        found
    }

    /// The same of residuals that are `factor` times as large.
    fn scaled(&self, u: &[f64], factor: f64) -> Result<Estimate, EstimateError> {
        let mut state = self.operator.vector();
        state.set(u);
        let rule = self.elements.rule;
        let reduction = Reduction::new(&self.wanted, &self.points, &self.faces, rule);
        let mut cells = reduction.begin(self.on.mesh.n_cells());
        let asked = &self.wanted.asked;
        let piece = PIECE[usize::from(self.operator.is_on_device())];
        let most = piece / (8 * asked.numbers * self.points.count).max(1);
        self.operator.fluxes(&state, asked, most.max(64), |range, numbers| {
            if factor == 1.0 {
                reduction.take(range, numbers, &mut cells);
            } else {
                let mut scaled = numbers.to_vec();
                self.wanted.scale(factor, self.points.count, &mut scaled);
                reduction.take(range, &scaled, &mut cells);
            }
            Ok::<_, EstimateError>(())
        })?;
        let surface = Surface::new(&self.on.mesh, rule, &self.views)?;
        let mut of_facets = Vec::new();
        for integral in 0..self.on.facets.len() {
            let mut numbers = self.operator.fluxes_on_facets(&state, asked, integral)?;
            if !numbers.is_empty() {
                self.wanted.scale(factor, self.points.on_facet, &mut numbers);
                of_facets.push((integral, numbers));
            }
        }
        let sources = Sources::new(&self.on, &self.wanted, &surface.weights, of_facets);
        let scales = Scales::new(&self.wanted, &cells, &sources, &self.on.mesh);
        self.gather(&cells, &surface, &sources, &scales)
    }

    /// The squares of all cells, from what they and their facets have.
    fn gather(
        &self,
        cells: &Cells,
        surface: &Surface<'_>,
        sources: &Sources<'_>,
        scales: &Scales,
    ) -> Result<Estimate, EstimateError> {
        let n = self.on.mesh.n_cells();
        let beyond = self.across.beyond(&self.faces, cells, surface, scales);
        let (mut squares, mut sums) = (vec![0.0; n], Vec::new());
        let mut error = None;
        for (field, of) in self.wanted.fields.iter().enumerate() {
            let inside = |cell: usize| {
                let weight = scale::residual(of, self.on.mesh.diameter(cell), self.on.mesh.dim());
                let size = weight * cells.share(cell, field).residual;
                scales.of(cell, field) * size
            };
            let inside: Vec<f64> = (0..n).into_par_iter().with_min_len(1024).map(inside).listed();
            let jumps = self.jumps(field, (cells, &beyond), surface, sources, scales)?;
            for (cell, (inside, jump)) in inside.iter().zip(&jumps).enumerate() {
                let value = inside + jump;
                if !value.is_finite() && error.is_none() {
                    let (field, centre) = (of.name.clone(), self.on.mesh.centre(cell));
                    // Of a part its number among all, where that is known.
                    let leaves = self.on.mesh.cut().and_then(|_| self.on.mesh.leaves());
                    let cell = leaves.map_or(cell, |leaves| leaves[cell] as usize);
                    error = Some(EstimateError::NotFinite { field, cell, centre, value });
                }
                squares[cell] += value;
            }
            sums.extend([sum(&inside), sum(&jumps)]);
        }
        sums.push(sum(&squares));
        // What one process cannot estimate is known to none.
        self.on.mesh.sum_in_all(&mut sums);
        if let Some(error) = error {
            return Err(error);
        }
        let own = self.wanted.fields.iter().zip(sums.chunks_exact(2)).zip(&scales.energies);
        let of = |((of, sums), &energy): ((&wanted::OfField, &[f64]), &f64)| OfField {
            name: of.name.clone(),
            residual: sums[0],
            jumps: sums[1],
            energy,
        };
        let fields: Vec<OfField> = own.map(of).collect();
        let energy = fields.iter().map(|field| field.energy).sum();
        Ok(Estimate { total: sums.last().copied().unwrap_or(0.0), squares, energy, fields })
    }

    /// What the facets of each cell have of a field's part of η_K².
    fn jumps(
        &self,
        field: usize,
        (cells, beyond): (&Cells, &Beyond<'_>),
        surface: &Surface<'_>,
        sources: &Sources<'_>,
        scales: &Scales,
    ) -> Result<Vec<f64>, EstimateError> {
        let of = &self.wanted.fields[field];
        let mut all = vec![0.0; self.on.mesh.n_cells()];
        if !of.has_flux {
            return Ok(all);
        }
        let on_pair = |pair: &Pair| {
            let both = pair.sides.map(|side| side.cell as usize);
            let [a, b] = both.map(|cell| scales.of(cell, field));
            if of.continuous {
                let half = 0.5 * a.min(b) * self.jump(field, pair, cells, surface);
                return [half, half];
            }
            // Nothing joins the cells: each has a boundary of its own.
            let [first, second] = pair.sides.map(|side| self.alone(field, side, cells, surface));
            [a * first, b * second]
        };
        let pairs: Vec<[f64; 2]> =
            self.faces.pairs.par_iter().with_min_len(256).map(on_pair).listed();
        for (pair, values) in self.faces.pairs.iter().zip(&pairs) {
            for (side, value) in pair.sides.iter().zip(values) {
                all[side.cell as usize] += value;
            }
        }
        let on_met = |met: &Met| {
            let (cell, other) = (met.own.cell as usize, beyond.of(met));
            let own = scales.of(cell, field);
            match of.continuous {
                true => {
                    0.5 * own.min(other.scales[field])
                        * self.across(field, met, cells, surface, other)
                }
                false => own * self.alone(field, met.own, cells, surface),
            }
        };
        let met: Vec<f64> = self.across.met.par_iter().with_min_len(256).map(on_met).listed();
        for (met, value) in self.across.met.iter().zip(&met) {
            all[met.own.cell as usize] += value;
        }
        let conditions = Conditions::new(&self.on, &self.on.fields[field])?;
        let on_boundary = |&facet: &Facet| {
            let cell = facet.cell as usize;
            let square = self.beyond(field, facet, cells, (surface, sources), &conditions);
            scales.of(cell, field) * square
        };
        let boundary = self.faces.boundary.par_iter().with_min_len(256);
        let boundary: Vec<f64> = boundary.map(on_boundary).listed();
        for (facet, value) in self.faces.boundary.iter().zip(&boundary) {
            all[facet.cell as usize] += value;
        }
        Ok(all)
    }

    /// The components of a field among those of a facet's traces.
    fn own<'n>(&self, field: usize, numbers: &'n [f64]) -> &'n [f64] {
        let (of, points) = (&self.wanted.fields[field], self.points.on_facet);
        &numbers[of.first_trace * points..][..of.components.len() * points]
    }

    /// b h_F ∫ [σ · n]² ds between two cells.
    fn jump(&self, field: usize, pair: &Pair, cells: &Cells, surface: &Surface<'_>) -> f64 {
        let [first, second] = pair.sides.map(|side| (side.cell as usize, usize::from(side.local)));
        let own = self.own(field, cells.trace(first.0, first.1)).to_vec();
        let other = self.own(field, cells.trace(second.0, second.1));
        let sum = self.sum_of(own, other, pair.child);
        self.square(field, first, self.view(first), surface, &sum)
    }

    /// The same between a cell of this part and one of another. The facet is that of the child, if there is one.
    fn across(
        &self,
        field: usize,
        met: &Met,
        cells: &Cells,
        surface: &Surface<'_>,
        other: Other<'_>,
    ) -> f64 {
        let place = (met.own.cell as usize, usize::from(met.own.local));
        let own = self.own(field, cells.trace(place.0, place.1));
        let theirs = self.own(field, other.trace);
        if met.is_parent {
            let sum = self.sum_of(theirs.to_vec(), own, met.child);
            return self.square_of(field, surface, other.diameter, &sum, |q| other.areas[q]);
        }
        let sum = self.sum_of(own.to_vec(), theirs, met.child);
        self.square(field, place, self.view(place), surface, &sum)
    }

    /// What flows out of two cells through the facet of the first, which may be a child of that of the second.
    fn sum_of(&self, mut sum: Vec<f64>, other: &[f64], child: Option<u8>) -> Vec<f64> {
        let (points, dim) = (self.points.on_facet, self.points.dim());
        let components = sum.chunks_exact_mut(points).zip(other.chunks_exact(points));
        components.for_each(|(sum, other)| match child {
            None => sum.iter_mut().zip(other).for_each(|(sum, other)| *sum += other),
            Some(child) => {
                // A parameter of the child's facet is half of one of its parent's.
                let (mut part, share) = (other.to_vec(), 0.5f64.powi(dim as i32 - 1));
                self.points.of_child(child, &mut part);
                sum.iter_mut().zip(&part).for_each(|(sum, other)| *sum += share * other);
            }
        });
        sum
    }

    /// The same of a cell with nothing beyond.
    fn alone(&self, field: usize, side: faces::Side, cells: &Cells, surface: &Surface<'_>) -> f64 {
        let place = (side.cell as usize, usize::from(side.local));
        let own = self.own(field, cells.trace(place.0, place.1));
        scale::ALONE * self.square(field, place, self.view(place), surface, own)
    }

    /// The same on the boundary, where conditions hold a part and integrals over facets add one.
    fn beyond(
        &self,
        field: usize,
        facet: Facet,
        cells: &Cells,
        (surface, sources): (&Surface<'_>, &Sources<'_>),
        conditions: &Conditions<'_>,
    ) -> f64 {
        let held = conditions.on(facet);
        if held.components.iter().all(|held| *held) {
            return 0.0;
        }
        let place = (facet.cell as usize, usize::from(facet.local));
        let mut residual = self.own(field, cells.trace(place.0, place.1)).to_vec();
        let own = residual.chunks_exact_mut(self.points.on_facet);
        for (component, tested) in own.zip(&self.wanted.fields[field].components) {
            tested.value.iter().for_each(|&number| sources.add(facet, number, component));
        }
        let view = self.view(place);
        let area = |q: usize| surface.area(place.0, place.1, view, q);
        leave_free(&held, &self.points, &mut residual, area);
        scale::ALONE * self.square(field, place, view, surface, &residual)
    }

    fn view(&self, (cell, local): (usize, usize)) -> u8 {
        self.faces.view(cell, local)
    }

    /// b h_F ∫ r² ds of a residual r ds a parameter, `[component][point]`, in the view of a cell's facet.
    fn square(
        &self,
        field: usize,
        (cell, local): (usize, usize),
        view: u8,
        surface: &Surface<'_>,
        residual: &[f64],
    ) -> f64 {
        let area = |q: usize| length(&surface.area(cell, local, view, q));
        self.square_of(field, surface, surface.diameter(cell, local), residual, area)
    }

    /// The same on a facet of a diameter, with |n ds| a parameter at a point.
    fn square_of(
        &self,
        field: usize,
        surface: &Surface<'_>,
        diameter: f64,
        residual: &[f64],
        area: impl Fn(usize) -> f64,
    ) -> f64 {
        let points = self.points.on_facet;
        let sum: f64 = (0..points)
            .map(|q| {
                let squares = residual.iter().skip(q).step_by(points).map(|r| r * r);
                let square: f64 = squares.sum();
                if square == 0.0 { 0.0 } else { surface.weights[q] * square / area(q) }
            })
            .sum();
        scale::jump(&self.wanted.fields[field], diameter, self.on.mesh.dim()) * sum
    }
}

/// Kernels that give the numbers at the points.
fn operator(
    form: &PointForm,
    elements: &Elements,
    on: &Arc<Discretisation>,
    params: &[f64],
    target: &Target,
    device: Option<&Arc<dyn Device>>,
) -> Result<Operator, EstimateError> {
    let (precision, facts) = (Precision::F64, facts(on));
    // What single precision has rounded away is not to be found with it.
    let device = device.filter(|_| target.precision == Precision::F64);
    let tasks = [Task::Flux];
    if let Some(device) = device {
        let (device, wishes) = (Arc::clone(device), &target.wishes);
        let compiled =
            compile_for_device(form, elements, &facts, &tasks, device, precision, wishes)?;
        return Ok(Operator::on_device(Arc::clone(on), Arc::new(compiled), params, false)?);
    }
    let few = on.mesh.n_cells() * elements.rule.count() < FEW;
    let execution = match target.execution {
        Execution::Automatic if few => Execution::Interpreted,
        other => other,
    };
    let target = Target { precision, execution, linked: &[], ..*target };
    let compiled = compile(form, elements, &facts, &tasks, &target)?;
    let (module, kernels) = (compiled.module, &compiled.kernels);
    Ok(Operator::on_host(Arc::clone(on), module, kernels, precision, params, false)?)
}

/// Σ by halves, so that rounding grows with the logarithm of their number, and does not depend on threads.
fn sum(numbers: &[f64]) -> f64 {
    if numbers.len() <= 64 {
        return numbers.iter().sum();
    }
    let (left, right) = numbers.split_at(numbers.len() / 2);
    sum(left) + sum(right)
}
