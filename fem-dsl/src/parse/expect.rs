//! Messages about unreadable text: the position of the error, the expected tokens, and the token found. The wording
//! depends on the rule and the context.

use super::scan::{Token, TokenKind};
use crate::ast::Span;
use crate::codes::Code;
use crate::diagnostic::Diagnostic;
use crate::source::shortened;
use crate::suggestions;
use crate::words;
use fem_dsl_grammar::{Grammar, Rule};
use pest::Parser;
use pest::error::{ErrorVariant, InputLocation};

/// The context of the broken text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ParseContext {
    File,
    Form,
    Boundary,
    Problem,
}

/// The position at which a rule fails, and the possible continuations.
pub(super) struct Failure {
    pub(super) at: u32,
    expected: Vec<Rule>,
}

/// Returns the rule of the form item that begins with this word.
pub(super) fn item_rule(word: &str) -> Option<Rule> {
    Some(match word {
        "field" => Rule::field,
        "aux" => Rule::aux,
        "param" => Rule::param,
        "state" => Rule::state,
        "update" => Rule::update,
        "let" => Rule::let_item,
        "fn" => Rule::fn_item,
        "f0" | "f1" => Rule::row,
        "test" => Rule::test,
        "residual" => Rule::residual,
        "energy" => Rule::energy,
        "on" => Rule::block_start,
        _ => return None,
    })
}

/// Returns the rule of the problem item that begins with this word.
pub(super) fn problem_rule(word: &str) -> Option<Rule> {
    Some(match word {
        "mesh" => Rule::mesh,
        "degree" | "quadrature" | "refine" | "eigen" | "mass" | "stages" | "t" | "time" => {
            Rule::setting
        }
        "param" | "aux" => Rule::value,
        "dirichlet" => Rule::dirichlet,
        "bound" => Rule::bound,
        "source" => Rule::source,
        "periodic" => Rule::periodic,
        "exact" | "manufactured" | "mean" | "initial" => Rule::solution,
        "adapt" => Rule::adapt,
        "solver" => Rule::solver,
        "report" => Rule::report,
        "output" => Rule::output,
        _ => return None,
    })
}

/// Parses the text at `at` by `rule` only, to find the failure.
pub(super) fn failure(text: &str, at: Span, rule: Rule) -> Failure {
    let rule = match rule {
        Rule::form => Rule::form_start,
        Rule::problem => Rule::problem_start,
        // These always match something; their contents do not begin here.
        Rule::file | Rule::form_item | Rule::problem_item => {
            return Failure { at: at.start, expected: vec![rule] };
        }
        other => other,
    };
    let Err(error) = Grammar::parse(rule, &text[at.start as usize..]) else {
        return Failure { at: at.start, expected: Vec::new() };
    };
    let (InputLocation::Pos(offset) | InputLocation::Span((offset, _))) = error.location;
    let expected = match error.variant {
        ErrorVariant::ParsingError { positives, .. } => positives,
        ErrorVariant::CustomError { .. } => Vec::new(),
    };
    Failure { at: at.start + Span::new(offset, offset).start, expected }
}

/// Returns the message about the broken text `at`.
pub(super) fn describe(
    text: &str,
    tokens: &[Token],
    at: Span,
    failure: &Failure,
    place: ParseContext,
) -> Diagnostic {
    let index = tokens.partition_point(|token| token.span.start < failure.at);
    let found = tokens.get(index);
    let previous = index.checked_sub(1).map(|before| tokens[before]);
    let end = Span::new(text.trim_end().len(), text.trim_end().len());
    let found_span = found.map_or(end, |token| token.span);
    let found_text = found.map_or("", |token| &text[token.span.range()]);
    let found_name = describe_token(found, found_text);
    let first = tokens
        .get(tokens.partition_point(|token| token.span.start < at.start))
        .map_or("", |token| &text[token.span.range()]);

    if failure.expected.is_empty() && first == "on" {
        return Diagnostic::new(Code::UnexpectedToken, "a block cannot stand inside another")
            .label(found_span, "inside another block")
            .help("close the outer block first");
    }
    if let [rule @ (Rule::file | Rule::form_item | Rule::problem_item)] = failure.expected[..] {
        let next = tokens.get(index + 1).map_or("", |token| &text[token.span.range()]);
        return unknown_item(rule, found_span, (found_text, next), &found_name);
    }
    if failure.expected.contains(&Rule::kw_else) {
        return Diagnostic::new(Code::MissingElse, "`if` without `else`")
            .label(found_span, format!("expected `else`, found {found_name}"))
            .note("`if` is an expression and needs a value in both cases")
            .help("add `else { … }`");
    }
    let previous_text = previous.map_or("", |token| &text[token.span.range()]);
    let tag = found.filter(|token| token.kind == TokenKind::String).map(|_| found_text);
    let habit = match tag.filter(|_| (first, previous_text) == ("dirichlet", "at")) {
        Some(tag) => Some(format!(
            "write `on {}` for a part of the boundary; `at` takes a point, as in `at [0, 0]`",
            shortened(tag)
        )),
        None => habit(first, previous_text, found_text).map(str::to_owned),
    };
    let expected = Expectation::new(&failure.expected, place);
    // A token missing at the end of a line is reported there, not at the beginning of the next line.
    if expected.closer.is_some()
        && habit.is_none()
        && let Some(previous) = previous
        && (found.is_none()
            || found_text == "}"
            || item_rule(found_text).is_some()
            || (place == ParseContext::Problem && problem_rule(found_text).is_some())
            || text[previous.span.end as usize..found_span.start as usize].contains('\n'))
    {
        let closer = expected.closer.unwrap_or("`;`");
        let behind = Span { start: previous.span.start, end: previous.span.end };
        return Diagnostic::new(
            Code::UnexpectedToken,
            format!("expected {closer} after `{}`", &text[behind.range()]),
        )
        .label(
            Span { start: behind.end.saturating_sub(1), end: behind.end },
            format!("expected {closer} after this"),
        )
        .secondary(found_span, format!("found {found_name}"))
        .help(format!("add {closer}"));
    }
    let phrase = expected.phrase();
    let diagnostic =
        Diagnostic::new(Code::UnexpectedToken, format!("expected {phrase}, found {found_name}"))
            .label(found_span, format!("expected {phrase}"));
    if let Some(help) = habit {
        return diagnostic.help(help);
    }
    let misspelt = expected.suggest(found_text);
    let operand = found.is_some_and(|token| begins_operand(token, found_text));
    let remedy = expected.remedy(previous_text, found_text, operand);
    let usage = if expected.expression { None } else { usage(first, place) };
    diagnostic.help_if(misspelt).help_if(usage.map(str::to_owned).or(remedy))
}

/// Returns the remedy for notations of other languages, or of another item.
fn habit(first: &str, previous: &str, found: &str) -> Option<&'static str> {
    if matches!((first, previous), ("field" | "aux", "in")) {
        return suggestions::space(found);
    }
    Some(match (first, previous, found) {
        (_, "nabla", _) => "write `grad(u)`, `div(u)` or `curl(u)`",
        (_, "*", "*") => "a power is written `a^b`",
        ("dirichlet", _, "where" | "for") => "write `on \"tag\"`, or `on all`",
        ("dirichlet", _, "and") => "tags are separated by `,`",
        ("dirichlet", _, "not") => "name the tags that are meant: `on \"y0\", \"y1\"`, or `on all`",
        (_, _, "and") => "write `&&`",
        (_, _, "or") => "write `||`",
        (_, _, "not") => "write `!`",
        ("aux", _, "in") => "write `on nodes in H1(k)`: the space of data at nodes",
        ("field", "on", _) => {
            "the cells of a field have tags, `on \"solid\"`; `on nodes` and its like are for `aux`"
        }
        ("field" | "aux" | "param", "tensor" | "scalar", "(") => {
            "`tensor` is a dim × dim matrix, and `vector(n)` has n components"
        }
        ("let", _, ":") => "a `let` has the shape of its expression: `let a = 1;`",
        ("f0" | "f1", _, "[") => "a row gives all components at once: `f0[u] = [a, b];`",
        _ => return None,
    })
}

fn begins_operand(token: &Token, text: &str) -> bool {
    let value = token.kind == TokenKind::Word
        && words::reserved(text).is_none_or(|_| !words::KEYWORDS.contains(&text));
    value || token.kind == TokenKind::Number || text == "("
}

/// Reports a word in place of an item.
fn unknown_item(rule: Rule, span: Span, (found, next): (&str, &str), name: &str) -> Diagnostic {
    let (what, words): (_, &[&str]) = match rule {
        Rule::file => ("`form` or `problem`", &["form", "problem"]),
        Rule::form_item => ("an item of a form", words::FORM_ITEMS),
        _ => ("an item of a problem", words::PROBLEM_ITEMS),
    };
    let in_form = item_rule(found).is_some();
    let in_problem = problem_rule(found).is_some();
    let elsewhere = match rule {
        Rule::file if in_form => Some("this belongs into `form NAME { … }`"),
        Rule::file if in_problem => Some("this belongs into `problem NAME solves FORM { … }`"),
        Rule::form_item if in_problem => Some("this belongs into `problem NAME solves FORM { … }`"),
        Rule::problem_item if in_form => Some("this belongs into the form"),
        _ if found == ";" => Some("remove it: there is no empty item"),
        Rule::form_item if is_row(found) => Some("a form has the rows `f0[u]` and `f1[u]`"),
        Rule::form_item if next == "=" => Some("write `let NAME = …;` to name an expression"),
        _ => None,
    };
    let diagnostic =
        Diagnostic::new(Code::UnexpectedToken, format!("expected {what}, found {name}"))
            .label(span, format!("expected {what}"));
    if let Some(known) = suggestions::problem_item(found).filter(|_| rule == Rule::problem_item) {
        return diagnostic.help(known);
    }
    let diagnostic = if rule == Rule::file {
        diagnostic
    } else {
        let list = words.iter().map(|word| format!("`{word}`")).collect::<Vec<_>>().join(", ");
        diagnostic.note(format!("items begin with {list}"))
    };
    match elsewhere {
        Some(help) if next != "=" => diagnostic.help(help),
        elsewhere => match crate::diagnostic::nearest(found, words.iter().copied()) {
            Some(word) => diagnostic.help(format!("did you mean `{word}`?")),
            None => diagnostic.help_if(elsewhere),
        },
    }
}

/// Returns whether a word looks like a row of an unsupported derivative: `f2`.
fn is_row(word: &str) -> bool {
    word.strip_prefix(['f', 'g'])
        .is_some_and(|rest| !rest.is_empty() && rest.bytes().all(|byte| byte.is_ascii_digit()))
}

fn describe_token(token: Option<&Token>, text: &str) -> String {
    let Some(token) = token else { return "the end of the file".to_owned() };
    let short: String = text.chars().take(24).collect();
    let dots = if short.len() < text.len() { "…" } else { "" };
    match token.kind {
        TokenKind::String => format!("the string {short}{dots}"),
        TokenKind::Word
            if words::reserved(text).is_some_and(|_| {
                !words::KNOWN.contains(&text) && !words::FUNCTIONS.contains(&text)
            }) =>
        {
            format!("the reserved word `{short}`")
        }
        _ => format!("`{short}{dots}`"),
    }
}

/// The expected tokens in words.
struct Expectation {
    parts: Vec<&'static str>,
    words: Vec<&'static str>,
    /// True if an operand or an operator is possible.
    expression: bool,
    /// The end of the item or group, if it is possible.
    closer: Option<&'static str>,
}

impl Expectation {
    fn new(rules: &[Rule], place: ParseContext) -> Self {
        let mut expected =
            Self { parts: Vec::new(), words: Vec::new(), expression: false, closer: None };
        for &rule in rules {
            expected.add(rule, place);
        }
        // These begin or continue an expression.
        if expected.expression {
            expected.parts.retain(|part| !matches!(*part, "`(`" | "`[`" | "a string"));
        }
        // The end comes first: it is the most frequent omission.
        if let Some(closer) = expected.closer {
            expected.parts.retain(|part| *part != closer);
            expected.parts.insert(0, closer);
        }
        expected
    }

    fn add(&mut self, rule: Rule, place: ParseContext) {
        let (part, words): (_, &'static [&'static str]) = match rule {
            Rule::expr
            | Rule::prefix
            | Rule::number
            | Rule::word
            | Rule::if_expr
            | Rule::array
            | Rule::paren
            | Rule::kw_if => {
                self.expression = true;
                ("an expression", &[])
            }
            Rule::infix => {
                self.expression = true;
                ("an operator", &[])
            }
            Rule::index | Rule::call_args => {
                self.expression = true;
                return;
            }
            Rule::semicolon => {
                self.closer = Some("`;`");
                return;
            }
            Rule::close_paren => return self.close("`)`"),
            Rule::close_bracket => return self.close("`]`"),
            Rule::close_brace => return self.close("`}`"),
            Rule::comma => ("`,`", &[]),
            Rule::colon => ("`:`", &[]),
            Rule::equals => ("`=`", &[]),
            Rule::sign => {
                self.parts.push("`+`");
                ("`-`", &[])
            }
            Rule::open_paren | Rule::arguments | Rule::parameters => ("`(`", &[]),
            Rule::open_bracket | Rule::component => ("`[`", &[]),
            Rule::open_brace => ("`{`", &[]),
            Rule::name | Rule::named | Rule::argument if place == ParseContext::Problem => {
                ("a name", &[])
            }
            Rule::name => ("a name", &[]),
            Rule::integer => ("a whole number", &[]),
            Rule::string => ("a string", &[]),
            Rule::shape => (
                "a shape (`scalar`, `vector`, `vector(n)` or `tensor`)",
                &["scalar", "vector", "tensor", "complex"],
            ),
            Rule::space | Rule::family => (
                "a space (`H1`, `L2`, `Hcurl`, `Hdiv` or `R`)",
                &["H1", "L2", "Hcurl", "Hdiv", "R"],
            ),
            Rule::degree => ("a degree (`k`, `k - 1` or a whole number)", &["k"]),
            Rule::place => ("`nodes`, `cells` or `points`", &["nodes", "cells", "points"]),
            Rule::where_ => ("`all` or a tag in quotes", &["all"]),
            Rule::kw_solves => ("`solves`", &["solves"]),
            Rule::kw_for => ("`for`", &["for"]),
            Rule::kw_in => ("`in`", &["in"]),
            Rule::kw_on => ("`on`", &["on"]),
            Rule::kw_boundary => ("`boundary`", &["boundary"]),
            Rule::kw_interior => ("`interior`", &["interior"]),
            Rule::kw_from => ("`from`", &["from"]),
            Rule::kw_to => ("`to`", &["to"]),
            Rule::kw_by => ("`by`", &["by"]),
            Rule::kw_k => ("`k`", &["k"]),
            _ => return,
        };
        if !self.parts.contains(&part) {
            self.parts.push(part);
        }
        self.words.extend(words);
    }

    fn close(&mut self, closer: &'static str) {
        if !self.parts.contains(&closer) {
            self.parts.insert(0, closer);
        }
    }

    fn phrase(&self) -> String {
        match &self.parts[..] {
            [] => "something else".to_owned(),
            [one] => (*one).to_owned(),
            [init @ .., last] => format!("{} or {last}", init.join(", ")),
        }
    }

    /// Returns the remedy at the end of an expression.
    fn remedy(&self, previous: &str, found: &str, operand: bool) -> Option<String> {
        let has = |part: &str| self.parts.contains(&part);
        if !has("an operator") {
            return None;
        }
        let help = match found {
            "=" => "equality is written `==`",
            _ if operand && words::FUNCTIONS.contains(&previous) => {
                return Some(format!("arguments stand in brackets: `{previous}({found})`"));
            }
            _ if has("`{`") => "write `if c { a } else { b }`",
            _ if operand && has("`,`") => "entries are separated by `,`",
            _ if operand && self.closer.is_some() => {
                // The contents of brackets are unknown here.
                let simple = !previous.ends_with([')', ']', '}']) && found != "(";
                let shown = format!(": `{previous} * {found}`");
                let shown = if simple { shown.as_str() } else { "" };
                return Some(format!("a product is written with `*`{shown}"));
            }
            _ => return None,
        };
        Some(help.to_owned())
    }

    fn suggest(&self, found: &str) -> Option<String> {
        crate::diagnostic::nearest(found, self.words.iter().copied())
            .map(|word| format!("did you mean `{word}`?"))
    }
}

/// Returns the syntax of an item.
fn usage(first: &str, place: ParseContext) -> Option<&'static str> {
    Some(match (place, first) {
        (ParseContext::File, "form") => "a form is written `form NAME { … }`",
        (ParseContext::File, "problem") => "a problem is written `problem NAME solves FORM { … }`",
        (ParseContext::Problem, "mesh") => {
            "write `mesh = ball(dim: 3, refine: 3);` or `mesh = \"part.msh\";`"
        }
        (ParseContext::Problem, "degree" | "quadrature" | "refine" | "t") => {
            "write `NAME = VALUE;`"
        }
        (ParseContext::Problem, "eigen") => "write `eigen = smallest(5);`",
        (ParseContext::Problem, "time") => {
            "write `time = bdf(order: 2, from: 0, to: 1, step: 0.01);`"
        }
        (ParseContext::Problem, "mass") => "write `mass = FORM;`",
        (
            ParseContext::Problem,
            "param" | "aux" | "exact" | "manufactured" | "mean" | "initial",
        ) => "write the name and its value, `param c = 1;`",
        (ParseContext::Problem, "dirichlet") => {
            "write `dirichlet u = 0 on \"tag\";` or `dirichlet u = 0;`"
        }
        (ParseContext::Problem, "bound") => {
            "write `bound u >= 0;` or `bound u[1] >= 0 on \"tag\";`"
        }
        (ParseContext::Problem, "source") => "write `source u = 1 at [0, 0];`",
        (ParseContext::Problem, "periodic") => {
            "write `periodic \"left\" = \"right\";`, with `by rotation` before the `;` for a sector"
        }
        (ParseContext::Problem, "adapt") => "write `adapt(steps: 6, until: 1e-3);`",
        (ParseContext::Problem, "solver") => "write `solver = cg(rtol: 1e-10);`",
        (ParseContext::Problem, "report") => "write `report NAME = integral(u);`",
        (ParseContext::Problem, "output") => {
            "write `output NAME = EXPR;`, with `discontinuous` or `on cells` before the `;`"
        }
        (_, "field") => "write `field u: scalar;` or `field u: vector in H1(k);`",
        (_, "aux") => "write `aux a: scalar on cells;`, or `on nodes`, or `on points`",
        (_, "state") => "write `state p: scalar on points = 0;`, in the form itself",
        (_, "update") => "write `update p = EXPR;`, in the form itself",
        (_, "param") => "write `param c = 1;` or `param c: vector = [0, 0, 1];`",
        (_, "let") => "write `let a = 1;`",
        (_, "fn") => "write `fn f(a, b) = a * b;`",
        (_, "f0" | "f1") => "write `f0[u] = …;` with the field in the brackets",
        (_, "test") => "write `test v for u;`",
        (_, "residual" | "energy") => "write the word, `=`, an expression and `;`",
        (_, "on") => {
            "write `on boundary \"tag\" { … }`, `on cells \"tag\" { … }`, `on interior { … }` or `on interior from \"a\" to \"b\" { … }`"
        }
        _ => return None,
    })
}
