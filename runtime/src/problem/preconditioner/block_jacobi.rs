//! Block Jacobi for discontinuous fields: the blocks are read off the operator by products, one for each degree of freedom
//! of a cell and each colour of the cells.

use super::PreconditionerBuilder;
use crate::mesh::distributed::PartInterface;
use crate::mesh::pairs::FacetConnectivity;
use crate::mesh::views::FacetViews;
use crate::operator::Operator;
use crate::problem::RunError;
use crate::problem::context::Context;
use crate::problem::multigrid::matrices::matrix_on_device;
use crate::processes::Reduction;
use crate::solve::{Approximation, BlockJacobi, LocalDofs};
use crate::space::discretisation::Discretisation;

/// Builder of block Jacobi.
pub(super) struct CellBlocks;

impl PreconditionerBuilder for CellBlocks {
    fn build(
        &self,
        context: &Context,
        _: &Operator,
    ) -> Result<Result<Box<dyn Approximation>, String>, RunError> {
        let on = &context.on;
        let is_continuous = |field: usize| on.fields[field].space.element().is_continuous();
        if let Some(field) = (0..on.fields.len()).find(|&field| is_continuous(field)) {
            let name = &context.form().fields[field].name;
            return Ok(Err(format!(
                "block Jacobi needs fields in `L2`, and `{name}` is continuous"
            )));
        }
        Ok(Ok(Box::new(BlockJacobi::new(blocks(on), matrix_on_device))))
    }
}

/// Returns the degrees of freedom of each cell as one cluster.
fn blocks(on: &Discretisation) -> LocalDofs {
    let mut dofs = Vec::with_capacity(on.n_dofs());
    for cell in 0..on.mesh.n_cells() {
        for (number, field) in on.fields.iter().enumerate() {
            let (space, start) = (&field.space, on.dofs_of(number).start);
            for &node in space.cell_nodes(cell) {
                let first = start + node as usize * space.components();
                dofs.extend((first..first + space.components()).map(|dof| dof as u32));
            }
        }
    }
    let of_cell = dofs.len() / on.mesh.n_cells().max(1);
    LocalDofs {
        dofs,
        of_cell,
        clusters: vec![(0..of_cell).collect()],
        products: (0..of_cell).map(|place| vec![place]).collect(),
        colours: colours(on),
        is_read: false,
        symmetric: false,
    }
}

/// Returns sets of cells without common facets. On a part, cells at the cut have colours that their neighbours' processes
/// do not use. Collective.
fn colours(on: &Discretisation) -> Vec<Vec<u32>> {
    let n = on.mesh.n_cells();
    let mut neighbours = vec![Vec::new(); n];
    for pair in on.pairs.iter().flatten().flatten() {
        let [a, b] = pair.sides.map(|side| side.cell as usize);
        if a != b && a < n && b < n {
            neighbours[a].push(b as u32);
            neighbours[b].push(a as u32);
        }
    }
    let colour_of = greedily(&neighbours);
    let Some(cut) = on.mesh.cut() else { return sets(&colour_of) };
    let views = FacetViews::new(on.mesh.cell());
    let mut is_at_cut = vec![false; n];
    for open in FacetConnectivity::new(&on.mesh, &views).open {
        is_at_cut[open.side.cell as usize] = true;
    }
    // Cells inside have the first colours, those at the cut the ones of their process's colour.
    let own = colour_of.iter().max().map_or(0, |most| most + 1);
    let mut most = [own as f64];
    cut.group().reduce(Reduction::Largest, &mut most);
    let (each, processes) = (most[0] as usize, process_colours(cut, on.mesh.dim() - 1));
    let shift = (1 + processes[cut.group().rank()]) * each;
    let colours = colour_of.iter().zip(&is_at_cut);
    let colours: Vec<usize> =
        colours.map(|(colour, at_cut)| colour + if *at_cut { shift } else { 0 }).collect();
    let mut sets = sets(&colours);
    let count = 2 + processes.iter().max().copied().unwrap_or(0);
    sets.resize(count * each, Vec::new());
    sets
}

/// Returns a colour of each process that differs from those of the processes with common facets. Collective.
fn process_colours(cut: &PartInterface, facet: usize) -> Vec<usize> {
    let ranks = cut.shared(facet).iter().flat_map(|shared| shared.ranks.iter());
    let bytes: Vec<u8> = ranks.flat_map(|rank| rank.to_le_bytes()).collect();
    let all = cut.group().gather(&bytes);
    let neighbours: Vec<Vec<u32>> = all
        .iter()
        .zip(0..)
        .map(|(bytes, own)| {
            let ranks = bytes.as_chunks().0.iter().map(|bytes| u32::from_le_bytes(*bytes));
            ranks.filter(|&rank| rank != own).collect()
        })
        .collect();
    greedily(&neighbours)
}

/// Returns a colour for each node of a graph that none of its neighbours has.
fn greedily(neighbours: &[Vec<u32>]) -> Vec<usize> {
    let mut colour_of = vec![usize::MAX; neighbours.len()];
    for (own, neighbours) in neighbours.iter().enumerate() {
        let is_taken =
            |colour: &usize| neighbours.iter().any(|&other| colour_of[other as usize] == *colour);
        colour_of[own] = (0..).find(|colour| !is_taken(colour)).unwrap_or(0);
    }
    colour_of
}

/// Returns the members of each colour.
fn sets(colour_of: &[usize]) -> Vec<Vec<u32>> {
    let count = colour_of.iter().max().map_or(0, |most| most + 1);
    let mut sets = vec![Vec::new(); count];
    (0..).zip(colour_of).for_each(|(cell, &colour)| sets[colour].push(cell));
    sets
}
