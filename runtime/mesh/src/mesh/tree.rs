//! Bounding-volume tree: items with boxes, halved along the longest side into equally large sets.

/// Number of items of a leaf.
const LEAF: usize = 8;

/// An axis-aligned box.
#[derive(Clone, Copy, Debug)]
pub(super) struct BoundingBox {
    pub(super) lower: [f64; 3],
    pub(super) upper: [f64; 3],
}

impl BoundingBox {
    pub(super) fn of(points: impl Iterator<Item = [f64; 3]>) -> Self {
        let none = Self { lower: [f64::INFINITY; 3], upper: [f64::NEG_INFINITY; 3] };
        points.fold(none, |bounds, point| Self {
            lower: [0, 1, 2].map(|c| bounds.lower[c].min(point[c])),
            upper: [0, 1, 2].map(|c| bounds.upper[c].max(point[c])),
        })
    }

    pub(super) fn grown(&self, margin: f64) -> Self {
        Self { lower: self.lower.map(|x| x - margin), upper: self.upper.map(|x| x + margin) }
    }

    pub(super) fn meets(&self, other: &Self) -> bool {
        (0..3).all(|c| self.lower[c] <= other.upper[c] && other.lower[c] <= self.upper[c])
    }
}

/// Items with their boxes.
pub(super) struct BoundingTree<T> {
    things: Vec<(BoundingBox, T)>,
    /// The bounding boxes of the nodes; node i has the children 2i + 1 and 2i + 2.
    boxes: Vec<BoundingBox>,
}

impl<T: Copy> BoundingTree<T> {
    pub(super) fn new(mut things: Vec<(BoundingBox, T)>) -> Self {
        let leaves = things.len().div_ceil(LEAF).next_power_of_two();
        let mut boxes = vec![BoundingBox::of(std::iter::empty()); 2 * leaves - 1];
        Self::halve(&mut things, &mut boxes, 0);
        Self { things, boxes }
    }

    fn halve(things: &mut [(BoundingBox, T)], boxes: &mut [BoundingBox], number: usize) {
        let corners = things.iter().flat_map(|(own, _)| [own.lower, own.upper]);
        let bounds = BoundingBox::of(corners);
        boxes[number] = bounds;
        if 2 * number + 1 >= boxes.len() {
            return;
        }
        let side = |c: usize| bounds.upper[c] - bounds.lower[c];
        let along = (0..3).max_by(|&a, &b| side(a).total_cmp(&side(b))).unwrap_or(0);
        let middle = things.len() / 2;
        if middle < things.len() {
            let twice_centre = |own: &BoundingBox| own.lower[along] + own.upper[along];
            things.select_nth_unstable_by(middle, |(a, _), (b, _)| {
                twice_centre(a).total_cmp(&twice_centre(b))
            });
        }
        let (first, second) = things.split_at_mut(middle);
        Self::halve(first, boxes, 2 * number + 1);
        Self::halve(second, boxes, 2 * number + 2);
    }

    /// Returns the first item whose box meets `bounds` and that satisfies `holds`.
    pub(super) fn find(
        &self,
        bounds: &BoundingBox,
        holds: &mut impl FnMut(&T) -> bool,
    ) -> Option<T> {
        self.find_within(&self.things, 0, bounds, holds)
    }

    fn find_within(
        &self,
        things: &[(BoundingBox, T)],
        number: usize,
        bounds: &BoundingBox,
        holds: &mut impl FnMut(&T) -> bool,
    ) -> Option<T> {
        if !self.boxes[number].meets(bounds) {
            return None;
        }
        if 2 * number + 1 >= self.boxes.len() {
            let mut within = things.iter().filter(|(own, _)| bounds.meets(own));
            return within.find(|(_, thing)| holds(thing)).map(|(_, thing)| *thing);
        }
        let (first, second) = things.split_at(things.len() / 2);
        let found = self.find_within(first, 2 * number + 1, bounds, holds);
        found.or_else(|| self.find_within(second, 2 * number + 2, bounds, holds))
    }
}
