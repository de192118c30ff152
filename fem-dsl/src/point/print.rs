//! The text of a [`PointForm`], as printed by `wf emit --stage point`: one line per operation, with user-defined names.

use super::{
    Binary, Comparison, Input, Integral, Node, NodeId, Part, PointForm, Region, Shape, Side, Slot,
    Space, Unary,
};
use crate::arena::IndexVec;
use std::fmt;

impl fmt::Display for PointForm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "point {} in {}D", self.name, self.dim)?;
        for integral in &self.integrals {
            writeln!(f, "on {}", integral.region)?;
            integral_text(f, self, integral)?;
        }
        Ok(())
    }
}

fn integral_text(f: &mut fmt::Formatter<'_>, form: &PointForm, integral: &Integral) -> fmt::Result {
    let mut texts: IndexVec<NodeId, String> = IndexVec::new();
    let (direction, region) = (integral.depends_on_direction(), &integral.region);
    for (id, node) in integral.graph.nodes().iter_enumerated() {
        let text = match *node {
            Node::Constant(number) => format!("{:?}", number.get()),
            Node::Input(input) => form.input_name(&integral.region, input),
            node => {
                let name = match integral.names.get(&id) {
                    Some(name) => name.clone(),
                    None => id.to_string(),
                };
                // Nodes that depend on δu are indented further.
                let indent = if direction[id] { "      " } else { "    " };
                writeln!(f, "{indent}{name} = {}", operation(node, &texts))?;
                name
            }
        };
        texts.push(text);
    }
    for (title, entries) in [("residual", &integral.residual), ("action", &integral.action)] {
        writeln!(f, "  {title}")?;
        for (slot, node) in entries {
            writeln!(f, "    {} : {}", form.test_name(region, *slot), texts[*node])?;
        }
    }
    let structure = match (integral.symmetric, integral.linear) {
        (true, true) => " (symmetric, independent of the state)",
        (true, false) => " (symmetric)",
        (false, true) => " (independent of the state)",
        (false, false) => "",
    };
    writeln!(f, "  jacobian{structure}")?;
    for entry in &integral.jacobian {
        let trial = form.input_name(region, Input::Direction(entry.trial));
        writeln!(
            f,
            "    {} , {trial} : {}",
            form.test_name(region, entry.test),
            texts[entry.value]
        )?;
    }
    match integral.energy {
        Some(energy) => writeln!(f, "  energy\n    {}", texts[energy]),
        None => Ok(()),
    }
}

fn operation(node: Node, texts: &IndexVec<NodeId, String>) -> String {
    let t = |a: NodeId| texts[a].as_str();
    match node {
        Node::Constant(_) | Node::Input(_) => String::new(),
        Node::Unary(Unary::Neg, a) => format!("-{}", t(a)),
        Node::Unary(function, a) => format!("{}({})", format!("{function:?}").to_lowercase(), t(a)),
        Node::Binary(Binary::Add, a, b) => format!("{} + {}", t(a), t(b)),
        Node::Binary(Binary::Sub, a, b) => format!("{} - {}", t(a), t(b)),
        Node::Binary(Binary::Mul, a, b) => format!("{} * {}", t(a), t(b)),
        Node::Binary(Binary::Div, a, b) => format!("{} / {}", t(a), t(b)),
        Node::Binary(Binary::Pow, a, b) => format!("{} ^ {}", t(a), t(b)),
        Node::Binary(function, a, b) => {
            format!("{}({}, {})", format!("{function:?}").to_lowercase(), t(a), t(b))
        }
        Node::Powi(a, n) => format!("{} ^ {n}", t(a)),
        Node::Compare(comparison, a, b) => {
            let sign = match comparison {
                Comparison::Lt => "<",
                Comparison::Le => "<=",
                Comparison::Gt => ">",
                Comparison::Ge => ">=",
                Comparison::Eq => "==",
                Comparison::Ne => "!=",
            };
            format!("{} {sign} {}", t(a), t(b))
        }
        Node::And(a, b) => format!("{} && {}", t(a), t(b)),
        Node::Or(a, b) => format!("{} || {}", t(a), t(b)),
        Node::Not(a) => format!("!{}", t(a)),
        Node::Select(c, a, b) => format!("if {} {{ {} }} else {{ {} }}", t(c), t(a), t(b)),
    }
}

impl PointForm {
    /// Returns an input on a region in the notation of the language: `grad(u)[0, 1]`, `δu[1]`, `x[0]`, and between cells
    /// `outside(u)`.
    fn input_name(&self, region: &Region, input: Input) -> String {
        match input {
            Input::State(slot) => self.field_name(region, "", slot),
            Input::Direction(slot) => self.field_name(region, "δ", slot),
            Input::Aux(slot) => {
                let aux = &self.aux[slot.field];
                let space = aux.location.space();
                let word = word(region, space, slot);
                self.slot_name((&aux.name, aux.shape, space), slot, word)
            }
            Input::Param(i, component) => {
                let param = &self.params[i];
                let slot = Slot { field: i, side: Side::Inside, component, part: Part::Value };
                self.slot_name((&param.name, param.shape, None), slot, None)
            }
            Input::Coordinate(j) => format!("x[{j}]"),
            Input::Normal(j) => format!("n[{j}]"),
            Input::Time => "t".to_owned(),
            Input::Diameter(side) => sided("h", region.is_interior().then_some(side)),
            Input::Extent(side) => sided("hn", region.is_interior().then_some(side)),
            Input::PenaltyFactor(field) => format!("penalty_factor({})", self.fields[field].name),
            Input::Degree => "k".to_owned(),
            Input::Inverse(side, a, i) => format!("inverse({})[{a}, {i}]", side.word()),
            Input::Tangent(side, a, i) => format!("tangent({})[{a}, {i}]", side.word()),
            Input::Bend(side, a, b, i) => format!("bend({})[{a}, {b}, {i}]", side.word()),
            Input::Density(side) => format!("density({})", side.word()),
        }
    }

    fn field_name(&self, region: &Region, mark: &str, slot: Slot) -> String {
        let field = &self.fields[slot.field];
        let word = word(region, Some(field.space), slot);
        let name = format!("{mark}{}", field.name);
        self.slot_name((&name, field.shape, Some(field.space)), slot, word)
    }

    /// Returns the test factor of a slot: `test(u)[1]`, `grad(test(u))[0, 1]`.
    fn test_name(&self, region: &Region, slot: Slot) -> String {
        let field = &self.fields[slot.field];
        let word = word(region, Some(field.space), slot);
        let name = format!("test({})", field.name);
        self.slot_name((&name, field.shape, Some(field.space)), slot, word)
    }

    /// Returns the name of a slot of a value with a shape in a space, if in any.
    fn slot_name(
        &self,
        (name, shape, space): (&str, Shape, Option<Space>),
        slot: Slot,
        side: Option<Side>,
    ) -> String {
        let mut indices = match shape {
            Shape::Scalar => vec![],
            Shape::Vector(_) => vec![slot.component],
            Shape::Matrix(_, columns) => vec![slot.component / columns, slot.component % columns],
        };
        let base = match slot.part {
            Part::Value => name.to_owned(),
            Part::Derivative(j) => {
                indices.push(j);
                format!("grad({name})")
            }
            Part::Second(i, j) => {
                indices.extend([i, j]);
                format!("grad(grad({name}))")
            }
            Part::Exterior(i) => {
                let count = space.map_or(1, |space| space.exterior_components(self.dim));
                indices = if count == 1 { vec![] } else { vec![i] };
                format!("{}({name})", space.map_or("grad", Space::derivative))
            }
        };
        let base = sided(&base, side);
        if indices.is_empty() {
            return base;
        }
        let indices: Vec<String> = indices.iter().map(usize::to_string).collect();
        format!("{base}[{}]", indices.join(", "))
    }
}

/// Returns the side of a slot, if it has two values on a region.
fn word(region: &Region, space: Option<Space>, slot: Slot) -> Option<Side> {
    let one = slot.part == Part::Value && space.is_some_and(Space::is_continuous);
    (region.is_interior() && !one).then_some(slot.side)
}

/// Returns a name with its side.
fn sided(name: &str, side: Option<Side>) -> String {
    match side {
        Some(side) => format!("{}({name})", side.word()),
        None => name.to_owned(),
    }
}
