//! Numbering of the vertices, edges and faces of leaves; hanging entities get the numbers of the parent's.
//!
//! An entity of given dimension is identified by its midpoint, in units of 2⁻³¹ of its tree. Relative to the lowest bit
//! set in any coordinate, the odd coordinates are those along the entity, so midpoints are unique. Positions on a
//! vertex, edge or face of the coarse mesh use that entity's frame, on which all trees around it agree, also across
//! periodic sides:
//!
//! ```text
//! bit 126 …   the dimension of the coarse entity
//! bit 94 …    its number
//! bit 62, 31, 0 …   the coordinates in its frame, in units of 2⁻³¹
//! ```
//!
//! Numbers are assigned by first touch in leaf order.

use super::key::{CellKey, UNITS};
use super::lattice::corners;
use crate::mesh::distributed::SharedEntityCollector;
use crate::mesh::hanging::bits;
use crate::mesh::topology::{Entities, EntityOrientations};
use crate::mesh::{Cell, MeshError, Topology, index};
use crate::support::parallel::*;

/// Units per tree edge for midpoints.
const WHOLE: u32 = 2 * UNITS;

/// Frames of the entities of a coarse mesh.
pub(super) struct EntityFrames<'a> {
    topology: &'a Topology,
    /// Dimension and number of the sub-entity, for each choice of 0, 1 or interior per axis.
    corners: Vec<(usize, usize)>,
}

/// Position of a leaf's entity, with the orientation of its frame in the tree.
#[derive(Clone, Copy, Debug)]
struct EntityPosition {
    key: u128,
    /// The dimension and the orientation of the coarse entity, and the free axes of the tree on it.
    of: usize,
    seen: u8,
    axes: [u8; 2],
}

impl EntityPosition {
    /// Returns the coarse entity (dimension and number), and the position in its frame.
    fn on(&self) -> ((usize, u32), [u32; 3]) {
        let coordinate = |shift: u32| (self.key >> shift) as u32 & (WHOLE - 1);
        ((self.of, (self.key >> 94) as u32), [62, 31, 0].map(coordinate))
    }
}

impl<'a> EntityFrames<'a> {
    pub(super) fn new(topology: &'a Topology) -> Self {
        Self { topology, corners: corners(topology.cell()) }
    }

    /// Returns the position of a point of a tree.
    fn place(&self, tree: u32, at: [u32; 3]) -> EntityPosition {
        let (topology, dim, cell) = (self.topology, self.topology.cell().dim(), tree as usize);
        let (mut slot, mut free, mut axes, mut count) = (0, [0u32; 3], [0u8; 2], 0);
        for axis in (0..dim).rev() {
            let part = match at[axis] {
                0 => 0,
                WHOLE => 1,
                _ => 2,
            };
            slot = 3 * slot + part;
        }
        for axis in (0..dim).filter(|&axis| at[axis] != 0 && at[axis] != WHOLE) {
            free[count] = at[axis];
            if let Some(own) = axes.get_mut(count) {
                *own = axis as u8;
            }
            count += 1;
        }
        let (of, local) = self.corners[slot];
        let (entity, seen, [s, t, r]) = match of {
            0 => (topology.vertices(cell)[local], 0, [0; 3]),
            _ if of == dim => (tree, 0, free),
            1 => {
                let reversed = topology.edge_reversed(cell, local);
                let along = if reversed { WHOLE - free[0] } else { free[0] };
                (topology.edges().of_cell(cell)[local], u8::from(reversed), [along, 0, 0])
            }
            _ => {
                let seen = topology.face_orientation(cell, local);
                let [mut s, mut t, _] = free;
                if seen & 1 == 1 {
                    (s, t) = (t, s);
                }
                s = if seen & 2 == 2 { WHOLE - s } else { s };
                t = if seen & 4 == 4 { WHOLE - t } else { t };
                (topology.faces().of_cell(cell)[local], seen, [s, t, 0])
            }
        };
        let coordinates = u128::from(s) << 62 | u128::from(t) << 31 | u128::from(r);
        let key = (of as u128) << 126 | u128::from(entity) << 94 | coordinates;
        EntityPosition { key, of, seen, axes }
    }

    /// Returns the key of a point inside a tree.
    fn inside(&self, tree: u32, [s, t, r]: [u32; 3]) -> u128 {
        let coordinates = u128::from(s) << 62 | u128::from(t) << 31 | u128::from(r);
        (self.topology.cell().dim() as u128) << 126 | u128::from(tree) << 94 | coordinates
    }

    /// Returns the orientation of a leaf's edge or face along some axes, at a known position.
    fn orientation(&self, place: &EntityPosition, along: [Option<usize>; 2]) -> u8 {
        let dim = self.topology.cell().dim();
        if place.of == dim || place.seen == 0 {
            return 0;
        }
        match (place.of, along) {
            // The orientation of the coarse edge or face itself, whose axes are the leaf's.
            (1, [Some(_), None]) | (2, [Some(_), Some(_)]) => place.seen,
            // An edge inside a face, along the face's first or second axis in the tree.
            (2, [Some(axis), None]) => {
                let second = usize::from(place.axes[1]) == axis;
                // Bit 0 exchanges the axes before the other bits mirror them.
                let to = usize::from(second) ^ usize::from(place.seen & 1);
                place.seen >> (1 + to) & 1
            }
            _ => 0,
        }
    }
}

/// The extent of an entity in a cell: per axis 0, 1 or between.
#[derive(Clone, Copy)]
struct EntityExtent {
    low: [u8; 3],
    along: [bool; 3],
}

/// Returns the entities of a dimension of a cell.
fn spans(cell: Cell, dim: usize) -> Vec<EntityExtent> {
    let of = |vertices: &&[usize]| {
        let first = vertices[0];
        let spanned = vertices.iter().fold(0, |bits, v| bits | (v ^ first));
        EntityExtent {
            low: [0, 1, 2].map(|axis| (first >> axis & 1) as u8),
            along: [0, 1, 2].map(|axis| spanned >> axis & 1 == 1),
        }
    };
    cell.entities(dim).iter().map(of).collect()
}

/// Midpoints of the entities of one dimension: those of the leaf, or of its parent if they hang.
struct Midpoints {
    spans: Vec<(EntityExtent, u32)>,
}

impl Midpoints {
    fn new(cell: Cell, dim: usize) -> Self {
        let own = spans(cell, dim);
        let with_bits = |span: EntityExtent| {
            let end = |axis: usize| (!span.along[axis]).then_some(usize::from(span.low[axis]));
            (span, bits([0, 1, 2].map(end), cell.dim()))
        };
        Self { spans: own.into_iter().map(with_bits).collect() }
    }

    /// Returns the midpoint of an entity of a leaf.
    fn of(&self, local: usize, word: u32, corner: [u32; 3], size: u32) -> [u32; 3] {
        let (span, bits) = &self.spans[local];
        let hangs = word & bits != 0;
        [0, 1, 2].map(|axis| {
            let (low, size) = match hangs {
                // The parent's corner is below that of an upper child.
                true => (corner[axis] - size * (word >> axis & 1), 2 * size),
                false => (corner[axis], size),
            };
            let doubled =
                if span.along[axis] { size } else { 2 * size * u32::from(span.low[axis]) };
            2 * low + doubled
        })
    }
}

/// Hash table from keys to numbers by first touch. A slot stores bits of the key's hash, which distinguish most keys,
/// and the number plus one. Keys are stored by number, so that recent ones are close in memory.
struct NumberTable {
    slots: Vec<u64>,
    keys: Vec<u128>,
}

impl NumberTable {
    fn new(expected: usize) -> Self {
        let len = (2 * expected).next_power_of_two().max(16);
        Self { slots: vec![0; len], keys: Vec::with_capacity(expected) }
    }

    /// Returns the number of a key, and whether it is new.
    fn number(&mut self, key: u128) -> (u32, bool) {
        if 2 * self.keys.len() >= self.slots.len() {
            self.grow();
        }
        match self.look_up(key) {
            Ok(number) => (number, false),
            Err(free) => {
                let number = self.keys.len() as u32;
                self.slots[free] = hash(key) & TAG | u64::from(number + 1);
                self.keys.push(key);
                (number, true)
            }
        }
    }

    /// Returns the number of a known key.
    fn find(&self, key: u128) -> Option<u32> {
        self.look_up(key).ok()
    }

    /// Returns the number of a key, or the free slot for it.
    fn look_up(&self, key: u128) -> Result<u32, usize> {
        let (hash, mask) = (hash(key), self.slots.len() - 1);
        let tag = hash & TAG;
        let mut at = hash as usize & mask;
        loop {
            let slot = self.slots[at];
            if slot == 0 {
                return Err(at);
            }
            let number = (slot & !TAG) as u32 - 1;
            if slot & TAG == tag && self.keys[number as usize] == key {
                return Ok(number);
            }
            at = (at + 1) & mask;
        }
    }

    fn grow(&mut self) {
        let (len, mask) = (2 * self.slots.len(), 2 * self.slots.len() - 1);
        self.slots = vec![0; len];
        for (number, &key) in self.keys.iter().enumerate() {
            let hash = hash(key);
            let mut at = hash as usize & mask;
            while self.slots[at] != 0 {
                at = (at + 1) & mask;
            }
            self.slots[at] = hash & TAG | (number as u64 + 1);
        }
    }

    fn count(&self) -> usize {
        self.keys.len()
    }
}

/// The bits of a slot that store the hash.
const TAG: u64 = !0 << 32;

fn hash(key: u128) -> u64 {
    let mixed = (key as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ (key >> 64) as u64;
    let mixed = (mixed ^ mixed >> 32).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed ^ mixed >> 29
}

/// Leaves of a forest: keys, lower corners and hanging words.
pub(super) struct LeafArrays<'a> {
    pub(super) keys: &'a [CellKey],
    pub(super) corners: &'a [[u32; 3]],
    /// Empty if nothing hangs.
    pub(super) words: &'a [u32],
}

impl LeafArrays<'_> {
    /// Returns whether no entity of a leaf, or of its parent if something hangs, lies on a side of its tree.
    fn is_inside(&self, leaf: usize, word: u32, dim: usize) -> bool {
        let level = self.keys[leaf].level() - u32::from(word != 0);
        let size = UNITS >> level;
        self.corners[leaf][..dim].iter().all(|&at| {
            let low = at & !(size - 1);
            low != 0 && low + size != UNITS
        })
    }

    /// Returns the positions of all entities of a dimension.
    fn places(&self, frames: &EntityFrames<'_>, dim: usize) -> Vec<(u128, u8)> {
        let cell = frames.topology.cell();
        let middles = Midpoints::new(cell, dim);
        let each = middles.spans.len();
        let along: Vec<[Option<usize>; 2]> = middles
            .spans
            .iter()
            .map(|(span, _)| {
                let mut axes = (0..3).filter(|&axis| span.along[axis]);
                [axes.next(), axes.next()]
            })
            .collect();
        let mut all = vec![(0, 0); self.keys.len() * each];
        all.par_chunks_mut(each).enumerate().with_min_len(1024).each(|(leaf, row)| {
            let (key, word) = (self.keys[leaf], self.words.get(leaf).copied().unwrap_or(0));
            let size = UNITS >> key.level();
            let corner = self.corners[leaf];
            let is_inside = self.is_inside(leaf, word, frames.topology.cell().dim());
            for (local, entry) in row.iter_mut().enumerate() {
                let at = middles.of(local, word, corner, size);
                if is_inside {
                    *entry = (frames.inside(key.tree(), at), 0);
                    continue;
                }
                let place = frames.place(key.tree(), at);
                let seen = if dim == 0 { 0 } else { frames.orientation(&place, along[local]) };
                *entry = (place.key, seen);
            }
        });
        all
    }

    /// Returns the numbers of the leaves' own vertices, and the number of vertices.
    pub(super) fn vertices(&self, frames: &EntityFrames<'_>) -> (Vec<u32>, usize) {
        let places = LeafArrays { words: &[], ..*self }.places(frames, 0);
        let mut numbers = NumberTable::new(places.len() / 6);
        let vertices = places.into_iter().map(|(key, _)| numbers.number(key).0).collect();
        (vertices, numbers.count())
    }

    /// Returns the keys of the entities of a dimension of one leaf.
    fn spots<'s>(
        &'s self,
        frames: &'s EntityFrames<'_>,
        middles: &'s Midpoints,
        leaf: usize,
    ) -> impl Iterator<Item = u128> + 's {
        let (key, word) = (self.keys[leaf], self.words.get(leaf).copied().unwrap_or(0));
        let (size, corner) = (UNITS >> key.level(), self.corners[leaf]);
        let locals = 0..middles.spans.len();
        locals.map(move |local| frames.place(key.tree(), middles.of(local, word, corner, size)).key)
    }

    /// Passes the entities on shared entities of the trees to `inherited`; `numbers` is the numbering of the leaves.
    pub(super) fn inherit(
        &self,
        frames: &EntityFrames<'_>,
        inherited: &mut SharedEntityCollector<'_>,
        numbers: &Topology,
    ) {
        let cell = frames.topology.cell();
        let middles: Vec<Midpoints> =
            (0..cell.dim()).map(|dim| Midpoints::new(cell, dim)).collect();
        for (leaf, key) in self.keys.iter().enumerate() {
            let word = self.words.get(leaf).copied().unwrap_or(0);
            let is_apart = !inherited.is_shared(frames.topology, key.tree() as usize);
            if is_apart || self.is_inside(leaf, word, cell.dim()) {
                continue;
            }
            let size = UNITS >> key.level();
            for (dim, middles) in middles.iter().enumerate() {
                for (local, &number) in numbers.of_cell(dim, leaf).iter().enumerate() {
                    let at = middles.of(local, word, self.corners[leaf], size);
                    let (on, at) = frames.place(key.tree(), at).on();
                    inherited.add(dim, number, on, at);
                }
            }
        }
    }

    /// Returns the connectivity of the degrees of freedom.
    ///
    /// # Errors
    ///
    /// An index overflow.
    pub(super) fn connectivity(&self, frames: &EntityFrames<'_>) -> Result<Topology, MeshError> {
        let cell = frames.topology.cell();
        let places = self.places(frames, 0);
        index(places.len(), "cell nodes")?;
        let mut numbers = NumberTable::new(places.len() / 6);
        let vertices: Vec<u32> = places.into_iter().map(|(key, _)| numbers.number(key).0).collect();
        let n_vertices = numbers.count();
        let (edges, edges_seen) = match cell.dim() {
            1 => (Entities::default(), Vec::new()),
            _ => self.entities(frames, 1, &vertices)?,
        };
        let (faces, faces_seen) = match cell.dim() {
            3 => self.entities(frames, 2, &vertices)?,
            _ => (Entities::default(), Vec::new()),
        };
        let edges_seen = edges_seen.into_iter().map(|seen| seen != 0).collect();
        let seen = EntityOrientations { edges: edges_seen, faces: faces_seen };
        Ok(Topology::seen(cell, (n_vertices, vertices), edges, faces, seen))
    }

    /// Returns the edges or faces, with their orientations in each leaf.
    fn entities(
        &self,
        frames: &EntityFrames<'_>,
        dim: usize,
        vertices: &[u32],
    ) -> Result<(Entities, Vec<u8>), MeshError> {
        let cell = frames.topology.cell();
        let locals = cell.entities(dim);
        let places = self.places(frames, dim);
        index(places.len(), "cell entities")?;
        let mut numbers = NumberTable::new(places.len() / 3);
        let mut all = Entities::with(locals.len(), locals[0].len());
        for (place, &(key, seen)) in places.iter().enumerate() {
            let (number, is_new) = numbers.number(key);
            let (leaf, local) = (place / locals.len(), locals[place % locals.len()]);
            let of_leaf = &vertices[leaf * cell.vertex_count()..];
            all.push(number, is_new.then(|| in_frame(local, seen).map(|vertex| of_leaf[vertex])));
        }
        Ok((all, places.into_iter().map(|(_, seen)| seen).collect()))
    }
}

/// An entity of some leaves that other processes share.
#[derive(Clone, Debug)]
pub(super) struct SharedLeafEntity {
    /// Its global position key, used as a common sort key.
    pub(super) place: u128,
    pub(super) dim: usize,
    /// Its number in the connectivity of the leaves.
    pub(super) number: u32,
    /// A leaf that has it, and the local number there.
    pub(super) of: (u32, u8),
    /// The other processes, unordered.
    pub(super) ranks: Vec<u32>,
    /// The number of cells of other processes that have it.
    pub(super) cells: u8,
}

/// Returns the entities of some dimensions that leaves share with the leaves of other processes; `numbers` is their
/// numbering.
pub(super) fn common(
    frames: &EntityFrames<'_>,
    (own, numbers): (&LeafArrays<'_>, &Topology),
    (others, rank_of): (&LeafArrays<'_>, &[u32]),
    dims: std::ops::Range<usize>,
) -> Vec<SharedLeafEntity> {
    let cell = frames.topology.cell();
    let vertices = Midpoints::new(cell, 0);
    // Leaves with a common edge or face have common vertices.
    let mut known = NumberTable::new(2 * own.keys.len());
    for leaf in 0..own.keys.len() {
        for key in own.spots(frames, &vertices, leaf) {
            known.number(key);
        }
    }
    let meets =
        |leaf: usize| others.spots(frames, &vertices, leaf).any(|k| known.find(k).is_some());
    let meets = (0..others.keys.len()).into_par_iter().with_min_len(1024).map(meets);
    let meets: Vec<bool> = meets.listed();
    let meeting = || (0..others.keys.len()).filter(|&leaf| meets[leaf]);
    let mut met = vec![false; known.count()];
    for leaf in meeting() {
        let keys = others.spots(frames, &vertices, leaf);
        keys.filter_map(|key| known.find(key)).for_each(|vertex| met[vertex as usize] = true);
    }
    let mut all: Vec<SharedLeafEntity> = Vec::new();
    for dim in dims {
        let middles = Midpoints::new(cell, dim);
        let (mut table, first) = (NumberTable::new(met.len() / 8), all.len());
        for leaf in 0..own.keys.len() {
            let mut vertices = own.spots(frames, &vertices, leaf);
            if !vertices.any(|key| known.find(key).is_some_and(|vertex| met[vertex as usize])) {
                continue;
            }
            for (local, place) in own.spots(frames, &middles, leaf).enumerate() {
                if let (_, true) = table.number(place) {
                    let (number, of) =
                        (numbers.of_cell(dim, leaf)[local], (leaf as u32, local as u8));
                    all.push(SharedLeafEntity {
                        place,
                        dim,
                        number,
                        of,
                        ranks: Vec::new(),
                        cells: 0,
                    });
                }
            }
        }
        for leaf in meeting() {
            for key in others.spots(frames, &middles, leaf) {
                let Some(at) = table.find(key) else { continue };
                let common = &mut all[first + at as usize];
                common.cells = common.cells.saturating_add(1);
                if !common.ranks.contains(&rank_of[leaf]) {
                    common.ranks.push(rank_of[leaf]);
                }
            }
        }
    }
    all.retain(|common| common.cells > 0);
    all
}

/// Returns the vertices of an edge or a face with orientation `seen`, in the order of its own frame.
fn in_frame(local: &'static [usize], seen: u8) -> impl Iterator<Item = usize> {
    (0..local.len()).map(move |own| {
        let at = match local.len() {
            2 => own ^ usize::from(seen != 0),
            _ => {
                let (s, t) =
                    (own & 1 ^ usize::from(seen >> 1 & 1), own >> 1 ^ usize::from(seen >> 2 & 1));
                if seen & 1 == 1 { t | s << 1 } else { s | t << 1 }
            }
        };
        local[at]
    })
}
