//! Pointwise evaluation of a solution: f0 of additional fields of a form, at points of the mesh or as extrema over it.
//!
//! Extrema are searched on a lattice in each cell, corners and sides included. It has k + 2 points per direction for
//! the largest degree k of fields and geometry.

use super::second::reads_second;
use super::{NodalQuantity, PointBlock, PointTables, block, block_by_block, fill, read_by};
use crate::mesh::locate::LocatedPoint;
use crate::space::discretisation::Discretisation;
use crate::support::expression::Parameters;
use fem_dsl::eval::Batch;
use fem_dsl::point::{Input, Integral, Node, NodeId, reachable};
use kernels_gen::element::{ElementError, Lagrange, Rule};

/// Minimum and maximum of a quantity, with their coordinates.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Extrema {
    /// Minimum.
    pub least: (f64, [f64; 3]),
    /// Maximum.
    pub most: (f64, [f64; 3]),
}

impl Extrema {
    const NONE: Self =
        Self { least: (f64::INFINITY, [0.0; 3]), most: (f64::NEG_INFINITY, [0.0; 3]) };

    /// Updates the extrema; NaN replaces every number, so that it is not lost.
    fn take(&mut self, value: f64, x: [f64; 3]) {
        if value < self.least.0 || value.is_nan() && !self.least.0.is_nan() {
            self.least = (value, x);
        }
        if value > self.most.0 || value.is_nan() && !self.most.0.is_nan() {
            self.most = (value, x);
        }
    }
}

/// Evaluates f0 of an integral at the points of a block, `[root][point]`.
fn evaluated(
    on: &Discretisation,
    block: &PointBlock,
    place: &[Option<usize>],
    parameters: &Parameters,
    (integral, roots): (&Integral, &[NodeId]),
) -> Vec<Vec<f64>> {
    let mut batch = Batch::new(&integral.graph, roots);
    batch.run(block.weight.len(), |input, row| {
        fill(on, block, place, parameters, input, 1.0, row);
    });
    roots.iter().map(|&root| batch.values(root).to_vec()).collect()
}

/// Returns whether each cell has values of all fields that expressions read; `None` if all cells have.
pub(crate) fn living_cells(
    on: &Discretisation,
    (integral, roots): (&Integral, &[NodeId]),
) -> Option<Vec<bool>> {
    let read = reachable(&integral.graph, roots);
    let supports = read.into_iter().filter_map(|id| match integral.graph.nodes()[id] {
        Node::Input(Input::State(slot)) => on.fields.get(slot.field)?.support.as_deref(),
        _ => None,
    });
    supports.fold(None, |all, support| match all {
        None => Some(support.cells.clone()),
        Some(all) => Some(all.iter().zip(&support.cells).map(|(a, b)| *a && *b).collect()),
    })
}

/// Computes the extrema of an integral's expressions over the mesh.
///
/// # Errors
///
/// An element that does not exist.
pub fn extrema(
    on: &Discretisation,
    (integral, roots): (&Integral, &[NodeId]),
    u: &[f64],
    parameters: &Parameters,
) -> Result<Vec<Extrema>, ElementError> {
    let (nodal, place) = read_by((integral, roots), on, u);
    let degrees = nodal.iter().map(|(space, _)| space.element().degree());
    let degree = degrees.max().unwrap_or(1).max(on.mesh.order());
    let points = Lagrange::equispaced(on.mesh.cell(), degree + 1)?.points();
    let weights = vec![1.0; points.len()];
    let tables = PointTables::new(on, &points, &nodal, reads_second(on, (integral, roots)))?;
    let living: Vec<Option<Vec<bool>>> =
        roots.iter().map(|&root| living_cells(on, (integral, &[root]))).collect();
    let found = block_by_block(on, &tables, &weights, &nodal, |block| {
        let values = evaluated(on, block, &place, parameters, (integral, roots));
        let of_root = |(row, living): (Vec<f64>, &Option<Vec<bool>>)| {
            let mut extrema = Extrema::NONE;
            let lives = |point: usize| {
                let cell = block.cells[point / block.points_per_cell];
                living.as_ref().is_none_or(|living| living[cell])
            };
            let points = row.into_iter().zip(&block.x).enumerate();
            let points = points.filter(|(point, _)| lives(*point));
            points.for_each(|(_, (value, &x))| extrema.take(value, x));
            extrema
        };
        values.into_iter().zip(&living).map(of_root).collect::<Vec<_>>()
    });
    let mut all = vec![Extrema::NONE; roots.len()];
    for of_block in found {
        // Without a point there is no extremum.
        let found = |(_, own): &(&mut Extrema, Extrema)| *own != Extrema::NONE;
        for (all, own) in all.iter_mut().zip(of_block).filter(found) {
            all.take(own.least.0, own.least.1);
            all.take(own.most.0, own.most.1);
        }
    }
    Ok(all)
}

/// Values at the quadrature points of all cells, cell by cell.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct QuadratureValues {
    /// Coordinates of the points.
    pub points: Vec<[f64; 3]>,
    /// Weights of the rule times |det J|: their sum is the volume.
    pub weights: Vec<f64>,
    /// Values, components interleaved.
    pub values: Vec<f64>,
}

/// Evaluates expressions of an integral at the points of a rule in all cells; `select` turns the roots of a point into
/// its components.
///
/// # Errors
///
/// An element that does not exist.
pub fn values_at_quadrature(
    on: &Discretisation,
    rule: Rule,
    (integral, roots): (&Integral, &[NodeId]),
    u: &[f64],
    parameters: &Parameters,
    select: impl Fn(&[f64]) -> Vec<f64> + Sync,
) -> Result<QuadratureValues, ElementError> {
    let (nodal, place) = read_by((integral, roots), on, u);
    let (points, weights) = (rule.points(), rule.weights());
    let tables = PointTables::new(on, &points, &nodal, reads_second(on, (integral, roots)))?;
    let found = block_by_block(on, &tables, &weights, &nodal, |block| {
        let rows = evaluated(on, block, &place, parameters, (integral, roots));
        let at = |point: usize| select(&rows.iter().map(|row| row[point]).collect::<Vec<f64>>());
        let values = (0..block.weight.len()).flat_map(at).collect();
        QuadratureValues { points: block.x.clone(), weights: block.weight.clone(), values }
    });
    let mut all = QuadratureValues::default();
    for QuadratureValues { points, weights, values } in found {
        all.points.extend(points);
        all.weights.extend(weights);
        all.values.extend(values);
    }
    Ok(all)
}

/// Evaluates expressions of an integral at points of the reference cell in all cells: `[cell][point][component]`.
/// `select` turns the roots of a point into its components.
///
/// # Errors
///
/// An element that does not exist.
pub fn values_in_cells(
    on: &Discretisation,
    points: &[[f64; 3]],
    (integral, roots): (&Integral, &[NodeId]),
    u: &[f64],
    parameters: &Parameters,
    select: impl Fn(&[f64]) -> Vec<f64> + Sync,
) -> Result<Vec<f64>, ElementError> {
    let (nodal, place) = read_by((integral, roots), on, u);
    let weights = vec![1.0; points.len()];
    let tables = PointTables::new(on, points, &nodal, reads_second(on, (integral, roots)))?;
    let found = block_by_block(on, &tables, &weights, &nodal, |block| {
        let rows = evaluated(on, block, &place, parameters, (integral, roots));
        let at = |point: usize| select(&rows.iter().map(|row| row[point]).collect::<Vec<f64>>());
        (0..block.weight.len()).flat_map(at).collect::<Vec<f64>>()
    });
    Ok(found.concat())
}

/// Evaluates expressions of an integral at some points, `[point][root]`.
///
/// # Errors
///
/// An element that does not exist.
pub fn values_at(
    on: &Discretisation,
    (integral, roots): (&Integral, &[NodeId]),
    u: &[f64],
    parameters: &Parameters,
    places: &[LocatedPoint],
) -> Result<Vec<Vec<f64>>, ElementError> {
    let (nodal, place) = read_by((integral, roots), on, u);
    let second = reads_second(on, (integral, roots));
    let one = |at: &LocatedPoint| {
        let tables = PointTables::new(on, &[at.xi], &nodal, second)?;
        let block = block(on, &[at.cell], &[1.0], &nodal, &tables);
        let values = evaluated(on, &block, &place, parameters, (integral, roots));
        Ok(values.into_iter().map(|row| row[0]).collect())
    };
    places.iter().map(one).collect()
}

/// Evaluates a field at some points: its components, and their derivatives, `[component][direction]`.
///
/// # Errors
///
/// An element that does not exist.
pub fn field_at(
    on: &Discretisation,
    field: usize,
    u: &[f64],
    places: &[LocatedPoint],
) -> Result<Vec<(Vec<f64>, Vec<f64>)>, ElementError> {
    let space = &on.fields[field].space;
    let own: NodalQuantity<'_> = space.resolved(&u[on.dofs_of(field)]);
    let nodal = [own];
    let one = |at: &LocatedPoint| {
        let tables = PointTables::new(on, &[at.xi], &nodal, false)?;
        let block = block(on, &[at.cell], &[1.0], &nodal, &tables);
        let [values, gradients] = [&block.quantities[0].value, &block.quantities[0].gradient];
        let first = |rows: &[Vec<f64>]| rows.iter().map(|row| row[0]).collect();
        Ok((first(values), first(gradients)))
    };
    places.iter().map(one).collect()
}
