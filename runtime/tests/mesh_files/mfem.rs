//! Mesh files of MFEM. Those of `tests/meshes` were written by MFEM 4.8: squares and cubes whose nodes were moved by
//! x + 0.1 y³ (and z + 0.1 x³ + 0.05 y²), which keeps the volume. The hexahedra begin at different vertices.

use super::{mesh, parsed};
use runtime::mesh::read::{self, MeshFormat};
use runtime::mesh::{Cell, Mesh};

/// Returns the point that the map of the files moved to `p`.
fn moved_back([x, y, z]: [f64; 3], dim: usize) -> [f64; 3] {
    let x = x - 0.1 * y.powi(3);
    [x, y, if dim == 3 { z - 0.1 * x.powi(3) - 0.05 * y * y } else { z }]
}

/// Every node, moved back, lies at its place in the straight cell of its vertices.
fn assert_nodes_in_order(name: &str, mesh: &Mesh) {
    let (cell, order) = (mesh.cell(), mesh.order());
    let reference =
        kernels_gen::element::Lagrange::continuous(cell, order).expect("an element").points();
    let straight = kernels_gen::element::Lagrange::continuous(cell, 1).expect("an element");
    let matrix = kernels_gen::element::interpolation(straight, &reference);
    let at = |node: u32| moved_back(mesh.points()[node as usize], cell.dim());
    for own in mesh.nodes().chunks_exact(reference.len()) {
        let corner = |v: &[f64; 3]| {
            let place = reference.iter().position(|p| (0..3).all(|c| (p[c] - v[c]).abs() < 1e-12));
            at(own[place.expect("a vertex")])
        };
        let corners: Vec<[f64; 3]> = straight.points().iter().map(corner).collect();
        for (&node, row) in own.iter().zip(matrix.chunks_exact(corners.len())) {
            for c in 0..3 {
                let expected: f64 = row.iter().zip(&corners).map(|(w, p)| w * p[c]).sum();
                let gap = (at(node)[c] - expected).abs();
                assert!(gap < 1e-13, "{name}: node {node} is {gap} from its place");
            }
        }
    }
}

#[test]
fn nodes_of_curved_cells_have_the_order_of_mfem() {
    let files = [
        ("mfem_tri1.mesh", Cell::Triangle, 1, 8),
        ("mfem_tri4.mesh", Cell::Triangle, 4, 8),
        ("mfem_quad3.mesh", Cell::Quadrilateral, 3, 4),
        ("mfem_tet4.mesh", Cell::Tetrahedron, 4, 6),
        ("mfem_hex3.mesh", Cell::Hexahedron, 3, 8),
    ];
    for (name, cell, order, n_cells) in files {
        let mesh = mesh(name);
        assert_eq!((mesh.cell(), mesh.order(), mesh.n_cells()), (cell, order, n_cells), "{name}");
        assert!((mesh.size() - 1.0).abs() < 1e-13, "{name}: {}", mesh.size());
        if order > 1 {
            assert_nodes_in_order(name, &mesh);
        }
    }
}

#[test]
fn attributes_and_their_sets_are_tags() {
    let square = mesh("mfem_quad3.mesh");
    assert_eq!(square.cells_tagged("1").map(<[_]>::len), Ok(4));
    for side in ["1", "2", "3", "4"] {
        assert_eq!(square.facets_tagged(side).map(<[_]>::len), Ok(2), "{side}");
        let alias = format!("boundary {side}");
        assert_eq!(square.facets_tagged(&alias).map(<[_]>::len), Ok(2), "{alias}");
    }
    let cube = mesh("mfem_hex3.mesh");
    assert_eq!(cube.cells_tagged("2").map(<[_]>::len), Ok(4));
    let text = "MFEM mesh v1.3\n# of two materials\ndimension\n2\nelements\n2\n1 3 0 1 4 3\n2 3 1 2 5 4\n\
                attribute_sets\n2\n\"all of it\" 2 1 2\n\"right\" 1 2\nboundary\n1\n7 1 0 3\nbdr_attribute_sets\n\
                1\n\"inlet\" 1 7\nvertices\n6\n2\n0 0 1 0 2 0 0 1 1 1 2 1\nmfem_mesh_end\n";
    let two = parsed(MeshFormat::Mfem, text.as_bytes());
    for (tag, cells) in [("1", 1), ("2", 1), ("all of it", 2), ("right", 1)] {
        assert_eq!(two.cells_tagged(tag).map(<[_]>::len), Ok(cells), "{tag}");
    }
    assert_eq!(two.facets_tagged("inlet").map(<[_]>::len), Ok(1));
    assert_eq!(two.facets_tagged("7").map(<[_]>::len), Ok(1));
}

#[test]
fn broken_and_foreign_files_are_refused() {
    let square = "dimension\n2\nelements\n1\n1 3 0 1 2 3\nboundary\n0\nvertices\n4\n";
    let nodes = "nodes\nFiniteElementSpace\nFiniteElementCollection: ";
    for (text, expected) in [
        ("MFEM NC mesh v1.0\n".to_owned(), "line 1: a nonconforming mesh"),
        ("MFEM INLINE mesh v1.0\n".to_owned(), "line 1: a generated mesh"),
        ("MFEM mesh v1.0\ndimension\n4\n".to_owned(), "line 3: expected a dimension of 1 to 3, found 4"),
        (
            "MFEM mesh v1.0\ndimension\n3\nelements\n1\n1 6 0 1 2 3 4 5\n".to_owned(),
            "line 6: a prism or a pyramid",
        ),
        (
            "MFEM mesh v1.0\ndimension\n2\nelements\n1\n1 3 0 1 1 0\n".to_owned(),
            "line 6: an element with one vertex twice",
        ),
        (
            format!("MFEM mesh v1.0\n{square}{nodes}L2_T1_2D_P2\n"),
            "line 13: nodes of the space `L2_T1_2D_P2`; save the mesh after `Mesh::SetCurvature(p, false)`",
        ),
        (
            format!("MFEM mesh v1.0\n{square}{nodes}H1_2D_P2\nVDim: 2\nOrdering: 1\n0 0 1 0 1 1 0 1 0"),
            "9 nodes are announced, but only ",
        ),
        (
            "MFEM mesh v1.0\ndimension\n2\nelements\n1\n1 3 0 1 2 9\nboundary\n0\nvertices\n4\n2\n0 0 1 0 1 1 0 1\n"
                .to_owned(),
            "element 0 uses node 9",
        ),
        (
            "MFEM mesh v1.0\ndimension\n2\nelements\n99999999\n1 3 0 1 2 3\n".to_owned(),
            "line 5: 99999999 elements are announced",
        ),
    ] {
        let error = read::parse(MeshFormat::Mfem, text.as_bytes()).expect_err(&text).to_string();
        assert!(error.contains(expected), "{error}\nexpected: {expected}");
    }
}
