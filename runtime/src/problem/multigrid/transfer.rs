//! Grid transfer between two spaces: kernels on coarse cells write the fine degrees of freedom at points of the cells,
//! and read them for the transpose.
//!
//! ```text
//! prolong    u_f += P u_c,   (P u_c)_i = Σ_b φ_b(ξ_i) u_b   in the cell that owns i
//! restrict   r_c  = Pᵀ r_f
//! ```
//!
//! A coarse function is single-valued where cells meet, so that any adjacent cell may own a fine degree of freedom. The
//! owner is the first such cell, on the lowest rank that can evaluate it ([`owners`]). Constrained fine DoFs have no
//! owner; coarse corrections are 0 in constrained DoFs.
//!
//! Degrees of freedom of H(curl) and H(div) are integrals of the reference functions' components. The integrals of a
//! coarse function are exact, so that the prolongation is the inclusion of the spaces.

mod owners;
mod positions;
mod states;

use super::super::RunError;
use super::super::kernels::compile_for;
use super::super::platform::Platform;
use crate::algebra::sparse::Csr;
use crate::algebra::vector::Vector;
use crate::device::VectorLayout;
use crate::mesh::partition::Partition;
use crate::mesh::{AffineMap, CoarsenedMesh};
use crate::operator::{Operator, TableCache};
use crate::processes::any;
use crate::processes::interface_exchange::InterfaceExchange;
use crate::solve::{GridTransfer, OperatorError};
use crate::space::Space;
use crate::space::discretisation::{Discretisation, Field, TargetRows, TransferTargets};
use crate::support::parallel::*;
use fem_dsl::point::PointForm;
use fem_dsl::program::compile;
use fem_dsl::source::Source;
use kernels_gen::element::{Element, Lagrange, LinePoints, Rule};
use kernels_gen::plan::{Elements, PlanError, Task};
use owners::NodeOwners;
pub(super) use positions::keep_axes;
use positions::{places, rows};
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// Marks an absent degree of freedom.
const NONE: u32 = u32::MAX;
/// Tolerance for equal points of a reference cell.
const NEAR: f64 = 1e-9;
/// Minimum number of cells per task.
const GRAIN: usize = 256;

/// A transfer by kernels.
pub struct KernelTransfer {
    operator: Operator,
    /// Synchronises fine DoFs between processes, if an owner is not on the lowest rank of its DoF.
    naming: Option<Arc<InterfaceExchange>>,
}

/// Execution environment of transfer kernels.
#[derive(Clone)]
pub struct TransferEnvironment {
    /// Processor and device.
    pub platform: Platform,
    /// Tables shared with the coarse operator; on a device, with its layout.
    pub table_cache: TableCache,
    /// Layout of fine vectors, if it is not the natural order.
    pub fine: Option<VectorLayout>,
}

/// Degrees of freedom that each cell owns.
#[derive(Debug)]
struct OwnedDofs {
    /// The fine field.
    field: Field,
    /// Layout of fine vectors, if it is not the natural order.
    layout: Option<VectorLayout>,
    /// Points per cell.
    points: usize,
    /// For each listed node of a cell, its place in the first row.
    places: Vec<u32>,
    /// True if a cell may be its own neighbour, which owns a node once.
    periodic: bool,
    owners: NodesOfCells,
}

/// Fine nodes at the points of coarse cells.
enum NodesAtPoints<'a> {
    /// All nodes of a space on the same cells, numbered chunk by chunk of its partition.
    OfSpace(&'a Partition),
    /// `[cell][point]`; `NONE` where another cell or process owns the node.
    Listed(Vec<u32>),
}

/// Nodes at the points of cells, and their owners.
#[derive(Debug)]
enum NodesOfCells {
    /// The nodes are those of the fine space. Each cell owns those of a range, which it is the first to touch.
    FirstTouched(Vec<Range<u32>>),
    /// Nodes, `[cell][point]`, and the first cell of each node.
    Listed { nodes: Vec<u32>, first: Vec<u32> },
}

impl NodesOfCells {
    /// The nodes that each cell touches first. Nodes of a chunk are numbered cell by cell.
    fn first_touched(space: &Space, partition: &Partition) -> Self {
        let mut ranges = vec![0..0; space.nodes().len() / space.nodes_per_cell()];
        let (mut rest, mut chunks) = (ranges.as_mut_slice(), Vec::new());
        let mut all: Vec<usize> = (0..partition.chunks().len()).collect();
        all.sort_unstable_by_key(|&chunk| partition.chunks()[chunk].cells.start);
        for chunk in all {
            let cells = partition.chunks()[chunk].cells.clone();
            let (own, after) = rest.split_at_mut(cells.len());
            chunks.push((space.new_nodes(chunk), cells, own));
            rest = after;
        }
        chunks.into_par_iter().each(|(new, cells, own)| {
            let mut next = new.start as u32;
            for (cell, own) in cells.zip(own) {
                let nodes = space.cell_nodes(cell).iter().map(|node| node + 1);
                let end = nodes.filter(|&end| end as usize <= new.end).max();
                *own = next..end.unwrap_or(next).max(next);
                next = own.end;
            }
        });
        Self::FirstTouched(ranges)
    }

    /// Nodes at points; the first cell with a node owns it.
    fn listed(nodes: Vec<u32>, each: usize, n_nodes: usize) -> Self {
        let first = filled_atomics(n_nodes, NONE);
        (0..nodes.len() / each).into_par_iter().with_min_len(GRAIN).each(|cell| {
            let own = &nodes[cell * each..(cell + 1) * each];
            for &node in own.iter().filter(|node| **node != NONE) {
                first[node as usize].fetch_min(cell as u32, Ordering::Relaxed);
            }
        });
        let first = plain_numbers(first);
        Self::Listed { nodes, first }
    }
}

impl TargetRows for OwnedDofs {
    fn n_cells(&self) -> usize {
        match &self.owners {
            NodesOfCells::FirstTouched(ranges) => ranges.len(),
            NodesOfCells::Listed { nodes, .. } => nodes.len() / self.places.len(),
        }
    }

    fn row(&self, cell: usize, row: &mut [u32]) {
        let Self { field, layout, points, places, periodic, owners } = self;
        let Field { space, constraints, .. } = field;
        let nodes = match owners {
            NodesOfCells::FirstTouched(_) => space.cell_nodes(cell),
            NodesOfCells::Listed { nodes, .. } => {
                &nodes[cell * places.len()..(cell + 1) * places.len()]
            }
        };
        let owns = |node: u32| match owners {
            NodesOfCells::FirstTouched(ranges) => ranges[cell].contains(&node),
            NodesOfCells::Listed { first, .. } => {
                first.get(node as usize).is_some_and(|&first| first == cell as u32)
            }
        };
        row.fill(NONE);
        let components = space.components();
        let layout = layout.as_ref().map(|layout| layout.field(0));
        for (point, &node) in nodes.iter().enumerate().filter(|(_, node)| owns(**node)) {
            if *periodic && nodes[..point].contains(&node) {
                continue;
            }
            for component in 0..components {
                let unknown = node as usize * components + component;
                if !constraints.is_constrained(unknown) {
                    let place =
                        layout.map_or(unknown, |own| own.place_at(node as usize, component));
                    row[component * points + places[point] as usize] = place as u32;
                }
            }
        }
    }
}

/// Returns the element of twice the degree, whose nodes are those of all children of a cell: for simplices of degree 1.
fn twice(element: Lagrange) -> Result<Lagrange, RunError> {
    if element.degree() != 1 {
        let text = "children of simplices have the nodes of twice the degree at degree 1 alone";
        return Err(PlanError::Unsupported(text.to_owned()).into());
    }
    Ok(Lagrange::continuous(element.cell(), 2)?)
}

/// Returns the nodes of the children of each cell, `[cell][place]`, at `each` [places] of a rule's points; `NONE` if a
/// node hangs in all children that contain it.
fn joined(coarser: &CoarsenedMesh, space: &Space, rule: Rule, each: usize) -> Vec<u32> {
    let table = |map: &AffineMap| places(space.element(), map, rule);
    let tables: Vec<Vec<Option<usize>>> = coarser.maps.iter().map(table).collect();
    let mut nodes = vec![0; coarser.mesh.n_cells() * each];
    let hangs = space.hanging_nodes();
    let cells = nodes.par_chunks_mut(each).enumerate().with_min_len(GRAIN);
    cells.each(|(cell, nodes)| {
        nodes.fill(NONE);
        for (number, &child) in coarser.children_of(cell).iter().enumerate() {
            let place = usize::from(coarser.places[cell * coarser.each() + number]);
            let own = space.cell_nodes(child as usize).iter().zip(&tables[place]).enumerate();
            for (local, (&node, at)) in own {
                // Another cell provides the value of a hanging node.
                let there = hangs.as_ref().is_none_or(|hangs| !hangs(child as usize, local));
                if let Some(at) = at.filter(|_| there) {
                    nodes[at] = node;
                }
            }
        }
    });
    nodes
}

/// Returns the only field.
fn only(on: &Discretisation) -> Result<&Field, RunError> {
    match &on.fields[..] {
        [field] => Ok(field),
        fields => {
            let text = format!("no transfer of {} fields together", fields.len());
            Err(PlanError::Unsupported(text).into())
        }
    }
}

/// Returns a form with one field of the given number of components, for transfer kernels.
fn field_of(components: usize, dim: usize) -> Result<PointForm, RunError> {
    let shape = match components {
        1 => "scalar".to_owned(),
        n => format!("vector({n})"),
    };
    let text = format!("form transfer {{ field u: {shape}; f0[u] = u; }}");
    let (program, _) = compile(&Source::new("transfer", &text));
    let form = program.and_then(|program| program.point_form("transfer", dim).ok());
    form.ok_or_else(|| PlanError::Unsupported("no form of transfers".to_owned()).into())
}

/// Tasks of transfer kernels.
pub(super) const TRANSFERS: [Task; 2] = [Task::Prolong, Task::Restrict];

/// Returns the form and the elements of the kernels that evaluate a coarse element at the points of a rule.
pub(super) fn transfer_kernels(
    element: Element,
    components: usize,
    rule: Rule,
) -> Result<(PointForm, Elements), RunError> {
    let form = field_of(rows(element, components), element.cell().dim())?;
    let elements = Elements::of_field("u", element, components, rule);
    Ok((form, elements))
}

/// Returns the points of each direction of an element: its nodes, or the ends of the intervals over which it integrates.
fn line_of(element: Element) -> Option<LinePoints> {
    let of_integrals = element.whitney().map(|own| LinePoints::GaussLobatto(own.degree() + 1));
    element.line().or(of_integrals)
}

/// Returns the rule of the points of a finer element on the same mesh.
pub(super) fn rule_of_degrees(finer: Element) -> Result<Rule, RunError> {
    match (line_of(finer), finer.lagrange()) {
        (Some(line), _) => Ok(Rule::Tensor { cell: finer.cell(), line }),
        (None, Some(finer)) => Ok(Rule::Nodes(finer)),
        (None, None) => Err(without_transfers(finer)),
    }
}

/// Returns the rule of the points of a cell's children.
pub(super) fn rule_of_children(finer: Element) -> Result<Rule, RunError> {
    match (line_of(finer), finer.lagrange()) {
        (Some(_), _) => {
            let line = LinePoints::Halves(finer.degree() + 1);
            Ok(Rule::Tensor { cell: finer.cell(), line })
        }
        (None, Some(finer)) => Ok(Rule::Nodes(twice(finer)?)),
        (None, None) => Err(without_transfers(finer)),
    }
}

fn without_transfers(element: Element) -> RunError {
    PlanError::Unsupported(format!("there are no transfers between levels for {element}")).into()
}

impl KernelTransfer {
    /// Builds the transfer from a space to one of higher degree on the same mesh, for the only field.
    ///
    /// # Errors
    ///
    /// Kernels that cannot be compiled, a device failure.
    pub fn degrees(
        coarse: &Discretisation,
        fine: &Discretisation,
        place: &TransferEnvironment,
    ) -> Result<Self, RunError> {
        let (own, other) = (only(coarse)?, only(fine)?);
        Self::at_nodes(coarse, own, (other, &fine.partition), place)
    }

    /// Builds the interpolation of fine states at the coarse nodes on the same mesh, constrained DoFs included.
    ///
    /// # Errors
    ///
    /// As [`KernelTransfer::degrees`].
    pub fn states(
        coarse: &Discretisation,
        fine: &Discretisation,
        place: &TransferEnvironment,
    ) -> Result<Self, RunError> {
        let free = |field: &Field| Field::new(Arc::clone(&field.space));
        let other = free(only(coarse)?);
        Self::at_nodes(fine, &free(only(fine)?), (&other, &coarse.partition), place)
    }

    fn at_nodes(
        on: &Discretisation,
        own: &Field,
        (other, partition): (&Field, &Partition),
        place: &TransferEnvironment,
    ) -> Result<Self, RunError> {
        let rule = rule_of_degrees(other.space.element())?;
        let Some(hangs) = other.space.hanging_nodes() else {
            let own_nodes = NodesAtPoints::OfSpace(partition);
            return Self::new(on, own, (other, own_nodes), rule, place);
        };
        let mut nodes = other.space.nodes().to_vec();
        // The node of a hanging entity belongs to the parent's neighbour, which owns it.
        let cells = nodes.chunks_exact_mut(other.space.nodes_per_cell()).enumerate();
        for (cell, nodes) in cells {
            let own = nodes.iter_mut().enumerate().filter(|(i, _)| hangs(cell, *i));
            own.for_each(|(_, node)| *node = NONE);
        }
        Self::new(on, own, (other, NodesAtPoints::Listed(nodes)), rule, place)
    }

    /// Builds the transfer from a space to one of the same degree on the mesh of the children.
    ///
    /// # Errors
    ///
    /// As [`KernelTransfer::degrees`].
    pub fn children(
        coarse: &Discretisation,
        fine: &Discretisation,
        coarser: &CoarsenedMesh,
        place: &TransferEnvironment,
    ) -> Result<Self, RunError> {
        let (own, other) = (only(coarse)?, only(fine)?);
        let rule = rule_of_children(other.space.element())?;
        let each = match other.space.element().whitney() {
            Some(element) => element.cell().dim() * rule.count(),
            None => rule.count(),
        };
        let nodes = joined(coarser, &other.space, rule, each);
        Self::new(coarse, own, (other, NodesAtPoints::Listed(nodes)), rule, place)
    }

    fn new(
        coarse: &Discretisation,
        own: &Field,
        (other, nodes): (&Field, NodesAtPoints<'_>),
        rule: Rule,
        place: &TransferEnvironment,
    ) -> Result<Self, RunError> {
        let (element, components) = (other.space.element(), own.space.components());
        let (form, elements) = transfer_kernels(own.space.element(), components, rule)?;
        let (points, dofs) = (rule.count(), other.space.n_dofs());
        let of_cell = points * rows(element, components);
        let places: Vec<u32> = match (&nodes, element.whitney()) {
            (NodesAtPoints::OfSpace(_), Some(_)) => {
                let all = places(element, &AffineMap::IDENTITY, rule).into_iter();
                all.map(|place| place.map_or(NONE, |place| place as u32)).collect()
            }
            (NodesAtPoints::Listed(_), Some(_)) => (0..of_cell as u32).collect(),
            (_, None) => (0..points as u32).collect(),
        };
        let (mut nodes, mut naming) = (nodes, None);
        if let Some(cut) = coarse.mesh.cut() {
            let mut own = match nodes {
                NodesAtPoints::OfSpace(_) => other.space.nodes().to_vec(),
                NodesAtPoints::Listed(nodes) => nodes,
            };
            let known = own.iter().copied().filter(|node| *node != NONE);
            let by = NodeOwners::new(cut, &other.space, known);
            let here = own.iter_mut().filter(|node| **node != NONE);
            here.filter(|node| by.is_of_others(**node)).for_each(|node| *node = NONE);
            naming = by.sharing(cut, &other.space);
            nodes = NodesAtPoints::Listed(own);
        }
        let owners = match nodes {
            NodesAtPoints::OfSpace(partition) => {
                NodesOfCells::first_touched(&other.space, partition)
            }
            NodesAtPoints::Listed(nodes) => {
                NodesOfCells::listed(nodes, places.len(), other.space.n_nodes())
            }
        };
        let (layout, periodic) = (place.fine.clone(), coarse.mesh.is_periodic());
        let len = layout.as_ref().map_or(dofs, |layout| layout.len(dofs));
        let owned = OwnedDofs { field: other.clone(), layout, points, places, periodic, owners };
        let targets = TransferTargets { rows: Arc::new(owned), of_cell, len };
        let on = Discretisation {
            mesh: Arc::clone(&coarse.mesh),
            partition: coarse.partition.clone(),
            fields: vec![own.clone()],
            aux: Vec::new(),
            facets: Vec::new(),
            pairs: Vec::new(),
            cells: Vec::new(),
            affine: Arc::default(),
            targets: Some(Arc::new(targets)),
        };
        let TransferEnvironment { platform, table_cache, .. } = place;
        let (operator, _) = compile_for(
            &form,
            &elements,
            &Arc::new(on),
            &[0.0],
            &TRANSFERS,
            platform,
            table_cache.clone(),
        )?;
        Ok(Self { operator, naming })
    }
}

impl KernelTransfer {
    /// Returns a zero vector of the coarse space.
    pub fn vector(&self) -> Vector {
        self.operator.vector()
    }

    /// Computes fine += P coarse for a coarse vector that is 0 in constrained DoFs.
    ///
    /// # Errors
    ///
    /// Vectors of other spaces, a device failure.
    pub fn prolong(&self, coarse: &Vector, fine: &mut Vector) -> Result<(), OperatorError> {
        self.operator.prolong(coarse, fine, self.naming.as_ref())
    }

    /// Computes coarse = Pᵀ fine.
    ///
    /// # Errors
    ///
    /// As [`KernelTransfer::prolong`].
    pub fn restrict(&self, fine: &Vector, coarse: &mut Vector) -> Result<(), OperatorError> {
        self.operator.restrict(fine, coarse)
    }
}

/// Transfers between two levels.
pub struct LevelTransfer {
    /// Transfer of corrections and residuals.
    pub between: KernelTransfer,
    /// Transfer of states, for operators that depend on one.
    pub state: Option<StateInjection>,
}

/// Injection of a state into a coarser space.
pub enum StateInjection {
    /// By interpolation at its nodes.
    Interpolated(Box<KernelTransfer>),
    /// By integrals, in H(curl) and H(div).
    Integrated(Csr),
    /// By copying DoFs of the fine space, at degree 1 on nested meshes.
    Copied(DofInjection),
}

/// Coarse degrees of freedom that are also fine ones.
pub struct DofInjection {
    /// Index of each in the fine space.
    pub from: Vec<u32>,
    /// True if some process does not know the fine index of one of its DoFs.
    incomplete: bool,
    /// Synchronises processes if the lowest rank of a DoF does not know its index.
    naming: Option<Arc<InterfaceExchange>>,
}

impl StateInjection {
    /// Builds the injection into a space of H(curl) or H(div) of lower degree, or of degree 1 on a coarser mesh; `None`
    /// between other spaces.
    pub fn integrated(
        coarse: &Discretisation,
        fine: &Discretisation,
        coarser: Option<&CoarsenedMesh>,
    ) -> Option<Self> {
        let [own, other] = [coarse, fine].map(|on| &*on.fields[0].space);
        let matrix = match coarser {
            Some(coarser) => states::of_children(own, other, coarser),
            None => states::of_degrees(own, other),
        };
        matrix.map(Self::Integrated)
    }

    /// Builds the injection between spaces of degree 1 on nested meshes.
    pub fn at_vertices(
        coarse: &Discretisation,
        fine: &Discretisation,
        coarser: &CoarsenedMesh,
    ) -> Self {
        let (own, other) = (&coarse.fields[0].space, &fine.fields[0].space);
        let (components, corners) = (own.components(), own.nodal());
        let each = corners.count();
        let nodes = joined(coarser, other, Rule::Nodes(corners), each);
        let (mut from, mut known) = (vec![0; own.n_dofs()], vec![false; own.n_nodes()]);
        let hangs = own.hanging_nodes();
        for (cell, nodes) in nodes.chunks_exact(each).enumerate() {
            for (local, (&node, &finer)) in own.cell_nodes(cell).iter().zip(nodes).enumerate() {
                // A coarse hanging node is no DoF of this cell; a node that does not hang in the coarse mesh does not
                // hang in the fine one.
                if finer == NONE || hangs.as_ref().is_some_and(|hangs| hangs(cell, local)) {
                    continue;
                }
                known[node as usize] = true;
                for component in 0..components {
                    from[node as usize * components + component] =
                        finer * components as u32 + component as u32;
                }
            }
        }
        let naming = coarse.mesh.cut().and_then(|cut| {
            let known = (0..).zip(&known).filter(|(_, known)| **known);
            NodeOwners::new(cut, own, known.map(|(node, _)| node)).sharing(cut, own)
        });
        let cut = coarse.mesh.cut();
        let incomplete = cut.is_some_and(|cut| any(&**cut.group(), known.contains(&false)));
        Self::Copied(DofInjection { from, incomplete, naming })
    }
}

impl GridTransfer for LevelTransfer {
    fn prolong(&self, coarse: &Vector, fine: &mut Vector) -> Result<(), OperatorError> {
        self.between.prolong(coarse, fine)
    }

    fn restrict(&self, fine: &Vector, coarse: &mut Vector) -> Result<(), OperatorError> {
        self.between.restrict(fine, coarse)
    }

    fn inject(&self, fine: &Vector, coarse: &mut Vector) -> Result<(), OperatorError> {
        match &self.state {
            None => Ok(()),
            Some(StateInjection::Interpolated(by)) => {
                coarse.fill(0.0);
                by.prolong(fine, coarse)
            }
            Some(StateInjection::Integrated(matrix)) => {
                let mut integrals = vec![0.0; matrix.size()];
                matrix.apply(&fine.to_vec(), &mut integrals);
                coarse.set(&integrals);
                coarse.synchronise();
                Ok(())
            }
            Some(StateInjection::Copied(DofInjection { from, incomplete, naming })) => {
                let numbers = fine.to_vec();
                let taken: Vec<f64> = from.iter().map(|&at| numbers[at as usize]).collect();
                coarse.set(&taken);
                match naming {
                    Some(naming) => coarse.synchronise_with(naming),
                    None if *incomplete => coarse.synchronise(),
                    None => {}
                }
                Ok(())
            }
        }
    }
}
