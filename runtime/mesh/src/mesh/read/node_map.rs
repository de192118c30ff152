//! Lookup of nodes by their numbers in a file, and detection of repeated cells.

use super::ReadError;
use std::collections::HashMap;
use std::collections::hash_map::Entry;

/// Map from node numbers to indices of points.
pub(super) enum NodeMap {
    /// Numbers without large gaps.
    Dense(Vec<u32>),
    Sparse(HashMap<u64, u32>),
}

impl NodeMap {
    pub(super) fn new(numbers: &[u64]) -> NodeMap {
        let largest = numbers.iter().copied().max().unwrap_or(0);
        if largest <= 4 * numbers.len() as u64 + 1024 {
            let mut places = vec![u32::MAX; largest as usize + 1];
            for (place, &number) in numbers.iter().enumerate() {
                places[number as usize] = place as u32;
            }
            NodeMap::Dense(places)
        } else {
            NodeMap::Sparse(numbers.iter().enumerate().map(|(p, &n)| (n, p as u32)).collect())
        }
    }

    pub(super) fn index(&self, element: u64, node: u64) -> Result<u32, ReadError> {
        let place = match self {
            NodeMap::Dense(places) => {
                usize::try_from(node).ok().and_then(|n| places.get(n).copied())
            }
            NodeMap::Sparse(places) => places.get(&node).copied(),
        };
        place.filter(|&p| p != u32::MAX).ok_or(ReadError::UnknownNode { element, node })
    }
}

/// Detection of cells that format 2 repeats for each of their groups.
pub(super) struct DuplicateCells(Option<HashMap<Vec<u32>, u32>>);

impl DuplicateCells {
    pub(super) fn new(possible: bool) -> DuplicateCells {
        DuplicateCells(possible.then(HashMap::new))
    }

    /// Returns the number of an earlier cell with the same nodes; otherwise records the cell.
    pub(super) fn before(&mut self, nodes: &[u32], number: u32) -> Option<u32> {
        let known = self.0.as_mut()?;
        let mut key = nodes.to_vec();
        key.sort_unstable();
        match known.entry(key) {
            Entry::Occupied(entry) => Some(*entry.get()),
            Entry::Vacant(entry) => {
                entry.insert(number);
                None
            }
        }
    }
}
