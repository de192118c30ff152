//! Inclusions of spaces of H(curl) and H(div) in finer ones, of higher degree or on the mesh of the children: matrices of the
//! finer functionals of coarse functions, on any cells.
//!
//! With ξ = F(ξ') the map of a child's reference cell, A = ∂ξ/∂ξ', and a coarse reference function û:
//!
//! ```text
//! H(curl)   û'(ξ') = Aᵀ û(ξ)          H(div)   û'(ξ') = det A · A⁻¹ û(ξ)
//! ```

use super::Space;
use super::evaluate::{cross, dot};
use crate::mesh::{AffineMap, CoarsenedMesh};
use kernels_gen::element::{Whitney, WhitneyFamily, tabulate_components};
use std::collections::BTreeMap;

/// Entries below it are rounding errors of integrals of order 1.
const ROUNDING: f64 = 1e-12;

/// For each functional of a cell, the functions of the coarse cell that it does not map to 0, with its values.
type LocalRows = Vec<Vec<(usize, f64)>>;

/// The cell in which a row is computed.
#[derive(Clone, Copy)]
struct RowCell {
    /// The coarse cell.
    coarse: u32,
    /// The finer cell.
    fine: u32,
    /// Index of the map.
    map: u16,
    /// Place of the degree of freedom in the finer cell.
    local: u16,
}

/// The matrix of an inclusion. Rows are computed when they are asked for, except where coarse degrees of freedom hang.
pub struct Inclusion<'a> {
    coarse: &'a Space,
    fine: &'a Space,
    tables: Vec<LocalRows>,
    cells: Vec<RowCell>,
    /// The rows, where coarse degrees of freedom hang.
    rows: Option<Vec<Vec<(u32, f64)>>>,
}

impl<'a> Inclusion<'a> {
    /// Creates the inclusion of a space in one of higher degree on the same mesh, or in one of the same degree on the mesh of
    /// the children; `None` for other spaces, or where no cell of this process sees a whole entity.
    pub fn new(
        coarse: &'a Space,
        fine: &'a Space,
        coarser: Option<&CoarsenedMesh>,
    ) -> Option<Self> {
        let (own, other) = (coarse.element().whitney()?, fine.element().whitney()?);
        let tables = match coarser {
            None => vec![local_rows(own, other, &AffineMap::IDENTITY)],
            Some(coarser) => coarser.maps.iter().map(|map| local_rows(own, other, map)).collect(),
        };
        let hangs = fine.hanging_nodes();
        let mut cells: Vec<Option<RowCell>> = vec![None; fine.n_dofs()];
        let mut see = |coarse: usize, fine_cell: u32, map: u16| {
            for (local, &row) in fine.cell_nodes(fine_cell as usize).iter().enumerate() {
                let hangs = hangs.as_ref().is_some_and(|hangs| hangs(fine_cell as usize, local));
                if !hangs && cells[row as usize].is_none() {
                    let (coarse, local) = (coarse as u32, local as u16);
                    cells[row as usize] = Some(RowCell { coarse, fine: fine_cell, map, local });
                }
            }
        };
        for cell in 0..coarse.nodes().len() / coarse.nodes_per_cell() {
            match coarser {
                None => see(cell, cell as u32, 0),
                Some(coarser) => {
                    for (number, &child) in coarser.children_of(cell).iter().enumerate() {
                        see(cell, child, coarser.places[cell * coarser.each() + number]);
                    }
                }
            }
        }
        let cells = cells.into_iter().collect::<Option<Vec<RowCell>>>()?;
        let mut made = Self { coarse, fine, tables, cells, rows: None };
        if let Some(hanging) = coarse.hanging_interpolation() {
            let read = |cell, j| hanging.read(coarse, cell, j);
            made.rows = Some((0..fine.n_dofs()).map(|row| made.computed(row, read)).collect());
        }
        Some(made)
    }

    /// Returns the columns, ascending, and the entries of a row.
    pub fn row(&self, row: usize) -> Vec<(u32, f64)> {
        match &self.rows {
            Some(rows) => rows[row].clone(),
            None => self.computed(row, |_, j| vec![(j, 1.0)]),
        }
    }

    /// Computes a row; `read` returns the degrees of freedom that a coarse cell reads for one of its own, with weights.
    fn computed(
        &self,
        row: usize,
        read: impl Fn(usize, usize) -> Vec<(usize, f64)>,
    ) -> Vec<(u32, f64)> {
        let RowCell { coarse, fine, map, local } = self.cells[row];
        let (cell, local) = (coarse as usize, usize::from(local));
        let nodes = self.coarse.cell_nodes(cell);
        let is_reversed =
            |signs: &[bool], at: usize| signs.get(at).is_some_and(|&reversed| reversed);
        let of_row = is_reversed(self.fine.cell_signs(fine as usize), local);
        let signs = self.coarse.cell_signs(cell);
        let mut sums: BTreeMap<u32, f64> = BTreeMap::new();
        for &(j, value) in &self.tables[usize::from(map)][local] {
            for (j, weight) in read(cell, j) {
                let sign = if of_row ^ is_reversed(signs, j) { -1.0 } else { 1.0 };
                *sums.entry(nodes[j]).or_default() += sign * weight * value;
            }
        }
        sums.retain(|_, value| value.abs() > ROUNDING);
        sums.into_iter().collect()
    }
}

/// Returns the functionals of `fine` on the image of its cell under a map, of the functions of `coarse`.
fn local_rows(coarse: Whitney, fine: Whitney, map: &AffineMap) -> LocalRows {
    let [x, y, z] = map.axes();
    // Rows of the matrix of the pull-back.
    let rows = match coarse.family() {
        WhitneyFamily::Curl => [x, y, z],
        WhitneyFamily::Div => [cross(&y, &z), cross(&z, &x), cross(&x, &y)],
    };
    let row = |dof| {
        let rule = fine.functional(&dof, fine.degree() + 1);
        let points: Vec<[f64; 3]> = rule.iter().map(|(point, _)| map.at(point)).collect();
        let mut values = vec![0.0; coarse.count()];
        for (a, table) in tabulate_components(coarse, &points).iter().enumerate() {
            let first = coarse.first(a);
            for (q, (_, weights)) in rule.iter().enumerate() {
                let weight = coarse.sign(a) * dot(weights, &rows.map(|row| row[a]));
                for i in 0..table.nodes {
                    values[first + i] += weight * table.value(q, i);
                }
            }
        }
        let entries = values.into_iter().enumerate();
        entries.filter(|(_, value)| value.abs() > ROUNDING).collect()
    };
    fine.dofs().into_iter().map(row).collect()
}
