//! Random cells, numberings and data for a form: input of both the reference and the kernels.

use super::launch::Shape;
use super::pairs::{Connected, Turn, connected, copied};
use fem_dsl::point::{Location, PointForm};
use fem_dsl::testing::Random;
use kernels_gen::abi::hanging::word;
use kernels_gen::abi::hash;
use kernels_gen::element::{Cell, Element, Lagrange, Rule};
use kernels_gen::plan::Geometry;
use std::collections::BTreeSet;

/// Nodes of a space: the connectivity, and on tensor cells the first node of each of the 3^d entities.
pub(crate) struct Numbering {
    pub(crate) count: usize,
    pub(crate) nodes: Vec<u32>,
    pub(crate) starts: Vec<u32>,
    /// True for each function of each cell whose sign is reversed, of vector-valued functions; else empty.
    pub(crate) reversed: Vec<bool>,
}

impl Numbering {
    /// Returns the entries of a vector, cell by cell.
    pub(crate) fn of_cells(&self, vector: &[f64]) -> Vec<f64> {
        let components = vector.len() / self.count;
        let entries = |&node: &u32| &vector[node as usize * components..][..components];
        self.nodes.iter().flat_map(entries).copied().collect()
    }

    /// Returns the signs of the functions of all cells as kernels read them.
    pub(crate) fn signs(&self) -> Vec<f64> {
        let sign = |at: usize| if self.reversed.get(at) == Some(&true) { -1.0 } else { 1.0 };
        (0..self.nodes.len()).map(sign).collect()
    }
}

/// Converts `[cell][value]` to `[batch][value][lane]`; the last cell is repeated.
pub(crate) fn batched<T: Copy>(cells: usize, lanes: usize, values: &[T]) -> Vec<T> {
    let stride = values.len() / cells;
    let mut all = Vec::new();
    for batch in 0..cells.div_ceil(lanes) {
        for value in 0..stride {
            for lane in 0..lanes {
                let cell = (batch * lanes + lane).min(cells - 1);
                all.push(values[cell * stride + value]);
            }
        }
    }
    all
}

/// A field's nodes and nodal values.
pub(crate) struct Unknowns {
    pub(crate) numbering: Numbering,
    pub(crate) state: Vec<f64>,
    pub(crate) direction: Vec<f64>,
    /// The constrained degrees of freedom, for index arrays with one index each.
    pub(crate) constrained: Vec<bool>,
}

/// Data of a form on a few cells.
pub(crate) struct Setting {
    pub(crate) cell: Cell,
    /// The number of cells.
    pub(crate) cells: usize,
    pub(crate) shape: Shape,
    pub(crate) rule: Rule,
    pub(crate) degree: usize,
    pub(crate) geometry: Lagrange,
    /// `[cell][node][axis]`
    pub(crate) coordinates: Vec<f64>,
    pub(crate) fields: Vec<Unknowns>,
    /// The numberings of nodal data.
    pub(crate) aux: Vec<Option<Numbering>>,
    /// Values in the form of the reference.
    pub(crate) aux_values: Vec<Vec<f64>>,
    pub(crate) params: Vec<f64>,
    pub(crate) time: f64,
    /// The hanging word of each cell, for plans that use it.
    pub(crate) hanging: Vec<u32>,
    /// The neighbours of cells, for integrals between them.
    pub(crate) connected: Option<Connected>,
    /// The cells on the outside of pairs; the others are on the inside then.
    pub(crate) outside: Option<Box<Setting>>,
    /// The rotation of each cell, if cells are rotated.
    pub(crate) turns: Vec<Turn>,
}

impl Setting {
    /// Creates `count` cells for kernels with this geometry, or as many copies of cells that meet if the form has integrals
    /// between cells. They share nodes, unless nodes have coordinates: those are random cell by cell.
    pub(crate) fn new(
        form: &PointForm,
        degree: usize,
        rule: Rule,
        shape: Shape,
        geometry: Geometry,
        count: usize,
    ) -> Self {
        let number = if geometry == Geometry::Corners { number_apart } else { number };
        let cell = rule.cell();
        let mut random = Random(hash(&form.name).wrapping_add(degree as u64));
        let meet = form.integrals.iter().any(|integral| integral.region.is_interior());
        let (copies, count) = (count, if meet { count * copied(cell) } else { count });
        // Derivatives of functions with random nodal values grow with the degree.
        let amplitude = 1.0 / degree.max(1) as f64;
        let element = |space| Element::in_space(cell, space, degree).expect("a supported degree");
        let aux = form.aux.iter().map(|aux| match aux.location {
            Location::Nodes(space) => Some(number(element(space), count)),
            Location::Cells | Location::Points => None,
        });
        let aux: Vec<Option<Numbering>> = aux.collect();
        let aux_values = form.aux.iter().zip(&aux).map(|(aux, numbering)| {
            let places = match (aux.location, numbering) {
                (Location::Points, _) => count * rule.count(),
                (_, Some(numbering)) => numbering.count,
                _ => count,
            };
            let values = random.signed(places * entries(aux.location, aux.shape.components()));
            // Positive, like material data.
            values.into_iter().map(|v| 1.2 + amplitude * v).collect()
        });
        let aux_values = aux_values.collect();
        let (geometry, coordinates, connected) = match meet {
            true => {
                // Of vector-valued functions, plans depend on how cells meet, whatever the number of copies.
                let mut own = Random(hash(&form.name).wrapping_add(degree as u64));
                let is_mapped = form.fields.iter().any(|field| field.space.is_piola());
                let random = if is_mapped { &mut own } else { &mut random };
                let (geometry, coordinates, how) = connected(cell, shape, copies, random);
                (geometry, coordinates, Some(how))
            }
            false => {
                let (geometry, coordinates) = cells(cell, shape, count, &mut random);
                (geometry, coordinates, None)
            }
        };
        let mut waves = |count| random.signed(count).into_iter().map(|v| amplitude * v).collect();
        let fields = form.fields.iter().map(|field| {
            let numbering = number(element(field.space), count);
            let components = entries(Location::Nodes(field.space), field.shape.components());
            let unknowns = numbering.count * components;
            let constrained = (0..unknowns).map(|i| i % 5 == 2).collect();
            let (state, direction) = (waves(unknowns), waves(unknowns));
            Unknowns { numbering, state, direction, constrained }
        });
        let fields = fields.collect();
        Self {
            cell,
            cells: count,
            shape,
            rule,
            degree,
            geometry,
            coordinates,
            fields,
            aux,
            aux_values,
            params: form.params.iter().flat_map(|param| param.value.clone()).collect(),
            time: 0.625,
            hanging: hanging(cell.dim(), count, &mut random),
            connected,
            outside: None,
            turns: Vec::new(),
        }
    }

    /// Returns numbers of the coordinates of each cell.
    pub(crate) fn per_cell(&self, numbers: impl Fn(&[f64]) -> Vec<f64>) -> Vec<f64> {
        let stride = self.geometry.count() * self.cell.dim();
        self.coordinates.chunks(stride).flat_map(numbers).collect()
    }

    /// Returns the diameter of a cell.
    pub(crate) fn diameter(&self, coordinates: &[f64]) -> f64 {
        let dim = self.cell.dim();
        let nodes = self.geometry.nodes();
        let vertices: Vec<&[f64]> = coordinates
            .chunks(dim)
            .zip(&nodes)
            .filter_map(|(x, node)| (node.dim == 0).then_some(x))
            .collect();
        let distance = |a: &[f64], b: &[f64]| {
            a.iter().zip(b).map(|(a, b)| (a - b) * (a - b)).sum::<f64>().sqrt()
        };
        let pairs = vertices.iter().flat_map(|a| vertices.iter().map(move |b| distance(a, b)));
        pairs.fold(0.0, f64::max)
    }
}

/// Returns adjacent unit cells, perturbed as far as their shape permits.
fn cells(cell: Cell, shape: Shape, count: usize, random: &mut Random) -> (Lagrange, Vec<f64>) {
    let dim = cell.dim();
    let geometry = Lagrange::continuous(cell, shape.order()).expect("a supported order");
    // Nodes of high order are close together: larger perturbations would invert the cell.
    let order = shape.order() as f64;
    let reach = if shape == Shape::Affine { 0.0 } else { 0.04 / (order * order) };
    let mut coordinates = Vec::new();
    for number in 0..count {
        let map: Vec<f64> = random.signed(dim * dim).into_iter().map(|v| 0.2 * v).collect();
        for point in geometry.points() {
            for axis in 0..dim {
                let tilt: f64 = (0..dim).map(|a| map[axis * dim + a] * point[a]).sum();
                let push = reach * (2.0 * random.unit() - 1.0);
                // No coordinate equals a number in the forms, and none is large: the derivative of the map is a sum in
                // which they cancel.
                let origin = if axis == 0 { 0.013 + number as f64 % 7.0 * 0.05 } else { -0.317 };
                coordinates.push(origin + point[axis] + tilt + push);
            }
        }
    }
    (geometry, coordinates)
}

/// Returns all hanging words, including none.
pub(crate) fn words(dim: usize) -> Vec<u32> {
    let of = |bits: usize| {
        let bit = |at: usize| bits >> (dim + at) & 1 == 1;
        let faces = [0, 1, 2].map(|axis| axis < dim && bit(axis));
        let edges = [0, 1, 2].map(|axis| dim == 3 && bit(3 + axis));
        word(bits & ((1 << dim) - 1), faces, edges, dim)
    };
    // An edge of a hanging face is not marked itself, so some words occur more than once.
    let all: BTreeSet<u32> = (0..1usize << if dim == 3 { 9 } else { 4 }).map(of).collect();
    all.into_iter().collect()
}

/// Returns random hanging words: none for one cell in eight.
fn hanging(dim: usize, count: usize, random: &mut Random) -> Vec<u32> {
    let words = words(dim);
    let word = |random: &mut Random| match random.below(8) {
        0 => 0,
        _ => words[random.below(words.len())],
    };
    (0..count).map(|_| word(random)).collect()
}

/// Returns the entries of a node for a quantity with some components: one of vector-valued functions.
fn entries(location: Location, components: usize) -> usize {
    match location {
        Location::Nodes(space) if space.is_piola() => 1,
        _ => components,
    }
}

/// Numbers the nodes of each cell separately.
fn number_apart(element: Element, count: usize) -> Numbering {
    let total = element.count() * count;
    let (nodes, starts, reversed) = ((0..total as u32).collect(), Vec::new(), Vec::new());
    Numbering { count: total, nodes, starts, reversed }
}

/// Numbers the functions of each cell run by run, of which neighbours share some outside of their interiors; each cell
/// sees some of them with the other sign.
fn number_vectors(element: Element, count: usize) -> Numbering {
    let runs = element.runs();
    let each = runs.len() / element.cell().dim();
    let is_inside = |number: usize| number % each == each / 2;
    let size = |inside: bool| -> usize {
        let own = runs.iter().enumerate().filter(|(number, _)| is_inside(*number) == inside);
        own.map(|(_, run)| run.len()).sum()
    };
    let (outer, inner) = (size(false), size(true));
    let shared = outer + 3 * (count - 1);
    let (mut nodes, mut starts) = (vec![0; count * element.count()], Vec::new());
    for cell in 0..count {
        let mut next = [3 * cell, shared + cell * inner];
        for (number, run) in runs.iter().enumerate() {
            let next = &mut next[usize::from(is_inside(number))];
            starts.push(*next as u32);
            for (at, &function) in run.iter().enumerate() {
                nodes[cell * element.count() + function] = (*next + at) as u32;
            }
            *next += run.len();
        }
    }
    let own = (0..count).flat_map(|c| (0..element.count()).map(move |i| (c, i)));
    let reversed = own.map(|(c, i)| (5 * c + 3 * i) % 7 < 3).collect();
    Numbering { count: shared + count * inner, nodes, starts, reversed }
}

/// Numbers nodes entity by entity, so that neighbours share some; cells with discontinuous elements share none.
fn number(element: Element, count: usize) -> Numbering {
    let element = match element.lagrange() {
        Some(element) if element.is_continuous() => element,
        Some(_) => return number_apart(element, count),
        None => return number_vectors(element, count),
    };
    let (cell, p) = (element.cell(), element.degree());
    let nodes = element.nodes();
    if !cell.is_tensor() {
        let total = nodes.len() + 3 * (count - 1);
        let map =
            (0..count).flat_map(|c| (0..nodes.len()).map(move |i| (3 * c + i) as u32)).collect();
        return Numbering { count: total, nodes: map, starts: Vec::new(), reversed: Vec::new() };
    }
    // Entity (t_x, t_y, t_z), t = 0 below, 1 inside, 2 above, uses block c or c + 1 of its kind: the lower blocks
    // belong to cell c, the upper ones to the next, the interior to c only.
    let dim = cell.dim();
    let digit = |entity: usize, axis: usize| entity / 3usize.pow(axis as u32) % 3;
    let kinds = 2usize.pow(dim as u32);
    let kind = |entity: usize| -> usize {
        (0..dim).map(|axis| usize::from(digit(entity, axis) == 1) << axis).sum()
    };
    let size = |kind: usize| (p - 1).pow(kind.count_ones());
    let above = |entity: usize| -> usize {
        (0..dim).map(|axis| usize::from(digit(entity, axis) == 2) << axis).sum()
    };
    // Kind by kind; a kind has blocks for every cell and for up to 2^d − 1 beyond.
    let blocks = count + kinds;
    let mut first = vec![0; kinds + 1];
    for k in 0..kinds {
        first[k + 1] = first[k] + blocks * size(k);
    }
    let start = |c: usize, entity: usize| {
        let k = kind(entity);
        first[k] + (c + above(entity)) * size(k)
    };
    let entities = 3usize.pow(dim as u32);
    let starts = (0..count)
        .flat_map(|c| (0..entities).map(move |e| (c, e)))
        .map(|(c, e)| start(c, e) as u32);
    let place = |c: usize, lattice: [usize; 3]| {
        let (mut entity, mut offset, mut stride) = (0, 0, 1);
        for axis in 0..dim {
            let t = if lattice[axis] == 0 {
                0
            } else if lattice[axis] == p {
                2
            } else {
                1
            };
            entity += t * 3usize.pow(axis as u32);
            if t == 1 {
                offset += (lattice[axis] - 1) * stride;
                stride *= p - 1;
            }
        }
        (start(c, entity) + offset) as u32
    };
    let starts = starts.collect();
    let map = (0..count).flat_map(|c| nodes.iter().map(move |node| (c, node.lattice)));
    let nodes = map.map(|(c, lattice)| place(c, lattice)).collect();
    Numbering { count: first[kinds], nodes, starts, reversed: Vec::new() }
}

/// Returns the numbers x_0 and the constant J, row-major, from the vertices of a cell.
pub(crate) fn affine(cell: Cell, coordinates: &[f64], dim: usize, x: bool) -> Vec<f64> {
    let tip = |axis: usize| if cell.is_tensor() { 1 << axis } else { axis + 1 };
    let mut numbers = Vec::new();
    for i in 0..dim {
        numbers.extend((0..dim).map(|axis| coordinates[tip(axis) * dim + i] - coordinates[i]));
    }
    numbers.extend_from_slice(if x { &coordinates[..dim] } else { &[] });
    numbers
}

/// Returns the coefficients of the multilinear map, by monomial, from the vertices of a tensor cell.
pub(crate) fn monomials(coordinates: &[f64], dim: usize) -> Vec<f64> {
    let coefficient = |m: usize, i: usize| -> f64 {
        (0..1usize << dim)
            .filter(|vertex| vertex & !m == 0)
            .map(|vertex| {
                let sign = if (m ^ vertex).count_ones().is_multiple_of(2) { 1.0 } else { -1.0 };
                sign * coordinates[vertex * dim + i]
            })
            .sum()
    };
    (0..1usize << dim)
        .flat_map(|m| (0..dim).map(move |i| (m, i)))
        .map(|(m, i)| coefficient(m, i))
        .collect()
}
