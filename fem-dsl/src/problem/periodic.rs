//! Periodic sides of a problem: two parts of the boundary, and the map of one to the other.

/// Two parts of the boundary whose facets are identified. With the rotation R of the map the values on the second part
/// are `factor` · R times those on the first.
#[derive(Clone, Debug, PartialEq)]
pub struct PeriodicSides {
    /// The tags of both parts.
    pub tags: [String; 2],
    /// The map of the first part to the second.
    pub map: PeriodicMap,
    /// 1, or −1 for antiperiodic values.
    pub factor: f64,
}

/// Map of a part of the boundary to another. Its amount, a shift or an angle, follows from both parts.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum PeriodicMap {
    /// A translation.
    Translation,
    /// A rotation about an axis; in two dimensions about the third direction.
    Rotation {
        /// A point of the axis.
        about: [f64; 3],
        /// The direction of the axis, of length 1.
        axis: [f64; 3],
    },
}

impl PeriodicSides {
    /// Creates sides that are translations of each other.
    pub fn translated(first: impl Into<String>, second: impl Into<String>) -> Self {
        let (tags, map) = ([first.into(), second.into()], PeriodicMap::Translation);
        Self { tags, map, factor: 1.0 }
    }

    /// Returns whether values on both parts are equal, components included.
    pub fn has_equal_values(&self) -> bool {
        self.map == PeriodicMap::Translation && self.factor == 1.0
    }
}

impl<T: Into<String>> From<[T; 2]> for PeriodicSides {
    fn from([first, second]: [T; 2]) -> Self {
        Self::translated(first, second)
    }
}
