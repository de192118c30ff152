//! `settings`: the attribute `#![ahead_of_time(…)]` of the macro → for which cells and degrees kernels
//! are compiled with the program.
//!
//! The attribute is none of the language, which has no `#`: it is taken out before the rest is laid
//! out. `hex(1, 2)` asks for degrees 1 and 2 on cells of geometry order 1 and 2, with the quadrature that the
//! language prescribes; `hex(2, order = 3, quadrature = 6)` names these too.

use kernels_gen::element::Cell;
use proc_macro2::{Delimiter, Group, Span, TokenStream, TokenTree};

/// Kernels asked for.
#[derive(Clone, Debug)]
pub(crate) struct Wanted {
    pub(crate) cell: Cell,
    pub(crate) degree: usize,
    /// The geometry's order, where it was named.
    pub(crate) order: Option<usize>,
    /// The quadrature degree, where it was named.
    pub(crate) quadrature: Option<usize>,
    /// Where.
    pub(crate) span: Span,
}

/// A mistake in the attribute.
#[derive(Clone, Debug)]
pub(crate) struct Mistake {
    pub(crate) message: String,
    pub(crate) span: Span,
}

impl Mistake {
    pub(crate) fn new(message: impl Into<String>, span: Span) -> Self {
        Self { message: message.into(), span }
    }
}

/// What the attributes say, what is wrong with them, and the tokens without them.
#[derive(Debug)]
pub(crate) struct Settings {
    pub(crate) wanted: Vec<Wanted>,
    pub(crate) mistakes: Vec<Mistake>,
    pub(crate) rest: TokenStream,
}

/// Takes the attributes out of the macro's tokens.
pub(crate) fn settings(tokens: TokenStream) -> Settings {
    let tokens: Vec<TokenTree> = tokens.into_iter().collect();
    let (mut wanted, mut mistakes) = (Vec::new(), Vec::new());
    let mut rest = TokenStream::new();
    let mut at = 0;
    while at < tokens.len() {
        if let [hash, bang, TokenTree::Group(group), ..] = &tokens[at..]
            && is(hash, '#')
            && is(bang, '!')
            && group.delimiter() == Delimiter::Bracket
            && let Some(name) = word(group.stream().into_iter().next().as_ref())
            && name != "doc"
        {
            match attribute(&name, group) {
                Ok(found) => wanted.extend(found),
                Err(mistake) => mistakes.push(mistake),
            }
            at += 3;
        } else {
            rest.extend([tokens[at].clone()]);
            at += 1;
        }
    }
    Settings { wanted, mistakes, rest }
}

fn is(token: &TokenTree, sign: char) -> bool {
    matches!(token, TokenTree::Punct(punct) if punct.as_char() == sign)
}

fn word(token: Option<&TokenTree>) -> Option<String> {
    match token {
        Some(TokenTree::Ident(ident)) => Some(ident.to_string()),
        _ => None,
    }
}

const SHAPE: &str = "expected cells with degrees, as in `#![ahead_of_time(hex(2), tri(1, 3))]`";

/// `ahead_of_time(hex(2), …)`.
fn attribute(name: &str, group: &Group) -> Result<Vec<Wanted>, Mistake> {
    if name != "ahead_of_time" {
        let message = format!("unknown attribute `{name}`; there is `ahead_of_time`");
        return Err(Mistake::new(message, group.span()));
    }
    let parts: Vec<TokenTree> = group.stream().into_iter().collect();
    let [_, TokenTree::Group(list)] = parts.as_slice() else {
        return Err(Mistake::new(SHAPE, group.span()));
    };
    let mut wanted = Vec::new();
    for item in split(list.stream()) {
        let [TokenTree::Ident(cell), TokenTree::Group(arguments)] = item.as_slice() else {
            let span = item.first().map_or(list.span(), TokenTree::span);
            return Err(Mistake::new(SHAPE, span));
        };
        let named = cell.to_string().parse::<Cell>().ok().filter(|cell| Cell::ALL.contains(cell));
        let named = named.ok_or_else(|| {
            let message = format!("unknown cell `{cell}`; the cells are tri, quad, tet, hex");
            Mistake::new(message, cell.span())
        })?;
        wanted.extend(degrees(named, arguments)?);
    }
    match wanted.is_empty() {
        true => Err(Mistake::new(SHAPE, group.span())),
        false => Ok(wanted),
    }
}

/// `(1, 2, order = 3)`.
fn degrees(cell: Cell, arguments: &Group) -> Result<Vec<Wanted>, Mistake> {
    let (mut order, mut quadrature) = (None, None);
    let mut degrees = Vec::new();
    for item in split(arguments.stream()) {
        match item.as_slice() {
            [TokenTree::Literal(degree)] => {
                degrees.push((number(&degree.to_string(), degree.span())?, degree.span()));
            }
            [TokenTree::Ident(name), equals, TokenTree::Literal(value)] if is(equals, '=') => {
                let value = number(&value.to_string(), value.span())?;
                match name.to_string().as_str() {
                    "order" => order = Some(value),
                    "quadrature" => quadrature = Some(value),
                    _ => {
                        let message =
                            format!("unknown setting `{name}`; there are `order` and `quadrature`");
                        return Err(Mistake::new(message, name.span()));
                    }
                }
            }
            _ => {
                let span = item.first().map_or(arguments.span(), TokenTree::span);
                return Err(Mistake::new("expected a degree, as in `hex(2)`", span));
            }
        }
    }
    if degrees.is_empty() {
        return Err(Mistake::new("expected a degree, as in `hex(2)`", arguments.span()));
    }
    let wanted = |(degree, span): (usize, Span)| Wanted { cell, degree, order, quadrature, span };
    Ok(degrees.into_iter().map(wanted).collect())
}

fn number(text: &str, span: Span) -> Result<usize, Mistake> {
    let number = text.parse().ok().filter(|number| (1..=64).contains(number));
    number.ok_or_else(|| {
        Mistake::new(
            format!("`{text}` is not a degree: expected a whole number from 1 to 64"),
            span,
        )
    })
}

/// The parts between commas.
fn split(tokens: TokenStream) -> Vec<Vec<TokenTree>> {
    let mut parts = vec![Vec::new()];
    for token in tokens {
        match (is(&token, ','), parts.last_mut()) {
            (false, Some(last)) => last.push(token),
            _ => parts.push(Vec::new()),
        }
    }
    if parts.last().is_some_and(Vec::is_empty) {
        parts.pop();
    }
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    fn taken(text: &str) -> Result<(Vec<Wanted>, String), String> {
        let found = settings(text.parse().expect("the text should be tokens of Rust"));
        match found.mistakes.into_iter().next() {
            Some(mistake) => Err(mistake.message),
            None => Ok((found.wanted, found.rest.to_string())),
        }
    }

    #[test]
    fn the_attribute_is_taken_out() {
        let (wanted, rest) = taken(
            "//! doc\n#![ahead_of_time(hex(1, 2,), tri(3, order = 2, quadrature = 7))] form a { }",
        )
        .expect("right");
        let found: Vec<_> =
            wanted.iter().map(|w| (w.cell, w.degree, w.order, w.quadrature)).collect();
        let (hex, tri) = (Cell::Hexahedron, Cell::Triangle);
        let expected = [(hex, 1, None, None), (hex, 2, None, None), (tri, 3, Some(2), Some(7))];
        assert_eq!(found, expected);
        assert!(rest.contains("doc") && rest.ends_with("form a { }"), "{rest}");
        assert!(!rest.contains("ahead_of_time"), "{rest}");
    }

    #[test]
    fn mistakes_say_what_was_expected() {
        for (text, message) in [
            ("#![ahead(hex(2))]", "unknown attribute `ahead`"),
            ("#![ahead_of_time]", "expected cells with degrees"),
            ("#![ahead_of_time()]", "expected cells with degrees"),
            ("#![ahead_of_time(hex)]", "expected cells with degrees"),
            ("#![ahead_of_time(cube(2))]", "unknown cell `cube`"),
            ("#![ahead_of_time(interval(2))]", "unknown cell `interval`"),
            ("#![ahead_of_time(hex())]", "expected a degree"),
            ("#![ahead_of_time(hex(order = 2))]", "expected a degree"),
            ("#![ahead_of_time(hex(0))]", "`0` is not a degree"),
            (
                "#![ahead_of_time(hex(99))]",
                "`99` is not a degree: expected a whole number from 1 to 64",
            ),
            ("#![ahead_of_time(hex(2.5))]", "`2.5` is not a degree"),
            ("#![ahead_of_time(hex(2, rule = 1))]", "unknown setting `rule`"),
            ("#![ahead_of_time(hex(2 2))]", "expected a degree"),
        ] {
            let found = taken(text).expect_err(text);
            assert!(found.starts_with(message), "{text}: {found}");
        }
    }
}
