//! Geometry nodes of the leaves of a forest, for refinement by position.

use super::descent::Descent;
use super::nodes::geometry;
use super::uniform::RefineError;
use super::{ChildMaps, Forest};
use crate::mesh::Mesh;

impl Forest {
    /// Calls `see` with each leaf and its geometry nodes (without hanging), in leaf order, without building a mesh.
    /// `coarse` is the mesh of the trees.
    ///
    /// # Errors
    ///
    /// The geometry has no element.
    pub fn visit(
        &self,
        coarse: &Mesh,
        mut see: impl FnMut(usize, &[[f64; 3]]),
    ) -> Result<(), RefineError> {
        let mut descent = Descent::new(coarse, geometry(coarse)?, &ChildMaps::new(coarse.cell()));
        let (layout, mut path) = (self.coarse().layout, Vec::new());
        for (leaf, &key) in self.leaves().iter().enumerate() {
            path.clear();
            path.extend(layout.path(key));
            see(leaf, descent.nodes(key.tree(), &path));
        }
        Ok(())
    }
}
