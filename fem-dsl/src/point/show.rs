//! The text of a [`PointForm`]: what `wf emit --stage point` shows.

use super::{Integral, Node, NodeId, Part, PointForm, Slot};
use std::fmt;

impl fmt::Display for PointForm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "point {} in {}D", self.name, self.dim)?;
        for integral in &self.integrals {
            writeln!(f, "  on {:?}", integral.region)?;
            for (id, node) in integral.graph.nodes().iter_enumerated() {
                write!(f, "    {id} = ")?;
                show(f, *node, &self.fields_of(*node))?;
                match integral.names.get(&id) {
                    Some(name) => writeln!(f, "  // {name}")?,
                    None => writeln!(f)?,
                }
            }
            self.views(f, integral)?;
        }
        Ok(())
    }
}

impl PointForm {
    /// The name behind an input's slot.
    fn fields_of(&self, node: Node) -> String {
        use super::Input;
        match node {
            Node::Input(Input::State(slot)) => self.slot(&self.fields[slot.field].name, slot),
            Node::Input(Input::Direction(slot)) => {
                self.slot(&format!("delta_{}", self.fields[slot.field].name), slot)
            }
            Node::Input(Input::Aux(slot)) => self.slot(&self.aux[slot.field].name, slot),
            Node::Input(Input::Param(param, component)) => {
                let name = &self.params[param].name;
                match self.params[param].shape.components() {
                    1 => name.clone(),
                    _ => format!("{name}[{component}]"),
                }
            }
            Node::Input(Input::Coordinate(axis)) => format!("x[{axis}]"),
            Node::Input(Input::Normal(axis)) => format!("n[{axis}]"),
            Node::Input(Input::Time) => "t".to_owned(),
            Node::Input(Input::Diameter) => "h".to_owned(),
            Node::Input(Input::Degree) => "k".to_owned(),
            _ => String::new(),
        }
    }

    fn slot(&self, name: &str, slot: Slot) -> String {
        match slot.part {
            Part::Value => format!("{name}[{}]", slot.component),
            Part::Derivative(j) => format!("grad({name})[{}, {j}]", slot.component),
        }
    }

    fn views(&self, f: &mut fmt::Formatter<'_>, integral: &Integral) -> fmt::Result {
        let test = |slot: Slot| self.slot(&format!("v_{}", self.fields[slot.field].name), slot);
        let trial =
            |slot: Slot| self.slot(&format!("delta_{}", self.fields[slot.field].name), slot);
        for (slot, node) in &integral.residual {
            writeln!(f, "    residual {} : {node}", test(*slot))?;
        }
        for (slot, node) in &integral.action {
            writeln!(f, "    action {} : {node}", test(*slot))?;
        }
        for entry in &integral.jacobian {
            writeln!(f, "    G {} {} : {}", test(entry.test), trial(entry.trial), entry.value)?;
        }
        writeln!(f, "    symmetric: {}, linear: {}", integral.symmetric, integral.linear)
    }
}

fn show(f: &mut fmt::Formatter<'_>, node: Node, input: &str) -> fmt::Result {
    let word = |name: &dyn fmt::Debug| format!("{name:?}").to_lowercase();
    let list = |ids: &[NodeId]| ids.iter().map(ToString::to_string).collect::<Vec<_>>().join(" ");
    match node {
        Node::Constant(number) => write!(f, "{number:?}"),
        Node::Input(_) => write!(f, "{input}"),
        Node::Unary(function, a) => write!(f, "{} {a}", word(&function)),
        Node::Binary(function, a, b) => write!(f, "{} {}", word(&function), list(&[a, b])),
        Node::Powi(a, exponent) => write!(f, "powi {a} {exponent}"),
        Node::Compare(comparison, a, b) => write!(f, "{} {}", word(&comparison), list(&[a, b])),
        Node::And(a, b) => write!(f, "and {}", list(&[a, b])),
        Node::Or(a, b) => write!(f, "or {}", list(&[a, b])),
        Node::Not(a) => write!(f, "not {a}"),
        Node::Select(c, a, b) => write!(f, "select {}", list(&[c, a, b])),
    }
}
