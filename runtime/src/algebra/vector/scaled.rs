//! Operations with a multiple of a vector of another precision, such as a correction in the units of multigrid levels.
//! Each entry is rounded to the precision of the other vectors first, as by [`Vector::put_part`].

use super::blas::{lane_sum, run_chunks, without_others};
use super::{Precision, Real, Vector};

/// Error of vectors in different places.
const ALIKE: &str = "vectors should lie in one place";

impl Vector {
    /// Returns the products of a·z with self and with q. On a device a is 1, and z has the precision of the others.
    pub(crate) fn products_with(&self, a: f64, z: &Self, q: &Self) -> [f64; 2] {
        if self.array().is_some() {
            return [self.dot(z), z.dot(q)];
        }
        match (self.precision(), z.precision()) {
            (Precision::F64, Precision::F64) => products::<f64, f64>(self, (a, z), q),
            (Precision::F64, Precision::F32) => products::<f64, f32>(self, (a, z), q),
            (Precision::F32, Precision::F64) => products::<f32, f64>(self, (a, z), q),
            (Precision::F32, Precision::F32) => products::<f32, f32>(self, (a, z), q),
        }
    }

    /// Sets self = a·z + b·self. On a device as for [`Vector::products_with`].
    pub(crate) fn advance_with(&mut self, a: f64, z: &Self, b: f64) {
        if self.array().is_some() {
            return self.axpby(1.0, z, b);
        }
        match (self.precision(), z.precision()) {
            (Precision::F64, Precision::F64) => advance::<f64, f64>(self, (a, z), b),
            (Precision::F64, Precision::F32) => advance::<f64, f32>(self, (a, z), b),
            (Precision::F32, Precision::F64) => advance::<f32, f64>(self, (a, z), b),
            (Precision::F32, Precision::F32) => advance::<f32, f32>(self, (a, z), b),
        }
    }
}

fn products<T: Real, U: Real>(r: &Vector, (a, z): (f64, &Vector), q: &Vector) -> [f64; 2] {
    let others = r.sharing.as_ref().map_or(&[][..], |sharing| sharing.others());
    let (own, q) = (r.entries::<T>().expect(ALIKE), q.entries::<T>().expect(ALIKE));
    let z = z.entries::<U>().expect(ALIKE);
    assert!(q.len() == own.len() && z.len() == own.len(), "vectors should have one length");
    let sums = run_chunks::<T, 0, 2>(own.len(), [], |range, []| {
        [own, q].map(|y| {
            without_others(others, range.clone(), |range| {
                lane_sum(range, |start, sums| {
                    let (y, z) = (&y[start..start + sums.len()], &z[start..start + sums.len()]);
                    for (i, sum) in sums.iter_mut().enumerate() {
                        let (y, z): (f64, f64) = (y[i].into(), T::from_f64(a * z[i].into()).into());
                        *sum += y * z;
                    }
                })
            })
        })
    });
    r.totals(sums)
}

fn advance<T: Real, U: Real>(p: &mut Vector, (a, z): (f64, &Vector), b: f64) {
    let (p, z) = (p.entries_mut::<T>().expect(ALIKE), z.entries::<U>().expect(ALIKE));
    assert_eq!(p.len(), z.len(), "vectors should have one length");
    let b = T::from_f64(b);
    run_chunks::<T, 1, 0>(p.len(), [p], |range, [p]| {
        for (p, &z) in p.iter_mut().zip(&z[range]) {
            *p = T::from_f64(a * z.into()) + b * *p;
        }
        []
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::support::random::random_entries;

    #[test]
    fn results_are_those_of_a_rounded_vector() {
        let vector = |seed, precision| Vector::from_slice(&random_entries(40_003, seed), precision);
        let of = [Precision::F64, Precision::F32];
        for (own, other) in of.into_iter().flat_map(|own| of.map(|other| (own, other))) {
            let (r, q, z) = (vector(1, own), vector(2, own), vector(3, other));
            let (mut p, mut rounded) = (vector(4, own), vector(5, own));
            let mut expected = p.clone();
            rounded.put_part(0.125, &z, 0..z.len());
            assert_eq!(r.products_with(0.125, &z, &q), [r.dot(&rounded), rounded.dot(&q)]);
            p.advance_with(0.125, &z, 0.3);
            expected.axpby(1.0, &rounded, 0.3);
            assert_eq!(p.to_vec(), expected.to_vec());
        }
    }
}
