//! Where the leaves of a forest are: leaves → the geometry nodes of each, for rules that divide by place.

use super::descent::Descent;
use super::nodes::geometry;
use super::refined::RefineError;
use super::{Children, Forest};
use crate::mesh::Mesh;

impl Forest {
    /// Shows the geometry nodes of each leaf, in the order of the leaves: those that it has where nothing hangs. `coarse` is
    /// the mesh whose cells are the trees; no mesh is made of the leaves.
    ///
    /// # Errors
    ///
    /// A geometry that has no element.
    pub fn visit(
        &self,
        coarse: &Mesh,
        mut see: impl FnMut(usize, &[[f64; 3]]),
    ) -> Result<(), RefineError> {
        let mut descent = Descent::new(coarse, geometry(coarse)?, &Children::new(coarse.cell()));
        let (layout, mut path) = (self.coarse().layout, Vec::new());
        for (leaf, &key) in self.leaves().iter().enumerate() {
            path.clear();
            path.extend(layout.path(key));
            see(leaf, descent.nodes(key.tree(), &path));
        }
        Ok(())
    }
}
