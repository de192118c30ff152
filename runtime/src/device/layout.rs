//! Order of a field's degrees of freedom in device arrays.
//!
//! On the host, nodes are numbered entity by entity with interleaved components. On a device, the nodes of neighbouring
//! threads should be adjacent: threads that access 32 consecutive numbers touch 8 memory sectors, and 32 sectors if
//! these are scattered. Nodes are therefore renumbered ([`VectorLayout::in_strips`]), and multiple components are
//! stored in tiles ([`in_tiles`]). A [`VectorLayout`] converts between both orders for vectors and index lists. The
//! last tile has full length. Padding entries, in it or before the interior nodes of cells
//! ([`VectorLayout::in_separate_strips`]), are 0 and do not affect sums or solvers.

use crate::space::Space;
use crate::support::parallel::*;
use kernels_gen::abi::{TILE, in_tiles};
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

/// Cells whose nodes are numbered together: a warp.
const STRIP: usize = 32;

/// Smallest number of entries per thread.
const CHUNK: usize = 1 << 14;

/// Alignment of the fields in an array, in entries, for thread groups.
const PART: usize = 128;

/// Error of an array with more places than a 32-bit index can number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "the fields' {unknowns} unknowns share one vector on the device and take {places} places in it, more than the {} that \
     32-bit indices can number\nhelp: take a coarser mesh or a lower degree", u32::MAX - 1
)]
pub struct LayoutOverflow {
    /// The number of degrees of freedom of all fields.
    pub unknowns: usize,
    /// The number of places in the array, including padding.
    pub places: usize,
}

/// Returns the number of places of a vector of fields, each given by components and degrees of freedom.
///
/// # Errors
///
/// More places than index arrays can address; the largest index marks constrained entries.
pub fn places(fields: &[(usize, usize)], tiled: bool) -> Result<usize, LayoutOverflow> {
    let own = |&(components, unknowns): &(usize, usize)| {
        let layout =
            if tiled { VectorLayout::tiles(components) } else { VectorLayout::plain(components) };
        (layout, unknowns)
    };
    let unknowns = fields.iter().map(|(_, unknowns)| unknowns).sum();
    let places = VectorLayout::joined(fields.iter().map(own)).len(unknowns);
    if places < u32::MAX as usize { Ok(places) } else { Err(LayoutOverflow { unknowns, places }) }
}

/// Placement of the degrees of freedom of a field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FieldLayout {
    /// The number of components per node, stored in tiles if `tiled`.
    components: usize,
    /// True for tiles of components; false for interleaved components.
    tiled: bool,
    /// The new number of each node, if nodes are renumbered.
    numbers: Option<Arc<Vec<u32>>>,
    /// The number of node places before all interior nodes of cells; `None` if these are mixed with others.
    on_borders: Option<usize>,
    /// The number of degrees of freedom; `None` if the vector has only this field.
    unknowns: Option<usize>,
    /// The first entry of the field in the array.
    first: usize,
}

impl FieldLayout {
    /// Returns whether components are stored in tiles.
    pub fn is_tiled(&self) -> bool {
        self.tiled
    }

    /// Returns the number of components per node.
    pub fn components(&self) -> usize {
        self.components
    }

    /// Returns the number of consecutive entries of a component.
    pub fn tile(&self) -> usize {
        if self.tiled { TILE } else { 1 }
    }

    /// Returns the first entry of the field in the array.
    pub fn first(&self) -> usize {
        self.first
    }

    /// Returns whether index arrays of one placement are valid for the other.
    pub(crate) fn agrees(&self, other: &Self) -> bool {
        let numbers = match (&self.numbers, &other.numbers) {
            (Some(own), Some(other)) => Arc::ptr_eq(own, other),
            (own, other) => own.is_none() && other.is_none(),
        };
        let own = (self.components, self.tiled, self.first);
        numbers && own == (other.components, other.tiled, other.first)
    }

    /// Returns whether both placements agree up to their first entry.
    pub(crate) fn orders_as(&self, other: &Self) -> bool {
        self.agrees(&Self { first: self.first, ..other.clone() })
    }

    fn is_plain(&self) -> bool {
        !self.tiled && self.numbers.is_none() && self.first == 0
    }

    /// Returns the number of array entries for `unknowns` degrees of freedom.
    pub fn len(&self, unknowns: usize) -> usize {
        if !self.tiled {
            return unknowns;
        }
        unknowns.div_ceil(self.components * TILE) * self.components * TILE
    }

    /// Returns the new number of a node within the field.
    pub fn number(&self, node: usize) -> usize {
        self.numbers.as_ref().map_or(node, |numbers| numbers[node] as usize)
    }

    /// Returns the array entry of a degree of freedom of the field.
    pub fn place(&self, unknown: usize) -> usize {
        self.place_at(unknown / self.components, unknown % self.components)
    }

    /// Returns the array entry of a component at a node.
    pub(crate) fn place_at(&self, node: usize, component: usize) -> usize {
        let number = self.number(node);
        self.first
            + if self.tiled {
                in_tiles(number, self.components) + component * TILE
            } else {
                number * self.components + component
            }
    }

    /// Returns the entry of an index array for a node, from which kernels derive its components.
    pub fn index(&self, node: usize) -> usize {
        let number = self.number(node);
        self.first + if self.tiled { in_tiles(number, self.components) } else { number }
    }
}

/// Nodes that are numbered together.
struct NumberingTurn {
    /// Their first number.
    first: usize,
    /// Local nodes, ascending.
    locals: Vec<usize>,
    /// True if each node belongs to one cell.
    of_one_cell: bool,
}

/// Placement of the degrees of freedom of a vector.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VectorLayout {
    /// One placement per field.
    parts: Vec<FieldLayout>,
}

impl VectorLayout {
    /// Returns whether both layouts agree.
    pub(crate) fn agrees(&self, other: &Self) -> bool {
        let pairs = || self.parts.iter().zip(&other.parts);
        self.parts.len() == other.parts.len() && pairs().all(|(own, other)| own.agrees(other))
    }

    /// Creates the layout of one field with interleaved components and unchanged order.
    pub fn plain(components: usize) -> Self {
        let components = components.max(1);
        let (tiled, numbers, on_borders, unknowns, first) = (false, None, None, None, 0);
        Self {
            parts: vec![FieldLayout { components, tiled, numbers, on_borders, unknowns, first }],
        }
    }

    /// Creates the layout of one field with tiles of components.
    pub fn tiles(components: usize) -> Self {
        let mut layout = Self::plain(components);
        layout.parts.iter_mut().for_each(|part| part.tiled = components > 1);
        layout
    }

    /// Creates the layout of one field with the placement of a field of another vector.
    pub fn like(part: &FieldLayout) -> Self {
        Self { parts: vec![FieldLayout { unknowns: None, first: 0, ..part.clone() }] }
    }

    /// Returns whether the first fields of this layout have the layout `other`.
    pub fn begins_as(&self, other: &Self) -> bool {
        let mut parts = self.parts.iter().zip(&other.parts);
        other.parts.len() <= self.parts.len() && parts.all(|(own, other)| own.agrees(other))
    }

    /// Concatenates fields, each with its number of degrees of freedom. With several fields, multiple components are
    /// tiled, so that a node has one index.
    pub fn joined(fields: impl IntoIterator<Item = (Self, usize)>) -> Self {
        let mut fields: Vec<(Self, usize)> = fields.into_iter().collect();
        if fields.len() == 1 {
            return fields.swap_remove(0).0;
        }
        let (mut parts, mut first) = (Vec::new(), 0);
        for (layout, unknowns) in fields {
            for part in layout.parts {
                let tiled = part.components > 1;
                let part = FieldLayout { tiled, unknowns: Some(unknowns), first, ..part };
                first += part.len(unknowns).next_multiple_of(PART);
                parts.push(part);
            }
        }
        Self { parts }
    }

    /// Renumbers the nodes by first touch, 32 cells at a time: first `together` nodes of each cell, then the next
    /// `together`, and so on. With 1, threads of neighbouring cells access adjacent nodes; with the nodes of a line in
    /// the first direction, threads of neighbouring lines do.
    pub fn in_strips(self, space: &Space, together: usize) -> Self {
        let all = (0..space.nodes_per_cell()).collect();
        let turn = NumberingTurn { first: 0, locals: all, of_one_cell: false };
        let beyond = space.new_beyond().start;
        self.numbered(space, together, &[turn], beyond)
    }

    /// Like [`in_strips`](Self::in_strips), with the interior nodes of cells after all others. Kernels store interior
    /// entries and add to the others only.
    pub fn in_separate_strips(self, space: &Space, together: usize) -> Self {
        let element = space.element();
        let dim = element.cell().dim();
        let owners = element.owner_dims();
        let (inside, border): (Vec<usize>, Vec<usize>) =
            (0..space.nodes_per_cell()).partition(|&local| owners[local] == dim);
        let own = element.entity_count(dim);
        let cells = space.nodes().len() / space.nodes_per_cell();
        // The padding of the last tile comes before them, so that it is cleared with the others.
        let tiled = self.parts.iter().any(|part| part.tiled);
        let spare =
            if tiled { space.n_nodes().next_multiple_of(TILE) - space.n_nodes() } else { 0 };
        let on_borders = space.n_nodes() - cells * own + spare;
        let turns = [
            NumberingTurn { first: 0, locals: border, of_one_cell: false },
            NumberingTurn { first: on_borders, locals: inside, of_one_cell: true },
        ];
        let beyond = on_borders - spare - space.new_beyond().len();
        let mut layout = self.numbered(space, together, &turns, beyond);
        layout.parts.iter_mut().for_each(|part| part.on_borders = Some(on_borders));
        layout
    }

    /// Numbers nodes by first touch, strip by strip. Strips are processed in parallel: each node gets its first strip,
    /// then a number in it, then the strip's offset. Nodes of one cell have a known number at once. New ones of cells
    /// beyond a part have numbers from `beyond` on.
    fn numbered(
        mut self,
        space: &Space,
        together: usize,
        turns: &[NumberingTurn],
        beyond: usize,
    ) -> Self {
        let (nodes, together) = (space.nodes_per_cell(), together.max(1));
        let strips = || space.nodes().par_chunks(STRIP * nodes).zip(0..u32::MAX);
        let numbers = filled_atomics(space.n_nodes(), u32::MAX);
        let strip_of = filled_atomics(space.n_nodes(), u32::MAX);
        for NumberingTurn { first, locals, of_one_cell } in turns {
            let lines = || locals.chunk_by(|a, b| a / together == b / together);
            if *of_one_cell {
                strips().each(|(strip_nodes, strip)| {
                    let mut next = (first + strip as usize * STRIP * locals.len()) as u32;
                    for line in lines() {
                        for cell in strip_nodes.chunks(nodes) {
                            for &local in line {
                                numbers[cell[local] as usize].store(next, Relaxed);
                                next += 1;
                            }
                        }
                    }
                });
                continue;
            }
            strips().each(|(strip_nodes, strip)| {
                for cell in strip_nodes.chunks(nodes) {
                    for of in locals.iter().map(|&local| &strip_of[cell[local] as usize]) {
                        // A load is cheaper, and most nodes have their first strip already.
                        if of.load(Relaxed) > strip {
                            of.fetch_min(strip, Relaxed);
                        }
                    }
                }
            });
            let count = |(strip_nodes, strip): (&[u32], u32)| {
                let mut next = 0;
                for line in lines() {
                    for cell in strip_nodes.chunks(nodes) {
                        for &local in line {
                            let node = cell[local] as usize;
                            let number = &numbers[node];
                            // Only this strip writes its nodes.
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
            let starts = counts.iter().scan(*first as u32, |next, &count| {
                let own = *next;
                *next += count;
                Some(own)
            });
            let starts: Vec<u32> = starts.collect();
            // Numbered nodes leave their strip.
            let each = numbers.par_iter().zip(&strip_of).with_min_len(CHUNK);
            each.each(|(number, of)| {
                let strip = of.load(Relaxed);
                if strip != u32::MAX {
                    of.store(u32::MAX, Relaxed);
                    number.store(number.load(Relaxed) + starts[strip as usize], Relaxed);
                }
            });
        }
        let mut numbers = plain_numbers(numbers);
        for (node, number) in space.new_beyond().zip(beyond as u32..) {
            numbers[node] = number;
        }
        let numbers = Arc::new(numbers);
        self.parts.iter_mut().for_each(|part| part.numbers = Some(Arc::clone(&numbers)));
        self
    }

    /// Returns the number of leading entries before the interior nodes of cells; `None` if these are mixed with others.
    pub fn entries_on_borders(&self) -> Option<usize> {
        let [part] = &self.parts[..] else { return None };
        part.on_borders.map(|nodes| part.len(nodes * part.components))
    }

    /// Returns the placement of a field.
    ///
    /// # Panics
    ///
    /// There is no such field.
    pub fn field(&self, field: usize) -> &FieldLayout {
        &self.parts[field]
    }

    /// Returns the field with the given range of degrees of freedom, if any; `unknowns` is the total number.
    pub fn field_of(&self, range: &Range<usize>, unknowns: usize) -> Option<&FieldLayout> {
        let mut start = 0;
        self.parts.iter().find(|part| {
            let own = start..start + part.unknowns.unwrap_or(unknowns);
            start = own.end;
            own == *range
        })
    }

    /// Returns whether the order is that of the host.
    pub fn is_plain(&self) -> bool {
        self.parts.iter().all(FieldLayout::is_plain)
    }

    /// Returns whether vectors of this length have another order than on the host. Vectors that belong to no field of
    /// this layout do not.
    pub fn permutes(&self, unknowns: usize) -> bool {
        let own = |part: &FieldLayout| match (part.unknowns, &part.numbers) {
            (Some(unknowns), _) => Some(unknowns),
            (None, Some(numbers)) => Some(numbers.len() * part.components),
            (None, None) => None,
        };
        let known: Option<usize> = self.parts.iter().map(own).sum();
        !self.is_plain() && known.is_none_or(|known| known == unknowns)
    }

    /// Returns the number of array entries for `unknowns` degrees of freedom.
    pub fn len(&self, unknowns: usize) -> usize {
        match self.parts.last() {
            Some(FieldLayout { unknowns: None, .. }) | None => {
                self.parts.last().map_or(unknowns, |part| part.len(unknowns))
            }
            Some(part) => part.first + part.len(part.unknowns.unwrap_or(unknowns)),
        }
    }

    /// Returns the array entry of a degree of freedom.
    pub fn place(&self, mut unknown: usize) -> usize {
        for part in &self.parts {
            match part.unknowns {
                Some(own) if unknown >= own => unknown -= own,
                _ => return part.place(unknown),
            }
        }
        usize::MAX
    }

    /// Converts a host vector to array order; padding is 0.
    pub fn spread(&self, numbers: &[f64]) -> Vec<f64> {
        let bits = || AtomicU64::new(0.0_f64.to_bits());
        let entries = (0..self.len(numbers.len())).into_par_iter().with_min_len(CHUNK);
        let entries: Vec<AtomicU64> = entries.map(|_| bits()).collect();
        let all = numbers.par_iter().enumerate().with_min_len(CHUNK);
        all.each(|(unknown, number)| entries[self.place(unknown)].store(number.to_bits(), Relaxed));
        let entries = entries.into_par_iter().with_min_len(CHUNK);
        entries.map(|entry| f64::from_bits(entry.into_inner())).collect()
    }

    /// Returns the entries that belong to no degree of freedom.
    pub fn padding(&self, unknowns: usize) -> Vec<Range<usize>> {
        let ends = self.parts.iter().skip(1).map(FieldLayout::first).chain([self.len(unknowns)]);
        let mut padding = Vec::new();
        for (part, end) in self.parts.iter().zip(ends) {
            let own = part.unknowns.unwrap_or(unknowns);
            let (nodes, components) = (own / part.components, part.components);
            let spare = if part.tiled { nodes.next_multiple_of(TILE) - nodes } else { 0 };
            let mut number = part.on_borders.map_or(nodes, |on_borders| on_borders - spare);
            let last = number + spare;
            while number < last {
                let count = (TILE - number % TILE).min(last - number);
                for component in 0..components {
                    let place = part.first + in_tiles(number, components) + component * TILE;
                    padding.push(place..place + count);
                }
                number += count;
            }
            padding.push(part.first + part.len(own)..end);
        }
        padding.retain(|range| !range.is_empty());
        padding
    }

    /// Converts the first `unknowns` entries from array order; empty if the array is too short.
    pub fn collect(&self, entries: &[f64], unknowns: usize) -> Vec<f64> {
        if entries.len() < self.len(unknowns) {
            return Vec::new();
        }
        let all = (0..unknowns).into_par_iter().with_min_len(CHUNK);
        all.map(|unknown| entries[self.place(unknown)]).collect()
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

    /// Returns a box of hexahedra with a space of given degree.
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
            let tiles = VectorLayout::tiles(components);
            let strips = VectorLayout::plain(components).in_strips(space, 1);
            let lines = tiles.clone().in_strips(space, degree + 1);
            let separate = tiles.clone().in_separate_strips(space, degree + 1);
            for layout in [VectorLayout::plain(components), tiles, strips, lines, separate] {
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

    /// Returns ones with 0 in padding.
    fn without_padding(layout: &VectorLayout, unknowns: usize) -> Vec<f64> {
        let mut ones = vec![1.0; layout.len(unknowns)];
        layout.padding(unknowns).into_iter().for_each(|range| ones[range].fill(0.0));
        ones
    }

    #[test]
    fn nodes_inside_come_last() {
        for components in [1, 3] {
            let on = on(3, components);
            let space = &on.fields[0].space;
            let plain = VectorLayout::plain(components).in_strips(space, 4);
            let tiles = VectorLayout::tiles(components).in_separate_strips(space, 4);
            let separate = VectorLayout::plain(components).in_separate_strips(space, 4);
            assert_eq!((plain.entries_on_borders(), separate.permutes(on.n_dofs())), (None, true));
            // 16 cells per direction have 49 nodes, 16 · 2 of which are interior.
            let nodes = 49usize.pow(3) - 32usize.pow(3);
            assert_eq!(separate.entries_on_borders(), Some(nodes * components));
            let dims: Vec<usize> = space.nodal().nodes().iter().map(|node| node.dim).collect();
            for layout in [separate, tiles] {
                let unknowns = on.n_dofs();
                assert_eq!(without_padding(&layout, unknowns), layout.spread(&vec![1.0; unknowns]));
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

    /// Each field fits alone, but not all in one vector.
    #[test]
    fn fields_that_share_a_vector_are_counted_together() {
        let (velocity, pressure) = ((3, 3_600_000_000), (1, 600_000_000));
        assert_eq!(places(&[velocity, pressure], true), Ok(4_200_000_000));
        let pressure = (1, 700_000_000);
        let error = places(&[velocity, pressure], true).expect_err("too many");
        assert_eq!((error.unknowns, error.places), (4_300_000_000, 4_300_000_000));
        assert!(error.to_string().contains("4300000000 places"), "{error}");
        // Padding counts: to whole tiles, and to the start of the next field.
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
            (VectorLayout::plain(components).in_strips(&on.fields[0].space, 1), on.n_dofs())
        };
        let layout = VectorLayout::joined([of(&vector, 3), of(&scalar, 1)]);
        let unknowns = vector.n_dofs() + scalar.n_dofs();
        let numbers: Vec<f64> = (0..unknowns).map(|unknown| unknown as f64 + 1.0).collect();
        let entries = layout.spread(&numbers);
        assert_eq!(entries.iter().sum::<f64>(), numbers.iter().sum::<f64>());
        assert_eq!(layout.collect(&entries, unknowns), numbers);
        assert!(layout.permutes(unknowns) && !layout.permutes(unknowns - 1));
        assert!(layout.field(1).first().is_multiple_of(128) && !layout.is_plain());
        assert_eq!(without_padding(&layout, unknowns), layout.spread(&vec![1.0; unknowns]));
        let (node, component) = (41, 2);
        assert_eq!(
            layout.place(3 * node + component),
            layout.field(0).index(node) + component * TILE
        );
        assert_eq!(layout.place(vector.n_dofs() + node), layout.field(1).index(node));
    }

    #[test]
    fn components_of_neighbours_lie_side_by_side() {
        let layout = VectorLayout::tiles(3);
        assert_eq!(layout.place(3 * 7 + 2), layout.place(3 * 6 + 2) + 1);
        assert_eq!(layout.place(3 * 7 + 2), layout.place(3 * 7) + 2 * TILE);
        assert_eq!(VectorLayout::plain(3).place(17), 17);
    }

    /// Returns the average number of 32-byte sectors per warp if thread i accesses node `threads[i]`.
    fn sectors(layout: &VectorLayout, threads: &[u32]) -> f64 {
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
        // One thread per cell, degree 2, node by node.
        let on = on(2, 1);
        let space = &on.fields[0].space;
        let mean = |layout: &VectorLayout| {
            let of = |local: usize| -> Vec<u32> {
                space.nodes().iter().skip(local).step_by(27).copied().collect()
            };
            (0..27).map(|local| sectors(layout, &of(local))).sum::<f64>() / 27.0
        };
        let (before, after) =
            (mean(&VectorLayout::plain(1)), mean(&VectorLayout::plain(1).in_strips(space, 1)));
        assert!(after < 10.5 && before > 25.0, "{before} and {after} sectors");
    }
}
