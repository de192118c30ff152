//! Format-independent contents of a mesh file: nodes, and blocks of elements of one kind with tags.
//!
//! Readers create [`Contents`]; `convert` turns them into a mesh. Elements list their nodes in the order of the
//! Lagrange element. [`NodePermutation`] permutes a file's order to it, by the lattice points of both.

use super::{FilePosition, ReadError};
use crate::mesh::{Cell, MeshError};
use kernels_gen::element::Lagrange;
use std::collections::{BTreeSet, HashMap};
use std::fmt;

/// The unprocessed contents of a file.
#[derive(Debug, Default)]
pub(super) struct Contents {
    /// The numbers of the nodes.
    pub(super) node_numbers: Vec<u64>,
    /// Their coordinates.
    pub(super) points: Vec<[f64; 3]>,
    pub(super) blocks: Vec<ElementBlock>,
    /// True if an element of several groups occurs several times.
    pub(super) repeats: bool,
    /// An additional hint if there are no cells.
    pub(super) no_cells: Option<&'static str>,
    /// The order of the elements in the file.
    pub(super) order: ElementOrder,
    /// Notes for the report.
    pub(super) notes: Vec<String>,
}

/// Position of an element in the file's own numbering.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum ElementOrder {
    /// The index in the concatenated blocks.
    #[default]
    Blocks,
    /// The element number, from 0, below the given total.
    Numbers(usize),
    /// The rank of its number among the elements of its dimension; likewise for points.
    Ascending,
}

/// Elements of one kind with the same tags.
#[derive(Debug)]
pub(super) struct ElementBlock {
    pub(super) kind: ElementKind,
    pub(super) tags: BTreeSet<String>,
    /// The numbers of the elements.
    pub(super) numbers: Vec<u64>,
    /// The numbers of their nodes, in the order of [`ElementKind::lattice`].
    pub(super) nodes: Vec<u64>,
}

impl Contents {
    /// Returns the largest dimension of an element; 0 without elements.
    pub(super) fn dim(&self) -> usize {
        let blocks = self.blocks.iter().filter(|block| !block.numbers.is_empty());
        blocks.map(|block| block.kind.dim()).max().unwrap_or(0)
    }

    pub(super) fn blocks_of(&self, dim: usize) -> impl Iterator<Item = &ElementBlock> {
        self.blocks.iter().filter(move |block| block.kind.dim() == dim && !block.numbers.is_empty())
    }
}

impl ElementBlock {
    /// Iterates over the elements: number and node numbers.
    pub(super) fn elements(&self) -> impl Iterator<Item = (u64, &[u64])> {
        self.numbers.iter().copied().zip(self.nodes.chunks_exact(self.kind.nodes()))
    }
}

/// Kind of an element.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) enum ElementKind {
    Point,
    /// A line or a cell, with the order of its geometry.
    Cell(Cell, usize),
    /// A quadrilateral with 8 nodes or a hexahedron with 20: vertices and edge midpoints.
    Serendipity(Cell),
}

impl ElementKind {
    /// Returns the dimension.
    pub(super) fn dim(self) -> usize {
        match self {
            ElementKind::Point => 0,
            ElementKind::Cell(cell, _) | ElementKind::Serendipity(cell) => cell.dim(),
        }
    }

    /// Returns the number of nodes.
    pub(super) fn nodes(self) -> usize {
        match self {
            ElementKind::Point => 1,
            ElementKind::Cell(cell, order) => {
                let n = order + 1;
                match cell {
                    Cell::Interval => n,
                    Cell::Triangle => n * (n + 1) / 2,
                    Cell::Quadrilateral => n * n,
                    Cell::Tetrahedron => n * (n + 1) * (n + 2) / 6,
                    Cell::Hexahedron => n * n * n,
                }
            }
            ElementKind::Serendipity(cell) => cell.vertex_count() + cell.entities(1).len(),
        }
    }

    /// Returns the integer coordinates of the nodes, from 0 to the order, in the order of the Lagrange element.
    /// Serendipity elements use those of the quadratic element.
    pub(super) fn lattice(self) -> Result<Vec<[usize; 3]>, MeshError> {
        let all = |cell, order| {
            let expected = "orders are 1 to 12, on simplices 1 to 8";
            Lagrange::continuous(cell, order)
                .map(|element| element.nodes().iter().map(|node| node.lattice).collect())
                .map_err(|_| MeshError::Unsupported { cell, order, expected })
        };
        match self {
            ElementKind::Point => Ok(vec![[0; 3]]),
            ElementKind::Cell(cell, order) => all(cell, order),
            ElementKind::Serendipity(cell) => {
                let mut nodes: Vec<[usize; 3]> = all(cell, 2)?;
                nodes.retain(|node| node.iter().filter(|&&x| x == 1).count() <= 1);
                Ok(nodes)
            }
        }
    }

    /// Returns the index of each vertex among the nodes.
    pub(super) fn vertices(self) -> Result<Vec<usize>, MeshError> {
        let (cell, order) = match self {
            ElementKind::Point => return Ok(vec![0]),
            ElementKind::Cell(cell, order) => (cell, order),
            ElementKind::Serendipity(cell) => (cell, 2),
        };
        let lattice = self.lattice()?;
        let corner = |v: usize| cell.vertex(v).map(|x| x as usize * order);
        Ok((0..cell.vertex_count())
            .filter_map(|v| lattice.iter().position(|&node| node == corner(v)))
            .collect())
    }
}

impl fmt::Display for ElementKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ElementKind::Point => f.write_str("point"),
            ElementKind::Cell(Cell::Interval, order) => write!(f, "line of order {order}"),
            ElementKind::Cell(cell, order) => write!(f, "{cell} of order {order}"),
            ElementKind::Serendipity(cell) => write!(f, "{cell} of {} nodes", self.nodes()),
        }
    }
}

/// Permutation from a file's node order to that of the Lagrange element.
#[derive(Clone, Debug)]
pub(super) struct NodePermutation {
    pub(super) kind: ElementKind,
    /// For each Lagrange node, its index in the file's order.
    map: Vec<usize>,
}

impl NodePermutation {
    /// Creates the permutation; `theirs` are the lattice points of the nodes in the file's order.
    pub(super) fn new(
        kind: ElementKind,
        theirs: &[[usize; 3]],
    ) -> Result<NodePermutation, MeshError> {
        let place: HashMap<[usize; 3], usize> =
            theirs.iter().enumerate().map(|(place, &at)| (at, place)).collect();
        let map = kind.lattice()?.iter().filter_map(|at| place.get(at).copied()).collect();
        Ok(NodePermutation { kind, map })
    }

    /// Returns the nodes of an element in Lagrange order.
    pub(super) fn ours<'a>(&'a self, theirs: &'a [u64]) -> impl Iterator<Item = u64> + 'a {
        self.map.iter().map(|&place| theirs[place])
    }
}

/// Checks that no node number has two positions. `marks` are the nodes' positions in the file.
pub(super) fn once(
    numbers: &[u64],
    points: &[[f64; 3]],
    marks: &[usize],
    place: impl Fn(usize) -> FilePosition,
) -> Result<(), ReadError> {
    let ascends = numbers.windows(2).all(|pair| pair[0] < pair[1]);
    if ascends {
        return Ok(());
    }
    let mut order: Vec<u32> = (0..).zip(numbers).map(|(place, _)| place).collect();
    order.sort_by_key(|&place| numbers[place as usize]);
    let differ = |pair: &&[u32]| {
        let [first, second] = [pair[0] as usize, pair[1] as usize];
        numbers[first] == numbers[second] && points[first] != points[second]
    };
    // The first duplicate in the file.
    let twice = order.windows(2).filter(differ).min_by_key(|pair| pair[1]);
    let Some([first, second]) = twice.map(|pair| [pair[0] as usize, pair[1] as usize]) else {
        return Ok(());
    };
    Err(ReadError::NodeTwice {
        place: place(marks[second]),
        node: numbers[second],
        at: Box::new([points[second], points[first]]),
    })
}
