//! Meshes as plain lists, with independent tables of each program's node order: digits 0 to 2 of the reference
//! coordinates.

use kernels_gen::element::Lagrange;
use runtime::mesh::{Cell, Mesh};

/// Element type of a written mesh.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Element {
    pub(crate) cell: Cell,
    pub(crate) nodes: usize,
}

/// Cells, and facets by their vertices, each with a tag from 1.
pub(crate) struct Plain {
    pub(crate) element: Element,
    pub(crate) points: Vec<[f64; 3]>,
    /// Nodes by reference coordinates, independent of the order.
    cells: Vec<Vec<([u8; 3], usize)>>,
    pub(crate) tags: Vec<usize>,
    pub(crate) facets: Vec<(usize, Vec<usize>)>,
}

impl Plain {
    /// Returns a mesh of order 1 or 2, with the given number of nodes per cell. Its cells have the tags 1 and 2, its
    /// boundary 3 and 4, by halves.
    pub(crate) fn new(mesh: &Mesh, nodes: usize) -> Plain {
        let geometry = Lagrange::continuous(mesh.cell(), mesh.order()).expect("an element");
        let scale = (2 / mesh.order()) as u8;
        let digits: Vec<[u8; 3]> =
            geometry.nodes().iter().map(|node| node.lattice.map(|x| x as u8 * scale)).collect();
        let element = Element { cell: mesh.cell(), nodes };
        let kept = order(VTK, element);
        let mirrored = mesh.mirrored();
        let half = |i: usize, n: usize| usize::from(2 * i >= n);
        let cells: Vec<_> = (0..mesh.n_cells())
            .map(|cell| {
                // Programs write cells with positive orientation.
                let turned =
                    |[x, y, z]: [u8; 3]| if mirrored[cell] { [y, x, z] } else { [x, y, z] };
                let nodes = digits.iter().zip(mesh.cell_nodes(cell));
                let all = nodes.map(|(&at, &node)| (turned(at), node as usize));
                all.filter(|(at, _)| kept.contains(at)).collect::<Vec<_>>()
            })
            .collect();
        let tags = (0..cells.len()).map(|cell| 1 + half(cell, cells.len())).collect();
        let boundary = mesh.boundary();
        let facets = boundary.iter().enumerate().map(|(i, facet)| {
            let local = mesh.cell().facets()[facet.local as usize];
            let vertices = local.iter().map(|&v| mesh.vertices(facet.cell as usize)[v] as usize);
            let mut vertices: Vec<usize> = vertices.collect();
            // Cyclic instead of lexicographic order.
            if vertices.len() == 4 {
                vertices.swap(2, 3);
            }
            (3 + half(i, boundary.len()), vertices)
        });
        Plain { element, points: mesh.points().to_vec(), tags, facets: facets.collect(), cells }
    }

    /// Returns the nodes of a cell in a program's order.
    pub(crate) fn cell(&self, cell: usize, orders: Orders) -> Vec<usize> {
        let find = |at: &[u8; 3]| {
            let own = self.cells[cell].iter().find(|(own, _)| own == at);
            own.unwrap_or_else(|| panic!("{at:?} in {:?}", self.element)).1
        };
        order(orders, self.element).iter().map(find).collect()
    }

    pub(crate) fn n_cells(&self) -> usize {
        self.cells.len()
    }
}

/// For each element, the nodes in a program's order.
pub(crate) type Orders = &'static [(Cell, &'static str)];

fn order(orders: Orders, element: Element) -> Vec<[u8; 3]> {
    let (_, text) = orders
        .iter()
        .find(|(cell, text)| *cell == element.cell && text.split(' ').count() >= element.nodes)
        .unwrap_or_else(|| panic!("no order of {element:?}"));
    let digits = |word: &str| {
        let digits: Vec<u8> = word.bytes().map(|b| b - b'0').collect();
        [digits[0], digits[1], digits[2]]
    };
    text.split(' ').take(element.nodes).map(digits).collect()
}

const TRIANGLE: &str = "000 200 020 100 110 010";
const QUADRILATERAL: &str = "000 200 220 020 100 210 120 010 110";

/// From Gmsh's reference manual, "Node ordering".
pub(crate) const GMSH: Orders = &[
    (Cell::Triangle, TRIANGLE),
    (Cell::Quadrilateral, QUADRILATERAL),
    (Cell::Tetrahedron, "000 200 020 002 100 110 010 001 011 101"),
    (
        Cell::Hexahedron,
        "000 200 220 020 002 202 222 022 100 010 001 210 201 120 221 021 102 012 212 122 110 101 011 211 121 112 111",
    ),
];

/// From the figures of `vtkQuadraticHexahedron.h`, `vtkTriQuadraticHexahedron.h` and others.
pub(crate) const VTK: Orders = &[
    (Cell::Triangle, TRIANGLE),
    (Cell::Quadrilateral, QUADRILATERAL),
    (Cell::Tetrahedron, "000 200 020 002 100 110 010 001 101 011"),
    (
        Cell::Hexahedron,
        "000 200 220 020 002 202 222 022 100 210 120 010 102 212 122 012 001 201 221 021 011 211 101 121 110 112 111",
    ),
];

/// From the Abaqus Elements Guide, "Three-dimensional solid element library".
pub(crate) const ABAQUS: Orders = &[
    (Cell::Triangle, TRIANGLE),
    (Cell::Quadrilateral, QUADRILATERAL),
    (Cell::Tetrahedron, "000 200 020 002 100 110 010 001 101 011"),
    (
        Cell::Hexahedron,
        "000 200 220 020 002 202 222 022 100 210 120 010 102 212 122 012 001 201 221 021 111 110 112 101 211 121 011",
    ),
];
