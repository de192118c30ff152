//! Points of facets as both cells of a pair have them, rotated to ξ₀ = 0.

use super::super::refine::forest::Forest;
use super::super::refine::forest::tests::samples::{Random, grow, meshes};
use super::super::views::FacetViews;
use super::super::{Cell, Mesh, generate};
use super::{CellPair, FacetConnectivity, FacetSide, interior};
use fem_dsl::point::{InteriorFacets, Side};
use fem_dsl::problem::Argument;
use kernels_gen::element::{Lagrange, tabulate};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Points of a facet that no symmetry maps onto each other.
const POINTS: [[f64; 2]; 3] = [[0.3, 0.1], [0.15, 0.45], [0.6, 0.25]];

/// Returns the places of facet coordinates in a cell whose nodes are in a rotated order.
fn places(mesh: &Mesh, side: FacetSide, orientation: u8, points: &[[f64; 2]]) -> Vec<[f64; 3]> {
    let element = Lagrange::continuous(mesh.cell(), mesh.order()).expect("an element");
    let turned = element.turned(usize::from(side.local), orientation);
    let third = |t: f64| if mesh.dim() == 3 { t } else { 0.0 };
    let points: Vec<[f64; 3]> = points.iter().map(|&[s, t]| [0.0, s, third(t)]).collect();
    let (table, nodes) = (tabulate(element, &points), mesh.cell_nodes(side.cell as usize));
    let place = |point: usize| {
        let mut x = [0.0; 3];
        for (local, &own) in turned.iter().enumerate() {
            let node = mesh.points()[nodes[own] as usize];
            (0..3).for_each(|c| x[c] += table.value(point, local) * node[c]);
        }
        x
    };
    (0..points.len()).map(place).collect()
}

/// Compares the places of points on both sides of all pairs; returns the orientations, and the halves.
fn compare(mesh: &Mesh, name: &str) -> (BTreeSet<u8>, BTreeSet<u8>) {
    let views = FacetViews::new(mesh.cell());
    let faces = FacetConnectivity::new(mesh, &views);
    let (mut orientations, mut halves) = (BTreeSet::new(), BTreeSet::new());
    for pair in &faces.pairs {
        let CellPair { sides, orientations: [inside, outside], larger } =
            faces.oriented(views, pair);
        assert!(larger.is_none_or(|side| side == Side::Outside));
        orientations.insert(outside);
        if larger.is_some() {
            // One orientation of the inside for each half.
            halves.insert(inside);
        }
        let half = |point: [f64; 2]| if larger.is_some() { point.map(|x| x / 2.0) } else { point };
        let own = places(mesh, sides[0], inside, &POINTS);
        let other = places(mesh, sides[1], outside, &POINTS.map(half));
        // Sides of a periodic mesh are a translation apart.
        let apart = [0, 1, 2].map(|c| own[0][c] - other[0][c]);
        let size = mesh.points().iter().flatten().fold(1.0_f64, |size, x| size.max(x.abs()));
        for (own, other) in own.iter().zip(&other) {
            for c in 0..3 {
                let error = (own[c] - other[c] - apart[c]).abs();
                assert!(error <= 1e-13 * size, "{name}: {pair:?} {error}");
            }
        }
        let periodic = apart.iter().any(|x| x.abs() > 1e-12 * size);
        assert!(!periodic || name.contains("periodic"), "{name}: {apart:?}");
    }
    assert!(!faces.pairs.is_empty(), "{name}");
    (orientations, halves)
}

#[test]
fn a_point_is_the_same_from_both_cells() {
    for cell in Cell::ALL.into_iter().filter(|cell| cell.dim() > 1) {
        let arguments = BTreeMap::from([
            ("dim".to_owned(), Argument::Number(cell.dim() as f64)),
            ("cells".to_owned(), Argument::Number(3.0)),
            ("cell".to_owned(), Argument::Word(cell.name().to_owned())),
        ]);
        let mut mesh = generate::generate("box", &arguments).expect("a box");
        let (orientations, halves) = compare(&mesh, cell.name());
        assert!(halves.is_empty() && !orientations.is_empty());
        mesh.make_periodic(&[["x0".to_owned(), "x1".to_owned()]]).expect("sides");
        compare(&mesh, "periodic");
    }
}

#[test]
fn a_point_is_the_same_from_a_child_and_its_large_neighbour() {
    let mut random = Random(11);
    let mut all: BTreeMap<usize, (BTreeSet<u8>, BTreeSet<u8>)> = BTreeMap::new();
    for (number, (coarse, periods)) in meshes(&mut random).into_iter().enumerate() {
        let mut forest = Forest::new(&coarse).expect("a forest");
        grow(&mut forest, &mut random, 2);
        forest.balance().expect("few leaves");
        let dim = coarse.dim();
        let mesh = forest.mesh(&Arc::new(coarse)).expect("a mesh");
        let periodic = periods.iter().any(|&period| period > 0.0);
        let name = format!("{number}{}", if periodic { ", periodic" } else { "" });
        let (orientations, halves) = compare(&mesh, &name);
        let seen = all.entry(dim).or_default();
        seen.0.extend(orientations);
        seen.1.extend(halves);
    }
    let counts = |dim: usize| all.get(&dim).map(|(a, b)| (a.len(), b.len()));
    assert_eq!((counts(2), counts(3)), (Some((2, 2)), Some((8, 4))));
}

#[test]
fn pairs_lead_from_one_tag_to_another() {
    let arguments = BTreeMap::from([
        ("dim".to_owned(), Argument::Number(2.0)),
        ("cells".to_owned(), Argument::Number(4.0)),
    ]);
    let mut mesh = generate::generate("box", &arguments).expect("a box");
    assert_eq!(mesh.tag_cells("left", |x| x[0] < 0.5), 8);
    assert_eq!(mesh.tag_cells("right", |x| x[0] > 0.5), 8);
    let tags = ["left".to_owned(), "right".to_owned()];
    let cells = |tag: &String| mesh.cells_tagged(tag).expect("cells");
    for turned in [false, true] {
        let [from, to] = if turned { [1, 0] } else { [0, 1] }.map(|tag| tags[tag].clone());
        let facets = InteriorFacets::Between([from.clone(), to.clone()]);
        let pairs = interior(&mesh, &facets).expect("pairs");
        assert_eq!(pairs.len(), 4);
        for CellPair { sides: [inside, outside], orientations, larger } in pairs {
            assert_eq!(larger, None);
            assert!(cells(&from).contains(&inside.cell) && cells(&to).contains(&outside.cell));
            let own = places(&mesh, inside, orientations[0], &POINTS);
            assert_eq!(own, places(&mesh, outside, orientations[1], &POINTS));
            assert!(own.iter().all(|x| x[0] == 0.5), "{own:?}");
        }
    }
    let missing = InteriorFacets::Under(vec!["nowhere".to_owned()]);
    assert!(interior(&mesh, &missing).is_err());
    assert_eq!(interior(&mesh, &InteriorFacets::All).expect("pairs").len(), 24);
}
