//! Cells that meet at facets, for kernels of integrals between cells: copies of a few cells, some of half the size.
//!
//! The reference finds the pairs by places. Kernels take both cells with their facets at ξ₀ = 0, in orientations that are
//! found by places, too: in all of them, whereas meshes sort the vertices of simplices.

use super::launch::Shape;
use super::setting::{Numbering, Setting, Unknowns};
use fem_dsl::point::Side;
use fem_dsl::testing::Random;
use kernels_gen::abi::{Indices, hanging};
use kernels_gen::element::{Cell, Element, Lagrange, tabulate};
use kernels_gen::plan::turns::of_pair;
use kernels_gen::plan::{Elements, Plan};
use runtime::reference::{CellPair, Cells, find_pairs};
use std::collections::BTreeMap;

/// Cells that meet.
pub(crate) struct Connected {
    /// The vertices of each cell before they are mapped, in integers: `[cell][vertex]`.
    vertices: Vec<[f64; 3]>,
    /// The number of each node of the geometry: `[cell][node]`.
    nodes: Vec<u32>,
    copies: usize,
}

/// A cell, its facet at ξ₀ = 0, and the orientation of the facet.
pub(crate) type Turn = (usize, usize, u8);

/// Returns the vertices of the cells of a copy. Two have the same size, and beside them two half of it; simplices are
/// mirror images.
fn copy(cell: Cell) -> Vec<Vec<[f64; 3]>> {
    let (vertices, boxes) = (
        cell.vertices(),
        [([0.0, 0.0], 2.0), ([2.0, 0.0], 2.0), ([0.0, 2.0], 1.0), ([1.0, 2.0], 1.0)],
    );
    let image = |map: &dyn Fn([f64; 3]) -> [f64; 3]| vertices.iter().map(|&x| map(x)).collect();
    match cell.is_tensor() {
        true => boxes
            .iter()
            // Beside a line is nothing.
            .take(if cell.dim() == 1 { 2 } else { 4 })
            .map(|([x, y], size)| image(&|[a, b, c]| [x + size * a, y + size * b, size * c]))
            .collect(),
        false => [[1.0, 1.0], [-1.0, 1.0], [1.0, -1.0]]
            .iter()
            .map(|[x, y]| image(&|[a, b, c]| [x * a, y * b, c]))
            .collect(),
    }
}

/// Returns the number of cells of a copy.
pub(super) fn copied(cell: Cell) -> usize {
    copy(cell).len()
}

/// Returns the vertices of a cell in a random order of positive orientation.
fn rotated(cell: Cell, vertices: &[[f64; 3]], random: &mut Random) -> Vec<[f64; 3]> {
    let corners = Lagrange::continuous(cell, 1).expect("a supported order");
    loop {
        let facet = random.below(cell.facets().len());
        let order = corners.turned(facet, random.below(cell.facet_orientations()) as u8);
        let own: Vec<[f64; 3]> = order.into_iter().map(|vertex| vertices[vertex]).collect();
        let edge = |axis: usize| {
            let tip = own[if cell.is_tensor() { 1 << axis } else { axis + 1 }];
            [0, 1, 2].map(|i| tip[i] - own[0][i])
        };
        let beside =
            |axis: usize, other: [f64; 3]| if axis < cell.dim() { edge(axis) } else { other };
        let [a, b, c] = [edge(0), beside(1, [0.0, 1.0, 0.0]), beside(2, [0.0, 0.0, 1.0])];
        let minor = |i: usize, j: usize| b[i] * c[j] - b[j] * c[i];
        if a[0] * minor(1, 2) + a[1] * minor(2, 0) + a[2] * minor(0, 1) > 0.0 {
            return own;
        }
    }
}

/// Returns copies of cells that meet: the element of their geometry, the coordinates of its nodes, and how they meet. A
/// polynomial of the whole plane or space maps each copy, so that cells of different size have common facets.
pub(super) fn connected(
    cell: Cell,
    shape: Shape,
    copies: usize,
    random: &mut Random,
) -> (Lagrange, Vec<f64>, Connected) {
    let (dim, order) = (cell.dim(), shape.order() as i32);
    let geometry = Lagrange::continuous(cell, shape.order()).expect("a supported order");
    let corners = Lagrange::continuous(cell, 1).expect("a supported order");
    let table = tabulate(corners, &geometry.points());
    let cells: Vec<Vec<[f64; 3]>> =
        copy(cell).iter().map(|vertices| rotated(cell, vertices, random)).collect();
    let (mut coordinates, mut vertices, mut nodes) = (Vec::new(), Vec::new(), Vec::new());
    let mut first = 0;
    for _ in 0..copies {
        let slopes: Vec<f64> = random.signed(dim * dim).into_iter().map(|v| 0.1 * v).collect();
        let straight = shape == Shape::Affine;
        let reach = if straight { 0.0 } else { 0.2 / f64::from(order) };
        let bends: Vec<f64> = random.signed(dim).into_iter().map(|v| reach * v).collect();
        let mapped = |at: [f64; 3]| {
            let at = at.map(|x| x / 2.0);
            let bend: f64 = match cell.is_tensor() {
                true => at[..dim].iter().map(|x| (x / 2.0).powi(order)).product(),
                false => at[0].powi(order - 1) * at[1],
            };
            let sum = |i: usize| {
                let tilt: f64 = (0..dim).map(|a| slopes[i * dim + a] * at[a]).sum();
                [0.013, -0.317, 0.071][i] + at[i] + tilt + bends[i] * bend
            };
            (0..dim).map(sum).collect::<Vec<f64>>()
        };
        let mut numbers = BTreeMap::<[i64; 3], u32>::new();
        for own in &cells {
            vertices.extend_from_slice(own);
            for q in 0..geometry.count() {
                let along = |axis: usize| {
                    let all = own.iter().enumerate();
                    all.map(|(v, vertex)| table.value(q, v) * vertex[axis]).sum::<f64>()
                };
                let at = [0, 1, 2].map(along);
                coordinates.extend(mapped(at));
                let next = first + numbers.len() as u32;
                nodes.push(*numbers.entry(at.map(|x| (x * 1e6).round() as i64)).or_insert(next));
            }
        }
        first += numbers.len() as u32;
    }
    (geometry, coordinates, Connected { vertices, nodes, copies })
}

impl Connected {
    /// Returns the origin of a rotated cell's facet ξ₀ = 0, and the facet's edges.
    fn frame(&self, corners: Lagrange, (cell, facet, orientation): Turn) -> Vec<[f64; 3]> {
        let own = &self.vertices[cell * corners.count()..][..corners.count()];
        let order = corners.turned(facet, orientation);
        let tips = if corners.cell().is_tensor() { [2, 4] } else { [2, 3] };
        let origin = own[order[0]];
        let edge = |&tip: &usize| [0, 1, 2].map(|i| own[order[tip]][i] - origin[i]);
        let edges = tips[..corners.cell().dim() - 1].iter().map(edge);
        std::iter::once(origin).chain(edges).collect()
    }

    /// Orients two cells such that the points of both facets coincide, or those of the smaller one with the lower half of
    /// the larger one; `None` if they do not meet in this way.
    fn oriented(
        &self,
        cell: Cell,
        sides: [(usize, usize); 2],
        larger: Option<Side>,
    ) -> Option<[Turn; 2]> {
        let corners = Lagrange::continuous(cell, 1).expect("a supported order");
        let all = 0..cell.facet_orientations() as u8;
        let frames = |(number, facet): (usize, usize), side: Side| {
            let scale = if larger == Some(side) { 0.5 } else { 1.0 };
            let frame = move |orientation: u8| {
                let turn = (number, facet, orientation);
                let mut frame = self.frame(corners, turn);
                frame[1..].iter_mut().flatten().for_each(|x| *x *= scale);
                (turn, frame)
            };
            all.clone().map(frame).collect::<Vec<_>>()
        };
        let [inside, outside] = [frames(sides[0], Side::Inside), frames(sides[1], Side::Outside)];
        let mut pairs = inside.iter().flat_map(|a| outside.iter().map(move |b| (a, b)));
        let met = pairs.find(|(a, b)| a.1 == b.1);
        met.map(|(a, b)| [a.0, b.0])
    }
}

/// Returns the number of the facets of a pair of simplices.
pub(super) fn number_of(cell: Cell, turns: &[Turn; 2]) -> u16 {
    let facets = turns.map(|(_, facet, _)| facet as u8);
    of_pair(cell, facets, turns.map(|(.., orientation)| orientation))
}

impl Setting {
    /// Returns the pairs of a plan, as the reference has them and as kernels do: as many as there are copies at most.
    pub(crate) fn pairs(&self, plan: &Plan) -> Vec<(CellPair, [Turn; 2])> {
        let Some(connected) = &self.connected else { return Vec::new() };
        let (geometry, nodes, coordinates) = (self.geometry, &connected.nodes, &self.coordinates);
        let all = find_pairs(&Cells { geometry, nodes, coordinates, periodic: &[] });
        let oriented = |pair: CellPair| {
            let is_reversed = plan.larger == Some(Side::Inside);
            let pair = if is_reversed { pair.reversed(self.cell) } else { pair };
            Some((pair, connected.oriented(self.cell, pair.sides, plan.larger)?))
        };
        let mut pairs: Vec<_> = all.into_iter().filter_map(oriented).collect();
        if let Some(number) = plan.facet {
            pairs.retain(|(_, turns)| number_of(self.cell, turns) == number);
        }
        if let (Indices::Cells, Some((_, first))) = (plan.indices, pairs.first()) {
            // All lanes of a batch are rotated alike.
            let rotation =
                |turns: &[Turn; 2]| turns.map(|(_, facet, orientation)| (facet, orientation));
            let wanted = rotation(first);
            pairs.retain(|(_, turns)| rotation(turns) == wanted);
        }
        pairs.truncate(connected.copies);
        pairs
    }

    /// Replaces the cells by pairs.
    pub(crate) fn of_pairs(&self, elements: &Elements, pairs: &[(CellPair, [Turn; 2])]) -> Self {
        let [inside, outside] = [0, 1].map(|side| {
            let turns: Vec<Turn> = pairs.iter().map(|(_, turns)| turns[side]).collect();
            self.turned(elements, &turns)
        });
        Self { outside: Some(Box::new(outside)), ..inside }
    }

    /// Replaces the cells by facets: each cell is rotated such that the facet is ξ₀ = 0, as facet kernels require. Point
    /// data is unchanged.
    pub(crate) fn turned(&self, elements: &Elements, turns: &[Turn]) -> Self {
        let numbering = |element: Element, own: &Numbering| {
            let (count, mut nodes, mut reversed) = (element.count(), Vec::new(), Vec::new());
            for &(cell, facet, orientation) in turns {
                let own_nodes = &own.nodes[cell * count..][..count];
                let own_signs = own.reversed.get(cell * count..(cell + 1) * count);
                let turned = element.turned(facet, orientation);
                nodes.extend(turned.iter().map(|&node| own_nodes[node]));
                let signs = element.turned_signs(facet, orientation).into_iter().zip(turned);
                let is_reversed = |node: usize| own_signs.is_some_and(|own| own[node]);
                reversed.extend(signs.map(|(sign, node)| sign ^ is_reversed(node)));
            }
            Numbering { count: own.count, nodes, starts: Vec::new(), reversed }
        };
        let fields = self.fields.iter().zip(&elements.fields).map(|(field, &element)| Unknowns {
            numbering: numbering(element, &field.numbering),
            state: field.state.clone(),
            direction: field.direction.clone(),
            constrained: field.constrained.clone(),
        });
        let aux = self.aux.iter().zip(&elements.aux);
        let aux = aux.map(|(own, element)| Some(numbering((*element)?, own.as_ref()?)));
        let of_cells = |values: &Vec<f64>, own: &Option<Numbering>| match own {
            Some(_) => values.clone(),
            None => {
                let each = values.len() / self.cells;
                let row = |&(cell, ..): &Turn| values[cell * each..][..each].to_vec();
                turns.iter().flat_map(row).collect()
            }
        };
        let dim = self.cell.dim();
        let stride = self.geometry.count() * dim;
        let coordinates = turns.iter().flat_map(|&(cell, facet, orientation)| {
            let own = &self.coordinates[cell * stride..][..stride];
            let nodes = self.geometry.turned(facet, orientation).into_iter();
            nodes.flat_map(|node| own[node * dim..][..dim].to_vec())
        });
        let word = |&(cell, facet, orientation): &Turn| {
            hanging::oriented(
                hanging::turned(self.hanging[cell], facet, dim),
                self.cell,
                orientation,
            )
        };
        let values = self.aux_values.iter().zip(&self.aux);
        Self {
            cells: turns.len(),
            coordinates: coordinates.collect(),
            fields: fields.collect(),
            aux: aux.collect(),
            aux_values: values.map(|(values, own)| of_cells(values, own)).collect(),
            params: self.params.clone(),
            hanging: turns.iter().map(word).collect(),
            connected: None,
            outside: None,
            turns: turns.to_vec(),
            ..*self
        }
    }

    /// Returns the entries of degrees of freedom in the rotated cells of each batch, whose lanes are rotated alike:
    /// `[batch][node · components + component]`.
    pub(crate) fn places(&self, element: Element, components: usize, lanes: usize) -> Vec<u32> {
        let mut all = Vec::new();
        for turns in self.turns.chunks(lanes) {
            let (_, facet, orientation) = turns[0];
            let mut places = vec![0; element.count() * components];
            for (place, node) in element.turned(facet, orientation).into_iter().enumerate() {
                for component in 0..components {
                    let entry = component * element.count() + place;
                    places[node * components + component] = entry as u32;
                }
            }
            all.extend(places);
        }
        all
    }

    /// Returns the nodes of each rotated cell in the order of [`kernels_gen::abi::Role::Rows`].
    pub(crate) fn rows(&self, element: Element, map: &[u32]) -> Vec<u32> {
        let (n, nodes) = (element.degree() + 1, element.count());
        let plane = nodes / n;
        let mut all = vec![0; map.len()];
        for (cell, axis) in self.first_axes().into_iter().enumerate() {
            for place in 0..nodes {
                let (i, a) = (place % n, place / n);
                let entry = match axis {
                    0 => i + n * a,
                    1 => plane * i + a,
                    _ => plane * i + a % n * n + a / n,
                };
                all[cell * nodes + entry] = map[cell * nodes + place];
            }
        }
        all
    }

    /// Returns the axis of each rotated cell that is the first axis of the cell itself.
    pub(crate) fn first_axes(&self) -> Vec<u32> {
        let corners = Lagrange::continuous(self.cell, 1).expect("a supported order");
        let axis = |&(_, facet, orientation): &Turn| {
            let order = corners.turned(facet, orientation);
            let is_first = |axis: &usize| order[1 << axis].abs_diff(order[0]) == 1;
            (0..self.cell.dim()).find(is_first).expect("an axis") as u32
        };
        self.turns.iter().map(axis).collect()
    }
}
