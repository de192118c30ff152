//! Fields of H(curl) and H(div) on simplices whose cells see common entities in different frames: periodic boxes whose
//! vertices are numbered at random.

use super::vectors::{facet_points, random, trace};
use super::{Random, key};
use crate::mesh::generate::generate;
use crate::mesh::partition::Partition;
use crate::mesh::{CellOrdering, Mesh, MeshData};
use crate::space::evaluate::{Evaluator, MapTable, dot};
use crate::space::{Space, SpaceError};
use fem_dsl::problem::Argument;
use kernels_gen::element::{Cell, Whitney, WhitneyFamily};
use std::collections::BTreeMap;

/// Returns a box of one or two cells along each side that is periodic in two directions.
fn periodic(cell: Cell, cells: usize, seed: u64) -> Mesh {
    let arguments = BTreeMap::from([
        ("dim".to_owned(), Argument::Number(cell.dim() as f64)),
        ("cells".to_owned(), Argument::Number(cells as f64)),
        ("cell".to_owned(), Argument::Word(cell.name().to_owned())),
    ]);
    let plain = generate("box", &arguments).expect("a box");
    let mut random = Random(seed);
    let mut order: Vec<usize> = (0..plain.n_vertices()).collect();
    for i in (1..order.len()).rev() {
        order.swap(i, random.below(i + 1));
    }
    let mut numbers = vec![0; order.len()];
    order.iter().enumerate().for_each(|(new, &old)| numbers[old] = new as u32);
    let vertices = |of_cell: usize, facet: u8| {
        let (own, mut all) = (plain.vertices(of_cell), [u32::MAX; 4]);
        for (entry, &v) in all.iter_mut().zip(cell.facets()[usize::from(facet)]) {
            *entry = numbers[own[v] as usize];
        }
        all
    };
    let tags = plain.facet_tags().iter().map(|(tag, facets)| {
        let facets = facets.iter().map(|facet| vertices(facet.cell as usize, facet.local));
        (tag.clone(), facets.collect())
    });
    let facets: BTreeMap<String, Vec<[u32; 4]>> = tags.collect();
    let nodes = (0..plain.n_cells()).flat_map(|own| plain.vertices(own).to_vec());
    let nodes = nodes.map(|vertex| numbers[vertex as usize]).collect();
    let points = order.into_iter().map(|old| plain.points()[old]).collect();
    let data = MeshData { points, nodes, facets, ..MeshData::default() };
    let mut mesh = Mesh::new(cell, 1, data, CellOrdering::Original).expect("a mesh");
    mesh.make_periodic(&[["x0", "x1"], ["y0", "y1"]]).expect("sides of the box");
    mesh
}

/// Checks the traces of a random function at all facets between two cells. Returns the number of points.
fn compare_traces(mesh: &Mesh, space: &Space, family: WhitneyFamily) -> usize {
    let (cell, dim) = (mesh.cell(), mesh.dim());
    let u = random(space.n_dofs(), 5);
    let mut known: BTreeMap<[i64; 3], ([f64; 3], [f64; 3])> = BTreeMap::new();
    let mut pairs = 0;
    for facet in 0..cell.facets().len() {
        let points = facet_points(cell, facet);
        let evaluator = Evaluator::new(mesh, space, &points).expect("tables");
        let map = MapTable::new(mesh, &points).expect("a map");
        for own in 0..mesh.n_cells() {
            for (q, value) in evaluator.values(own, &u).chunks_exact(dim).enumerate() {
                let at = map.at(mesh, own, q);
                let n = at.normal(cell, facet);
                // Of points on periodic sides the one in the first period.
                let [x, y, z] = key(&at.point);
                let place = [x % 1_000_000_000, y % 1_000_000_000, z];
                let Some((m, other)) = known.get(&place) else {
                    known.insert(place, (n, trace(family, value, &n)));
                    continue;
                };
                pairs += 1;
                assert!((dot(&n, m) + 1.0).abs() < 1e-12, "opposite normals");
                let scale = value.iter().fold(1.0, |most: f64, x| most.max(x.abs()));
                for (a, b) in trace(family, value, m).iter().zip(other) {
                    assert!((a - b).abs() < 1e-11 * scale, "{}: {a} and {b}", space.element());
                }
            }
        }
    }
    pairs
}

#[test]
fn traces_agree_where_cells_see_entities_in_different_frames() {
    let (mut reversed, mut refused) = (0, 0);
    for (cell, cells, seed) in [Cell::Triangle, Cell::Tetrahedron]
        .into_iter()
        .flat_map(|cell| [1, 2].map(|cells| (cell, cells)))
        .flat_map(|(cell, cells)| [1, 2, 3].map(|seed| (cell, cells, seed)))
    {
        let mesh = periodic(cell, cells, seed);
        let is_oriented = mesh.connectivity().is_oriented();
        for (k, family) in (1..=3)
            .flat_map(|k| [WhitneyFamily::Curl, WhitneyFamily::Div].map(|family| (k, family)))
        {
            let element = Whitney::new(cell, k, family).expect("an element");
            match Space::new(&mesh, &Partition::with_chunk_cells(&mesh, 5), element, 1) {
                Ok(space) => {
                    reversed += space.signs().iter().filter(|&&reversed| reversed).count();
                    assert!(compare_traces(&mesh, &space, family) > 0);
                }
                Err(SpaceError::Frames { .. }) => {
                    assert!(!is_oriented && element.needs_orientation(2), "{element}");
                    refused += 1;
                }
                Err(error) => panic!("{error}"),
            }
        }
    }
    assert!(reversed > 0 && refused > 0, "{reversed} signs, {refused} refused");
}
