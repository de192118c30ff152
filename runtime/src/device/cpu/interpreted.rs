//! Conversion of borrowed data for interpreted kernels: [`Argument`] → [`Array`].

use super::{Argument, PlainNumber};
use kernels_gen::interpreted::Array;
use std::cell::Cell;

/// Returns the arrays of `arguments`, for the calling thread.
pub(super) fn arrays<'a>(arguments: &[Argument<'a>]) -> Vec<Array<'a>> {
    arguments.iter().map(array).collect()
}

fn array<'a>(argument: &Argument<'a>) -> Array<'a> {
    let (kind, writable) = (argument.kind(), argument.is_writable());
    if kind == f64::NAME && writable {
        Array::F64Mut(cells(argument))
    } else if kind == f64::NAME {
        Array::F64(argument.slice())
    } else if kind == f32::NAME && writable {
        Array::F32Mut(cells(argument))
    } else if kind == f32::NAME {
        Array::F32(argument.slice())
    } else {
        assert_eq!(kind, u32::NAME, "`bind` should let no other type pass");
        Array::U32(argument.slice())
    }
}

/// Returns the elements of a writable argument of type `T`.
fn cells<'a, T: PlainNumber>(argument: &Argument<'a>) -> &'a [Cell<T>] {
    assert!(argument.kind() == T::NAME && argument.is_writable(), "lent otherwise");
    // SAFETY: the argument was created from a slice of this type and length, borrowed for writing for 'a. `Cell<T>` has
    // the layout of `T`, and several cells of one place may exist. The caller of `Launch::run_beside_others`, the only
    // user, guarantees that no two threads access one element, as for compiled kernels.
    unsafe { std::slice::from_raw_parts(argument.pointer().cast(), argument.elements()) }
}
