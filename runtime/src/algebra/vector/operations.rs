//! Methods of vectors for the operations of the table [`vector_operations`]: loops of the host, or kernels of a device.

use super::blas::{lane_sum, run_chunks, within, without_others};
use super::device_entries::DeviceEntries;
use super::{Precision, ProductValue, Real, ScalarProduct, Vector, VectorData};
use crate::device::vector_operations;
use std::ops::Range;

/// Rounds to the precision of the operands.
fn number<T: Real>(value: f64) -> T {
    T::from_f64(value)
}

/// Returns `a` if the condition holds, otherwise `b`.
fn choose<T>(condition: bool, a: T, b: T) -> T {
    if condition { a } else { b }
}

/// Returns 0 − a.
fn negative<T: Real>(a: T) -> T {
    T::from_f64(0.0) - a
}

/// Returns |a|.
fn absolute<T: Real>(a: T) -> T {
    T::from_f64(a.into().abs())
}

/// Returns 1/a.
fn reciprocal<T: Real>(a: T) -> T {
    T::from_f64(1.0 / a.into())
}

/// Returns the entries of an operand.
fn read<T: Real>(vector: &Vector) -> &[T] {
    vector.entries().expect("vectors should have one precision and place")
}

/// Returns the entries of an operand mutably.
fn write<T: Real>(vector: &mut Vector) -> &mut [T] {
    vector.entries_mut().expect("vectors should have one precision and place")
}

/// Counts identifiers.
macro_rules! count {
    ($($name:ident)*) => { <[&str]>::len(&[$(stringify!($name)),*]) };
}

macro_rules! double {
    ($name:ident) => {
        f64
    };
}

macro_rules! methods {
    (operations [$($operation:tt)*] reductions [$($reduction:tt)*]) => {
        $(methods!(@access operation $operation);)*
        $(methods!(@access reduction $reduction);)*
    };
    // Adds the first operand to those of its access.
    (@access $kind:ident {
        $(#[$doc:meta])*
        $name:ident: [write $me:ident $first:ident] by $($one:ident)? $(($($many:ident),+))?;
        write [$($w:ident),*] update [$($u:ident),*] read [$($r:ident),*] $($rest:tt)*
    }) => {
        methods!(@$kind [$(#[$doc])*] $name [&mut $me] $me $first
            [$($one: f64,)? $(($($many),+): ($(double!($many)),+),)?] [$($one)? $($($many)+)?]
            [$($w: &mut Self,)* $($u: &mut Self,)* $($r: &Self,)*]
            [$first $($w)*] [$($u)*] [$($r)*] $($rest)*);
    };
    (@access $kind:ident {
        $(#[$doc:meta])*
        $name:ident: [update $me:ident $first:ident] by $($one:ident)? $(($($many:ident),+))?;
        write [$($w:ident),*] update [$($u:ident),*] read [$($r:ident),*] $($rest:tt)*
    }) => {
        methods!(@$kind [$(#[$doc])*] $name [&mut $me] $me $first
            [$($one: f64,)? $(($($many),+): ($(double!($many)),+),)?] [$($one)? $($($many)+)?]
            [$($w: &mut Self,)* $($u: &mut Self,)* $($r: &Self,)*]
            [$($w)*] [$first $($u)*] [$($r)*] $($rest)*);
    };
    (@access $kind:ident {
        $(#[$doc:meta])*
        $name:ident: [read $me:ident $first:ident] by $($one:ident)? $(($($many:ident),+))?;
        write [$($w:ident),*] update [$($u:ident),*] read [$($r:ident),*] $($rest:tt)*
    }) => {
        methods!(@$kind [$(#[$doc])*] $name [&$me] $me $first
            [$($one: f64,)? $(($($many),+): ($(double!($many)),+),)?] [$($one)? $($($many)+)?]
            [$($w: &mut Self,)* $($u: &mut Self,)* $($r: &Self,)*]
            [$($w)*] [$($u)*] [$first $($r)*] $($rest)*);
    };
    (@operation [$($doc:tt)*] $name:ident [$($receiver:tt)*] $me:ident $first:ident
        [$($scalar:tt)*] [$($s:ident)*] [$($operand:tt)*]
        [$($w:ident)*] [$($u:ident)*] [$($r:ident)*] { $($statement:tt)* }) => {
        impl Vector {
            $($doc)*
            pub fn $name($($receiver)*, $($scalar)* $($operand)*) {
                methods!(@entries [$($s)*] [$($w)*] [$($u)*] [$($r)*] { $($statement)* });
                fn on_host<T: Real>($($w: &mut Vector,)* $($u: &mut Vector,)* $($r: &Vector,)*
                    scalars: [f64; count!($($s)*)]) {
                    $(let $w = write::<T>($w);)*
                    $(let $u = write::<T>($u);)*
                    $(let $r = read::<T>($r);)*
                    let (n, scalars) = ($first.len(), scalars.map(T::from_f64));
                    run_chunks::<T, _, _>(n, [$($w,)* $($u,)*], |range, [$($w,)* $($u,)*]| {
                        let _ = &range;
                        entries($($w,)* $($u,)* $(&$r[range.clone()],)* scalars);
                        []
                    });
                }
                let ($first, scalars) = ($me, [$($s),*]);
                methods!(@device [$($w)*] [$($u)*] [$($r)*] {
                    return DeviceEntries::compute(
                        stringify!($name), [$($w,)* $($u,)*], [$($r,)*], &scalars,
                    );
                });
                match $first.precision() {
                    Precision::F64 => on_host::<f64>($($w,)* $($u,)* $($r,)* scalars),
                    Precision::F32 => on_host::<f32>($($w,)* $($u,)* $($r,)* scalars),
                }
            }
        }
    };
    (@reduction [$($doc:tt)*] $name:ident [$($receiver:tt)*] $me:ident $first:ident
        [$($scalar:tt)*] [$($s:ident)*] [$($operand:tt)*]
        [$($w:ident)*] [$($u:ident)*] [$($r:ident)*] { $($statement:tt)* }
        $(sum ($($factor:ident),+: $($product:tt)+))+) => {
        impl Vector {
            $($doc)*
            pub fn $name($($receiver)*, $($scalar)* $($operand)*) -> ScalarProduct {
                methods!(@entries [$($s)*] [$($w)*] [$($u)*] [$($r)*] { $($statement)* });
                fn on_host<T: Real>($($w: &mut Vector,)* $($u: &mut Vector,)* $($r: &Vector,)*
                    scalars: [f64; count!($($s)*)], others: &[Range<usize>])
                    -> [f64; [$(stringify!($($factor)+)),+].len()] {
                    $(let $w = write::<T>($w);)*
                    $(let $u = write::<T>($u);)*
                    $(let $r = read::<T>($r);)*
                    let (n, scalars) = ($first.len(), scalars.map(T::from_f64));
                    run_chunks::<T, _, _>(n, [$($w,)* $($u,)*], |range, [$($w,)* $($u,)*]| {
                        $(let $r = &$r[range.clone()];)*
                        entries($(&mut *$w,)* $(&mut *$u,)* $($r,)* scalars);
                        [$(without_others(others, range.clone(), |own| {
                            let own = within(own, range.start);
                            lane_sum(own, |start, sums| {
                                $(let $factor = &$factor[start..start + sums.len()];)+
                                for (i, sum) in sums.iter_mut().enumerate() {
                                    $(let $factor: f64 = $factor[i].into();)+
                                    *sum += $($product)+;
                                }
                            })
                        }),)+]
                    })
                }
                let ($first, scalars) = ($me, [$($s),*]);
                methods!(@device [$($w)*] [$($u)*] [$($r)*] {
                    return ScalarProduct(ProductValue::Pending(DeviceEntries::reduce(
                        stringify!($name), [$($w,)* $($u,)*], [$($r,)*], &scalars,
                    )));
                });
                let sharing = $first.sharing.clone();
                let others = sharing.as_ref().map_or(&[][..], |sharing| sharing.others());
                let sums = match $first.precision() {
                    Precision::F64 => on_host::<f64>($($w,)* $($u,)* $($r,)* scalars, others),
                    Precision::F32 => on_host::<f32>($($w,)* $($u,)* $($r,)* scalars, others),
                };
                let sums = $first.totals(sums);
                ScalarProduct(ProductValue::Known([sums[0], sums[sums.len() - 1]]))
            }
        }
    };
    // Computes the entries of a chunk.
    (@entries [$($s:ident)*] [$($w:ident)*] [$($u:ident)*] [$($r:ident)*] {}) => {
        fn entries<T: Real>($($r: &[T],)* _: [T; count!($($s)*)]) {
            $(let _ = $r;)*
        }
    };
    (@entries [$($s:ident)*] [$($w:ident)*] [$($u:ident)*] [$($r:ident)*]
        { $($statement:tt)* }) => {
        fn entries<T: Real>($($w: &mut [T],)* $($u: &mut [T],)* $($r: &[T],)*
            [$($s),*]: [T; count!($($s)*)]) {
            let n = [$($w.len(),)* $($u.len(),)*][0];
            $(let $w = &mut $w[..n];)*
            $(let $u = &mut $u[..n];)*
            $(let $r = &$r[..n];)*
            let entry = |[$(mut $u),*]: [T; count!($($u)*)], [$($r),*]: [T; count!($($r)*)]| {
                let _ = ($($r,)*);
                $(let $w;)*
                $($statement)*
                [$($w,)* $($u,)*]
            };
            for i in 0..n {
                [$($w[i],)* $($u[i],)*] = entry([$($u[i]),*], [$($r[i]),*]);
            }
        }
    };
    // Runs the statement if the vectors live on a device.
    (@device [$($w:ident)*] [$($u:ident)*] [$($r:ident)*] { $($statement:tt)* }) => {
        if let ($(VectorData::Remote($w),)* $(VectorData::Remote($u),)* $(VectorData::Remote($r),)*)
            = ($(&mut $w.data,)* $(&mut $u.data,)* $(&$r.data,)*) {
            $($statement)*
        }
    };
}
vector_operations!(methods);
