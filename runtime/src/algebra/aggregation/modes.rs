//! Near-null vectors: constants of each component, or rigid-body modes.
//!
//! ```text
//! translations  e_c,    rotations  e_a (x_b − m_b) − e_b (x_a − m_a)  for a < b      m the mean of the nodes
//! ```
//!
//! Degrees of freedom of a node are consecutive, one per component. Entries of constrained ones are 0.

/// Returns the indicator vector of each component.
pub fn constants(nodes: usize, components: usize, fixed: &[bool]) -> Vec<Vec<f64>> {
    let of = |component: usize| {
        vector(nodes, components, fixed, |_, at| if at == component { 1.0 } else { 0.0 })
    };
    (0..components).map(of).collect()
}

/// Returns translations and rotations: 3 in two dimensions, 6 in three; the translation in one.
pub fn rigid_body_modes(dim: usize, points: &[[f64; 3]], fixed: &[bool]) -> Vec<Vec<f64>> {
    let count = points.len().max(1) as f64;
    let mean: [f64; 3] =
        std::array::from_fn(|axis| points.iter().map(|x| x[axis]).sum::<f64>() / count);
    let mut modes = constants(points.len(), dim, fixed);
    for (a, b) in [(0, 1), (0, 2), (1, 2)].into_iter().filter(|(_, b)| *b < dim) {
        let along = |node: usize, axis: usize| points[node][axis] - mean[axis];
        modes.push(vector(points.len(), dim, fixed, |node, component| match component {
            at if at == a => along(node, b),
            at if at == b => -along(node, a),
            _ => 0.0,
        }));
    }
    modes
}

fn vector(
    nodes: usize,
    components: usize,
    fixed: &[bool],
    of: impl Fn(usize, usize) -> f64,
) -> Vec<f64> {
    let unknowns = (0..nodes).flat_map(|node| (0..components).map(move |at| (node, at)));
    let is_fixed = |unknown: usize| fixed.get(unknown).is_some_and(|fixed| *fixed);
    unknowns
        .enumerate()
        .map(|(unknown, (node, at))| if is_fixed(unknown) { 0.0 } else { of(node, at) })
        .collect()
}
