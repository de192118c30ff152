//! Forms and random points for the tests of the stages.
#![allow(dead_code, reason = "each test program uses its own part")]

use fem_dsl::check;
use fem_dsl::diagnostic::Diagnostic;
use fem_dsl::eval::{TensorValues, tensors};
use fem_dsl::form::{ExprId, Form, Terminal};
use fem_dsl::parse::parse;
use fem_dsl::point::{Input, Part, Side, Slot};
use fem_dsl::source::Source;
use fem_dsl::testing::{FieldShape, Options, SecondField, random_form, random_interior};
use std::collections::BTreeMap;

/// The corpus: texts with at least one form each.
pub(crate) const CORPUS: &str = include_str!("corpus.wf");

/// Returns the checked forms of a text; every one must be valid.
pub(crate) fn check(text: &str, dim: usize) -> Vec<Form> {
    let source = Source::new("test.wf", text);
    let (file, errors) = parse(&source);
    assert!(errors.is_empty(), "{errors:#?}");
    let checked = file.forms.iter().map(|form| {
        let (checked, diagnostics) = check::check(&source, &file, form, dim);
        checked.unwrap_or_else(|| panic!("{}: {diagnostics:#?}", form.name.name))
    });
    checked.collect()
}

/// Returns the diagnostics of a text's forms, and those of the parser.
pub(crate) fn diagnostics(text: &str, dim: usize) -> Vec<Diagnostic> {
    let source = Source::new("test.wf", text);
    let (file, mut all) = parse(&source);
    for form in &file.forms {
        all.extend(check::check(&source, &file, form, dim).1);
    }
    all
}

/// Returns all forms of the corpus in the dimensions in which they are valid, and random ones, with a name.
pub(crate) fn forms() -> Vec<(String, Form)> {
    let corpus = corpus().into_iter();
    let named = corpus.map(|form| (format!("{} in {}D", form.name, form.dim), form));
    named.chain(random_forms()).chain(interior_forms()).collect()
}

/// Returns all forms of the corpus in the dimensions in which they are valid.
pub(crate) fn corpus() -> Vec<Form> {
    let source = Source::new("corpus.wf", CORPUS);
    let (file, errors) = parse(&source);
    assert!(errors.is_empty(), "{errors:#?}");
    let mut forms = Vec::new();
    for form in &file.forms {
        let dimensions = check::check_dimensions(&source, &file, form);
        let before = forms.len();
        for checked in dimensions.forms() {
            forms.push(checked.clone());
        }
        assert!(forms.len() > before, "{}: {:#?}", form.name.name, dimensions.diagnostics());
    }
    forms
}

/// Returns random forms with integrals between cells.
pub(crate) fn interior_forms() -> impl Iterator<Item = (String, Form)> {
    (0..12).flat_map(|seed| {
        [2, 3].map(|dim| {
            let text = random_interior(seed, dim);
            let form = check(&text, dim).remove(0);
            (text, form)
        })
    })
}

/// Returns random forms of every shape in both dimensions.
fn random_forms() -> impl Iterator<Item = (String, Form)> {
    let shapes =
        [FieldShape::Scalar, FieldShape::Vector, FieldShape::VectorOf(2), FieldShape::Tensor];
    let cases = shapes.into_iter().flat_map(|shape| [2, 3].map(|dim| (shape, dim)));
    cases.flat_map(|(shape, dim)| {
        (0..24).map(move |seed| {
            let (linear, kinks) = (seed % 4 == 0, seed % 4 == 1);
            let options = Options {
                dim,
                shape,
                linear,
                kinks,
                other: (seed % 3 == 2).then_some(SecondField { shape, offset: -1 }),
                depth: 2 + seed as usize % 2,
                ..Options::default()
            };
            let text = random_form(seed, &options);
            let form = check(&text, dim).remove(0);
            (text, form)
        })
    })
}

/// Reproducible values of all terminals at one point.
pub(crate) struct Sample {
    values: BTreeMap<Terminal, Vec<f64>>,
}

/// Returns a number in [0, 1) from a seed (a step of SplitMix64).
fn random(state: &mut u64) -> f64 {
    *state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
    let mut z = *state;
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    ((z ^ (z >> 31)) >> 11) as f64 / (1_u64 << 53) as f64
}

impl Sample {
    /// Returns moderate values: fields, aux and gradients in ±0.6, so that I + ∇u is far from singular.
    pub(crate) fn new(form: &Form, seed: u64) -> Self {
        let mut state = seed.wrapping_mul(0x1234_5678_9ABC_DEF1) ^ 0x5DEE_CE66;
        let mut values: BTreeMap<Terminal, Vec<f64>> = BTreeMap::new();
        let mut fill = |terminal: Terminal, scale: f64| {
            let n = form.shape_of(terminal).map_or(0, fem_dsl::form::Shape::components);
            let random = (0..n).map(|_| scale * (2.0 * random(&mut state) - 1.0)).collect();
            values.insert(terminal, random);
        };
        let second = form.terminals(&form.roots()).any(is_second);
        for i in 0..form.fields.len() {
            fill(Terminal::Field(i, None), 0.6);
            fill(Terminal::FieldGradient(i, None), 0.3);
            fill(Terminal::Direction(i, None), 0.6);
            fill(Terminal::DirectionGradient(i, None), 0.6);
            // Other forms keep their numbers.
            if second {
                fill(Terminal::FieldHessian(i, None), 0.3);
                fill(Terminal::DirectionHessian(i, None), 0.6);
            }
        }
        for i in 0..form.aux.len() {
            fill(Terminal::Aux(i, None), 0.6);
            fill(Terminal::AuxGradient(i, None), 0.6);
        }
        fill(Terminal::Coordinates, 0.9);
        fill(Terminal::Normal, 1.0);
        for (terminal, value) in &mut values {
            if is_second(*terminal) {
                symmetrise(value, form.dim);
            }
        }
        for (i, param) in form.params.iter().enumerate() {
            values.insert(Terminal::Param(i), param.value.clone());
        }
        values.insert(Terminal::Time, vec![0.4]);
        values.insert(Terminal::Diameter(None), vec![0.125]);
        values.insert(Terminal::Extent(None), vec![0.0625]);
        for i in 0..form.fields.len() {
            values.insert(Terminal::Penalty(i, None), vec![Self::factor(i) / 0.0625]);
        }
        values.insert(Terminal::Degree, vec![3.0]);
        // The inside of a facet has the values without a side, the outside others.
        for (terminal, inside) in values.clone() {
            let outside = match terminal {
                Terminal::Extent(_) => vec![0.125],
                Terminal::Penalty(i, _) => vec![Self::factor(i) / 0.125],
                _ => inside.iter().map(|value| 0.7 * value - 0.1 * value * value).collect(),
            };
            for (side, own) in [(Side::Inside, inside), (Side::Outside, outside)] {
                let sided = terminal.with_side(Some(side));
                if sided != terminal {
                    values.insert(sided, own);
                }
            }
        }
        Self { values }
    }

    /// Returns the factor of a field's penalty.
    fn factor(field: usize) -> f64 {
        16.0 + field as f64
    }

    /// Returns the sample with u + ε δu.
    pub(crate) fn moved(&self, form: &Form, epsilon: f64) -> Self {
        let mut values = self.values.clone();
        for side in [None, Some(Side::Inside), Some(Side::Outside)] {
            for i in 0..form.fields.len() {
                for (to, from) in [
                    (Terminal::Field(i, side), Terminal::Direction(i, side)),
                    (Terminal::FieldGradient(i, side), Terminal::DirectionGradient(i, side)),
                    (Terminal::FieldHessian(i, side), Terminal::DirectionHessian(i, side)),
                ] {
                    let Some(step) = self.values.get(&from) else { continue };
                    if let Some(values) = values.get_mut(&to) {
                        values.iter_mut().zip(step).for_each(|(u, du)| *u += epsilon * du);
                    }
                }
            }
        }
        Self { values }
    }

    /// Returns the components of a terminal.
    pub(crate) fn terminal(&self, terminal: Terminal) -> Vec<f64> {
        self.values[&terminal].clone()
    }

    /// Returns the input of a scalar graph.
    pub(crate) fn input(&self, form: &Form, input: Input) -> f64 {
        let dim = form.dim;
        let slot = |slot: Slot, terminals: &[Terminal]| {
            let at = match slot.part {
                Part::Value => slot.component,
                Part::Derivative(j) => slot.component * dim + j,
                Part::Second(i, j) => (slot.component * dim + i) * dim + j,
                Part::Exterior(i) => i,
            };
            self.values[&terminals[slot.part.order()].with_side(Some(slot.side))][at]
        };
        let none = None;
        match input {
            Input::State(s) => slot(
                s,
                &[
                    Terminal::Field(s.field, none),
                    Terminal::FieldGradient(s.field, none),
                    Terminal::FieldHessian(s.field, none),
                ],
            ),
            Input::Direction(s) => slot(
                s,
                &[
                    Terminal::Direction(s.field, none),
                    Terminal::DirectionGradient(s.field, none),
                    Terminal::DirectionHessian(s.field, none),
                ],
            ),
            Input::Aux(s) => {
                slot(s, &[Terminal::Aux(s.field, none), Terminal::AuxGradient(s.field, none)])
            }
            Input::Param(i, component) => self.values[&Terminal::Param(i)][component],
            Input::Coordinate(j) => self.values[&Terminal::Coordinates][j],
            Input::Normal(j) => self.values[&Terminal::Normal][j],
            Input::Time => self.values[&Terminal::Time][0],
            Input::Diameter(side) => self.values[&Terminal::Diameter(Some(side))][0],
            Input::Extent(side) => self.values[&Terminal::Extent(Some(side))][0],
            Input::PenaltyFactor(field) => Self::factor(field),
            Input::Degree => self.values[&Terminal::Degree][0],
            Input::Inverse(..) | Input::Tangent(..) | Input::Bend(..) | Input::Density(_) => {
                panic!("no form reads {input:?}")
            }
        }
    }
}

fn is_second(terminal: Terminal) -> bool {
    matches!(terminal, Terminal::FieldHessian(..) | Terminal::DirectionHessian(..))
}

/// Makes each matrix of second derivatives symmetric.
fn symmetrise(values: &mut [f64], dim: usize) {
    for matrix in values.chunks_mut(dim * dim) {
        for (i, j) in (0..dim).flat_map(|i| (0..i).map(move |j| (i, j))) {
            matrix[i * dim + j] = matrix[j * dim + i];
        }
    }
}

/// Returns the tensors on which `roots` depend at a sample.
pub(crate) fn values(form: &Form, roots: &[ExprId], sample: &Sample) -> TensorValues {
    tensors(&form.exprs, roots, |terminal| sample.terminal(terminal))
}

/// Asserts equality up to rounding. The forms of the corpus have little cancellation, so that one magnitude suffices.
pub(crate) fn close(a: f64, b: f64, what: &str) {
    let scale = a.abs().max(b.abs()).max(1.0);
    assert!(a.is_finite() && b.is_finite(), "{what}: {a} and {b}");
    assert!((a - b).abs() <= 4096.0 * f64::EPSILON * scale, "{what}: {a} and {b}");
}
