//! Sparsity pattern of operators on a [`Discretisation`] ([`Coupling`]), by which any operator can be converted to a
//! matrix.
//!
//! Two degrees of freedom are coupled if they share a cell, directly or through affine constraints. The matrix is read
//! off the operator by products with 0/1 vectors: columns without common rows have the same colour, and one product
//! yields all columns of a colour (Curtis, Powell and Reid 1974). It thus contains everything that the kernels
//! contribute, including all regions and essential conditions, on host and devices.

pub use crate::algebra::csr::Csc;
use crate::algebra::linear::{LinearOperator, OperatorError};
use crate::algebra::vector::Vector;
use crate::space::constraint::affine::AffineConstraints;
use crate::space::discretisation::Discretisation;

/// Degrees of freedom of a field's node, which have the same pattern.
#[derive(Clone, Copy)]
struct DofGroup {
    first: u32,
    components: u32,
}

impl DofGroup {
    fn unknowns(self) -> std::ops::Range<u32> {
        self.first..self.first + self.components
    }
}

/// Sparsity pattern of a discretisation, with coloured columns.
#[derive(Clone, Debug, PartialEq)]
pub struct Coupling {
    /// Offset of the rows of each degree of freedom, and the end of the last. The pattern is symmetric.
    starts: Vec<usize>,
    rows: Vec<u32>,
    /// Columns of each product.
    products: Vec<Vec<u32>>,
}

/// Lists of different lengths in one array.
struct PackedLists {
    starts: Vec<usize>,
    items: Vec<u32>,
}

impl PackedLists {
    fn of(&self, index: usize) -> &[u32] {
        &self.items[self.starts[index]..self.starts[index + 1]]
    }

    /// Returns the lists that contain each of `n` items.
    fn inverse(&self, n: usize) -> Self {
        let mut starts = vec![0usize; n + 1];
        for &item in &self.items {
            starts[item as usize + 1] += 1;
        }
        for i in 0..n {
            starts[i + 1] += starts[i];
        }
        let (mut next, mut items) = (starts.clone(), vec![0; self.items.len()]);
        for list in 0..self.starts.len() - 1 {
            for &item in self.of(list) {
                items[next[item as usize]] = list as u32;
                next[item as usize] += 1;
            }
        }
        Self { starts, items }
    }
}

impl Coupling {
    /// Builds the pattern of all fields through cells and affine constraints.
    pub fn new(on: &Discretisation) -> Self {
        let (groups, cells) = groups(on);
        let (groups, cells) = if on.affine.is_empty() {
            (groups, cells)
        } else {
            unknowns(&on.affine, &groups, &cells)
        };
        Self::through(&groups, &cells, |_| true)
    }

    /// Builds the pattern through cells only, for some columns and others of their nodes.
    pub fn of_columns(on: &Discretisation, wanted: &[bool]) -> Self {
        let (groups, cells) = groups(on);
        Self::through(&groups, &cells, |group| {
            group.unknowns().any(|unknown| wanted[unknown as usize])
        })
    }

    /// Builds the pattern of groups in common lists, for selected columns.
    fn through(
        groups: &[DofGroup],
        cells: &PackedLists,
        wanted: impl Fn(DofGroup) -> bool,
    ) -> Self {
        let wanted: Vec<bool> = groups.iter().map(|&group| wanted(group)).collect();
        let around = cells.inverse(groups.len());
        let (mut starts, mut rows) = (vec![0], Vec::new());
        let mut coupled: Vec<u32> = Vec::new();
        for (number, group) in groups.iter().enumerate() {
            coupled.clear();
            if wanted[number] {
                for &cell in around.of(number) {
                    coupled.extend_from_slice(cells.of(cell as usize));
                }
            }
            coupled.sort_unstable();
            coupled.dedup();
            for _ in 0..group.components {
                for &other in &coupled {
                    rows.extend(groups[other as usize].unknowns());
                }
                starts.push(rows.len());
            }
        }
        let products = products(groups, cells, &around, &wanted);
        Self { starts, rows, products }
    }

    /// Returns the degrees of freedom coupled with one, ascending.
    pub fn coupled_with(&self, unknown: usize) -> &[u32] {
        &self.rows[self.starts[unknown]..self.starts[unknown + 1]]
    }

    /// Builds a full pattern.
    #[cfg(test)]
    pub(crate) fn full(n: usize) -> Self {
        let rows = (0..n * n).map(|at| (at % n) as u32).collect();
        let products = (0..n as u32).map(|unknown| vec![unknown]).collect();
        Self { starts: (0..=n).map(|column| column * n).collect(), rows, products }
    }

    /// Returns the pattern with some degrees of freedom decoupled.
    pub fn without(&self, alone: &[u32]) -> Self {
        let mut is_alone = vec![false; self.size()];
        alone.iter().for_each(|&unknown| is_alone[unknown as usize] = true);
        let (mut starts, mut rows) = (vec![0], Vec::new());
        for unknown in 0..self.size() {
            match is_alone[unknown] {
                true => rows.push(unknown as u32),
                false => {
                    let others = self.coupled_with(unknown).iter();
                    rows.extend(others.filter(|&&row| !is_alone[row as usize]));
                }
            }
            starts.push(rows.len());
        }
        let left = self.products.iter().map(|product| {
            let stays = product.iter().copied().filter(|&unknown| !is_alone[unknown as usize]);
            stays.collect()
        });
        let mut products: Vec<Vec<u32>> =
            left.filter(|product: &Vec<u32>| !product.is_empty()).collect();
        products.push(alone.to_vec());
        Self { starts, rows, products }
    }

    /// Returns the number of degrees of freedom.
    pub fn size(&self) -> usize {
        self.starts.len() - 1
    }

    /// Returns the number of entries.
    pub fn entries(&self) -> usize {
        self.rows.len()
    }

    /// Returns the number of products that yield the matrix.
    pub fn products(&self) -> usize {
        self.products.len()
    }

    /// Reads off the matrix of an operator with this pattern. `like` is one of its vectors.
    ///
    /// # Errors
    ///
    /// The operator cannot be applied.
    pub fn matrix(&self, a: &dyn LinearOperator, like: &Vector) -> Result<Csc, OperatorError> {
        let mut values = vec![0.0; self.rows.len()];
        let (mut x, mut y) = (like.like(), like.like());
        let mut ones = vec![0.0; self.size()];
        for product in &self.products {
            product.iter().for_each(|&j| ones[j as usize] = 1.0);
            x.set(&ones);
            a.apply_sparse(&x, &mut y)?;
            let y = y.to_vec();
            for &j in product {
                ones[j as usize] = 0.0;
                let range = self.starts[j as usize]..self.starts[j as usize + 1];
                let rows = &self.rows[range.clone()];
                for (value, &row) in values[range].iter_mut().zip(rows) {
                    *value = y[row as usize];
                }
            }
        }
        Ok(self.without_zeros(&values))
    }

    fn without_zeros(&self, values: &[f64]) -> Csc {
        let mut columns = Csc { starts: vec![0], rows: Vec::new(), values: Vec::new() };
        for j in 0..self.size() {
            for at in self.starts[j]..self.starts[j + 1] {
                if values[at] != 0.0 {
                    columns.rows.push(self.rows[at]);
                    columns.values.push(values[at]);
                }
            }
            columns.starts.push(columns.rows.len());
        }
        columns
    }
}

/// Returns the groups of all fields, field by field, and those of each cell.
fn groups(on: &Discretisation) -> (Vec<DofGroup>, PackedLists) {
    let mut groups = Vec::new();
    let mut first_groups = Vec::new();
    let mut first = 0;
    for field in &on.fields {
        first_groups.push(groups.len() as u32);
        let components = field.space.components() as u32;
        for _ in 0..field.space.n_nodes() {
            groups.push(DofGroup { first, components });
            first += components;
        }
    }
    let (mut starts, mut items) = (vec![0], Vec::new());
    for cell in 0..on.mesh.n_cells() {
        for (field, first) in on.fields.iter().zip(&first_groups) {
            items.extend(field.space.cell_nodes(cell).iter().map(|node| first + node));
        }
        starts.push(items.len());
    }
    (groups, PackedLists { starts, items })
}

/// Returns single degrees of freedom as groups, and those coupled by each cell: a dependent one is replaced by those
/// that it depends on.
fn unknowns(
    affine: &AffineConstraints,
    groups: &[DofGroup],
    cells: &PackedLists,
) -> (Vec<DofGroup>, PackedLists) {
    let n = groups.last().map_or(0, |last| last.first + last.components);
    let single = |first| DofGroup { first, components: 1 };
    let (mut starts, mut items) = (vec![0], Vec::new());
    for cell in 0..cells.starts.len() - 1 {
        let begin = items.len();
        for unknown in cells.of(cell).iter().flat_map(|&group| groups[group as usize].unknowns()) {
            match affine.row_of(unknown as usize) {
                Some(row) => items.extend(affine.terms().of(row).iter().map(|(term, _)| *term)),
                None => items.push(unknown),
            }
        }
        let mut own = items.split_off(begin);
        own.sort_unstable();
        own.dedup();
        items.append(&mut own);
        starts.push(items.len());
    }
    for &unknown in affine.unknowns() {
        items.push(unknown);
        starts.push(items.len());
    }
    ((0..n).map(single).collect(), PackedLists { starts, items })
}

/// Colours the selected groups by first fit, so that no cell has two groups of one colour in itself and its neighbours.
/// Each component of a colour is one product.
fn products(
    groups: &[DofGroup],
    cells: &PackedLists,
    around: &PackedLists,
    wanted: &[bool],
) -> Vec<Vec<u32>> {
    let n_cells = cells.starts.len() - 1;
    // Cells with selected groups.
    let mut asked = vec![false; n_cells];
    for (number, _) in wanted.iter().enumerate().filter(|(_, wanted)| **wanted) {
        around.of(number).iter().for_each(|&cell| asked[cell as usize] = true);
    }
    let neighbours: Vec<Vec<u32>> = (0..n_cells)
        .map(|cell| {
            if !asked[cell] {
                return Vec::new();
            }
            let mut all: Vec<u32> = cells
                .of(cell)
                .iter()
                .flat_map(|&group| around.of(group as usize))
                .copied()
                .collect();
            all.sort_unstable();
            all.dedup();
            all
        })
        .collect();
    // Colours in each cell, as a bit set.
    let mut used: Vec<Vec<u64>> = vec![Vec::new(); n_cells];
    let mut colours: Vec<Vec<u32>> = Vec::new();
    let mut taken: Vec<u64> = Vec::new();
    for number in (0..groups.len()).filter(|&number| wanted[number]) {
        taken.clear();
        for &cell in around.of(number) {
            for &near in &neighbours[cell as usize] {
                let bits = &used[near as usize];
                taken.resize(taken.len().max(bits.len()), 0);
                taken.iter_mut().zip(bits).for_each(|(taken, bits)| *taken |= bits);
            }
        }
        let free = taken.iter().position(|&bits| bits != u64::MAX);
        let colour = match free {
            Some(word) => word * 64 + taken[word].trailing_ones() as usize,
            None => taken.len() * 64,
        };
        colours.resize(colours.len().max(colour + 1), Vec::new());
        colours[colour].push(number as u32);
        for &cell in around.of(number) {
            let bits = &mut used[cell as usize];
            bits.resize(bits.len().max(colour / 64 + 1), 0);
            bits[colour / 64] |= 1 << (colour % 64);
        }
    }
    let mut products = Vec::new();
    for colour in colours {
        let of = |&number: &u32| groups[number as usize];
        let components = colour.iter().map(|number| of(number).components).max().unwrap_or(0);
        for component in 0..components {
            let wide = colour.iter().map(of).filter(|group| component < group.components);
            products.push(wide.map(|group| group.first + component).collect());
        }
    }
    products
}
