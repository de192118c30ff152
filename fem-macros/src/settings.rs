//! `settings`: the attribute `#![ahead_of_time(…)]` of the macro → for which cells and degrees kernels
//! are compiled with the program.
//!
//! The attribute is none of the language, which has no `#`: it is taken out before the rest is laid
//! out. `hex(1, 2)` asks for degrees 1 and 2 on cells of geometry order 1 and 2, with the quadrature that the
//! language prescribes; `hex(2, order = 3, quadrature = 6)` names these too.

use fem_dsl::problem::Quadrature;
use kernels_gen::element::Cell;
use proc_macro2::{Delimiter, Group, Span, TokenStream, TokenTree};
use quote::ToTokens;
use syn::parse::{Parse, ParseStream};
use syn::punctuated::Punctuated;
use syn::{Error, Ident, Lit, Token, parenthesized, parse2, token};

/// Kernels asked for.
#[derive(Clone, Debug)]
pub(crate) struct Wanted {
    pub(crate) cell: Cell,
    pub(crate) degree: usize,
    /// The geometry's order, where it was named.
    pub(crate) order: Option<usize>,
    /// The quadrature, where it was named.
    pub(crate) quadrature: Option<Quadrature>,
    /// Where.
    pub(crate) span: Span,
}

/// What the attributes say, what is wrong with them, and the tokens without them.
#[derive(Debug)]
pub(crate) struct Settings {
    pub(crate) wanted: Vec<Wanted>,
    pub(crate) mistakes: Vec<Error>,
    pub(crate) rest: TokenStream,
}

/// Takes the attributes out of the macro's tokens.
pub(crate) fn settings(tokens: TokenStream) -> Settings {
    let tokens: Vec<TokenTree> = tokens.into_iter().collect();
    let (mut wanted, mut mistakes) = (Vec::new(), Vec::new());
    let mut rest = TokenStream::new();
    let mut at = 0;
    while at < tokens.len() {
        let Some(group) = attribute(&tokens[at..]) else {
            rest.extend([tokens[at].clone()]);
            at += 1;
            continue;
        };
        match parse2::<Attribute>(group.stream()) {
            Ok(Attribute::AheadOfTime(found)) => wanted.extend(found),
            Ok(Attribute::Unknown(name)) => {
                let message = format!("unknown attribute `{name}`; there is `ahead_of_time`");
                mistakes.push(Error::new(group.span(), message));
            }
            Err(mistake) => mistakes.push(mistake),
        }
        at += 3;
    }
    Settings { wanted, mistakes, rest }
}

/// The inside of `#![…]`, where tokens begin with one that is no documentation.
fn attribute(tokens: &[TokenTree]) -> Option<&Group> {
    let is = |token: &TokenTree, sign| matches!(token, TokenTree::Punct(p) if p.as_char() == sign);
    let [hash, bang, TokenTree::Group(group), ..] = tokens else { return None };
    let bracketed = group.delimiter() == Delimiter::Bracket && is(hash, '#') && is(bang, '!');
    let named = |name: &TokenTree| matches!(name, TokenTree::Ident(name) if name != "doc");
    (bracketed && group.stream().into_iter().next().is_some_and(|first| named(&first)))
        .then_some(group)
}

const SHAPE: &str = "expected cells with degrees, as in `#![ahead_of_time(hex(2), tri(1, 3))]`";
const DEGREE: &str = "expected a degree, as in `hex(2)`";

/// An attribute of the macro.
enum Attribute {
    /// `ahead_of_time(hex(2), …)`.
    AheadOfTime(Vec<Wanted>),
    /// One that there is not.
    Unknown(Ident),
}

impl Parse for Attribute {
    fn parse(input: ParseStream<'_>) -> syn::Result<Self> {
        let name: Ident = input.parse()?;
        if name != "ahead_of_time" {
            input.parse::<TokenStream>()?;
            return Ok(Self::Unknown(name));
        }
        let shape = Error::new(name.span(), SHAPE);
        if !input.peek(token::Paren) {
            return Err(shape);
        }
        let list;
        parenthesized!(list in input);
        let items = Punctuated::<Item, Token![,]>::parse_terminated(&list)?;
        let wanted: Vec<Wanted> = items.into_iter().flat_map(|item| item.0).collect();
        if wanted.is_empty() || !input.is_empty() {
            return Err(shape);
        }
        Ok(Self::AheadOfTime(wanted))
    }
}

/// `hex(1, 2, order = 3)`.
struct Item(Vec<Wanted>);

impl Parse for Item {
    fn parse(input: ParseStream<'_>) -> syn::Result<Self> {
        let name: Ident = input.parse().map_err(|error| Error::new(error.span(), SHAPE))?;
        if !input.peek(token::Paren) {
            return Err(Error::new(name.span(), SHAPE));
        }
        let arguments;
        let parentheses = parenthesized!(arguments in input);
        let known = name.to_string().parse::<Cell>().ok().filter(|cell| Cell::ALL.contains(cell));
        let cell = known.ok_or_else(|| {
            let message = format!("unknown cell `{name}`; the cells are tri, quad, tet, hex");
            Error::new(name.span(), message)
        })?;
        let (mut order, mut quadrature, mut degrees) = (None, None, Vec::new());
        while !arguments.is_empty() {
            if arguments.peek(Ident) && arguments.peek2(Token![=]) {
                let setting: Ident = arguments.parse()?;
                arguments.parse::<Token![=]>()?;
                match setting.to_string().as_str() {
                    "order" => order = Some(number(&arguments)?.0),
                    "quadrature" if arguments.peek(Ident) => {
                        let word: Ident = arguments.parse()?;
                        let found = word.to_string().parse::<Quadrature>();
                        quadrature = Some(found.map_err(|why| Error::new(word.span(), why))?);
                    }
                    "quadrature" => quadrature = Some(number(&arguments)?.0.into()),
                    _ => {
                        let message = format!(
                            "unknown setting `{setting}`; there are `order` and `quadrature`"
                        );
                        return Err(Error::new(setting.span(), message));
                    }
                }
            } else {
                degrees.push(number(&arguments)?);
            }
            if !arguments.is_empty() {
                let comma = arguments.parse::<Token![,]>();
                comma.map_err(|error| Error::new(error.span(), DEGREE))?;
            }
        }
        if degrees.is_empty() {
            return Err(Error::new(parentheses.span.join(), DEGREE));
        }
        let wanted = |(degree, span)| Wanted { cell, degree, order, quadrature, span };
        Ok(Self(degrees.into_iter().map(wanted).collect()))
    }
}

/// A whole number, and where it stands.
fn number(input: ParseStream<'_>) -> syn::Result<(usize, Span)> {
    let literal: Lit = input.parse().map_err(|error| Error::new(error.span(), DEGREE))?;
    let number = match &literal {
        Lit::Int(number) => number.base10_parse().ok(),
        _ => None,
    };
    let number = number.filter(|number| (1..=64).contains(number)).ok_or_else(|| {
        let text = literal.to_token_stream();
        let message = format!("`{text}` is not a degree: expected a whole number from 1 to 64");
        Error::new(literal.span(), message)
    })?;
    Ok((number, literal.span()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn taken(text: &str) -> Result<(Vec<Wanted>, String), String> {
        let found = settings(text.parse().expect("the text should be tokens of Rust"));
        match found.mistakes.into_iter().next() {
            Some(mistake) => Err(mistake.to_string()),
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
        let expected =
            [(hex, 1, None, None), (hex, 2, None, None), (tri, 3, Some(2), Some(7.into()))];
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
