//! Generated solutions: smooth, not polynomial, different in each component, positive if necessary.
//!
//! Each component is b + a sin(κ·x + φ), a wave not much longer than the mesh and aligned with no axis. Forms differ in
//! their domain: scalars are first positive (concentrations, temperatures), vectors small (displacements, with det(I +
//! ∇u)), matrices near the identity. If a form is not finite for one solution, others are tried.

use fem_dsl::form::Form;
use fem_dsl::point::{Field, Location, Shape};
use kernels_gen::element::Cell;

/// The mean and the amplitude of scalars, in the order of trial.
const SCALARS: [(f64, f64); 4] = [(1.3, 0.4), (0.45, 0.15), (-0.5, 0.3), (6.0, 1.0)];

/// Returns solutions for all fields, each with the text of its value, the most promising first.
pub(super) fn candidates(
    fields: &[Field],
    (from, to): ([f64; 3], [f64; 3]),
    dim: usize,
) -> Vec<Vec<(String, String)>> {
    let longest = (0..dim).map(|axis| to[axis] - from[axis]).fold(0.0, f64::max);
    let length = if longest > 0.0 { longest } else { 1.0 };
    let wave = |number: usize| wave(number, from, to, dim);
    let mut all = Vec::new();
    for (mean, amplitude) in SCALARS {
        let mut number = 0;
        let mut next = |mean: f64, amplitude: f64| {
            number += 1;
            format!("{} + {} * {}", rounded(mean), rounded(amplitude), wave(number))
        };
        let solution = fields.iter().map(|field| {
            let text = match field.shape {
                Shape::Scalar => next(mean, amplitude),
                Shape::Vector(n) => {
                    let small = 0.05 * length;
                    // Not around 0, so that no term is odd by accident.
                    let components = (0..n).map(|_| next(0.4 * small, small));
                    format!("[{}]", components.collect::<Vec<_>>().join(", "))
                }
                Shape::Matrix(n, m) => {
                    let mut row = |i: usize| {
                        let entries = (0..m).map(|j| next(f64::from(u8::from(i == j)), 0.1));
                        format!("[{}]", entries.collect::<Vec<_>>().join(", "))
                    };
                    let rows: Vec<String> = (0..n).map(&mut row).collect();
                    format!("[{}]", rows.join(", "))
                }
            };
            (field.name.clone(), text)
        });
        all.push(solution.collect());
    }
    all
}

/// Returns a number to three digits.
fn rounded(x: f64) -> f64 {
    format!("{x:.2e}").parse().unwrap_or(x)
}

/// Returns sin(κ·x + φ), with about a fifth to a third of a wave along each axis of the mesh.
fn wave(number: usize, from: [f64; 3], to: [f64; 3], dim: usize) -> String {
    let part = |i: usize| (i as f64 * 0.618_033_988_749_895).fract();
    let mut phase = 0.3 + 1.7 * part(3 * number);
    let mut terms = String::new();
    for axis in 0..dim {
        let length = if to[axis] > from[axis] { to[axis] - from[axis] } else { 1.0 };
        let number = rounded((1.2 + 0.8 * part(5 * number + 2 * axis + 1)) / length);
        phase -= number * from[axis];
        terms.push_str(&format!("{number} * x[{axis}] + "));
    }
    format!("sin({terms}{phase:.3})")
}

/// Returns a problem for a form that has none, on a box of cells, with data that a manufactured solution can have: text
/// of the language.
pub(super) fn problem(name: &str, form: &Form, cell: Cell) -> String {
    let dim = cell.dim();
    let deform = if cell.is_tensor() { ", deform: 0.05" } else { "" };
    let mesh = match dim {
        1 => "interval(cells: 1)".to_owned(),
        _ => format!("box(dim: {dim}, cells: 1, cell: {}{deform})", cell.name()),
    };
    let mut text = format!("problem {name} solves {} {{ mesh = {mesh}; degree = 4;", form.name);
    let mut number: u8 = 40;
    if !form.rates.is_empty() {
        text.push_str(" time = bdf(order: 2, to: 1, step: 0.05);");
    }
    for (at, aux) in form.aux.iter().enumerate() {
        if form.rates.iter().any(|rate| rate.aux == at) {
            continue;
        }
        let mut next = |mean: f64| {
            number = number.wrapping_add(1);
            match aux.location {
                Location::Nodes(_) => {
                    format!("{mean} + 0.2 * {}", wave(usize::from(number), [0.0; 3], [1.0; 3], dim))
                }
                Location::Cells | Location::Points => {
                    format!("{}", mean + 0.07 * f64::from(number.wrapping_sub(40)))
                }
            }
        };
        let value = match aux.shape {
            Shape::Scalar => next(1.4),
            Shape::Vector(n) => {
                format!("[{}]", (0..n).map(|_| next(0.6)).collect::<Vec<_>>().join(", "))
            }
            Shape::Matrix(n, m) => {
                let mut row = |i: usize| {
                    let entries = (0..m).map(|j| next(if i == j { 2.0 } else { 0.1 }));
                    format!("[{}]", entries.collect::<Vec<_>>().join(", "))
                };
                format!("[{}]", (0..n).map(&mut row).collect::<Vec<_>>().join(", "))
            }
        };
        text.push_str(&format!(" aux {} = {value};", aux.name));
    }
    text.push_str(" }");
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use fem_dsl::point::{Degree, Space};
    use fem_dsl::program::compile;
    use fem_dsl::source::Source;
    use std::collections::BTreeSet;

    #[test]
    fn solutions_are_text_of_the_language_and_differ() {
        let field = |name: &str, shape| Field {
            name: name.to_owned(),
            shape,
            space: Space::H1(Degree::Relative(0)),
            cells: Vec::new(),
        };
        let shapes = [Shape::Scalar, Shape::Vector(3), Shape::Matrix(3, 3)];
        let fields: Vec<Field> =
            ["a", "b", "c"].iter().zip(shapes).map(|(name, shape)| field(name, shape)).collect();
        let all = candidates(&fields, ([-2.0, 0.0, 1e-3], [1.0, 40.0, 2e-3]), 3);
        assert!(all.len() > 2);
        let waves: BTreeSet<String> =
            (1..40).map(|number| wave(number, [0.0; 3], [1.0; 3], 3)).collect();
        assert_eq!(waves.len(), 39);
        for solution in all {
            let lines =
                solution.iter().map(|(name, text)| format!("manufactured {name} = {text};"));
            let text = format!(
                "form f {{
                    field a: scalar; field b: vector; field c: tensor;
                    f1[a] = grad(a); f1[b] = grad(b); f0[c] = c;
                 }}
                 problem p solves f {{ mesh = ball(); {} }}",
                lines.collect::<String>()
            );
            let (program, found) = compile(&Source::new("f", text));
            assert!(program.is_some(), "{found:?}");
        }
    }
}
