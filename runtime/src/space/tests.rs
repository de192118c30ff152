//! Numbering on meshes whose cells have entities in every orientation.

use super::Space;
use crate::algebra::vector::{Precision, Vector};
use crate::mesh::partition::Partition;
use crate::mesh::{CellOrdering, Mesh, MeshData, gmsh};
use crate::operator::batch::{Batches, CONSTRAINED};
use crate::space::constraint::Constraints;
use fem_dsl::testing::Random;
use kernels_gen::element::{Cell, Lagrange, Tabulation, tabulate};
use std::collections::BTreeSet;
use std::path::Path;

mod adapted;
mod frames;
mod sequence;
mod vectors;

/// Returns all rotations of a cell's vertices.
fn rotations(cell: Cell) -> Vec<Vec<usize>> {
    let n = cell.vertex_count();
    let determinant = |order: &[usize]| {
        let at = |i: usize| cell.vertex(order[i]);
        let tip = |axis: usize| if cell.is_tensor() { 1 << axis } else { axis + 1 };
        let edge = |axis: usize| -> [f64; 3] {
            let (p, o) = (at(tip(axis)), at(0));
            std::array::from_fn(|c| p[c] - o[c])
        };
        let (a, b) = (edge(0), edge(1));
        if cell.dim() == 2 {
            return a[0] * b[1] - a[1] * b[0];
        }
        let c = edge(2);
        a[0] * (b[1] * c[2] - b[2] * c[1]) - a[1] * (b[0] * c[2] - b[2] * c[0])
            + a[2] * (b[0] * c[1] - b[1] * c[0])
    };
    let mut orders = Vec::new();
    if cell.is_tensor() {
        // Images of the axes (with signs) and of the origin.
        let dim = cell.dim();
        for origin in 0..n {
            for code in 0..dim.pow(dim as u32) {
                let axes: Vec<usize> = (0..dim).map(|a| code / dim.pow(a as u32) % dim).collect();
                if axes.iter().collect::<BTreeSet<_>>().len() < dim {
                    continue;
                }
                let image = |v: usize| {
                    (0..dim).filter(|a| v >> a & 1 == 1).fold(origin, |w, a| w ^ (1 << axes[a]))
                };
                orders.push((0..n).map(image).collect::<Vec<_>>());
            }
        }
    } else {
        for code in 0..n.pow(n as u32) {
            let order: Vec<usize> = (0..n).map(|i| code / n.pow(i as u32) % n).collect();
            if order.iter().collect::<BTreeSet<_>>().len() == n {
                orders.push(order);
            }
        }
    }
    orders.retain(|order| determinant(order) > 0.0);
    orders
}

/// Returns a distorted grid of n^dim squares or cubes (or their simplices), each cell rotated at random.
fn turned(cell: Cell, n: usize, seed: u64) -> Mesh {
    let dim = cell.dim();
    let mut random = Random(seed);
    let mut parts = MeshData::default();
    let side = n + 1;
    let inner = |i: usize| i > 0 && i < n;
    for i in 0..side.pow(dim as u32) {
        let lattice = [i % side, i / side % side, i / (side * side)];
        let mut point = lattice.map(|a| a as f64 / n as f64);
        for axis in 0..dim {
            if inner(lattice[axis]) {
                point[axis] += 0.2 * (random.unit() - 0.5) / n as f64;
            }
        }
        parts.points.push(point);
    }
    let turns = rotations(cell);
    let add = |parts: &mut MeshData, vertices: &[u32], random: &mut Random| {
        let turn = &turns[random.below(turns.len())];
        parts.nodes.extend(turn.iter().map(|&v| vertices[v]));
    };
    for i in 0..n.pow(dim as u32) {
        let low = [i % n, i / n % n, i / (n * n)];
        let corner = |v: usize| {
            let at = |axis: usize| low[axis] + (v >> axis & 1);
            (at(0) + side * (at(1) + side * if dim == 3 { at(2) } else { 0 })) as u32
        };
        let pick = |list: &[usize]| list.iter().map(|&v| corner(v)).collect::<Vec<_>>();
        match cell {
            Cell::Triangle => {
                add(&mut parts, &pick(&[0, 1, 3]), &mut random);
                add(&mut parts, &pick(&[0, 3, 2]), &mut random);
            }
            Cell::Tetrahedron => {
                // Kuhn's six tetrahedra around the diagonal 0-7.
                for path in [[1, 3], [3, 2], [2, 6], [6, 4], [4, 5], [5, 1]] {
                    add(&mut parts, &pick(&[0, path[0], path[1], 7]), &mut random);
                }
            }
            _ => add(&mut parts, &pick(&(0..1 << dim).collect::<Vec<_>>()), &mut random),
        }
    }
    Mesh::new(cell, 1, parts, CellOrdering::Original).expect("a valid mesh")
}

/// Returns the physical points of `table`, a tabulation of the geometry, on a cell.
fn cell_points(mesh: &Mesh, cell: usize, table: &Tabulation) -> Vec<[f64; 3]> {
    (0..table.points)
        .map(|q| {
            let mut x = [0.0; 3];
            for (i, &node) in mesh.cell_nodes(cell).iter().enumerate() {
                for (x, p) in x.iter_mut().zip(mesh.points()[node as usize]) {
                    *x += table.value(q, i) * p;
                }
            }
            x
        })
        .collect()
}

/// Returns a point rounded far above the rounding-error level and far below the distance of nodes.
fn key(x: &[f64; 3]) -> [i64; 3] {
    x.map(|x| (x * 1e9).round() as i64)
}

const CASES: [(Cell, usize, usize); 4] = [
    (Cell::Triangle, 4, 6),
    (Cell::Quadrilateral, 5, 6),
    (Cell::Tetrahedron, 3, 5),
    (Cell::Hexahedron, 3, 5),
];

fn cases(mut check: impl FnMut(&Mesh, &Partition, Lagrange)) {
    for (cell, n, degrees) in CASES {
        for seed in 0..3 {
            let mesh = turned(cell, n, seed);
            let partition = Partition::with_chunk_cells(&mesh, 5);
            for degree in 1..=degrees {
                let element = Lagrange::continuous(cell, degree).expect("an element");
                check(&mesh, &partition, element);
            }
        }
    }
}

#[test]
fn the_meshes_of_these_tests_show_every_orientation() {
    for (cell, n, _) in CASES {
        let mesh = turned(cell, n, 0);
        // Simplices are always numbered such that their entities agree.
        assert_eq!(mesh.topology().is_oriented(), !cell.is_tensor(), "{cell}");
        if cell == Cell::Hexahedron {
            let faces = cell.entities(2).len();
            let seen: BTreeSet<u8> = (0..mesh.n_cells())
                .flat_map(|c| (0..faces).map(move |f| (c, f)))
                .map(|(c, f)| mesh.topology().face_orientation(c, f))
                .collect();
            assert_eq!(seen.len(), 8, "{cell}: {seen:?}");
        }
    }
}

/// Checks that all cells agree on the positions of nodes, and that no two nodes coincide.
fn assert_conforming(mesh: &Mesh, partition: &Partition, space: &Space) {
    let element = space.element();
    let points = space.points(mesh, partition).expect("points");
    let geometry = Lagrange::continuous(mesh.cell(), mesh.order()).expect("a geometry");
    let table = tabulate(geometry, &space.nodal().points());
    for cell in 0..mesh.n_cells() {
        for (x, &node) in cell_points(mesh, cell, &table).iter().zip(space.cell_nodes(cell)) {
            let own = points[node as usize];
            for axis in 0..3 {
                assert!((x[axis] - own[axis]).abs() < 1e-13, "{element} cell {cell}");
            }
        }
    }
    let places: BTreeSet<[i64; 3]> = points.iter().map(key).collect();
    assert_eq!(places.len(), space.n_nodes(), "{element}");
    let some: Vec<u32> = (0..space.n_nodes() as u32).filter(|node| node % 7 < 2).collect();
    let own = space.points_at(mesh, partition, &some).expect("points");
    assert_eq!(own, some.iter().map(|&node| points[node as usize]).collect::<Vec<_>>());
}

#[test]
fn a_node_is_one_place_and_a_place_one_node() {
    cases(|mesh, partition, element| {
        let space = Space::new(mesh, partition, element, 1).expect("a space");
        assert_conforming(mesh, partition, &space);
    });
}

#[test]
fn an_unstructured_ball_conforms() {
    let package = Path::new(env!("CARGO_MANIFEST_DIR"));
    let folder = package.ancestors().map(|above| above.join("meshes")).find(|at| at.is_dir());
    let path = folder.expect("the meshes").join("ball_hex_unstructured.msh");
    let mesh = gmsh::read(&path).expect("a mesh");
    for degree in 1..=3 {
        let element = Lagrange::continuous(Cell::Hexahedron, degree).expect("an element");
        let partition = Partition::new(&mesh, (degree * degree * degree) as f64);
        let space = Space::new(&mesh, &partition, element, 1).expect("a space");
        assert_conforming(&mesh, &partition, &space);
        assert_eq!(space.runs().is_some(), mesh.topology().is_oriented());
    }
}

#[test]
fn counts_follow_the_entities() {
    cases(|mesh, partition, element| {
        let space = Space::new(mesh, partition, element, 3).expect("a space");
        let topology = mesh.topology();
        let p = element.degree();
        let expected = match mesh.cell() {
            Cell::Quadrilateral => (5 * p + 1).pow(2),
            Cell::Triangle => (4 * p + 1).pow(2),
            _ => (3 * p + 1).pow(3),
        };
        assert_eq!(space.n_nodes(), expected, "{element}: the grid's lattice");
        assert_eq!(space.n_dofs(), 3 * expected);
        assert_eq!(Space::count(mesh, element), expected);
        let euler = mesh.n_vertices() as i64 - topology.edges().len() as i64;
        let rest = if mesh.dim() == 3 {
            topology.faces().len() as i64 - mesh.n_cells() as i64
        } else {
            mesh.n_cells() as i64
        };
        assert_eq!(euler + rest, 1, "a ball's Euler characteristic");
    });
}

#[test]
fn chunks_own_what_they_touch_first_and_colours_are_disjoint() {
    cases(|mesh, partition, element| {
        let space = Space::new(mesh, partition, element, 2).expect("a space");
        let n_chunks = partition.chunks().len();
        assert!(n_chunks > 4);
        let mut next = 0;
        for chunk in 0..n_chunks {
            assert_eq!(space.new_dofs(chunk).start, next);
            next = space.new_dofs(chunk).end;
        }
        assert_eq!(next, space.n_dofs());
        let touched: Vec<BTreeSet<u32>> = partition
            .chunks()
            .iter()
            .map(|c| c.cells.clone().flat_map(|i| space.cell_nodes(i).to_vec()).collect())
            .collect();
        for chunk in 0..n_chunks {
            let own = space.new_nodes(chunk);
            assert!(own.clone().all(|node| touched[chunk].contains(&(node as u32))));
            assert!(touched[chunk].iter().all(|&node| (node as usize) < own.end));
            for other in 0..chunk {
                let share = !touched[chunk].is_disjoint(&touched[other]);
                let colours = [chunk, other].map(|c| partition.chunks()[c].colour);
                assert!(!share || colours[0] != colours[1]);
                assert_eq!(share, partition.before(chunk).contains(&(other as u32)));
                assert_eq!(share, partition.after(other).contains(&(chunk as u32)));
            }
        }
        for (colour, chunks) in partition.colours().iter().enumerate() {
            assert!(partition.chunks()[chunks.clone()].iter().all(|c| c.colour == colour));
        }
        let mut cells: Vec<usize> =
            partition.chunks().iter().flat_map(|chunk| chunk.cells.clone()).collect();
        cells.sort_unstable();
        assert!(cells.iter().copied().eq(0..mesh.n_cells()));
    });
}

/// Returns a grid with the natural numbering: all frames agree.
fn straight(cell: Cell, n: usize) -> Mesh {
    let dim = cell.dim();
    let side = n + 1;
    let mut parts = MeshData::default();
    for i in 0..side.pow(dim as u32) {
        let lattice = [i % side, i / side % side, i / (side * side)];
        parts.points.push(lattice.map(|a| a as f64));
    }
    for i in 0..n.pow(dim as u32) {
        let low = [i % n, i / n % n, i / (n * n)];
        for v in 0..1 << dim {
            let at = |axis: usize| low[axis] + (v >> axis & 1);
            parts.nodes.push((at(0) + side * (at(1) + side * at(2))) as u32);
        }
    }
    Mesh::new(cell, 1, parts, CellOrdering::Original).expect("a valid mesh")
}

#[test]
fn runs_hold_the_nodes_of_each_entity() {
    for cell in [Cell::Quadrilateral, Cell::Hexahedron] {
        let mesh = straight(cell, 3);
        let partition = Partition::with_chunk_cells(&mesh, 4);
        for degree in 1..=5 {
            let element = Lagrange::continuous(cell, degree).expect("an element");
            let space = Space::new(&mesh, &partition, element, 3).expect("a space");
            let locals = space.runs().expect("an oriented mesh has runs");
            let run = |cell: usize, entity: usize| {
                locals[entity].map_or(0, |local| space.cell_nodes(cell)[local as usize])
            };
            let entities = 3usize.pow(cell.dim() as u32);
            let (n, inner) = (degree + 1, degree.saturating_sub(1));
            for c in 0..mesh.n_cells() {
                for (local, &node) in space.cell_nodes(c).iter().enumerate() {
                    let lattice = [local % n, local / n % n, local / (n * n)];
                    let (mut code, mut offset, mut stride, mut scale) = (0, 0, 1, 1);
                    for &a in &lattice[..cell.dim()] {
                        let layer = if a == 0 {
                            0
                        } else if a == degree {
                            2
                        } else {
                            1
                        };
                        code += layer * scale;
                        scale *= 3;
                        if layer == 1 {
                            offset += (a - 1) * stride;
                            stride *= inner;
                        }
                    }
                    assert_eq!(node, run(c, code) + offset as u32);
                }
            }
            let batches = Batches::new(&partition, 4, |_| true);
            let table = batches.runs(&space).expect("runs");
            let last = batches.len() - 1;
            let cell = batches.cells()[last * 4 + 2] as usize;
            assert_eq!(table[(last * entities + 2) * 4 + 2], 3 * run(cell, 2));
        }
        let turned = turned(cell, 3, 1);
        let partition = Partition::with_chunk_cells(&turned, 4);
        let element = Lagrange::continuous(cell, 3).expect("an element");
        assert!(Space::new(&turned, &partition, element, 1).expect("a space").runs().is_none());
    }
}

#[test]
fn discontinuous_cells_share_nothing() {
    for (cell, n, _) in CASES {
        let mesh = turned(cell, n, 2);
        let partition = Partition::with_chunk_cells(&mesh, 8);
        for degree in 0..3 {
            let element = Lagrange::discontinuous(cell, degree).expect("an element");
            let space = Space::new(&mesh, &partition, element, 1).expect("a space");
            assert_eq!(space.n_nodes(), mesh.n_cells() * element.count());
            let all: BTreeSet<u32> = space.nodes().iter().copied().collect();
            assert_eq!(all.len(), space.n_nodes());
            assert!(space.nodes_on(&mesh.boundary()).is_empty());
        }
    }
}

#[test]
fn boundary_nodes_are_those_on_the_boundary() {
    cases(|mesh, partition, element| {
        let space = Space::new(mesh, partition, element, 1).expect("a space");
        let points = space.points(mesh, partition).expect("points");
        let dim = mesh.dim();
        let outside =
            |x: &[f64; 3]| x[..dim].iter().any(|&x| x.abs() < 1e-12 || (x - 1.0).abs() < 1e-12);
        let expected: Vec<u32> =
            (0..space.n_nodes() as u32).filter(|&i| outside(&points[i as usize])).collect();
        assert_eq!(space.nodes_on(&mesh.boundary()), expected, "{element}");
    });
}

#[test]
fn later_conditions_hold_and_components_are_apart() {
    let mesh = turned(Cell::Quadrilateral, 4, 3);
    let partition = Partition::with_chunk_cells(&mesh, 5);
    let element = Lagrange::continuous(Cell::Quadrilateral, 3).expect("an element");
    let space = Space::new(&mesh, &partition, element, 2).expect("a space");
    let points = space.points(&mesh, &partition).expect("points");
    let boundary = space.nodes_on(&mesh.boundary());
    let left: Vec<u32> =
        boundary.iter().copied().filter(|&i| points[i as usize][0] < 1e-12).collect();
    let mut constraints = Constraints::none(&space);
    constraints.fix(&boundary, Some(1), &points, |x, out| out[0] = x[0] + 10.0).expect("finite");
    constraints
        .fix(&left, None, &points, |x, out| out.copy_from_slice(&[x[1], -1.0]))
        .expect("finite");
    assert_eq!(constraints.len(), boundary.len() + left.len());
    assert_eq!(constraints.n_free(), space.n_dofs() - constraints.len());

    let mut u = Vector::zeros(space.n_dofs(), Precision::F64);
    constraints.iter().for_each(|(dof, value)| u.set_entry(dof, value));
    for &node in &boundary {
        let (i, x) = (node as usize, points[node as usize]);
        let on_left = left.contains(&node);
        assert_eq!(constraints.is_constrained(2 * i), on_left);
        assert_eq!(u.get(2 * i + 1), if on_left { -1.0 } else { x[0] + 10.0 });
        if on_left {
            assert_eq!(u.get(2 * i), x[1]);
        }
    }
    let error = constraints.fix(&left, Some(0), &points, |_, out| out[0] = f64::NAN);
    let message = error.expect_err("a condition of NaN").to_string();
    assert!(message.contains("NaN in component 0 at (0, "), "{message}");
}

#[test]
fn batches_hold_every_cell_once_in_execution_order() {
    let mesh = turned(Cell::Hexahedron, 4, 4);
    let partition = Partition::with_chunk_cells(&mesh, 16);
    let element = Lagrange::continuous(Cell::Hexahedron, 2).expect("an element");
    let space = Space::new(&mesh, &partition, element, 3).expect("a space");
    let points = space.points(&mesh, &partition).expect("points");
    let mut constraints = Constraints::none(&space);
    let top: Vec<u32> = (0..space.n_nodes() as u32)
        .filter(|&node| points[node as usize][2] > 1.0 - 1e-12)
        .collect();
    constraints.fix(&top, Some(2), &points, |_, out| out[0] = 1.0).expect("finite");
    for lanes in [1, 2, 4, 8, 16] {
        let touched = |cell: usize| {
            let mut nodes = space.cell_nodes(cell).iter();
            nodes.any(|&node| constraints.is_constrained(node as usize * 3 + 2))
        };
        let mut seen = BTreeSet::new();
        for constrained in [false, true] {
            let batches = Batches::new(&partition, lanes, |cell| touched(cell) == constrained);
            assert_eq!(batches.lanes(), lanes);
            for (chunk, cells) in partition.chunks().iter().enumerate() {
                for batch in batches.of_chunk(chunk) {
                    let active = batches.active()[batch] as usize;
                    let lane_cells = &batches.cells()[batch * lanes..(batch + 1) * lanes];
                    for (lane, &cell) in lane_cells.iter().enumerate() {
                        assert!(cells.cells.contains(&(cell as usize)));
                        assert_eq!(touched(cell as usize), constrained);
                        if lane < active {
                            assert!(seen.insert(cell));
                        } else {
                            assert_eq!(cell, lane_cells[active - 1]);
                        }
                    }
                }
            }
            let nodes = batches.nodes(&space);
            let dofs = batches.dofs(&space, &constraints);
            let n = space.nodes_per_cell();
            for batch in 0..batches.len() {
                for lane in 0..lanes {
                    let cell = batches.cells()[batch * lanes + lane] as usize;
                    for (i, &node) in space.cell_nodes(cell).iter().enumerate() {
                        assert_eq!(nodes[(batch * n + i) * lanes + lane], node);
                        for c in 0..3 {
                            let dof = node as usize * 3 + c;
                            let entry = dofs[(batch * n * 3 + i * 3 + c) * lanes + lane];
                            let given = constraints.is_constrained(dof);
                            assert_eq!(entry, if given { CONSTRAINED } else { dof as u32 });
                        }
                    }
                }
            }
        }
        assert_eq!(seen.len(), mesh.n_cells());
        let cells = 0..mesh.n_cells();
        assert_eq!(cells.filter(|&cell| touched(cell)).count(), 16);
    }
}

#[test]
fn nodes_of_curved_cells_lie_on_the_curve() {
    // One biquadratic cell whose map is polar: radius 1 + ξ, angle η.
    let element = Lagrange::continuous(Cell::Quadrilateral, 2).expect("an element");
    let points = element.points();
    let bend = |x: &[f64; 3]| [x[0] + 0.2 * x[1] * x[1], x[1] + 0.1 * x[0] * x[1], 0.0];
    let parts = MeshData {
        points: points.iter().map(bend).collect(),
        nodes: (0..9).collect(),
        ..MeshData::default()
    };
    let mesh =
        Mesh::new(Cell::Quadrilateral, 2, parts, CellOrdering::Original).expect("a valid mesh");
    let partition = Partition::new(&mesh, 16.0);
    let fine = Lagrange::continuous(Cell::Quadrilateral, 5).expect("an element");
    let space = Space::new(&mesh, &partition, fine, 2).expect("a space");
    let places = space.points(&mesh, &partition).expect("points");
    for (x, &node) in fine.points().iter().zip(space.cell_nodes(0)) {
        let (expected, found) = (bend(x), places[node as usize]);
        assert!((0..3).all(|axis| (expected[axis] - found[axis]).abs() < 1e-14));
    }
    let values = space.interpolate(&places, |x, out| out.copy_from_slice(&[x[0], 2.0 * x[1]]));
    for (node, x) in places.iter().enumerate() {
        assert_eq!(values[2 * node..2 * node + 2], [x[0], 2.0 * x[1]]);
    }
}

#[test]
fn an_element_of_another_cell_is_refused() {
    let mesh = straight(Cell::Quadrilateral, 2);
    let partition = Partition::new(&mesh, 4.0);
    let element = Lagrange::continuous(Cell::Triangle, 1).expect("an element");
    let error = Space::new(&mesh, &partition, element, 1).expect_err("cells differ").to_string();
    assert!(error.contains("tri") && error.contains("quad"), "{error}");
}

#[test]
fn partitions_follow_the_mesh_alone() {
    let mesh = straight(Cell::Hexahedron, 16);
    let run = |threads: usize| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().expect("a pool");
        pool.install(|| {
            let partition = Partition::new(&mesh, 8.0);
            let element = Lagrange::continuous(Cell::Hexahedron, 2).expect("an element");
            let space = Space::new(&mesh, &partition, element, 1).expect("a space");
            (partition, space)
        })
    };
    let (partition, space) = run(1);
    assert_eq!((partition.clone(), space), run(4));
    assert!(partition.chunks().len() >= 16);
    assert!(
        partition
            .chunks()
            .iter()
            .rev()
            .skip(1)
            .all(|c| c.cells.len() % 16 == 0 || c.cells.end == 4096)
    );
}
