//! Abaqus data model: parts with nodes, elements, sets and surfaces; an assembly.

use crate::mesh::read::contents::ElementKind;
use std::collections::{BTreeMap, BTreeSet};

/// The numbers first, first + step, … up to `last`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct NumberRange {
    pub(super) first: u64,
    pub(super) last: u64,
    pub(super) step: u64,
}

impl NumberRange {
    pub(super) fn one(number: u64) -> NumberRange {
        NumberRange { first: number, last: number, step: 1 }
    }
}

/// Returns those of the ascending numbers `existing` that lie in any range.
pub(super) fn among(ranges: &[NumberRange], existing: &[u64]) -> Vec<u64> {
    let mut found = Vec::new();
    for range in ranges {
        let start = existing.partition_point(|&number| number < range.first);
        let inside = existing[start..].iter().take_while(|&&number| number <= range.last);
        found.extend(inside.filter(|&number| (number - range.first).is_multiple_of(range.step)));
    }
    found.sort_unstable();
    found.dedup();
    found
}

/// A set of nodes or of elements.
#[derive(Clone, Debug, Default)]
pub(super) struct Set {
    /// The name as first written.
    pub(super) name: String,
    pub(super) members: Vec<NumberRange>,
    /// Elements whose nodes are members as well.
    pub(super) elements: Vec<NumberRange>,
    /// True if the set is internal to Abaqus.
    pub(super) internal: bool,
}

/// Sets by upper-case name.
#[derive(Debug, Default)]
pub(super) struct Sets(pub(super) BTreeMap<String, Set>);

impl Sets {
    pub(super) fn get(&self, name: &str) -> Option<&Set> {
        self.0.get(&name.to_ascii_uppercase())
    }

    /// Finds or creates a set.
    pub(super) fn entry(&mut self, name: &str) -> &mut Set {
        let new = || Set { name: name.to_owned(), ..Set::default() };
        self.0.entry(name.to_ascii_uppercase()).or_insert_with(new)
    }
}

/// Elements of one type.
#[derive(Debug)]
pub(super) struct Elements {
    pub(super) kind: ElementKind,
    pub(super) numbers: Vec<u64>,
    /// The nodes in Abaqus order.
    pub(super) nodes: Vec<u64>,
}

/// A surface: faces of elements.
#[derive(Debug)]
pub(super) struct Surface {
    pub(super) name: String,
    pub(super) faces: Vec<ElementFaces>,
}

/// The same face of several elements.
#[derive(Debug)]
pub(super) struct ElementFaces {
    pub(super) line: usize,
    pub(super) elements: Vec<NumberRange>,
    /// S1, SPOS and so on; empty for free faces.
    pub(super) label: String,
}

/// Sets and surfaces of a part or the assembly.
#[derive(Debug, Default)]
pub(super) struct NamedSets {
    pub(super) node_sets: Sets,
    pub(super) element_sets: Sets,
    pub(super) surfaces: Vec<Surface>,
}

/// Nodes and elements, with the sets and surfaces of the part.
#[derive(Debug, Default)]
pub(super) struct ModelPart {
    pub(super) name: String,
    pub(super) node_numbers: Vec<u64>,
    pub(super) points: Vec<[f64; 3]>,
    /// The line numbers of the nodes.
    pub(super) node_lines: Vec<usize>,
    pub(super) elements: Vec<Elements>,
    pub(super) names: NamedSets,
    /// Element types that are not part of a mesh.
    pub(super) skipped: BTreeSet<String>,
}

/// Instance of a part in the assembly.
#[derive(Debug)]
pub(super) struct Instance {
    pub(super) name: String,
    /// The index of the part.
    pub(super) part: usize,
    pub(super) translation: [f64; 3],
    /// Two points of the axis, and an angle in degrees.
    pub(super) rotation: Option<[f64; 7]>,
}

/// A parsed input file.
#[derive(Debug, Default)]
pub(super) struct Model {
    /// Nodes and elements outside of all parts.
    pub(super) flat: ModelPart,
    pub(super) parts: Vec<ModelPart>,
    pub(super) instance: Option<Instance>,
    /// Sets and surfaces of the assembly, on the instance.
    pub(super) assembly: NamedSets,
}

impl Instance {
    /// Maps a point: translation, then rotation by Rodrigues' formula, x ↦ x cos θ + (k × x) sin θ + k (k · x) (1 − cos
    /// θ).
    pub(super) fn place(&self, point: [f64; 3]) -> [f64; 3] {
        let x = [0, 1, 2].map(|c| point[c] + self.translation[c]);
        let Some([a, b, c, d, e, f, angle]) = self.rotation else { return x };
        let (origin, axis) = ([a, b, c], [d - a, e - b, f - c]);
        let length = axis.iter().map(|k| k * k).sum::<f64>().sqrt();
        if length == 0.0 {
            return x;
        }
        let k = axis.map(|k| k / length);
        let x = [0, 1, 2].map(|c| x[c] - origin[c]);
        let (sin, cos) = turn(angle);
        let dot: f64 = (0..3).map(|c| k[c] * x[c]).sum();
        let cross =
            [k[1] * x[2] - k[2] * x[1], k[2] * x[0] - k[0] * x[2], k[0] * x[1] - k[1] * x[0]];
        [0, 1, 2].map(|c| origin[c] + x[c] * cos + cross[c] * sin + k[c] * dot * (1.0 - cos))
    }
}

/// Returns the sine and cosine of an angle in degrees, exact for multiples of 90°, so that planes stay planes.
fn turn(degrees: f64) -> (f64, f64) {
    match degrees.rem_euclid(360.0) {
        0.0 => (0.0, 1.0),
        90.0 => (1.0, 0.0),
        180.0 => (0.0, -1.0),
        270.0 => (-1.0, 0.0),
        other => other.to_radians().sin_cos(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_hold_what_exists() {
        let existing = [1, 2, 3, 5, 8, 13, u64::MAX];
        let of = |first, last, step| among(&[NumberRange { first, last, step }], &existing);
        assert_eq!(of(1, 5, 1), [1, 2, 3, 5]);
        assert_eq!(of(2, 13, 3), [2, 5, 8]);
        assert_eq!(of(6, u64::MAX, 1), [8, 13, u64::MAX]);
        assert!(of(4, 4, 1).is_empty() && of(9, 2, 1).is_empty());
    }

    #[test]
    fn instances_are_moved_and_then_turned() {
        let rotation = Some([1.0, 0.0, 0.0, 1.0, 0.0, 2.0, 90.0]);
        let name = "one".to_owned();
        let instance = Instance { name, part: 0, translation: [1.0, 0.0, 3.0], rotation };
        assert_eq!(instance.place([1.0, 0.0, 0.0]), [1.0, 1.0, 3.0]);
    }
}
