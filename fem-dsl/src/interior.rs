//! Properties of integrals over facets between cells, from their values at random states of the two cells.
//!
//! ```text
//! symmetry      exchanging the cells and n → −n exchanges the rows of the two test functions
//! consistency   with equal values on both sides the row of jump(φ) is −f1·n, and all others are 0
//! conservation  the rows of φ_inside and φ_outside cancel
//! ```
//!
//! A state of the two cells has a number for each component of each input; parameters have their values. States at
//! which a row is not finite are left out.

use crate::eval::tensors;
use crate::form::{ExprId, Form, Integral, Row, Shape, Terminal};
use crate::point::{Field, InteriorFacets, Location, Region, Side, Space};
use std::collections::BTreeMap;

/// Number of states.
const STATES: usize = 8;

/// Largest number of states that are tried.
const MOST_TRIED: u64 = 64;

/// Largest relative difference of equal numbers.
const ROUNDING: f64 = 1e-9;

/// The values of the inputs at a facet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum FacetState {
    /// Two cells.
    Pair(u64),
    /// The same cells, seen from the other one.
    Exchanged(u64),
    /// Two cells with equal values.
    Equal(u64),
}

/// Returns the components of an input.
fn input(form: &Form, terminal: Terminal, state: FacetState) -> Vec<f64> {
    let (seed, side) = match (state, terminal.side()) {
        (FacetState::Pair(seed), side) => (seed, side),
        (FacetState::Exchanged(seed), side) => (seed, side.map(Side::other)),
        (FacetState::Equal(seed), _) => (seed, None),
    };
    let terminal = terminal.with_side(side);
    let count = form.shape_of(terminal).map_or(1, Shape::components);
    let numbers = |least: f64| -> Vec<f64> {
        (0..count).map(|component| least + number(terminal, component, seed)).collect()
    };
    match terminal {
        Terminal::Param(i) => form.params[i].value.clone(),
        Terminal::Degree => vec![2.0],
        Terminal::Normal => {
            let n = numbers(-0.45);
            let length = n.iter().map(|n| n * n).sum::<f64>().sqrt();
            let sign = if matches!(state, FacetState::Exchanged(_)) { -1.0 } else { 1.0 };
            n.iter().map(|n| sign * n / length).collect()
        }
        Terminal::FieldGradient(..)
        | Terminal::FieldHessian(..)
        | Terminal::AuxGradient(..)
        | Terminal::RateGradient(..) => numbers(-0.5),
        _ => numbers(0.25),
    }
}

/// Returns a number between 0 and 1 for a component of an input.
fn number(terminal: Terminal, component: usize, seed: u64) -> f64 {
    let text = format!("{terminal:?} {component} {seed}");
    let hash = text.bytes().fold(0xCBF2_9CE4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01B3)
    });
    let mixed = (hash ^ hash >> 32).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    (mixed >> 11) as f64 / (1_u64 << 53) as f64
}

/// Rows by field and side: the components of f0, of f1 and of f2.
type Values = BTreeMap<(usize, Side), [Vec<f64>; 3]>;

/// Evaluates rows, with zeros for absent ones of the fields that have any; `None` if a number is not finite.
fn evaluate(form: &Form, rows: &[Row], state: FacetState) -> Option<Values> {
    let roots: Vec<ExprId> = rows.iter().flat_map(|row| row.factors()).collect();
    let tensors = tensors(&form.exprs, &roots, |terminal| input(form, terminal, state));
    let mut values = Values::new();
    for row in rows {
        let components = form.fields[row.field].shape.components();
        for side in Side::ALL {
            let zeros = || [0, 1, 2].map(|order| vec![0.0; components * form.dim.pow(order)]);
            values.entry((row.field, side)).or_insert_with(zeros);
        }
        let own = values.entry((row.field, row.side)).or_default();
        for (own, value) in own.iter_mut().zip([row.f0, row.f1, row.f2]) {
            if let Some(value) = value {
                own.iter_mut().zip(&tensors[&value]).for_each(|(own, value)| *own += value);
            }
        }
    }
    let finite = values.values().flatten().flatten().all(|value| value.is_finite());
    finite.then_some(values)
}

/// Returns the results of `measure` at states where it is finite.
fn at_states<T>(measure: impl Fn(u64) -> Option<T>) -> Vec<T> {
    (0..MOST_TRIED).filter_map(measure).take(STATES).collect()
}

fn largest<'a>(values: impl IntoIterator<Item = &'a f64>) -> f64 {
    values.into_iter().fold(0.0, |most: f64, value| most.max(value.abs()))
}

/// Returns the first field whose rows depend on which of the two cells is the inside, although either may be.
pub(crate) fn asymmetric(form: &Form, integral: &Integral) -> Option<usize> {
    if let Region::Interior(InteriorFacets::Between(_)) = integral.region {
        return None;
    }
    let states = at_states(|seed| {
        let pair = evaluate(form, &integral.rows, FacetState::Pair(seed))?;
        Some((pair, evaluate(form, &integral.rows, FacetState::Exchanged(seed))?))
    });
    (0..form.fields.len()).find(|&field| {
        let one = form.fields[field].space.is_continuous();
        states.iter().any(|(pair, exchanged)| {
            (0..3).any(|part| {
                let of = |values: &Values, side: Side| {
                    values.get(&(field, side)).map_or_else(Vec::new, |own| own[part].clone())
                };
                let all = Side::ALL.map(|side| of(pair, side));
                let scale = largest(all.iter().flatten());
                Side::ALL.iter().any(|&side| {
                    // Values in continuous spaces have one test function.
                    let other = if one && part == 0 { side } else { side.other() };
                    let (own, other) = (of(pair, side), of(exchanged, other));
                    own.iter().zip(&other).any(|(a, b)| (a - b).abs() > ROUNDING * scale)
                })
            })
        })
    })
}

/// Returns the fields whose rows over all facets are not those of their flux, with the difference relative to the flux.
/// In discontinuous spaces the flux is f1·n on the jump of the test function; in continuous ones f2 n, on the jump of
/// its normal derivative. That of f2 in discontinuous spaces needs third derivatives, and is not known. In Hcurl and Hdiv
/// it is the factor f2 of the gradient times n, on the part of the test function that jumps.
pub(crate) fn inconsistent(form: &Form) -> Vec<(usize, f64)> {
    let over = |region: &Region| -> Vec<Row> {
        let own = form.integrals.iter().filter(|integral| integral.region == *region);
        own.flat_map(|integral| integral.rows.iter().copied()).collect()
    };
    let (rows, cells) = (over(&Region::Interior(InteriorFacets::All)), over(&Region::Cells));
    let fields = (0..form.fields.len()).filter(|&field| {
        let space = form.fields[field].space;
        let jumps = !space.is_continuous() && !space.is_piola();
        let second =
            space.is_piola() || cells.iter().any(|row| row.field == field && row.f2.is_some());
        jumps != second && rows.iter().any(|row| row.field == field) && has_one_flux(form, field)
    });
    let found = fields.filter_map(|field| {
        let rows: Vec<Row> = rows.iter().filter(|row| row.field == field).copied().collect();
        let cells: Vec<Row> = cells.iter().filter(|row| row.field == field).copied().collect();
        let states = at_states(|seed| {
            let state = FacetState::Equal(seed);
            let rows = evaluate(form, &rows, state)?;
            let cells = evaluate(form, &cells, state)?;
            let components = form.fields[field].shape.components();
            let n = input(form, Terminal::Normal, state);
            let along = |values: &[f64]| -> Vec<f64> {
                let dot = |value: &[f64]| value.iter().zip(&n).map(|(f, n)| f * n).sum();
                values.chunks(form.dim).map(dot).collect()
            };
            let space = form.fields[field].space;
            if space.is_piola() {
                let n = (n.as_slice(), matches!(space, Space::Hdiv(_)));
                let all = largest(rows.values().flatten().flatten());
                let own = Side::ALL.map(|side| &rows[&(field, side)]);
                let (rest, flux) = of_parts(own, cells.get(&(field, Side::Inside)), n);
                return Some((largest(&rest), largest(&flux), all));
            }
            let order = if space.is_continuous() { 2 } else { 1 };
            let zeros = || vec![0.0; components * form.dim.pow(order)];
            let own = cells.get(&(field, Side::Inside));
            let mut flux = along(&own.map_or_else(zeros, |own| own[order as usize].clone()));
            if order == 2 {
                flux = along(&flux);
            }
            let [inside, outside] = Side::ALL.map(|side| &rows[&(field, side)]);
            let mut rest = Vec::new();
            for (own, sign) in [(inside, -1.0), (outside, 1.0)] {
                let [f0, f1, f2] = own;
                match order {
                    1 => {
                        rest.extend(f0.iter().zip(&flux).map(|(f0, flux)| f0 - sign * flux));
                        rest.extend(f1);
                    }
                    _ => {
                        rest.extend(f0);
                        rest.extend(along(f1).iter().zip(&flux).map(|(f1, flux)| f1 - sign * flux));
                    }
                }
                rest.extend(f2);
            }
            if order == 2 {
                // Derivatives along the facet have one value.
                rest.extend(
                    inside[1].iter().zip(&outside[1]).map(|(inside, outside)| inside + outside),
                );
            }
            let own = largest(rows.values().flatten().flatten());
            Some((largest(&rest), largest(&flux), own))
        });
        let scale = states.iter().fold(0.0_f64, |most, state| most.max(state.1));
        let own = states.iter().fold(0.0_f64, |most, state| most.max(state.2));
        let difference = states.iter().fold(0.0_f64, |most, state| most.max(state.0));
        let size = if scale > 0.0 { difference / scale } else { difference / own.max(1e-300) };
        (difference > ROUNDING * scale.max(own)).then_some((field, size))
    });
    found.collect()
}

/// Returns the difference of rows between cells from the flux, and the flux, of a field in Hcurl or Hdiv: of the part of
/// the test function that jumps. The sum of the other part's rows is 0.
fn of_parts(
    rows: [&[Vec<f64>; 3]; 2],
    cells: Option<&[Vec<f64>; 3]>,
    (n, normal): (&[f64], bool),
) -> (Vec<f64>, Vec<f64>) {
    let dim = n.len();
    let dot = |a: &[f64]| -> f64 { a.iter().zip(n).map(|(a, n)| a * n).sum() };
    // The part that has one value, and the one that jumps.
    let split = |a: &[f64]| -> [Vec<f64>; 2] {
        let along = dot(a);
        let own: Vec<f64> = n.iter().map(|n| along * n).collect();
        let rest = a.iter().zip(&own).map(|(a, own)| a - own).collect();
        if normal { [own, rest] } else { [rest, own] }
    };
    let through = |own: &[Vec<f64>; 3]| own[2][..dim * dim].chunks(dim).map(dot).collect();
    let flux: Vec<f64> = cells.map_or_else(|| vec![0.0; dim], through);
    let [_, flux] = split(&flux);
    let [inside, outside] = rows.map(|own| split(&own[0]));
    let mut rest: Vec<f64> = inside[0].iter().zip(&outside[0]).map(|(a, b)| a + b).collect();
    rest.extend(inside[1].iter().zip(&flux).map(|(f0, flux)| f0 + flux));
    rest.extend(outside[1].iter().zip(&flux).map(|(f0, flux)| f0 - flux));
    rest.extend(rows.iter().flat_map(|own| own[1].iter().chain(&own[2])));
    (rest, flux)
}

/// Returns whether a field's flux over all cells is the one at facets: no part of the cells adds another, and it reads
/// no data at the points of cells.
fn has_one_flux(form: &Form, field: usize) -> bool {
    let fluxes = |integral: &Integral| -> Vec<ExprId> {
        let own = integral.rows.iter().filter(|row| row.field == field);
        own.flat_map(|row| [row.f1, row.f2]).flatten().collect()
    };
    form.integrals.iter().all(|integral| {
        match integral.region {
        Region::CellsUnder(_) => fluxes(integral).is_empty(),
        Region::Cells => form.terminals(&fluxes(integral)).all(|terminal| {
            !matches!(terminal, Terminal::Aux(i, _) if form.aux[i].location == Location::Points)
        }),
        Region::Facets(_) | Region::Interior(_) => true,
    }
    })
}

/// Returns the components of fields in discontinuous spaces whose fluxes between cells cancel: what leaves one cell
/// enters the other. Each is a field and a component.
pub fn conserved(form: &Form) -> Vec<(usize, usize)> {
    let over = |field: usize| -> Vec<Vec<Row>> {
        let interior = form.integrals.iter().filter(|integral| integral.region.is_interior());
        let own = |rows: &[Row]| rows.iter().filter(|row| row.field == field).copied().collect();
        interior
            .map(|integral| own(&integral.rows))
            .filter(|own: &Vec<Row>| !own.is_empty())
            .collect()
    };
    let mut found = Vec::new();
    let jumps = |of: &Field| !of.space.is_continuous() && !of.space.is_piola();
    for (field, of) in form.fields.iter().enumerate().filter(|(_, of)| jumps(of)) {
        let integrals = over(field);
        // Each integral has facets of its own.
        let states: Vec<Values> = integrals
            .iter()
            .flat_map(|rows| at_states(|seed| evaluate(form, rows, FacetState::Pair(seed))))
            .collect();
        let cancels = |component: &usize| {
            states.iter().all(|values| {
                let [inside, outside] = Side::ALL.map(|side| values[&(field, side)][0][*component]);
                (inside + outside).abs() <= ROUNDING * inside.abs().max(outside.abs())
            })
        };
        let components = 0..if states.is_empty() { 0 } else { of.shape.components() };
        found.extend(components.filter(cancels).map(|component| (field, component)));
    }
    found
}

/// Returns the name of a component: `u`, `u[1]`, `u[0, 1]`.
pub fn component_name(form: &Form, (field, component): (usize, usize)) -> String {
    let field = &form.fields[field];
    let mut rest = component;
    let mut indices = Vec::new();
    for extent in Shape::from(field.shape).extents().into_iter().rev() {
        indices.insert(0, (rest % extent).to_string());
        rest /= extent;
    }
    match indices.is_empty() {
        true => field.name.clone(),
        false => format!("{}[{}]", field.name, indices.join(", ")),
    }
}
