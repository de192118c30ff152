//! Facets between processes: exchange of facet data with neighbours.
//!
//! ```text
//! once            view of each side: whole facet, or index of the child        2^(d − 1) numbers per facet
//! per estimate    all s_K, h_F, the metric at the points, the traces          for each side
//! ```
//!
//! All processes use a common frame for a facet, so that traces of both sides are at the same points. Each process
//! assigns half of a jump to its own cells.

use super::between::PairSources;
use super::cells::CellContributions;
use super::scale::ResidualWeights;
use super::surface::{FacetGeometry, FacetMetric};
use crate::mesh::Mesh;
use crate::mesh::pairs::{FacetConnectivity, FacetSide, OpenFacet};
use crate::processes::{Parcel, ProcessGroup};
use std::collections::BTreeMap;
use std::sync::Arc;

/// View of a side: absent, or the whole facet; otherwise the index of the child.
const ABSENT: f64 = -2.0;
const WHOLE: f64 = -1.0;

/// A cell of this subdomain and a neighbouring cell of another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct InterfaceFacet {
    pub(super) own: FacetSide,
    /// Child index, like that of a pair whose first side is this cell or the other one.
    pub(super) child: Option<u8>,
    /// True if the child is the other cell.
    pub(super) is_parent: bool,
    /// Neighbour with the other cell, and index of its side among those that it sends.
    neighbour: usize,
    number: usize,
}

/// Facets shared with other processes.
#[derive(Debug, Default)]
pub(super) struct InterfaceFacets {
    group: Option<Arc<dyn ProcessGroup>>,
    neighbours: Vec<NeighbourSides>,
    pub(super) met: Vec<InterfaceFacet>,
    sizes: SideSizes,
}

/// Sizes of the data of a side.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct SideSizes {
    /// Number of weights.
    pub(super) scales: usize,
    /// Points per facet.
    pub(super) points: usize,
    /// Values per trace.
    pub(super) trace: usize,
    /// True if the form has interior blocks: their rows on both sides follow the trace.
    pub(super) has_pairs: bool,
}

/// A neighbour, the sides sent to it, and the number of sides received.
#[derive(Debug)]
struct NeighbourSides {
    rank: usize,
    sent: Vec<FacetSide>,
    received: usize,
}

impl InterfaceFacets {
    /// Matches the facets of a subdomain; does nothing without one. Collective.
    pub(super) fn new(mesh: &Mesh, faces: &FacetConnectivity, sizes: SideSizes) -> Self {
        let Some(cut) = mesh.cut() else { return Self::default() };
        let (group, dim) = (Arc::clone(cut.group()), mesh.dim());
        let slots = 1 << (dim - 1);
        // Sides of each shared facet, and facets shared with each neighbour.
        let shared = cut.shared(dim - 1);
        let starts = |place: usize| faces.open.partition_point(|own| (own.place as usize) < place);
        let sides = |place: usize| &faces.open[starts(place)..starts(place + 1)];
        let mut places: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
        for (place, entity) in shared.iter().enumerate() {
            let others = entity.ranks.iter().map(|&rank| rank as usize);
            for rank in others.filter(|&rank| rank != group.rank()) {
                places.entry(rank).or_default().push(place);
            }
        }
        let entries = |place: &usize| {
            let own = sides(*place).iter();
            let own = own.map(|own| own.child.map_or(WHOLE, f64::from));
            own.chain(std::iter::repeat(ABSENT)).take(slots).collect::<Vec<f64>>()
        };
        let parcel = |(&with, places): (&usize, &Vec<usize>)| {
            let sent: Vec<f64> = places.iter().flat_map(entries).collect();
            Parcel { with, received: vec![ABSENT; sent.len()], sent }
        };
        let mut parcels: Vec<Parcel> = places.iter().map(parcel).collect();
        group.exchange(&mut parcels, &mut || {});
        let (mut neighbours, mut met) = (Vec::new(), Vec::new());
        for (neighbour, (parcel, places)) in parcels.iter().zip(places.values()).enumerate() {
            let (mut sent, mut received) = (Vec::new(), 0);
            for (&place, entries) in places.iter().zip(parcel.received.chunks_exact(slots)) {
                let own = sides(place);
                sent.extend(own.iter().map(|own| own.side));
                for &other in entries.iter().filter(|other| **other != ABSENT) {
                    let other = (other != WHOLE).then_some(other as u8);
                    let number = received;
                    let of = own.iter().filter_map(|own| meet(own, other, [neighbour, number]));
                    met.extend(of);
                    received += 1;
                }
            }
            neighbours.push(NeighbourSides { rank: parcel.with, sent, received });
        }
        Self { group: Some(group), neighbours, met, sizes }
    }

    /// Returns the number of values per side.
    fn each(&self) -> usize {
        let SideSizes { scales, points, trace, has_pairs } = self.sizes;
        // The rows come with a flag.
        scales + 1 + FacetMetric::COUNT * points + trace + if has_pairs { 1 + 2 * trace } else { 0 }
    }

    /// Exchanges the data of all sides. Collective.
    pub(super) fn beyond(
        &self,
        faces: &FacetConnectivity,
        (cells, pairs): (&CellContributions, &PairSources),
        surface: &FacetGeometry<'_>,
        scales: &ResidualWeights,
    ) -> RemoteSides<'_> {
        let (each, sizes) = (self.each(), self.sizes);
        let entries = |&side: &FacetSide| {
            let FacetSide { cell, local } = side;
            let (cell, local) = (cell as usize, usize::from(local));
            let view = faces.view(cell, local);
            let mut all = Vec::with_capacity(each);
            all.extend((0..sizes.scales).map(|weight| scales.of(cell, weight)));
            all.push(surface.diameter(cell, local));
            all.extend(
                (0..sizes.points).flat_map(|q| surface.metric(cell, local, view, q).values()),
            );
            all.extend_from_slice(cells.trace(cell, local));
            if let Some([own, opposite]) = pairs.of(side) {
                all.push(1.0);
                all.extend(own.iter().chain(opposite));
            }
            all.resize(each, 0.0);
            all
        };
        let parcel = |own: &NeighbourSides| {
            let sent = own.sent.iter().flat_map(entries).collect();
            Parcel { with: own.rank, sent, received: vec![0.0; own.received * each] }
        };
        let mut parcels: Vec<Parcel> = self.neighbours.iter().map(parcel).collect();
        if let Some(group) = &self.group {
            group.exchange(&mut parcels, &mut || {});
        }
        RemoteSides { across: self, numbers: parcels.into_iter().map(|own| own.received).collect() }
    }
}

/// Matches a side of this subdomain with one of another; `None` if both are children.
fn meet(
    own: &OpenFacet,
    other: Option<u8>,
    [neighbour, number]: [usize; 2],
) -> Option<InterfaceFacet> {
    let met =
        |child, is_parent| InterfaceFacet { own: own.side, child, is_parent, neighbour, number };
    match (own.child, other) {
        (None, None) => Some(met(None, false)),
        (Some(child), None) => Some(met(Some(child), false)),
        (None, Some(child)) => Some(met(Some(child), true)),
        (Some(_), Some(_)) => None,
    }
}

/// Data of the sides of other processes.
pub(super) struct RemoteSides<'a> {
    across: &'a InterfaceFacets,
    /// Values of each neighbour, side by side.
    numbers: Vec<Vec<f64>>,
}

/// A side of another process.
#[derive(Clone, Copy)]
pub(super) struct RemoteSide<'a> {
    /// s_K, weight by weight.
    pub(super) scales: &'a [f64],
    /// h_F.
    pub(super) diameter: f64,
    /// The metric, `[point][value]`.
    metrics: &'a [f64],
    /// `[component][point]`
    pub(super) trace: &'a [f64],
    /// Rows of interior blocks on this side and on the one opposite, if its process has them.
    pub(super) rows: Option<[&'a [f64]; 2]>,
}

impl RemoteSides<'_> {
    /// Returns the other side.
    pub(super) fn of(&self, met: &InterfaceFacet) -> RemoteSide<'_> {
        let each = self.across.each();
        let SideSizes { scales, points, trace, .. } = self.across.sizes;
        let own = &self.numbers[met.neighbour][met.number * each..][..each];
        let (scales, rest) = own.split_at(scales);
        let (metrics, all) = rest[1..].split_at(FacetMetric::COUNT * points);
        let rows = all.get(trace).filter(|flag| **flag > 0.0);
        let rows = rows.map(|_| [&all[trace + 1..][..trace], &all[2 * trace + 1..][..trace]]);
        RemoteSide { scales, diameter: rest[0], metrics, trace: &all[..trace], rows }
    }
}

impl RemoteSide<'_> {
    /// Returns the metric at a point.
    pub(super) fn metric(&self, q: usize) -> FacetMetric {
        FacetMetric::of_values(&self.metrics[FacetMetric::COUNT * q..][..FacetMetric::COUNT])
    }
}
