//! Hanging nodes by definition: a child of a tensor cell and its hanging faces and edges → the functions of its
//! referenced nodes.
//!
//! ```text
//! u_i = Σ_k φ_k((c + ξ_i) / 2) u_k    at nodes i on hanging faces and edges of child c, φ_k the parent's functions
//! φ̃_k = Σ_i C_ik φ_i                    u = C u_read
//! ```
//!
//! Degrees of freedom of H(curl) and H(div) are functionals instead of values, C_ik the functional i of the parent's
//! function k as the child sees it.

use kernels_gen::abi::hanging::parts;
use kernels_gen::element::{Element, Whitney, WhitneyFamily, tabulate};

/// For each referenced node, the nodes i that contribute to its function, with C_ik.
pub type HangingFunctions = Vec<Vec<(usize, f64)>>;

/// Returns the functions of a cell with a hanging word ([`kernels_gen::abi::hanging`]); `None` if nothing hangs.
pub fn functions(element: impl Into<Element>, word: u32) -> Option<HangingFunctions> {
    let element = element.into();
    if let Some(element) = element.whitney().filter(|_| word != 0) {
        return Some(of_vectors(element, word));
    }
    let element = element.lagrange()?;
    if word == 0 || !element.is_continuous() {
        return None;
    }
    let (nodes, points, dim) = (element.nodes(), element.points(), element.cell().dim());
    let (child, faces, edges) = parts(word, dim);
    let outer = |axis: usize| if child >> axis & 1 == 1 { element.degree() } else { 0 };
    let hangs = |lattice: [usize; 3]| {
        let out = |axis: usize| lattice[axis] == outer(axis);
        let on_edge = |axis: usize| (0..dim).all(|other| other == axis || out(other));
        (0..dim).any(|axis| faces[axis] && out(axis) || edges[axis] && on_edge(axis))
    };
    let in_parent = |point: &[f64; 3]| {
        let along = |axis: usize| (f64::from(child as u32 >> axis & 1) + point[axis]) / 2.0;
        [0, 1, 2].map(|axis| if axis < dim { along(axis) } else { 0.0 })
    };
    let table = tabulate(element, &points.iter().map(in_parent).collect::<Vec<_>>());
    let mut functions = vec![Vec::new(); nodes.len()];
    for (i, node) in nodes.iter().enumerate() {
        if !hangs(node.lattice) {
            functions[i].push((i, 1.0));
            continue;
        }
        for (k, function) in functions.iter_mut().enumerate() {
            let factor = table.value(i, k);
            // Zero up to rounding for parent nodes outside the entity.
            if factor.abs() > 1e-13 {
                function.push((i, factor));
            }
        }
    }
    Some(functions)
}

/// Returns the same for an element of H(curl) or H(div). A child's function û is s û((c + ξ) / 2) of its parent's, with
/// s = 1/2 and 1/2^{d−1}.
fn of_vectors(element: Whitney, word: u32) -> HangingFunctions {
    let dim = element.cell().dim();
    let (child, faces, edges) = parts(word, dim);
    let scale = match element.family() {
        WhitneyFamily::Curl => 0.5,
        WhitneyFamily::Div => 0.5_f64.powi(dim as i32 - 1),
    };
    let mut functions = vec![Vec::new(); element.count()];
    for (i, dof) in element.dofs().into_iter().enumerate() {
        let out = |axis: usize| {
            let outer = if child >> axis & 1 == 1 { element.degree() } else { 0 };
            !element.is_open(dof.component, axis) && dof.lattice[axis] == outer
        };
        let on_edge = |axis: usize| (0..dim).all(|other| other == axis || out(other));
        if !(0..dim).any(|axis| faces[axis] && out(axis) || edges[axis] && on_edge(axis)) {
            functions[i].push((i, 1.0));
            continue;
        }
        let (points, weights): (Vec<[f64; 3]>, Vec<[f64; 3]>) =
            element.functional(&dof, element.degree() + 1).into_iter().unzip();
        let in_parent = |point: &[f64; 3]| {
            let along = |axis: usize| (f64::from(child as u32 >> axis & 1) + point[axis]) / 2.0;
            [0, 1, 2].map(|axis| if axis < dim { along(axis) } else { 0.0 })
        };
        let of_component = Element::Component(element, dof.component);
        let table = tabulate(of_component, &points.iter().map(in_parent).collect::<Vec<_>>());
        let (first, sign) = (element.first(dof.component), element.sign(dof.component));
        for k in 0..table.nodes {
            let own = weights.iter().map(|weight| weight[dof.component]).enumerate();
            let values = own.map(|(q, weight)| weight * table.value(q, k));
            let factor = sign * scale * values.sum::<f64>();
            // Zero up to rounding for the parent's functions without a trace on the entity.
            if factor.abs() > 1e-13 {
                functions[first + k].push((i, factor));
            }
        }
    }
    functions
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::BoundedValue;
    use crate::assert_close;
    use kernels_gen::abi::hanging::word;
    use kernels_gen::element::Cell;
    use kernels_gen::element::Lagrange;

    /// Returns a polynomial of the given degree in each direction.
    fn polynomial(x: [f64; 3], degree: usize) -> BoundedValue {
        let along = |axis: usize| {
            let add = |k: usize| BoundedValue::new(0.4 - 0.1 * (k + axis) as f64);
            (0..degree).fold(add(degree), |sum, k| sum * BoundedValue::new(x[axis]) + add(k))
        };
        along(0) * along(1) * along(2)
    }

    /// Checks that a child with the parent's values at hanging nodes reproduces the parent's polynomial.
    fn sees_its_parent(element: Lagrange, word: u32) {
        let (dim, degree, points) = (element.cell().dim(), element.degree(), element.points());
        let functions = functions(element, word).expect("something that hangs");
        let in_parent = |point: &[f64; 3]| {
            let along = |axis: usize| (f64::from(word >> axis & 1) + point[axis]) / 2.0;
            [0, 1, 2].map(|axis| if axis < dim { along(axis) } else { 0.0 })
        };
        let mut seen = vec![BoundedValue::ZERO; points.len()];
        for (k, function) in functions.iter().enumerate() {
            let own = *function == [(k, 1.0)];
            let read = polynomial(if own { in_parent(&points[k]) } else { points[k] }, degree);
            for &(i, factor) in function {
                seen[i] += BoundedValue::new(factor) * read;
            }
        }
        assert!(functions.iter().enumerate().any(|(k, function)| *function != [(k, 1.0)]));
        for (seen, point) in seen.iter().zip(&points) {
            let want = polynomial(in_parent(point), degree);
            let want = BoundedValue::with_scale(want.value, want.scale.max(seen.scale));
            assert_close!(seen.value, want, f64::EPSILON, "{word:x} of degree {degree}");
        }
    }

    #[test]
    fn children_see_the_polynomials_of_their_parents() {
        for (cell, most, words) in [(Cell::Quadrilateral, 8, 12), (Cell::Hexahedron, 4, 136)] {
            let dim = cell.dim();
            let of = |bits: usize| {
                let bit = |at: usize| bits >> (dim + at) & 1 == 1;
                let faces = [0, 1, 2].map(|axis| axis < dim && bit(axis));
                let edges = [0, 1, 2].map(|axis| dim == 3 && bit(3 + axis));
                word(bits & ((1 << dim) - 1), faces, edges, dim)
            };
            let mut all: Vec<u32> = (0..1 << (3 * dim)).map(of).filter(|&word| word != 0).collect();
            all.sort_unstable();
            all.dedup();
            assert_eq!(all.len(), words);
            for degree in 1..=most {
                let element = Lagrange::continuous(cell, degree).expect("a degree");
                all.iter().for_each(|&word| sees_its_parent(element, word));
            }
        }
    }
}
