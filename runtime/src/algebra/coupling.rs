//! Sparsity pattern of operators on a [`Discretisation`] ([`Coupling`]), by which any operator can be converted to a
//! matrix.
//!
//! Two degrees of freedom are coupled if they share a cell, directly or through affine constraints. The matrix is read
//! off the operator by products with 0/1 vectors: columns without common rows have the same colour, and one product
//! yields all columns of a colour (Curtis, Powell and Reid 1974). It thus contains everything that the kernels
//! contribute, including all regions and essential conditions, on host and devices.

use crate::algebra::linear::{LinearOperator, OperatorError};
use crate::algebra::sparse::{Csc, SparsityPattern};
use crate::algebra::vector::Vector;
use crate::space::discretisation::Discretisation;
use std::collections::BTreeMap;

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
    /// Degrees of freedom coupled with each, ascending; symmetric if all columns are selected.
    pattern: SparsityPattern,
    /// Columns of each product.
    products: Vec<Vec<u32>>,
}

impl Coupling {
    /// Builds the pattern of all fields through cells and affine constraints.
    pub fn new(on: &Discretisation) -> Self {
        let (groups, cells) = groups(on);
        let (groups, cells) =
            if on.affine.is_empty() { (groups, cells) } else { unknowns(on, &groups, &cells) };
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
        cells: &SparsityPattern,
        wanted: impl Fn(DofGroup) -> bool,
    ) -> Self {
        let wanted: Vec<bool> = groups.iter().map(|&group| wanted(group)).collect();
        let around = cells.transposed(groups.len());
        let mut pattern = SparsityPattern::new();
        let mut coupled: Vec<u32> = Vec::new();
        for (number, group) in groups.iter().enumerate() {
            coupled.clear();
            if wanted[number] {
                for &cell in around.row(number) {
                    coupled.extend_from_slice(cells.row(cell as usize));
                }
            }
            coupled.sort_unstable();
            coupled.dedup();
            for _ in 0..group.components {
                for &other in &coupled {
                    pattern.columns.extend(groups[other as usize].unknowns());
                }
                pattern.end_row();
            }
        }
        let products = products(groups, cells, &around, &wanted);
        Self { pattern, products }
    }

    /// Returns the degrees of freedom coupled with one, ascending.
    pub fn coupled_with(&self, unknown: usize) -> &[u32] {
        self.pattern.row(unknown)
    }

    /// Builds a full pattern.
    #[cfg(test)]
    pub(crate) fn full(n: usize) -> Self {
        let columns = (0..n * n).map(|at| (at % n) as u32).collect();
        let products = (0..n as u32).map(|unknown| vec![unknown]).collect();
        let starts = (0..=n).map(|column| column * n).collect();
        Self { pattern: SparsityPattern { starts, columns }, products }
    }

    /// Returns the pattern with some degrees of freedom decoupled.
    pub fn without(&self, alone: &[u32]) -> Self {
        let mut is_alone = vec![false; self.size()];
        alone.iter().for_each(|&unknown| is_alone[unknown as usize] = true);
        let mut pattern = SparsityPattern::new();
        for unknown in 0..self.size() {
            match is_alone[unknown] {
                true => pattern.columns.push(unknown as u32),
                false => {
                    let others = self.coupled_with(unknown).iter();
                    pattern.columns.extend(others.filter(|&&row| !is_alone[row as usize]));
                }
            }
            pattern.end_row();
        }
        let left = self.products.iter().map(|product| {
            let stays = product.iter().copied().filter(|&unknown| !is_alone[unknown as usize]);
            stays.collect()
        });
        let mut products: Vec<Vec<u32>> =
            left.filter(|product: &Vec<u32>| !product.is_empty()).collect();
        products.push(alone.to_vec());
        Self { pattern, products }
    }

    /// Returns the number of degrees of freedom.
    pub fn size(&self) -> usize {
        self.pattern.rows()
    }

    /// Returns the number of entries.
    pub fn entries(&self) -> usize {
        self.pattern.entries()
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
        let mut values = vec![0.0; self.entries()];
        let (mut x, mut y) = (like.like(), like.like());
        let mut ones = vec![0.0; self.size()];
        for product in &self.products {
            product.iter().for_each(|&j| ones[j as usize] = 1.0);
            x.set(&ones);
            a.apply_sparse(&x, &mut y)?;
            let y = y.to_vec();
            for &j in product {
                ones[j as usize] = 0.0;
                let start = self.pattern.starts[j as usize];
                for (value, &row) in values[start..].iter_mut().zip(self.coupled_with(j as usize)) {
                    *value = y[row as usize];
                }
            }
        }
        Ok(self.without_zeros(&values))
    }

    fn without_zeros(&self, values: &[f64]) -> Csc {
        let mut columns = Csc { starts: vec![0], rows: Vec::new(), values: Vec::new() };
        for j in 0..self.size() {
            let own = self.coupled_with(j).iter().zip(&values[self.pattern.starts[j]..]);
            for (&row, &value) in own.filter(|(_, value)| **value != 0.0) {
                columns.rows.push(row);
                columns.values.push(value);
            }
            columns.starts.push(columns.rows.len());
        }
        columns
    }
}

/// Returns the groups of all fields, field by field, and those of each cell, and of each pair of cells.
fn groups(on: &Discretisation) -> (Vec<DofGroup>, SparsityPattern) {
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
    let mut cells = SparsityPattern::new();
    let mut add = |together: &[usize]| {
        let begin = cells.columns.len();
        for &cell in together {
            for (field, first) in on.fields.iter().zip(&first_groups) {
                cells.columns.extend(field.space.cell_nodes(cell).iter().map(|node| first + node));
            }
        }
        if together.len() > 1 {
            // Cells of a pair share nodes of continuous fields.
            let mut own = cells.columns.split_off(begin);
            own.sort_unstable();
            own.dedup();
            cells.columns.extend(own);
        }
        cells.end_row();
    };
    (0..on.mesh.n_cells()).for_each(|cell| add(&[cell]));
    let pairs = on.pairs.iter().flatten().flatten();
    pairs.for_each(|pair| add(&pair.sides.map(|side| side.cell as usize)));
    (groups, cells)
}

/// Returns single degrees of freedom as groups, and those coupled by each cell: a dependent one is replaced by those
/// that it depends on. A condition on a combination of components couples all components of its node.
fn unknowns(
    on: &Discretisation,
    groups: &[DofGroup],
    cells: &SparsityPattern,
) -> (Vec<DofGroup>, SparsityPattern) {
    let affine = &*on.affine;
    let n = groups.last().map_or(0, |last| last.first + last.components);
    let mut combined = BTreeMap::new();
    for (number, field) in on.fields.iter().enumerate() {
        let (start, components) = (on.dofs_of(number).start, field.space.components());
        for own in field.constraints.oblique() {
            let node = start + own.node as usize * components
                ..start + (own.node as usize + 1) * components;
            combined.extend(node.clone().map(|unknown| (unknown as u32, node.clone())));
        }
    }
    let single = |first| DofGroup { first, components: 1 };
    let mut coupled = SparsityPattern::new();
    for cell in 0..cells.rows() {
        let (items, begin) = (&mut coupled.columns, coupled.starts[cell]);
        for unknown in cells.row(cell).iter().flat_map(|&group| groups[group as usize].unknowns()) {
            match affine.row_of(unknown as usize) {
                Some(row) => {
                    for (term, _) in affine.terms().of(row) {
                        match combined.get(term) {
                            Some(node) => items.extend(node.clone().map(|unknown| unknown as u32)),
                            None => items.push(*term),
                        }
                    }
                }
                None => items.push(unknown),
            }
        }
        let mut own = items.split_off(begin);
        own.sort_unstable();
        own.dedup();
        items.append(&mut own);
        coupled.end_row();
    }
    for &unknown in affine.unknowns() {
        coupled.columns.push(unknown);
        coupled.end_row();
    }
    ((0..n).map(single).collect(), coupled)
}

/// Colours the selected groups by first fit, so that no cell has two groups of one colour in itself and its neighbours.
/// Each component of a colour is one product.
fn products(
    groups: &[DofGroup],
    cells: &SparsityPattern,
    around: &SparsityPattern,
    wanted: &[bool],
) -> Vec<Vec<u32>> {
    let n_cells = cells.rows();
    // Cells with selected groups.
    let mut asked = vec![false; n_cells];
    for (number, _) in wanted.iter().enumerate().filter(|(_, wanted)| **wanted) {
        around.row(number).iter().for_each(|&cell| asked[cell as usize] = true);
    }
    let neighbours: Vec<Vec<u32>> = (0..n_cells)
        .map(|cell| {
            if !asked[cell] {
                return Vec::new();
            }
            let mut all: Vec<u32> = cells
                .row(cell)
                .iter()
                .flat_map(|&group| around.row(group as usize))
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
        for &cell in around.row(number) {
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
        for &cell in around.row(number) {
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
