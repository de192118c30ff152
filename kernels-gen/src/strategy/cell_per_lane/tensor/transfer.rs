//! Gather and scatter of tensor cells: by node, by DoF, or in runs.

use super::super::column::Column;
use super::{ElementVector, Tensor};
use crate::element::Element;
use crate::kir::build::Builder;
use crate::kir::{ArgumentId, Entries, Index, LocalId, Positions, Run, Statement, TableId, Write};
use crate::lower::factors::Factors;
use crate::lower::hanging::Nodes;
use crate::lower::lowering::{Lowering, repeat};
use crate::lower::restrict::NodalLocation;
use fem_dsl::point::Side;

impl Tensor {
    fn places(&self, factors: &Factors) -> NodePositions {
        NodePositions {
            dim: self.dim,
            n: [0, 1, 2].map(|axis| factors.n(axis)),
            plane: self.nodal_plane(factors),
        }
    }

    pub(super) fn gather(&self, s: &mut Lowering<'_>, index: usize) {
        let quantity = s.facts.quantities[index].clone();
        let local = self.inputs[index].1.nodal;
        let nodes = quantity.element.count();
        let components = quantity.components;
        let batch = Index::from(s.b.batch());
        let unroll = self.unrolled(s.facts, nodes);
        s.b.comment(&format!("gather {}", quantity.name));
        let nodal = NodalLocation::of(s, &quantity);
        let places = self.places(&self.inputs[index].0);
        if let Some((source, map)) = nodal.cells() {
            let run = whole_cell(s, places, components, (map, local));
            return s.b.statement(Statement::GatherRun { source, run });
        }
        let Some((source, map)) = nodal.runs() else {
            return places.each(&mut s.b, unroll, |b, a, place| {
                let node = nodal.node(b, a);
                for c in 0..components {
                    let value = nodal.gather(b, &node, c);
                    b.store(local, place.plus(c * places.length()), value);
                }
            });
        };
        let (positions, runs) = runs(s, places, (quantity.element, components));
        let all = quantity.element.run_count();
        for ElementRun { number, first, length, .. } in runs {
            let at = batch.times(all).plus(number);
            let run = unmasked((map, at), local, positions, (first, length));
            s.b.statement(Statement::GatherRun { source, run });
        }
    }

    /// Returns the nodes of an array, which may hang.
    pub(in crate::strategy::cell_per_lane) fn nodes(
        &self,
        factors: &Factors,
        array: LocalId,
        components: usize,
    ) -> Nodes {
        let NodePositions { dim, n, plane } = self.places(factors);
        let places = self.places(factors);
        let strides = if dim == 3 { [1, n[0], plane] } else { [1, plane, 0] };
        let (length, side) = (places.length(), Side::Inside);
        Nodes { array, lines: factors.lines, components, dim, strides, length, side }
    }

    /// Interpolates hanging nodes.
    pub(super) fn resolve(&self, s: &mut Lowering<'_>) {
        for (quantity, (factors, arrays)) in s.facts.quantities.iter().zip(&self.inputs) {
            if s.facts.hangs(quantity.source, quantity.element) {
                s.b.comment(&format!("hanging nodes of {}", quantity.name));
                self.nodes(factors, arrays.nodal, quantity.components).resolve(s, false);
            }
        }
    }

    /// Adds the results of hanging nodes to those of their parents.
    pub(super) fn resolve_back(&self, s: &mut Lowering<'_>) {
        for ElementVector { field, rows, factors, arrays, .. } in &self.results {
            if s.facts.result_hangs(*field) {
                s.comment_on("hanging nodes back", *field);
                self.nodes(factors, arrays.nodal, rows.len()).resolve(s, true);
            }
        }
    }

    /// Runs `body` for each node of a column of an element matrix, with a unit vector in its quantity.
    pub(super) fn each_unit(
        &self,
        s: &mut Lowering<'_>,
        unroll: bool,
        mut body: impl FnMut(&mut Lowering<'_>, &Index),
    ) {
        let (factors, arrays) = &self.inputs[0];
        let places = self.places(factors);
        places.each(s, unroll, |s, node, place| {
            s.b.clear(arrays.nodal, 0, places.length());
            let one = s.b.constant(1.0);
            s.b.store(arrays.nodal, place.clone(), one);
            body(s, node);
        });
    }

    /// Processes the array of each result, which belongs to the column of node `j`.
    pub(super) fn put(&self, s: &mut Lowering<'_>, column: &Column<'_>, j: &Index) {
        for ElementVector { rows, factors, arrays, .. } in &self.results {
            let places = self.places(factors);
            let unroll = self.unrolled(s.facts, places.count());
            places.each(&mut s.b, unroll, |b, i, place| {
                for (c, row) in rows.clone().enumerate() {
                    let value = b.load(arrays.nodal, place.plus(c * places.length()));
                    column.put(b, row, (i, j), value);
                }
            });
        }
    }

    pub(in crate::strategy::cell_per_lane) fn scatter(&self, s: &mut Lowering<'_>) {
        if self.results.is_empty() {
            return;
        }
        s.b.stage(s.facts.plan.block);
        for result in &self.results {
            self.scatter_field(s, result);
        }
    }

    fn scatter_field(&self, s: &mut Lowering<'_>, result: &ElementVector) {
        let ElementVector { field, factors, arrays, .. } = result;
        let places = self.places(factors);
        let nodes = places.count();
        let components = s.facts.components(*field);
        let batch = Index::from(s.b.batch());
        let unroll = self.unrolled(s.facts, nodes);
        let nodal = NodalLocation::result(s, *field);
        let local = arrays.nodal;
        s.comment_on("scatter", *field);
        if s.facts.plan.edges
            && nodal.adds_by_node()
            && s.facts.elements.fields[*field].is_continuous()
        {
            return scatter_edges(s, nodal, places, local, components);
        }
        if let Some((target, map)) = nodal.cells() {
            let run = whole_cell(s, places, components, (map, local));
            return s.b.statement(Statement::ScatterRun { target, run, write: nodal.write() });
        }
        let Some((target, map)) = nodal.runs() else {
            return places.each(&mut s.b, unroll, |b, a, place| {
                let node = nodal.node(b, a);
                for c in 0..components {
                    let value = b.load(local, place.plus(c * places.length()));
                    nodal.scatter(b, &node, c, value);
                }
            });
        };
        let element = s.facts.elements.fields[*field];
        let (positions, runs) = runs(s, places, (element, components));
        let (all, whole) = (element.run_count(), s.facts.is_whole());
        for ElementRun { number, first, length, is_inside } in runs {
            let write = if whole && is_inside { Write::Exclusive } else { nodal.write() };
            let at = batch.times(all).plus(number);
            let run = unmasked((map, at), local, positions, (first, length));
            s.b.statement(Statement::ScatterRun { target, run, write });
        }
    }
}

/// Scatters the rows of nodes along the first axis: both ends at once, where the cell of the next thread may continue.
fn scatter_edges(
    s: &mut Lowering<'_>,
    nodal: NodalLocation,
    places: NodePositions,
    local: LocalId,
    components: usize,
) {
    let (nodes, n) = (places.count(), places.n[0]);
    let batch = Index::from(s.b.batch());
    let load = |b: &mut Builder, a: usize, c: usize| {
        let layer = places.layer();
        let place = a / layer * places.plane + a % layer;
        b.load(local, Index::from(place + c * places.length()))
    };
    for row in (0..nodes).step_by(n) {
        for a in row + 1..row + n - 1 {
            for c in 0..components {
                let value = load(&mut s.b, a, c);
                nodal.scatter(&mut s.b, &batch.times(nodes).plus(a), c, value);
            }
        }
        let ends = [row, row + n - 1];
        let values = (0..components).map(|c| ends.map(|a| load(&mut s.b, a, c))).collect();
        nodal.scatter_edge(&mut s.b, ends.map(|a| batch.times(nodes).plus(a)), values);
    }
}

/// Positions of the nodes of a cell in the private array of one component.
#[derive(Clone, Copy)]
struct NodePositions {
    dim: usize,
    /// Nodes per direction; 1 beyond the dimension.
    n: [usize; 3],
    /// The distance of layers of nodes.
    plane: usize,
}

impl NodePositions {
    /// Returns the extent of the array.
    fn length(self) -> usize {
        self.n[self.dim - 1] * self.plane
    }

    /// Returns the number of nodes of a layer.
    fn layer(self) -> usize {
        self.n[..self.dim - 1].iter().product()
    }

    /// Returns the number of nodes.
    fn count(self) -> usize {
        self.n.iter().product()
    }

    /// Calls `body` with each node's index and position.
    fn each<H: AsMut<Builder>>(
        self,
        b: &mut H,
        unroll: bool,
        mut body: impl FnMut(&mut H, &Index, &Index),
    ) {
        let layer = self.layer();
        if layer == self.plane {
            repeat(b, "a", self.count(), unroll, |b, a| body(b, &a, &a));
            return;
        }
        repeat(b, "k", self.n[self.dim - 1], unroll, |b, k| {
            repeat(b, "a", layer, unroll, |b, a| {
                body(b, &(&k.times(layer) + &a), &(&k.times(self.plane) + &a));
            });
        });
    }
}

/// Returns the run of all DoFs of a cell.
fn whole_cell(
    s: &mut Lowering<'_>,
    places: NodePositions,
    components: usize,
    (map, local): (ArgumentId, LocalId),
) -> Run {
    let layer = places.layer();
    let nodes = 0..places.count();
    let positions: Vec<u32> = nodes
        .map(|node| node / layer * places.plane + node % layer)
        .flat_map(|place| (0..components).map(move |c| (c * places.length() + place) as u32))
        .collect();
    let length = positions.len();
    let positions = s.b.table("positions", Entries::Position(positions));
    let at = Index::from(s.b.batch());
    unmasked((map, at), local, positions, (0, length))
}

/// Returns a run of `length` entries of an array, whose positions begin at the entry `first` of a table, for all lanes.
fn unmasked(
    (map, at): (ArgumentId, Index),
    local: LocalId,
    positions: TableId,
    (first, length): (usize, usize),
) -> Run {
    let positions = Positions::Table(positions);
    Run { map, at, scale: 1, local, positions, first, length, masked: false, lines: None }
}

/// A nonempty run of a tensor element.
struct ElementRun {
    /// Its index among those of the cell.
    number: usize,
    /// Its first entry in a table of positions.
    first: usize,
    length: usize,
    /// True inside of the cell.
    is_inside: bool,
}

/// Returns the nonempty runs of a tensor element, with a table of their positions.
fn runs(
    s: &mut Lowering<'_>,
    places: NodePositions,
    (element, components): (Element, usize),
) -> (TableId, Vec<ElementRun>) {
    let layer = places.layer();
    let (mut positions, mut found) = (Vec::new(), Vec::new());
    let all = element.runs();
    for (number, run) in all.iter().enumerate() {
        let first = positions.len();
        for node in run {
            let place = node / layer * places.plane + node % layer;
            positions.extend((0..components).map(|c| (c * places.length() + place) as u32));
        }
        let (length, is_inside) = (positions.len() - first, number == all.len() / 2);
        if length > 0 {
            let number = element.first_run() + number;
            found.push(ElementRun { number, first, length, is_inside });
        }
    }
    (s.b.table("positions", Entries::Position(positions)), found)
}
