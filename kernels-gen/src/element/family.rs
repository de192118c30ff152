//! [`Element`]: the element of a field, of any space of the language.

use super::{Cell, ElementError, Lagrange, LineBasis, LinePoints, Whitney, WhitneyFamily};
use fem_dsl::point::Space;
use std::fmt;

/// A finite element on a reference cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Element {
    /// Scalar functions, one a component of the field: H1 and L2.
    Lagrange(Lagrange),
    /// Vector-valued functions: H(curl) and H(div).
    Whitney(Whitney),
    /// One component of the reference functions of a vector-valued element, as a field of a kernel.
    Component(Whitney, usize),
}

impl From<Lagrange> for Element {
    fn from(element: Lagrange) -> Self {
        Self::Lagrange(element)
    }
}

impl From<Whitney> for Element {
    fn from(element: Whitney) -> Self {
        Self::Whitney(element)
    }
}

impl Element {
    /// Returns the element of a space of the language at the compile-time degree k.
    pub fn in_space(cell: Cell, space: Space, k: usize) -> Result<Self, ElementError> {
        let whitney = |family| Whitney::new(cell, space.degree_at(k), family).map(Self::Whitney);
        match space {
            Space::H1(_) | Space::L2(_) => Lagrange::in_space(cell, space, k).map(Self::Lagrange),
            Space::Hcurl(_) => whitney(WhitneyFamily::Curl),
            Space::Hdiv(_) => whitney(WhitneyFamily::Div),
            Space::Number => Err(ElementError::Space(space)),
        }
    }

    /// Returns the Lagrange element, if it is one.
    pub const fn lagrange(self) -> Option<Lagrange> {
        match self {
            Self::Lagrange(element) => Some(element),
            Self::Whitney(_) | Self::Component(..) => None,
        }
    }

    /// Returns the vector-valued element, if it is one.
    pub const fn whitney(self) -> Option<Whitney> {
        match self {
            Self::Whitney(element) => Some(element),
            Self::Lagrange(_) | Self::Component(..) => None,
        }
    }

    /// Returns whether a kernel reads or tests all derivatives of vector-valued functions.
    pub(crate) const fn has_gradient(self) -> bool {
        match self {
            Self::Lagrange(_) => false,
            Self::Whitney(element) | Self::Component(element, _) => element.has_gradient(),
        }
    }

    /// Returns whether a kernel sees its functions in the reference cell, with derivatives along its axes: those of
    /// vector-valued elements.
    pub const fn is_referenced(self) -> bool {
        matches!(self, Self::Whitney(_) | Self::Component(..))
    }

    /// Returns whether a kernel reads the derivative of a component of its field along an axis: those of the exterior
    /// derivative, or all; all are read of Lagrange elements.
    pub fn is_differentiated(self, component: usize, axis: usize) -> bool {
        match self {
            Self::Lagrange(_) => true,
            Self::Whitney(element) => element.is_differentiated(component, axis),
            Self::Component(element, own) => element.is_differentiated(own, axis),
        }
    }

    /// Returns the cell.
    pub const fn cell(self) -> Cell {
        match self {
            Self::Lagrange(element) => element.cell(),
            Self::Whitney(element) | Self::Component(element, _) => element.cell(),
        }
    }

    /// Returns the largest polynomial degree along an axis of the cell.
    pub const fn degree(self) -> usize {
        match self {
            Self::Lagrange(element) => element.degree(),
            Self::Whitney(element) | Self::Component(element, _) => element.degree(),
        }
    }

    /// Returns the number of functions, N_b.
    pub fn count(self) -> usize {
        match self {
            Self::Lagrange(element) => element.count(),
            Self::Whitney(element) => element.count(),
            Self::Component(element, component) => element.component_count(component),
        }
    }

    /// Returns whether cells share the degrees of freedom of shared sub-entities.
    pub const fn is_continuous(self) -> bool {
        match self {
            Self::Lagrange(element) => element.is_continuous(),
            Self::Whitney(_) | Self::Component(..) => true,
        }
    }

    /// Returns the factor c of a penalty c/hn between its functions; see [`Lagrange::penalty_factor`].
    pub fn penalty_factor(self) -> f64 {
        match self {
            Self::Lagrange(element) => element.penalty_factor(),
            Self::Whitney(element) | Self::Component(element, _) => {
                let (p, cell) = (element.degree() as f64, element.cell());
                (p + 1.0) * (p + if cell.is_tensor() { 1.0 } else { cell.dim() as f64 })
            }
        }
    }

    /// Returns the nodes of each direction, if functions are the Lagrange polynomials of the same points along all axes.
    pub const fn line(self) -> Option<LinePoints> {
        match self {
            Self::Lagrange(element) => element.line(),
            Self::Whitney(_) | Self::Component(..) => None,
        }
    }

    /// Returns the functions along each axis, if the element is a scalar product of such. Those beyond the dimension are
    /// of one function.
    pub fn lines(self) -> Option<[LineBasis; 3]> {
        let dim = self.cell().dim();
        let constant = LineBasis::Nodal(LinePoints::Gauss(1));
        let along = |axis: usize, of: &dyn Fn(usize) -> LineBasis| match axis < dim {
            true => of(axis),
            false => constant,
        };
        match self {
            Self::Lagrange(element) => {
                let line = LineBasis::Nodal(element.line()?);
                Some([0, 1, 2].map(|axis| along(axis, &|_| line)))
            }
            Self::Component(element, _) if !element.cell().is_tensor() => None,
            Self::Component(element, component) => {
                Some([0, 1, 2].map(|axis| along(axis, &|axis| element.line(component, axis))))
            }
            Self::Whitney(_) => None,
        }
    }

    /// Returns the degrees of freedom of each run of a tensor cell: those inside each of its 3^d entities, number
    /// i + 3 j + 9 k with 0 the first layer of nodes, 1 the inner ones and 2 the last. Of a component, entities are those
    /// that open axes run through; the runs of a component follow those of the one before.
    pub fn runs(self) -> Vec<Vec<usize>> {
        let dim = self.cell().dim();
        if let Self::Whitney(element) = self {
            let of = |component: usize| {
                let first = element.first(component);
                let runs = Self::Component(element, component).runs().into_iter();
                runs.map(move |run| run.into_iter().map(|dof| first + dof).collect())
            };
            return (0..dim).flat_map(of).collect();
        }
        let mut runs = vec![vec![0]];
        let mut stride = 1;
        for line in self.lines().iter().flat_map(|lines| &lines[..dim]) {
            let n = line.count();
            let spans = match line {
                LineBasis::Nodal(_) => vec![0..1, 1..n - 1, n - 1..n],
                LineBasis::Integral(_) => std::iter::once(0..n).collect(),
            };
            let along = |span: &std::ops::Range<usize>| -> Vec<Vec<usize>> {
                let of = |run: &Vec<usize>| {
                    let layers =
                        span.clone().map(|at| run.iter().map(move |dof| at * stride + dof));
                    layers.flatten().collect()
                };
                runs.iter().map(of).collect()
            };
            runs = spans.iter().flat_map(along).collect();
            stride *= n;
        }
        runs
    }

    /// Returns the index of the first run of a component among those of its element; 0 for others.
    pub fn first_run(self) -> usize {
        match self {
            Self::Component(element, component) => {
                let before = (0..component).map(|before| Self::Component(element, before));
                before.map(|before| before.runs().len()).sum()
            }
            Self::Lagrange(_) | Self::Whitney(_) => 0,
        }
    }

    /// Returns the number of runs of a cell, of all components of its element.
    pub fn run_count(self) -> usize {
        match self {
            Self::Component(element, _) => Self::Whitney(element).runs().len(),
            Self::Lagrange(_) | Self::Whitney(_) => self.runs().len(),
        }
    }

    /// Returns the dimension of the sub-entity that owns each degree of freedom.
    pub fn owner_dims(self) -> Vec<usize> {
        match self {
            Self::Lagrange(element) => element.nodes().iter().map(|node| node.dim).collect(),
            Self::Whitney(element) => element.dofs().iter().map(|dof| dof.dim).collect(),
            Self::Component(element, component) => {
                let dofs = element.dofs().into_iter().skip(element.first(component));
                dofs.take(element.component_count(component)).map(|dof| dof.dim).collect()
            }
        }
    }

    /// Returns the degrees of freedom of the cell rotated for a facet; see [`Lagrange::turned`]. Vector-valued functions of
    /// simplices keep their order: kernels have tables for each facet.
    pub fn turned(self, facet: usize, orientation: u8) -> Vec<usize> {
        match self {
            Self::Whitney(element) | Self::Component(element, _) if !element.cell().is_tensor() => {
                (0..element.count()).collect()
            }
            Self::Lagrange(element) => element.turned(facet, orientation),
            Self::Whitney(element) | Self::Component(element, _) => {
                element.turned(facet, orientation).into_iter().map(|(dof, _)| dof).collect()
            }
        }
    }

    /// Returns whether the sign of each of these is reversed; empty if none is.
    pub fn turned_signs(self, facet: usize, orientation: u8) -> Vec<bool> {
        match self {
            Self::Lagrange(_) => Vec::new(),
            _ if !self.cell().is_tensor() => vec![false; self.count()],
            Self::Whitney(element) | Self::Component(element, _) => {
                element.turned(facet, orientation).into_iter().map(|(_, sign)| sign).collect()
            }
        }
    }

    /// Returns the number of degrees of freedom that one sub-entity of dimension `dim` owns.
    pub fn entity_count(self, dim: usize) -> usize {
        match self {
            Self::Lagrange(element) => element.entity_count(dim),
            Self::Whitney(element) => element.entity_count(dim),
            Self::Component(..) if dim == self.cell().dim() => {
                self.owner_dims().iter().filter(|&&own| own == dim).count()
            }
            Self::Component(..) => 0,
        }
    }
}

impl fmt::Display for Element {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Lagrange(element) => element.fmt(f),
            Self::Whitney(element) => element.fmt(f),
            Self::Component(element, component) => write!(f, "component {component} of {element}"),
        }
    }
}
