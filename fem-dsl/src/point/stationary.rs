//! A form with time derivatives → the form with these set to 0; and a test that the mass factors are constant.
//!
//! ```text
//! stationary F(t, u, 0, 0)
//! mass       ∂F/∂u̇ or ∂F/∂ü: what a derivative is multiplied with, all the way to its row
//! ```

use super::block::mapped;
use super::verify::expect_point;
use super::{Binary, Input, Integral, Node, NodeId, PointForm, Unary};
use crate::arena::IndexVec;

/// Returns the form with all time derivatives 0. Data and parameters keep their indices.
pub fn stationary(form: &PointForm) -> PointForm {
    let mut made = form.clone();
    made.name = format!("{}_still", form.name);
    made.integrals = form.integrals.iter().map(|of| of_integral(form, of)).collect();
    made.integrals.retain(|of| !of.residual.is_empty() || !of.jacobian.is_empty());
    expect_point(&made);
    made
}

/// Returns whether an input belongs to a time derivative: s, or the history r.
fn is_rate(form: &PointForm, input: Input) -> bool {
    form.rates.iter().any(|rate| match input {
        Input::Param(param, _) => param == rate.param,
        Input::Aux(slot) => slot.field == rate.aux,
        _ => false,
    })
}

fn of_integral(form: &PointForm, from: &Integral) -> Integral {
    without(from, |input| is_rate(form, input))
}

/// Returns an integral with some inputs 0.
fn without(from: &Integral, select: impl Fn(Input) -> bool) -> Integral {
    let lists = (from.residual.clone(), from.action.clone(), from.jacobian.clone());
    mapped(
        from,
        lists,
        |scalars, input| {
            if select(input) { scalars.constant(0.0) } else { scalars.input(input) }
        },
    )
}

/// Returns the form with s = 0: its time derivatives are their data r, and the Jacobian is that of u alone. Data and
/// parameters keep their indices.
pub fn with_given_rates(form: &PointForm) -> PointForm {
    let mut made = form.clone();
    let is_factor = |input| matches!(input, Input::Param(param, _) if form.rates.iter().any(|rate| rate.param == param));
    made.integrals = form.integrals.iter().map(|of| without(of, is_factor)).collect();
    expect_point(&made);
    made
}

/// Returns whether a factor of a time derivative depends on some input, such as the solution; also true if the form is
/// not affine in its derivatives.
pub fn masses_follow(form: &PointForm, follows: impl Fn(Input) -> bool) -> bool {
    form.integrals.iter().any(|of| {
        let own = of.depends_on(&follows);
        let rates = of.depends_on(|input| matches!(input, Input::Aux(_)) && is_rate(form, input));
        // True if a node is affine in the derivatives it contains, with factors independent of such inputs.
        let mut fixed = IndexVec::<NodeId, bool>::new();
        for node in of.graph.nodes() {
            let plain = |a: NodeId| fixed[a];
            let value = match *node {
                _ if node.operands().all(|operand| !rates[operand]) => true,
                Node::Unary(Unary::Neg, a) => plain(a),
                Node::Binary(Binary::Add | Binary::Sub, a, b) => plain(a) && plain(b),
                Node::Binary(Binary::Mul, a, b) => match (rates[a], rates[b]) {
                    (true, false) => plain(a) && !own[b],
                    (false, true) => plain(b) && !own[a],
                    _ => false,
                },
                Node::Binary(Binary::Div, a, b) => !rates[b] && plain(a) && !own[b],
                _ => false,
            };
            fixed.push(value);
        }
        of.residual.iter().any(|(_, node)| !fixed[*node])
    })
}

#[cfg(test)]
mod tests {
    use super::{masses_follow, stationary};
    use crate::point::{Input, PointForm};
    use crate::program::compile;
    use crate::source::Source;

    fn form(text: &str) -> PointForm {
        let (program, found) = compile(&Source::new("test", text));
        let program = program.unwrap_or_else(|| panic!("{found:?}"));
        program.point_form("f", 2).expect("a form")
    }

    #[test]
    fn stationary_forms_have_no_rates() {
        let of = "form f { field u: scalar; param rho = 2; f0[u] = rho * dt(dt(u)) + dt(u) - x[0]; f1[u] = grad(u); }";
        let (moving, quiet) = (form(of), stationary(&form(of)));
        let reads = |form: &PointForm| {
            let aux = |integral: &crate::point::Integral| {
                integral.graph.nodes().iter().any(|node| {
                    matches!(node, crate::point::Node::Input(Input::Aux(_) | Input::Param(..)))
                })
            };
            form.integrals.iter().any(aux)
        };
        assert!(reads(&moving) && !reads(&quiet));
        assert_eq!((quiet.aux.len(), quiet.params.len()), (moving.aux.len(), moving.params.len()));
        assert_eq!(quiet.integrals[0].jacobian.len(), 2);
    }

    #[test]
    fn a_mass_follows_the_coefficient_of_a_rate() {
        let state = |input| matches!(input, Input::State(_));
        let time = |input| input == Input::Time;
        let of = |f0: &str| {
            form(&format!("form f {{ field u: scalar; f0[u] = {f0}; f1[u] = grad(u); }}"))
        };
        assert!(!masses_follow(&of("3 * dt(u) - u^3"), state));
        assert!(!masses_follow(&of("(1 + x[0]) * dt(u) / 2 - sin(t) * u"), |i| state(i) || time(i)));
        assert!(masses_follow(&of("(1 + u^2) * dt(u)"), state));
        assert!(masses_follow(&of("dt(u^2 / 2 + u)"), state));
        assert!(masses_follow(&of("dt(u)^2"), state));
        assert!(masses_follow(&of("(2 + sin(t)) * dt(u)"), time));
        assert!(!masses_follow(&of("(2 + sin(t)) * dt(u)"), state));
    }
}
