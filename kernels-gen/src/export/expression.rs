//! Nodes of a scalar graph → C statements: a variable for each node that is used twice or has a name, everything else
//! within its use.

use super::names::Names;
use fem_dsl::arena::IdMap;
use fem_dsl::point::{Binary, Comparison, Input, Integral, Node, NodeId, Unary, reachable};
use std::collections::BTreeMap;

/// The length of a text beyond which a node gets a variable.
const LONGEST: usize = 60;

/// Words of a library.
pub(super) struct Words {
    /// The type of a real number.
    pub(super) real: &'static str,
    /// The name of a function of one argument.
    pub(super) unary: fn(Unary) -> &'static str,
    /// aᵇ.
    pub(super) pow: &'static str,
    /// The angle of a point.
    pub(super) atan2: &'static str,
    /// A number beyond the largest.
    pub(super) infinity: &'static str,
}

/// Binding strength of an expression.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Binding {
    /// Comparisons and logic.
    Truth,
    /// Sums.
    Sum,
    /// Products, and negated operands.
    Product,
    /// Names, calls and brackets.
    Atom,
}

/// The text of an expression.
#[derive(Clone)]
struct Text {
    text: String,
    binding: Binding,
}

impl Text {
    /// Returns the text as an operand that binds at least so tightly.
    fn at(&self, least: Binding) -> String {
        if self.binding < least { format!("({})", self.text) } else { self.text.clone() }
    }
}

/// Returns the statements that compute some nodes, and the text of each node. `input` names an input.
pub(super) fn statements(
    integral: &Integral,
    roots: &[NodeId],
    words: &Words,
    names: &mut Names,
    input: &dyn Fn(Input) -> String,
) -> (Vec<String>, Vec<String>) {
    let graph = &integral.graph;
    let order = reachable(graph, roots);
    let uses = uses(integral, &order, roots);
    let mut texts: IdMap<NodeId, Text> = IdMap::new();
    let (mut lines, mut number) = (Vec::new(), 0);
    for id in order {
        let node = graph.nodes()[id];
        let text = match node {
            Node::Constant(value) => constant(value.get(), words),
            Node::Input(own) => Text { text: input(own), binding: Binding::Atom },
            node => operation(node, &texts, words),
        };
        let name = integral.names.get(&id);
        let is_leaf = matches!(node, Node::Constant(_) | Node::Input(_));
        let within =
            name.is_none() && uses.get(&id).copied().unwrap_or(0) < 2 && text.text.len() <= LONGEST;
        if is_leaf || within {
            texts.insert(id, text);
            continue;
        }
        let name = names.unique(&name.cloned().unwrap_or_else(|| {
            number += 1;
            format!("s{number}")
        }));
        let kind = if is_truth(node) { "int" } else { words.real };
        lines.push(format!("const {kind} {name} = {};", text.text));
        texts.insert(id, Text { text: name, binding: Binding::Atom });
    }
    let texts = roots.iter().map(|root| texts[root].text.clone()).collect();
    (lines, texts)
}

/// Counts the places in which the text of each node stands.
fn uses(integral: &Integral, order: &[NodeId], roots: &[NodeId]) -> BTreeMap<NodeId, usize> {
    let mut uses = BTreeMap::new();
    for &id in order {
        let node = integral.graph.nodes()[id];
        let repeated = matches!(
            node,
            Node::Powi(..)
                | Node::Unary(Unary::Sign, _)
                | Node::Binary(Binary::Min | Binary::Max, ..)
        );
        for operand in node.operands() {
            *uses.entry(operand).or_insert(0) += if repeated { 2 } else { 1 };
        }
    }
    for root in roots {
        *uses.entry(*root).or_insert(0) += 1;
    }
    uses
}

/// Returns whether the value of a node is a truth value.
fn is_truth(node: Node) -> bool {
    matches!(node, Node::Compare(..) | Node::And(..) | Node::Or(..) | Node::Not(_))
}

/// Returns a literal that reads back as the same number.
fn constant(value: f64, words: &Words) -> Text {
    let text = match value {
        _ if value.is_finite() => format!("{value:?}"),
        _ if value > 0.0 => words.infinity.to_owned(),
        _ => format!("-{}", words.infinity),
    };
    let binding = if value < 0.0 { Binding::Product } else { Binding::Atom };
    Text { text, binding }
}

/// Returns the text of an operation on texts.
fn operation(node: Node, texts: &IdMap<NodeId, Text>, words: &Words) -> Text {
    use Binding::{Atom, Product, Sum, Truth};
    let at = |id: NodeId, least: Binding| texts[&id].at(least);
    let of = |text: String, binding: Binding| Text { text, binding };
    let call = |name: &str, a: NodeId| of(format!("{name}({})", at(a, Truth)), Atom);
    let two = |name: &str, a: NodeId, b: NodeId| {
        of(format!("{name}({}, {})", at(a, Truth), at(b, Truth)), Atom)
    };
    let choice = |a: NodeId, sign: &str, b: NodeId| {
        let (a, b) = (at(a, Atom), at(b, Atom));
        of(format!("({a} {sign} {b} ? {a} : {b})"), Atom)
    };
    match node {
        Node::Constant(_) | Node::Input(_) => unreachable!("a leaf is no operation"),
        Node::Unary(Unary::Neg, a) => of(format!("-{}", at(a, Atom)), Product),
        Node::Unary(Unary::Sign, a) => {
            let (a, real) = (at(a, Atom), words.real);
            of(format!("({real})(({a} > 0.0) - ({a} < 0.0))"), Product)
        }
        Node::Unary(function, a) => call((words.unary)(function), a),
        Node::Binary(Binary::Add, a, b) => of(format!("{} + {}", at(a, Sum), at(b, Product)), Sum),
        Node::Binary(Binary::Sub, a, b) => of(format!("{} - {}", at(a, Sum), at(b, Product)), Sum),
        Node::Binary(Binary::Mul, a, b) => {
            of(format!("{} * {}", at(a, Product), at(b, Atom)), Product)
        }
        Node::Binary(Binary::Div, a, b) => {
            of(format!("{} / {}", at(a, Product), at(b, Atom)), Product)
        }
        Node::Binary(Binary::Pow, a, b) => two(words.pow, a, b),
        Node::Binary(Binary::Atan2, a, b) => two(words.atan2, a, b),
        Node::Binary(Binary::Min, a, b) => choice(a, "<=", b),
        Node::Binary(Binary::Max, a, b) => choice(a, ">=", b),
        Node::Powi(a, n) => power(&at(a, Atom), &at(a, Truth), n, words),
        Node::Compare(comparison, a, b) => {
            of(format!("{} {} {}", at(a, Sum), sign(comparison), at(b, Sum)), Truth)
        }
        Node::And(a, b) => of(format!("{} && {}", at(a, Atom), at(b, Atom)), Truth),
        Node::Or(a, b) => of(format!("{} || {}", at(a, Atom), at(b, Atom)), Truth),
        Node::Not(a) => of(format!("!{}", at(a, Atom)), Product),
        Node::Select(c, a, b) => {
            of(format!("({} ? {} : {})", at(c, Atom), at(a, Sum), at(b, Sum)), Atom)
        }
    }
}

/// Returns an integer power, by multiplication up to 4.
fn power(a: &str, argument: &str, n: i32, words: &Words) -> Text {
    let product = vec![a; n.unsigned_abs() as usize % 5].join(" * ");
    let (text, binding) = match n {
        0 => ("1.0".to_owned(), Binding::Atom),
        1..=4 => (product, Binding::Product),
        -4..=-1 => (format!("1.0 / ({product})"), Binding::Product),
        _ => (format!("{}({argument}, {n}.0)", words.pow), Binding::Atom),
    };
    Text { text, binding }
}

fn sign(comparison: Comparison) -> &'static str {
    match comparison {
        Comparison::Lt => "<",
        Comparison::Le => "<=",
        Comparison::Gt => ">",
        Comparison::Ge => ">=",
        Comparison::Eq => "==",
        Comparison::Ne => "!=",
    }
}
