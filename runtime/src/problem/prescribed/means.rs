//! Auxiliary data without a formula (from files or a program) on coarser multigrid levels: the mean over each cell of
//! the data on the next finer level.

use super::super::RunError;
use crate::mesh::CoarsenedMesh;
use crate::space::discretisation::{AuxValues, Discretisation};
use fem_dsl::point::{Location, PointForm};
use kernels_gen::plan::Elements;

/// The next finer level: its discretisation, and the relation between the meshes if they differ.
#[derive(Clone, Copy)]
pub struct FinerLevel<'a> {
    /// Mesh, spaces and data.
    pub on: &'a Discretisation,
    /// The coarser mesh, with the children of its cells.
    pub coarser: Option<&'a CoarsenedMesh>,
}

impl FinerLevel<'_> {
    /// Returns auxiliary data of the coarser level, by index.
    ///
    /// # Errors
    ///
    /// A space that cannot be numbered.
    pub fn datum(
        self,
        index: usize,
        form: &PointForm,
        elements: &Elements,
        on: &Discretisation,
    ) -> Result<AuxValues, RunError> {
        let (aux, given) = (&form.aux[index], &self.on.aux[index]);
        let components = aux.shape.components();
        let means = || self.means(given, components);
        Ok(match aux.location {
            Location::Cells => AuxValues::on_cells(means()),
            Location::Points => {
                let each = elements.rule.count();
                let rows = means();
                let rows = rows.chunks(components).flat_map(|row| row.repeat(each));
                AuxValues::at_points(rows.collect())
            }
            Location::Nodes(_) => {
                let space = on.aux_space(elements.element_of_aux(index)?, components)?;
                match given {
                    // The same space: the values are copied.
                    AuxValues::Nodes(own, numbers)
                        if self.coarser.is_none() && own.n_nodes() == space.n_nodes() =>
                    {
                        AuxValues::Nodes(own.clone(), numbers.clone())
                    }
                    _ => {
                        let numbers = around_nodes(&means(), components, space.n_nodes(), |cell| {
                            space.cell_nodes(cell)
                        });
                        AuxValues::at_nodes(space, numbers)
                    }
                }
            }
        })
    }

    /// Returns the mean of each cell of the coarser level, `[cell][component]`.
    fn means(self, given: &AuxValues, components: usize) -> Vec<f64> {
        let numbers = given.numbers();
        let of_cell = |cell: usize| -> Vec<f64> {
            let row = |at: usize| &numbers[at * components..(at + 1) * components];
            match given {
                AuxValues::Cells(_) => row(cell).to_vec(),
                AuxValues::Points(_) => {
                    let each = numbers.len() / components / self.on.mesh.n_cells();
                    mean(components, (cell * each..(cell + 1) * each).map(row))
                }
                AuxValues::Nodes(space, _) => {
                    mean(components, space.cell_nodes(cell).iter().map(|&node| row(node as usize)))
                }
            }
        };
        let Some(coarser) = self.coarser else {
            return (0..self.on.mesh.n_cells()).flat_map(of_cell).collect();
        };
        let children = coarser.children.chunks(coarser.each());
        let of_parent = |children: &[u32]| {
            let there = children.iter().filter(|&&child| child != u32::MAX);
            let rows: Vec<Vec<f64>> = there.map(|&child| of_cell(child as usize)).collect();
            mean(components, rows.iter().map(Vec::as_slice))
        };
        children.flat_map(of_parent).collect()
    }
}

/// Returns the mean of some rows.
fn mean<'r>(components: usize, rows: impl Iterator<Item = &'r [f64]>) -> Vec<f64> {
    let (mut sums, mut count) = (vec![0.0; components], 0);
    for row in rows {
        sums.iter_mut().zip(row).for_each(|(sum, value)| *sum += value);
        count += 1;
    }
    sums.iter_mut().for_each(|sum| *sum /= f64::from(count.max(1)));
    sums
}

/// Returns nodal values: at each node the mean over the values of its cells.
fn around_nodes<'s>(
    means: &[f64],
    components: usize,
    nodes: usize,
    of_cell: impl Fn(usize) -> &'s [u32],
) -> Vec<f64> {
    let (mut sums, mut counts) = (vec![0.0; nodes * components], vec![0_u32; nodes]);
    for (cell, row) in means.chunks(components).enumerate() {
        for node in of_cell(cell).iter().map(|&node| node as usize) {
            let own = &mut sums[node * components..(node + 1) * components];
            own.iter_mut().zip(row).for_each(|(sum, value)| *sum += value);
            counts[node] += 1;
        }
    }
    for (row, count) in sums.chunks_mut(components).zip(counts) {
        row.iter_mut().for_each(|sum| *sum /= f64::from(count.max(1)));
    }
    sums
}
