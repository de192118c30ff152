//! Origin of a number that is not finite: the first point at which a form, or its derivative, has no finite value at a
//! state. Runs only after a failed solve, with the reference interpreter, in the cells whose rows are not finite.

use super::RunError;
use super::context::Context;
use super::structural_null_space::in_any;
use crate::algebra::vector::Vector;
use crate::operator::Operator;
use crate::reference::{AuxData, CellPair, FormInputs, NodalValues, Reference};
use crate::solve::NonlinearSystem;
use crate::space::Space;
use crate::space::discretisation::{AuxValues, Discretisation};
use fem_dsl::non_finite::PointInput;
use fem_dsl::point::{Location, Region};

/// Maximum number of cells to search: all rows of an affected cell are not finite, so a few suffice.
const CELLS: usize = 512;

/// A point at which a form has no finite value.
#[derive(Clone, Debug, PartialEq)]
pub struct NonFinitePoint {
    /// Index of the cell.
    pub cell: usize,
    /// The integral's region.
    pub region: Region,
    /// True if the form is finite there but its derivative is not.
    pub derivative: bool,
    /// The point.
    pub point: [f64; 3],
    /// All inputs of the form there.
    pub given: PointInput,
}

impl std::fmt::Display for NonFinitePoint {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let [x, y, z] = self.point.map(|x| fem_dsl::non_finite::shown(&[x]));
        let facet = match &self.region {
            Region::Cells | Region::CellsUnder(_) => "",
            Region::Facets(_) => "on the boundary of ",
            Region::Interior(_) => "between two cells, one of them ",
        };
        write!(f, "({x}, {y}, {z}), {facet}cell {}", self.cell)
    }
}

/// Origin of a number that is not finite.
#[derive(Clone, Debug, PartialEq)]
pub enum NonFiniteOrigin {
    /// The form, or its derivative, at a point.
    Form(Box<NonFinitePoint>),
    /// An overflow in sums or in the solver: the form and its derivative are finite at all points.
    Solver,
}

impl std::fmt::Display for NonFiniteOrigin {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Form(spot) if spot.derivative => {
                write!(f, "the derivative of the form is not finite at {spot}")
            }
            Self::Form(spot) => write!(f, "the form is not finite at {spot}"),
            Self::Solver => f.write_str(
                "the form and its derivative are finite there, so that the numbers overflowed in the solver, not in the form",
            ),
        }
    }
}

impl NonFiniteOrigin {
    /// Returns the help text.
    pub fn remedy(&self) -> &'static str {
        match self {
            Self::Form(_) => {
                "start closer to the solution, take load steps, or keep the form away from divisions by zero and from roots \
                 and logarithms of negative numbers"
            }
            Self::Solver => "scale the data so that numbers are nearer to 1, or take load steps",
        }
    }
}

/// Searches for the cause at the state `u` of a failed solve. Collective; each process searches its own cells.
pub(super) fn cause(
    context: &Context,
    operator: &mut Operator,
    u: &Vector,
) -> Result<NonFiniteOrigin, RunError> {
    let state = u.to_vec();
    let is_finite = |numbers: &[f64]| {
        let mut lacks = [numbers.iter().any(|number| !number.is_finite())];
        in_any(&context.on.mesh, &mut lacks);
        !lacks[0]
    };
    if !is_finite(&state) {
        return Ok(NonFiniteOrigin::Solver);
    }
    let (mut r, mut direction) = (u.like(), u.like());
    operator.residual(u, &mut r)?;
    let mut rows = r.to_vec();
    if is_finite(&rows) {
        operator.linearise(u)?;
        direction.fill(1.0);
        operator.jacobian().apply(&direction, &mut r)?;
        rows = r.to_vec();
    }
    if is_finite(&rows) {
        operator.diagonal(&mut r)?;
        rows = r.to_vec();
    }
    let aux = context.prescribed.aux(&context.on, &context.parameters)?;
    let pairs = context.on.matched_pairs(context.form())?;
    for cell in cells_of(&context.on, &rows).into_iter().take(CELLS) {
        if let Some(spot) = look(context, &aux, &state, &pairs, cell)? {
            return Ok(NonFiniteOrigin::Form(Box::new(spot)));
        }
    }
    Ok(NonFiniteOrigin::Solver)
}

/// Returns the cells with a row that is not finite.
fn cells_of(on: &Discretisation, rows: &[f64]) -> Vec<usize> {
    let of_cell = |cell: &usize| {
        (0..on.fields.len()).any(|field| {
            let (space, start) = (&on.fields[field].space, on.dofs_of(field).start);
            let components = space.components();
            space.cell_nodes(*cell).iter().any(|&node| {
                let first = start + node as usize * components;
                rows[first..first + components].iter().any(|row| !row.is_finite())
            })
        })
    };
    (0..on.mesh.n_cells()).filter(of_cell).collect()
}

/// Sets the signs of fields and data in H(curl) and H(div) in some cells.
fn with_signs<'r, 's>(
    mut reference: Reference<'r>,
    spaces: impl Iterator<Item = &'s Space>,
    aux: &[AuxValues],
    cells: &[usize],
) -> Reference<'r> {
    let signs = |space: &Space| -> Vec<bool> {
        cells.iter().flat_map(|&cell| space.cell_signs(cell).to_vec()).collect()
    };
    for (number, space) in spaces.enumerate() {
        reference = reference.with_signs(number, signs(space));
    }
    for (number, values) in aux.iter().enumerate() {
        if let AuxValues::Nodes(space, _) = values {
            reference = reference.with_data_signs(number, signs(space));
        }
    }
    reference
}

/// Returns the first point of a cell, or of its facets, at which the form or its derivative is not finite.
fn look(
    context: &Context,
    aux: &[AuxValues],
    state: &[f64],
    pairs: &[Vec<CellPair>],
    cell: usize,
) -> Result<Option<NonFinitePoint>, RunError> {
    let (Context { on, parameters, .. }, form) = (context, context.form());
    let rule = context.elements.rule;
    let (mesh, dim) = (&on.mesh, form.dim);
    let reference = Reference::with_rule(form, parameters.degree, mesh.order(), rule)?;
    // A mesh of this cell and its neighbours alone.
    let mut local = vec![cell];
    let pairs = pairs.iter().map(|pairs| {
        let own = pairs.iter().filter(|pair| pair.sides.iter().any(|side| side.0 == cell));
        let renumbered = own.map(|pair| {
            let mut pair = *pair;
            for side in &mut pair.sides {
                let known = local.iter().position(|known| *known == side.0);
                side.0 = known.unwrap_or_else(|| {
                    local.push(side.0);
                    local.len() - 1
                });
            }
            pair
        });
        renumbered.collect()
    });
    let pairs: Vec<Vec<CellPair>> = pairs.collect();
    let coordinates: Vec<f64> = local
        .iter()
        .flat_map(|&cell| mesh.cell_nodes(cell))
        .flat_map(|&node| mesh.points()[node as usize][..dim].to_vec())
        .collect();
    let fields = on.fields.iter().enumerate();
    let states: Vec<_> =
        fields.map(|(number, field)| field.space.resolved(&state[on.dofs_of(number)])).collect();
    let nodes = |space: &Space| -> Vec<u32> {
        local.iter().flat_map(|&cell| space.cell_nodes(cell).to_vec()).collect()
    };
    let reference = with_signs(reference, states.iter().map(|(space, _)| &**space), aux, &local);
    let maps: Vec<Vec<u32>> = states.iter().map(|(space, _)| nodes(space)).collect();
    let aux: Vec<(Vec<u32>, Vec<f64>)> = aux
        .iter()
        .zip(&form.aux)
        .map(|(values, of)| {
            let of_cells = |values: &[f64], count: usize| {
                local.iter().flat_map(|&cell| values[cell * count..][..count].to_vec()).collect()
            };
            let components = of.shape.components();
            match values {
                AuxValues::Nodes(space, values) => (nodes(space), values.to_vec()),
                AuxValues::Cells(values) => (Vec::new(), of_cells(values, components)),
                AuxValues::Points(values) => {
                    (Vec::new(), of_cells(values, rule.count() * components))
                }
            }
        })
        .collect();
    let data = aux.iter().zip(&form.aux).map(|((map, values), of)| match of.location {
        Location::Nodes(_) => AuxData::Nodes(NodalValues { map, values }),
        Location::Cells => AuxData::Cells(values),
        Location::Points => AuxData::Points(values),
    });
    let facets = on.facets.iter().map(|facets| {
        let own = facets.iter().filter(|facet| facet.cell as usize == cell);
        own.map(|facet| (0, usize::from(facet.local))).collect()
    });
    let cells = (0..form.integrals.len()).map(|integral| {
        let has = |cells: &[u32]| cells.binary_search(&(cell as u32)).is_ok();
        Some(if on.cells_of(integral).is_none_or(has) { vec![0] } else { Vec::new() })
    });
    let inputs = FormInputs {
        coordinates: &coordinates,
        state: maps
            .iter()
            .zip(&states)
            .map(|(map, (_, values))| NodalValues { map, values })
            .collect(),
        aux: data.collect(),
        params: &parameters.values[1..],
        time: parameters.values[0],
        facets: facets.collect(),
        pairs,
        cells: cells.collect(),
    };
    let found = reference.not_finite(&inputs);
    Ok(found.map(|(integral, derivative, given)| {
        let axis = |axis| given.get(&fem_dsl::point::Input::Coordinate(axis)).copied();
        NonFinitePoint {
            cell,
            region: form.integrals[integral].region.clone(),
            derivative,
            point: [0, 1, 2].map(|i| axis(i).unwrap_or(0.0)),
            given,
        }
    }))
}
