//! Nodal points and nodal interpolation. Points follow from the isoparametric map of the mesh, x(ξ) = Σ_i φ_i(ξ) x_i. The
//! point of a degree of freedom of H(curl) or H(div) is in the middle of what it measures; it serves messages and
//! partitions, no interpolation.

use super::Space;
use crate::mesh::Mesh;
use crate::mesh::partition::Partition;
use crate::support::parallel::*;
use kernels_gen::element::{Element, ElementError, Lagrange, tabulate};

impl Space {
    /// Returns the physical coordinates of every node. Collective if nodes hang on a distributed mesh.
    pub fn points(
        &self,
        mesh: &Mesh,
        partition: &Partition,
    ) -> Result<Vec<[f64; 3]>, ElementError> {
        let mut points = self.points_here(mesh, partition)?;
        if let Some(cut) = mesh.cut().filter(|_| self.hanging.is_some()) {
            // In all local cells of a node, it may replace a hanging node and so lie elsewhere.
            let sharing = self.sharing(cut.group());
            for axis in 0..3 {
                let own: Vec<f64> = points.iter().map(|point| point[axis]).collect();
                for (node, all) in sharing.all(&own) {
                    let known = all.into_iter().find(|x| !x.is_nan());
                    points[node][axis] = known.unwrap_or(f64::NAN);
                }
            }
        }
        Ok(points)
    }

    /// Returns the coordinates that are known from the cells of this process; NaN for the others.
    pub(crate) fn points_here(
        &self,
        mesh: &Mesh,
        partition: &Partition,
    ) -> Result<Vec<[f64; 3]>, ElementError> {
        let geometry = Lagrange::continuous(mesh.cell(), mesh.order())?;
        let table = tabulate(geometry, &reference_points(self.element));
        let mut points = vec![[f64::NAN; 3]; self.n_nodes()];
        let hangs = self.hanging_nodes();
        // A cell with hanging nodes references other nodes instead.
        let is_own =
            |cell: usize, node: usize| hangs.as_ref().is_none_or(|hangs| !hangs(cell, node));
        // Each chunk writes the nodes that it is the first to touch.
        let mut rest = points.as_mut_slice();
        let mut own = Vec::with_capacity(partition.chunks().len());
        for (chunk, cells) in partition.chunks().iter().enumerate() {
            let nodes = self.new_nodes(chunk);
            let (head, tail) = rest.split_at_mut(nodes.len());
            own.push((nodes.start, head, cells.cells.clone()));
            rest = tail;
        }
        own.into_par_iter().each(|(start, points, cells)| {
            for cell in cells.rev() {
                for (local, &node) in self.cell_nodes(cell).iter().enumerate() {
                    let place = (node as usize).wrapping_sub(start);
                    if place < points.len() && is_own(cell, local) {
                        let values = &table.values[local * geometry.count()..][..geometry.count()];
                        points[place] = mesh.place_of(cell, values);
                    }
                }
            }
        });
        for (cell, nodes) in self.cells_beyond() {
            let values = table.values.chunks(geometry.count());
            for (local, (&node, values)) in nodes.iter().zip(values).enumerate() {
                if self.new_beyond().contains(&(node as usize)) && is_own(cell, local) {
                    points[node as usize] = place_beyond(mesh, cell, values);
                }
            }
        }
        if hangs.is_some() {
            // Nodes that the first chunk references only in place of hanging nodes.
            for cell in 0..mesh.n_cells() {
                for (local, &node) in self.cell_nodes(cell).iter().enumerate() {
                    if points[node as usize][0].is_nan() && is_own(cell, local) {
                        let values = &table.values[local * geometry.count()..][..geometry.count()];
                        points[node as usize] = mesh.place_of(cell, values);
                    }
                }
            }
        }
        Ok(points)
    }

    /// Returns the physical coordinates of some nodes, in ascending order; the same as in [`Space::points`] to the bit.
    /// Collective if nodes hang on a distributed mesh.
    pub(crate) fn points_at(
        &self,
        mesh: &Mesh,
        partition: &Partition,
        nodes: &[u32],
    ) -> Result<Vec<[f64; 3]>, ElementError> {
        if self.hanging.is_some() {
            let all = self.points(mesh, partition)?;
            return Ok(nodes.iter().map(|&node| all[node as usize]).collect());
        }
        let geometry = Lagrange::continuous(mesh.cell(), mesh.order())?;
        let table = tabulate(geometry, &reference_points(self.element));
        let mut all = vec![[f64::NAN; 3]; nodes.len()];
        // A chunk writes the nodes that it is the first to touch, which are consecutive in both lists.
        let (mut rest, mut from) = (all.as_mut_slice(), 0);
        let mut own = Vec::new();
        for (chunk, cells) in partition.chunks().iter().enumerate() {
            let new = self.new_nodes(chunk);
            let to = from + nodes[from..].partition_point(|&node| (node as usize) < new.end);
            let (head, tail) = rest.split_at_mut(to - from);
            if !head.is_empty() {
                own.push((new, &nodes[from..to], head, cells.cells.clone()));
            }
            (rest, from) = (tail, to);
        }
        own.into_par_iter().each(|(new, nodes, points, cells)| {
            let mut places = vec![u32::MAX; new.len()];
            nodes.iter().zip(0..).for_each(|(&node, at)| places[node as usize - new.start] = at);
            for cell in cells.rev() {
                for (local, &node) in self.cell_nodes(cell).iter().enumerate() {
                    let place = places.get((node as usize).wrapping_sub(new.start));
                    if let Some(&place) = place.filter(|place| **place != u32::MAX) {
                        let values = &table.values[local * geometry.count()..][..geometry.count()];
                        points[place as usize] = mesh.place_of(cell, values);
                    }
                }
            }
        });
        let (nodes, points) = (&nodes[from..], &mut all[from..]);
        for (cell, own) in self.cells_beyond().filter(|_| !nodes.is_empty()) {
            for (node, values) in own.iter().zip(table.values.chunks(geometry.count())) {
                if let Ok(place) = nodes.binary_search(node) {
                    points[place] = place_beyond(mesh, cell, values);
                }
            }
        }
        Ok(all)
    }

    /// Returns the nodal values of a function, node-major with interleaved components: `f` writes its components at a
    /// point.
    pub fn interpolate(
        &self,
        points: &[[f64; 3]],
        f: impl Fn(&[f64; 3], &mut [f64]) + Sync,
    ) -> Vec<f64> {
        assert_eq!(points.len(), self.n_nodes(), "one point for each node of the space");
        let mut values = vec![0.0; self.n_dofs()];
        values
            .par_chunks_mut(self.components())
            .zip(points)
            .with_min_len(1024)
            .each(|(values, point)| f(point, values));
        values
    }
}

/// Returns the point of each degree of freedom in the reference cell.
fn reference_points(element: Element) -> Vec<[f64; 3]> {
    match element {
        Element::Lagrange(element) => element.points(),
        Element::Whitney(element) | Element::Component(element, _) => {
            let middle = |dof| element.functional(&dof, 1).first().map_or([0.0; 3], |term| term.0);
            element.dofs().into_iter().map(middle).collect()
        }
    }
}

/// Returns the place in a cell beyond a part at which the functions of the map have some values.
fn place_beyond(mesh: &Mesh, cell: usize, values: &[f64]) -> [f64; 3] {
    mesh.map_points(cell)
        .zip(values)
        .fold([0.0; 3], |x, (point, &value)| [0, 1, 2].map(|axis| x[axis] + value * point[axis]))
}
