//! The mesh of a problem: a file, or a generator with its arguments.

use super::arguments::{self, ArgumentKind, ArgumentTable};
use super::{Piece, Statement};
use crate::ast::{self, ProblemItemKind};
use crate::codes::Code;
use crate::diagnostic::Diagnostic;
use crate::problem::{Argument, MeshSource};
use crate::source::Span;
use crate::suggestions;
use std::collections::BTreeMap;

const CELL: ArgumentKind = ArgumentKind::Word(&["quad", "tri", "hex", "tet"]);
const DIM: ArgumentKind = ArgumentKind::Whole(2, 3);
const REFINE: ArgumentKind = ArgumentKind::Whole(0, 14);
const ORDER: ArgumentKind = ArgumentKind::Whole(1, 12);

pub(super) struct Generator {
    pub(super) name: &'static str,
    pub(super) arguments: ArgumentTable,
    /// Required arguments.
    pub(super) required: &'static [&'static str],
    pub(super) dim: usize,
    pub(super) tags: fn(usize) -> &'static [&'static str],
}

pub(super) const GENERATORS: &[Generator] = &[
    Generator {
        name: "box",
        arguments: &[
            ("dim", DIM),
            ("cells", ArgumentKind::Counts),
            ("from", ArgumentKind::Point),
            ("to", ArgumentKind::Point),
            ("cell", CELL),
            ("deform", ArgumentKind::Number),
        ],
        required: &["cells"],
        dim: 3,
        tags: |dim| &["x0", "x1", "y0", "y1", "z0", "z1"][..2 * dim],
    },
    Generator {
        name: "interval",
        arguments: &[
            ("cells", ArgumentKind::Whole(1, 1 << 20)),
            ("from", ArgumentKind::Number),
            ("to", ArgumentKind::Number),
        ],
        required: &["cells"],
        dim: 1,
        tags: |_| &["x0", "x1"],
    },
    Generator {
        name: "ball",
        arguments: &[("dim", DIM), ("refine", REFINE), ("order", ORDER), ("cell", CELL)],
        required: &[],
        dim: 3,
        tags: |_| &["surface"],
    },
    Generator {
        name: "shell",
        arguments: &[
            ("dim", DIM),
            ("inner", ArgumentKind::Positive),
            ("outer", ArgumentKind::Positive),
            ("refine", REFINE),
            ("order", ORDER),
            ("cell", CELL),
        ],
        required: &[],
        dim: 3,
        tags: |_| &["inner", "outer"],
    },
    Generator {
        name: "lshape",
        arguments: &[("dim", DIM), ("refine", REFINE), ("cell", CELL)],
        required: &[],
        dim: 2,
        tags: |_| &["boundary"],
    },
];

/// A problem's mesh.
#[derive(Clone, Debug)]
pub(crate) struct MeshChoice {
    /// Its source.
    pub(crate) source: MeshSource,
    /// Its dimension, if it is known before generation.
    pub(crate) dim: Option<usize>,
    /// Its boundary tags, if they are known before generation.
    pub(crate) tags: Option<&'static [&'static str]>,
    /// Its location in the text.
    pub(crate) span: Span,
}

impl MeshChoice {
    /// Returns the cell, if it is known before generation, and the largest degree of its elements.
    pub(crate) fn largest_degree(&self) -> Option<(&'static str, i64)> {
        let MeshSource::Generator { arguments, .. } = &self.source else { return None };
        let cell = arguments.get("cell").and_then(Argument::word);
        Some(match (cell, self.dim?) {
            (Some("tri"), _) => ("tri", 4),
            (Some("tet"), _) => ("tet", 4),
            (_, 1) => ("interval", 12),
            (_, 2) => ("quad", 12),
            _ => ("hex", 12),
        })
    }
}

/// Returns the mesh of the statements; the last one, if there are several.
pub(crate) fn mesh(statements: &[Statement<'_>]) -> (Option<(MeshChoice, usize)>, Vec<Diagnostic>) {
    let mut diagnostics = Vec::new();
    let mut choice = None;
    for (index, statement) in statements.iter().enumerate() {
        match statement.kind {
            ProblemItemKind::MeshFile(path) => {
                let source = MeshSource::File(path.text.clone());
                let found = MeshChoice { source, dim: None, tags: None, span: path.span };
                choice = Some((found, index));
            }
            ProblemItemKind::MeshGenerator(named) => match generator(statement.piece, named) {
                Ok(found) => choice = Some((found, index)),
                Err(found) => diagnostics.extend(found),
            },
            _ => {}
        }
    }
    (choice, diagnostics)
}

fn generator(piece: &Piece, named: &ast::NamedCall) -> Result<MeshChoice, Vec<Diagnostic>> {
    let name = named.name.name.as_str();
    let Some(generator) = GENERATORS.iter().find(|generator| generator.name == name) else {
        let names = GENERATORS.iter().map(|generator| generator.name);
        let list: Vec<String> = names.clone().map(|name| format!("`{name}`")).collect();
        let diagnostic =
            Diagnostic::new(Code::UnknownGenerator, format!("unknown mesh generator `{name}`"))
                .label(named.name.span, "no such generator")
                .note(format!("the generators are {}", list.join(", ")))
                .suggest_or(name, names, suggestions::generator(name));
        return Err(vec![piece.place(diagnostic)]);
    };
    let (known, mut diagnostics) =
        arguments::known(piece, &named.name, &named.arguments, generator.arguments);
    let dim = dimension(piece, generator, &known, &mut diagnostics);
    let mut values = BTreeMap::new();
    for (argument, kind) in known {
        match arguments::read(piece, argument, kind, dim) {
            Ok(value) => drop(values.insert(argument.name.name.clone(), value)),
            Err(found) => diagnostics.extend(found),
        }
    }
    for required in generator.required {
        if !named.arguments.iter().any(|argument| argument.name.name == *required) {
            let message = format!("`{name}` needs the argument `{required}`");
            let diagnostic = Diagnostic::new(Code::BadArgument, message)
                .label(named.span, format!("`{required}` is missing"))
                .help(format!("write `{name}({required}: 8)`"));
            diagnostics.push(piece.place(diagnostic));
        }
    }
    if !diagnostics.is_empty() {
        return Err(diagnostics);
    }
    // The generator itself has the same defaults; setting the dimension makes this the only definition.
    values.entry("dim".to_owned()).or_insert(Argument::Number(dim as f64));
    Ok(MeshChoice {
        source: MeshSource::Generator { name: name.to_owned(), arguments: values },
        dim: Some(dim),
        tags: Some((generator.tags)(dim)),
        span: named.span,
    })
}

/// Returns the dimension according to `dim`, else the cell, else the generator's default.
fn dimension(
    piece: &Piece,
    generator: &Generator,
    known: &[(&ast::Argument, ArgumentKind)],
    diagnostics: &mut Vec<Diagnostic>,
) -> usize {
    let find = |name: &str| known.iter().find(|(argument, _)| argument.name.name == name);
    let said = find("dim").and_then(|(argument, kind)| {
        // A wrong one is reported when all arguments are read.
        match arguments::read(piece, argument, *kind, generator.dim) {
            Ok(Argument::Number(dim)) => Some(dim as usize),
            _ => None,
        }
    });
    let cell = find("cell").and_then(|(argument, _)| {
        let word = arguments::word(&piece.file.exprs, argument.value)?;
        let dim = match word {
            "quad" | "tri" => 2,
            "hex" | "tet" => 3,
            _ => return None,
        };
        Some((dim, argument, word))
    });
    if let (Some(dim), Some((cell_dim, argument, word))) = (said, cell)
        && dim != cell_dim
    {
        let fitting = if dim == 2 { "`quad` or `tri`" } else { "`hex` or `tet`" };
        let message = format!("a `{word}` has {cell_dim} dimensions, but `dim` is {dim}");
        let diagnostic = Diagnostic::new(Code::BadValue, message)
            .label(piece.file.exprs[argument.value].span, format!("expected {fitting}"));
        diagnostics.push(piece.place(diagnostic));
    }
    said.or(cell.map(|(dim, ..)| dim)).unwrap_or(generator.dim)
}
