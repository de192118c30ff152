//! Transfers between two spaces: which unknowns of the finer one lie at the points of the coarser one's cells → kernels that
//! move vectors there and back.
//!
//! ```text
//! prolong    u_f += P u_c,   (P u_c)_i = Σ_b φ_b(ξ_i) u_b   in the cell that names i
//! restrict   r_c  = Pᵀ r_f
//! ```
//!
//! A function of the coarser space has one value where cells meet, so that it does not matter which of them names an unknown:
//! the first does, of the first process where several have it that can ([`naming`]). Constrained unknowns of the finer space are named by none, and those of the coarser one read 0.

mod naming;

use super::super::RunError;
use super::super::kernels::compile_for;
use crate::algebra::vector::Vector;
use crate::device::{Device, Layout};
use crate::kernels::compile::Target;
use crate::mesh::{Affine, Coarsened};
use crate::operator::{Operator, Shelf};
use crate::processes::any;
use crate::processes::sharing::Sharing;
use crate::solve::{OperatorError, Transfer};
use crate::space::Space;
use crate::space::constraint::Constraints;
use crate::space::discretisation::{Discretisation, Field, Targets};
use crate::support::parallel::*;
use fem_dsl::point::PointForm;
use fem_dsl::program::compile;
use fem_dsl::source::Source;
use kernels_gen::element::{Lagrange, LinePoints, Rule};
use kernels_gen::plan::{Elements, PlanError, Task};
use naming::Naming;
use std::borrow::Cow;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

/// No unknown.
const NONE: u32 = u32::MAX;
/// What rounding may make of a point of a reference cell.
const NEAR: f64 = 1e-9;
/// Cells that are worth a thread.
const GRAIN: usize = 256;

/// A transfer by kernels.
pub struct Between {
    operator: Operator,
    /// By which several processes agree on the finer unknowns, where it is not the first that names each.
    naming: Option<Arc<Sharing>>,
}

/// Where and how kernels run.
#[derive(Clone)]
pub struct Place {
    /// What kernels are compiled for.
    pub target: Target,
    /// The device, if it is not the processor.
    pub device: Option<Arc<dyn Device>>,
    /// What the coarser operator has in common with it: on a device, where its unknowns lie.
    pub shelf: Shelf,
    /// Where the unknowns of the finer space lie in its vectors, if that is not in their own order.
    pub fine: Option<Layout>,
}

/// Of nodes at the points of cells, `[cell][point]`, the unknowns that each cell names, where they lie: those that no cell before
/// it has.
fn named(
    nodes: &[u32],
    points: usize,
    Field { space, constraints }: &Field,
    periodic: bool,
    place: impl Fn(usize) -> usize + Sync,
) -> Vec<u32> {
    let (components, n_cells) = (space.components(), nodes.len() / points);
    let first: Vec<AtomicU32> = (0..space.n_nodes()).map(|_| AtomicU32::new(NONE)).collect();
    (0..n_cells).into_par_iter().with_min_len(GRAIN).each(|cell| {
        let own = &nodes[cell * points..(cell + 1) * points];
        for &node in own.iter().filter(|node| **node != NONE) {
            first[node as usize].fetch_min(cell as u32, Ordering::Relaxed);
        }
    });
    let mut unknowns = vec![NONE; nodes.len() * components];
    let cells = unknowns.par_chunks_mut(points * components).enumerate().with_min_len(GRAIN);
    cells.each(|(cell, unknowns)| {
        let own = &nodes[cell * points..(cell + 1) * points];
        for (point, &node) in own.iter().enumerate().filter(|(_, node)| **node != NONE) {
            let named = first[node as usize].load(Ordering::Relaxed) == cell as u32;
            // A cell that meets itself names its node once.
            if !named || periodic && own[..point].contains(&node) {
                continue;
            }
            for component in 0..components {
                let unknown = node as usize * components + component;
                if !constraints.is_constrained(unknown) {
                    unknowns[component * points + point] = place(unknown) as u32;
                }
            }
        }
    });
    unknowns
}

/// The element of twice the degree, whose nodes are those of all children of a cell: on simplices of degree 1.
fn twice(element: Lagrange) -> Result<Lagrange, RunError> {
    if element.degree() != 1 {
        let text = "children of simplices have the nodes of twice the degree at degree 1 alone";
        return Err(PlanError::Unsupported(text.to_owned()).into());
    }
    Ok(Lagrange::continuous(element.cell(), 2)?)
}

/// The place among some points of an image of another point.
fn place_of(x: [f64; 3], points: &[[f64; 3]]) -> Option<usize> {
    let near = |y: &[f64; 3]| (0..3).all(|c| (x[c] - y[c]).abs() < NEAR);
    points.iter().position(near)
}

/// The nodes of the children of each cell, `[cell][point]` at some points of the cell; none where one hangs of all that have
/// it there.
fn joined(coarser: &Coarsened, space: &Space, points: &[[f64; 3]]) -> Vec<u32> {
    let own = space.element().points();
    let table = |map: &Affine| -> Vec<Option<usize>> {
        own.iter().map(|xi| place_of(map.at(xi), points)).collect()
    };
    let tables: Vec<Vec<Option<usize>>> = coarser.maps.iter().map(table).collect();
    let mut nodes = vec![NONE; coarser.mesh.n_cells() * points.len()];
    let hangs = space.hanging_nodes();
    let cells = nodes.par_chunks_mut(points.len()).enumerate().with_min_len(GRAIN);
    cells.each(|(cell, nodes)| {
        for (number, &child) in coarser.children_of(cell).iter().enumerate() {
            let place = usize::from(coarser.places[cell * coarser.each() + number]);
            let own = space.cell_nodes(child as usize).iter().zip(&tables[place]).enumerate();
            for (local, (&node, at)) in own {
                // What hangs is read elsewhere.
                let there = hangs.as_ref().is_none_or(|hangs| !hangs(child as usize, local));
                if let Some(at) = at.filter(|_| there) {
                    nodes[at] = node;
                }
            }
        }
    });
    nodes
}

/// The only field.
fn only(on: &Discretisation) -> Result<&Field, RunError> {
    match &on.fields[..] {
        [field] => Ok(field),
        fields => {
            let text = format!("no transfer of {} fields together", fields.len());
            Err(PlanError::Unsupported(text).into())
        }
    }
}

/// A form with one field of so many components, which gives kernels of transfers their field.
fn field_of(components: usize, dim: usize) -> Result<PointForm, RunError> {
    let shape = match components {
        1 => "scalar",
        n if n == dim => "vector",
        n if n == dim * dim => "tensor",
        n => {
            let text = format!("no transfer of fields with {n} components in {dim} dimensions");
            return Err(PlanError::Unsupported(text).into());
        }
    };
    let text = format!("form transfer {{ field u: {shape}; f0[u] = u; }}");
    let (program, _) = compile(&Source::new("transfer", &text));
    let form = program.and_then(|program| program.point_form("transfer", dim).ok());
    form.ok_or_else(|| PlanError::Unsupported("no form of transfers".to_owned()).into())
}

impl Between {
    /// From a space to one of higher degree on the same mesh, each of the only field.
    ///
    /// # Errors
    ///
    /// Kernels that cannot be made, a device that fails.
    pub fn degrees(
        coarse: &Discretisation,
        fine: &Discretisation,
        place: &Place,
    ) -> Result<Self, RunError> {
        let (own, other) = (only(coarse)?, only(fine)?);
        Self::at_nodes(coarse, own, other, place)
    }

    /// What a state of the finer space is at the nodes of the coarser one, on the same mesh: the other way, with all values, those
    /// of constrained unknowns too.
    ///
    /// # Errors
    ///
    /// As [`Between::degrees`].
    pub fn states(
        coarse: &Discretisation,
        fine: &Discretisation,
        place: &Place,
    ) -> Result<Self, RunError> {
        let free = |field: &Field| Field {
            constraints: Constraints::none(&field.space),
            space: Arc::clone(&field.space),
        };
        Self::at_nodes(fine, &free(only(fine)?), &free(only(coarse)?), place)
    }

    fn at_nodes(
        on: &Discretisation,
        own: &Field,
        other: &Field,
        place: &Place,
    ) -> Result<Self, RunError> {
        let element = other.space.element();
        let rule = match element.line() {
            Some(line) => Rule::Tensor { cell: element.cell(), line },
            None => Rule::Nodes(element),
        };
        let mut nodes = other.space.nodes().to_vec();
        // What a cell reads of its parent lies elsewhere; the neighbour that has it as its own names it.
        if let Some(hangs) = other.space.hanging_nodes() {
            let cells = nodes.chunks_exact_mut(other.space.nodes_per_cell()).enumerate();
            for (cell, nodes) in cells {
                let own = nodes.iter_mut().enumerate().filter(|(i, _)| hangs(cell, *i));
                own.for_each(|(_, node)| *node = NONE);
            }
        }
        Self::new(on, own, (other, &nodes), rule, place)
    }

    /// From a space to one of the same degree on the mesh whose cells are the children of its own.
    ///
    /// # Errors
    ///
    /// As [`Between::degrees`].
    pub fn children(
        coarse: &Discretisation,
        fine: &Discretisation,
        coarser: &Coarsened,
        place: &Place,
    ) -> Result<Self, RunError> {
        let (own, other) = (only(coarse)?, only(fine)?);
        let element = other.space.element();
        let rule = match element.line() {
            Some(_) => {
                let line = LinePoints::Halves(element.degree() + 1);
                Rule::Tensor { cell: element.cell(), line }
            }
            None => Rule::Nodes(twice(element)?),
        };
        let nodes = joined(coarser, &other.space, &rule.points());
        Self::new(coarse, own, (other, &nodes), rule, place)
    }

    fn new(
        coarse: &Discretisation,
        own: &Field,
        (other, nodes): (&Field, &[u32]),
        rule: Rule,
        place: &Place,
    ) -> Result<Self, RunError> {
        let components = own.space.components();
        let form = field_of(components, coarse.mesh.dim())?;
        let (points, dofs) = (rule.count(), other.space.n_dofs());
        let periodic = coarse.mesh.is_periodic();
        let (mut nodes, mut naming) = (Cow::Borrowed(nodes), None);
        if let Some(cut) = coarse.mesh.cut() {
            let known = nodes.iter().copied().filter(|node| *node != NONE);
            let by = Naming::new(cut, &other.space, known);
            let here = nodes.to_mut().iter_mut().filter(|node| **node != NONE);
            here.filter(|node| by.is_of_others(**node)).for_each(|node| *node = NONE);
            naming = by.sharing(cut, &other.space);
        }
        let (unknowns, len) = match &place.fine {
            None => (named(&nodes, points, other, periodic, |unknown| unknown), dofs),
            Some(layout) => {
                let lies = |unknown| layout.place(unknown);
                (named(&nodes, points, other, periodic, lies), layout.len(dofs))
            }
        };
        let targets = Targets { unknowns, of_cell: points * components, len };
        let element: Lagrange = own.space.element();
        let elements = Elements {
            cell: element.cell(),
            degree: element.degree(),
            rule,
            fields: vec![element],
            components: vec![components],
            aux: Vec::new(),
            notes: Vec::new(),
            lost: None,
        };
        let on = Discretisation {
            mesh: Arc::clone(&coarse.mesh),
            partition: coarse.partition.clone(),
            fields: vec![own.clone()],
            aux: Vec::new(),
            facets: Vec::new(),
            cells: Vec::new(),
            affine: Arc::default(),
            targets: Some(Arc::new(targets)),
        };
        let tasks = [Task::Prolong, Task::Restrict];
        let Place { target, device, shelf, .. } = place;
        let (operator, _) = compile_for(
            &form,
            &elements,
            &Arc::new(on),
            &[0.0],
            &tasks,
            target,
            device.clone(),
            shelf.clone(),
        )?;
        Ok(Self { operator, naming })
    }
}

impl Between {
    /// A vector of the coarser space.
    pub fn vector(&self) -> Vector {
        self.operator.vector()
    }

    /// fine += P coarse.
    ///
    /// # Errors
    ///
    /// Vectors of others, a device that fails.
    pub fn prolong(&self, coarse: &Vector, fine: &mut Vector) -> Result<(), OperatorError> {
        self.operator.prolong(coarse, fine, self.naming.as_ref())
    }

    /// coarse = Pᵀ fine.
    ///
    /// # Errors
    ///
    /// As [`Between::prolong`].
    pub fn restrict(&self, fine: &Vector, coarse: &mut Vector) -> Result<(), OperatorError> {
        self.operator.restrict(fine, coarse)
    }
}

/// The way from one level to the next.
pub struct Path {
    /// Of corrections and residuals.
    pub between: Between,
    /// Of states, where operators depend on one.
    pub state: Option<State>,
}

/// How a coarser space comes to a state.
pub enum State {
    /// From the values at its nodes.
    Interpolated(Box<Between>),
    /// Each of its unknowns is one of the finer space: of degree 1, where cells are the children of others.
    Taken(Taken),
}

/// Unknowns that are those of a finer space.
pub struct Taken {
    /// Of each its place there.
    pub from: Vec<u32>,
    /// Whether some process has an unknown whose place it does not know.
    incomplete: bool,
    /// By which several processes agree, where the first that has an unknown does not know its place.
    naming: Option<Arc<Sharing>>,
}

impl State {
    /// Between spaces of degree 1, of which the finer one has the children of the other's cells.
    pub fn at_vertices(
        coarse: &Discretisation,
        fine: &Discretisation,
        coarser: &Coarsened,
    ) -> Self {
        let (own, other) = (&coarse.fields[0].space, &fine.fields[0].space);
        let (components, corners) = (own.components(), own.element().points());
        let nodes = joined(coarser, other, &corners);
        let (mut from, mut known) = (vec![0; own.n_dofs()], vec![false; own.n_nodes()]);
        let hangs = own.hanging_nodes();
        for (cell, nodes) in nodes.chunks_exact(corners.len()).enumerate() {
            for (local, (&node, &finer)) in own.cell_nodes(cell).iter().zip(nodes).enumerate() {
                // What hangs in the coarser mesh is no unknown of this cell; what does not hangs in the finer one neither.
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
            Naming::new(cut, own, known.map(|(node, _)| node)).sharing(cut, own)
        });
        let cut = coarse.mesh.cut();
        let incomplete = cut.is_some_and(|cut| any(&**cut.group(), known.contains(&false)));
        Self::Taken(Taken { from, incomplete, naming })
    }
}

impl Transfer for Path {
    fn prolong(&self, coarse: &Vector, fine: &mut Vector) -> Result<(), OperatorError> {
        self.between.prolong(coarse, fine)
    }

    fn restrict(&self, fine: &Vector, coarse: &mut Vector) -> Result<(), OperatorError> {
        self.between.restrict(fine, coarse)
    }

    fn inject(&self, fine: &Vector, coarse: &mut Vector) -> Result<(), OperatorError> {
        match &self.state {
            None => Ok(()),
            Some(State::Interpolated(by)) => {
                coarse.fill(0.0);
                by.prolong(fine, coarse)
            }
            Some(State::Taken(Taken { from, incomplete, naming })) => {
                let numbers = fine.to_vec();
                let taken: Vec<f64> = from.iter().map(|&at| numbers[at as usize]).collect();
                coarse.set(&taken);
                match naming {
                    Some(naming) => coarse.agree_by(naming),
                    None if *incomplete => coarse.agree(),
                    None => {}
                }
                Ok(())
            }
        }
    }
}
