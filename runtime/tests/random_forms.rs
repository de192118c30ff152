//! Random forms with several fields in continuous and discontinuous spaces, checked in three ways. They include
//! boundary integrals, data, parameters and constraints, on meshes that may be periodic or have hanging nodes. The
//! operators run interpreted kernels and are compared with the reference implementation.
//!
//! ```text
//! residual, action, diagonal               within rounding of the reference's
//! (R(u + ε w) − R(u − ε w)) / 2ε − J w     = O(ε²) for smooth forms
//! (E(u + ε w) − E(u − ε w)) / 2ε − R·w     = O(ε²) for derivatives of an energy
//! ```
//!
//! The tests draw 400 forms, and 60 with integrals between cells. `WF_FORMS=N` in the environment adds N more, and `WF_SEED=S` selects other forms.

#[path = "random_forms/case.rs"]
mod case;

use case::Case;

/// Number of forms of each of the four tests, which run in parallel.
const FORMS: u64 = 100;

/// Number of forms of each of the two tests with integrals between cells.
const BETWEEN: u64 = 30;

/// Statistics of the tested forms.
#[derive(Default)]
struct Seen {
    forms: u64,
    fields: usize,
    several: u64,
    jumping: u64,
    boundary: u64,
    threads: u64,
    tangents: u64,
    energies: u64,
}

fn number(variable: &str) -> Option<u64> {
    std::env::var(variable).ok().and_then(|value| value.parse().ok())
}

/// Tests every fourth form, starting with number `part`.
fn quarter(part: u64) {
    let first = number("WF_SEED").unwrap_or(0) + part;
    let more = number("WF_FORMS").unwrap_or(0).div_ceil(4);
    let mut seen = Seen::default();
    for seed in (0..FORMS + more).map(|i| first + 4 * i) {
        let case = Case::new(seed);
        seen.forms += 1;
        seen.fields += case.form.fields.len();
        seen.several += u64::from(case.form.fields.len() > 1);
        seen.jumping += u64::from(!case.elements.are_continuous());
        seen.boundary += u64::from(case.form.integrals.len() > 1);
        let (mut operator, by_threads) = case.operator();
        case.compare(&mut operator);
        seen.threads += u64::from(by_threads);
        seen.tangents += u64::from(case.taylor(&mut operator));
        seen.energies += u64::from(case.energy());
    }
    let Seen { forms, fields, several, jumping, boundary, threads, tangents, energies } = seen;
    println!(
        "{forms} forms with {fields} fields: {several} with several, {jumping} with discontinuous ones, {boundary} \
         with integrals over the boundary, {threads} by groups of threads; {tangents} Jacobians and {energies} \
         energies against differences"
    );
    let enough = [several, jumping, boundary, tangents].iter().all(|&count| 4 * count > forms);
    assert!(enough && 20 * threads > forms && 20 * energies > forms);
}

/// Tests every second form with integrals between cells, starting with number `part`.
fn half_between_cells(part: u64) {
    let first = number("WF_SEED").unwrap_or(0) + part;
    let more = number("WF_FORMS").unwrap_or(0).div_ceil(2);
    let mut seen = Seen::default();
    for seed in (0..BETWEEN + more).map(|i| first + 2 * i) {
        let case = Case::between(seed);
        seen.forms += 1;
        seen.several += u64::from(case.form.fields.len() > 1);
        seen.jumping += u64::from(!case.elements.are_continuous());
        let (mut operator, _) = case.operator();
        case.compare(&mut operator);
        seen.tangents += u64::from(case.taylor(&mut operator));
    }
    let Seen { forms, several, jumping, tangents, .. } = seen;
    println!("{forms} forms: {several} with several fields, {jumping} with discontinuous ones");
    assert!(4 * several > forms && 2 * jumping > forms && tangents == forms);
}

#[test]
fn the_first_half_between_cells_agrees() {
    half_between_cells(0);
}

#[test]
fn the_other_half_between_cells_agrees() {
    half_between_cells(1);
}

#[test]
fn the_first_quarter_agrees() {
    quarter(0);
}

#[test]
fn the_second_quarter_agrees() {
    quarter(1);
}

#[test]
fn the_third_quarter_agrees() {
    quarter(2);
}

#[test]
fn the_last_quarter_agrees() {
    quarter(3);
}
