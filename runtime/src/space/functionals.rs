//! Interpolation into H(curl) and H(div): degrees of freedom as sums of a vector function's values at points.
//!
//! A degree of freedom is a sum of values of the reference function's components ([`Whitney::functional`]), at points
//! ξ_q with weights w_q. With the tangents J_a and the cofactors C_a = J_b × J_c of the cell's map, the reference function of a
//! physical one has the components
//!
//! ```text
//! H(curl)   û_a = J_a · u        with n × u = g given:  û_a = J_a · (g × n) = (n × J_a) · g;  in the plane (J_a · t) g
//! H(div)    û_a = C_a · u        with u · n = g given:  û_a = (C_a · n) g
//! ```
//!
//! where the weighted sum of the J_a lies in the facet, t is n rotated by a quarter turn, and that of the C_a is along n. Each degree of freedom is thus
//! Σ_q w_q · u(x_q), exact for polynomials on any parallelepiped, and the interpolants of grad, curl and div are those of
//! the functions (D. Arnold, R. Falk, R. Winther, "Finite element exterior calculus", Acta Numerica 15 (2006)).

mod hanging_edges;

use super::Space;
use super::evaluate::{MapTable, cross, dot};
use crate::mesh::{Facet, Mesh};
use crate::support::parallel::*;
use kernels_gen::element::{ElementError, Whitney, WhitneyDof, WhitneyFamily};
use std::collections::BTreeMap;

/// Points at which a function is evaluated at once.
const BLOCK: usize = 1 << 16;

/// The given trace of a field on facets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GivenTrace {
    /// The field itself, of which n × u or u · n matters.
    Field,
    /// n × u of a field of H(curl): a vector in space, a number in the plane.
    Tangential,
    /// u · n of a field of H(div), or a vector with this normal component.
    Normal,
}

/// Returns the number of Gauss points of each interval of a functional: the pull-back of a polynomial of the element's
/// degree has degree g (k + d − 1) along an axis at most.
fn gauss_points(element: Whitney, mesh: &Mesh) -> usize {
    mesh.order() * (element.degree() + mesh.dim() - 1) / 2 + 1
}

/// The functional of a degree of freedom of the reference cell.
struct ReferenceFunctional {
    family: WhitneyFamily,
    /// The weights of each component of the reference function.
    weights: Vec<[f64; 3]>,
    map: MapTable,
}

impl ReferenceFunctional {
    fn new(mesh: &Mesh, element: Whitney, dof: WhitneyDof) -> Result<Self, ElementError> {
        let rule = element.functional(&dof, gauss_points(element, mesh));
        let (points, weights): (Vec<[f64; 3]>, Vec<[f64; 3]>) = rule.into_iter().unzip();
        let map = MapTable::new(mesh, &points)?;
        Ok(Self { family: element.family(), weights, map })
    }

    /// Returns the points in a cell, and the weights of the field there.
    fn terms<'a>(
        &'a self,
        mesh: &'a Mesh,
        cell: usize,
        reversed: bool,
    ) -> impl Iterator<Item = ([f64; 3], [f64; 3])> + 'a {
        let sign = if reversed { -1.0 } else { 1.0 };
        self.weights.iter().enumerate().map(move |(q, weights)| {
            let map = self.map.at(mesh, cell, q);
            let directions = match self.family {
                WhitneyFamily::Curl => &map.tangents,
                WhitneyFamily::Div => &map.cofactors,
            };
            let along = |c: usize| (0..3).map(|a| weights[a] * directions[a][c]).sum::<f64>();
            (map.point, [0, 1, 2].map(|c| sign * along(c)))
        })
    }
}

impl Space {
    /// Returns the degrees of freedom of the interpolant of a vector function in H(curl) or H(div). `f` evaluates it at
    /// points, component by component within a point.
    ///
    /// # Errors
    ///
    /// The geometry has no element; errors of `f` are the inner ones.
    ///
    /// # Panics
    ///
    /// If the degrees of freedom are values at nodes.
    pub fn interpolate_vectors<E>(
        &self,
        mesh: &Mesh,
        mut f: impl FnMut(&[[f64; 3]]) -> Result<Vec<f64>, E>,
    ) -> Result<Result<Vec<f64>, E>, ElementError> {
        let element = self.whitney();
        let (mut u, mut known) = (vec![0.0; self.n_nodes()], vec![false; self.n_nodes()]);
        let hangs = self.hanging_nodes();
        // A hanging cell references degrees of freedom of its parent, of which another cell sees the whole entity.
        let is_own = |cell, local| hangs.as_ref().is_none_or(|hangs| !hangs(cell, local));
        for (local, dof) in element.dofs().into_iter().enumerate() {
            let functional = ReferenceFunctional::new(mesh, element, dof)?;
            let mut own = Vec::new();
            for cell in (0..mesh.n_cells()).filter(|&cell| is_own(cell, local)) {
                let node = self.cell_nodes(cell)[local] as usize;
                if !std::mem::replace(&mut known[node], true) {
                    own.push((cell, node));
                }
            }
            let each = functional.weights.len();
            for block in own.chunks((BLOCK / each).max(1)) {
                let terms: Vec<Vec<([f64; 3], [f64; 3])>> = block
                    .par_iter()
                    .map(|&(cell, _)| {
                        functional.terms(mesh, cell, self.is_reversed(cell, local)).collect()
                    })
                    .listed();
                let points: Vec<[f64; 3]> = terms.iter().flatten().map(|term| term.0).collect();
                let values = match f(&points) {
                    Ok(values) => values,
                    Err(error) => return Ok(Err(error)),
                };
                let count = values.len() / points.len();
                let rows = values.chunks_exact(each * count);
                for ((terms, row), &(_, node)) in terms.iter().zip(rows).zip(block) {
                    u[node] = sum(terms.iter().map(|term| &term.1), row, count);
                }
            }
        }
        Ok(Ok(u))
    }

    /// Returns the element of a space of H(curl) or H(div).
    fn whitney(&self) -> Whitney {
        self.element().whitney().expect("functionals should be those of H(curl) or H(div)")
    }

    /// Returns whether the sign of a cell's degree of freedom is reversed.
    fn is_reversed(&self, cell: usize, local: usize) -> bool {
        self.cell_signs(cell).get(local).is_some_and(|&reversed| reversed)
    }
}

/// Returns Σ_q w_q · u_q.
fn sum<'w>(weights: impl Iterator<Item = &'w [f64; 3]>, values: &[f64], count: usize) -> f64 {
    let term = |(weight, value): (&[f64; 3], &[f64])| {
        weight.iter().zip(value).map(|(w, u)| w * u).sum::<f64>()
    };
    weights.zip(values.chunks_exact(count)).map(term).sum()
}

/// The functionals of degrees of freedom on facets, of a given trace.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct FacetFunctionals {
    /// The degrees of freedom, ascending.
    pub nodes: Vec<u32>,
    /// The points of all of them, one after another.
    pub points: Vec<[f64; 3]>,
    /// The first point of each degree of freedom, and the number of all points.
    starts: Vec<usize>,
    /// The weights of the given values, by their number: a vector, or a number first.
    weights: Vec<[f64; 3]>,
    /// The weights of a normal component given as a number.
    along: Vec<f64>,
}

/// A point of a functional, and the weights there of vectors and of normal components.
type FacetTerm = ([f64; 3], [f64; 3], f64);

impl FacetFunctionals {
    /// Creates the functionals of all degrees of freedom on facets and on their edges. Collective: those on facets of
    /// other processes alone are found, too.
    ///
    /// # Errors
    ///
    /// The geometry has no element.
    ///
    /// # Panics
    ///
    /// If the degrees of freedom are values at nodes.
    pub fn new(
        mesh: &Mesh,
        space: &Space,
        facets: &[Facet],
        given: GivenTrace,
    ) -> Result<Self, ElementError> {
        let (element, dofs) = (space.whitney(), space.whitney().dofs());
        let mut found: BTreeMap<u32, Vec<FacetTerm>> = BTreeMap::new();
        let (hangs, mut of_parents) = (space.hanging_nodes(), BTreeMap::new());
        for side in 0..mesh.cell().facets().len() {
            let own: Vec<Facet> =
                facets.iter().filter(|facet| usize::from(facet.local) == side).copied().collect();
            let locals = if own.is_empty() { &[][..] } else { space.facet_nodes(side) };
            for &local in locals {
                let local = local as usize;
                let functional = ReferenceFunctional::new(mesh, element, dofs[local])?;
                for facet in &own {
                    let cell = facet.cell as usize;
                    let node = space.cell_nodes(cell)[local];
                    if hangs.as_ref().is_some_and(|hangs| hangs(cell, local)) {
                        of_parents.insert(
                            node,
                            functional.map.at(mesh, cell, 0).normal(mesh.cell(), side),
                        );
                        continue;
                    }
                    let terms = functional.terms(mesh, cell, space.is_reversed(cell, local));
                    let normal = |q| functional.map.at(mesh, cell, q).normal(mesh.cell(), side);
                    let terms = terms.enumerate().map(|(q, (point, weight))| {
                        let (weight, along) = of_trace(mesh.dim(), given, &weight, &normal(q));
                        (point, weight, along)
                    });
                    found.entry(node).or_insert_with(|| terms.collect());
                }
            }
        }
        if let Some(hangs) = &hangs {
            add_whole(mesh, space, given, (hangs, of_parents), &mut found)?;
        }
        complete(mesh, space, &mut found);
        hanging_edges::correct(mesh, space, facets, given, &mut found)?;
        let mut all = Self { starts: vec![0], ..Self::default() };
        for (node, terms) in found {
            all.nodes.push(node);
            for (point, weight, along) in terms {
                all.points.push(point);
                all.weights.push(weight);
                all.along.push(along);
            }
            all.starts.push(all.points.len());
        }
        Ok(all)
    }

    /// Returns the degrees of freedom, in the order of `nodes`, of a function with these values at all points.
    pub fn of_values(&self, values: &[f64]) -> Vec<f64> {
        let count = values.len() / self.points.len().max(1);
        let of = |range: &[usize]| {
            let own = &values[range[0] * count..range[1] * count];
            match count {
                1 => self.along[range[0]..range[1]].iter().zip(own).map(|(w, g)| w * g).sum(),
                _ => sum(self.weights[range[0]..range[1]].iter(), own, count),
            }
        };
        self.starts.windows(2).map(of).collect()
    }

    /// Returns the first point of each degree of freedom.
    pub fn places(&self) -> Vec<[f64; 3]> {
        self.starts[..self.nodes.len()].iter().map(|&start| self.points[start]).collect()
    }
}

/// Returns the weights of a given trace, as a vector and as a number, from those of the field.
fn of_trace(
    dim: usize,
    given: GivenTrace,
    weight: &[f64; 3],
    normal: &[f64; 3],
) -> ([f64; 3], f64) {
    match (given, dim) {
        (GivenTrace::Field, _) => (*weight, f64::NAN),
        (GivenTrace::Tangential, 2) => {
            let along = [-normal[1], normal[0], 0.0];
            (*weight, dot(weight, &along))
        }
        (GivenTrace::Tangential, _) => (cross(normal, weight), f64::NAN),
        (GivenTrace::Normal, _) => (*weight, dot(weight, normal)),
    }
}

/// Adds the functionals of degrees of freedom that facets of hanging cells reference, with the normals of these facets:
/// those of the cells that see the whole entity, whose own facets may be elsewhere. Collective.
fn add_whole(
    mesh: &Mesh,
    space: &Space,
    given: GivenTrace,
    (hangs, mut of_parents): (&impl Fn(usize, usize) -> bool, BTreeMap<u32, [f64; 3]>),
    found: &mut BTreeMap<u32, Vec<FacetTerm>>,
) -> Result<(), ElementError> {
    if let Some(cut) = mesh.cut() {
        let sharing = space.sharing(cut.group());
        let component = |c: usize| {
            let mut numbers = vec![f64::NAN; space.n_nodes()];
            of_parents.iter().for_each(|(&node, normal)| numbers[node as usize] = normal[c]);
            sharing.all(&numbers)
        };
        let normals = [component(0), component(1), component(2)];
        for ((first, second), third) in normals[0].iter().zip(&normals[1]).zip(&normals[2]) {
            let of_process = |i: &usize| !first.1[*i].is_nan();
            if let Some(i) = (0..first.1.len()).find(of_process) {
                let normal = [first.1[i], second.1[i], third.1[i]];
                of_parents.entry(first.0 as u32).or_insert(normal);
            }
        }
    }
    of_parents.retain(|node, _| !found.contains_key(node));
    if of_parents.is_empty() {
        return Ok(());
    }
    for (local, dof) in space.whitney().dofs().into_iter().enumerate() {
        let functional = ReferenceFunctional::new(mesh, space.whitney(), dof)?;
        for cell in (0..mesh.n_cells()).filter(|&cell| !hangs(cell, local)) {
            let node = space.cell_nodes(cell)[local];
            let Some(normal) = of_parents.get(&node) else { continue };
            let terms = functional.terms(mesh, cell, space.is_reversed(cell, local));
            let terms = terms.map(|(point, weight)| {
                let (weight, along) = of_trace(mesh.dim(), given, &weight, normal);
                (point, weight, along)
            });
            found.entry(node).or_insert_with(|| terms.collect());
        }
    }
    Ok(())
}

/// Adds the functionals of shared degrees of freedom that lie on facets of other processes; the process of least rank
/// that has one decides.
fn complete(mesh: &Mesh, space: &Space, found: &mut BTreeMap<u32, Vec<FacetTerm>>) {
    let Some(cut) = mesh.cut() else { return };
    let sharing = space.sharing(cut.group());
    let mut most = [found.values().map(Vec::len).max().unwrap_or(0) as f64];
    mesh.reduce_in_all(crate::processes::Reduction::Largest, &mut most);
    let mut columns: BTreeMap<u32, Vec<f64>> = BTreeMap::new();
    for at in 0..7 * most[0] as usize {
        let mut numbers = vec![f64::NAN; space.n_nodes()];
        for (&node, terms) in found.iter() {
            if let Some((point, weight, along)) = terms.get(at / 7) {
                numbers[node as usize] = match at % 7 {
                    c @ 0..3 => point[c],
                    c @ 3..6 => weight[c - 3],
                    // The weight of a number may be undefined, which is no sign of an absent point.
                    _ => {
                        if along.is_nan() {
                            0.0
                        } else {
                            *along
                        }
                    }
                };
            }
        }
        for (node, all) in sharing.all(&numbers) {
            if let Some(known) = all.into_iter().find(|number| !number.is_nan()) {
                columns.entry(node as u32).or_default().push(known);
            }
        }
    }
    for (node, numbers) in columns {
        let terms = numbers
            .chunks_exact(7)
            .map(|term| ([term[0], term[1], term[2]], [term[3], term[4], term[5]], term[6]));
        found.insert(node, terms.collect());
    }
}
