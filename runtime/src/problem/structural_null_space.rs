//! Structural null-space check: finds degrees of freedom that no term and no boundary condition determines, from a
//! form, its discretisation and parameter values, without an operator.
//!
//! Two conditions are checked for each component of each field. Terms with nonzero coefficients must involve it, as
//! trial and as test function, at all its free DoFs. If no term involves its value, a constraint must fix its constant:
//! on each connected part of the mesh, or in each cell for a discontinuous field. Both conditions are independent of
//! the state and so hold for nonlinear forms.

use super::{IllPosedError, RunError};
use crate::mesh::Mesh;
use crate::mesh::distributed::SharedEntity;
use crate::mesh::pairs::CellsBeyond;
use crate::processes::interface_exchange::{InterfaceExchange, SharedDof};
use crate::processes::{ProcessGroup, Reduction, any};
use crate::space::Space;
use crate::space::discretisation::Discretisation;
use crate::support::expression::Parameters;
use crate::support::parallel::*;
use fem_dsl::arena::IndexVec;
use fem_dsl::eval::eval;
use fem_dsl::point::{
    Binary, Coefficient, Input, Integral, Node, NodeId, Part, PointForm, Region, Slot, Unary,
};
use fem_dsl::problem::{NullSpaceKind, UndeterminedField};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

/// Smallest squared share of a component in a combination that constrains it.
const SHARE: f64 = 1e-12;

/// Smallest relative residual of a constant in an affine constraint that fixes it.
const LEFT: f64 = 1e-10;

/// Checks that the form, its conditions or a mean-value constraint determine every component of every field.
///
/// # Errors
///
/// [`IllPosedError::Unfixed`].
pub fn check_fixed(
    form: &PointForm,
    on: &Discretisation,
    parameters: &Parameters,
) -> Result<(), RunError> {
    let terms = NonzeroEntries::new(form, on, parameters);
    let mut parts = None;
    for (index, field) in form.fields.iter().enumerate() {
        // The degrees of freedom of a vector-valued function belong to all its components, and its constants are no
        // vectors of ones: gradients in the null space of a curl are left to the solver.
        let is_vector = field.space.is_piola();
        let components = if is_vector { 1 } else { field.shape.components() };
        for component in 0..components {
            let of = FieldComponent { field: index, component };
            let open = match unreached(&terms, on, of)? {
                Some(at) => Some(NullSpaceKind::Everything { at }),
                None if is_vector => None,
                None if terms.of_cells(|term| of.is_value(term.trial)) => None,
                None => free_constant(&terms, on, of, &mut parts),
            };
            if let Some(freedom) = open {
                return Err(unfixed(form, of, freedom));
            }
        }
    }
    Ok(())
}

/// Returns the error of an undetermined component.
pub(super) fn unfixed(form: &PointForm, of: FieldComponent, freedom: NullSpaceKind) -> RunError {
    let field = &form.fields[of.field];
    let has_components = field.shape.components() > 1 && !field.space.is_piola();
    let several = has_components && !matches!(freedom, NullSpaceKind::Motion(_));
    let component = several.then_some(of.component);
    let field = field.name.clone();
    IllPosedError::Unfixed(UndeterminedField { field, component, null_space: freedom }).into()
}

/// A component of a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct FieldComponent {
    pub(super) field: usize,
    pub(super) component: usize,
}

impl FieldComponent {
    /// Returns whether a slot belongs to the component, value or derivative.
    pub(super) fn is(self, slot: Slot) -> bool {
        (slot.field, slot.component) == (self.field, self.component)
    }

    /// Returns whether a slot is the component's value.
    pub(super) fn is_value(self, slot: Slot) -> bool {
        self.is(slot) && slot.part == Part::Value
    }
}

/// Jacobian entries with nonzero coefficients for given parameters and data.
pub(super) struct NonzeroEntries {
    /// Entries of each integral.
    of: Vec<Vec<Coefficient>>,
    /// For each entry, true if its coefficient is constant in space.
    constant: Vec<Vec<bool>>,
    /// For each integral, true if it covers only some cells, or facets.
    parts: Vec<bool>,
}

impl NonzeroEntries {
    pub(super) fn new(form: &PointForm, on: &Discretisation, parameters: &Parameters) -> Self {
        let known = |input| match input {
            Input::Aux(slot) => constant_aux(form, on, slot),
            other => parameters.constant(other),
        };
        let mut terms = Self { of: Vec::new(), constant: Vec::new(), parts: Vec::new() };
        for integral in &form.integrals {
            let (zero, varies) = zeros(integral, known);
            let entries = integral.jacobian.iter();
            let of_field = |slot: Slot| match form.fields[slot.field].space.is_piola() {
                true => Slot { component: 0, ..slot },
                false => slot,
            };
            let own: Vec<Coefficient> = entries
                .filter(|entry| !zero[entry.value])
                .map(|entry| Coefficient {
                    test: of_field(entry.test),
                    trial: of_field(entry.trial),
                    ..*entry
                })
                .collect();
            terms.constant.push(own.iter().map(|entry| !varies[entry.value]).collect());
            terms.of.push(own);
            terms.parts.push(integral.region != Region::Cells);
        }
        terms
    }

    /// Returns whether an integral over all cells has a matching entry.
    pub(super) fn of_cells(&self, which: impl Fn(&Coefficient) -> bool) -> bool {
        self.of.iter().zip(&self.parts).any(|(own, part)| !part && own.iter().any(&which))
    }

    /// Returns whether an integral over all cells has a matching entry with a coefficient that is constant in space.
    pub(super) fn constant_of_cells(&self, which: impl Fn(&Coefficient) -> bool) -> bool {
        let all = self.of.iter().zip(&self.constant).zip(&self.parts);
        let cells = all.filter(|(_, part)| !**part);
        let mut entries = cells.flat_map(|((own, constant), _)| own.iter().zip(constant));
        entries.any(|(entry, constant)| *constant && which(entry))
    }

    /// Returns whether an integral over some cells, or facets, has a matching entry and a nonempty domain on any
    /// process.
    pub(super) fn in_parts(
        &self,
        on: &Discretisation,
        which: impl Fn(&Coefficient) -> bool,
    ) -> bool {
        let mut found = [self.cells_in_parts(on, which).next().is_some()];
        in_any(&on.mesh, &mut found);
        found[0]
    }

    /// Returns the cells of such integrals with a matching entry.
    pub(super) fn cells_in_parts<'a>(
        &'a self,
        on: &'a Discretisation,
        which: impl Fn(&Coefficient) -> bool + 'a,
    ) -> impl Iterator<Item = usize> + 'a {
        let integrals = self.of.iter().enumerate();
        let these = integrals.filter(move |(_, own)| own.iter().any(&which));
        these.flat_map(|(integral, _)| {
            let facets = on.facets_of(integral).iter().map(|facet| facet.cell as usize);
            let cells = on.cells_of(integral).unwrap_or_default().iter().map(|&cell| cell as usize);
            facets.chain(cells)
        })
    }

    /// Returns the pairs of cells of integrals between cells with a matching entry.
    fn pairs<'a>(
        &'a self,
        on: &'a Discretisation,
        which: impl Fn(&Coefficient) -> bool + 'a,
    ) -> impl Iterator<Item = [u32; 2]> + 'a {
        let integrals = self.of.iter().enumerate();
        let these = integrals.filter(move |(_, own)| own.iter().any(&which));
        let pairs = these.flat_map(|(integral, _)| on.pairs_of(integral).unwrap_or_default());
        pairs.map(|pair| pair.sides.map(|side| side.cell))
    }
}

/// Returns for each node of a graph whether it is identically 0, and whether it varies in space.
fn zeros(
    integral: &Integral,
    known: impl Fn(Input) -> Option<f64>,
) -> (IndexVec<NodeId, bool>, IndexVec<NodeId, bool>) {
    let values = eval(&integral.graph, |input| known(input).unwrap_or(f64::NAN));
    let varies = integral.depends_on(|input| known(input).is_none());
    let mut zero: IndexVec<NodeId, bool> = IndexVec::new();
    for ((node, value), varies) in integral.graph.nodes().iter().zip(&values).zip(&varies) {
        let is = |id: NodeId| zero[id];
        let value = match *node {
            _ if !varies => *value == 0.0,
            Node::Unary(Unary::Neg | Unary::Abs | Unary::Sqrt, a) => is(a),
            Node::Binary(Binary::Mul, a, b) => is(a) || is(b),
            Node::Binary(Binary::Div, a, _) => is(a),
            Node::Binary(Binary::Add | Binary::Sub | Binary::Min | Binary::Max, a, b)
            | Node::Select(_, a, b) => is(a) && is(b),
            _ => false,
        };
        zero.push(value);
    }
    (zero, varies)
}

/// Returns the value of auxiliary data that is constant over all processes.
fn constant_aux(form: &PointForm, on: &Discretisation, slot: Slot) -> Option<f64> {
    let own = constant_here(form, on, slot);
    if on.mesh.cut().is_none() {
        return own;
    }
    let (mut least, mut most) =
        ([own.unwrap_or(f64::NEG_INFINITY)], [own.unwrap_or(f64::INFINITY)]);
    on.mesh.reduce_in_all(Reduction::Least, &mut least);
    on.mesh.reduce_in_all(Reduction::Largest, &mut most);
    (least == most).then_some(least[0])
}

/// Returns the value of auxiliary data that is constant on the cells of this process.
fn constant_here(form: &PointForm, on: &Discretisation, slot: Slot) -> Option<f64> {
    let components = form.aux[slot.field].shape.components();
    let values = on.aux.get(slot.field)?.numbers();
    let mut own = values.iter().skip(slot.component).step_by(components);
    let first = *own.next()?;
    let value = if slot.part == Part::Value { first } else { 0.0 };
    own.all(|value| *value == first).then_some(value)
}

/// Finds a node at which an unconstrained component occurs in no term, as trial or as test function.
fn unreached(
    terms: &NonzeroEntries,
    on: &Discretisation,
    of: FieldComponent,
) -> Result<Option<[f64; 3]>, RunError> {
    let slots: [fn(&Coefficient) -> Slot; 2] = [|term| term.test, |term| term.trial];
    for slot in slots {
        if terms.of_cells(|term| of.is(slot(term))) {
            continue;
        }
        let field = &on.fields[of.field];
        let (space, components) = (&field.space, field.space.components());
        let mut reached = vec![false; space.n_nodes()];
        for cell in terms.cells_in_parts(on, |term| of.is(slot(term))) {
            space.cell_nodes(cell).iter().for_each(|&node| reached[node as usize] = true);
        }
        let held = |node: usize| field.constraints.is_constrained(node * components + of.component);
        if let Some(cut) = on.mesh.cut() {
            let mut all: Vec<f64> = reached.iter().map(|&is| f64::from(u8::from(is))).collect();
            space.sharing(cut.group()).largest(&mut all);
            reached.iter_mut().zip(all).for_each(|(is, all)| *is = all > 0.0);
        }
        let open = (0..space.n_nodes()).find(|&node| !reached[node] && !held(node));
        let at = match open {
            Some(node) => Some(space.points_here(&on.mesh, &on.partition)?[node]),
            None => None,
        };
        if let Some(at) = on.mesh.first_in_all(at) {
            return Ok(Some(at));
        }
    }
    Ok(None)
}

/// Finds an undetermined constant of a component whose value no cell integral involves.
fn free_constant(
    terms: &NonzeroEntries,
    on: &Discretisation,
    of: FieldComponent,
    parts: &mut Option<ConnectedParts>,
) -> Option<NullSpaceKind> {
    let field = &on.fields[of.field];
    let mean = field.constraints.mean().is_some();
    let mut by_cell = !field.space.element().is_continuous();
    let parts = match by_cell {
        true => {
            // Jumps between cells hold their constants together.
            let mut pairs = terms.pairs(on, |term| of.is_value(term.trial)).peekable();
            let mut joined = [pairs.peek().is_some()];
            in_any(&on.mesh, &mut joined);
            by_cell = !joined[0];
            &ConnectedParts::cells(&on.mesh, pairs, !by_cell)
        }
        false => &*parts.get_or_insert_with(|| ConnectedParts::new(&on.mesh)),
    };
    let mut fixed = vec![false; parts.count];
    for cell in terms.cells_in_parts(on, |term| of.is_value(term.trial)) {
        fixed[parts.of[cell] as usize] = true;
    }
    for cell in ends_of_support(terms, on, of) {
        fixed[parts.of[cell] as usize] = true;
    }
    let held = match by_cell {
        true => {
            let mut held = parts.held_here(on, of);
            let lives = parts.living(on, of.field).into_iter().flatten();
            held.iter_mut().zip(lives).for_each(|(held, lives)| *held |= !lives);
            held
        }
        false => parts.held(on, of),
    };
    for (part, holds) in held.into_iter().enumerate() {
        fixed[part] |= holds;
    }
    if !by_cell {
        in_any(&on.mesh, &mut fixed);
    }
    let free = fixed.iter().filter(|fixed| !**fixed).count();
    let (free, count) = match by_cell {
        true => (on.mesh.in_all(free), on.mesh.in_all(parts.count)),
        false => (free, parts.count),
    };
    if free == 0 {
        return None;
    }
    let first = fixed.iter().position(|fixed| !fixed).unwrap_or(fixed.len());
    Some(match count {
        count if by_cell && (mean || free == count) => NullSpaceKind::EachCell,
        1 => NullSpaceKind::Constant,
        count if free == count && !mean => NullSpaceKind::Constant,
        count => NullSpaceKind::Part { parts: count, free, at: parts.place(&on.mesh, first), mean },
    })
}

/// Returns the cells at the ends of a field's part of the mesh whose integrals between cells involve its value: there is
/// no value on the other side that would cancel a constant. Cells of other processes count as such a side.
fn ends_of_support<'a>(
    terms: &'a NonzeroEntries,
    on: &'a Discretisation,
    of: FieldComponent,
) -> impl Iterator<Item = usize> + 'a {
    let field = &on.fields[of.field];
    let n_cells = on.mesh.n_cells();
    let lives = move |cell: u32| (cell as usize) < n_cells && field.lives_on(cell as usize);
    let pairs = terms.pairs(on, move |term| of.is_value(term.trial));
    pairs.filter(move |_| field.support.is_some()).filter_map(move |[a, b]| {
        match (lives(a), lives(b)) {
            (true, false) => Some(a as usize),
            (false, true) => Some(b as usize),
            _ => None,
        }
    })
}

/// Disjoint sets of vertices that threads unite at the same time; the root of a set is its least vertex.
struct VertexSets(Vec<AtomicU32>);

impl VertexSets {
    fn new(count: usize) -> Self {
        Self((0..count as u32).into_par_iter().map(AtomicU32::new).collect())
    }

    fn root(&self, mut at: u32) -> u32 {
        loop {
            let parent = self.0[at as usize].load(Relaxed);
            if parent == at {
                return at;
            }
            // Halves the path; another thread may have shortened it further.
            let above = self.0[parent as usize].load(Relaxed);
            let _ = self.0[at as usize].compare_exchange(parent, above, Relaxed, Relaxed);
            at = above;
        }
    }

    fn unite(&self, mut a: u32, mut b: u32) {
        loop {
            (a, b) = (self.root(a), self.root(b));
            if a == b {
                return;
            }
            let (low, high) = (a.min(b), a.max(b));
            // Fails if another thread has given this set a lower root.
            if self.0[high as usize].compare_exchange(high, low, Relaxed, Relaxed).is_ok() {
                return;
            }
        }
    }
}

/// Connected parts of a mesh.
pub(super) struct ConnectedParts {
    /// Part of each cell; parts are numbered by their first cells.
    pub(super) of: Vec<u32>,
    /// Number of parts.
    pub(super) count: usize,
}

impl ConnectedParts {
    /// Cells connected by shared vertices or periodicity: the parts of every continuous field.
    pub(super) fn new(mesh: &Mesh) -> Self {
        let joined = mesh.connectivity();
        let sets = VertexSets::new(joined.n_vertices());
        let cells = || (0..mesh.n_cells()).into_par_iter().with_min_len(1 << 10);
        cells().each(|cell| {
            let vertices = joined.vertices(cell);
            vertices[1..].iter().for_each(|&vertex| sets.unite(vertices[0], vertex));
        });
        let root = |cell: usize| sets.root(joined.vertices(cell)[0]);
        let own = Self::of_roots(mesh.n_cells(), joined.n_vertices(), root);
        let Some(cut) = mesh.cut() else { return own };
        let mut part_of = vec![0; joined.n_vertices()];
        for (cell, &part) in own.of.iter().enumerate() {
            joined.vertices(cell).iter().for_each(|&vertex| part_of[vertex as usize] = part);
        }
        own.of_all(cut.group(), &part_of, cut.shared(0))
    }

    /// Merges the parts of all processes that share entities, each in one of them; numbered in rank order.
    fn of_all(
        self,
        group: &Arc<dyn ProcessGroup>,
        part_of: &[u32],
        entities: &[SharedEntity],
    ) -> Self {
        let counts = group.gather(&(self.count as u64).to_le_bytes());
        let before: u64 = counts[..group.rank()].iter().map(|bytes| number_in(bytes)).sum();
        let mut label: Vec<f64> =
            (0..self.count).map(|part| (before + part as u64) as f64).collect();
        let shared = |entity: &SharedEntity| entity.number as usize;
        let dofs = entities.iter();
        let dofs = dofs.map(|own| SharedDof { unknown: shared(own), ranks: &own.ranks });
        let sharing = InterfaceExchange::new(Arc::clone(group), dofs);
        loop {
            let mut least: Vec<f64> = part_of.iter().map(|&part| label[part as usize]).collect();
            sharing.least(&mut least);
            let mut changed = false;
            for number in entities.iter().map(shared) {
                let own = &mut label[part_of[number] as usize];
                changed |= least[number] < *own;
                *own = own.min(least[number]);
            }
            if !any(&**group, changed) {
                break;
            }
        }
        let bytes: Vec<u8> = label.iter().flat_map(|label| (*label as u64).to_le_bytes()).collect();
        let all: BTreeSet<u64> = group.gather(&bytes).concat().chunks(8).map(number_in).collect();
        let all: Vec<u64> = all.into_iter().collect();
        let place =
            |part: &u32| all.partition_point(|&own| own < label[*part as usize] as u64) as u32;
        Self { of: self.of.iter().map(place).collect(), count: all.len() }
    }

    /// Cells connected by pairs; without any on all processes, each cell is a part.
    fn cells(mesh: &Mesh, pairs: impl Iterator<Item = [u32; 2]>, has_pairs: bool) -> Self {
        let beyond = mesh.beyond().filter(|_| has_pairs);
        let count = mesh.n_cells() + beyond.map_or(0, CellsBeyond::len);
        let sets = VertexSets::new(count);
        pairs.for_each(|[a, b]| sets.unite(a, b));
        let mut own = Self::of_roots(count, count, |cell| sets.root(cell as u32));
        if let (Some(cut), Some(beyond)) = (mesh.cut(), beyond) {
            let part_of = own.of.clone();
            own = own.of_all(cut.group(), &part_of, beyond.shared());
        }
        own.of.truncate(mesh.n_cells());
        own
    }

    /// Numbers the parts of cells by the roots of their sets, which are below `roots`.
    fn of_roots(cells: usize, roots: usize, root: impl Fn(usize) -> u32 + Sync) -> Self {
        let all = || (0..cells).into_par_iter().with_min_len(1 << 10);
        let first = if cells > 0 { root(0) } else { 0 };
        let (mut of, mut count) = (vec![0; cells], u32::from(cells > 0));
        if !all().holds(|cell| root(cell) == first) {
            let mut number = vec![u32::MAX; roots];
            count = 0;
            for (cell, own) in of.iter_mut().enumerate() {
                let number = &mut number[root(cell) as usize];
                if *number == u32::MAX {
                    *number = count;
                    count += 1;
                }
                *own = *number;
            }
        }
        Self { of, count: count as usize }
    }

    /// Returns the mask of parts on which a condition on any process fixes the component.
    pub(super) fn held(&self, on: &Discretisation, of: FieldComponent) -> Vec<bool> {
        let mut held = self.held_here(on, of);
        in_any(&on.mesh, &mut held);
        if let Some(mut lives) = self.living(on, of.field) {
            in_any(&on.mesh, &mut lives);
            held.iter_mut().zip(lives).for_each(|(held, lives)| *held |= !lives);
        }
        held
    }

    /// Returns the mask of parts with cells of this process on which a field lives; `None` if it lives on all cells.
    fn living(&self, on: &Discretisation, field: usize) -> Option<Vec<bool>> {
        let support = on.fields[field].support.as_ref()?;
        let mut lives = vec![false; self.count];
        let cells = self.of.iter().zip(&support.cells).filter(|(_, lives)| **lives);
        cells.for_each(|(&part, _)| lives[part as usize] = true);
        Some(lives)
    }

    /// Returns the mask of parts on which a condition on this process fixes the component.
    fn held_here(&self, on: &Discretisation, of: FieldComponent) -> Vec<bool> {
        let field = &on.fields[of.field];
        let (space, components) = (&field.space, field.space.components());
        let mut held = vec![false; self.count];
        let mut left = self.count;
        // A mean-value constraint fixes the constant of the first part.
        let first = on.mesh.cut().is_none_or(|cut| cut.group().rank() == 0);
        if first && field.constraints.mean().is_some() && self.count > 0 {
            held[0] = true;
            left -= 1;
        }
        // A combination is taken to fix each component with a share in it.
        let combined = field.constraints.oblique().iter();
        let shares = |given: &[[f64; 3]; 3]| given[of.component][of.component] > SHARE;
        let combined = combined.filter(|own| shares(&own.normals)).map(|own| own.node);
        let combined: BTreeSet<u32> = combined.collect();
        for (part, holds) in self.held_by_affine(on, of).into_iter().enumerate() {
            if holds && !held[part] {
                held[part] = true;
                left -= 1;
            }
        }
        if left == 0 {
            return held;
        }
        if field.constraints.given().len() == 0 && combined.is_empty() {
            return held;
        }
        for (cell, &part) in self.of.iter().enumerate() {
            let holds = |&node: &u32| {
                field.constraints.is_given(node as usize * components + of.component)
                    || combined.contains(&node)
            };
            if !held[part as usize] && space.cell_nodes(cell).iter().any(holds) {
                held[part as usize] = true;
                left -= 1;
                if left == 0 {
                    break;
                }
            }
        }
        held
    }

    /// Returns the part of each node of a space.
    pub(super) fn of_nodes(&self, space: &Space) -> Vec<u32> {
        let mut part_of = vec![0; space.n_nodes()];
        if self.count == 1 {
            return part_of;
        }
        for (cell, &part) in self.of.iter().enumerate() {
            space.cell_nodes(cell).iter().for_each(|&node| part_of[node as usize] = part);
        }
        part_of
    }

    /// Returns the mask of parts on which an affine constraint alone excludes a constant.
    fn held_by_affine(&self, on: &Discretisation, of: FieldComponent) -> Vec<bool> {
        let mut held = vec![false; self.count];
        if on.affine.is_empty() {
            return held;
        }
        let part_of = self.of_nodes(&on.fields[of.field].space);
        for row in 0..on.affine.len() {
            // Residual of the constraint for a constant, and sum of absolute terms, in each part.
            let mut sums: BTreeMap<u32, (f64, f64)> = BTreeMap::new();
            for (unknown, factor) in on.affine.equation(row) {
                if let Some((field, node, component)) = on.unknown(unknown)
                    && (field, component) == (of.field, of.component)
                {
                    let sum = sums.entry(part_of[node]).or_default();
                    *sum = (sum.0 + factor, sum.1 + factor.abs());
                }
            }
            let kept = sums.into_iter().filter(|(_, (sum, size))| sum.abs() > LEFT * size);
            kept.for_each(|(part, _)| held[part as usize] = true);
        }
        held
    }

    /// Returns the centre of the first cell of a part.
    pub(super) fn place(&self, mesh: &Mesh, part: usize) -> [f64; 3] {
        let first = self.of.iter().position(|&of| of as usize == part);
        mesh.first_in_all(first.map(|cell| mesh.centre(cell))).unwrap_or_default()
    }
}

/// Decodes a little-endian number.
fn number_in(bytes: &[u8]) -> u64 {
    u64::from_le_bytes(bytes.try_into().unwrap_or_default())
}

/// Reduces flags over all processes with a logical or.
pub(super) fn in_any(mesh: &Mesh, facts: &mut [bool]) {
    let mut all: Vec<f64> = facts.iter().map(|&fact| f64::from(u8::from(fact))).collect();
    mesh.reduce_in_all(Reduction::Largest, &mut all);
    facts.iter_mut().zip(all).for_each(|(fact, all)| *fact = all > 0.0);
}
