//! `names`: [`ast::File`] → the declaration of each name, with its uses, for editors.
//!
//! It needs no valid file: a name that is declared twice belongs to its first declaration, as in `check`, and undeclared
//! names are left out. Names of the language ([`words`](crate::words)) have no declaration unless a form declares them.

mod collect;

use crate::ast;
use crate::source::Span;
use collect::Collector;

/// The kind of a declared name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum NameKind {
    /// `form a { … }`
    Form,
    /// `problem p solves a { … }`
    Problem,
    /// `field u: …;`
    Field,
    /// `aux a: …;`
    Data,
    /// `state p: …;`
    State,
    /// `param c = …;`
    Param,
    /// `let s = …;`
    Let,
    /// `fn f(…) = …;`
    Function,
    /// `a` in `fn f(a) = …;`
    Argument,
    /// `test v for u;`
    Test,
    /// `report r = …;`
    Report,
    /// `output s = …;`
    Output,
}

impl NameKind {
    /// Returns the noun for messages.
    pub const fn noun(self) -> &'static str {
        match self {
            Self::Form => "form",
            Self::Problem => "problem",
            Self::Field => "field",
            Self::Data => "auxiliary data",
            Self::State => "state",
            Self::Param => "parameter",
            Self::Let => "expression",
            Self::Function => "function",
            Self::Argument => "argument",
            Self::Test => "test function",
            Self::Report => "report",
            Self::Output => "output",
        }
    }
}

/// A declared name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Declaration {
    /// The name.
    pub name: String,
    /// Its kind.
    pub kind: NameKind,
    /// The location of the name.
    pub span: Span,
    /// The item that declares it; of an argument its function.
    pub item: Span,
    /// The text in which expressions may use it; empty for forms, problems and results.
    pub scope: Span,
    /// The form, by its index in the file: itself, that of an item, or that of a problem.
    pub form: Option<usize>,
    /// The documentation comment.
    pub doc: String,
    /// The names of the arguments of a function; the field of a test function.
    pub arguments: Vec<String>,
}

/// A use of a declared name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct NameUse {
    /// Its location.
    pub span: Span,
    /// The index of its declaration.
    pub declaration: usize,
}

/// The declarations and uses of the names of a file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NameTable {
    declarations: Vec<Declaration>,
    /// By location, each once.
    uses: Vec<NameUse>,
}

impl NameTable {
    /// Resolves the names of a file.
    pub fn of(file: &ast::File) -> Self {
        let mut table = Collector::new(file).finish();
        table.uses.sort_unstable();
        table.uses.dedup();
        table
    }

    /// Returns the declarations in order.
    pub fn declarations(&self) -> &[Declaration] {
        &self.declarations
    }

    /// Returns the uses by location.
    pub fn uses(&self) -> &[NameUse] {
        &self.uses
    }

    /// Returns the name at an offset, which may be one past its end: its location, and the index of its declaration.
    pub fn at(&self, offset: u32) -> Option<(Span, usize)> {
        let touches = |span: Span| span.start <= offset && offset <= span.end;
        let declared = self.declarations.iter().enumerate().map(|(at, own)| (own.span, at));
        let used = self.uses.iter().map(|own| (own.span, own.declaration));
        // Of two that touch, the one that begins here.
        declared.chain(used).filter(|(span, _)| touches(*span)).max_by_key(|(span, _)| span.start)
    }

    /// Returns the locations of a name, its declaration included, in order.
    pub fn locations(&self, declaration: usize) -> Vec<Span> {
        let uses = self.uses.iter().filter(|own| own.declaration == declaration);
        let declared = self.declarations.get(declaration).map(|own| own.span);
        let mut all: Vec<Span> = uses.map(|own| own.span).chain(declared).collect();
        all.sort_unstable();
        all.dedup();
        all
    }

    /// Returns the declarations that an expression at an offset may use.
    pub fn visible(&self, offset: u32) -> impl Iterator<Item = &Declaration> {
        let inside = move |own: &&Declaration| {
            own.scope.start <= offset && offset <= own.scope.end && own.scope != Span::default()
        };
        self.declarations.iter().filter(inside)
    }
}

#[cfg(test)]
mod tests {
    use super::{NameKind, NameTable};
    use crate::parse::parse;
    use crate::source::Source;

    /// Returns `kind name: texts` for each declaration, where each location must have the text of the name.
    fn table(text: &str) -> Vec<String> {
        let source = Source::new("a.wf", text);
        let names = NameTable::of(&parse(&source).0);
        let line = |(at, own): (usize, &super::Declaration)| {
            let locations = names.locations(at);
            for location in &locations {
                assert_eq!(source.slice(*location), own.name, "at {location:?}");
            }
            format!("{} {}: {}", own.kind.noun(), own.name, locations.len())
        };
        names.declarations().iter().enumerate().map(line).collect()
    }

    #[test]
    fn names_have_all_their_uses() {
        let text = "form a { field u: vector; aux s: scalar; param c = 1; let e = c * u; fn f(c2, s2) = c2 * s2 + c; \
                    test v for u; residual = dot(e, v) + f(s, c); on boundary \"a\" { let e2 = 2 * e; \
                    residual = dot(e2, v); } } \
                    problem p solves a { mesh = box(cells: 2); aux s = c; param c = 2; dirichlet u = [c, 0]; \
                    dirichlet dot(u, n) = c; report r = integral(dot(e, e)); output e; \
                    solver = newton(load: c, steps: 2, preconditioner: block(u: multigrid)); }\
                    problem q solves a { mesh = box(cells: 2); aux s = solution(p, \"u\"); stages = repeat(p); }";
        let expected = [
            "form a: 3",
            "problem p: 3",
            "problem q: 1",
            "field u: 7",
            "auxiliary data s: 4",
            "parameter c: 9",
            "expression e: 6",
            "function f: 2",
            "argument c2: 2",
            "argument s2: 2",
            "test function v: 3",
            "expression e2: 2",
            "report r: 1",
        ];
        let mut found = table(text);
        found.sort();
        let mut expected = expected.map(str::to_owned).to_vec();
        expected.sort();
        assert_eq!(found, expected);
    }

    #[test]
    fn forms_have_names_of_their_own() {
        let text =
            "form a { field u: scalar; f0[u] = u; } form b { field u: scalar; f0[u] = u + w; }";
        assert_eq!(table(text), ["form a: 1", "form b: 1", "field u: 3", "field u: 3"]);
    }

    #[test]
    fn broken_items_declare_their_names() {
        let text = "form a { field u: ; fn f(a, b) = a * ; test v for u; state s: = 1; f0[u] = f(u, s) + v; }";
        let names = NameTable::of(&parse(&Source::new("a.wf", text)).0);
        let kinds: Vec<NameKind> = names.declarations().iter().map(|own| own.kind).collect();
        assert!(
            kinds.contains(&NameKind::Function) && kinds.contains(&NameKind::Data),
            "{kinds:?}"
        );
        let offset = text.find("f(u").expect("a call") as u32;
        let (_, at) = names.at(offset).expect("a name");
        assert_eq!(names.declarations()[at].arguments, ["a", "b"]);
        assert!(names.visible(offset).any(|own| own.name == "s"));
        assert!(
            !names.visible(offset).any(|own| own.name == "b"),
            "an argument leaves its function"
        );
    }
}
