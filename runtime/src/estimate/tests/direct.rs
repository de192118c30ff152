//! Jumps between cells, including hanging facets, compared with the gradients of both sides at the same points.

use super::super::{Estimator, scale};
use super::{boxed, turned};
use crate::assert_close;
use crate::estimate::surface::FacetGeometry;
use crate::kernels::compile::{Execution, Target};
use crate::mesh::assemble::{Conformity, assemble};
use crate::mesh::measure::Gradients;
use crate::mesh::measure::JacobianSign;
use crate::mesh::pairs::{FacetPair, FacetSide};
use crate::mesh::views::reference_normal;
use crate::mesh::{Cell, CellOrdering, Mesh, MeshData};
use crate::reference::BoundedValue;
use crate::space::discretisation::Discretisation;
use fem_dsl::source::Source;
use fem_dsl::testing::Random;
use kernels_gen::element::{Lagrange, Rule, default_rule, tabulate};
use kernels_gen::generate::elements;
use std::sync::Arc;

/// −Δu for a vector, with its gradient as the flux.
const FORM: &str = "form f { field u: vector; f1[u] = grad(u); }";

struct Case {
    on: Arc<Discretisation>,
    estimator: Estimator,
    rule: Rule,
    u: Vec<f64>,
}

impl Case {
    fn new(mesh: Mesh, degree: usize, random: &mut Random) -> Self {
        let (program, found) = fem_dsl::program::compile(&Source::new("f", FORM));
        let program = program.unwrap_or_else(|| panic!("{found:?}"));
        let form = program.point_form("f", mesh.dim()).expect("a form");
        let elements = elements(&form, mesh.cell(), degree, mesh.order(), None).expect("elements");
        let mut on = Discretisation::new(mesh, &elements.spaces()).expect("spaces");
        on.find_regions(&form).expect("cells");
        let (on, rule) = (Arc::new(on), elements.rule);
        let target = Target { execution: Execution::Interpreted, ..Target::native() };
        let estimator = Estimator::new(&form, &elements, &on, &[0.0], &target, None);
        let u = random.signed(on.n_dofs());
        Self { estimator: estimator.expect("kernels"), rule, u, on }
    }

    /// Gradients of all components at a point of a cell, `[component][axis]`.
    fn gradient(&self, cell: usize, x: [f64; 3]) -> Vec<[f64; 3]> {
        let (mesh, space) = (&self.on.mesh, &self.on.fields[0].space);
        let geometry = Lagrange::continuous(mesh.cell(), mesh.order()).expect("an element");
        let dim = mesh.dim();
        let mut xi = mesh.cell().centre();
        for _ in 0..20 {
            let here = mesh.place_of(cell, &tabulate(geometry, &[xi]).values);
            let inverse = self.inverse(geometry, cell, xi);
            for a in 0..dim {
                xi[a] += (0..dim).map(|j| inverse[a][j] * (x[j] - here[j])).sum::<f64>();
            }
        }
        let (inverse, table) = (self.inverse(geometry, cell, xi), tabulate(space.element(), &[xi]));
        let components = space.components();
        let mut all = vec![[0.0; 3]; components];
        for (local, &node) in space.cell_nodes(cell).iter().enumerate() {
            for (c, gradient) in all.iter_mut().enumerate() {
                let value = self.u[node as usize * components + c];
                for j in 0..dim {
                    let along = table.gradient(0, local).iter().enumerate();
                    gradient[j] += value * along.map(|(a, d)| d * inverse[a][j]).sum::<f64>();
                }
            }
        }
        all
    }

    /// Computes ∂ξ_a/∂x_j at a point of a cell.
    fn inverse(&self, geometry: Lagrange, cell: usize, xi: [f64; 3]) -> [[f64; 3]; 3] {
        let (det, cofactor) = self.map(&Gradients::of_element(geometry, &[xi]), cell);
        std::array::from_fn(|a| std::array::from_fn(|j| cofactor[j][a] / det))
    }

    fn map(&self, gradients: &Gradients, cell: usize) -> (f64, [[f64; 3]; 3]) {
        let mesh = &self.on.mesh;
        let nodes = mesh.cell_nodes(cell).iter().map(|&node| mesh.points()[node as usize]);
        gradients.cofactor(0, nodes)
    }

    /// Computes ∫ |(∇u_a − ∇u_b) n|² over the facet of the first side, and the same with the absolute values of both
    /// gradients.
    fn jump(&self, sides: [FacetSide; 2]) -> [f64; 2] {
        let (mesh, [own, other]) = (&self.on.mesh, sides.map(|side| side.cell as usize));
        let (cell, local) = (mesh.cell(), usize::from(sides[0].local));
        let geometry = Lagrange::continuous(cell, mesh.order()).expect("an element");
        let degree = 2 * self.on.fields[0].space.element().degree();
        let rule = default_rule(cell, degree, 1, Some(2 * degree)).on_facet();
        let mut sums = [0.0; 2];
        for ([_, s, t], weight) in rule {
            let xi = cell.entity_point(cell.dim() - 1, local, [s, t, 0.0]);
            let x = mesh.place_of(own, &tabulate(geometry, &[xi]).values);
            let (_, cofactor) = self.map(&Gradients::of_element(geometry, &[xi]), own);
            let reference = reference_normal(cell, local);
            let area: [f64; 3] =
                std::array::from_fn(|i| (0..3).map(|a| cofactor[i][a] * reference[a]).sum());
            let size = area.iter().map(|a| a * a).sum::<f64>().sqrt();
            let (here, there) = (self.gradient(own, x), self.gradient(other, x));
            for (here, there) in here.iter().zip(&there) {
                let along = |g: &[f64; 3]| (0..3).map(|j| g[j] * area[j]).sum::<f64>() / size;
                let sum = |g: &[f64; 3]| g.iter().map(|x| x.abs()).sum::<f64>();
                sums[0] += weight * size * (along(here) - along(there)).powi(2);
                sums[1] += weight * size * (sum(here) + sum(there)).powi(2);
            }
        }
        sums
    }

    /// Compares pairs of cells; returns their number.
    fn compare(&self, pairs: &[FacetPair], name: &str) -> usize {
        let own = &self.estimator;
        let mut state = own.operator.vector();
        state.set(&self.u);
        let reduction =
            super::super::PointReduction::new(&own.wanted, &own.points, &own.faces, self.rule);
        let mut cells = reduction.begin(self.on.mesh.n_cells());
        let taken = own.operator.fluxes(&state, &own.wanted.asked, 3, |range, numbers| {
            reduction.take(range, numbers, &mut cells);
            Ok::<_, crate::operator::BuildError>(())
        });
        taken.expect("numbers");
        let surface = FacetGeometry::new(&self.on.mesh, self.rule, &own.views).expect("facets");
        for pair in pairs {
            let [want, size] = self.jump(pair.sides);
            let FacetSide { cell, local } = pair.sides[0];
            let diameter = surface.diameter(cell as usize, usize::from(local));
            let weight = scale::jump(&own.wanted.fields[0], diameter, self.on.mesh.dim());
            let traces =
                pair.sides.map(|side| cells.trace(side.cell as usize, usize::from(side.local)));
            let trace = &own.wanted.fields[0].traces[0];
            let [first, second] = own.residuals(trace, traces, pair.child, None);
            let sum: Vec<f64> = first.iter().zip(&second).map(|(a, b)| a + b).collect();
            let place = (cell as usize, usize::from(local));
            let view = own.view(place);
            let found = own.square((0, trace), place, view, &surface, &sum) / weight;
            // Values at the points pass through about ten sums before they are squared.
            let want = BoundedValue::with_scale(want, 100.0 * size);
            assert_close!(found, want, f64::EPSILON, "{name}: {pair:?}");
            assert!(want.value > 1e-6 * size, "{name}: nothing jumps");
        }
        pairs.len()
    }
}

#[test]
fn jumps_are_those_of_the_gradients_at_the_same_places() {
    let mut random = Random(9);
    let mut seen = 0;
    for (cell, degrees) in [
        (Cell::Triangle, 1..=4),
        (Cell::Quadrilateral, 1..=5),
        (Cell::Tetrahedron, 1..=3),
        (Cell::Hexahedron, 1..=3),
    ] {
        for degree in degrees {
            let mut mesh = boxed(cell, 2);
            if cell.is_tensor() {
                mesh = turned(&mesh, &mut random);
            }
            let case = Case::new(mesh, degree, &mut random);
            let pairs: Vec<FacetPair> =
                case.estimator.faces.pairs.iter().copied().take(12).collect();
            seen += case.compare(&pairs, &format!("{cell} {degree}"));
        }
    }
    assert!(seen > 100, "{seen}");
}

/// A mesh with cells in all orientations has the same estimate as one with consistent orientations.
#[test]
fn turned_cells_have_the_same_estimate() {
    let mut random = Random(21);
    for (cell, degrees) in [(Cell::Quadrilateral, 1..=4), (Cell::Hexahedron, 1..=3)] {
        for degree in degrees {
            let mesh = boxed(cell, 3);
            let turned = turned(&mesh, &mut random);
            assert!(mesh.topology().is_oriented() && !turned.topology().is_oriented());
            let [one, other] = [mesh, turned].map(|mesh| {
                let mut case = Case::new(mesh, degree, &mut random);
                let on = &case.on;
                let space = &on.fields[0].space;
                let points = space.points(&on.mesh, &on.partition).expect("points");
                let components = space.components();
                for (x, u) in points.iter().zip(case.u.chunks_mut(components)) {
                    let wave =
                        |c: usize| (3.0 * x[c % 3] + x[(c + 1) % 3]).sin() * (x[2] - x[0]).exp();
                    u.iter_mut().enumerate().for_each(|(c, u)| *u = wave(c));
                }
                case.estimator.estimate(&case.u).expect("an estimate")
            });
            let scale = one.energy.max(one.total);
            for (one, other) in one.squares.iter().zip(&other.squares) {
                let want = BoundedValue::with_scale(*one, 100.0 * scale);
                assert_close!(*other, want, f64::EPSILON, "{cell} {degree}");
            }
            assert!(one.fields[0].jumps > 1e-6 * one.energy);
        }
    }
}

/// Creates a large cell and its upper neighbour along the first axis, which is halved along each axis.
fn divided(dim: usize, random: &mut Random) -> (Mesh, Vec<FacetPair>) {
    let (cell, halves) = match dim {
        2 => (Cell::Quadrilateral, 2),
        _ => (Cell::Hexahedron, 4),
    };
    let mut parts = MeshData::default();
    // Some cases are rotated by half a turn about the last axis: the facet's frame then opposes the second axis.
    let turn = [0, 3][random.below(2)];
    let mut add = |origin: [f64; 3], size: f64| {
        for vertex in 0..1usize << dim {
            let bits = vertex ^ turn;
            let at = |axis: usize| {
                let up = if axis < dim { (bits >> axis & 1) as f64 } else { 0.0 };
                [1.5, 1.0, 0.8][axis] * (origin[axis] + size * up)
            };
            parts.nodes.push(parts.points.len() as u32);
            parts.points.push([at(0), at(1), at(2)]);
        }
    };
    add([0.0; 3], 1.0);
    for child in 0..halves {
        let half = |bit: usize| (child >> bit & 1) as f64 / 2.0;
        add([1.0, half(0), if dim == 3 { half(1) } else { 0.0 }], 0.5);
    }
    let mesh = assemble(
        cell,
        1,
        parts,
        CellOrdering::Original,
        JacobianSign::Positive,
        Conformity::Conforming,
    )
    .expect("cells");
    let locals = if turn == 0 { [0, 1] } else { [1, 0] };
    let pairs = (0..halves).map(|child| {
        let sides = [
            FacetSide { cell: child as u32 + 1, local: locals[0] },
            FacetSide { cell: 0, local: locals[1] },
        ];
        let own = if turn == 0 { child } else { child ^ 1 };
        FacetPair { sides, child: Some(own as u8) }
    });
    let pairs = pairs.collect();
    (mesh, pairs)
}

#[test]
fn jumps_at_hanging_facets_are_those_of_the_gradients_at_the_same_places() {
    let mut random = Random(13);
    let mut seen = 0;
    for (dim, degrees) in [(2, 1..=4), (3, 1..=3)] {
        for degree in degrees {
            for _ in 0..3 {
                let (mesh, pairs) = divided(dim, &mut random);
                let case = Case::new(mesh, degree, &mut random);
                seen += case.compare(&pairs, &format!("{dim} {degree}"));
            }
        }
    }
    assert!(seen >= 3 * 4 * 5, "{seen}");
}
