//! Where the unknowns of a field lie in the arrays of a device.
//!
//! Everywhere else nodes are numbered entity by entity and the components of a node follow one another. On a device
//! one thread's node should lie beside its neighbour's: threads that read, or add to, 32 numbers in a row touch 8
//! sectors of memory, and 32 where those are far apart. So nodes are numbered anew there ([`Layout::in_strips`]), and
//! several components lie in tiles ([`in_tiles`]). A [`Layout`] stands between the two orders wherever numbers or
//! lists of unknowns go to a device or come back. The last tile is of full length; the places that are no
//! unknown's, in it or before the nodes inside of cells ([`Layout::in_strips_apart`]), hold 0, which no sum and no solver
//! sees.

use crate::space::Space;
use crate::support::parallel::*;
use kernels_gen::abi::{TILE, in_tiles};
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicU32, AtomicU64};

/// Cells whose nodes are numbered together: those of a warp.
const STRIP: usize = 32;

/// Entries that a thread takes at a time, at least.
const CHUNK: usize = 1 << 14;

/// The parts of an array that are the fields' begin at multiples of so many entries, as groups of threads take them.
const PART: usize = 128;

/// More places than a 32-bit index can number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "the fields' {unknowns} unknowns share one vector on the device and take {places} places in it, more than the {} that \
     32-bit indices can number\nhelp: take a coarser mesh or a lower degree", u32::MAX - 1
)]
pub struct TooManyPlaces {
    /// Unknowns of all fields.
    pub unknowns: usize,
    /// Places in the array, padding included.
    pub places: usize,
}

/// The places that a vector of fields with so many components and unknowns each takes.
///
/// # Errors
///
/// More than index arrays can name: the largest number marks a constrained unknown.
pub fn places(fields: &[(usize, usize)], tiled: bool) -> Result<usize, TooManyPlaces> {
    let own = |&(components, unknowns): &(usize, usize)| {
        let layout = if tiled { Layout::tiles(components) } else { Layout::plain(components) };
        (layout, unknowns)
    };
    let unknowns = fields.iter().map(|(_, unknowns)| unknowns).sum();
    let places = Layout::joined(fields.iter().map(own)).len(unknowns);
    if places < u32::MAX as usize { Ok(places) } else { Err(TooManyPlaces { unknowns, places }) }
}

/// Where the unknowns of a field lie.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Part {
    /// Components of a node, in tiles.
    components: usize,
    /// Nodes have the components of one node after those of another.
    tiled: bool,
    /// The number of each node, where it is not its own.
    numbers: Option<Arc<[u32]>>,
    /// Nodes that have numbers before all those inside of cells; none where these are anywhere.
    on_borders: Option<usize>,
    /// How many there are; none where they are all that a vector has.
    unknowns: Option<usize>,
    /// The entry of an array where they begin.
    first: usize,
}

impl Part {
    /// Whether components lie in tiles.
    pub fn is_tiled(&self) -> bool {
        self.tiled
    }

    /// The entry of an array where the field begins.
    pub fn first(&self) -> usize {
        self.first
    }

    /// Whether an index says the same of both.
    pub(crate) fn agrees(&self, other: &Self) -> bool {
        let numbers = match (&self.numbers, &other.numbers) {
            (Some(own), Some(other)) => Arc::ptr_eq(own, other),
            (own, other) => own.is_none() && other.is_none(),
        };
        let own = (self.components, self.tiled, self.first);
        numbers && own == (other.components, other.tiled, other.first)
    }

    /// Whether unknowns lie alike in both, wherever they begin.
    pub(crate) fn lies_as(&self, other: &Self) -> bool {
        self.agrees(&Self { first: self.first, ..other.clone() })
    }

    fn is_plain(&self) -> bool {
        !self.tiled && self.numbers.is_none() && self.first == 0
    }

    /// Entries of an array for so many unknowns of the field.
    pub fn len(&self, unknowns: usize) -> usize {
        if !self.tiled {
            return unknowns;
        }
        unknowns.div_ceil(self.components * TILE) * self.components * TILE
    }

    /// The number of a node, among those of the field.
    pub fn number(&self, node: usize) -> usize {
        self.numbers.as_ref().map_or(node, |numbers| numbers[node] as usize)
    }

    /// The entry of an array where an unknown of the field lies.
    pub fn place(&self, unknown: usize) -> usize {
        let (node, component) = (unknown / self.components, unknown % self.components);
        let number = self.number(node);
        self.first
            + if self.tiled {
                in_tiles(number, self.components) + component * TILE
            } else {
                number * self.components + component
            }
    }

    /// What an index array holds for a node, by which kernels find its components.
    pub fn index(&self, node: usize) -> usize {
        let number = self.number(node);
        self.first + if self.tiled { in_tiles(number, self.components) } else { number }
    }
}

/// Where the unknowns of a vector lie.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Layout {
    /// One a field.
    parts: Vec<Part>,
}

impl Layout {
    /// Whether unknowns lie in the same places in both.
    pub(crate) fn agrees(&self, other: &Self) -> bool {
        let pairs = || self.parts.iter().zip(&other.parts);
        self.parts.len() == other.parts.len() && pairs().all(|(own, other)| own.agrees(other))
    }

    /// Unknowns of one field in their own order, with so many components a node.
    pub fn plain(components: usize) -> Self {
        let components = components.max(1);
        let (tiled, numbers, on_borders, unknowns, first) = (false, None, None, None, 0);
        Self { parts: vec![Part { components, tiled, numbers, on_borders, unknowns, first }] }
    }

    /// The same in tiles.
    pub fn tiles(components: usize) -> Self {
        let mut layout = Self::plain(components);
        layout.parts.iter_mut().for_each(|part| part.tiled = components > 1);
        layout
    }

    /// Unknowns of one field that lie among each other as those of a field of another vector do.
    pub fn like(part: &Part) -> Self {
        Self { parts: vec![Part { unknowns: None, first: 0, ..part.clone() }] }
    }

    /// Whether vectors begin with what vectors of another layout are.
    pub fn begins_as(&self, other: &Self) -> bool {
        let mut parts = self.parts.iter().zip(&other.parts);
        other.parts.len() <= self.parts.len() && parts.all(|(own, other)| own.agrees(other))
    }

    /// One field after another, each with the number of its unknowns. With several, the components of each lie in tiles
    /// where there is more than one, so that an index says where a node is.
    pub fn joined(fields: impl IntoIterator<Item = (Self, usize)>) -> Self {
        let mut fields: Vec<(Self, usize)> = fields.into_iter().collect();
        if fields.len() == 1 {
            return fields.swap_remove(0).0;
        }
        let (mut parts, mut first) = (Vec::new(), 0);
        for (layout, unknowns) in fields {
            for part in layout.parts {
                let tiled = part.components > 1;
                let part = Part { tiled, unknowns: Some(unknowns), first, ..part };
                first += part.len(unknowns).next_multiple_of(PART);
                parts.push(part);
            }
        }
        Self { parts }
    }

    /// The same with the nodes numbered anew: of 32 cells at a time first `together` nodes of each cell, cell by cell,
    /// then the next, each node when it is seen first. With one node, threads with neighbouring cells find their
    /// nodes side by side; with those of a line along the first direction, threads with neighbouring lines do.
    pub fn in_strips(self, space: &Space, together: usize) -> Self {
        self.numbered(space, together, &[(0, &|_| true)])
    }

    /// The same with the nodes inside of cells after all others, which alone are added to where kernels store those.
    pub fn in_strips_apart(self, space: &Space, together: usize) -> Self {
        let element = space.element();
        let dim = element.cell().dim();
        let inside: Vec<bool> = element.nodes().iter().map(|node| node.dim == dim).collect();
        let own = element.entity_count(dim);
        let cells = space.nodes().len() / space.nodes_per_cell();
        // What the last tile has too many comes before them, so that it is cleared with the others.
        let tiled = self.parts.iter().any(|part| part.tiled);
        let spare =
            if tiled { space.n_nodes().next_multiple_of(TILE) - space.n_nodes() } else { 0 };
        let on_borders = space.n_nodes() - cells * own + spare;
        let turns: [(usize, &(dyn Fn(usize) -> bool + Sync)); 2] =
            [(0, &|local| !inside[local]), (on_borders, &|local| inside[local])];
        let mut layout = self.numbered(space, together, &turns);
        layout.parts.iter_mut().for_each(|part| part.on_borders = Some(on_borders));
        layout
    }

    /// Numbers the nodes that each of `turns` chooses by their places in their cells, from the number that it names on: a node
    /// when it is seen first, strip by strip. All strips are looked at together: first each node gets its first strip, then a
    /// number in that, then the strip's own.
    fn numbered(
        mut self,
        space: &Space,
        together: usize,
        turns: &[(usize, &(dyn Fn(usize) -> bool + Sync))],
    ) -> Self {
        let (nodes, together) = (space.nodes_per_cell(), together.max(1));
        let strips = || space.nodes().par_chunks(STRIP * nodes).zip(0..u32::MAX);
        let unset = || -> Vec<AtomicU32> {
            (0..space.n_nodes()).into_par_iter().map(|_| AtomicU32::new(u32::MAX)).listed()
        };
        let (strip_of, numbers) = (unset(), unset());
        strips().each(|(cells, strip)| {
            for of in cells.iter().map(|&node| &strip_of[node as usize]) {
                // A read is cheaper, and most have seen their first strip.
                if of.load(Relaxed) > strip {
                    of.fetch_min(strip, Relaxed);
                }
            }
        });
        for &(first, chosen) in turns {
            let count = |(strip_nodes, strip): (&[u32], u32)| {
                let mut next = 0;
                for first in (0..nodes).step_by(together) {
                    let line = first..(first + together).min(nodes);
                    for cell in strip_nodes.chunks(nodes) {
                        for local in line.clone().filter(|&local| chosen(local)) {
                            let node = cell[local] as usize;
                            let number = &numbers[node];
                            // Nobody else writes what is this strip's.
                            if strip_of[node].load(Relaxed) == strip
                                && number.load(Relaxed) == u32::MAX
                            {
                                number.store(next, Relaxed);
                                next += 1;
                            }
                        }
                    }
                }
                next
            };
            let counts: Vec<u32> = strips().map(count).listed();
            let starts = counts.iter().scan(first as u32, |next, &count| {
                let own = *next;
                *next += count;
                Some(own)
            });
            let starts: Vec<u32> = starts.collect();
            strips().each(|(strip_nodes, strip)| {
                for cell in strip_nodes.chunks(nodes) {
                    for local in (0..nodes).filter(|&local| chosen(local)) {
                        let of = &strip_of[cell[local] as usize];
                        // What has its number belongs to no strip any more.
                        if of.load(Relaxed) == strip {
                            of.store(u32::MAX, Relaxed);
                            numbers[cell[local] as usize]
                                .fetch_add(starts[strip as usize], Relaxed);
                        }
                    }
                }
            });
        }
        let numbers: Vec<u32> = numbers.into_par_iter().map(AtomicU32::into_inner).listed();
        let numbers: Arc<[u32]> = numbers.into();
        self.parts.iter_mut().for_each(|part| part.numbers = Some(Arc::clone(&numbers)));
        self
    }

    /// Entries from the first on after which there is nothing but nodes inside of cells; none where these are anywhere.
    pub fn entries_on_borders(&self) -> Option<usize> {
        let [part] = &self.parts[..] else { return None };
        part.on_borders.map(|nodes| part.len(nodes * part.components))
    }

    /// Where the unknowns of a field lie.
    ///
    /// # Panics
    ///
    /// If there is no such field.
    pub fn field(&self, field: usize) -> &Part {
        &self.parts[field]
    }

    /// The field whose unknowns are those of a range, where there is such a one; `unknowns` are those of all fields.
    pub fn field_of(&self, range: &Range<usize>, unknowns: usize) -> Option<&Part> {
        let mut start = 0;
        self.parts.iter().find(|part| {
            let own = start..start + part.unknowns.unwrap_or(unknowns);
            start = own.end;
            own == *range
        })
    }

    /// Whether every unknown lies where it does everywhere else.
    pub fn is_plain(&self) -> bool {
        self.parts.iter().all(Part::is_plain)
    }

    /// Whether the unknowns of a vector with so many lie in another order here; those of vectors that belong to no
    /// field of this layout do not.
    pub fn permutes(&self, unknowns: usize) -> bool {
        let own = |part: &Part| match (part.unknowns, &part.numbers) {
            (Some(unknowns), _) => Some(unknowns),
            (None, Some(numbers)) => Some(numbers.len() * part.components),
            (None, None) => None,
        };
        let known: Option<usize> = self.parts.iter().map(own).sum();
        !self.is_plain() && known.is_none_or(|known| known == unknowns)
    }

    /// Entries of an array for so many unknowns.
    pub fn len(&self, unknowns: usize) -> usize {
        match self.parts.last() {
            Some(Part { unknowns: None, .. }) | None => {
                self.parts.last().map_or(unknowns, |part| part.len(unknowns))
            }
            Some(part) => part.first + part.len(part.unknowns.unwrap_or(unknowns)),
        }
    }

    /// The entry of an array where an unknown lies.
    pub fn place(&self, mut unknown: usize) -> usize {
        for part in &self.parts {
            match part.unknowns {
                Some(own) if unknown >= own => unknown -= own,
                _ => return part.place(unknown),
            }
        }
        usize::MAX
    }

    /// Numbers in the order of the unknowns, as they lie in an array, with 0 where no unknown is.
    pub fn spread(&self, numbers: &[f64]) -> Vec<f64> {
        let bits = || AtomicU64::new(0.0_f64.to_bits());
        let entries = (0..self.len(numbers.len())).into_par_iter().with_min_len(CHUNK);
        let entries = entries.map(|_| bits()).listed();
        let all = numbers.par_iter().enumerate().with_min_len(CHUNK);
        all.each(|(unknown, number)| entries[self.place(unknown)].store(number.to_bits(), Relaxed));
        let entries = entries.into_par_iter().with_min_len(CHUNK);
        entries.map(|entry| f64::from_bits(entry.into_inner())).listed()
    }

    /// The ends of the fields in an array of so many unknowns, from the last whole tile on: for each its first entry, and its entries with
    /// a value in places of unknowns and 0 in the padding.
    pub fn ends(&self, unknowns: usize, value: f64) -> Vec<(usize, Vec<f64>)> {
        let ends = self.parts.iter().skip(1).map(Part::first).chain([self.len(unknowns)]);
        let rest = |(part, end): (&Part, usize)| {
            let own = part.unknowns.unwrap_or(unknowns);
            let nodes = own / part.components;
            let whole = if part.tiled { nodes / TILE * TILE } else { nodes };
            let start = part.first + whole * part.components;
            let mut entries = vec![0.0; end - start];
            for number in whole..nodes {
                for component in 0..part.components {
                    let place = part.first + in_tiles(number, part.components) + component * TILE;
                    entries[place - start] = value;
                }
            }
            (start, entries)
        };
        self.parts.iter().zip(ends).map(rest).filter(|(_, entries)| !entries.is_empty()).collect()
    }

    /// The numbers of the first `unknowns` unknowns, from an array; none from one that is too short.
    pub fn collect(&self, entries: &[f64], unknowns: usize) -> Vec<f64> {
        if entries.len() < self.len(unknowns) {
            return Vec::new();
        }
        let all = (0..unknowns).into_par_iter().with_min_len(CHUNK);
        all.map(|unknown| entries[self.place(unknown)]).listed()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mesh::generate::generate;
    use crate::space::discretisation::Discretisation;
    use fem_dsl::problem::Argument;
    use kernels_gen::element::Lagrange;
    use std::collections::BTreeMap;

    /// A box of hexahedra with nodes of a degree.
    fn on(degree: usize, components: usize) -> Discretisation {
        let arguments = BTreeMap::from([
            ("dim".to_owned(), Argument::Number(3.0)),
            ("cells".to_owned(), Argument::Number(16.0)),
        ]);
        let mesh = generate("box", &arguments).expect("a box");
        let element = Lagrange::continuous(mesh.cell(), degree).expect("an element");
        Discretisation::new(mesh, &[(element, components)]).expect("a space")
    }

    #[test]
    fn every_unknown_has_a_place_of_its_own() {
        for (components, degree) in [(1, 1), (1, 3), (2, 1), (3, 2), (9, 1)] {
            let on = on(degree, components);
            let (space, unknowns) = (&on.fields[0].space, on.n_dofs());
            let tiles = Layout::tiles(components);
            let anew = Layout::plain(components).in_strips(space, 1);
            let lines = tiles.clone().in_strips(space, degree + 1);
            let apart = tiles.clone().in_strips_apart(space, degree + 1);
            for layout in [Layout::plain(components), tiles, anew, lines, apart] {
                let mut seen = vec![false; layout.len(unknowns)];
                for unknown in 0..unknowns {
                    assert!(!std::mem::replace(&mut seen[layout.place(unknown)], true));
                }
                let numbers: Vec<f64> = (0..unknowns).map(|unknown| unknown as f64 + 1.0).collect();
                let entries = layout.spread(&numbers);
                assert_eq!(entries.iter().sum::<f64>(), numbers.iter().sum::<f64>());
                assert_eq!(layout.collect(&entries, unknowns), numbers);
                assert_eq!(layout.permutes(unknowns), !layout.is_plain());
                assert!(
                    !layout.permutes(unknowns - components) || layout.parts[0].numbers.is_none()
                );
                assert!(entries.len() < unknowns + components * TILE);
            }
        }
    }

    #[test]
    fn nodes_inside_come_last() {
        for components in [1, 3] {
            let on = on(3, components);
            let space = &on.fields[0].space;
            let plain = Layout::plain(components).in_strips(space, 4);
            let tiles = Layout::tiles(components).in_strips_apart(space, 4);
            let apart = Layout::plain(components).in_strips_apart(space, 4);
            assert_eq!((plain.entries_on_borders(), apart.permutes(on.n_dofs())), (None, true));
            // 16 cells a direction have 49 nodes, 16 · 2 of which are inside.
            let nodes = 49usize.pow(3) - 32usize.pow(3);
            assert_eq!(apart.entries_on_borders(), Some(nodes * components));
            let dims: Vec<usize> = space.element().nodes().iter().map(|node| node.dim).collect();
            for layout in [apart, tiles] {
                let end = layout.entries_on_borders().expect("they come last");
                assert!(end < (nodes + TILE) * components);
                for cell in space.nodes().chunks(dims.len()) {
                    for (&node, &dim) in cell.iter().zip(&dims) {
                        let place = layout.place(node as usize * components);
                        let (first, last) = (nodes * components, end);
                        assert!(if dim == 3 {
                            place >= first - TILE * components
                        } else {
                            place < last
                        });
                    }
                }
            }
        }
    }

    /// Each field fits by itself, and not all of them in one vector.
    #[test]
    fn fields_that_share_a_vector_are_counted_together() {
        let (velocity, pressure) = ((3, 3_600_000_000), (1, 600_000_000));
        assert_eq!(places(&[velocity, pressure], true), Ok(4_200_000_000));
        let pressure = (1, 700_000_000);
        let error = places(&[velocity, pressure], true).expect_err("too many");
        assert_eq!((error.unknowns, error.places), (4_300_000_000, 4_300_000_000));
        assert!(error.to_string().contains("4300000000 places"), "{error}");
        // Padding counts: to whole tiles, and to the beginning of the next field.
        let last = u32::MAX as usize;
        assert_eq!(places(&[(1, last - 1)], false), Ok(last - 1));
        assert!(places(&[(1, last)], false).is_err());
        assert!(places(&[(3, last - 1)], true).is_err());
        assert!(places(&[(1, 1), (1, last - 128)], false).is_err());
        assert!(places(&[(1, 1), (1, last - 129)], false).is_ok());
    }

    #[test]
    fn fields_lie_one_after_another() {
        let (vector, scalar) = (on(2, 3), on(1, 1));
        let of = |on: &Discretisation, components: usize| {
            (Layout::plain(components).in_strips(&on.fields[0].space, 1), on.n_dofs())
        };
        let layout = Layout::joined([of(&vector, 3), of(&scalar, 1)]);
        let unknowns = vector.n_dofs() + scalar.n_dofs();
        let numbers: Vec<f64> = (0..unknowns).map(|unknown| unknown as f64 + 1.0).collect();
        let entries = layout.spread(&numbers);
        assert_eq!(entries.iter().sum::<f64>(), numbers.iter().sum::<f64>());
        assert_eq!(layout.collect(&entries, unknowns), numbers);
        assert!(layout.permutes(unknowns) && !layout.permutes(unknowns - 1));
        assert!(layout.field(1).first().is_multiple_of(128) && !layout.is_plain());
        let mut ones = vec![1.0; layout.len(unknowns)];
        for (start, end) in layout.ends(unknowns, 1.0) {
            ones[start..start + end.len()].copy_from_slice(&end);
        }
        assert_eq!(ones, layout.spread(&vec![1.0; unknowns]));
        let (node, component) = (41, 2);
        assert_eq!(
            layout.place(3 * node + component),
            layout.field(0).index(node) + component * TILE
        );
        assert_eq!(layout.place(vector.n_dofs() + node), layout.field(1).index(node));
    }

    #[test]
    fn components_of_neighbours_lie_side_by_side() {
        let layout = Layout::tiles(3);
        assert_eq!(layout.place(3 * 7 + 2), layout.place(3 * 6 + 2) + 1);
        assert_eq!(layout.place(3 * 7 + 2), layout.place(3 * 7) + 2 * TILE);
        assert_eq!(Layout::plain(3).place(17), 17);
    }

    /// Sectors of 32 bytes that the threads of warps touch, on average, where thread i takes node i of what `of` gives.
    fn sectors(layout: &Layout, threads: &[u32]) -> f64 {
        let warps = threads.chunks_exact(32);
        let count = warps.len();
        let touched: usize = warps
            .map(|warp| {
                let mut sectors: Vec<usize> =
                    warp.iter().map(|&node| layout.place(node as usize) / 4).collect();
                sectors.sort_unstable();
                sectors.dedup();
                sectors.len()
            })
            .sum();
        touched as f64 / count as f64
    }

    #[test]
    fn warps_touch_few_sectors() {
        // A thread a cell, degree 2: node by node.
        let on = on(2, 1);
        let space = &on.fields[0].space;
        let mean = |layout: &Layout| {
            let of = |local: usize| -> Vec<u32> {
                space.nodes().iter().skip(local).step_by(27).copied().collect()
            };
            (0..27).map(|local| sectors(layout, &of(local))).sum::<f64>() / 27.0
        };
        let (before, after) =
            (mean(&Layout::plain(1)), mean(&Layout::plain(1).in_strips(space, 1)));
        assert!(after < 10.5 && before > 25.0, "{before} and {after} sectors");
    }
}
