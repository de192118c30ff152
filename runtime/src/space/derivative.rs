//! Discrete derivatives: the grad of H1(k), and the curl of Hcurl(k), as matrices of 1 and −1 between degrees of freedom.
//!
//! ```text
//! grad   H1(k) → Hcurl(k)      φ at the end of an edge − φ at its beginning
//! curl   H1(k) → Hdiv(k)       the same through edges, in the plane: curl φ = (∂₁φ, −∂₀φ)
//! curl   Hcurl(k) → Hdiv(k)    the circulation around a face
//! ```
//!
//! Degrees of freedom of H(curl) and H(div) are integrals along edges and over faces of the Gauss-Lobatto grid, at whose
//! points those of H1 are values. The theorems of Stokes then give the entries, whatever the map of the cells.

use super::Space;
use kernels_gen::element::{Element, LinePoints, Whitney, WhitneyFamily};

/// The matrix of a derivative, with as many entries in each row.
#[derive(Clone, Debug, PartialEq)]
pub struct DiscreteDerivative {
    each: usize,
    /// Degrees of freedom of the potential, row by row.
    columns: Vec<u32>,
    /// True where the entry is −1.
    reversed: Vec<bool>,
}

impl DiscreteDerivative {
    /// Returns the derivative from a space of potentials to a space of H(curl) or H(div) on the same mesh; `None` between
    /// other spaces.
    pub fn new(potential: &Space, of: &Space) -> Option<Self> {
        let element = of.element().whitney()?;
        let local = local(potential.element(), element)?;
        let each = local.first()?.len();
        let rows = of.n_dofs();
        let (mut columns, mut reversed) = (vec![u32::MAX; rows * each], vec![false; rows * each]);
        for cell in 0..of.nodes().len() / of.nodes_per_cell() {
            let (own, nodes) = (of.cell_nodes(cell), potential.cell_nodes(cell));
            let sign = |signs: &[bool], at: usize| signs.get(at).is_some_and(|&reversed| reversed);
            for (i, (&row, terms)) in own.iter().zip(&local).enumerate() {
                let first = row as usize * each;
                if columns[first] != u32::MAX {
                    continue;
                }
                let of_row = sign(of.cell_signs(cell), i);
                for (at, &(j, is_minus)) in (first..).zip(terms) {
                    columns[at] = nodes[j];
                    reversed[at] = is_minus ^ of_row ^ sign(potential.cell_signs(cell), j);
                }
            }
        }
        Some(Self { each, columns, reversed })
    }

    /// Returns the number of rows.
    pub fn n_rows(&self) -> usize {
        self.columns.len() / self.each
    }

    /// Returns the columns and the entries of a row.
    pub fn row(&self, row: usize) -> impl Iterator<Item = (u32, f64)> {
        let own = row * self.each..(row + 1) * self.each;
        let entries =
            self.reversed[own.clone()].iter().map(|&minus| if minus { -1.0 } else { 1.0 });
        self.columns[own].iter().copied().zip(entries)
    }
}

/// Returns, for each degree of freedom of a cell, those of the potential with whether the entry is −1.
fn local(potential: Element, element: Whitney) -> Option<Vec<Vec<(usize, bool)>>> {
    let (k, dim) = (element.degree(), element.cell().dim());
    // The potential's degrees of freedom at a place of the lattice of a component, which nodal values have not.
    let of_nodes = potential.line() == Some(LinePoints::GaussLobatto(k + 1));
    let of_edges = potential.whitney().filter(|own| {
        own.family() == WhitneyFamily::Curl && own.degree() == k && own.cell() == element.cell()
    });
    let at = |component: usize, [x, y, z]: [usize; 3]| match of_edges {
        None => x + (k + 1) * (y + (k + 1) * z),
        Some(own) => {
            let [n, m, _] = own.extents(component);
            own.first(component) + x + n * (y + m * z)
        }
    };
    let next = |mut lattice: [usize; 3], axis: usize| {
        lattice[axis] += 1;
        lattice
    };
    let row = |component: usize, lattice: [usize; 3]| -> Option<Vec<(usize, bool)>> {
        let against = element.sign(component) < 0.0;
        match (element.family(), dim) {
            (WhitneyFamily::Curl, _) if of_nodes => {
                Some(vec![(at(0, next(lattice, component)), false), (at(0, lattice), true)])
            }
            (WhitneyFamily::Div, 2) if of_nodes => {
                let minus = against ^ (component == 1);
                let end = next(lattice, 1 - component);
                Some(vec![(at(0, end), minus), (at(0, lattice), !minus)])
            }
            (WhitneyFamily::Div, 3) if of_edges.is_some() => {
                let (a, b) = ((component + 1) % 3, (component + 2) % 3);
                Some(vec![
                    (at(b, next(lattice, a)), against),
                    (at(b, lattice), !against),
                    (at(a, next(lattice, b)), !against),
                    (at(a, lattice), against),
                ])
            }
            _ => None,
        }
    };
    element.dofs().iter().map(|dof| row(dof.component, dof.lattice)).collect()
}
