//! Sparsity pattern ([`Sparsity`]) from cells and the component coupling of their element matrices, and the position of
//! each element-matrix entry.
//!
//! Nodes of two fields are neighbours if a cell has both. A row contains, by field and neighbour, the components
//! coupled with its own, so that positions follow from the index of a neighbour:
//!
//! ```text
//! index in the row = entries of earlier fields + index of the neighbour · coupled components + rank of the component
//! position         = base of the row + stride · index
//! ```
//!
//! In compressed rows the base is the offset of the row, and the stride is 1. Pairs of cells at a facet couple the nodes
//! of one cell with those of the other.

use crate::algebra::sparse::{NOWHERE, SparsityPattern, together};
use crate::operator::batch::Batches;
use crate::space::discretisation::Discretisation;
use crate::support::parallel::*;
use fem_dsl::point::Side;
use kernels_gen::plan::cell_matrix::CellMatrix;
use std::borrow::Cow;
use std::ops::Range;
use std::sync::atomic::{AtomicU32, Ordering};

/// Minimum number of entries per task for little work per entry.
const GRAIN: usize = 1 << 12;

/// Calls a function in parallel with the index and value of each entry of `places` that is not [`NOWHERE`].
pub(crate) fn each_somewhere(places: &[u32], f: &(dyn Fn(usize, u32) + Sync)) {
    places.par_chunks(GRAIN).enumerate().each(|(part, places)| {
        let own = (part * GRAIN..).zip(places).filter(|(_, place)| **place != NOWHERE);
        own.for_each(|(number, &place)| f(number, place));
    });
}

/// Number of nodes per task.
const NODES: usize = 4096;

/// Coupling of the components of two fields, `[test][trial]`.
struct ComponentCoupling(Vec<Vec<bool>>);

impl ComponentCoupling {
    /// Returns the number of components coupled with a test component.
    fn count(&self, test: usize) -> usize {
        self.0[test].iter().filter(|&&coupled| coupled).count()
    }

    fn rank(&self, test: usize, trial: usize) -> usize {
        self.0[test][..trial].iter().filter(|&&coupled| coupled).count()
    }
}

/// A sparsity pattern in compressed rows, in the order of positions in vectors.
pub(crate) struct Sparsity {
    /// Offset of the row at each position, and the end of the last.
    pub(crate) starts: Vec<usize>,
    /// Positions of the columns.
    pub(crate) columns: Vec<u32>,
    /// Constrained degrees of freedom, and the index of the diagonal in their rows.
    fixed: Vec<(u32, u32)>,
    /// `[test field][trial field]`
    coupled: Vec<Vec<ComponentCoupling>>,
    /// Neighbours of the nodes of a field among those of another, ascending.
    neighbours: Vec<Vec<SparsityPattern>>,
    /// Base of each row, by degree of freedom.
    bases: Vec<u32>,
    stride: u32,
    is_fixed: Vec<bool>,
    firsts: Vec<usize>,
}

/// Returns the side of a component counted over the fields of both sides, and its field and index there.
pub(crate) fn trace(on: &Discretisation, row: usize) -> (Side, usize, usize) {
    let all: usize = on.fields.iter().map(|field| field.space.components()).sum();
    let side = if row < all { Side::Inside } else { Side::Outside };
    let (field, component) = owner(on, row % all);
    (side, field, component)
}

/// Cells that couple two fields.
#[derive(Clone, Default)]
struct CoupledCells {
    /// Cells whose nodes are coupled with each other.
    alone: Vec<bool>,
    /// Cells whose nodes are coupled with those of another cell; sorted.
    pairs: Vec<[u32; 2]>,
}

impl CoupledCells {
    /// Adds the cells of batches for a pair of components on these sides.
    fn add(&mut self, n_cells: usize, batches: &Batches, sides: [Side; 2]) {
        let [test, trial] = sides.map(|side| batches.on(side).unwrap_or(batches).cells());
        if sides[0] == sides[1] {
            self.alone.resize(n_cells, false);
            test.iter().for_each(|&cell| self.alone[cell as usize] = true);
        } else {
            self.pairs.extend(test.iter().zip(trial).map(|(&test, &trial)| [test, trial]));
        }
    }

    /// Returns whether there are none.
    fn is_empty(&self) -> bool {
        self.alone.is_empty() && self.pairs.is_empty()
    }

    /// Returns the cells with whose nodes those of a cell are coupled.
    fn with(&self, cell: u32) -> impl Iterator<Item = u32> + '_ {
        let own = self.alone.get(cell as usize).copied().unwrap_or(false).then_some(cell);
        let first = self.pairs.partition_point(|pair| pair[0] < cell);
        let others = self.pairs[first..].iter().take_while(move |pair| pair[0] == cell);
        own.into_iter().chain(others.map(|pair| pair[1]))
    }
}

/// Returns the field of a component counted over all fields, and its index there.
fn owner(on: &Discretisation, mut row: usize) -> (usize, usize) {
    for (number, field) in on.fields.iter().enumerate() {
        let components = field.space.components();
        if row < components {
            return (number, row);
        }
        row -= components;
    }
    unreachable!("a component should be one of a field's")
}

fn dofs_of(on: &Discretisation) -> impl IndexedParallelIterator<Item = usize> {
    (0..on.n_dofs()).into_par_iter().with_min_len(NODES)
}

impl Sparsity {
    /// Builds the pattern of matrices with these element matrices, each on the cells of its batches; degree of freedom
    /// i of vectors of length `len` has position `place(i)`.
    ///
    /// # Errors
    ///
    /// The number of entries, if 32-bit indices cannot address them.
    pub(crate) fn new(
        on: &Discretisation,
        works: &[(&CellMatrix, &Batches)],
        len: usize,
        place: impl Fn(usize) -> usize + Sync,
    ) -> Result<Self, usize> {
        let fields = on.fields.len();
        let spaces: Vec<_> = on.fields.iter().map(|field| &*field.space).collect();
        let none = |f: usize, g: usize| {
            ComponentCoupling(vec![vec![false; spaces[g].components()]; spaces[f].components()])
        };
        let mut coupled: Vec<Vec<ComponentCoupling>> =
            (0..fields).map(|f| (0..fields).map(|g| none(f, g)).collect()).collect();
        let mut cells = vec![vec![CoupledCells::default(); fields]; fields];
        let n_cells = on.mesh.n_cells() + on.partition.chunks_beyond().len();
        for (matrix, batches) in works {
            let mut pairs = Vec::with_capacity(matrix.pairs.len());
            for pair in &matrix.pairs {
                let ((s, f, c), (r, g, d)) = (trace(on, pair.test), trace(on, pair.trial));
                coupled[f][g].0[c][d] = true;
                pairs.push((f, g, [s, r]));
            }
            pairs.dedup();
            for (f, g, sides) in pairs {
                cells[f][g].add(n_cells, batches, sides);
            }
        }
        for own in cells.iter_mut().flatten() {
            own.pairs.sort_unstable();
            own.pairs.dedup();
        }
        let neighbours: Vec<Vec<SparsityPattern>> = (0..fields)
            .map(|f| {
                let around = around(on, f);
                (0..fields).map(|g| neighbours(on, (f, g), &around, &cells[f][g])).collect()
            })
            .collect();
        let firsts: Vec<usize> = (0..fields).map(|field| on.dofs_of(field).start).collect();
        let mut is_fixed = vec![false; on.n_dofs()];
        on.conditions().for_each(|(dof, _)| is_fixed[dof] = true);
        let mut owners = vec![NOWHERE; len];
        (0..on.n_dofs()).for_each(|dof| owners[place(dof)] = dof as u32);
        let length = |&dof: &u32| {
            if dof == NOWHERE {
                return 0;
            }
            let dof = dof as usize;
            let f = firsts.partition_point(|&first| first <= dof) - 1;
            let components = spaces[f].components();
            let (node, c) = ((dof - firsts[f]) / components, (dof - firsts[f]) % components);
            let of = |g: usize| neighbours[f][g].row(node).len() * coupled[f][g].count(c);
            let length: usize = (0..fields).map(of).sum();
            // Rows of constrained DoFs always have a diagonal entry, for the identity.
            if is_fixed[dof] { length.max(1) } else { length }
        };
        let mut starts = vec![0usize; len + 1];
        let lengths = starts[1..].par_iter_mut().zip(&owners).with_min_len(NODES);
        lengths.each(|(start, dof)| *start = length(dof));
        for i in 1..starts.len() {
            starts[i] += starts[i - 1];
        }
        let entries = starts[len];
        if entries >= NOWHERE as usize {
            return Err(entries);
        }
        let bases = dofs_of(on).map(|dof| starts[place(dof)] as u32).listed();
        let (columns, fixed, stride) = (vec![0u32; entries], Vec::new(), 1);
        let mut own =
            Self { starts, columns, fixed, coupled, neighbours, bases, stride, is_fixed, firsts };
        own.fill(on, &owners, &place);
        Ok(own)
    }

    /// Fills the columns, and finds the diagonal entries of constrained rows.
    fn fill(
        &mut self,
        on: &Discretisation,
        owners: &[u32],
        place: &(impl Fn(usize) -> usize + Sync),
    ) {
        let places: Vec<u32> = dofs_of(on).map(|dof| place(dof) as u32).collect();
        let components: Vec<usize> =
            on.fields.iter().map(|field| field.space.components()).collect();
        let mut columns = std::mem::take(&mut self.columns);
        // Rows are in the order of positions: each takes its part from the front.
        let mut parts: Vec<(usize, &mut [u32])> = Vec::with_capacity(places.len());
        let mut rest = &mut columns[..];
        for (ends, &dof) in self.starts.windows(2).zip(owners) {
            let (part, behind) = rest.split_at_mut(ends[1] - ends[0]);
            rest = behind;
            if dof != NOWHERE {
                parts.push((dof as usize, part));
            }
        }
        let fixed: Vec<Option<(u32, u32)>> = parts
            .into_par_iter()
            .with_min_len(NODES)
            .map(|(dof, part)| {
                let f = self.firsts.partition_point(|&first| first <= dof) - 1;
                let (node, c) = (
                    (dof - self.firsts[f]) / components[f],
                    (dof - self.firsts[f]) % components[f],
                );
                let (mut at, mut diagonal) = (0, None);
                for g in 0..components.len() {
                    for &other in self.neighbours[f][g].row(node) {
                        let first = self.firsts[g] + other as usize * components[g];
                        for (d, _) in
                            self.coupled[f][g].0[c].iter().enumerate().filter(|(_, on)| **on)
                        {
                            if first + d == dof {
                                diagonal = Some(at);
                            }
                            part[at] = places[first + d];
                            at += 1;
                        }
                    }
                }
                self.is_fixed[dof].then(|| {
                    let at = diagonal.unwrap_or_else(|| {
                        // No diagonal entry among these columns: all entries are 0, and the first one becomes the
                        // diagonal.
                        part[0] = places[dof];
                        0
                    });
                    (dof as u32, at as u32)
                })
            })
            .listed();
        self.fixed = fixed.into_iter().flatten().collect();
        self.columns = columns;
    }

    /// Returns the number of entries.
    pub(crate) fn entries(&self) -> usize {
        self.columns.len()
    }

    /// Moves the rows: entry k of a degree of freedom's row is at `base(dof)` + stride · k.
    pub(crate) fn move_rows(
        &mut self,
        on: &Discretisation,
        stride: u32,
        base: impl Fn(usize) -> u32 + Sync + Send,
    ) {
        (self.bases, self.stride) = (dofs_of(on).map(base).listed(), stride);
    }

    /// Returns the positions of the diagonal entries of constrained degrees of freedom owned by this process.
    pub(crate) fn fixed(&self, on: &Discretisation) -> Vec<u32> {
        let mut counts = vec![false; on.n_dofs()];
        on.counted_conditions().for_each(|dof| counts[dof] = true);
        let own = self.fixed.iter().filter(|(dof, _)| counts[*dof as usize]);
        own.map(|&(dof, k)| self.bases[dof as usize] + self.stride * k).collect()
    }

    /// Returns the positions of element-matrix entries, `[batch][entry][lane]`; [`NOWHERE`] in rows and columns of
    /// constrained degrees of freedom, and in padding lanes.
    pub(crate) fn places(
        &self,
        on: &Discretisation,
        matrix: &CellMatrix,
        batches: &Batches,
    ) -> Vec<u32> {
        let (lanes, entries) = (batches.lanes(), matrix.entries);
        // In parallel, as this is the largest table.
        let all = (0..batches.len() * entries * lanes).into_par_iter().with_min_len(1 << 16);
        let mut table: Vec<u32> = all.map(|_| NOWHERE).listed();
        if table.is_empty() {
            return table;
        }
        let spaces: Vec<_> = on.fields.iter().map(|field| &*field.space).collect();
        let sides: Vec<&Batches> =
            Side::ALL.into_iter().filter_map(|side| batches.on(side)).collect();
        let turns = |of: &&Batches| spaces.iter().map(|space| of.turns(space.element())).collect();
        let turned: Vec<Vec<_>> = sides.iter().map(turns).collect();
        let pairs: Vec<_> = matrix
            .pairs
            .iter()
            .map(|pair| (pair, trace(on, pair.test), trace(on, pair.trial)))
            .collect();
        table.par_chunks_mut(entries * lanes).enumerate().with_min_len(16).each_with(
            || (vec![vec![Vec::new(); spaces.len()]; sides.len()], Vec::new()),
            |(nodes, numbers), (batch, table)| {
                for lane in 0..batches.active()[batch] as usize {
                    let at = batch * lanes + lane;
                    for ((nodes, side), turned) in nodes.iter_mut().zip(&sides).zip(&turned) {
                        for ((nodes, space), turned) in nodes.iter_mut().zip(&spaces).zip(turned) {
                            side.nodes_of_lane(space, at, turned, nodes);
                        }
                    }
                    let mut known = None;
                    for &(pair, (s, f, c), (r, g, d)) in &pairs {
                        if !batches.writes_side(batch, s) {
                            continue;
                        }
                        let (tests, trials) = (&nodes[s as usize][f], &nodes[r as usize][g]);
                        if known != Some((s, f, r, g)) {
                            known = Some((s, f, r, g));
                            self.numbers(tests, trials, (f, g), numbers);
                        }
                        let [of_test, of_trial] = pair.from;
                        self.pair_places(
                            (tests, trials, numbers),
                            [of_test..of_test + pair.rows, of_trial..of_trial + pair.columns],
                            ((f, c), (g, d)),
                            (spaces[f].components(), spaces[g].components()),
                            |entry, place| table[(pair.first + entry) * lanes + lane] = place,
                        );
                    }
                }
            },
        );
        table
    }

    /// Finds for each pair of nodes the index of the second among the neighbours of the first, `[trial][test]`.
    fn numbers(
        &self,
        tests: &[u32],
        trials: &[u32],
        (f, g): (usize, usize),
        numbers: &mut Vec<u32>,
    ) {
        numbers.clear();
        numbers.resize(tests.len() * trials.len(), 0);
        for (i, &test) in tests.iter().enumerate() {
            let around = self.neighbours[f][g].row(test as usize);
            for (j, trial) in trials.iter().enumerate() {
                // Nodes of a cell are neighbours.
                let number = around.partition_point(|node| node < trial);
                numbers[j * tests.len() + i] = number as u32;
            }
        }
    }

    fn pair_places(
        &self,
        (tests, trials, numbers): (&[u32], &[u32], &[u32]),
        [rows, columns]: [Range<usize>; 2],
        ((f, c), (g, d)): ((usize, usize), (usize, usize)),
        (of_test, of_trial): (usize, usize),
        mut put: impl FnMut(usize, u32),
    ) {
        let coupled = &self.coupled[f][g];
        let (count, rank) = (coupled.count(c), coupled.rank(c, d));
        let of_column = rows.len();
        for (j, &trial) in trials.iter().enumerate().take(columns.end).skip(columns.start) {
            if self.is_fixed[self.firsts[g] + trial as usize * of_trial + d] {
                continue;
            }
            for (i, &test) in tests.iter().enumerate().take(rows.end).skip(rows.start) {
                let dof = self.firsts[f] + test as usize * of_test + c;
                if self.is_fixed[dof] {
                    continue;
                }
                let before: usize = (0..g)
                    .map(|h| {
                        self.neighbours[f][h].row(test as usize).len() * self.coupled[f][h].count(c)
                    })
                    .sum();
                let number = numbers[j * tests.len() + i] as usize;
                let k = (before + number * count + rank) as u32;
                put(
                    (j - columns.start) * of_column + i - rows.start,
                    self.bases[dof] + self.stride * k,
                );
            }
        }
    }
}

/// Returns the cells around each node of a field, of the mesh and beyond it, ascending.
fn around(on: &Discretisation, field: usize) -> SparsityPattern {
    let space = &on.fields[field].space;
    let (n, own, grain) = (space.n_nodes(), space.nodes_per_cell(), 1 << 14);
    let nodes: Cow<'_, [u32]> = match space.reaches_beyond() {
        true => space.all_nodes().collect(),
        false => space.nodes().into(),
    };
    let each = || nodes.par_iter().with_min_len(grain).enumerate();
    let counts: Vec<AtomicU32> = (0..n).map(|_| AtomicU32::new(0)).collect();
    each().each(|(_, &node)| {
        counts[node as usize].fetch_add(1, Ordering::Relaxed);
    });
    let mut starts = Vec::with_capacity(n + 1);
    let mut end = 0;
    starts.push(0);
    starts.extend(counts.iter().map(|count| {
        end += count.load(Ordering::Relaxed) as usize;
        end
    }));
    // Sorting below restores the order after concurrent insertion.
    let cells: Vec<AtomicU32> = (0..end).map(|_| AtomicU32::new(0)).collect();
    each().for_each(|(at, &node)| {
        let left = counts[node as usize].fetch_sub(1, Ordering::Relaxed) as usize;
        let place = starts[node as usize + 1] - left;
        cells[place].store((at / own) as u32, Ordering::Relaxed);
    });
    let mut cells: Vec<u32> = cells.into_iter().map(AtomicU32::into_inner).collect();
    let mut parts = Vec::with_capacity(n.div_ceil(NODES));
    let mut rest = &mut cells[..];
    for first in (0..n).step_by(NODES) {
        let range = first..n.min(first + NODES);
        let (part, behind) = rest.split_at_mut(starts[range.end] - starts[range.start]);
        parts.push((range, part));
        rest = behind;
    }
    parts.into_par_iter().each(|(range, part)| {
        let before = starts[range.start];
        for node in range {
            part[starts[node] - before..starts[node + 1] - before].sort_unstable();
        }
    });
    SparsityPattern { starts, columns: cells }
}

/// Returns the neighbours of the nodes of field f among those of field g, within some cells.
fn neighbours(
    on: &Discretisation,
    (f, g): (usize, usize),
    around: &SparsityPattern,
    cells: &CoupledCells,
) -> SparsityPattern {
    let (n, others) = (on.fields[f].space.n_nodes(), &on.fields[g].space);
    let of = |node: usize| around.row(node);
    if cells.is_empty() {
        return SparsityPattern { starts: vec![0; n + 1], columns: Vec::new() };
    }
    let blocks: Vec<(Vec<usize>, Vec<u32>)> = (0..n.div_ceil(NODES))
        .into_par_iter()
        .map(|block| {
            let (mut ends, mut nodes, mut row) = (Vec::new(), Vec::<u32>::new(), Vec::new());
            let mut begin = 0;
            let first = block * NODES;
            for node in first..n.min(first + NODES) {
                // Nodes of one mesh entity are consecutive and have the same neighbours.
                let same = node > first && of(node) == of(node - 1);
                let end = nodes.len();
                if same {
                    nodes.extend_from_within(begin..end);
                } else {
                    row.clear();
                    let coupled = of(node).iter().flat_map(|&cell| cells.with(cell));
                    row.extend(coupled.flat_map(|cell| others.cell_nodes(cell as usize)).copied());
                    row.sort_unstable();
                    row.dedup();
                    nodes.extend_from_slice(&row);
                }
                begin = end;
                ends.push(nodes.len());
            }
            (ends, nodes)
        })
        .listed();
    let mut starts = Vec::with_capacity(n + 1);
    starts.push(0);
    let mut before = 0;
    for (ends, own) in &blocks {
        starts.extend(ends.iter().map(|end| before + end));
        before += own.len();
    }
    let columns = together(before, blocks.into_iter().map(|(_, own)| own).collect());
    SparsityPattern { starts, columns }
}
