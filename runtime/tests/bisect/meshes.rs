//! Test meshes for bisection.

use fem_dsl::problem::Argument;
use kernels_gen::element::Lagrange;
use runtime::mesh::generate::generate;
use runtime::mesh::{Cell, CellOrdering, Mesh, MeshData, gmsh};
use std::collections::BTreeMap;
use std::path::Path;

/// The random number generator SplitMix64.
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn below(&mut self, most: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ z >> 31) % most as u64) as usize
    }

    /// Returns a multiple of 2⁻²⁰ between −1 and 1.
    pub(crate) fn number(&mut self) -> f64 {
        self.below(1 << 21) as f64 / f64::from(1 << 20) - 1.0
    }

    pub(crate) fn shuffled(&mut self, count: usize) -> Vec<usize> {
        let mut all: Vec<usize> = (0..count).collect();
        (1..count).for_each(|last| all.swap(last, self.below(last + 1)));
        all
    }
}

/// Tags the whole boundary, some interior facets and some cells.
pub(crate) fn tagged(mesh: Mesh, random: &mut Random) -> Mesh {
    let mut mesh = mesh;
    mesh.tag_boundary("outside", |_| true);
    let middle = random.number() / 4.0;
    mesh.tag_cells("some", |at| at[0] < middle);
    mesh
}

/// Generates a mesh from arguments in the syntax of the language.
fn generated(name: &str, arguments: &str) -> Mesh {
    let one = |item: &str| {
        let (name, value) = item.split_once(": ").expect("an argument");
        let word = || Argument::Word(value.to_owned());
        (name.to_owned(), value.parse().map_or_else(|_| word(), Argument::Number))
    };
    let arguments: BTreeMap<String, Argument> = arguments.split(", ").map(one).collect();
    generate(name, &arguments).unwrap_or_else(|error| panic!("{name}: {error}"))
}

/// Boxes with tags.
pub(crate) fn boxes(cell: Cell, cells: usize) -> Mesh {
    generated("box", &format!("dim: {}, cell: {}, cells: {cells}", cell.dim(), cell.name()))
}

/// Returns the same cells with perturbed and renumbered vertices, random rotations, and tagged interior facets.
pub(crate) fn turned(mesh: &Mesh, by: f64, random: &mut Random) -> Mesh {
    let (cell, n) = (mesh.cell(), mesh.n_vertices());
    let (numbers, mut points) = (random.shuffled(n), vec![[0.0; 3]; n]);
    for (old, at) in mesh.points().iter().enumerate() {
        let moved = |c: usize| if c < cell.dim() { at[c] + by * random.number() } else { 0.0 };
        points[numbers[old]] = [0, 1, 2].map(moved);
    }
    let mut nodes = Vec::new();
    for old in random.shuffled(mesh.n_cells()) {
        let vertices: Vec<u32> =
            mesh.vertices(old).iter().map(|&vertex| numbers[vertex as usize] as u32).collect();
        let mut order = random.shuffled(vertices.len());
        if is_negative(&points, order.iter().map(|&vertex| vertices[vertex])) {
            order.swap(0, 1);
        }
        nodes.extend(order.into_iter().map(|vertex| vertices[vertex]));
    }
    let each = cell.vertex_count();
    let mut inside = Vec::new();
    for own in nodes.chunks_exact(each).filter(|_| random.below(4) == 0) {
        let mut facet = [u32::MAX; 4];
        facet[..cell.dim()].copy_from_slice(&own[..cell.dim()]);
        inside.push(facet);
    }
    let facets = BTreeMap::from([("inside".to_owned(), inside)]);
    let parts = MeshData { points, nodes, facets, ..MeshData::default() };
    Mesh::new(cell, 1, parts, CellOrdering::Original).expect("a mesh")
}

fn is_negative(points: &[[f64; 3]], vertices: impl Iterator<Item = u32>) -> bool {
    let at: Vec<[f64; 3]> = vertices.map(|vertex| points[vertex as usize]).collect();
    let side = |to: usize| [0, 1, 2].map(|c| at[to][c] - at[0][c]);
    let (a, b) = (side(1), side(2));
    let c = if at.len() == 4 { side(3) } else { [0.0, 0.0, 1.0] };
    let cross = |i: usize| a[(i + 1) % 3] * b[(i + 2) % 3] - a[(i + 2) % 3] * b[(i + 1) % 3];
    (0..3).map(|i| cross(i) * c[i]).sum::<f64>() < 0.0
}

/// Balls and shells of several orders.
pub(crate) fn round() -> Vec<(String, Mesh)> {
    let mut all = Vec::new();
    for (name, dim, cell, orders) in [
        ("ball", 2, "tri", [1, 2, 4]),
        ("shell", 2, "tri", [1, 3, 4]),
        ("ball", 3, "tet", [1, 2, 3]),
        ("shell", 3, "tet", [1, 2, 3]),
    ] {
        for order in orders {
            let arguments = format!("dim: {dim}, cell: {cell}, refine: 1, order: {order}");
            let arguments = match name {
                "ball" => arguments,
                _ => format!("{arguments}, inner: 0.4, outer: 1.5"),
            };
            all.push((format!("{name} {cell} {order}"), generated(name, &arguments)));
        }
    }
    all
}

/// Returns a box with curved cells, all different, including its interior.
pub(crate) fn curved(cell: Cell, order: usize) -> Mesh {
    let straight = boxes(cell, 4 - cell.dim());
    let element = Lagrange::continuous(cell, order).expect("an element");
    let (mut known, mut points, mut nodes) = (BTreeMap::new(), Vec::new(), Vec::new());
    for number in 0..straight.n_cells() {
        let mut vertices = straight.vertices(number).to_vec();
        if is_negative(straight.points(), vertices.iter().copied()) {
            vertices.swap(0, 1);
        }
        let corner = |v: usize| straight.points()[vertices[v] as usize];
        for at in element.points() {
            let along = |c: usize| {
                let side = |axis: usize| at[axis] * (corner(axis + 1)[c] - corner(0)[c]);
                corner(0)[c] + (0..cell.dim()).map(side).sum::<f64>()
            };
            let [x, y, z] = [0, 1, 2].map(along);
            // Nodes of neighbours differ by rounding.
            let key = [x, y, z].map(|x| (x * f64::from(1 << 24)).round() as i64);
            let bent =
                [x + 0.05 * (3.0 * y + z).sin(), y + 0.04 * (2.0 * x).cos(), z + 0.03 * x * y];
            let bent = if cell.dim() == 2 { [bent[0], bent[1], 0.0] } else { bent };
            nodes.push(*known.entry(key).or_insert(points.len() as u32));
            points.resize(known.len(), bent);
        }
    }
    let parts = MeshData { points, nodes, ..MeshData::default() };
    Mesh::new(cell, order, parts, CellOrdering::Sorted).expect("a mesh")
}

/// Returns the triangular and tetrahedral meshes among the mesh files.
fn files() -> Vec<(String, Mesh)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../meshes");
    let names = [
        "plate_hole_tri.msh",
        "capacitor_tri.msh",
        "bracket_tet.msh",
        "bracket_tet_v2_binary.msh",
        "bracket_tet10.msh",
    ];
    let read = |name: &str| {
        let bytes = std::fs::read(folder.join(name)).expect("a file");
        (name.to_owned(), gmsh::parse(&bytes).unwrap_or_else(|error| panic!("{name}: {error}")))
    };
    names.into_iter().map(read).collect()
}

/// Meshes whose size is unchanged by bisection, with their boundary tagged `outside`.
pub(crate) fn all(random: &mut Random) -> Vec<(String, Mesh)> {
    let mut all = files();
    for (cell, counts) in [(Cell::Triangle, [1, 2, 5]), (Cell::Tetrahedron, [1, 2, 3])] {
        for count in counts {
            all.push((format!("box of {count} {cell}"), boxes(cell, count)));
        }
    }
    for number in 0..12 {
        let (cell, count) = match number % 2 {
            0 => (Cell::Triangle, 6),
            _ => (Cell::Tetrahedron, 3),
        };
        let by = [0.0, 0.02, 0.04][number / 2 % 3];
        all.push((format!("turned {number} {cell}"), turned(&boxes(cell, count), by, random)));
    }
    all.into_iter().map(|(name, mesh)| (name, tagged(mesh, random))).collect()
}
