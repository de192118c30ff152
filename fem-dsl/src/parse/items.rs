//! The items of forms and problems: one pair each → one node each.

use super::builder::{Builder, ident, span, text};
use crate::ast::{
    Argument, BoundSide, DegreeSpec, ExprId, ExprKind, Family, FormItemKind, Ident, LocationKind,
    LocationSpec, NamedCall, NormalProduct, OutputSampling, ProblemItemKind, RowKind, ShapeKind,
    ShapeSpec, SideWord, SpaceSpec, Span, SupportSpec, Text,
};
use crate::codes::Code;
use crate::diagnostic::Diagnostic;
use fem_dsl_grammar::Rule;
use pest::iterators::Pair;

/// The parts of an item in the fixed order of the grammar, taken by rule.
#[derive(Default)]
struct ItemParts {
    names: Vec<Ident>,
    exprs: Vec<ExprId>,
    strings: Vec<Text>,
    shape: Option<ShapeSpec>,
    space: Option<SpaceSpec>,
    place: Option<LocationSpec>,
    component: Option<ExprId>,
    normal: Option<(bool, [Ident; 2])>,
    rate: bool,
    where_: Option<SupportSpec>,
    named: Option<NamedCall>,
    arguments: Vec<Argument>,
    word: Option<Ident>,
    side: Option<(SideWord, Span)>,
    sampling: OutputSampling,
    bound: BoundSide,
}

fn parts(builder: &mut Builder<'_>, pair: Pair<'_, Rule>) -> ItemParts {
    let whole = span(&pair);
    let mut parts = ItemParts::default();
    for part in pair.into_inner() {
        match part.as_rule() {
            Rule::name => parts.names.push(ident(&part)),
            Rule::expr => parts.exprs.push(builder.exprs.build(part)),
            Rule::string => parts.strings.push(text(&part)),
            Rule::shape => parts.shape = Some(shape(builder, part)),
            Rule::space => parts.space = Some(space(builder, part)),
            Rule::place => parts.place = Some(place(builder, part)),
            Rule::component => {
                let index = part.into_inner().find(|inner| inner.as_rule() == Rule::expr);
                parts.component = index.map(|index| builder.exprs.build(index));
            }
            Rule::normal => {
                let cross =
                    part.clone().into_inner().any(|inner| inner.as_rule() == Rule::kw_cross);
                let names = part.into_inner().filter(|inner| inner.as_rule() == Rule::name);
                let names: Vec<Ident> = names.map(|name| ident(&name)).collect();
                parts.normal = <[Ident; 2]>::try_from(names).ok().map(|names| (cross, names));
            }
            Rule::traced => {
                for inner in part.into_inner() {
                    match inner.as_rule() {
                        Rule::name => parts.names.push(ident(&inner)),
                        Rule::kw_side => {
                            let word = SideWord::of(inner.as_str());
                            parts.side = word.map(|word| (word, span(&inner)));
                        }
                        _ => {}
                    }
                }
            }
            Rule::rate => {
                let name = part.into_inner().find(|inner| inner.as_rule() == Rule::name);
                parts.names.extend(name.map(|name| ident(&name)));
                parts.rate = true;
            }
            Rule::sampling => {
                let word = part.into_inner().next().map(|word| word.as_rule());
                parts.sampling = match word {
                    Some(Rule::kw_discontinuous) => OutputSampling::Discontinuous,
                    _ => OutputSampling::Cells,
                };
            }
            Rule::side if part.as_str() == "<=" => parts.bound = BoundSide::Below,
            Rule::where_ => parts.where_ = Some(where_(part)),
            Rule::vertex => {
                let point = part.into_inner().find(|inner| inner.as_rule() == Rule::expr);
                parts.where_ = point.map(|point| SupportSpec::At(builder.exprs.build(point)));
            }
            Rule::named => parts.named = Some(named(builder, part)),
            Rule::arguments => parts.arguments = arguments(builder, part),
            Rule::parameters => {
                for name in part.into_inner().filter(|inner| inner.as_rule() == Rule::name) {
                    let name = builder.declared(&name);
                    parts.names.push(name);
                }
            }
            Rule::kw_row
            | Rule::kw_setting
            | Rule::kw_param
            | Rule::kw_aux
            | Rule::kw_exact
            | Rule::kw_manufactured
            | Rule::kw_initial
            | Rule::kw_mean => parts.word = Some(ident(&part)),
            _ => {}
        }
    }
    // The scanner removed a part, so that the rest is unknown.
    if builder.is_torn(whole) {
        parts.shape = None;
        for expr in parts.exprs.iter_mut().chain(&mut parts.component) {
            *expr = builder.exprs.push(ExprKind::Error, whole);
        }
    }
    parts
}

/// Takes the next one of a kind, whose presence the grammar guarantees.
fn next<T>(items: &mut impl Iterator<Item = T>) -> T {
    items.next().expect("the grammar should put this part into the item")
}

/// Builds a state: its declaration as data at points, and its start.
pub(super) fn state_items(builder: &mut Builder<'_>, pair: Pair<'_, Rule>) -> [FormItemKind; 2] {
    let at = span(&pair);
    if let Some(name) = pair.clone().into_inner().find(|part| part.as_rule() == Rule::name) {
        builder.declared(&name);
    }
    let ItemParts { names, exprs, shape, .. } = parts(builder, pair);
    let name: Ident = next(&mut names.into_iter());
    let place = Some(LocationSpec { kind: LocationKind::Points, span: at });
    let value = next(&mut exprs.into_iter());
    [FormItemKind::Aux { name: name.clone(), shape, place }, FormItemKind::Start { name, value }]
}

/// Builds a readable item of a form, except blocks.
pub(super) fn form_item(builder: &mut Builder<'_>, pair: Pair<'_, Rule>) -> FormItemKind {
    let rule = pair.as_rule();
    let declares = !matches!(rule, Rule::update | Rule::row | Rule::residual | Rule::energy);
    if declares
        && let Some(name) = pair.clone().into_inner().find(|part| part.as_rule() == Rule::name)
    {
        builder.declared(&name);
    }
    let ItemParts { names, exprs, strings, shape, space, place, word, side, .. } =
        parts(builder, pair);
    let (mut names, mut exprs) = (names.into_iter(), exprs.into_iter());
    match rule {
        Rule::field => FormItemKind::Field { name: next(&mut names), shape, space, tags: strings },
        Rule::aux => FormItemKind::Aux { name: next(&mut names), shape, place },
        Rule::param => {
            FormItemKind::Param { name: next(&mut names), shape, value: next(&mut exprs) }
        }
        Rule::update => FormItemKind::Update { name: next(&mut names), value: next(&mut exprs) },
        Rule::let_item => FormItemKind::Let { name: next(&mut names), value: next(&mut exprs) },
        Rule::fn_item => FormItemKind::Fn {
            name: next(&mut names),
            parameters: names.collect(),
            body: next(&mut exprs),
        },
        Rule::row => {
            let word = next(&mut word.into_iter());
            FormItemKind::Row {
                row: if word.name == "f0" { RowKind::F0 } else { RowKind::F1 },
                row_span: word.span,
                side,
                field: next(&mut names),
                value: next(&mut exprs),
            }
        }
        Rule::test => FormItemKind::Test { name: next(&mut names), field: next(&mut names) },
        Rule::residual => FormItemKind::Residual { value: next(&mut exprs) },
        Rule::energy => FormItemKind::Energy { value: next(&mut exprs) },
        _ => FormItemKind::Broken,
    }
}

/// Builds a readable item of a problem.
pub(super) fn problem_item(builder: &mut Builder<'_>, pair: Pair<'_, Rule>) -> ProblemItemKind {
    let rule = pair.as_rule();
    let parts = parts(builder, pair);
    let (mut names, mut exprs) = (parts.names.into_iter(), parts.exprs.into_iter());
    match rule {
        Rule::mesh => match parts.named {
            Some(named) => ProblemItemKind::MeshGenerator(named),
            None => ProblemItemKind::MeshFile(next(&mut parts.strings.into_iter())),
        },
        Rule::setting => ProblemItemKind::Setting {
            name: next(&mut parts.word.into_iter()),
            value: next(&mut exprs),
        },
        Rule::value => {
            let (name, value) = (next(&mut names), next(&mut exprs));
            if parts.word.is_some_and(|word| word.name == "param") {
                ProblemItemKind::Param { name, value }
            } else {
                ProblemItemKind::Aux { name, value, place: parts.where_ }
            }
        }
        Rule::dirichlet | Rule::bound => {
            let (field, normal) = match parts.normal {
                Some((false, [field, normal])) => {
                    (field, Some(NormalProduct { cross: false, normal }))
                }
                Some((true, [normal, field])) => {
                    (field, Some(NormalProduct { cross: true, normal }))
                }
                None => (next(&mut names), None),
            };
            let (component, place) = (parts.component, parts.where_);
            if rule == Rule::dirichlet {
                let value = exprs.next();
                return ProblemItemKind::Dirichlet { field, component, normal, value, place };
            }
            let (side, value) = (parts.bound, next(&mut exprs));
            ProblemItemKind::Bound { field, component, normal, side, value, place }
        }
        Rule::source => {
            let (field, value) = (next(&mut names), next(&mut exprs));
            let place = match parts.where_ {
                Some(SupportSpec::At(place)) => place,
                _ => builder.exprs.push(ExprKind::Error, field.span),
            };
            ProblemItemKind::Source { field, component: parts.component, value, place }
        }
        Rule::periodic => {
            let mut sides = parts.strings.into_iter();
            let sides = [next(&mut sides), next(&mut sides)];
            ProblemItemKind::Periodic { sides, map: parts.named }
        }
        Rule::solution => {
            let (field, value) = (next(&mut names), next(&mut exprs));
            match parts.word.as_ref().map(|word| word.name.as_str()) {
                Some("exact") => ProblemItemKind::Exact { field, value },
                Some("mean") => ProblemItemKind::Mean { field, value },
                Some("initial") => ProblemItemKind::Initial { field, rate: parts.rate, value },
                _ => ProblemItemKind::Manufactured { field, value },
            }
        }
        Rule::adapt => ProblemItemKind::Adapt { arguments: parts.arguments },
        Rule::report => ProblemItemKind::Report { name: next(&mut names), value: next(&mut exprs) },
        Rule::output => {
            let name: Ident = next(&mut names);
            let value = exprs.next().unwrap_or_else(|| {
                builder.exprs.push(ExprKind::Name(name.name.clone()), name.span)
            });
            ProblemItemKind::Output { name, value, sampling: parts.sampling }
        }
        Rule::solver => ProblemItemKind::Solver(next(&mut parts.named.into_iter())),
        _ => ProblemItemKind::Broken,
    }
}

/// Returns an integer with its location; one that is too large is reported and becomes 1.
fn integer(builder: &mut Builder<'_>, pair: &Pair<'_, Rule>) -> usize {
    let small = pair.as_str().parse::<u16>().ok();
    if small.is_none() {
        builder.report(
            Diagnostic::new(Code::BadValue, "this number is too large here")
                .label(span(pair), "at most 65535"),
        );
    }
    usize::from(small.unwrap_or(1))
}

fn shape(builder: &mut Builder<'_>, pair: Pair<'_, Rule>) -> ShapeSpec {
    let at = span(&pair);
    let (mut kind, mut complex) = (ShapeKind::Scalar, false);
    for part in pair.into_inner() {
        match part.as_rule() {
            Rule::kw_complex => complex = true,
            Rule::kw_vector => kind = ShapeKind::Vector(None),
            Rule::kw_tensor => kind = ShapeKind::Tensor,
            Rule::integer => kind = ShapeKind::Vector(Some(integer(builder, &part))),
            _ => {}
        }
    }
    ShapeSpec { kind, complex, span: at }
}

fn space(builder: &mut Builder<'_>, pair: Pair<'_, Rule>) -> SpaceSpec {
    let at = span(&pair);
    let (mut family, mut spec) = (Family::H1, None);
    for part in pair.into_inner() {
        match part.as_rule() {
            Rule::family => {
                family = match part.as_str() {
                    "L2" => Family::L2,
                    "Hcurl" => Family::Hcurl,
                    "Hdiv" => Family::Hdiv,
                    "R" => Family::R,
                    _ => Family::H1,
                }
            }
            Rule::degree => spec = Some(degree(builder, part)),
            _ => {}
        }
    }
    SpaceSpec { family, degree: spec, span: at }
}

fn degree(builder: &mut Builder<'_>, pair: Pair<'_, Rule>) -> DegreeSpec {
    let (mut relative, mut negative, mut number) = (false, false, 0);
    for part in pair.into_inner() {
        match part.as_rule() {
            Rule::kw_k => relative = true,
            Rule::sign => negative = part.as_str() == "-",
            Rule::integer => number = integer(builder, &part),
            _ => {}
        }
    }
    if relative {
        let offset = i32::try_from(number).unwrap_or(i32::from(u16::MAX));
        DegreeSpec::Relative(if negative { -offset } else { offset })
    } else {
        DegreeSpec::Fixed(number)
    }
}

fn place(builder: &mut Builder<'_>, pair: Pair<'_, Rule>) -> LocationSpec {
    let at = span(&pair);
    let mut kind = LocationKind::Nodes(None);
    for part in pair.into_inner() {
        match part.as_rule() {
            Rule::kw_cells => kind = LocationKind::Cells,
            Rule::kw_points => kind = LocationKind::Points,
            Rule::space => kind = LocationKind::Nodes(Some(space(builder, part))),
            _ => {}
        }
    }
    LocationSpec { kind, span: at }
}

fn where_(pair: Pair<'_, Rule>) -> SupportSpec {
    let mut tags = Vec::new();
    for part in pair.into_inner() {
        match part.as_rule() {
            Rule::kw_all => return SupportSpec::All(span(&part)),
            Rule::string => tags.push(text(&part)),
            _ => {}
        }
    }
    SupportSpec::Tags(tags)
}

fn named(builder: &mut Builder<'_>, pair: Pair<'_, Rule>) -> NamedCall {
    let at = span(&pair);
    let mut name = Ident { name: String::new(), span: Span { end: at.start, ..at } };
    let mut list = Vec::new();
    for part in pair.into_inner() {
        match part.as_rule() {
            Rule::name => name = ident(&part),
            Rule::arguments => list = arguments(builder, part),
            _ => {}
        }
    }
    NamedCall { name, arguments: list, span: at }
}

fn arguments(builder: &mut Builder<'_>, pair: Pair<'_, Rule>) -> Vec<Argument> {
    let mut list = Vec::new();
    for argument in pair.into_inner().filter(|part| part.as_rule() == Rule::argument) {
        let at = span(&argument);
        let mut parts = parts(builder, argument);
        let name = parts.names.pop();
        let value = parts.exprs.pop().unwrap_or_else(|| builder.exprs.push(ExprKind::Error, at));
        list.extend(name.map(|name| Argument { name, value }));
    }
    list
}
