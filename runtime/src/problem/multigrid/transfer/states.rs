//! Injection of states of H(curl) and H(div) into a coarser space: the matrix of its integrals of fine functions.
//!
//! It commutes with the derivatives, as the interpolation of the spaces does. The integrals of a coarser mesh are sums of
//! those of the children.

use crate::algebra::sparse::{Csr, RowBuilder};
use crate::mesh::CoarsenedMesh;
use crate::space::Space;
use kernels_gen::element::{LineBasis, LinePoints, Whitney};

/// Returns the first cell of each degree of freedom, and its place there.
fn first_cells(space: &Space) -> Vec<(u32, u32)> {
    let mut first = vec![(u32::MAX, 0); space.n_nodes()];
    for (cell, nodes) in space.nodes().chunks_exact(space.nodes_per_cell()).enumerate() {
        for (local, &node) in nodes.iter().enumerate() {
            let own = &mut first[node as usize];
            if own.0 == u32::MAX {
                *own = (cell as u32, local as u32);
            }
        }
    }
    first
}

/// The entries of the rows of a cell: places in the fine cell, or in the list of the children's nodes, and factors.
type LocalRows = Vec<Vec<(usize, f64)>>;

/// Returns the matrix whose rows have the entries `local`, in columns that `column` gives by cell and place.
fn assembled(
    coarse: &Space,
    width: usize,
    local: &LocalRows,
    column: impl Fn(usize, usize) -> u32 + Sync,
) -> Csr {
    let first = first_cells(coarse);
    let fill = |row: usize, _: &mut (), own: &mut RowBuilder| {
        let (cell, at) = first[row];
        let entries = local[at as usize].iter();
        let mut found: Vec<(u32, f64)> =
            entries.map(|&(place, value)| (column(cell as usize, place), value)).collect();
        found.sort_unstable_by_key(|(column, _)| *column);
        found.into_iter().for_each(|(column, value)| own.push(column, value));
    };
    Csr::by_rows((first.len(), width), || (), fill)
}

/// Returns the injection into a space of lower degree on the same mesh; `None` between other spaces.
pub(super) fn of_degrees(coarse: &Space, fine: &Space) -> Option<Csr> {
    let (own, other) = (coarse.element().whitney()?, fine.element().whitney()?);
    let points = LinePoints::GaussLobatto(own.degree() + 1);
    // Values at the coarse nodes, or integrals between them, of the fine functions along an axis.
    let along = |component: usize, axis: usize| -> (usize, Vec<f64>) {
        let basis = other.line(component, axis);
        let table = match basis {
            LineBasis::Integral(_) => basis.integrals(points),
            LineBasis::Nodal(_) => basis.table(points).values,
        };
        (basis.count(), table)
    };
    let dim = own.cell().dim();
    let row = |component: usize, lattice: [usize; 3]| -> Vec<(usize, f64)> {
        let mut entries = vec![(0, 1.0)];
        for axis in (0..dim).rev() {
            let (n, table) = along(component, axis);
            let line = &table[lattice[axis] * n..(lattice[axis] + 1) * n];
            let product = |&(place, value): &(usize, f64)| {
                line.iter().enumerate().map(move |(i, factor)| (place * n + i, value * factor))
            };
            entries = entries.iter().flat_map(product).filter(|(_, value)| *value != 0.0).collect();
        }
        entries.into_iter().map(|(place, value)| (other.first(component) + place, value)).collect()
    };
    let local: LocalRows = own.dofs().iter().map(|dof| row(dof.component, dof.lattice)).collect();
    let column = |cell: usize, place: usize| fine.cell_nodes(cell)[place];
    Some(assembled(coarse, fine.n_dofs(), &local, column))
}

/// Returns the injection into the space of degree 1 on a coarser mesh, whose cells are halved along their own axes;
/// `None` between other spaces.
pub(super) fn of_children(coarse: &Space, fine: &Space, coarser: &CoarsenedMesh) -> Option<Csr> {
    let own = coarse.element().whitney().filter(|own| own.degree() == 1)?;
    let count = own.count();
    let dim = own.cell().dim();
    // Children are numbered by their sides along the axes.
    let row = |component: usize, lattice: [usize; 3]| -> Vec<(usize, f64)> {
        let is_open = |axis: usize| own.is_open(component, axis);
        let fits = |child: &usize| {
            (0..dim).all(|axis| is_open(axis) || child >> axis & 1 == lattice[axis])
        };
        let place = local_place(own, component, lattice);
        (0..1usize << dim).filter(fits).map(|child| (child * count + place, 1.0)).collect()
    };
    let local: LocalRows = own.dofs().iter().map(|dof| row(dof.component, dof.lattice)).collect();
    let column = |cell: usize, place: usize| {
        let child = coarser.children_of(cell)[place / count];
        fine.cell_nodes(child as usize)[place % count]
    };
    Some(assembled(coarse, fine.n_dofs(), &local, column))
}

fn local_place(element: Whitney, component: usize, [x, y, z]: [usize; 3]) -> usize {
    let [n, m, _] = element.extents(component);
    element.first(component) + x + n * (y + m * z)
}
