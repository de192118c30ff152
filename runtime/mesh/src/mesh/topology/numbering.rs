//! Numbers of edges and faces by first touch in cell order, found by all threads.
//!
//! A place is a local entity of a cell. A range of vertices has the entities with their smallest vertex in it, and visits
//! places in order: the first place of an entity is known without the other ranges.

use super::{CellVertices, Entities};
use crate::mesh::first_places::FirstPlaceRanks;
use crate::support::parallel::*;
use std::collections::HashMap;
use std::ops::Range;
use std::sync::atomic::{AtomicU8, AtomicU32, Ordering::Relaxed};

/// Cells whose vertices are compared with the ranges at once.
const CHUNK: usize = 256;

/// The largest number of ranges: bits of a word.
const RANGES: usize = u64::BITS as usize;

/// Marks the end of a list.
const NONE: u32 = u32::MAX;

/// Length of a full list.
pub(super) const FULL: usize = 64;

/// Numbers entities of K vertices, given by their local vertices.
pub(super) fn number<const K: usize>(locals: &[&[usize]], cells: CellVertices<'_>) -> Entities {
    let locals: Vec<[usize; K]> =
        locals.iter().map(|own| std::array::from_fn(|i| own[i])).collect();
    // All threads take 1.5 times the processor time of one. Edges and faces are numbered at the same time.
    if rayon::current_num_threads() <= 2 {
        number_in_order(&locals, cells)
    } else {
        number_by_ranges(&locals, cells)
    }
}

/// Numbers entities by one thread. Those with one smallest vertex are a list, newest first. Entities that a full list does not
/// take are in the list of their largest vertex.
fn number_in_order<const K: usize>(locals: &[[usize; K]], cells: CellVertices<'_>) -> Entities {
    let n_places = cells.len() * locals.len();
    // Half of the places of facets are new, and fewer of other edges.
    let capacity = n_places / if K == 2 { 3 } else { 2 };
    let mut own = Entities::with(locals.len(), K);
    own.of_cell.reserve_exact(n_places);
    own.vertices.reserve(capacity * K);
    own.cells.reserve(capacity);
    own.first.reserve(capacity);
    let (mut by_smallest, mut by_largest) = (vec![NONE; cells.n_vertices], Vec::new());
    // Vertices and next entity.
    let mut lists: Vec<([u32; K], u32)> = Vec::with_capacity(capacity);
    for cell in 0..cells.len() {
        let vertices = cells.of(cell);
        for local in locals {
            let here = local.map(|vertex| vertices[vertex]);
            let key = ascending(here);
            let find = |newest: u32| {
                let (mut entity, mut passed) = (newest, 0);
                while entity != NONE && lists[entity as usize].0 != key {
                    (entity, passed) = (lists[entity as usize].1, passed + 1);
                }
                (entity, passed)
            };
            let mut newest = &mut by_smallest[key[0] as usize];
            let (mut entity, passed) = find(*newest);
            if entity == NONE && passed == FULL {
                by_largest.resize(cells.n_vertices, NONE);
                newest = &mut by_largest[key[K - 1] as usize];
                entity = find(*newest).0;
            }
            if entity == NONE {
                entity = lists.len() as u32;
                lists.push((key, *newest));
                *newest = entity;
                own.push(entity, Some(here.into_iter()));
            } else {
                own.push(entity, None::<std::iter::Empty<u32>>);
            }
        }
    }
    own
}

/// Numbers entities by all threads.
fn number_by_ranges<const K: usize>(locals: &[[usize; K]], cells: CellVertices<'_>) -> Entities {
    let ranges = VertexRanges::new(cells);
    let (n, n_places) = (locals.len(), cells.len() * locals.len());
    let places = Places { cells, locals, first: filled_atomics(n_places, 0) };
    let found = (0..ranges.count).into_par_iter();
    let found: Vec<_> = found.map(|range| places.find(&ranges, range)).listed();
    let mut of_cell = plain_numbers(places.first);
    let numbers = FirstPlaceRanks::new([n_places, 1], |place, _| of_cell[place] as usize == place);
    of_cell.par_iter_mut().with_min_len(CHUNK).each(|place| *place = numbers.of(*place));
    let shared = (0..numbers.count()).into_par_iter().with_min_len(CHUNK);
    let shared: Vec<AtomicU8> = shared.map(|_| AtomicU8::new(0)).collect();
    found.into_par_iter().each(|found| {
        for entity in found {
            shared[numbers.of(entity.place) as usize].store(entity.key[0] as u8, Relaxed);
        }
    });
    let shared = shared.into_par_iter().map(AtomicU8::into_inner).collect();
    let first = numbers.listed(1, |place, own| own[0] = place as u32);
    let vertices = numbers.listed(K, |place, own| {
        let all = cells.of(place / n);
        own.copy_from_slice(&locals[place % n].map(|vertex| all[vertex]));
    });
    Entities { per_cell: n, vertices_per_entity: K, of_cell, vertices, cells: shared, first }
}

/// Equal ranges of vertices, and the chunks of cells with a vertex in each.
struct VertexRanges {
    count: usize,
    length: usize,
    n_vertices: usize,
    /// For each chunk, a bit for each range.
    touched: Vec<u64>,
}

impl VertexRanges {
    fn new(cells: CellVertices<'_>) -> Self {
        let count = (4 * rayon::current_num_threads()).min(RANGES);
        let length = cells.n_vertices.div_ceil(count).max(1);
        let touched = |chunk: &[u32]| {
            chunk.iter().fold(0, |ranges, &vertex| ranges | 1 << (vertex as usize / length))
        };
        let chunks = cells.vertices.par_chunks(CHUNK * cells.per_cell);
        let touched = chunks.map(touched).listed();
        Self { count, length, n_vertices: cells.n_vertices, touched }
    }

    fn vertices(&self, range: usize) -> Range<usize> {
        let bound = |range: usize| (range * self.length).min(self.n_vertices);
        bound(range)..bound(range + 1)
    }

    /// Returns the cells that may have vertices of a range.
    fn cells(&self, range: usize, n_cells: usize) -> impl Iterator<Item = usize> {
        let chunks = self.touched.iter().enumerate();
        let chunks = chunks.filter(move |(_, ranges)| *ranges >> range & 1 == 1);
        chunks.flat_map(move |(chunk, _)| chunk * CHUNK..((chunk + 1) * CHUNK).min(n_cells))
    }
}

/// An entity of a range of vertices.
struct FoundEntity<const K: usize> {
    /// Its vertices, ascending. In place of the smallest is the number of its cells, at most 255.
    key: [u32; K],
    /// Its first place.
    place: u32,
    /// The next entity with the same smallest vertex.
    next: u32,
}

/// Places of all cells, with the first place of the same entity.
struct Places<'a, const K: usize> {
    cells: CellVertices<'a>,
    locals: &'a [[usize; K]],
    first: Vec<AtomicU32>,
}

impl<const K: usize> Places<'_, K> {
    /// Finds the entities of a range of vertices, and the first place of each of their places. Those with one smallest vertex
    /// are a list, newest first; a map has entities of full lists.
    fn find(&self, ranges: &VertexRanges, range: usize) -> Vec<FoundEntity<K>> {
        let vertices = ranges.vertices(range);
        // Half of the places of facets are first places, and fewer of other edges.
        let capacity = self.first.len() / if K == 2 { 3 } else { 2 } / ranges.count;
        let mut found: Vec<FoundEntity<K>> = Vec::with_capacity(capacity);
        let mut newest = vec![NONE; vertices.len()];
        let mut beyond = HashMap::new();
        for cell in ranges.cells(range, self.cells.len()) {
            let (all, first) = (self.cells.of(cell), cell * self.locals.len());
            for (local, place) in self.locals.iter().zip(first..) {
                let mut key = ascending(local.map(|vertex| all[vertex]));
                let Some(newest) = newest.get_mut((key[0] as usize).wrapping_sub(vertices.start))
                else {
                    continue;
                };
                let (mut entity, mut passed) = (*newest, 0);
                while entity != NONE && found[entity as usize].key[1..] != key[1..] {
                    (entity, passed) = (found[entity as usize].next, passed + 1);
                }
                let next = found.len() as u32;
                if entity == NONE && passed == FULL {
                    entity = beyond_full(&mut beyond, key, next);
                } else if entity == NONE {
                    entity = next;
                }
                if entity == next {
                    key[0] = 0;
                    found.push(FoundEntity { key, place: place as u32, next: *newest });
                    *newest = if passed < FULL { next } else { *newest };
                }
                let entity = &mut found[entity as usize];
                entity.key[0] = (entity.key[0] + 1).min(u8::MAX.into());
                self.first[place].store(entity.place, Relaxed);
            }
        }
        found
    }
}

/// Returns an entity of a full list: `next` if it is new.
#[cold]
fn beyond_full<const K: usize>(all: &mut HashMap<[u32; K], u32>, key: [u32; K], next: u32) -> u32 {
    *all.entry(key).or_insert(next)
}

/// Sorts a few numbers.
fn ascending<const K: usize>(mut key: [u32; K]) -> [u32; K] {
    for end in (1..K).rev() {
        for i in 0..end {
            (key[i], key[i + 1]) = (key[i].min(key[i + 1]), key[i].max(key[i + 1]));
        }
    }
    key
}

#[cfg(test)]
mod tests {
    use super::super::faces;
    use super::*;
    use kernels_gen::element::Cell;

    fn assert_same<const K: usize>(locals: &[&[usize]], cells: CellVertices<'_>) {
        let locals: Vec<[usize; K]> =
            locals.iter().map(|own| own[..].try_into().expect("K")).collect();
        assert_eq!(number_by_ranges(&locals, cells), number_in_order(&locals, cells));
    }

    #[test]
    fn ranges_find_the_numbers_of_one_thread() {
        // Cells with pseudo-random vertices, few enough to meet, and a fan with full lists.
        for (cell, n_vertices) in
            [(Cell::Hexahedron, 12), (Cell::Tetrahedron, 40), (Cell::Triangle, 3000)]
        {
            let mut state = 7_u64;
            let mut random = || {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                (state >> 33) as usize
            };
            let mut vertices = Vec::new();
            for _ in 0..3 * CHUNK + 17 {
                let mut own: Vec<u32> = vec![(random() % 2) as u32 * (n_vertices - 1)];
                while own.len() < cell.vertex_count() {
                    let vertex = (random() % n_vertices as usize) as u32;
                    if !own.contains(&vertex) {
                        own.push(vertex);
                    }
                }
                vertices.append(&mut own);
            }
            let per_cell = cell.vertex_count();
            let cells =
                CellVertices { vertices: &vertices, per_cell, n_vertices: n_vertices as usize };
            for threads in [1, 2, 5] {
                let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build();
                pool.expect("a pool").install(|| {
                    assert_same::<2>(cell.entities(1), cells);
                    match cell {
                        Cell::Hexahedron => assert_same::<4>(faces(cell), cells),
                        Cell::Tetrahedron => assert_same::<3>(faces(cell), cells),
                        _ => {}
                    }
                });
            }
        }
    }
}
