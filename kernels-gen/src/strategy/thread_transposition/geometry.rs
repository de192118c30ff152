//! The geometry of a cell and of a point.

use super::layout::Digits;
use super::phases::Transposition;
use crate::kir::{Index, SharedId};
use crate::lower::geometry::{Affine, affine_map, gather_corners, geometry_at, position};
use crate::lower::jacobian::PointGeometry;
use crate::lower::lowering::Lowering;
use crate::lower::point::PointValues;
use crate::lower::slots;

impl Transposition {
    /// Stores the maps of affine cells in shared memory, one thread per cell.
    pub(super) fn maps(&self, s: &mut Lowering<'_>) {
        let Some(shared) = self.map else { return };
        s.b.comment("the map of each cell");
        let digits = Digits::new(&mut s.b, "of", &self.layout, 1);
        digits.each_cell(s, &mut |s, cell| {
            slots::load_terms(s);
            gather_corners(s);
            let map = affine_map(s);
            let mut numbers = vec![map.det];
            numbers.extend(map.k.iter().flatten());
            if s.facts.needs_x {
                numbers.extend(&map.origin);
                numbers.extend(map.jacobian.iter().flatten());
            }
            for (i, number) in numbers.into_iter().enumerate() {
                let at = self.place(&Index::from(i), cell);
                s.b.store_shared(shared, at, number);
            }
        });
    }

    /// Reverses [`Transposition::maps`].
    fn load_map(&self, s: &mut Lowering<'_>, shared: SharedId, cell: &Index) -> Affine {
        let (dim, needs_x, mut next) = (s.facts.form.dim, s.facts.needs_x, 0);
        let mut load = || {
            next += 1;
            s.b.load_shared(shared, self.place(&Index::from(next - 1), cell))
        };
        let det = load();
        let k = (0..dim).map(|_| (0..dim).map(|_| load()).collect()).collect();
        let mut map = Affine::of_inverse(k, det);
        if needs_x {
            map.origin = (0..dim).map(|_| load()).collect();
            map.jacobian = (0..dim).map(|_| (0..dim).map(|_| load()).collect()).collect();
        }
        map
    }

    /// Computes the geometry at a point.
    pub(super) fn geometry(
        &self,
        s: &mut Lowering<'_>,
        values: &[PointValues],
        point: &Index,
        cell: &Index,
    ) -> PointGeometry {
        let map = |s: &mut Lowering<'_>| match self.map {
            Some(shared) => self.load_map(s, shared, cell),
            None => {
                gather_corners(s);
                affine_map(s)
            }
        };
        geometry_at(s, point, map, |s, i, part| {
            let x = position(s);
            values[x].get(i, part)
        })
    }
}
