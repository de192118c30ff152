//! Elements of H(curl) and H(div): Nédélec's of the first kind and Raviart and Thomas's.
//!
//! On simplices the functions are dual to moments ([`moments`]). On tensor cells a function of the reference cell has one
//! component along each axis, a product over the axes. An axis is *closed* for a
//! component, with the k + 1 Lagrange functions of the Gauss-Lobatto points, or *open*, with the k functions whose
//! integrals between neighbouring points are 0 or 1 ([`LineBasis`]):
//!
//! ```text
//! H(curl)   open along the component's own axis, closed across     degrees of freedom: integrals along edges
//! H(div)    closed along the component's own axis, open across     degrees of freedom: fluxes through faces
//! ```
//!
//! (J.-C. Nédélec, "Mixed finite elements in R³", Numer. Math. 35 (1980); P.-A. Raviart and J.-M. Thomas (1977); the
//! basis of integrals: M. Gerritsma, "Edge functions for spectral element methods" (2011).) Degrees of freedom are
//! invariant under all maps of the cell, so that the discrete grad, curl and div are matrices of 0, 1 and −1.
//!
//! On tensor cells they are listed component by component, each lexicographic in its own lattice, x fastest. The one of a face is the
//! flux along the product of the face's own axes, in order: the component along y of a hexahedron, and along x of a
//! quadrilateral, therefore have a factor of −1 ([`Whitney::sign`]).

mod moments;
mod polynomials;

use super::lagrange::MAX_SIMPLEX_DEGREE;
use super::{Cell, ElementError, LineBasis, LinePoints};
pub(super) use polynomials::WhitneyBasis;
use std::fmt;

/// The largest degree on tensor cells.
const MAX_DEGREE: usize = 20;

/// An element of H(curl) or H(div) on a reference cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Whitney {
    cell: Cell,
    degree: usize,
    family: WhitneyFamily,
    /// True in kernels that read or test all derivatives of the reference functions.
    gradient: bool,
}

/// The space of a Whitney element, which decides how its functions are mapped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum WhitneyFamily {
    /// H(curl): with K = J⁻¹, u = Kᵀ û and curl u = J curl û / det J; in the plane curl u = curl û / det J.
    Curl,
    /// H(div): u = J û / det J and div u = div û / det J.
    Div,
}

/// A degree of freedom of a Whitney element.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WhitneyDof {
    /// The component of the reference function; on simplices the direction among those of its entity.
    pub component: usize,
    /// Its index along each axis: from 0 to k of closed axes, to k − 1 of open ones. On simplices that of the weight's
    /// node in its entity.
    pub lattice: [usize; 3],
    /// The dimension of the sub-entity that owns it.
    pub dim: usize,
    /// The index of the owning sub-entity among those of its dimension.
    pub entity: usize,
    /// The index within its entity: by the entity's axis along which the component is (of H(curl)), then x fastest; on
    /// simplices by direction, then in the order of the nodes.
    pub index: usize,
}

impl Whitney {
    /// Returns the element; its degree is at least 1.
    ///
    /// # Errors
    ///
    /// Degrees that do not exist, and intervals.
    pub fn new(cell: Cell, degree: i64, family: WhitneyFamily) -> Result<Self, ElementError> {
        if cell.dim() == 1 {
            return Err(ElementError::Cell { family: family.name(), cell });
        }
        let max = if cell.is_tensor() { MAX_DEGREE } else { MAX_SIMPLEX_DEGREE };
        match usize::try_from(degree) {
            Ok(k) if (1..=max).contains(&k) => {
                Ok(Self { cell, degree: k, family, gradient: false })
            }
            _ => Err(ElementError::Degree { cell, degree, min: 1, max }),
        }
    }

    /// Returns the cell.
    pub const fn cell(self) -> Cell {
        self.cell
    }

    /// Returns the largest polynomial degree k.
    pub const fn degree(self) -> usize {
        self.degree
    }

    /// Returns the space.
    pub const fn family(self) -> WhitneyFamily {
        self.family
    }

    /// Returns whether an axis is open for a component. Derivatives along the closed axes alone are those of the exterior
    /// derivative, on all cells.
    pub fn is_open(self, component: usize, axis: usize) -> bool {
        match self.family {
            WhitneyFamily::Curl => axis == component,
            WhitneyFamily::Div => axis != component,
        }
    }

    /// Returns the element for a kernel that reads or tests all derivatives of its functions.
    pub(crate) const fn with_gradient(self) -> Self {
        Self { gradient: true, ..self }
    }

    /// Returns whether a kernel reads or tests all derivatives of its functions.
    pub(crate) const fn has_gradient(self) -> bool {
        self.gradient
    }

    /// Returns whether a kernel reads or tests the derivative of a component along an axis.
    pub fn is_differentiated(self, component: usize, axis: usize) -> bool {
        self.gradient || !self.is_open(component, axis)
    }

    /// Returns the functions of a component along an axis.
    pub fn line(self, component: usize, axis: usize) -> LineBasis {
        let points = LinePoints::GaussLobatto(self.degree + 1);
        if self.is_open(component, axis) {
            LineBasis::Integral(points)
        } else {
            LineBasis::Nodal(points)
        }
    }

    /// Returns the factor of a component on tensor cells, −1 where the product of a face's axes points against the component's axis.
    pub fn sign(self, component: usize) -> f64 {
        let against = match (self.family, self.cell.dim()) {
            _ if !self.cell.is_tensor() => false,
            (WhitneyFamily::Curl, _) => false,
            (WhitneyFamily::Div, 2) => component == 0,
            (WhitneyFamily::Div, _) => component == 1,
        };
        if against { -1.0 } else { 1.0 }
    }

    /// Returns the extents of the lattice of a component; 1 beyond the dimension.
    pub fn extents(self, component: usize) -> [usize; 3] {
        [0, 1, 2].map(|axis| match axis < self.cell.dim() {
            true => self.line(component, axis).count(),
            false => 1,
        })
    }

    /// Returns the number of degrees of freedom of a component; on simplices each has all.
    pub fn component_count(self, component: usize) -> usize {
        match self.cell.is_tensor() {
            true => self.extents(component).iter().product(),
            false => self.count(),
        }
    }

    /// Returns the index of the first degree of freedom of a component.
    pub fn first(self, component: usize) -> usize {
        match self.cell.is_tensor() {
            true => (0..component).map(|before| self.component_count(before)).sum(),
            false => 0,
        }
    }

    /// Returns the number of degrees of freedom of the cell.
    pub fn count(self) -> usize {
        match self.cell.is_tensor() {
            true => self.first(self.cell.dim()),
            false => moments::count(self),
        }
    }

    /// Returns the number of degrees of freedom that one sub-entity of dimension `dim` owns.
    pub fn entity_count(self, dim: usize) -> usize {
        let (k, d) = (self.degree, self.cell.dim());
        if !self.cell.is_tensor() {
            return moments::entity_count(self, dim);
        }
        match (self.family, dim) {
            (_, 0) => 0,
            (WhitneyFamily::Curl, dim) if dim <= d => dim * k * (k - 1).pow(dim as u32 - 1),
            (WhitneyFamily::Div, dim) if dim + 1 == d => k.pow(dim as u32),
            (WhitneyFamily::Div, dim) if dim == d => d * (k - 1) * k.pow(dim as u32 - 1),
            _ => 0,
        }
    }

    /// Returns the degrees of freedom of the cell, in order.
    pub fn dofs(self) -> Vec<WhitneyDof> {
        if !self.cell.is_tensor() {
            return moments::dofs(self);
        }
        let mut dofs = Vec::with_capacity(self.count());
        for component in 0..self.cell.dim() {
            let [n, m, _] = self.extents(component);
            let lattices =
                (0..self.component_count(component)).map(|i| [i % n, i / n % m, i / (n * m)]);
            dofs.extend(lattices.map(|lattice| self.dof(component, lattice)));
        }
        dofs
    }

    fn dof(self, component: usize, lattice: [usize; 3]) -> WhitneyDof {
        let (k, d) = (self.degree, self.cell.dim());
        let is_free = |&a: &usize| self.is_open(component, a) || 0 < lattice[a] && lattice[a] < k;
        let free: Vec<usize> = (0..d).filter(is_free).collect();
        let fixed = (0..d).filter(|a| !free.contains(a));
        let corner: usize = fixed.filter(|&a| lattice[a] == k).map(|a| 1 << a).sum();
        let far = corner + free.iter().map(|&a| 1 << a).sum::<usize>();
        let owns = |vertices: &&[usize]| vertices[0] == corner && vertices.last() == Some(&far);
        let entity = self.cell.entities(free.len()).iter().position(owns);
        let position: Vec<usize> = free.iter().map(|&a| lattice[a]).collect();
        let own = free.iter().position(|&a| a == component);
        WhitneyDof {
            component,
            lattice,
            dim: free.len(),
            entity: entity.expect("free axes should be those of an entity"),
            index: self.index(own, &position),
        }
    }

    /// Returns the index within an entity, from the entity's axis along which the component is and the indices along its
    /// axes.
    fn index(self, own: Option<usize>, position: &[usize]) -> usize {
        let open = |axis: usize| match self.family {
            WhitneyFamily::Curl => own == Some(axis),
            WhitneyFamily::Div => own != Some(axis),
        };
        let extent = |axis: usize| if open(axis) { self.degree } else { self.degree - 1 };
        let mut index = 0;
        for (axis, &at) in position.iter().enumerate().rev() {
            index = index * extent(axis) + if open(axis) { at } else { at - 1 };
        }
        let all: usize = (0..position.len()).map(extent).product();
        // Of a facet's fluxes there is one component only.
        own.unwrap_or(0) * all + index
    }

    /// Returns, for each degree of freedom of an entity in a cell's order, its index in the entity's own order and
    /// whether its sign is reversed. `vertices` are the indices of the entity's vertices in its own frame, in the cell's
    /// order.
    ///
    /// # Panics
    ///
    /// If functions of one frame are sums of several of the other: see [`Whitney::needs_orientation`].
    pub fn entity_permutation(self, dim: usize, vertices: &[usize]) -> Vec<(usize, bool)> {
        if !self.cell.is_tensor() {
            return moments::permutation(self, dim, vertices);
        }
        let k = self.degree;
        // The entity's own axis of each of the cell's axes, and whether it is reversed.
        let axes: Vec<(usize, bool)> = (0..dim)
            .map(|axis| {
                let (from, to) = (vertices[0], vertices[1 << axis]);
                ((from ^ to).trailing_zeros() as usize, from > to)
            })
            .collect();
        let mut result = vec![(0, false); self.entity_count(dim)];
        if result.is_empty() {
            return result;
        }
        let components = match self.family {
            WhitneyFamily::Curl => dim,
            WhitneyFamily::Div => 1,
        };
        for component in 0..components {
            let own = (self.family == WhitneyFamily::Curl).then_some(component);
            let open = |axis: usize| own.is_none_or(|own| own == axis);
            let first = |axis: usize| usize::from(!open(axis));
            let extent = |axis: usize| if open(axis) { k } else { k - 1 };
            let all: usize = (0..dim).map(extent).product();
            for i in 0..all {
                let (mut rest, mut position) = (i, vec![0; dim]);
                for (axis, at) in position.iter_mut().enumerate() {
                    *at = rest % extent(axis) + first(axis);
                    rest /= extent(axis);
                }
                let mut image = vec![0; dim];
                for (axis, &(to, reversed)) in axes.iter().enumerate() {
                    let last = if open(axis) { k - 1 } else { k };
                    image[to] = if reversed { last - position[axis] } else { position[axis] };
                }
                let reversed = match own {
                    Some(axis) => axes[axis].1,
                    None => {
                        let swapped = dim == 2 && axes[0].0 == 1;
                        axes.iter().fold(swapped, |sign, &(_, reversed)| sign ^ reversed)
                    }
                };
                result[self.index(own, &position)] =
                    (self.index(own.map(|axis| axes[axis].0), &image), reversed);
            }
        }
        result
    }

    /// Returns whether all cells must see entities of a dimension in their own frame: on faces of tetrahedra, where two
    /// tangents of one frame are sums of those of another.
    pub fn needs_orientation(self, dim: usize) -> bool {
        !self.cell.is_tensor() && dim < self.cell.dim() && moments::are_mixed(self, dim)
    }

    /// Returns, for each degree of freedom of the cell rotated as [`super::Lagrange::turned`] says, the one of the original
    /// cell and whether its sign is reversed, on tensor cells.
    pub fn turned(self, facet: usize, orientation: u8) -> Vec<(usize, bool)> {
        let d = self.cell.dim();
        let bit = |bit: u8| orientation >> bit & 1 == 1;
        let rest: Vec<usize> = (0..d).filter(|&axis| axis != facet / 2).collect();
        // The original axis of each rotated one, and whether it is reversed.
        let axes: Vec<(usize, bool)> = match d {
            2 => vec![(facet / 2, facet % 2 == 1), (rest[0], bit(0))],
            _ => {
                let swapped = usize::from(bit(0));
                vec![
                    (facet / 2, facet % 2 == 1),
                    (rest[swapped], bit(1)),
                    (rest[1 - swapped], bit(2)),
                ]
            }
        };
        let inversions = (0..d).flat_map(|a| (a + 1..d).map(move |b| (a, b)));
        let is_odd = inversions.filter(|&(a, b)| axes[a].0 > axes[b].0).count() % 2 == 1;
        let mirrored = axes.iter().fold(is_odd, |sign, &(_, reversed)| sign ^ reversed);
        let turned = |dof: WhitneyDof| {
            let mut lattice = [0; 3];
            for (axis, &(to, reversed)) in axes.iter().enumerate() {
                let last = self.line(dof.component, axis).count() - 1;
                let at = dof.lattice[axis];
                lattice[to] = if reversed { last - at } else { at };
            }
            let (component, reversed) = axes[dof.component];
            let [n, m, _] = self.extents(component);
            let place = self.first(component) + lattice[0] + n * (lattice[1] + m * lattice[2]);
            let of_basis = self.sign(component) != self.sign(dof.component);
            let reversed = match self.family {
                WhitneyFamily::Curl => reversed,
                WhitneyFamily::Div => reversed ^ mirrored ^ of_basis,
            };
            (place, reversed)
        };
        self.dofs().into_iter().map(turned).collect()
    }

    /// Returns the functional of a degree of freedom: points, and weights of each component of the reference function. It
    /// is exact for polynomials of degree 2 `count` − 1 along each axis, and of that total degree on simplices.
    pub fn functional(self, dof: &WhitneyDof, count: usize) -> Vec<([f64; 3], [f64; 3])> {
        if !self.cell.is_tensor() {
            return moments::functional(self, dof, count);
        }
        let nodes = LinePoints::GaussLobatto(self.degree + 1).points();
        let gauss = LinePoints::Gauss(count);
        let rule: Vec<(f64, f64)> = gauss.points().into_iter().zip(gauss.weights()).collect();
        let along = |axis: usize| -> Vec<(f64, f64)> {
            let at = dof.lattice[axis];
            match self.is_open(dof.component, axis) {
                false => vec![(nodes[at], 1.0)],
                true => {
                    let (start, length) = (nodes[at], nodes[at + 1] - nodes[at]);
                    rule.iter().map(|&(x, w)| (start + length * x, length * w)).collect()
                }
            }
        };
        let mut terms = vec![([0.0; 3], self.sign(dof.component))];
        for axis in 0..self.cell.dim() {
            let line = along(axis);
            terms = terms
                .iter()
                .flat_map(|&(point, weight)| {
                    line.iter().map(move |&(x, w)| {
                        let mut point = point;
                        point[axis] = x;
                        (point, weight * w)
                    })
                })
                .collect();
        }
        let of_component = |(point, weight): ([f64; 3], f64)| {
            let mut weights = [0.0; 3];
            weights[dof.component] = weight;
            (point, weights)
        };
        terms.into_iter().map(of_component).collect()
    }
}

impl WhitneyFamily {
    /// Returns the name in the language.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Curl => "Hcurl",
            Self::Div => "Hdiv",
        }
    }
}

impl fmt::Display for WhitneyFamily {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl fmt::Display for Whitney {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}({}) on {}", self.family, self.degree, self.cell)
    }
}

#[cfg(test)]
mod tests;
