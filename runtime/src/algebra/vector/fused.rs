//! Fused vector operations of smoothers and time steps: each vector is read and written once.

use super::{Precision, Real, Vector, VectorData, blas, real};

impl Vector {
    /// Takes a Chebyshev step: r = `from` − q, or r − q without it, d = `keep`·d + `add`·D⁻¹r, self = self + d.
    pub fn chebyshev(
        &mut self,
        (keep, add): (f64, f64),
        d: &mut Self,
        r: &mut Self,
        from: Option<&Self>,
        q: &Self,
        inverse: &Self,
    ) {
        let x = self;
        match from {
            Some(from) => {
                on_device!((x, d, r), (from, q, inverse), {
                    x.chebyshev((keep, add), [d, r], Some(from), [q, inverse]);
                });
                with_entries!((x, d, r), (from, q, inverse), {
                    blas::chebyshev_from([x, d, r], [from, q, inverse], real(keep), real(add));
                });
            }
            None => {
                on_device!((x, d, r), (q, inverse), {
                    x.chebyshev((keep, add), [d, r], None, [q, inverse]);
                });
                with_entries!((x, d, r), (q, inverse), {
                    blas::chebyshev([x, d, r], [q, inverse], real(keep), real(add));
                });
            }
        }
    }

    /// Takes the first Chebyshev step from zero: d = `add`·D⁻¹r, self = d.
    pub fn chebyshev_first(&mut self, add: f64, d: &mut Self, r: &Self, inverse: &Self) {
        let x = self;
        on_device!((x, d), (r, inverse), x.chebyshev_first(add, d, [r, inverse]));
        with_entries!((x, d), (r, inverse), {
            blas::chebyshev_first([x, d], [r, inverse], real(add));
        });
    }

    /// Takes a leapfrog step from velocity and acceleration: v = v + c·a, self = u + `length`·v.
    pub fn drift(&mut self, (length, c): (f64, f64), v: &mut Self, u: &Self, a: &Self) {
        let next = self;
        on_device!((next, v), (u, a), next.drift((length, c), v, [u, a]));
        with_entries!((next, v), (u, a), {
            blas::drift([next, v], u, |i| a[i], real(length), real(c));
        });
    }

    /// Takes the same step from a residual and the inverse of a mass: v = v − c·D⁻¹r, self = u + `length`·v.
    pub fn leap(
        &mut self,
        (length, c): (f64, f64),
        v: &mut Self,
        u: &Self,
        r: &Self,
        inverse: &Self,
    ) {
        let next = self;
        on_device!((next, v), (u, r, inverse), next.leap((length, c), v, [u, r, inverse]));
        with_entries!((next, v), (u, r, inverse), {
            blas::drift([next, v], u, |i| inverse[i] * r[i], real(length), real(-c));
        });
    }

    /// Completes a step: a = −D⁻¹r, self = self + c·a.
    pub fn kick(&mut self, c: f64, a: &mut Self, r: &Self, inverse: &Self) {
        let v = self;
        on_device!((v, a), (r, inverse), v.kick(c, a, [r, inverse]));
        with_entries!((v, a), (r, inverse), {
            blas::kick([v, a], [r, inverse], real(c));
        });
    }
}
