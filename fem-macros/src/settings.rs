//! `settings`: the attributes `#![ahead_of_time(…)]` and `#![crate = …]` of the macro → the cells and degrees of
//! kernels compiled with the program, and the path of the facade.
//!
//! Attributes are not part of the language, which has no `#`: they are removed before the layout. `#![crate = wf]`
//! names the crate of the facade if it is not `weakform`. `hex(1, 2)` requests degrees 1 and 2 on cells of geometry
//! order 1 and 2, with the quadrature that the language prescribes; `hex(2, order = 3, quadrature = 6)` specifies
//! these, too.

use fem_dsl::problem::Quadrature;
use kernels_gen::element::Cell;
use proc_macro2::{Delimiter, Group, Span, TokenStream, TokenTree};
use quote::{ToTokens as _, quote};
use syn::ext::IdentExt as _;
use syn::parse::{Parse, ParseStream};
use syn::punctuated::Punctuated;
use syn::{Error, Ident, Lit, Path, Token, parenthesized, parse2, token};

/// Requested kernels.
#[derive(Clone, Debug)]
pub(crate) struct KernelRequest {
    pub(crate) cell: Cell,
    pub(crate) degree: usize,
    /// The geometry's order, if specified.
    pub(crate) order: Option<usize>,
    /// The quadrature, if specified.
    pub(crate) quadrature: Option<Quadrature>,
    /// The span of the request.
    pub(crate) span: Span,
}

/// The contents of the attributes, their errors, and the tokens without them.
#[derive(Debug)]
pub(crate) struct Settings {
    pub(crate) wanted: Vec<KernelRequest>,
    /// The path of the facade, if it is not `::weakform`.
    pub(crate) facade: Option<TokenStream>,
    pub(crate) mistakes: Vec<Error>,
    pub(crate) rest: TokenStream,
}

/// Takes the attributes out of the macro's tokens.
pub(crate) fn settings(tokens: TokenStream) -> Settings {
    let tokens: Vec<TokenTree> = tokens.into_iter().collect();
    let (mut wanted, mut facade, mut mistakes) = (Vec::new(), None, Vec::new());
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
            Ok(Attribute::Crate(path)) => facade = Some(path),
            Ok(Attribute::Unknown(name)) => {
                let message =
                    format!("unknown attribute `{name}`; there are `ahead_of_time` and `crate`");
                mistakes.push(Error::new(group.span(), message));
            }
            Err(mistake) => mistakes.push(mistake),
        }
        at += 3;
    }
    Settings { wanted, facade, mistakes, rest }
}

/// Returns the contents of `#![…]`, if tokens begin with one that is no documentation.
fn attribute(tokens: &[TokenTree]) -> Option<&Group> {
    let is = |token: &TokenTree, sign| matches!(token, TokenTree::Punct(p) if p.as_char() == sign);
    let [hash, bang, TokenTree::Group(group), ..] = tokens else { return None };
    let bracketed = group.delimiter() == Delimiter::Bracket && is(hash, '#') && is(bang, '!');
    let named = |name: &TokenTree| matches!(name, TokenTree::Ident(name) if name != "doc");
    (bracketed && group.stream().into_iter().next().is_some_and(|first| named(&first)))
        .then_some(group)
}

const SHAPE: &str = "expected cells with degrees, as in `#![ahead_of_time(hex(2), tri(1, 3))]`";
const PATH: &str = "expected the name of a dependency or a path from the root, as in `#![crate = wf]` or `#![crate = crate::wf]`";
const DEGREE: &str = "expected a degree, as in `hex(2)`";

/// An attribute of the macro.
enum Attribute {
    /// `ahead_of_time(hex(2), …)`.
    AheadOfTime(Vec<KernelRequest>),
    /// `crate = wf`.
    Crate(TokenStream),
    /// An unknown attribute.
    Unknown(Ident),
}

impl Parse for Attribute {
    fn parse(input: ParseStream<'_>) -> syn::Result<Self> {
        let name = input.call(Ident::parse_any)?;
        if name == "crate" {
            return facade(&name, input).map(Self::Crate);
        }
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
        let items = Punctuated::<KernelRequests, Token![,]>::parse_terminated(&list)?;
        let wanted: Vec<KernelRequest> = items.into_iter().flat_map(|item| item.0).collect();
        if wanted.is_empty() || !input.is_empty() {
            return Err(shape);
        }
        Ok(Self::AheadOfTime(wanted))
    }
}

/// Parses the path after `crate =`; a single name is that of a dependency. Modules of the expansion are at several
/// depths, so that the path begins at a root.
fn facade(name: &Ident, input: ParseStream<'_>) -> syn::Result<TokenStream> {
    let wrong = || Error::new(name.span(), PATH);
    input.parse::<Token![=]>().map_err(|_| wrong())?;
    let path = input.call(Path::parse_mod_style).map_err(|_| wrong())?;
    let from_root = path.leading_colon.is_some() || path.segments[0].ident == "crate";
    match (from_root, path.segments.len()) {
        _ if !input.is_empty() => Err(wrong()),
        (true, _) => Ok(path.to_token_stream()),
        (false, 1) => Ok(quote!(::#path)),
        (false, _) => Err(wrong()),
    }
}

/// `hex(1, 2, order = 3)`.
struct KernelRequests(Vec<KernelRequest>);

impl Parse for KernelRequests {
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
        let wanted = |(degree, span)| KernelRequest { cell, degree, order, quadrature, span };
        Ok(Self(degrees.into_iter().map(wanted).collect()))
    }
}

/// Parses an integer, with its span.
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

    fn taken(text: &str) -> Result<(Vec<KernelRequest>, String), String> {
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
    fn the_facade_is_named_from_a_root() {
        for (text, path) in [
            ("#![crate = wf] form a { }", ":: wf"),
            ("#![crate = crate::deep::wf] form a { }", "crate :: deep :: wf"),
            ("#![crate = ::wf] form a { }", ":: wf"),
        ] {
            let found = settings(text.parse().expect("tokens"));
            assert!(found.mistakes.is_empty(), "{text}");
            assert_eq!(found.facade.expect(text).to_string(), path);
            assert_eq!(found.rest.to_string(), "form a { }");
        }
        assert!(settings("form a { }".parse().expect("tokens")).facade.is_none());
    }

    #[test]
    fn mistakes_name_the_expected_setting() {
        for (text, message) in [
            ("#![ahead(hex(2))]", "unknown attribute `ahead`"),
            ("#![ahead_of_time]", "expected cells with degrees"),
            ("#![ahead_of_time()]", "expected cells with degrees"),
            ("#![ahead_of_time(hex)]", "expected cells with degrees"),
            ("#![ahead_of_time(cube(2))]", "unknown cell `cube`"),
            ("#![ahead_of_time(wedge(2))]", "unknown cell `wedge`"),
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
            ("#![crate]", "expected the name of a dependency"),
            ("#![crate(wf)]", "expected the name of a dependency"),
            ("#![crate = \"wf\"]", "expected the name of a dependency"),
            ("#![crate = deep::wf]", "expected the name of a dependency"),
            ("#![crate = wf wf]", "expected the name of a dependency"),
        ] {
            let found = taken(text).expect_err(text);
            assert!(found.starts_with(message), "{text}: {found}");
        }
    }
}
