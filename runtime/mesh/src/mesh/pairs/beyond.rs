//! Cells of other processes at the facets of a part: [`CellsBeyond`].
//!
//! A facet between two parts is integrated by one of their processes. It knows the other's cell: the nodes of its map,
//! and by [`CellsBeyond::shared`] who has the same cell. The cell is not one of the part: it has a number after those
//! of the part's own cells, degrees of freedom, and nothing else.
//!
//! ```text
//! equal cells        the process of lower rank, or the other one, in turns
//! a child, a parent  the process of the child, which is the inside
//! ```

use super::{CellPair, FacetConnectivity, FacetSide, oriented};
use crate::mesh::Mesh;
use crate::mesh::distributed::{PartInterface, SharedEntity};
use crate::mesh::partition::Partition;
use crate::mesh::views::FacetViews;
use crate::processes::interface_exchange::{InterfaceExchange, SharedDof};
use crate::processes::{Parcel, Reduction};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::OnceLock;

/// Kind of a side in messages: none, the whole facet, or the index of a child.
const ABSENT: f64 = -2.0;
const WHOLE: f64 = -1.0;

/// Numbers of a side before those of its nodes: kind, cell, facet, view.
const HEAD: usize = 4;

/// Cells of other processes at the facets that this process integrates.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CellsBeyond {
    /// The nodes of their maps, `[cell][node]`.
    points: Vec<[f64; 3]>,
    /// Their diameters.
    diameters: Vec<f64>,
    /// Their hanging words; empty if nothing hangs.
    words: Vec<u32>,
    /// Nodes per cell.
    each: usize,
    /// The number of the first one: the number of cells of the part.
    first: usize,
    /// Cells that several processes know, in one order for all processes; the process with the cell is the first rank.
    shared: Vec<SharedEntity>,
    /// The facets between a cell of this part and one beyond that this process integrates.
    pairs: Vec<CellPair>,
}

/// A side of a shared facet.
#[derive(Clone, Debug)]
struct SharedSide {
    rank: usize,
    side: FacetSide,
    view: u8,
    child: Option<u8>,
    points: Vec<[f64; 3]>,
}

impl SharedSide {
    /// Writes the side as numbers.
    fn write(&self, numbers: &mut Vec<f64>) {
        let kind = self.child.map_or(WHOLE, f64::from);
        let FacetSide { cell, local } = self.side;
        numbers.extend([kind, f64::from(cell), f64::from(local), f64::from(self.view)]);
        numbers.extend(self.points.iter().flatten());
    }

    /// Reads a side from numbers; `None` if there is none.
    fn read(rank: usize, numbers: &[f64]) -> Option<Self> {
        let &[kind, cell, local, view] = numbers.first_chunk()?;
        let side = FacetSide { cell: cell as u32, local: local as u8 };
        let child = (kind >= 0.0).then_some(kind as u8);
        let points = numbers[HEAD..].chunks_exact(3).map(|x| [x[0], x[1], x[2]]).collect();
        (kind != ABSENT).then_some(Self { rank, side, view: view as u8, child, points })
    }
}

/// The cells beyond a part, if something has asked for them. Equality of meshes ignores them.
#[derive(Clone, Debug, Default)]
pub(crate) struct KnownCellsBeyond(OnceLock<CellsBeyond>);

impl PartialEq for KnownCellsBeyond {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Mesh {
    /// Returns the cells of other processes at the facets of a part; `None` if the mesh is whole. The first call is
    /// collective.
    pub fn beyond(&self) -> Option<&CellsBeyond> {
        let cut = self.cut()?;
        Some(self.beyond.0.get_or_init(|| CellsBeyond::new(self, cut)))
    }

    /// Returns the same if it is known and the cell is one of them.
    fn beyond_of(&self, cell: usize) -> Option<&CellsBeyond> {
        self.beyond.0.get().filter(|_| cell >= self.n_cells())
    }

    /// Returns the places of the nodes of a cell's map, of the mesh or beyond it.
    pub fn map_points(&self, cell: usize) -> impl Iterator<Item = [f64; 3]> + '_ {
        let beyond = self.beyond_of(cell).map_or(&[][..], |beyond| beyond.points(cell));
        let own = if cell < self.n_cells() { self.cell_nodes(cell) } else { &[] };
        own.iter().map(|&node| self.points()[node as usize]).chain(beyond.iter().copied())
    }

    /// Returns the hanging word of a cell, of the mesh or beyond it; 0 if nothing hangs.
    pub fn hanging_word(&self, cell: usize) -> u32 {
        let Some(words) = self.hanging() else { return 0 };
        words.get(cell).copied().unwrap_or_else(|| {
            let beyond = self.beyond_of(cell).map_or(&[][..], CellsBeyond::hanging);
            beyond[cell - words.len()]
        })
    }

    /// Returns the diameter h of a cell: the largest distance between its vertices.
    pub fn diameter(&self, cell: usize) -> f64 {
        match self.beyond_of(cell) {
            Some(beyond) => beyond.diameter(cell),
            None => self.own_diameter(cell),
        }
    }
}

impl CellsBeyond {
    /// Finds the cells beyond the facets of a part. Collective.
    fn new(mesh: &Mesh, cut: &PartInterface) -> Self {
        let views = FacetViews::new(mesh.cell());
        let faces = FacetConnectivity::new(mesh, &views);
        let (group, own) = (cut.group(), cut.group().rank());
        let (slots, each) = (1 << (mesh.dim() - 1), mesh.nodes_per_cell());
        let of_facet = |place: usize| {
            let start = faces.open.partition_point(|open| (open.place as usize) < place);
            let sides =
                faces.open[start..].iter().take_while(move |open| open.place as usize == place);
            sides.map(|open| {
                let FacetSide { cell, local } = open.side;
                let nodes = mesh.cell_nodes(cell as usize).iter();
                let view = faces.view(cell as usize, usize::from(local));
                let points = nodes.map(|&node| mesh.points()[node as usize]).collect();
                SharedSide { rank: own, side: open.side, view, child: open.child, points }
            })
        };
        // The facets that are common with each neighbour, in the order of both.
        let mut common: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
        for (place, entity) in cut.shared(mesh.dim() - 1).iter().enumerate() {
            let others = entity.ranks.iter().map(|&rank| rank as usize);
            others
                .filter(|&rank| rank != own)
                .for_each(|rank| common.entry(rank).or_default().push(place));
        }
        let length = HEAD + 3 * each;
        let parcel = |(&with, places): (&usize, &Vec<usize>)| {
            let mut sent = Vec::with_capacity(places.len() * slots * length);
            for (number, &place) in places.iter().enumerate() {
                of_facet(place).take(slots).for_each(|side| side.write(&mut sent));
                sent.resize((number + 1) * slots * length, ABSENT);
            }
            Parcel { with, received: vec![ABSENT; sent.len()], sent }
        };
        let mut parcels: Vec<Parcel> = common.iter().map(parcel).collect();
        group.exchange(&mut parcels, &mut || ());
        // Pairs of sides: those of this process, and those by which others know its cells.
        let (mut found, mut known) = (Vec::new(), BTreeMap::<u32, BTreeSet<u32>>::new());
        for (places, parcel) in common.values().zip(&parcels) {
            let lower = own.min(parcel.with);
            for (number, &place) in places.iter().enumerate() {
                let numbers =
                    &parcel.received[number * slots * length..(number + 1) * slots * length];
                let theirs = numbers.chunks_exact(length);
                let theirs: Vec<SharedSide> =
                    theirs.filter_map(|side| SharedSide::read(parcel.with, side)).collect();
                for mine in of_facet(place) {
                    for other in &theirs {
                        let doer = match (mine.child, other.child) {
                            (None, None) if number % 2 == 0 => lower,
                            (None, None) => own.max(parcel.with),
                            (Some(_), None) => own,
                            (None, Some(_)) => parcel.with,
                            (Some(_), Some(_)) => continue,
                        };
                        if doer == own {
                            found.push((mine.clone(), other.clone()));
                        } else {
                            known.entry(mine.side.cell).or_default().insert(parcel.with as u32);
                        }
                    }
                }
            }
        }
        Self::numbered(mesh, cut, &views, (found, known))
    }

    /// Numbers the cells beyond of some pairs of sides; `known` are the ranks that know a cell of this process.
    fn numbered(
        mesh: &Mesh,
        cut: &PartInterface,
        views: &FacetViews,
        (found, known): (Vec<(SharedSide, SharedSide)>, BTreeMap<u32, BTreeSet<u32>>),
    ) -> Self {
        let (first, own) = (mesh.n_cells(), cut.group().rank() as u32);
        let mut beyond: BTreeMap<(u32, u32), (u32, &[[f64; 3]])> = BTreeMap::new();
        for (_, other) in &found {
            beyond.insert((other.rank as u32, other.side.cell), (0, &other.points));
        }
        let mut points = Vec::new();
        for (number, (cell, of_map)) in (first as u32..).zip(beyond.values_mut()) {
            *cell = number;
            points.extend_from_slice(of_map);
        }
        let pair = |(mine, other): &(SharedSide, SharedSide)| {
            let (cell, _) = beyond[&(other.rank as u32, other.side.cell)];
            let sides = [mine.side, FacetSide { cell, ..other.side }];
            oriented(*views, sides, [mine.view, other.view], mine.child)
        };
        let pairs = found.iter().map(pair).collect();
        // The processes that know a cell, by its rank and its number there.
        let mut shared: BTreeMap<(u32, u32), SharedEntity> = BTreeMap::new();
        for (&cell, ranks) in &known {
            let ranks = std::iter::once(own).chain(ranks.iter().copied()).collect();
            shared.insert((own, cell), SharedEntity { number: cell, ranks });
        }
        let lists = told(cut, &beyond, &known);
        for (&place, &(number, _)) in &beyond {
            let ranks = lists.get(&place).map_or(&[][..], Vec::as_slice).into();
            shared.insert(place, SharedEntity { number, ranks });
        }
        let (shared, each) = (shared.into_values().collect(), mesh.nodes_per_cell());
        let diameters = points.chunks_exact(each).map(|of_map| mesh.diameter_of(of_map)).collect();
        let mut all = Self { points, diameters, words: Vec::new(), each, first, shared, pairs };
        if let Some(words) = mesh.hanging() {
            let received = all.received(cut, 1, |cell, word| word[0] = f64::from(words[cell]));
            all.words = received.into_iter().map(|word| word as u32).collect();
        }
        all
    }

    /// Returns the number of the cells.
    pub fn len(&self) -> usize {
        self.points.len() / self.each.max(1)
    }

    /// Returns whether there are none.
    pub fn is_empty(&self) -> bool {
        self.points.is_empty()
    }

    /// Returns the number of the first one, which is the number of cells of the part.
    pub fn first(&self) -> usize {
        self.first
    }

    /// Returns the hanging words of the cells; empty if nothing hangs in any part of the mesh.
    pub fn hanging(&self) -> &[u32] {
        &self.words
    }

    /// Returns the nodes of the map of a cell beyond.
    pub fn points(&self, cell: usize) -> &[[f64; 3]] {
        let number = cell - self.first;
        &self.points[number * self.each..(number + 1) * self.each]
    }

    /// Returns the diameter h of a cell beyond.
    pub fn diameter(&self, cell: usize) -> f64 {
        self.diameters[cell - self.first]
    }

    /// Returns the cells that several processes know, in one order for all processes; the process with the cell is the
    /// first rank.
    pub fn shared(&self) -> &[SharedEntity] {
        &self.shared
    }

    /// Returns the pairs of a cell of this part and one beyond.
    pub fn pairs(&self) -> &[CellPair] {
        &self.pairs
    }

    /// Returns the first chunk of a partition with a neighbour of each cell beyond.
    pub fn chunks(&self, partition: &Partition) -> Vec<usize> {
        let chunks = partition.chunks();
        let mut of_cell = vec![0; self.first];
        for (chunk, of) in chunks.iter().enumerate() {
            of_cell[of.cells.clone()].fill(chunk);
        }
        let mut all = vec![usize::MAX; self.len()];
        for pair in &self.pairs {
            let [own, other] = pair.sides.map(|side| side.cell as usize);
            let chunk = &mut all[other - self.first];
            *chunk = (*chunk).min(of_cell[own]);
        }
        all
    }

    /// Appends the values of the cells beyond to those of the part's own cells, `each` a cell. Collective.
    pub fn append(&self, cut: &PartInterface, each: usize, values: &mut Vec<f64>) {
        let own = |cell: usize, to: &mut [f64]| {
            to.copy_from_slice(&values[cell * each..(cell + 1) * each]);
        };
        let received = self.received(cut, each, own);
        values.extend(received);
    }

    /// Returns the values of the cells beyond, `each` a cell; `write` writes those of a cell of the part. Collective.
    pub fn received(
        &self,
        cut: &PartInterface,
        each: usize,
        write: impl Fn(usize, &mut [f64]),
    ) -> Vec<f64> {
        let mut values = vec![0.0; self.shared.len() * each];
        let cells = || self.shared.iter().map(|cell| cell.number as usize);
        for (cell, own) in cells().zip(values.chunks_exact_mut(each.max(1))) {
            if cell < self.first {
                write(cell, own);
            }
        }
        let entries = self.shared.iter().enumerate().flat_map(|(place, cell)| {
            let own = place * each..(place + 1) * each;
            own.map(|unknown| SharedDof { unknown, ranks: &cell.ranks })
        });
        InterfaceExchange::new(cut.group().clone(), entries).synchronise(&mut values);
        let mut received = vec![0.0; self.len() * each];
        for (cell, values) in cells().zip(values.chunks_exact(each.max(1))) {
            if let Some(number) = cell.checked_sub(self.first) {
                received[number * each..(number + 1) * each].copy_from_slice(values);
            }
        }
        received
    }
}

/// Tells each process the ranks that know a cell beyond it, of which this process has the ranks of its own cells;
/// returns the lists of the cells beyond, by rank and number. Collective.
fn told(
    cut: &PartInterface,
    beyond: &BTreeMap<(u32, u32), (u32, &[[f64; 3]])>,
    known: &BTreeMap<u32, BTreeSet<u32>>,
) -> BTreeMap<(u32, u32), Vec<u32>> {
    let own = cut.group().rank() as u32;
    // Both know which cells a list is sent for; its length is bounded by the number of facets of a cell.
    let most = known.values().map(BTreeSet::len).max().unwrap_or(0);
    let mut longest = [most as f64];
    cut.group().reduce(Reduction::Largest, &mut longest);
    let length = longest[0] as usize;
    let mut parcels: BTreeMap<u32, Parcel> = BTreeMap::new();
    let empty = |rank: u32| Parcel { with: rank as usize, sent: Vec::new(), received: Vec::new() };
    for ranks in known.values() {
        for &rank in ranks {
            let sent = &mut parcels.entry(rank).or_insert_with(|| empty(rank)).sent;
            let end = sent.len() + length;
            sent.extend(ranks.iter().map(|&rank| f64::from(rank)));
            sent.resize(end, ABSENT);
        }
    }
    for &(rank, _) in beyond.keys() {
        let parcel = parcels.entry(rank).or_insert_with(|| empty(rank));
        parcel.received.resize(parcel.received.len() + length, ABSENT);
    }
    let mut parcels: Vec<Parcel> = parcels.into_values().collect();
    cut.group().exchange(&mut parcels, &mut || ());
    let mut lists: BTreeMap<(u32, u32), Vec<u32>> = BTreeMap::new();
    for parcel in &parcels {
        let rank = parcel.with as u32;
        let cells = beyond.keys().filter(|(of, _)| *of == rank);
        for (&place, ranks) in cells.zip(parcel.received.chunks_exact(length.max(1))) {
            let ranks = ranks.iter().filter(|&&rank| rank != ABSENT).map(|&rank| rank as u32);
            lists.insert(place, std::iter::once(rank).chain(ranks).collect());
        }
    }
    debug_assert!(lists.values().all(|ranks| ranks.contains(&own)));
    lists
}
