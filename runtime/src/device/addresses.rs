//! [`AddressMessages`]: messages between addresses, such as those of devices, offered by the library that connects the
//! processes.

use super::ElementKind;
use crate::processes::ProcessGroup;
use std::ffi::c_void;
use std::ops::Range;
use std::sync::Arc;

/// Messages of a process group between addresses.
pub trait AddressMessages: Send + Sync {
    /// Returns the name and version of the library.
    fn name(&self) -> String;

    /// Returns whether addresses may be those of device memory.
    fn take_device_pointers(&self) -> bool;

    /// Sums n entries over all processes; the result has the same bits on all, as far as the library guarantees it.
    ///
    /// # Errors
    ///
    /// The library's error, for this and the next function.
    ///
    /// # Safety
    ///
    /// Both addresses have n numbers of this kind, do not overlap, and suit the library. Before this returns, nobody
    /// writes either of them or reads the second. All processes call this with the same n and kind.
    unsafe fn sum(
        &self,
        from: *const c_void,
        to: *mut c_void,
        n: usize,
        kind: ElementKind,
    ) -> Result<(), String>;

    /// Sends each neighbour a range of entries at one address, and receives the same range at another.
    ///
    /// # Safety
    ///
    /// As for [`AddressMessages::sum`], for entries up to the ends of the ranges, which do not overlap. Each neighbour
    /// passes a range of the same length for this process.
    unsafe fn exchange(
        &self,
        neighbours: &[(usize, Range<usize>)],
        addresses: [*mut c_void; 2],
        kind: ElementKind,
    ) -> Result<(), String>;
}

/// The messages between addresses that a group offers ([`ProcessGroup::address_messages`]).
#[derive(Clone)]
pub struct AddressChannel(pub Arc<dyn AddressMessages>);

impl AddressChannel {
    /// Returns those of a group, if it offers any.
    pub fn of(group: &dyn ProcessGroup) -> Option<Self> {
        group.address_messages()?.downcast_ref::<Self>().cloned()
    }
}
