//! Meshes that are refined have the mesh before as their coarser one, in whatever order their cells are and however they are turned.

use super::NotCoarser;
use crate::mesh::generate::generate;
use crate::mesh::gmsh;
use crate::mesh::{Arrange, Mesh, Parts};
use fem_dsl::problem::Argument;
use kernels_gen::element::Cell;
use std::path::Path;

fn made(name: &str, word: &str, numbers: &[(&str, f64)]) -> Mesh {
    let word = ("cell".to_owned(), Argument::Word(word.to_owned()));
    let numbers = numbers.iter().map(|&(key, value)| (key.to_owned(), Argument::Number(value)));
    generate(name, &numbers.chain([word]).collect()).expect("a mesh")
}

fn boxed(word: &str, dim: f64, cells: f64) -> Mesh {
    made("box", word, &[("dim", dim), ("cells", cells)])
}

/// What two meshes of one domain have in common.
fn alike(found: &Mesh, wanted: &Mesh, what: &str) {
    assert_eq!(found.n_cells(), wanted.n_cells(), "{what}");
    assert_eq!(found.n_vertices(), wanted.n_vertices(), "{what}");
    let counts = |mesh: &Mesh| [mesh.topology().edges().len(), mesh.topology().facets().len()];
    assert_eq!(counts(found), counts(wanted), "{what}");
    for (tag, facets) in wanted.facet_tags() {
        assert_eq!(found.facet_tags()[tag].len(), facets.len(), "{what}: {tag}");
    }
    for (tag, cells) in wanted.cell_tags() {
        assert_eq!(found.cell_tags()[tag].len(), cells.len(), "{what}: {tag}");
    }
    let corners = |mesh: &Mesh| {
        let mut all: Vec<[i64; 3]> = mesh.points()[..mesh.n_vertices()]
            .iter()
            .map(|x| x.map(|x| (x * 1e9).round() as i64))
            .collect();
        all.sort_unstable();
        all
    };
    assert_eq!(corners(found), corners(wanted), "{what}");
}

#[test]
fn refined_meshes_have_what_they_were_refined_from() {
    let file = |name: &str| {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../meshes").join(name);
        gmsh::read(&path).expect("a mesh")
    };
    let meshes = [
        ("quadrilaterals", boxed("quad", 2.0, 3.0)),
        ("hexahedra", boxed("hex", 3.0, 2.0)),
        ("a disc", made("ball", "quad", &[("dim", 2.0), ("refine", 1.0), ("order", 2.0)])),
        ("a ball", made("ball", "hex", &[("dim", 3.0), ("refine", 1.0), ("order", 2.0)])),
        ("a shell", made("shell", "hex", &[("dim", 3.0)])),
        ("a plate with a hole", file("plate_hole_quad9.msh")),
    ];
    for (name, mesh) in meshes {
        let fine = mesh.clone().refined(1).expect("a finer mesh");
        let coarse = fine.coarsened().unwrap_or_else(|error| panic!("{name}: {error}"));
        alike(&coarse.mesh, &mesh, name);
        // Children lie in their parents' halves: corner by corner.
        let (dim, all) = (mesh.dim(), 1 << mesh.dim());
        for cell in 0..coarse.mesh.n_cells() {
            for half in 0..all {
                let place = cell * all + half;
                let child = coarse.children[place] as usize;
                let own = fine.vertices(child)[usize::from(coarse.corners[place][half])];
                let corner = coarse.mesh.vertices(cell)[half];
                let (x, y) = (fine.points()[own as usize], coarse.mesh.points()[corner as usize]);
                assert_eq!(x, y, "{name}: cell {cell}, child {half} in {dim} dimensions");
            }
        }
    }
}

#[test]
fn boxes_are_halved_until_they_are_odd() {
    let mut mesh = boxed("quad", 2.0, 48.0);
    let mut counts = Vec::new();
    while let Ok(coarse) = mesh.coarsened() {
        mesh = coarse.mesh;
        counts.push(mesh.n_cells());
        let area = mesh.bounding_box();
        assert_eq!(area, ([0.0, 0.0, 0.0], [1.0, 1.0, 0.0]));
    }
    assert_eq!(counts, [576, 144, 36, 9]);
    assert!(matches!(boxed("hex", 3.0, 3.0).coarsened(), Err(NotCoarser::NoChildren)));
    assert!(matches!(boxed("tri", 2.0, 4.0).coarsened(), Err(NotCoarser::Simplices)));
}

/// Local numberings are turned at random: rotations of squares, and of hexahedra about two axes.
fn turned(mesh: &Mesh) -> Mesh {
    let (cell, dim) = (mesh.cell(), mesh.dim());
    let square = [[0, 1, 2, 3], [1, 3, 0, 2], [3, 2, 1, 0], [2, 0, 3, 1]];
    let mut parts = Parts { points: mesh.points().to_vec(), ..Parts::default() };
    for number in 0..mesh.n_cells() {
        let own = mesh.cell_nodes(number);
        let turn = square[(number * 7 + 3) % 4];
        if dim == 2 {
            parts.nodes.extend(turn.map(|i| own[i]));
        } else {
            let mut nodes: Vec<u32> =
                [0, 4].iter().flat_map(|layer| turn.map(|i| own[layer + i])).collect();
            if number % 3 == 0 {
                // x, y, z become y, z, x.
                let cyclic = |i: usize| (i >> 1) | (i & 1) << 2;
                nodes = (0..8).map(|i| nodes[cyclic(i)]).collect();
            }
            parts.nodes.extend(nodes);
        }
    }
    assert!(matches!(cell, Cell::Quadrilateral | Cell::Hexahedron));
    Mesh::new(cell, 1, parts, Arrange::AsGiven).expect("a mesh")
}

#[test]
fn cells_may_be_turned() {
    for (word, dim, cells) in [("quad", 2.0, 6.0), ("hex", 3.0, 4.0)] {
        let (mesh, half) = (turned(&boxed(word, dim, cells)), boxed(word, dim, cells / 2.0));
        let coarse = mesh.coarsened().expect("a coarser mesh");
        assert_eq!(coarse.mesh.n_cells(), half.n_cells());
        assert_eq!(coarse.mesh.n_vertices(), half.n_vertices());
        // Nodes of degree 2 of both meshes lie at the same places, child by child.
        let vertices: Vec<u32> =
            (0..mesh.n_cells()).flat_map(|cell| mesh.vertices(cell).to_vec()).collect();
        let joined = coarse.joined(&vertices, 2);
        let (dim, each) = (mesh.dim(), 3usize.pow(mesh.dim() as u32));
        for cell in 0..coarse.mesh.n_cells() {
            let own = coarse.mesh.vertices(cell);
            let at = |corner: usize| coarse.mesh.points()[own[corner] as usize];
            for node in 0..each {
                let place: Vec<f64> = (0..dim)
                    .map(|axis| (node / 3usize.pow(axis as u32) % 3) as f64 / 2.0)
                    .collect();
                let x = mesh.points()[joined[cell * each + node] as usize];
                let mut y = [0.0; 3];
                for corner in 0..1 << dim {
                    let weight: f64 =
                        (0..dim)
                            .map(|axis| {
                                if corner >> axis & 1 == 1 {
                                    place[axis]
                                } else {
                                    1.0 - place[axis]
                                }
                            })
                            .product();
                    (0..3).for_each(|c| y[c] += weight * at(corner)[c]);
                }
                assert!((0..3).all(|c| (x[c] - y[c]).abs() < 1e-14), "{x:?} is not {y:?}");
            }
        }
    }
}

#[test]
fn periodic_meshes_stay_periodic() {
    for sides in [vec![["x0", "x1"]], vec![["x0", "x1"], ["y0", "y1"]]] {
        let mut mesh = boxed("quad", 2.0, 8.0);
        mesh.make_periodic(&sides).expect("sides");
        let coarse = mesh.coarsened().expect("a coarser mesh");
        assert_eq!((coarse.mesh.n_cells(), coarse.mesh.is_periodic()), (16, true));
    }
    // Three cells around are no two.
    let mut odd = boxed("quad", 2.0, 3.0);
    odd.make_periodic(&[["x0", "x1"], ["y0", "y1"]]).expect("sides");
    assert!(odd.coarsened().is_err());
}

#[test]
fn tags_that_end_inside_of_a_cell_say_so() {
    let mut mesh = boxed("quad", 2.0, 4.0);
    mesh.tag_cells("part", |x| x[0] < 0.3);
    match mesh.coarsened() {
        Err(NotCoarser::Tag { tag }) => assert_eq!(tag, "part"),
        other => panic!("{other:?}"),
    }
    let mut mesh = boxed("quad", 2.0, 4.0);
    mesh.tag_boundary("piece", |x| x.iter().all(|x| x[1] == 0.0 && x[0] < 0.3));
    assert!(matches!(mesh.coarsened(), Err(NotCoarser::Tag { .. })));
}
