//! Adjacent cells of a mesh: orientation and overlap.

use runtime::mesh::read::{MeshFormat, parse};
use runtime::mesh::{Cell, CellOrdering, Mesh, MeshData};

/// Grids of cells, each with its own nodes and map.
fn grids(cell: Cell, grids: &[([usize; 3], &dyn Fn([f64; 3]) -> [f64; 3])]) -> MeshData {
    let mut parts = MeshData::default();
    for (cells, map) in grids {
        let first = parts.points.len() as u32;
        let n = cells.map(|n| n + 1);
        for i in 0..n.iter().product::<usize>() {
            let place = [i % n[0], i / n[0] % n[1], i / n[0] / n[1]];
            parts.points.push(map([0, 1, 2].map(|c| place[c] as f64)));
        }
        let layers = if cell.dim() == 2 { 1 } else { cells[2] };
        for i in 0..cells[0] * cells[1] * layers {
            let at = [i % cells[0], i / cells[0] % cells[1], i / cells[0] / cells[1]];
            let corner = |v: usize| {
                let place = [0, 1, 2].map(|c| at[c] + (v >> c & 1));
                first + ((place[2] * n[1] + place[1]) * n[0] + place[0]) as u32
            };
            match cell {
                Cell::Triangle => parts.nodes.extend([0, 1, 3, 0, 3, 2].map(corner)),
                Cell::Tetrahedron => {
                    for [a, b] in [[1, 3], [3, 2], [2, 6], [6, 4], [4, 5], [5, 1]] {
                        parts.nodes.extend([0, a, b, 7].map(corner));
                    }
                }
                _ => parts.nodes.extend((0..cell.vertex_count()).map(corner)),
            }
        }
    }
    parts
}

/// Every other cell lists its vertices and curved nodes in the opposite sense.
#[test]
fn cells_that_do_not_all_turn_one_way_are_turned() {
    for cell in Cell::ALL.into_iter().filter(|cell| cell.dim() > 1) {
        let flat = cell.dim() == 2;
        let own = |[x, y, z]: [f64; 3]| [x, 2.0 * y, if flat { 0.0 } else { z }];
        let cells = [4, 3, if flat { 0 } else { 2 }];
        let straight = grids(cell, &[(cells, &own)]);
        for arrange in [CellOrdering::Sorted, CellOrdering::Original] {
            let right = Mesh::new(cell, 1, straight.clone(), arrange).expect("a mesh");
            assert!(right.notes().is_empty(), "{:?}", right.notes());
            let mut mixed = straight.clone();
            let each = cell.vertex_count();
            let mut turned = 0;
            for nodes in mixed.nodes.chunks_exact_mut(each).step_by(2) {
                nodes.swap(1, 2);
                if each == 8 {
                    nodes.swap(5, 6);
                }
                turned += 1;
            }
            let mesh = Mesh::new(cell, 1, mixed, arrange).expect("cells that are turned");
            assert!((mesh.size() - right.size()).abs() < 1e-12, "{cell}");
            let note = format!("{turned} of {} cells listed", right.n_cells());
            assert!(mesh.notes()[0].starts_with(&note), "{:?}", mesh.notes());
            assert!(!mesh.mirrored().contains(&true) || cell != Cell::Quadrilateral);
        }
    }
    // Four triangles around a point, two of them reversed; and of order 2, all clockwise.
    let points = vec![[0.0; 3], [1.0, 0.0, 0.0], [1.0, 1.0, 0.0], [0.0, 1.0, 0.0], [0.5, 0.5, 0.0]];
    let nodes = vec![0, 1, 4, 4, 2, 1, 2, 3, 4, 3, 0, 4];
    let parts = MeshData { points, nodes, ..MeshData::default() };
    let mesh = Mesh::new(Cell::Triangle, 1, parts, CellOrdering::Sorted).expect("a mesh");
    assert!((mesh.size() - 1.0).abs() < 1e-14 && mesh.notes()[0].starts_with("1 of 4 cells"));
    let vtu = "# vtk DataFile Version 3.0\n\nASCII\nDATASET UNSTRUCTURED_GRID\nPOINTS 6 double\n\
        0 0 0  0 1 0  1 0 0  0 0.5 0  0.5 0.6 0  0.5 0 0\nCELLS 1 7\n6 0 1 2 3 4 5\nCELL_TYPES 1\n22\n";
    let mesh = parse(MeshFormat::Vtk, vtu.as_bytes()).expect("a curved triangle");
    assert!(mesh.size() > 0.5 && mesh.notes()[0].starts_with("1 of 1 cell listed"));
}

/// Cells that cross without a vertex or centre inside each other.
#[test]
fn strips_that_cross_overlap() {
    type Map<'a> = &'a dyn Fn([f64; 3]) -> [f64; 3];
    for cell in Cell::ALL.into_iter().filter(|cell| cell.dim() > 1) {
        let flat = cell.dim() == 2;
        let height = |z: f64| if flat { 0.0 } else { z };
        let along = |[x, y, z]: [f64; 3]| [x, 2.2 + 0.35 * y, height(z)];
        let across = |[x, y, z]: [f64; 3]| [1.1 + 0.25 * x, y, height(z)];
        let above = |[x, y, z]: [f64; 3]| [1.1 + 0.25 * x, y, height(z) + 1.0];
        let layers = usize::from(!flat);
        let (first, second) = ([5, 1, layers], [1, 5, layers]);
        let mesh = |second_map: Map<'_>, turn: f64| {
            let turned = |map: Map<'_>, x| {
                let [x, y, z] = map(x);
                let (sin, cos) = f64::sin_cos(turn);
                let (y, z) = if flat { (y, z) } else { (cos * y - sin * z, sin * y + cos * z) };
                [cos * x - sin * y, sin * x + cos * y, z]
            };
            let (one, other) = (|x| turned(&along, x), |x| turned(second_map, x));
            let parts = grids(cell, &[(first, &one), (second, &other)]);
            Mesh::new(cell, 1, parts, CellOrdering::Sorted)
        };
        for turn in [0.0, 0.3] {
            let said = mesh(&across, turn).expect_err("an overlap").to_string();
            assert!(said.contains("overlap") && said.contains("inside of both"), "{cell}: {said}");
            // Stacked cells only touch.
            if !flat {
                assert!(mesh(&above, turn).is_ok(), "{cell}: {:?}", mesh(&above, turn).err());
            }
        }
    }
}

/// The note suggests to join the sides.
#[test]
fn the_note_on_paired_sides_ends_where_they_are_joined() {
    let text = "$MeshFormat\n2.2 0 8\n$EndMeshFormat\n$Nodes\n4\n1 0 0 0\n2 1 0 0\n3 1 1 0\n4 0 1 0\n$EndNodes\n\
        $Elements\n1\n1 3 2 7 1 1 2 3 4\n$EndElements\n$Periodic\n1\n1 2 4\n2\n2 1\n3 4\n$EndPeriodic\n";
    for pair in [["curve 2", "curve 4"], ["curve 4", "curve 2"]] {
        let mut mesh = parse(MeshFormat::Gmsh, text.as_bytes()).expect("a mesh");
        assert_eq!(mesh.notes().len(), 1);
        mesh.make_periodic(&[pair]).expect("images");
        assert!(mesh.notes().is_empty(), "{pair:?}: {:?}", mesh.notes());
    }
}

/// Sides without physical groups that are paired by `$Periodic` get tags, which `periodic` can name.
#[test]
fn sides_that_gmsh_pairs_have_tags() {
    let two = "$MeshFormat\n2.2 0 8\n$EndMeshFormat\n$Nodes\n4\n1 0 0 0\n2 1 0 0\n3 1 1 0\n4 0 1 0\n$EndNodes\n\
        $Elements\n1\n1 3 2 7 1 1 2 3 4\n$EndElements\n$Periodic\n1\n1 2 4\nAFFINE2\n2 1\n3 4\n$EndPeriodic\n";
    let affine = "Affine 1 0 0 1 0 1 0 0 0 0 1 0 0 0 0 1\n";
    let four = "$MeshFormat\n4.1 0 8\n$EndMeshFormat\n$Nodes\n1 4 1 4\n2 1 0 4\n1\n2\n3\n4\n0 0 0\n1 0 0\n1 1 0\n0 1 0\n\
        $EndNodes\n$Elements\n1 1 1 1\n2 1 3 1\n1 1 2 3 4\n$EndElements\n$Periodic\n1\n1 2 4\n0\n2\n2 1\n3 4\n$EndPeriodic\n";
    let texts = [two.replace("AFFINE", ""), two.replace("AFFINE", affine), four.to_owned()];
    for text in &texts {
        let mesh = parse(MeshFormat::Gmsh, text.as_bytes()).expect("a mesh");
        for tag in ["curve 2", "curve 4"] {
            assert_eq!(mesh.facets_tagged(tag).map(<[_]>::len), Ok(1), "{text}");
        }
        let note = "`periodic \"curve 2\" = \"curve 4\";` joins them";
        assert!(mesh.notes().join("; ").contains(note), "{:?}", mesh.notes());
    }
    // Other content of the section does not affect the mesh.
    let odd = texts[0].replace("1\n1 2 4", "some\n1 2 4");
    let mesh = parse(MeshFormat::Gmsh, odd.as_bytes()).expect("a mesh");
    assert!(mesh.facet_tags().is_empty() && mesh.notes().is_empty());
}
