//! Pool of numbered items with reuse of released numbers.

/// No item.
pub(super) const NONE: u32 = u32::MAX;

/// Single items, and pairs with consecutive numbers.
#[derive(Clone, Debug)]
pub(super) struct Pool<T> {
    all: Vec<T>,
    single: Vec<u32>,
    pairs: Vec<u32>,
}

impl<T: Copy> Pool<T> {
    pub(super) fn new(all: Vec<T>) -> Self {
        Self { all, single: Vec::new(), pairs: Vec::new() }
    }

    /// Returns the number of numbers issued, including released ones.
    pub(super) fn numbers(&self) -> usize {
        self.all.len()
    }

    /// Returns the number of items in use.
    pub(super) fn len(&self) -> usize {
        self.all.len() - self.single.len() - 2 * self.pairs.len()
    }

    /// Returns whether the next pair would exceed the capacity.
    pub(super) fn is_full(&self) -> bool {
        self.pairs.is_empty() && self.all.len() + 2 > self.all.capacity()
    }

    pub(super) fn one(&mut self, item: T) -> u32 {
        let number = self.single.pop().unwrap_or(self.all.len() as u32);
        self.put(number, item);
        number
    }

    pub(super) fn two(&mut self, items: [T; 2]) -> u32 {
        let first = self.pairs.pop().unwrap_or(self.all.len() as u32);
        (first..).zip(items).for_each(|(number, item)| self.put(number, item));
        first
    }

    fn put(&mut self, number: u32, item: T) {
        match self.all.get_mut(number as usize) {
            Some(place) => *place = item,
            None => self.all.push(item),
        }
    }

    pub(super) fn free_one(&mut self, number: u32) {
        self.single.push(number);
    }

    pub(super) fn free_two(&mut self, first: u32) {
        self.pairs.push(first);
    }
}

impl<T> std::ops::Index<u32> for Pool<T> {
    type Output = T;

    fn index(&self, number: u32) -> &T {
        &self.all[number as usize]
    }
}

impl<T> std::ops::IndexMut<u32> for Pool<T> {
    fn index_mut(&mut self, number: u32) -> &mut T {
        &mut self.all[number as usize]
    }
}
