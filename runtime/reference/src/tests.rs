//! The reference implementation against analytical integrals, and its parts against each other.

use super::*;
use crate::assert_close;
use fem_dsl::point::{
    Aux, Binary, Coefficient, Degree, Field, Graph, Input, Node, NodeId, Param, Part, Region,
    Shape, Side, Space as FormSpace,
};
use std::collections::BTreeMap;

const EPS: f64 = f64::EPSILON;
const H1: FormSpace = FormSpace::H1(Degree::Relative(0));

/// Returns a form with one scalar field, from a residual and its coefficients.
fn form(
    dim: usize,
    build: impl Fn(&mut Graph) -> (Vec<(Slot, NodeId)>, Vec<Coefficient>),
) -> PointForm {
    let mut graph = Graph::new();
    let (residual, jacobian) = build(&mut graph);
    let integral = Integral {
        region: Region::Cells,
        graph,
        residual,
        action: Vec::new(),
        jacobian,
        symmetric: true,
        linear: false,
        energy: None,
        names: BTreeMap::new(),
    };
    PointForm {
        name: "test".to_owned(),
        doc: String::new(),
        source: String::new(),
        dim,
        fields: vec![Field {
            name: "u".to_owned(),
            shape: Shape::Scalar,
            space: H1,
            cells: Vec::new(),
        }],
        aux: Vec::new(),
        params: Vec::new(),
        rates: Vec::new(),
        integrals: vec![integral],
    }
}

fn slot(part: Part) -> Slot {
    Slot { field: 0, side: Side::Inside, component: 0, part }
}

fn state(graph: &mut Graph, part: Part) -> NodeId {
    graph.intern(Node::Input(Input::State(slot(part))))
}

fn one(graph: &mut Graph) -> NodeId {
    graph.intern(Node::Constant(fem_dsl::point::Number::new(1.0)))
}

/// Returns the mass form f0 = u.
fn mass(dim: usize) -> PointForm {
    form(dim, |graph| {
        let (u, one) = (state(graph, Part::Value), one(graph));
        let value = slot(Part::Value);
        (vec![(value, u)], vec![Coefficient { test: value, trial: value, value: one }])
    })
}

/// Returns the Laplace form f1 = grad(u).
fn laplace(dim: usize) -> PointForm {
    form(dim, |graph| {
        let one = one(graph);
        let parts: Vec<Part> = (0..dim).map(Part::Derivative).collect();
        let residual = parts.iter().map(|&p| (slot(p), state(graph, p))).collect();
        let entry = |&p: &Part| Coefficient { test: slot(p), trial: slot(p), value: one };
        (residual, parts.iter().map(entry).collect())
    })
}

/// Returns the cubic form f0 = u³.
fn cubic(dim: usize) -> PointForm {
    form(dim, |graph| {
        let u = state(graph, Part::Value);
        let power = graph.intern(Node::Powi(u, 3));
        let square = graph.intern(Node::Powi(u, 2));
        let three = graph.intern(Node::Constant(fem_dsl::point::Number::new(3.0)));
        let slope = graph.intern(Node::Binary(Binary::Mul, three, square));
        let value = slot(Part::Value);
        (vec![(value, power)], vec![Coefficient { test: value, trial: value, value: slope }])
    })
}

/// A single mapped cell.
struct OneCell {
    coordinates: Vec<f64>,
    nodes: Vec<[f64; 3]>,
    map: Vec<u32>,
}

/// Returns the images of the nodes of geometry and field under `place`; for the field only if the degree of the map is
/// at most that of the geometry.
fn one_cell(cell: Cell, k: usize, g: usize, place: impl Fn([f64; 3]) -> [f64; 3]) -> OneCell {
    let geometry = Lagrange::continuous(cell, g).expect("a supported geometry");
    let field = Lagrange::continuous(cell, k).expect("a supported degree");
    let image = |element: Lagrange| element.points().into_iter().map(&place).collect::<Vec<_>>();
    let dim = cell.dim();
    OneCell {
        coordinates: image(geometry).iter().flat_map(|x| x[..dim].to_vec()).collect(),
        nodes: image(field),
        map: (0..field.count() as u32).collect(),
    }
}

impl OneCell {
    fn sample(&self, f: impl Fn([f64; 3]) -> f64) -> Vec<f64> {
        self.nodes.iter().map(|&x| f(x)).collect()
    }

    fn inputs<'a>(&'a self, values: &'a [f64]) -> FormInputs<'a> {
        FormInputs {
            coordinates: &self.coordinates,
            state: vec![NodalValues { map: &self.map, values }],
            aux: Vec::new(),
            params: &[],
            time: 0.0,
            facets: Vec::new(),
            pairs: Vec::new(),
            cells: Vec::new(),
        }
    }
}

fn affine(x: [f64; 3]) -> [f64; 3] {
    let [x, y, z] = x;
    [1.0 + 2.0 * x + 0.5 * y, 0.25 * x + 1.5 * y - 0.5 * z, 3.0 * z + 0.125 * x]
}

/// Returns the determinant of `affine` in two and three dimensions.
fn affine_det(dim: usize) -> f64 {
    let plane = 2.0 * 1.5 - 0.5 * 0.25;
    if dim == 2 { plane } else { plane * 3.0 + 0.125 * (0.5 * -0.5) }
}

fn dot(a: &[BoundedValue], b: &[f64]) -> BoundedValue {
    a.iter().zip(b).map(|(&a, &b)| a * BoundedValue::new(b)).sum()
}

#[test]
fn mass_and_stiffness_of_affine_cells_are_the_integrals_by_hand() {
    for cell in Cell::ALL.into_iter().filter(|cell| cell.dim() > 1) {
        let (dim, volume) = (cell.dim(), cell.volume() * affine_det(cell.dim()));
        for k in 1..=3 {
            let one = one_cell(cell, k, 1, affine);
            let u = one.sample(|x| 2.0 * x[0] - x[1] + 0.5);
            let inputs = one.inputs(&u);
            let (ones, x) = (one.sample(|_| 1.0), one.sample(|x| x[0] + 3.0 * x[1]));

            let form = laplace(dim);
            let reference = Reference::new(&form, cell, k, 1, None).expect("a supported degree");
            let residual = reference.residual(&inputs);
            // ∫ ∇u · ∇v with ∇u = (2, −1), ∇v = (1, 3).
            assert_close!(-volume, dot(&residual[0], &x), EPS, "{cell} {k}");
            assert_close!(0.0, dot(&residual[0], &ones), EPS, "{cell} {k}");

            let form = mass(dim);
            let reference = Reference::new(&form, cell, k, 1, None).expect("a supported degree");
            let residual = reference.residual(&inputs);
            let centre = affine(cell.centre());
            let want = volume * (2.0 * centre[0] - centre[1] + 0.5);
            assert_close!(want, dot(&residual[0], &ones), EPS, "{cell} {k}");
        }
    }
}

#[test]
fn curved_cells_have_the_right_volume() {
    // The map x ↦ x + y (1 − y)/2 preserves the measure; y ↦ y (1 + x²) on [0, 1]² has 4/3.
    let bulge = |[x, y, z]: [f64; 3]| [x + 0.5 * y * (1.0 - y), y, z];
    for cell in Cell::ALL {
        let one = one_cell(cell, 2, 2, bulge);
        let ones = one.sample(|_| 1.0);
        let form = mass(cell.dim());
        let reference = Reference::new(&form, cell, 2, 2, None).expect("a supported degree");
        let residual = reference.residual(&one.inputs(&ones));
        assert_close!(cell.volume(), dot(&residual[0], &ones), EPS, "{cell}");
    }
    let fan = |[x, y, _]: [f64; 3]| [x, y * (1.0 + x * x), 0.0];
    let one = one_cell(Cell::Quadrilateral, 2, 2, fan);
    let ones = one.sample(|_| 1.0);
    let form = mass(2);
    let reference = Reference::new(&form, Cell::Quadrilateral, 2, 2, None).expect("degree 2");
    let residual = reference.residual(&one.inputs(&ones));
    assert_close!(4.0 / 3.0, dot(&residual[0], &ones), EPS);
}

#[test]
fn the_diagonal_equals_actions_on_unit_directions() {
    for cell in Cell::ALL {
        for form in [mass(cell.dim()), laplace(cell.dim()), cubic(cell.dim())] {
            let one = one_cell(cell, 2, 1, affine);
            let u = one.sample(|x| 1.0 + 0.3 * x[0]);
            let inputs = one.inputs(&u);
            let reference = Reference::new(&form, cell, 2, 1, None).expect("a supported degree");
            let diagonal = reference.diagonal(&inputs);
            for i in 0..u.len() {
                let mut unit = vec![0.0; u.len()];
                unit[i] = 1.0;
                let column = reference.action(&inputs, &[&unit]);
                assert_close!(column[0][i].value, diagonal[0][i], EPS, "{cell} {i}");
            }
        }
    }
}

#[test]
fn the_action_is_the_derivative_of_the_residual() {
    let form = cubic(2);
    let one = one_cell(Cell::Triangle, 2, 1, affine);
    let (u, w) = (one.sample(|x| x[0] - 0.5 * x[1]), one.sample(|x| 1.0 + x[1] * x[0]));
    let reference = Reference::new(&form, Cell::Triangle, 2, 1, None).expect("degree 2");
    let residual = |t: f64| {
        let moved: Vec<f64> = u.iter().zip(&w).map(|(u, w)| u + t * w).collect();
        reference.residual(&one.inputs(&moved)).swap_remove(0)
    };
    let action = reference.action(&one.inputs(&u), &[&w]).swap_remove(0);
    // Central differences of a cubic: R(u + tw) − R(u − tw) = 2t J w + 2t³ ∫ φ w³.
    let cube = reference.residual(&one.inputs(&w)).swap_remove(0);
    let (forward, backward) = (residual(1.0), residual(-1.0));
    for i in 0..u.len() {
        let half = BoundedValue::new(0.5);
        let want = (forward[i] - backward[i]) * half - cube[i];
        assert_close!(action[i].value, want, EPS, "{i}");
    }
}

#[test]
fn every_input_reaches_the_form() {
    // The form f0 = c t + h + k + x₀ + a_nodes + a_cells + a_points, constant except x₀ and a_nodes = x₁.
    let inputs = [
        Input::Param(1, 1),
        Input::Time,
        Input::Diameter(Side::Inside),
        Input::Degree,
        Input::Coordinate(0),
        Input::Aux(Slot { field: 0, side: Side::Inside, component: 0, part: Part::Value }),
        Input::Aux(Slot { field: 0, side: Side::Inside, component: 0, part: Part::Derivative(1) }),
        Input::Aux(Slot { field: 1, side: Side::Inside, component: 1, part: Part::Value }),
        Input::Aux(Slot { field: 2, side: Side::Inside, component: 0, part: Part::Value }),
    ];
    let mut form = form(2, |graph| {
        let nodes: Vec<NodeId> = inputs.iter().map(|&i| graph.intern(Node::Input(i))).collect();
        let sum = nodes.into_iter().reduce(|a, b| graph.intern(Node::Binary(Binary::Add, a, b)));
        (vec![(slot(Part::Value), sum.expect("inputs"))], Vec::new())
    });
    let param = |shape| Param { name: "c".to_owned(), shape, value: Vec::new() };
    form.params = vec![param(Shape::Scalar), param(Shape::Vector(2))];
    let aux = |shape, location| Aux { name: "a".to_owned(), shape, location };
    form.aux = vec![
        aux(Shape::Scalar, Location::Nodes(FormSpace::H1(Degree::Fixed(1)))),
        aux(Shape::Vector(2), Location::Cells),
        aux(Shape::Scalar, Location::Points),
    ];
    let one = one_cell(Cell::Quadrilateral, 2, 1, |[x, y, _]| [3.0 * x, 4.0 * y, 0.0]);
    let u = vec![0.0; 9];
    let reference = Reference::new(&form, Cell::Quadrilateral, 2, 1, None).expect("degree 2");
    let points = vec![0.5; reference.rule().count()];
    let mut data = one.inputs(&u);
    data.params = &[100.0, 200.0, 7.0];
    data.time = 11.0;
    data.aux = vec![
        AuxData::Nodes(NodalValues { map: &[0, 1, 2, 3], values: &[0.0, 0.0, 4.0, 4.0] }),
        AuxData::Cells(&[50.0, 13.0]),
        AuxData::Points(&points),
    ];
    let residual = reference.residual(&data);
    // Means over the 3 × 4 rectangle: c 7, t 11, h 5, k 2, x₀ 1.5, x₁ 2, ∂x₁/∂x₁ 1, 13, 0.5.
    let mean = 7.0 + 11.0 + 5.0 + 2.0 + 1.5 + 2.0 + 1.0 + 13.0 + 0.5;
    assert_close!(12.0 * mean, dot(&residual[0], &[1.0; 9]), EPS);
}

#[test]
fn cells_share_nodes() {
    // Two adjacent unit squares; hat functions sum over both.
    let form = mass(2);
    let reference = Reference::new(&form, Cell::Quadrilateral, 1, 1, None).expect("degree 1");
    let inputs = FormInputs {
        coordinates: &[
            0.0, 0.0, 1.0, 0.0, 0.0, 1.0, 1.0, 1.0, // left
            1.0, 0.0, 2.0, 0.0, 1.0, 1.0, 2.0, 1.0, // right
        ],
        state: vec![NodalValues { map: &[0, 1, 3, 4, 1, 2, 4, 5], values: &[1.0; 6] }],
        aux: Vec::new(),
        params: &[],
        time: 0.0,
        facets: Vec::new(),
        pairs: Vec::new(),
        cells: Vec::new(),
    };
    let residual = reference.residual(&inputs);
    let want = [0.25, 0.5, 0.25, 0.25, 0.5, 0.25];
    assert_all_close(&want, &residual[0], EPS, "two cells");
    assert_eq!(reference.coordinates(&inputs).len(), 2 * 4 * 2);
}
