//! Append-only storage with typed ids: the shape of every expression graph of the project.
//!
//! An id is a `u32` in a newtype. An item may refer only to items with smaller ids ("operands first"), so a pass is one
//! loop in index order and never recursive.

use std::fmt;
use std::marker::PhantomData;
use std::ops::{Index, IndexMut};

/// A typed index into an [`IndexVec`].
pub trait Id: Copy + Eq + Ord + fmt::Debug {
    /// Returns the id of the item at position `index`.
    fn from_index(index: usize) -> Self;
    /// Returns the position of the item.
    fn index(self) -> usize;
}

/// Declares an id type: `id_type!(/** docs */ NodeId, "%")` prints as `%7`.
#[macro_export]
macro_rules! id_type {
    ($(#[$meta:meta])* $name:ident, $prefix:literal) => {
        $(#[$meta])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(u32);

        impl $crate::arena::Id for $name {
            #[inline]
            fn from_index(index: usize) -> Self {
                Self(u32::try_from(index).expect("an arena should hold fewer than 2^32 items"))
            }
            #[inline]
            fn index(self) -> usize {
                self.0 as usize
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                write!(f, "{}{}", $prefix, self.0)
            }
        }

        impl std::fmt::Debug for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                write!(f, "{}{}", $prefix, self.0)
            }
        }
    };
}

/// A vector indexed by a typed id.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct IndexVec<I, T> {
    items: Vec<T>,
    id: PhantomData<fn(I) -> I>,
}

impl<I: Id, T> IndexVec<I, T> {
    /// Returns an empty vector.
    pub const fn new() -> Self {
        Self { items: Vec::new(), id: PhantomData }
    }

    /// Appends `item` and returns its id.
    pub fn push(&mut self, item: T) -> I {
        let id = I::from_index(self.items.len());
        self.items.push(item);
        id
    }

    /// Returns the number of items.
    pub fn len(&self) -> usize {
        self.items.len()
    }

    /// Returns whether there are no items.
    pub fn is_empty(&self) -> bool {
        self.items.is_empty()
    }

    /// Returns the item with this id, if it exists.
    pub fn get(&self, id: I) -> Option<&T> {
        self.items.get(id.index())
    }

    /// Returns the items in order.
    pub fn iter(&self) -> std::slice::Iter<'_, T> {
        self.items.iter()
    }

    /// Returns the items in order, mutably.
    pub fn iter_mut(&mut self) -> std::slice::IterMut<'_, T> {
        self.items.iter_mut()
    }

    /// Returns the ids in order.
    pub fn ids(&self) -> impl DoubleEndedIterator<Item = I> + use<I, T> {
        (0..self.items.len()).map(I::from_index)
    }

    /// Returns the items with their ids, in order.
    pub fn iter_enumerated(&self) -> impl DoubleEndedIterator<Item = (I, &T)> {
        self.items.iter().enumerate().map(|(i, item)| (I::from_index(i), item))
    }
}

impl<I: Id, T> Default for IndexVec<I, T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<I: Id, T> FromIterator<T> for IndexVec<I, T> {
    fn from_iter<It: IntoIterator<Item = T>>(iter: It) -> Self {
        Self { items: iter.into_iter().collect(), id: PhantomData }
    }
}

impl<I: Id, T> Index<I> for IndexVec<I, T> {
    type Output = T;
    #[inline]
    fn index(&self, id: I) -> &T {
        &self.items[id.index()]
    }
}

impl<I: Id, T> IndexMut<I> for IndexVec<I, T> {
    #[inline]
    fn index_mut(&mut self, id: I) -> &mut T {
        &mut self.items[id.index()]
    }
}

impl<'a, I: Id, T> IntoIterator for &'a IndexVec<I, T> {
    type Item = &'a T;
    type IntoIter = std::slice::Iter<'a, T>;
    fn into_iter(self) -> Self::IntoIter {
        self.items.iter()
    }
}

impl<I: Id, T: fmt::Debug> fmt::Debug for IndexVec<I, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(&self.items).finish()
    }
}

/// Returns the items on which `roots` depend, in order; `operands` visits those of an item.
///
/// Operands precede their users, so that one sweep from the last root down finds all of them.
pub(crate) fn reachable<I: Id>(roots: &[I], operands: impl Fn(I, &mut dyn FnMut(I))) -> Vec<I> {
    let Some(last) = roots.iter().map(|root| root.index()).max() else { return Vec::new() };
    // By the distance from the last root.
    let mut marked = vec![false; 1];
    let mut found = Vec::new();
    let mark = |marked: &mut Vec<bool>, id: I| {
        let distance = last - id.index();
        if marked.len() <= distance {
            marked.resize(distance + 1, false);
        }
        marked[distance] = true;
    };
    for &root in roots {
        mark(&mut marked, root);
    }
    let mut distance = 0;
    while distance < marked.len() {
        if marked[distance] {
            let id = I::from_index(last - distance);
            found.push(id);
            operands(id, &mut |operand| {
                debug_assert!(operand < id, "operands should precede {id:?}");
                mark(&mut marked, operand);
            });
        }
        distance += 1;
    }
    found.reverse();
    found
}

/// Values for some of an arena's items: a map ordered by id, as fast as a vector.
#[derive(Clone, PartialEq)]
pub struct IdMap<I, T> {
    items: Vec<Option<T>>,
    id: PhantomData<fn(I) -> I>,
}

impl<I: Id, T> IdMap<I, T> {
    /// Returns an empty map.
    pub const fn new() -> Self {
        Self { items: Vec::new(), id: PhantomData }
    }

    /// Returns the value of an item.
    pub fn get(&self, id: &I) -> Option<&T> {
        self.items.get(id.index())?.as_ref()
    }

    /// Returns whether an item has a value.
    pub fn contains_key(&self, id: &I) -> bool {
        self.get(id).is_some()
    }

    /// Returns the value of an item; inserts `value` if it has none.
    pub fn get_or_insert(&mut self, id: I, value: T) -> &mut T {
        if self.items.len() <= id.index() {
            self.items.resize_with(id.index() + 1, || None);
        }
        self.items[id.index()].get_or_insert(value)
    }

    /// Replaces the value of an item, and returns the old one.
    pub fn insert(&mut self, id: I, value: T) -> Option<T> {
        if self.items.len() <= id.index() {
            self.items.resize_with(id.index() + 1, || None);
        }
        self.items[id.index()].replace(value)
    }

    /// Returns all entries, in the order of the ids.
    pub fn iter(&self) -> impl Iterator<Item = (I, &T)> {
        let items = self.items.iter().enumerate();
        items.filter_map(|(at, item)| Some((I::from_index(at), item.as_ref()?)))
    }
}

impl<I: Id, T> Default for IdMap<I, T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<I: Id, T> FromIterator<(I, T)> for IdMap<I, T> {
    fn from_iter<It: IntoIterator<Item = (I, T)>>(iter: It) -> Self {
        let mut map = Self::new();
        for (id, value) in iter {
            map.insert(id, value);
        }
        map
    }
}

impl<I: Id, T> Index<&I> for IdMap<I, T> {
    type Output = T;
    #[inline]
    fn index(&self, id: &I) -> &T {
        self.get(id).expect("something should be known of this item")
    }
}

impl<I: Id, T: fmt::Debug> fmt::Debug for IdMap<I, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.iter()).finish()
    }
}
