//! `table(places, values, e)` in the tree → the interpolating polynomials, chosen by comparisons of e.
//!
//! With places x₀ < … < xₙ and values y the value between xᵢ and xᵢ₊₁ is, with d = e − xᵢ and h = xᵢ₊₁ − xᵢ,
//!
//! ```text
//! linear    yᵢ + δᵢ d                                      δᵢ = (yᵢ₊₁ − yᵢ) / h
//! cubic     yᵢ + d (mᵢ + d (cᵢ + d bᵢ))                    cᵢ = (3δᵢ − 2mᵢ − mᵢ₊₁) / h,  bᵢ = (mᵢ + mᵢ₊₁ − 2δᵢ) / h²
//! ```
//!
//! Slopes m are those of Fritsch and Butland (1984): weighted harmonic means of δ, 0 at an extremum, so that the curve is
//! monotone where the values are. A polynomial's coefficients are nested conditions, log₂ n deep, which share their
//! comparisons. Derivatives of such an expression are exact, and it stands wherever an expression can.

use super::scan::{Scan, Token};
use crate::arena::IndexVec;
use crate::ast::{Argument, BinaryOp, Expr, ExprId, ExprKind, Ident, Span, UnaryOp};
use crate::codes::Code;
use crate::diagnostic::Diagnostic;
use crate::source::TableFolder;

/// The expressions of a file.
type Arena = IndexVec<ExprId, Expr>;

/// The function's name.
const TABLE: &str = "table";

/// Largest number of rows: conditions of more would make kernels slow to compile.
const MOST_ROWS: usize = 1000;

/// Folder of the files of tables, and the meaning of `table`.
#[derive(Clone, Debug, Default)]
pub(super) struct TableSettings {
    /// The folder of the text, if it has one.
    pub(super) folder: Option<TableFolder>,
    /// True if a function of a form has this name.
    pub(super) is_declared: bool,
}

/// Returns whether a text declares a function of this name.
pub(super) fn is_declared(scan: &Scan, text: &str) -> bool {
    let word = |token: &Token| &text[token.span.range()];
    scan.tokens.windows(2).any(|pair| word(&pair[0]) == "fn" && word(&pair[1]) == TABLE)
}

/// Returns the expression of a call of `table`, or its mistake; `None` for other calls.
pub(super) fn table(
    arena: &mut Arena,
    settings: &TableSettings,
    (function, arguments, named): (&Ident, &[ExprId], &[Argument]),
    span: Span,
) -> Option<Result<ExprId, Box<Diagnostic>>> {
    if function.name != TABLE || settings.is_declared {
        return None;
    }
    let table = read(arena, settings.folder.as_ref(), (function, arguments, named));
    Some(table.map(|table| table.expression(&mut Tree { span, arena })))
}

/// Values outside of a table.
#[derive(Clone, Copy, PartialEq)]
enum Extrapolation {
    /// Not a number, so that a solve fails and says where.
    Error,
    /// The value of the end.
    Hold,
    /// The straight line through the end.
    Extend,
}

/// A piecewise polynomial of an expression.
struct Table {
    /// The argument.
    of: ExprId,
    places: Vec<f64>,
    values: Vec<f64>,
    is_linear: bool,
    outside: Extrapolation,
}

/// Reads the arguments of a call.
fn read(
    arena: &Arena,
    folder: Option<&TableFolder>,
    (function, arguments, named): (&Ident, &[ExprId], &[Argument]),
) -> Result<Table, Box<Diagnostic>> {
    let wrong = |span: Span, message: String, label: &str| {
        Box::new(Diagnostic::new(Code::BadArgument, message).label(span, label.to_owned()))
    };
    let usage = "write `table([0, 1, 2], [0, 3, 4], u)` or `table(\"data.csv\", u)`";
    let (places, values, of) = match arguments[..] {
        [places, values, of] => (column(arena, places)?, column(arena, values)?, of),
        [path, of] => match &arena[path].kind {
            ExprKind::Text(name) => {
                let (places, values) = rows(folder, name).map_err(|reason| {
                    let message = format!("cannot read the table \"{name}\": {reason}");
                    let help = "a row has two numbers, separated by a comma, a semicolon or blanks";
                    Box::new(
                        Diagnostic::new(Code::BadValue, message)
                            .label(arena[path].span, "this file")
                            .help(help),
                    )
                })?;
                (places, values, of)
            }
            _ => {
                let message = "a table has places and values, or a file".to_owned();
                return Err(Box::new(wrong(function.span, message, "in this call").help(usage)));
            }
        },
        _ => {
            let message = format!("`{TABLE}` takes 2 or 3 arguments without a name");
            return Err(Box::new(wrong(function.span, message, "in this call").help(usage)));
        }
    };
    let at = arena[arguments[0]].span;
    if places.len() != values.len() {
        let message = format!("{} places have {} values", places.len(), values.len());
        return Err(wrong(function.span, message, "in this table"));
    }
    if !(2..=MOST_ROWS).contains(&places.len()) {
        let message = format!("a table has 2 to {MOST_ROWS} rows, but this has {}", places.len());
        return Err(wrong(at, message, "these"));
    }
    if let Some(pair) = places.windows(2).find(|pair| pair[0] >= pair[1]) {
        let message = format!("the places of a table ascend, but {} follows {}", pair[1], pair[0]);
        return Err(wrong(at, message, "not ascending"));
    }
    let mut table = Table { of, places, values, is_linear: false, outside: Extrapolation::Error };
    for Argument { name, value } in named {
        let word = match &arena[*value].kind {
            ExprKind::Name(word) => word.as_str(),
            _ => "",
        };
        match (name.name.as_str(), word) {
            ("interpolation", "cubic") => table.is_linear = false,
            ("interpolation", "linear") => table.is_linear = true,
            ("outside", "error") => table.outside = Extrapolation::Error,
            ("outside", "hold") => table.outside = Extrapolation::Hold,
            ("outside", "extend") => table.outside = Extrapolation::Extend,
            ("interpolation", _) => {
                let message = "`interpolation` is `cubic` or `linear`".to_owned();
                return Err(wrong(arena[*value].span, message, "neither"));
            }
            ("outside", _) => {
                let message = "`outside` is `error`, `hold` or `extend`".to_owned();
                return Err(wrong(arena[*value].span, message, "none of these"));
            }
            _ => {
                let message = format!("`{TABLE}` has no argument `{}`", name.name);
                let diagnostic = wrong(name.span, message, "not here");
                let known = ["interpolation", "outside"];
                return Err(Box::new(diagnostic.suggest(&name.name, known)));
            }
        }
    }
    Ok(table)
}

/// Reads an array of numbers.
fn column(arena: &Arena, id: ExprId) -> Result<Vec<f64>, Box<Diagnostic>> {
    let number = |id: ExprId| match arena[id].kind {
        ExprKind::Number(value) => Some(value),
        ExprKind::Unary { op: UnaryOp::Neg, operand, .. } => match arena[operand].kind {
            ExprKind::Number(value) => Some(-value),
            _ => None,
        },
        _ => None,
    };
    let wrong = |id: ExprId| {
        Box::new(
            Diagnostic::new(Code::BadArgument, "places and values of a table are numbers")
                .label(arena[id].span, "no number")
                .help("multiply the table by a parameter, or its argument: `c * table([0, 1], [0, 2], u / d)`"),
        )
    };
    match &arena[id].kind {
        ExprKind::Array(items) => {
            items.iter().map(|&item| number(item).ok_or_else(|| wrong(item))).collect()
        }
        _ => Err(wrong(id)),
    }
}

/// Reads the first two columns of a file; lines that begin with `#`, and a first line without numbers, are left out.
fn rows(folder: Option<&TableFolder>, name: &str) -> Result<(Vec<f64>, Vec<f64>), String> {
    let Some(folder) = folder else {
        return Err(
            "this text belongs to no folder; write its numbers, `table([…], […], u)`".to_owned()
        );
    };
    let text = (folder.read)(&folder.path.join(name))?;
    let (mut places, mut values) = (Vec::new(), Vec::new());
    let lines = text.lines().zip(1..).map(|(line, number)| (line.trim(), number));
    for (line, number) in lines.filter(|(line, _)| !line.is_empty() && !line.starts_with('#')) {
        let words = line.split(|c: char| c == ',' || c == ';' || c.is_whitespace());
        let mut words = words.filter(|word| !word.is_empty());
        let mut next =
            || words.next().and_then(|word| word.parse().ok()).filter(|x: &f64| x.is_finite());
        match (next(), next()) {
            (Some(place), Some(value)) => {
                places.push(place);
                values.push(value);
            }
            (None, _) if places.is_empty() => {}
            _ => return Err(format!("line {number} has no two numbers")),
        }
    }
    Ok((places, values))
}

/// One polynomial: the place from which its argument counts, and its coefficients.
type Polynomial = [f64; 5];

impl Table {
    /// Returns the polynomials between the places.
    fn polynomials(&self) -> Vec<Polynomial> {
        let (x, y) = (&self.places, &self.values);
        let steps: Vec<f64> = x.windows(2).map(|x| x[1] - x[0]).collect();
        let rises = y.windows(2).zip(&steps).map(|(y, h)| (y[1] - y[0]) / h);
        let rises: Vec<f64> = rises.collect();
        let slopes = slopes(&steps, &rises);
        let polynomial = |i: usize| {
            let (h, rise) = (steps[i], rises[i]);
            if self.is_linear {
                return [x[i], y[i], rise, 0.0, 0.0];
            }
            let (m, next) = (slopes[i], slopes[i + 1]);
            let second = (3.0 * rise - 2.0 * m - next) / h;
            [x[i], y[i], m, second, (m + next - 2.0 * rise) / (h * h)]
        };
        let mut all: Vec<Polynomial> = (0..steps.len()).map(polynomial).collect();
        if self.outside == Extrapolation::Extend {
            let last = steps.len();
            let ends = match self.is_linear {
                true => [rises[0], rises[last - 1]],
                false => [slopes[0], slopes[last]],
            };
            all.insert(0, [x[0], y[0], ends[0], 0.0, 0.0]);
            all.push([x[last], y[last], ends[1], 0.0, 0.0]);
        }
        all
    }

    /// Returns the expression that takes the place of the call.
    fn expression(&self, tree: &mut Tree<'_>) -> ExprId {
        let polynomials = self.polynomials();
        let (first, last) = (self.places[0], self.places[self.places.len() - 1]);
        let mut e = self.of;
        if self.outside == Extrapolation::Hold {
            let (first, last) = (tree.number(first), tree.number(last));
            let above = tree.call("max", vec![e, first]);
            e = tree.call("min", vec![above, last]);
        }
        // The polynomial i holds below the bound i, except the last.
        let bounds = match self.outside {
            Extrapolation::Extend => &self.places[..],
            _ => &self.places[1..self.places.len() - 1],
        };
        let below = |tree: &mut Tree<'_>, &bound: &f64| {
            let bound = tree.number(bound);
            tree.binary(BinaryOp::Lt, e, bound)
        };
        let below: Vec<ExprId> = bounds.iter().map(|bound| below(tree, bound)).collect();
        let coefficient = |tree: &mut Tree<'_>, number: usize| {
            let all: Vec<f64> = polynomials.iter().map(|own| own[number]).collect();
            tree.choice(&all, &below)
        };
        let place = coefficient(tree, 0);
        let d = tree.binary(BinaryOp::Sub, e, place);
        let highest = if self.is_linear { 2 } else { 4 };
        let mut value = coefficient(tree, highest);
        for number in (1..highest).rev() {
            let product = tree.binary(BinaryOp::Mul, d, value);
            let own = coefficient(tree, number);
            value = tree.binary(BinaryOp::Add, own, product);
        }
        if self.outside == Extrapolation::Error {
            let [first, last] = [first, last].map(|end| tree.number(end));
            let from = tree.binary(BinaryOp::Sub, e, first);
            let to = tree.binary(BinaryOp::Sub, last, e);
            let nearest = tree.call("min", vec![from, to]);
            let zero = tree.number(0.0);
            let condition = tree.binary(BinaryOp::Lt, nearest, zero);
            // The logarithm of a negative number is not a number.
            let then = tree.call("log", vec![nearest]);
            return tree.push(ExprKind::If { condition, then, otherwise: value });
        }
        value
    }
}

/// Returns the slopes at the places (Fritsch and Butland 1984; at the ends those of a parabola through three places,
/// limited to the shape of the data).
fn slopes(steps: &[f64], rises: &[f64]) -> Vec<f64> {
    let count = steps.len();
    if count == 1 {
        return vec![rises[0]; 2];
    }
    let inner = |i: usize| {
        let (left, right) = (rises[i - 1], rises[i]);
        if left * right <= 0.0 {
            return 0.0;
        }
        let (a, b) = (2.0 * steps[i] + steps[i - 1], steps[i] + 2.0 * steps[i - 1]);
        (a + b) / (a / left + b / right)
    };
    let end = |[h, next]: [f64; 2], [rise, beyond]: [f64; 2]| {
        let slope = ((2.0 * h + next) * rise - h * beyond) / (h + next);
        match () {
            () if slope * rise <= 0.0 => 0.0,
            () if rise * beyond <= 0.0 && slope.abs() > 3.0 * rise.abs() => 3.0 * rise,
            () => slope,
        }
    };
    let first = end([steps[0], steps[1]], [rises[0], rises[1]]);
    let last = end([steps[count - 1], steps[count - 2]], [rises[count - 1], rises[count - 2]]);
    std::iter::once(first).chain((1..count).map(inner)).chain([last]).collect()
}

/// Expressions with the location of one call.
struct Tree<'a> {
    span: Span,
    arena: &'a mut Arena,
}

impl Tree<'_> {
    fn push(&mut self, kind: ExprKind) -> ExprId {
        self.arena.push(Expr { kind, span: self.span })
    }

    fn number(&mut self, value: f64) -> ExprId {
        let size = self.push(ExprKind::Number(value.abs()));
        if value.is_sign_positive() || value == 0.0 {
            return size;
        }
        self.push(ExprKind::Unary { op: UnaryOp::Neg, op_span: self.span, operand: size })
    }

    fn binary(&mut self, op: BinaryOp, left: ExprId, right: ExprId) -> ExprId {
        self.push(ExprKind::Binary { op, op_span: self.span, left, right })
    }

    fn call(&mut self, name: &str, arguments: Vec<ExprId>) -> ExprId {
        let function = Ident { name: name.to_owned(), span: self.span };
        self.push(ExprKind::Call { function, arguments, named: Vec::new() })
    }

    /// Returns the number i of those that hold below the bound i, by halves.
    fn choice(&mut self, all: &[f64], below: &[ExprId]) -> ExprId {
        if all.iter().all(|value| value.to_bits() == all[0].to_bits()) {
            return self.number(all[0]);
        }
        let half = all.len() / 2;
        let then = self.choice(&all[..half], &below[..half - 1]);
        let otherwise = self.choice(&all[half..], &below[half..]);
        self.push(ExprKind::If { condition: below[half - 1], then, otherwise })
    }
}
