//! Two forms of the same fields, data and parameters → the first plus a multiple of the second. The factor is a new
//! parameter.

use super::block::{moved, of_rows};
use super::scalars::Scalars;
use super::verify::expect_point;
use super::{Input, Integral, NodeId, Param, PointForm, Shape, Slot};
use std::collections::BTreeMap;

/// Returns `form` + s · `mass`, with the parameter s after all others.
pub fn shifted(form: &PointForm, mass: &PointForm, value: f64) -> PointForm {
    let mut made = PointForm { integrals: Vec::new(), ..form.clone() };
    made.name = format!("{}_shifted", form.name);
    let shift = made.params.len();
    let mut name = "shift".to_owned();
    while made.params.iter().any(|param| param.name == name) {
        name.push('_');
    }
    made.params.push(Param { name, shape: Shape::Scalar, value: vec![value] });
    let mut regions = Vec::new();
    for integral in form.integrals.iter().chain(&mass.integrals) {
        if !regions.contains(&&integral.region) {
            regions.push(&integral.region);
        }
    }
    for region in regions {
        let of = |form: &'_ PointForm| -> Vec<Integral> {
            form.integrals.iter().filter(|integral| &integral.region == region).cloned().collect()
        };
        made.integrals.extend(of_region(&of(form), &of(mass), shift));
    }
    made.integrals.sort_by_key(|integral| !integral.region.is_of_cells());
    expect_point(&made);
    made
}

fn of_region(own: &[Integral], other: &[Integral], shift: usize) -> Option<Integral> {
    let first = own.first().or(other.first())?;
    let mut scalars = Scalars::default();
    let (mut residual, mut action) = (BTreeMap::new(), BTreeMap::new());
    let mut jacobian: BTreeMap<(Slot, Slot), NodeId> = BTreeMap::new();
    let all = own.iter().map(|of| (of, false)).chain(other.iter().map(|of| (of, true)));
    for (of, scaled) in all {
        let factor = scalars.input(Input::Param(shift, 0));
        let lists = of.residual.iter().chain(&of.action).map(|(_, node)| *node);
        let roots: Vec<NodeId> = lists.chain(of.jacobian.iter().map(|entry| entry.value)).collect();
        let nodes = moved(&mut scalars, &of.graph, &roots, Scalars::input);
        let nodes = nodes.into_iter().map(|node| match scaled {
            true => scalars.mul(factor, node),
            false => node,
        });
        let nodes: Vec<NodeId> = nodes.collect();
        let mut nodes = nodes.into_iter();
        let mut add = |list: &mut BTreeMap<Slot, NodeId>, slot: Slot, node: NodeId| {
            let sum = match list.get(&slot) {
                Some(&before) => scalars.add(before, node),
                None => node,
            };
            list.insert(slot, sum);
        };
        for (slot, _) in &of.residual {
            nodes.by_ref().take(1).for_each(|node| add(&mut residual, *slot, node));
        }
        for (slot, _) in &of.action {
            nodes.by_ref().take(1).for_each(|node| add(&mut action, *slot, node));
        }
        for (entry, node) in of.jacobian.iter().zip(nodes) {
            let key = (entry.test, entry.trial);
            let sum = match jacobian.get(&key) {
                Some(&before) => scalars.add(before, node),
                None => node,
            };
            jacobian.insert(key, sum);
        }
    }
    let symmetric = own.iter().chain(other).all(|of| of.symmetric);
    let linear = own.iter().chain(other).all(|of| of.linear);
    let made = of_rows(first, &scalars, [residual, action], jacobian);
    Some(Integral { symmetric, linear, ..made })
}

#[cfg(test)]
mod tests {
    use super::shifted;
    use crate::point::{Input, PointForm, Region, eval};
    use crate::program::compile;
    use crate::source::Source;

    #[test]
    fn sums_are_equal_in_every_region() {
        let text = "
            form stiffness { field u: scalar; param a = 2; f1[u] = a * grad(u); f0[u] = u^3; }
            form inertia { field u: scalar; param a = 2; f0[u] = a * u; on boundary \"y1\" { f0[u] = 7 * u; } }";
        let (program, found) = compile(&Source::new("test", text));
        let program = program.unwrap_or_else(|| panic!("{found:?}"));
        let [stiffness, inertia] =
            ["stiffness", "inertia"].map(|name| program.point_form(name, 2).expect("a form"));
        let sum = shifted(&stiffness, &inertia, 0.25);
        assert_eq!(sum.integrals.len(), 2);
        let input = |input: Input| match input {
            Input::State(_) => 1.5,
            Input::Direction(_) => -0.5,
            Input::Param(0, 0) => 2.0,
            Input::Param(1, 0) => 0.25,
            _ => 0.75,
        };
        let rows = |form: &PointForm, region: &Region| {
            let found = form.integrals.iter().filter(|of| &of.region == region);
            let mut values = [[0.0; 3]; 3];
            for of in found {
                let numbers = eval(&of.graph, input);
                let at = |slot: &crate::point::Slot| match slot.part {
                    crate::point::Part::Value => 0,
                    crate::point::Part::Derivative(axis) => 1 + axis,
                    crate::point::Part::Second(..) | crate::point::Part::Exterior(_) => {
                        unreachable!("a form of gradients")
                    }
                };
                of.residual.iter().for_each(|(slot, node)| values[0][at(slot)] = numbers[*node]);
                of.action.iter().for_each(|(slot, node)| values[1][at(slot)] = numbers[*node]);
                for entry in &of.jacobian {
                    values[2][at(&entry.test)] += numbers[entry.value];
                }
            }
            values
        };
        for integral in &sum.integrals {
            let [sum, own, other] =
                [&sum, &stiffness, &inertia].map(|form| rows(form, &integral.region));
            for (sum, (own, other)) in
                sum.as_flattened().iter().zip(own.as_flattened().iter().zip(other.as_flattened()))
            {
                assert_eq!(*sum, own + 0.25 * other);
            }
        }
    }
}
