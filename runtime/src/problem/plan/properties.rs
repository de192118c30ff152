//! Facts that decide how a problem is solved: [`ProblemProperties`], of a discretisation or of counts alone.

use crate::mesh::EntityCounts;
use crate::problem::vector_fields::{has_kernel, has_vector_functions};
use crate::space::discretisation::Discretisation;
use crate::support::memory::MemoryBudget;
use fem_dsl::point::{
    Coefficient, Part, PointForm, eliminated, is_symmetric_without, magnitude, mixed, switches,
};
use kernels_gen::plan::Elements;

/// Processors and devices that a solve uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SolveResources {
    /// Cores of all processes.
    pub cores: usize,
    /// Processes.
    pub processes: usize,
    /// True if operators run on devices.
    pub has_device: bool,
}

impl SolveResources {
    /// One process with so many cores.
    pub fn cores(cores: usize) -> Self {
        Self { cores: cores.max(1), processes: 1, has_device: false }
    }

    /// The same with devices.
    pub fn with_device(self, has_device: bool) -> Self {
        Self { has_device, ..self }
    }

    /// The same cores, of several processes.
    pub fn in_processes(self, processes: usize) -> Self {
        Self { processes, ..self }
    }

    /// Returns whether the mesh is partitioned.
    pub fn is_distributed(self) -> bool {
        self.processes > 1
    }
}

/// Size of a system of equations, without fields that are eliminated cell by cell.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SystemSize {
    /// Dimension of the mesh.
    pub dim: usize,
    /// Degrees of freedom.
    pub unknowns: f64,
    /// Components of all fields.
    pub components: f64,
    /// The highest degree.
    pub degree: f64,
}

impl SystemSize {
    /// The size of a discretisation without the `eliminated` fields.
    pub(super) fn of(on: &Discretisation, eliminated: &[usize]) -> Self {
        let stays = |number: &usize| !eliminated.contains(number);
        let spaces = || (0..on.fields.len()).filter(stays).map(|number| &on.fields[number].space);
        let components: usize = spaces().map(|space| space.components()).sum();
        let degree = spaces().map(|space| space.element().degree()).max().unwrap_or(1);
        let local: usize = eliminated
            .iter()
            .map(|&number| {
                let space = &on.fields[number].space;
                on.mesh.cells_in_all() * space.element().count() * space.components()
            })
            .sum();
        let (unknowns, dim) = (on.dofs_in_all().saturating_sub(local) as f64, on.mesh.dim());
        Self { dim, unknowns, components: components as f64, degree: degree as f64 }
    }

    fn counted(elements: &Elements, counts: &EntityCounts, eliminated: &[usize]) -> Self {
        let all = || elements.fields.iter().zip(&elements.components).enumerate();
        let fields = || all().filter(|(number, _)| !eliminated.contains(number));
        let unknowns =
            fields().map(|(_, (element, &own))| own as f64 * counts.nodes(*element)).sum();
        Self {
            dim: counts.cell.dim(),
            unknowns,
            components: fields().map(|(_, (_, &own))| own).sum::<usize>() as f64,
            degree: fields().map(|(_, (element, _))| element.degree()).max().unwrap_or(1) as f64,
        }
    }
}

/// Facts of a problem that decide how it is solved.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ProblemProperties {
    /// The size of the system.
    pub size: SystemSize,
    /// True if the residual is affine in u.
    pub is_linear: bool,
    /// True if the Jacobian is symmetric once fields are eliminated cell by cell.
    pub is_symmetric: bool,
    /// True if some field has no term with itself.
    pub is_saddle: bool,
    /// True if it is the mixed form of diffusion ([`mixed`]).
    pub is_mixed: bool,
    /// True if all fields are discontinuous and coupled between cells.
    pub has_cell_blocks: bool,
    /// True if functions of some field are vectors, of H(curl) or H(div).
    pub has_vector_functions: bool,
    /// True if each of these has a definite block ([`magnitude`]), and no field is without a term with itself.
    pub has_vector_blocks: bool,
    /// True if there is one field.
    pub is_single_field: bool,
    /// True if it is in H1 and the Jacobian pairs gradients with gradients and values with values alone: without transport,
    /// levels serve an unsymmetric Jacobian, too.
    pub is_diffusive: bool,
    /// True if gradients or curls of such a field are in the kernel of the Jacobian.
    pub has_vector_kernel: bool,
    /// True if the form switches with the solution, as at a contact.
    pub has_switches: bool,
    /// Terms of the widest affine constraint.
    pub widest: usize,
    /// Processors and devices.
    pub resources: SolveResources,
    /// Bytes of the memory budget; infinite where it is unknown.
    pub room: f64,
}

impl ProblemProperties {
    /// The properties of a form on its discretisation, whose operator is on a device or not.
    pub fn of(form: &PointForm, on: &Discretisation, has_device: bool) -> Self {
        let processes = on.mesh.cut().map_or(1, |cut| cut.group().size());
        let resources = SolveResources {
            cores: processes * rayon::current_num_threads(),
            processes: if on.mesh.cut().is_some() { processes.max(2) } else { 1 },
            has_device,
        };
        let size = SystemSize::of(on, &eliminated(form));
        Self { widest: on.affine.widest(), ..Self::of_form(form, size, resources) }
    }

    /// The properties of a form on a mesh with these counts, before anything is made.
    pub fn counted(
        form: &PointForm,
        elements: &Elements,
        counts: &EntityCounts,
        resources: SolveResources,
    ) -> Self {
        Self::of_form(form, SystemSize::counted(elements, counts, &eliminated(form)), resources)
    }

    /// The properties of an eigenvalue problem, whose fields all stay.
    pub(in crate::problem) fn of_modes(
        form: &PointForm,
        on: &Discretisation,
        has_device: bool,
    ) -> Self {
        Self { size: SystemSize::of(on, &[]), ..Self::of(form, on, has_device) }
    }

    /// The properties of an eigenvalue problem, before anything is made.
    pub fn counted_of_modes(
        form: &PointForm,
        elements: &Elements,
        counts: &EntityCounts,
        resources: SolveResources,
    ) -> Self {
        Self::of_form(form, SystemSize::counted(elements, counts, &[]), resources)
    }

    fn of_form(form: &PointForm, size: SystemSize, resources: SolveResources) -> Self {
        Self {
            size,
            is_linear: form.integrals.iter().all(|integral| integral.linear),
            is_symmetric: is_symmetric_without(form, &eliminated(form)),
            is_saddle: is_saddle(form),
            is_mixed: mixed(form).is_some(),
            has_cell_blocks: form.fields.iter().all(|field| !field.space.is_continuous())
                && form.integrals.iter().any(|integral| integral.region.is_interior()),
            has_vector_functions: has_vector_functions(form),
            has_vector_blocks: has_vector_blocks(form),
            is_single_field: form.fields.len() == 1,
            is_diffusive: is_diffusive(form),
            has_vector_kernel: has_kernel(form).is_some(),
            has_switches: !switches(form).is_empty(),
            widest: 0,
            resources,
            room: MemoryBudget::now().map_or(f64::INFINITY, |room| room.bytes),
        }
    }

    /// The properties of the whole problem at one process without a device.
    pub(in crate::problem) fn at_one_process(self) -> Self {
        Self {
            resources: SolveResources { processes: 1, has_device: false, ..self.resources },
            ..self
        }
    }
}

fn has_vector_blocks(form: &PointForm) -> bool {
    let of_vectors = |field: &usize| form.fields[*field].space.is_piola();
    let mut fields = (0..form.fields.len()).filter(of_vectors);
    !is_saddle(form) && fields.all(|field| magnitude(form, field).is_some())
}

fn is_diffusive(form: &PointForm) -> bool {
    let [field] = &form.fields[..] else { return false };
    let is_h1 = field.space.is_continuous() && !field.space.is_piola();
    let pairs_alike = |entry: &Coefficient| {
        matches!(
            (entry.test.part, entry.trial.part),
            (Part::Value, Part::Value) | (Part::Derivative(_), Part::Derivative(_))
        )
    };
    is_h1 && form.integrals.iter().all(|integral| integral.jacobian.iter().all(pairs_alike))
}

/// Returns whether some field has no term with itself.
pub(in crate::problem) fn is_saddle(form: &PointForm) -> bool {
    let coefficients = || form.integrals.iter().flat_map(|integral| &integral.jacobian);
    (0..form.fields.len()).any(|field| {
        !coefficients().any(|entry| entry.test.field == field && entry.trial.field == field)
    })
}
