//! Name resolution of a form: declarations, uses, cycles. Independent of the dimension.

mod facets;
mod order;
mod resolver;

pub(super) use order::order;
use resolver::Resolver;

use crate::arena::{Id, reachable};
use crate::ast::{self, BlockRegion, ExprKind, FormItemKind, Ident};
use crate::diagnostic::Diagnostic;
use crate::source::Span;
use crate::words;
use std::collections::{BTreeMap, BTreeSet};

/// Largest number of errors about names.
const MOST_ERRORS: usize = 200;

/// The meaning of a declared name: its index among its kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Meaning {
    Field(usize),
    Aux(usize),
    Param(usize),
    /// A `let` or a `fn`.
    Definition(usize),
    /// The test function of the field with this name, as declared.
    Test(usize),
}

/// A block of a form: `on boundary "a" { … }`, `on cells "a" { … }` or `on interior { … }`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Block {
    /// Its index among the blocks of the form.
    pub(super) number: usize,
    /// Its kind of region.
    pub(super) region: BlockRegion,
}

/// Returns the blocks of a form with their tags and items.
pub(super) fn blocks(
    form: &ast::Form,
) -> impl Iterator<Item = (Block, &[ast::Text], &[ast::FormItem])> {
    let blocks = form.items.iter().filter_map(|item| match &item.kind {
        FormItemKind::Block { region, tags, items } => Some((*region, tags, items)),
        _ => None,
    });
    let block = |(number, (region, tags, items))| {
        let (tags, items): (&Vec<ast::Text>, &Vec<ast::FormItem>) = (tags, items);
        (Block { number, region }, tags.as_slice(), items.as_slice())
    };
    blocks.enumerate().map(block)
}

/// A declared name.
#[derive(Clone, Copy, Debug)]
pub(super) struct Entry {
    pub(super) meaning: Meaning,
    /// The block that it belongs to; `None` for the whole form.
    pub(super) region: Option<Block>,
    pub(super) span: Span,
}

/// A field as declared.
#[derive(Clone, Copy, Debug)]
pub(super) struct FieldItem<'a> {
    pub(super) name: &'a Ident,
    pub(super) shape: Option<ast::ShapeSpec>,
    pub(super) space: Option<ast::SpaceSpec>,
    pub(super) tags: &'a [ast::Text],
}

/// Auxiliary data as declared.
#[derive(Clone, Copy, Debug)]
pub(super) struct AuxItem<'a> {
    pub(super) name: &'a Ident,
    pub(super) shape: Option<ast::ShapeSpec>,
    pub(super) place: Option<ast::LocationSpec>,
}

/// A parameter as declared.
#[derive(Clone, Copy, Debug)]
pub(super) struct ParamItem<'a> {
    pub(super) name: &'a Ident,
    pub(super) shape: Option<ast::ShapeSpec>,
    pub(super) value: ast::ExprId,
}

/// A `let` or a `fn`.
#[derive(Clone, Copy, Debug)]
pub(super) struct Definition<'a> {
    pub(super) name: &'a Ident,
    /// The parameters of a `fn`.
    pub(super) parameters: Option<&'a [Ident]>,
    pub(super) body: ast::ExprId,
    pub(super) region: Option<Block>,
}

/// The names of a form with their meanings.
#[derive(Clone, Debug, Default)]
pub(super) struct Names<'a> {
    pub(super) entries: BTreeMap<&'a str, Entry>,
    pub(super) fields: Vec<FieldItem<'a>>,
    pub(super) aux: Vec<AuxItem<'a>>,
    pub(super) params: Vec<ParamItem<'a>>,
    pub(super) definitions: Vec<Definition<'a>>,
    /// The field's name and the span of each test function.
    pub(super) tests: Vec<(&'a Ident, &'a Ident)>,
    /// Parameters and definitions in dependency order, without those in cycles.
    pub(super) param_order: Vec<usize>,
    pub(super) definition_order: Vec<usize>,
    /// The definitions in `definition_order`.
    pub(super) sound: BTreeSet<usize>,
    /// Expressions with a name or call that has been reported.
    pub(super) broken: BTreeSet<ast::ExprId>,
    /// Names that are declared more than once, and therefore ambiguous.
    pub(super) repeated: BTreeSet<&'a str>,
    /// Undeclared names, each reported at its first use.
    pub(super) unknown: BTreeSet<String>,
}

impl Names<'_> {
    /// Returns the number of arguments of a function of the language; `None` for other names, and for those that the
    /// form declares itself.
    pub(super) fn built_in(&self, name: &str) -> Option<usize> {
        super::functions::argument_count(name).filter(|_| !self.entries.contains_key(name))
    }

    /// Returns whether a name has a value that the language defines, and that the form does not redefine.
    pub(super) fn is_known(&self, name: &str) -> bool {
        words::KNOWN.contains(&name) || name == words::EXTENT && !self.entries.contains_key(name)
    }
}

/// The context of an expression.
#[derive(Clone, Copy, Debug)]
pub(super) struct ExprContext<'a> {
    /// The block.
    pub(super) region: Option<Block>,
    /// The parameters of the enclosing function.
    pub(super) parameters: &'a [Ident],
    /// True for the default of a parameter.
    pub(super) param: bool,
    /// True for a weak form.
    pub(super) weak: bool,
    /// True if t and k are available in addition to the names that parameters may use.
    pub(super) settled: bool,
}

impl<'a> ExprContext<'a> {
    /// Returns whether facets are integrated, which have a normal.
    pub(super) fn is_of_facets(self) -> bool {
        self.region.is_some_and(|block| block.region.is_of_facets())
    }

    /// Returns whether facets between two cells are integrated.
    pub(super) fn is_interior(self) -> bool {
        self.region.is_some_and(|block| block.region.is_interior())
    }

    /// Returns the context of a region, outside functions and parameters.
    pub(super) fn region(region: Option<Block>) -> Self {
        ExprContext { region, parameters: &[], param: false, weak: false, settled: false }
    }
}

/// Resolves the names of a form.
pub(super) fn resolve<'a>(
    file: &'a ast::File,
    form: &'a ast::Form,
) -> (Names<'a>, Vec<Diagnostic>) {
    let mut resolver = Resolver { file, names: Names::default(), diagnostics: Vec::new() };
    resolver.declare(&form.items, None);
    for (block, _, items) in blocks(form) {
        resolver.declare(items, Some(block));
    }
    resolver.parameters();
    let mut uses = Uses::default();
    resolver.bodies(&mut uses);
    resolver.rows(&form.items, None);
    for (block, _, items) in blocks(form) {
        resolver.rows(items, Some(block));
    }
    let param_idents: Vec<&Ident> = resolver.names.params.iter().map(|param| param.name).collect();
    let definition_idents: Vec<&Ident> =
        resolver.names.definitions.iter().map(|definition| definition.name).collect();
    resolver.names.param_order = order(&uses.params, &param_idents, &mut resolver.diagnostics);
    resolver.names.definition_order =
        order(&uses.definitions, &definition_idents, &mut resolver.diagnostics);
    resolver.names.sound = resolver.names.definition_order.iter().copied().collect();
    (resolver.names, resolver.diagnostics)
}

/// Checks the names of one expression against given names.
pub(super) fn resolve_expression<'a>(
    file: &'a ast::File,
    root: ast::ExprId,
    names: Names<'a>,
    place: ExprContext<'a>,
) -> (Names<'a>, Vec<Diagnostic>) {
    let mut resolver = Resolver { file, names, diagnostics: Vec::new() };
    resolver.expression(root, place);
    (resolver.names, resolver.diagnostics)
}

/// The uses of parameters in each parameter, and of definitions in each definition, with locations.
#[derive(Default)]
struct Uses {
    params: Vec<Vec<(usize, Span)>>,
    definitions: Vec<Vec<(usize, Span)>>,
}

/// Returns the nodes of an expression, operands first.
pub(crate) fn subtree(file: &ast::File, root: ast::ExprId) -> Vec<ast::ExprId> {
    if root.index() >= file.exprs.len() {
        return Vec::new();
    }
    reachable(&[root], |id, each| for_operands(&file.exprs[id].kind, each))
}

/// Returns an expression with other operands.
pub(super) fn with_operands(kind: &ExprKind, to: impl Fn(ast::ExprId) -> ast::ExprId) -> ExprKind {
    let all = |ids: &[ast::ExprId]| ids.iter().map(|&id| to(id)).collect();
    match kind {
        ExprKind::Error
        | ExprKind::Number(_)
        | ExprKind::Name(_)
        | ExprKind::Text(_)
        | ExprKind::Interior(..) => kind.clone(),
        ExprKind::Array(items) => ExprKind::Array(all(items)),
        ExprKind::Call { function, arguments, named } => ExprKind::Call {
            function: function.clone(),
            arguments: all(arguments),
            named: named
                .iter()
                .map(|given| ast::Argument { name: given.name.clone(), value: to(given.value) })
                .collect(),
        },
        ExprKind::Index { base, indices } => {
            ExprKind::Index { base: to(*base), indices: all(indices) }
        }
        &ExprKind::Unary { op, op_span, operand } => {
            ExprKind::Unary { op, op_span, operand: to(operand) }
        }
        &ExprKind::Binary { op, op_span, left, right } => {
            ExprKind::Binary { op, op_span, left: to(left), right: to(right) }
        }
        &ExprKind::If { condition, then, otherwise } => {
            ExprKind::If { condition: to(condition), then: to(then), otherwise: to(otherwise) }
        }
    }
}

/// Returns the operands of an expression.
pub(super) fn operands(kind: &ExprKind) -> Vec<ast::ExprId> {
    let mut all = Vec::new();
    for_operands(kind, &mut |operand| all.push(operand));
    all
}

/// Visits the operands of an expression.
fn for_operands(kind: &ExprKind, each: &mut dyn FnMut(ast::ExprId)) {
    match kind {
        ExprKind::Error
        | ExprKind::Number(_)
        | ExprKind::Name(_)
        | ExprKind::Text(_)
        | ExprKind::Interior(..) => {}
        ExprKind::Array(items) => items.iter().for_each(|&item| each(item)),
        ExprKind::Call { arguments, named, .. } => {
            arguments.iter().for_each(|&argument| each(argument));
            named.iter().for_each(|argument| each(argument.value));
        }
        ExprKind::Index { base, indices } => {
            each(*base);
            indices.iter().for_each(|&index| each(index));
        }
        ExprKind::Unary { operand, .. } => each(*operand),
        ExprKind::Binary { left, right, .. } => {
            each(*left);
            each(*right);
        }
        ExprKind::If { condition, then, otherwise } => {
            each(*condition);
            each(*then);
            each(*otherwise);
        }
    }
}
