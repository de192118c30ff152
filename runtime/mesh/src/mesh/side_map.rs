//! Maps of a periodic side to its partner, found from the nodes of both ([`SideMap`]).
//!
//! ```text
//! translation   x ↦ x + t          t = centre of the bounding box of the second side − that of the first
//! rotation      x ↦ a + R (x − a)  R about the axis through a, by the angle between the means of the nodes
//! ```

use super::point_hash::PointHash;
use fem_dsl::problem::PeriodicMap;

/// Smallest distance of a mean from the axis, relative to the largest distance of a node.
const OFF_AXIS: f64 = 1e-6;
/// Entries of R that are as near to 0, 1 or −1 are these.
const ROUNDING: f64 = 1e-14;

const IDENTITY: [[f64; 3]; 3] = [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]];

/// Map x ↦ R x + t of a side to its partner.
#[derive(Clone, Debug, PartialEq)]
pub struct SideMap {
    rotation: [[f64; 3]; 3],
    shift: [f64; 3],
    /// Largest distance of a point from its image.
    within: f64,
}

impl SideMap {
    /// Finds the map of the nodes of one side to those of the other. The error is the index of a side whose mean lies
    /// on the axis.
    pub(super) fn between(
        map: PeriodicMap,
        sides: [&[[f64; 3]]; 2],
        within: f64,
    ) -> Result<Self, usize> {
        let PeriodicMap::Rotation { about, axis } = map else {
            let [from, to] = sides.map(middle);
            return Ok(Self { rotation: IDENTITY, shift: minus(&to, &from), within });
        };
        let mut arms = [[0.0; 3]; 2];
        for (side, points) in sides.into_iter().enumerate() {
            let across = |point: &[f64; 3]| {
                let arm = minus(point, &about);
                let along = dot(&arm, &axis);
                std::array::from_fn::<f64, 3, _>(|c| arm[c] - along * axis[c])
            };
            let count = points.len().max(1) as f64;
            let mut farthest = 0.0f64;
            for point in points {
                let arm = across(point);
                farthest = farthest.max(dot(&arm, &arm).sqrt());
                arms[side] = std::array::from_fn(|c| arms[side][c] + arm[c] / count);
            }
            if dot(&arms[side], &arms[side]).sqrt() <= OFF_AXIS * farthest {
                return Err(side);
            }
        }
        let [from, to] = arms;
        let (sine, cosine) = (dot(&axis, &cross(&from, &to)), dot(&from, &to));
        let length = sine.hypot(cosine);
        let rotation = turned(&axis, [sine / length, cosine / length]);
        let of_about: [f64; 3] = rotation.map(|row| dot(&row, &about));
        Ok(Self { rotation, shift: minus(&about, &of_about), within })
    }

    /// Returns for each point the index of its image among others, if there is one.
    pub fn images(&self, points: &[[f64; 3]], others: &[[f64; 3]]) -> Vec<Option<u32>> {
        let mut targets = PointHash::new(others, self.within);
        (0..others.len() as u32).for_each(|number| targets.insert(number));
        points.iter().map(|point| targets.find(self.image(point))).collect()
    }

    /// Returns R.
    pub fn rotation(&self) -> &[[f64; 3]; 3] {
        &self.rotation
    }

    /// Returns the image of a point.
    pub fn image(&self, x: &[f64; 3]) -> [f64; 3] {
        std::array::from_fn(|c| dot(&self.rotation[c], x) + self.shift[c])
    }

    /// Returns the point with this image.
    pub fn preimage(&self, y: &[f64; 3]) -> [f64; 3] {
        let arm = minus(y, &self.shift);
        std::array::from_fn(|c| (0..3).map(|row| self.rotation[row][c] * arm[row]).sum())
    }
}

/// Returns the matrix of a rotation about a direction, by an angle with this sine and cosine (Rodrigues).
fn turned(axis: &[f64; 3], [sine, cosine]: [f64; 2]) -> [[f64; 3]; 3] {
    let [x, y, z] = *axis;
    let crossed = [[0.0, -z, y], [z, 0.0, -x], [-y, x, 0.0]];
    std::array::from_fn(|i| {
        std::array::from_fn(|j| {
            let entry =
                cosine * IDENTITY[i][j] + sine * crossed[i][j] + (1.0 - cosine) * axis[i] * axis[j];
            let whole = entry.round();
            if (entry - whole).abs() <= ROUNDING { whole + 0.0 } else { entry }
        })
    })
}

/// Returns the centre of the bounding box.
fn middle(points: &[[f64; 3]]) -> [f64; 3] {
    let (mut lower, mut upper) = ([f64::INFINITY; 3], [f64::NEG_INFINITY; 3]);
    for at in points {
        for c in 0..3 {
            (lower[c], upper[c]) = (lower[c].min(at[c]), upper[c].max(at[c]));
        }
    }
    [0, 1, 2].map(|c| lower[c] / 2.0 + upper[c] / 2.0)
}

fn minus(a: &[f64; 3], b: &[f64; 3]) -> [f64; 3] {
    std::array::from_fn(|c| a[c] - b[c])
}

fn dot(a: &[f64; 3], b: &[f64; 3]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

fn cross(a: &[f64; 3], b: &[f64; 3]) -> [f64; 3] {
    [a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]]
}
