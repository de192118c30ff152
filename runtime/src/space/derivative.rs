//! Discrete derivatives: the grad of H1(k), and the curl of Hcurl(k), as matrices between degrees of freedom. Entries are 1
//! and −1 on tensor cells; where degrees of freedom hang, the weights of their interpolation take their place.
//!
//! ```text
//! grad   H1(k) → Hcurl(k)      φ at the end of an edge − φ at its beginning
//! curl   H1(k) → Hdiv(k)       the same through edges, in the plane: curl φ = (∂₁φ, −∂₀φ)
//! curl   Hcurl(k) → Hdiv(k)    the circulation around a face
//! ```
//!
//! Degrees of freedom of H(curl) and H(div) are integrals along edges and over faces of the Gauss-Lobatto grid, at whose
//! points those of H1 are values. The theorems of Stokes then give the entries, whatever the map of the cells. On simplices
//! they are the moments of the reference functions' derivatives.

use super::Space;
use kernels_gen::element::{
    Element, LinePoints, Whitney, WhitneyFamily, tabulate, tabulate_components,
};
use std::collections::BTreeMap;

/// Entries of the moments of a derivative below it are rounding errors.
const ROUNDING: f64 = 1e-12;

/// For each degree of freedom of a cell, those of the potential in the cell with their entries.
type LocalRows = Vec<Vec<(usize, f64)>>;

/// The matrix of a derivative, row by row.
#[derive(Clone, Debug, PartialEq)]
pub struct DiscreteDerivative {
    starts: Vec<usize>,
    /// Degrees of freedom of the potential with their entries; 2³² − 1 without one.
    entries: Vec<(u32, f64)>,
}

impl DiscreteDerivative {
    /// Returns the derivative from a space of potentials to a space of H(curl) or H(div) on the same mesh; `None` between
    /// other spaces.
    pub fn new(potential: &Space, of: &Space) -> Option<Self> {
        let element = of.element().whitney()?;
        let local = match element.cell().is_tensor() {
            true => local(potential.element(), element)?,
            false => moments(potential.element(), element)?,
        };
        let (n, each) = (of.n_dofs(), local.iter().map(Vec::len).max()?);
        let sign = |signs: &[bool], at: usize| match signs.get(at) {
            Some(true) => -1.0,
            _ => 1.0,
        };
        let Some(interpolation) = potential.hanging_interpolation() else {
            let mut entries = vec![(u32::MAX, 0.0); n * each];
            for cell in 0..of.nodes().len() / of.nodes_per_cell() {
                let nodes = potential.cell_nodes(cell);
                for (i, (&row, terms)) in of.cell_nodes(cell).iter().zip(&local).enumerate() {
                    let own = &mut entries[row as usize * each..][..each];
                    if own[0].0 == u32::MAX {
                        let of_row = sign(of.cell_signs(cell), i);
                        for (into, &(j, entry)) in own.iter_mut().zip(terms) {
                            let sign = of_row * sign(potential.cell_signs(cell), j);
                            *into = (nodes[j], sign * entry);
                        }
                    }
                }
            }
            return Some(Self { starts: (0..=n).map(|row| row * each).collect(), entries });
        };
        let mut rows: Vec<Vec<(u32, f64)>> = vec![Vec::new(); n];
        let hangs = of.hanging_nodes()?;
        for cell in 0..of.nodes().len() / of.nodes_per_cell() {
            let (own, nodes) = (of.cell_nodes(cell), potential.cell_nodes(cell));
            for (i, (&row, terms)) in own.iter().zip(&local).enumerate() {
                if !rows[row as usize].is_empty() {
                    continue;
                }
                // What hangs is the parent's, and so is all that it is a derivative of.
                let read = |j: usize| match hangs(cell, i) {
                    true => vec![(j, 1.0)],
                    false => interpolation.read(potential, cell, j),
                };
                let mut sums: BTreeMap<u32, f64> = BTreeMap::new();
                for &(j, entry) in terms {
                    let of_row = sign(of.cell_signs(cell), i);
                    for (j, weight) in read(j) {
                        let factor = of_row * weight * sign(potential.cell_signs(cell), j);
                        *sums.entry(nodes[j]).or_default() += factor * entry;
                    }
                }
                sums.retain(|_, entry| entry.abs() > 1e-15);
                rows[row as usize] = sums.into_iter().collect();
            }
        }
        let ends = rows.iter().scan(0, |end, row| {
            *end += row.len();
            Some(*end)
        });
        let starts = [0].into_iter().chain(ends).collect();
        Some(Self { starts, entries: rows.concat() })
    }

    /// Returns the number of rows.
    pub fn n_rows(&self) -> usize {
        self.starts.len() - 1
    }

    /// Returns the columns and the entries of a row.
    pub fn row(&self, row: usize) -> impl Iterator<Item = (u32, f64)> {
        let entries = self.entries[self.starts[row]..self.starts[row + 1]].iter();
        entries.copied().filter(|(column, _)| *column != u32::MAX)
    }
}

/// Returns the moments of the derivatives of a potential's functions on a simplex.
fn moments(potential: Element, element: Whitney) -> Option<LocalRows> {
    let (k, dim, cell) = (element.degree(), element.cell().dim(), element.cell());
    let is_potential = potential.cell() == cell
        && potential.degree() == k
        && match potential.whitney() {
            Some(own) => {
                own.family() == WhitneyFamily::Curl
                    && element.family() == WhitneyFamily::Div
                    && dim == 3
            }
            None => {
                potential.is_continuous() && (element.family() == WhitneyFamily::Curl || dim == 2)
            }
        };
    if !is_potential {
        return None;
    }
    let row = |dof| {
        let (points, weights): (Vec<[f64; 3]>, Vec<[f64; 3]>) =
            element.functional(&dof, k + 1).into_iter().unzip();
        let mut values = vec![0.0; potential.count()];
        match potential.whitney() {
            Some(own) => {
                let tables = tabulate_components(own, &points);
                for (q, weight) in weights.iter().enumerate() {
                    for c in 0..3 {
                        let (a, b) = ((c + 1) % 3, (c + 2) % 3);
                        for (j, value) in values.iter_mut().enumerate() {
                            let curl = tables[b].gradient(q, j)[a] - tables[a].gradient(q, j)[b];
                            *value += weight[c] * curl;
                        }
                    }
                }
            }
            None => {
                let table = tabulate(potential, &points);
                for (q, weight) in weights.iter().enumerate() {
                    for (j, value) in values.iter_mut().enumerate() {
                        let gradient = table.gradient(q, j);
                        *value += match element.family() {
                            WhitneyFamily::Curl => {
                                (0..dim).map(|a| weight[a] * gradient[a]).sum::<f64>()
                            }
                            WhitneyFamily::Div => weight[0] * gradient[1] - weight[1] * gradient[0],
                        };
                    }
                }
            }
        }
        let entries = values.into_iter().enumerate();
        entries.filter(|(_, value)| value.abs() > ROUNDING).collect()
    };
    Some(element.dofs().into_iter().map(row).collect())
}

/// Returns, for each degree of freedom of a cell, those of the potential with the entries 1 and −1.
fn local(potential: Element, element: Whitney) -> Option<LocalRows> {
    let signed = |(j, is_minus): (usize, bool)| (j, if is_minus { -1.0 } else { 1.0 });
    let rows = incidence(potential, element)?.into_iter();
    Some(rows.map(|terms| terms.into_iter().map(signed).collect()).collect())
}

/// Returns the same with whether the entry is −1.
fn incidence(potential: Element, element: Whitney) -> Option<Vec<Vec<(usize, bool)>>> {
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
