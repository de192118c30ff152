//! Manufactured solutions with a kink, or a jump, inside the domain: the flux jumps there, and the source f0 − div f1
//! lacks the surface term of the jump.
//!
//! A solution changes its formula where the argument of `abs` or `sign` is 0, where those of `min` or `max` are equal,
//! and where the condition of an `if` changes. Such points are searched along segments of the domain, by bisection. A
//! kink is present if values or slopes on both sides differ by more than rounding errors.

use super::{Content, MeshChoice, Statement};
use crate::ast::ProblemItemKind;
use crate::codes::Code;
use crate::diagnostic::Diagnostic;
use crate::eval::eval;
use crate::form::{Expr, Form, Terminal};
use crate::point::{Binary, Input, Node, NodeId, Unary, reachable};
use crate::problem::{Argument, Expression, MeshSource};
use std::collections::BTreeMap;

/// Number of segments of the domain in the search for a change of formula.
const SEGMENTS: u32 = 256;

/// Number of bisections: as many as reduce a segment to neighbouring floating-point numbers.
const HALVINGS: usize = 60;

/// Relative difference of two slopes, or values, that counts as a rounding error.
const ROUNDING: f64 = 1e-6;

/// Minimal distance of a point from the boundary of the domain, relative to a segment.
const INSIDE: f64 = 1e-6;

/// Warns about each field whose manufactured solution has a kink that affects its flux.
pub(super) fn kinks(
    statements: &[Statement<'_>],
    form: &Form,
    content: &Content,
    params: &[Vec<f64>],
    mesh: Option<&MeshChoice>,
) -> Vec<Diagnostic> {
    let mut found = Vec::new();
    for statement in statements {
        let ProblemItemKind::Manufactured { field, value } = statement.kind else { continue };
        let Some(index) = form.fields.iter().position(|own| own.name == field.name) else {
            continue;
        };
        let Some((_, known)) = content.exact.iter().find(|(of, _)| *of == index) else { continue };
        let seen = FluxDependencies::of(form, index);
        let domains = Domain::of(mesh, form.dim);
        let search = |domain: &Domain| Search { known, domain, seen, content, params }.kink();
        let Some((place, jump)) = domains.iter().find_map(search) else { continue };
        let rounded = |x: &f64| format!("{:.4}", (1e4 * x).round() / 1e4 + 0.0);
        let place: Vec<String> = place[..form.dim].iter().map(rounded).collect();
        let place = place.join(", ");
        let message =
            format!("the manufactured solution of `{}` has a {jump} at ({place})", field.name);
        let diagnostic = Diagnostic::warning(Code::ManufacturedKink, message)
            .label(statement.piece.file.exprs[*value].span, "its flux jumps there")
            .note("the source f0 − div f1 is that of a continuous flux: the discrete solution approaches another function, and orders of errors mean nothing")
            .help("take a solution with continuous derivatives, or compare with `exact` and a source of your own");
        found.push(statement.piece.place(diagnostic));
    }
    found
}

/// Dependencies of the fluxes of a form over cells.
#[derive(Clone, Copy, Default)]
struct FluxDependencies {
    value: bool,
    gradient: bool,
}

impl FluxDependencies {
    fn of(form: &Form, field: usize) -> Self {
        let cells = form.integrals.iter().filter(|integral| integral.region.is_of_cells());
        let fluxes: Vec<_> =
            cells.flat_map(|integral| &integral.rows).filter_map(|row| row.f1).collect();
        let mut seen = Self::default();
        for id in form.exprs.reachable_in_order(&fluxes) {
            match form.exprs.expr(id) {
                Expr::Terminal(Terminal::Field(of, _)) if *of == field => seen.value = true,
                Expr::Terminal(Terminal::FieldGradient(of, _)) if *of == field => {
                    seen.gradient = true
                }
                _ => {}
            }
        }
        seen
    }
}

/// The domain of the mesh, if its source defines one.
struct Domain {
    low: [f64; 3],
    high: [f64; 3],
    kind: Kind,
}

#[derive(Clone, Copy)]
enum Kind {
    Box,
    Shell { inner: f64, outer: f64 },
    Corner,
}

impl Domain {
    /// Returns the domain of a generator; for a file some boxes around the origin.
    fn of(mesh: Option<&MeshChoice>, dim: usize) -> Vec<Self> {
        let cube = |size: f64, kind| Self { low: [-size; 3], high: [size; 3], kind };
        let Some(MeshSource::Generator { name, arguments }) = mesh.map(|mesh| &mesh.source) else {
            return [1.0, 0.01, 100.0].map(|size| cube(size, Kind::Box)).into();
        };
        vec![match name.as_str() {
            "box" => {
                let corner = |name: &str, default: f64| point(arguments.get(name), dim, default);
                Self { low: corner("from", 0.0), high: corner("to", 1.0), kind: Kind::Box }
            }
            "shell" => {
                let radius = |name: &str, default: f64| match arguments.get(name) {
                    Some(Argument::Number(radius)) => *radius,
                    _ => default,
                };
                let (inner, outer) = (radius("inner", 0.5), radius("outer", 1.0));
                cube(outer, Kind::Shell { inner, outer })
            }
            "lshape" => cube(1.0, Kind::Corner),
            _ => cube(1.0, Kind::Shell { inner: 0.0, outer: 1.0 }),
        }]
    }

    fn contains(&self, x: &[f64; 3], dim: usize) -> bool {
        let own = &x[..dim];
        let in_box = (0..dim).all(|i| self.low[i] < x[i] && x[i] < self.high[i]);
        in_box
            && match self.kind {
                Kind::Box => true,
                Kind::Shell { inner, outer } => {
                    let radius = own.iter().map(|x| x * x).sum::<f64>().sqrt();
                    inner <= radius && radius < outer
                }
                Kind::Corner => own.iter().any(|x| *x < 0.0),
            }
    }

    /// Returns the corner of a segment: a low-discrepancy sequence, so that no coordinate is special.
    fn drawn(&self, number: u32) -> [f64; 3] {
        // Powers of the roots of xᵈ⁺¹ = x + 1.
        const STEPS: [f64; 3] =
            [0.819_172_513_396_164_4, 0.671_043_606_703_789_3, 0.549_700_477_901_970_3];
        std::array::from_fn(|i| {
            let share = (0.5 + f64::from(number) * STEPS[i]).fract();
            self.low[i] + share * (self.high[i] - self.low[i])
        })
    }
}

fn point(argument: Option<&Argument>, dim: usize, default: f64) -> [f64; 3] {
    let mut x = [default; 3];
    if let Some(Argument::Numbers(values)) = argument {
        x.iter_mut().zip(values.iter().take(dim)).for_each(|(x, value)| *x = *value);
    }
    x
}

/// A known solution in which a kink is searched.
struct Search<'a> {
    known: &'a Expression,
    domain: &'a Domain,
    seen: FluxDependencies,
    content: &'a Content,
    params: &'a [Vec<f64>],
}

impl Search<'_> {
    /// Returns a point at which the flux jumps, and the kind of change of the solution.
    fn kink(&self) -> Option<([f64; 3], &'static str)> {
        let switches = self.switches();
        if switches.is_empty() || !(self.seen.value || self.seen.gradient) {
            return None;
        }
        let times = match &self.content.stepping {
            None => vec![self.content.time],
            Some(own) => [0.0, 0.382, 0.764].map(|s| own.from + s * (own.to - own.from)).into(),
        };
        times.into_iter().find_map(|time| self.kink_at(time, &switches))
    }

    fn kink_at(&self, time: f64, switches: &[NodeId]) -> Option<([f64; 3], &'static str)> {
        let sizes = self.sizes(time);
        let mut from = self.domain.drawn(0);
        let mut before = self.values(&from, time);
        for number in 1..=SEGMENTS {
            let to = self.domain.drawn(number);
            let after = self.values(&to, time);
            for &switch in switches {
                if self.side(&before, switch) != self.side(&after, switch)
                    && let Some(found) = self.crossing([from, to], time, switch, sizes)
                {
                    return Some(found);
                }
            }
            (from, before) = (to, after);
        }
        None
    }

    /// Returns the point at which a segment crosses a change of formula and the flux jumps, if there is one.
    fn crossing(
        &self,
        [from, to]: [[f64; 3]; 2],
        time: f64,
        switch: NodeId,
        [value, slope]: [f64; 2],
    ) -> Option<([f64; 3], &'static str)> {
        let at = |s: f64| std::array::from_fn(|i| from[i] + s * (to[i] - from[i]));
        let (mut low, mut high) = (0.0, 1.0);
        let first = self.side(&self.values(&from, time), switch);
        for _ in 0..HALVINGS {
            let middle = (low + high) / 2.0;
            let same = self.side(&self.values(&at(middle), time), switch) == first;
            *(if same { &mut low } else { &mut high }) = middle;
        }
        let dim = self.dim();
        let inside = |s: f64| (0.0..=1.0).contains(&s) && self.domain.contains(&at(s), dim);
        if !inside(low - INSIDE) || !inside(high + INSIDE) {
            return None;
        }
        let sides = [low, high].map(|s| self.values(&at(s), time));
        let jumps = |roots: &[NodeId], size: f64| {
            let pairs = || roots.iter().map(|&root| sides.each_ref().map(|side| side[&root]));
            let largest = pairs().flatten().fold(size, |all, value| all.max(value.abs()));
            largest.is_finite()
                && pairs().any(|[one, other]| (one - other).abs() > ROUNDING * largest)
        };
        if jumps(&self.known.value, value) {
            return Some((at(low), "jump"));
        }
        (self.seen.gradient && jumps(&self.known.gradient, slope)).then(|| (at(low), "kink"))
    }

    /// Returns the mean size of the values and of the slopes: near a change of formula both may be rounding errors.
    fn sizes(&self, time: f64) -> [f64; 2] {
        const SAMPLES: u32 = 32;
        let mut sums = [0.0; 2];
        for number in 0..SAMPLES {
            let values = self.values(&self.domain.drawn(number), time);
            for (sum, roots) in sums.iter_mut().zip([&self.known.value, &self.known.gradient]) {
                let sizes = roots.iter().map(|root| values[root].abs());
                *sum += sizes.filter(|size| size.is_finite()).sum::<f64>();
            }
        }
        sums.map(|sum| sum / f64::from(SAMPLES))
    }

    fn dim(&self) -> usize {
        self.known.gradient.len() / self.known.value.len().max(1)
    }

    /// Returns the nodes at which the formula changes with the position.
    fn switches(&self) -> Vec<NodeId> {
        let graph = &self.known.graph;
        let mut varies = BTreeMap::new();
        let mut switches = Vec::new();
        for id in reachable(graph, &self.roots()) {
            let node = graph.nodes()[id];
            let own = matches!(node, Node::Input(Input::Coordinate(_)));
            let depends = own || node.operands().any(|operand| varies[&operand]);
            varies.insert(id, depends);
            let changes = matches!(
                node,
                Node::Unary(Unary::Abs | Unary::Sign, _)
                    | Node::Binary(Binary::Min | Binary::Max, ..)
                    | Node::Compare(..)
            );
            if depends && changes {
                switches.push(id);
            }
        }
        switches
    }

    fn roots(&self) -> Vec<NodeId> {
        self.known.value.iter().chain(&self.known.gradient).copied().collect()
    }

    /// Returns the side of the change on which a node is.
    fn side(&self, values: &BTreeMap<NodeId, f64>, switch: NodeId) -> bool {
        let value = |id: NodeId| values[&id];
        match self.known.graph.nodes()[switch] {
            Node::Unary(_, a) => value(a) > 0.0,
            Node::Binary(_, a, b) => value(a) > value(b),
            _ => value(switch) != 0.0,
        }
    }

    fn values(&self, x: &[f64; 3], time: f64) -> BTreeMap<NodeId, f64> {
        let all = eval(&self.known.graph, |input| match input {
            Input::Coordinate(i) => x[i],
            Input::Param(i, component) => {
                let value = self.params.get(i).and_then(|value| value.get(component));
                value.copied().unwrap_or(f64::NAN)
            }
            Input::Time => time,
            Input::Degree => self.content.degree.unwrap_or(1) as f64,
            _ => 1.0,
        });
        reachable(&self.known.graph, &self.roots()).into_iter().map(|id| (id, all[id])).collect()
    }
}
