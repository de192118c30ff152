//! Rejected, noted and accepted quadratures.

use super::*;
use crate::generate::elements;
use crate::plan::PlanError;
use Cell::{Hexahedron, Quadrilateral, Tetrahedron, Triangle};

const HEAT: &str = "field u: scalar; f1[u] = grad(u);";
const MASS: &str = "field u: scalar; f0[u] = u;";
const REACTION: &str = "field u: scalar; f0[u] = u; f1[u] = grad(u);";
const ELASTICITY: &str =
    "field u: vector(dim); f1[u] = tr(sym(grad(u))) * I + 2e11 * sym(grad(u));";
const STOKES: &str = "field u: vector(dim) in H1(k); field p: scalar in H1(k - 1);
    f1[u] = grad(u) - p * I; f0[p] = -div(u);";
const ROBIN: &str = "field u: scalar; f1[u] = grad(u); on boundary \"a\" { f0[u] = u; }";
const TRACE: &str = "field u: scalar; on boundary \"a\" { f0[u] = u; }";
/// The second term vanishes at half of all states.
const CONTACT: &str = "field u: scalar; f1[u] = grad(u); f0[u] = max(0, u - 1);";

fn form(text: &str, dim: usize) -> PointForm {
    let text = format!("form f {{ {} }}", text.replace("dim", &dim.to_string()));
    let source = fem_dsl::source::Source::new("f", text.as_str());
    let (program, found) = fem_dsl::program::compile(&source);
    program.unwrap_or_else(|| panic!("{text}: {found:?}")).point_form("f", dim).expect("the form")
}

#[derive(Debug, PartialEq)]
enum Verdict {
    /// Rank-deficient, for too few points, with the least sufficient D.
    Low(usize),
    /// Rejected for too many points, with the largest accepted D.
    High(usize),
    /// Allowed, with a remark on the order of convergence.
    Order,
    /// Allowed, with a remark on useless points.
    Waste,
    Nothing,
}
use Verdict::{High, Low, Nothing, Order, Waste};

fn verdict(text: &str, cell: Cell, degree: usize, given: usize) -> Verdict {
    match elements(&form(text, cell.dim()), cell, degree, 1, Some(given.into())) {
        Err(PlanError::Quadrature(QuadratureError::High { most, .. })) => High(most),
        Err(other) => panic!("{other}"),
        Ok(Elements { lost: Some(QuadratureError::Low { least, .. }), notes, .. }) => {
            assert!(matches!(&notes[..], [note] if note.contains("hourglass")), "{notes:?}");
            Low(least)
        }
        Ok(elements) => match elements.notes.as_slice() {
            [] => Nothing,
            [note] if note.contains("costs order") => Order,
            [note] if note.contains("no use for more") => Waste,
            notes => panic!("{notes:?}"),
        },
    }
}

/// Heat in a plate of degree 2 with one point per cell gave 0 instead of 18.26.
#[test]
fn too_few_points_on_tensor_cells_are_found() {
    for given in 0..4 {
        assert_eq!(verdict(HEAT, Quadrilateral, 2, given), Low(4), "{given}");
    }
    assert_eq!(verdict(HEAT, Quadrilateral, 2, 4), Nothing);
    assert_eq!(verdict(MASS, Hexahedron, 3, 5), Low(6));
    assert_eq!(verdict(MASS, Hexahedron, 3, 7), Nothing);
    assert_eq!(verdict(STOKES, Hexahedron, 2, 3), Low(4));
    assert_eq!(verdict(TRACE, Quadrilateral, 1, 1), Low(2));
    let made = elements(&form(HEAT, 2), Quadrilateral, 2, 1, Some(1.into())).expect("elements");
    let text = PlanError::from(made.lost.expect("too few")).to_string();
    assert!(text.contains("quadrature 1 is too low for `u` of degree 2"), "{text}");
    assert!(text.contains("help: take 4 or more, or leave it out"), "{text}");
}

#[test]
fn too_few_points_on_simplices_are_found() {
    assert_eq!(verdict(HEAT, Triangle, 2, 1), Low(2));
    assert_eq!(verdict(HEAT, Triangle, 3, 2), Low(3));
    // The 14 points of degree 5 form three orbits, each with one derivative of a symmetric function that symmetry does
    // not make 0. There are four such functions besides the constant.
    assert_eq!(verdict(HEAT, Tetrahedron, 4, 5), Low(6));
    // 14 points with six strains each, for 99 functions and six rigid motions.
    assert_eq!(verdict(ELASTICITY, Tetrahedron, 4, 5), Low(6));
    assert_eq!(verdict(MASS, Triangle, 1, 1), Low(2));
    assert_eq!(verdict(STOKES, Triangle, 2, 1), Low(2));
    assert_eq!(verdict(TRACE, Triangle, 1, 1), Low(2));
    assert_eq!(verdict(TRACE, Tetrahedron, 1, 1), Low(2));
    assert_eq!(verdict(CONTACT, Triangle, 2, 1), Low(2));
}

/// At one point a function has three values, and three values of its curl.
#[test]
fn too_few_points_for_vector_valued_functions_are_found() {
    let mass = "field u: vector in Hcurl(k); f0[u] = u;";
    let curl = "field u: vector in Hcurl(k); f0[u] = u; f1[u] = curl(u);";
    let div = "field u: vector in Hdiv(k); f0[u] = u; f1[u] = div(u);";
    let darcy = "field u: vector in Hdiv(k); field p: scalar in L2(k - 1); f0[u] = u; f1[u] = -p; f0[p] = div(u);";
    assert_eq!(verdict(mass, Tetrahedron, 1, 1), Low(2));
    assert_eq!(verdict(curl, Tetrahedron, 1, 1), Nothing);
    assert_eq!(verdict(curl, Tetrahedron, 2, 1), Low(2));
    assert_eq!(verdict(div, Triangle, 1, 1), Nothing);
    assert_eq!(verdict(div, Triangle, 2, 1), Low(2));
    assert_eq!(verdict(darcy, Tetrahedron, 1, 1), Nothing);
    assert_eq!(verdict(curl, Hexahedron, 2, 3), Low(4));
}

/// Fewer points than the language prescribes, and as many as the form needs.
#[test]
fn a_rule_that_keeps_rank_and_order_is_nothing_special() {
    assert_eq!(verdict(HEAT, Triangle, 1, 0), Nothing);
    assert_eq!(verdict(REACTION, Triangle, 1, 1), Nothing);
    assert_eq!(verdict(HEAT, Triangle, 2, 2), Nothing);
    assert_eq!(verdict(ELASTICITY, Tetrahedron, 2, 2), Nothing);
    assert_eq!(verdict(STOKES, Triangle, 2, 2), Nothing);
    assert_eq!(verdict(HEAT, Tetrahedron, 4, 6), Nothing);
    // The points of the cell detect functions that the two points of a facet miss; two points are exact to degree 3.
    assert_eq!(verdict(ROBIN, Triangle, 2, 2), Nothing);
    assert_eq!(verdict(CONTACT, Triangle, 2, 2), Nothing);
}

#[test]
fn a_rule_that_costs_order_is_noted() {
    assert_eq!(verdict(HEAT, Triangle, 3, 3), Order);
    // On a facet the rule of the same degree is exact to 2k − 2, and its error is one of traces.
    assert_eq!(verdict(ROBIN, Tetrahedron, 2, 2), Order);
}

#[test]
fn too_many_points_are_noted_and_then_refused() {
    assert_eq!(verdict(HEAT, Hexahedron, 2, 10), Nothing);
    assert_eq!(verdict(HEAT, Hexahedron, 2, 11), Waste);
    assert_eq!(verdict(HEAT, Hexahedron, 2, 50), Waste);
    assert_eq!(verdict(HEAT, Hexahedron, 2, 51), High(50));
    assert_eq!(verdict(HEAT, Quadrilateral, 1, usize::MAX), High(49));
    assert_eq!(verdict(HEAT, Tetrahedron, 2, 9), Waste);
    assert_eq!(verdict(HEAT, Tetrahedron, 4, 16), Nothing);
    assert_eq!(verdict(HEAT, Tetrahedron, 2, 1000), High(16));
}

/// The language rejects in advance degrees that no cell can use.
#[test]
fn the_language_has_the_largest_bound() {
    // Gmsh files have cells up to order 5.
    let largest = [Triangle, Quadrilateral, Tetrahedron, Hexahedron]
        .map(|cell| largest_quadrature(cell, 5))
        .into_iter()
        .max();
    assert_eq!(largest, Some(fem_dsl::problem::LARGEST_QUADRATURE as usize));
}
