//! Conditions on combinations of a vector's components at a node, u·n = g: split into constrained components and a
//! projection.
//!
//! ```text
//! N = Σ q qᵀ over an orthonormal basis q of the span of the rows,    N u = value
//! ```
//!
//! Components in the span are ordinary conditions, so that walls along an axis cost nothing. The rest is orthogonal to
//! them. There the operator is P A P + N D with P = I − N, which is symmetric if A is. In a frame with the q among its
//! axes, P drops their rows and columns. Nothing is stored in that frame, and all vectors keep the components of the
//! user.

/// Conditions of a node that do not constrain single components.
#[derive(Clone, Debug, PartialEq)]
pub struct ObliqueCondition {
    /// The node.
    pub node: u32,
    /// N.
    pub normals: [[f64; 3]; 3],
    /// N u.
    pub value: [f64; 3],
}

/// The conditions at a node, in order.
#[derive(Clone, Debug, Default)]
pub struct NodeConditions {
    /// An orthonormal basis of the span of the rows.
    basis: Vec<[f64; 3]>,
    /// The shortest vector that satisfies them.
    value: [f64; 3],
}

pub(crate) fn dot(a: &[f64; 3], b: &[f64; 3]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

/// A component lies in the span if the square of its part outside is below this.
const INSIDE: f64 = 1e-20;

impl NodeConditions {
    /// Adds u·`row` = `value` with a row of length 1. If its part outside the span is smaller than `new` (the sine of
    /// an angle), it is not independent: the earlier values are changed to satisfy it.
    pub fn add(&mut self, row: [f64; 3], value: f64, new: f64) {
        let mut rest = row;
        for _ in 0..2 {
            for own in &self.basis {
                let share = dot(own, &rest);
                rest = std::array::from_fn(|c| rest[c] - share * own[c]);
            }
        }
        let length = dot(&rest, &rest).sqrt();
        let missing = value - dot(&row, &self.value);
        let (along, by) = if length > new {
            let along = rest.map(|entry| entry / length);
            self.basis.push(along);
            (along, missing / length)
        } else {
            // Inside the span.
            let within: [f64; 3] = std::array::from_fn(|c| row[c] - rest[c]);
            (within, missing / dot(&within, &within).max(f64::MIN_POSITIVE))
        };
        self.value = std::array::from_fn(|c| self.value[c] + by * along[c]);
    }

    /// Returns the value of a component, if it is constrained.
    pub fn component(&self, component: usize) -> Option<f64> {
        let unit: [f64; 3] = std::array::from_fn(|c| f64::from(u8::from(c == component)));
        let rest = self
            .basis
            .iter()
            .fold(unit, |rest, own| std::array::from_fn(|c| rest[c] - own[component] * own[c]));
        (dot(&rest, &rest) <= INSIDE).then_some(self.value[component])
    }

    /// Returns the conditions that do not constrain single components.
    pub fn oblique(&self, node: u32) -> Option<ObliqueCondition> {
        let fixed: [bool; 3] = std::array::from_fn(|c| self.component(c).is_some());
        if self.basis.len() <= fixed.iter().filter(|fixed| **fixed).count() {
            return None;
        }
        let entry = |i: usize, j: usize| match fixed[i] || fixed[j] {
            true => 0.0,
            false => self.basis.iter().map(|own| own[i] * own[j]).sum(),
        };
        let normals = std::array::from_fn(|i| std::array::from_fn(|j| entry(i, j)));
        let value = std::array::from_fn(|c| if fixed[c] { 0.0 } else { self.value[c] });
        Some(ObliqueCondition { node, normals, value })
    }
}

impl ObliqueCondition {
    /// Returns N u.
    pub fn part(&self, u: &[f64; 3]) -> [f64; 3] {
        self.normals.map(|row| dot(&row, u))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NEW: f64 = 0.5;

    fn close(a: f64, b: f64) {
        assert!((a - b).abs() < 1e-14, "{a} {b}");
    }

    #[test]
    fn a_wall_along_an_axis_fixes_a_component() {
        let mut rows = NodeConditions::default();
        rows.add([0.0, -1.0, 0.0], 3.0, NEW);
        assert_eq!(rows.component(1), Some(-3.0));
        assert_eq!((rows.component(0), rows.component(2), rows.oblique(0)), (None, None, None));
    }

    #[test]
    fn two_walls_hold_both() {
        // A wedge of 60° along the third axis.
        let [a, b] = [[1.0, 0.0, 0.0], [0.5, 0.75f64.sqrt(), 0.0]];
        let mut rows = NodeConditions::default();
        rows.add(a, 2.0, NEW);
        rows.add(b, -1.0, NEW);
        let u: Vec<f64> = (0..2).map(|c| rows.component(c).expect("both")).collect();
        close(u[0], 2.0);
        close(0.5 * u[0] + 0.75f64.sqrt() * u[1], -1.0);
        assert!(rows.component(2).is_none() && rows.oblique(0).is_none());
    }

    #[test]
    fn oblique_walls_leave_what_lies_in_them() {
        let n = [0.6, 0.0, 0.8];
        let mut rows = NodeConditions::default();
        rows.add([0.0, 1.0, 0.0], 5.0, NEW);
        rows.add(n, 2.0, NEW);
        assert_eq!(rows.component(1), Some(5.0));
        let oblique = rows.oblique(7).expect("one");
        close(dot(&oblique.value, &n), 2.0);
        let part = oblique.part(&[1.0, 4.0, -2.0]);
        let share = 0.6 - 1.6;
        (0..3).for_each(|c| close(part[c], share * n[c]));
        let again = oblique.part(&part);
        (0..3).for_each(|c| close(part[c], again[c]));
    }

    #[test]
    fn the_later_of_two_that_are_nearly_one_holds() {
        let mut rows = NodeConditions::default();
        rows.add([1.0, 0.0, 0.0], 2.0, NEW);
        let near = [0.98, 0.0396f64.sqrt(), 0.0];
        rows.add(near, 1.0, NEW);
        assert!(rows.component(1).is_none());
        close(0.98 * rows.component(0).expect("given"), 1.0);
        // If all is constrained, the later condition takes precedence.
        rows.add([0.0, 1.0, 0.0], 0.0, NEW);
        rows.add(near, 3.0, NEW);
        let u = [0, 1].map(|c| rows.component(c).expect("given"));
        close(0.98 * u[0] + near[1] * u[1], 3.0);
    }
}
