//! Rotations of reference cells, for meshes whose cells list their vertices in every order.

/// Returns the orders of the vertices of a cell that are its rotations: of a square or a cube, or of a simplex.
pub(crate) fn rotations(dim: usize, is_tensor: bool) -> Vec<Vec<usize>> {
    if !is_tensor {
        let all = if dim == 2 { 3 } else { 4 };
        let cycle = |order: [usize; 3]| {
            let mut vertices: Vec<usize> = (0..all).collect();
            (0..3).for_each(|i| vertices[order[i]] = order[(i + 1) % 3]);
            vertices
        };
        let orders: &[[usize; 3]] = &[[0, 1, 2], [0, 2, 1], [1, 2, 3], [1, 3, 2]];
        return orders[..if dim == 2 { 2 } else { 4 }].iter().map(|&order| cycle(order)).collect();
    }
    let orders: &[([usize; 3], u32)] = &[
        ([0, 1, 2], 0),
        ([1, 0, 2], 1),
        ([1, 2, 0], 0),
        ([2, 0, 1], 0),
        ([0, 2, 1], 1),
        ([2, 1, 0], 1),
    ];
    let mut all = Vec::new();
    for (axes, odd) in &orders[..if dim == 2 { 2 } else { 6 }] {
        for flips in (0..1usize << dim).filter(|flips| flips.count_ones() % 2 == *odd) {
            let image = |v: usize| (0..dim).fold(0, |w, a| w | (v >> a & 1) << axes[a]) ^ flips;
            all.push((0..1 << dim).map(image).collect());
        }
    }
    all
}
