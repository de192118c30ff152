//! Random well-typed forms as text, for comparing kernels with the reference.
//!
//! The same seed and options always yield the same text. Values stay finite and moderate if fields, gradients, data and
//! coordinates do (magnitudes up to about 2): roots, logarithms and denominators are kept away from zero.
//!
//! ```
//! use fem_dsl::testing::{Options, random_form};
//!
//! let text = random_form(7, &Options { dim: 2, ..Options::default() });
//! assert!(text.starts_with("form random_7 {"));
//! assert_eq!(text, random_form(7, &Options { dim: 2, ..Options::default() }));
//! ```

mod expressions;
mod interior;
mod lines;
mod random;
mod regions;
mod second;
mod vectors;

use crate::format::{format, same_pieces};
use crate::source::Source;
use expressions::Generator;
pub use interior::{random_interior, random_interior_at_points, random_interior_vectors};
pub use random::Random;
pub use regions::{Regions, random_regions};
pub use second::random_second;
use std::fmt::Write;
pub use vectors::random_vectors;

/// Returns the formatted text, and checks that formatting is idempotent.
///
/// # Panics
///
/// Panics if the text has errors, or formatting changes its tokens or its own result.
pub fn formatted(text: &str) -> String {
    let source = Source::new("test.wf", text);
    let once = format(&source).unwrap_or_else(|errors| panic!("{text}\n{errors:#?}"));
    assert!(same_pieces(text, &once), "{text}\n{once}");
    assert_eq!(format(&Source::new("test.wf", once.as_str())).as_ref(), Ok(&once), "{text}");
    once
}

/// The shape of the random form's field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FieldShape {
    /// A scalar.
    Scalar,
    /// dim components.
    Vector,
    /// n components, 1 to 64.
    VectorOf(usize),
    /// dim × dim components.
    Tensor,
    /// dim components, in Hcurl.
    Curl,
    /// dim components, in Hdiv.
    Div,
}

/// A second field of a random form.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SecondField {
    /// Its shape.
    pub shape: FieldShape,
    /// Its degree relative to that of the form.
    pub offset: i32,
}

/// Permitted contents of a random form.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// Space dimension, 1 to 3.
    pub dim: usize,
    /// The field.
    pub shape: FieldShape,
    /// A second field, `v`.
    pub other: Option<SecondField>,
    /// True if the form is affine in the field.
    pub linear: bool,
    /// Auxiliary data on nodes, cells and points.
    pub aux: bool,
    /// Parameters.
    pub params: bool,
    /// |a|, min, max and `if`, at whose kinks derivatives jump: rounding can determine the side.
    pub kinks: bool,
    /// Nesting depth of expressions, 0 and up; 3 results in a few dozen operations.
    pub depth: usize,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            dim: 3,
            shape: FieldShape::Scalar,
            other: None,
            linear: false,
            aux: true,
            params: true,
            kinks: false,
            depth: 3,
        }
    }
}

/// Returns the text of a form `random_SEED` with a field `u`, both rows, and the contents that `options` permit. These
/// are a second field `v`, aux `a` (scalar on nodes), `b` (vector on nodes), `c` (scalar on cells) and `q` (scalar on
/// points), params `p` (scalar) and `r` (vector).
pub fn random_form(seed: u64, options: &Options) -> String {
    let others = options.other.map(|other| ("v", other.shape));
    let mut generator = Generator {
        random: Random(seed),
        options: *options,
        fields: [("u", options.shape)].into_iter().chain(others).collect(),
        main: 0,
        uses_u: true,
        points: true,
        normal: false,
    };
    let mut text = format!("form random_{seed} {{\n");
    let mut line = |content: &str| writeln!(text, "    {content}").expect("a string takes text");
    line(&format!("field u: {};", options.shape.text()));
    if let Some(SecondField { shape, offset }) = options.other {
        let degree = match offset {
            0 => "k".to_owned(),
            1.. => format!("k + {offset}"),
            _ => format!("k - {}", -offset),
        };
        line(&format!("field v: {} in H1({degree});", shape.text()));
    }
    if options.aux {
        line("aux a: scalar on nodes;");
        line("aux b: vector on nodes;");
        line("aux c: scalar on cells;");
        line("aux q: scalar on points;");
    }
    if options.params {
        line(&format!("param p = {};", generator.number()));
        let components: Vec<String> = (0..options.dim).map(|_| generator.number()).collect();
        line(&format!("param r: vector = [{}];", components.join(", ")));
    }
    generator.uses_u = !options.linear;
    let shared = generator.scalar(options.depth);
    line(&format!("let w = {shared};"));
    line(&format!("f0[u] = {};", generator.row0("u", options.shape)));
    line(&format!("f1[u] = {};", generator.row1("u", options.shape)));
    if let Some(SecondField { shape, .. }) = options.other {
        line(&format!("f0[v] = {};", generator.row0("v", shape)));
        line(&format!("f1[v] = {};", generator.row1("v", shape)));
    }
    text.push_str("}\n");
    text
}

impl FieldShape {
    /// Returns whether the field is in Hcurl or Hdiv.
    pub(super) fn is_mapped(self) -> bool {
        matches!(self, Self::Curl | Self::Div)
    }

    pub(super) fn text(self) -> String {
        match self {
            Self::Scalar => "scalar".to_owned(),
            Self::Vector | Self::Curl | Self::Div => "vector".to_owned(),
            Self::VectorOf(n) => format!("vector({n})"),
            Self::Tensor => "tensor".to_owned(),
        }
    }
}
