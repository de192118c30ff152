//! Degrees of freedom of a finer element → their places in the rows that transfer kernels write.
//!
//! Kernels evaluate each component at the points of a rule. A value at a node is one of the points. An integral along
//! edges or over faces of a Gauss-Lobatto grid belongs to the point at its lower corner: kernels integrate along open
//! axes to the next point.

use super::NEAR;
use crate::mesh::AffineMap;
use kernels_gen::element::{Element, LinePoints, Rule, Whitney};

/// Returns the place `row · points + point` of each degree of freedom of an element on the image of its cell under a
/// map; `None` where there is no such point.
pub(super) fn places(element: Element, map: &AffineMap, rule: Rule) -> Vec<Option<usize>> {
    match (element.whitney(), rule.line(), element.lagrange()) {
        (Some(element), Some(line), _) => of_integrals(element, map, line),
        (None, _, Some(element)) => {
            let points = rule.points();
            element.points().iter().map(|xi| place_of(map.at(xi), &points)).collect()
        }
        _ => Vec::new(),
    }
}

/// Returns the rows of a transfer kernel for one node: components of the reference functions, if these are vectors.
pub(super) fn rows(element: Element, components: usize) -> usize {
    element.whitney().map_or(components, |element| element.cell().dim())
}

/// Returns the index of the point in `points` that equals x.
fn place_of(x: [f64; 3], points: &[[f64; 3]]) -> Option<usize> {
    let near = |y: &[f64; 3]| (0..3).all(|c| (x[c] - y[c]).abs() < NEAR);
    points.iter().position(near)
}

fn of_integrals(element: Whitney, map: &AffineMap, line: LinePoints) -> Vec<Option<usize>> {
    let nodes = LinePoints::GaussLobatto(element.degree() + 1).points();
    let (along, dim) = (line.points(), element.cell().dim());
    let points = along.len().pow(dim as u32);
    let place = |component: usize, lattice: [usize; 3]| {
        let corner = [0, 1, 2].map(|axis| if axis < dim { nodes[lattice[axis]] } else { 0.0 });
        let x = map.at(&corner);
        let mut point = 0;
        for axis in (0..dim).rev() {
            let at = along.iter().position(|y| (x[axis] - y).abs() < NEAR)?;
            point = point * along.len() + at;
        }
        Some(component * points + point)
    };
    element.dofs().iter().map(|dof| place(dof.component, dof.lattice)).collect()
}

/// Returns whether all maps halve a cell along its own axes, so that integrals keep their axes and signs.
pub(in super::super::super) fn keep_axes(maps: &[AffineMap], dim: usize) -> bool {
    let is_half = |axis: usize, c: usize, entry: f64| {
        let expected = if axis == c { 0.5 } else { 0.0 };
        (entry - expected).abs() < NEAR
    };
    maps.iter().all(|map| {
        let axes = map.axes();
        (0..dim).all(|axis| (0..dim).all(|c| is_half(axis, c, axes[axis][c])))
    })
}
