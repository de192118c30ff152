//! Vectors in device memory.
//!
//! Vector operations return no errors, so that solvers read like their formulas. Device failures are stored
//! ([`Arithmetic::keep`]): sums are NaN from then on, and the next operator application returns the error.

use super::Precision;
use super::blas::weigh;
use crate::device::{
    Arithmetic, Array, DeviceError, ElementKind, PendingSums, SharedEntries, SumValues,
};
use std::ops::Range;
use std::sync::Arc;

/// Entries on a device.
pub(super) struct DeviceEntries {
    arithmetic: Arc<Arithmetic>,
    array: Array,
    /// Interface entries.
    shared: Option<Arc<SharedEntries>>,
}

impl Clone for DeviceEntries {
    fn clone(&self) -> Self {
        let mut copy = Self::of(&self.arithmetic, self.array.len());
        copy.shared = self.shared.clone();
        Self::compute("copy_from", [&mut copy], [self], &[]);
        copy
    }
}

impl DeviceEntries {
    /// Creates zeros for a number of degrees of freedom.
    pub(super) fn zeros(arithmetic: &Arc<Arithmetic>, unknowns: usize) -> Self {
        Self::of(arithmetic, arithmetic.layout().len(unknowns))
    }

    /// Creates an array of zeros.
    fn of(arithmetic: &Arc<Arithmetic>, len: usize) -> Self {
        let array = arithmetic.keep(arithmetic.zeros(len));
        let kind: ElementKind = arithmetic.precision().into();
        let array = array.unwrap_or_else(|| Array::nowhere(kind));
        Self { arithmetic: Arc::clone(arithmetic), array, shared: None }
    }

    pub(super) fn like(&self, unknowns: usize) -> Self {
        Self { shared: self.shared.clone(), ..Self::zeros(&self.arithmetic, unknowns) }
    }

    /// Returns the interface entries.
    pub(super) fn shared_entries(&self) -> Option<&Arc<SharedEntries>> {
        self.shared.as_ref()
    }

    /// Sets the interface entries.
    pub(super) fn share(&mut self, shared: Result<Arc<SharedEntries>, DeviceError>) {
        self.shared = self.arithmetic.keep(shared);
    }

    /// Removes the interface entries.
    pub(super) fn unshare(&mut self) {
        self.shared = None;
    }

    /// Sets each y_i to the value of its lowest rank.
    pub(super) fn synchronise(&mut self) {
        if let Some(shared) = self.shared.clone() {
            self.exchange(Ok(shared), false);
        }
    }

    /// Sums y_i over all processes that have it.
    pub(super) fn sum_shared(&mut self) {
        if let Some(shared) = self.shared.clone() {
            self.exchange(Ok(shared), true);
        }
    }

    /// Sets each y_i to the value of the first process in its list.
    pub(super) fn synchronise_with(&mut self, shared: Result<Arc<SharedEntries>, DeviceError>) {
        self.exchange(shared, false);
    }

    fn exchange(&mut self, shared: Result<Arc<SharedEntries>, DeviceError>, add: bool) {
        let failed = |error: Box<dyn std::error::Error>| match error.downcast::<DeviceError>() {
            Ok(error) => *error,
            Err(_) => DeviceError::Foreign,
        };
        let exchange = |on: &Arc<Arithmetic>, y: &mut Array| {
            shared?.exchange(on, y, add, &mut || Ok(())).map_err(failed)
        };
        self.act(exchange);
    }

    pub(super) fn precision(&self) -> Precision {
        self.arithmetic.precision()
    }

    pub(super) fn arithmetic(&self) -> &Arc<Arithmetic> {
        &self.arithmetic
    }

    pub(super) fn array(&self) -> &Array {
        &self.array
    }

    pub(super) fn array_mut(&mut self) -> &mut Array {
        &mut self.array
    }

    /// Runs an operation unless an earlier one has failed.
    fn act(&mut self, act: impl FnOnce(&Arc<Arithmetic>, &mut Array) -> Result<(), DeviceError>) {
        let result = self.arithmetic.check().and_then(|()| act(&self.arithmetic, &mut self.array));
        self.arithmetic.keep(result);
    }

    /// Returns the values of all degrees of freedom.
    pub(super) fn to_vec(&self, unknowns: usize) -> Vec<f64> {
        let read = self.arithmetic.check();
        let read = read.and_then(|()| self.arithmetic.device().download(&self.array));
        let entries = self.arithmetic.keep(read).unwrap_or_default();
        match self.arithmetic.layout() {
            layout if layout.permutes(unknowns) => layout.collect(&entries, unknowns),
            _ => entries,
        }
    }

    /// Returns the values of a range of degrees of freedom.
    pub(super) fn part(&self, range: Range<usize>, unknowns: usize) -> Vec<f64> {
        let (on, layout) = (&self.arithmetic, self.arithmetic.layout());
        let read = |range| on.keep(on.check().and_then(|()| on.read(&self.array, range)));
        if !layout.permutes(unknowns) {
            return read(range).unwrap_or_default();
        }
        let Some(field) = layout.field_of(&range, unknowns) else {
            let all = self.to_vec(unknowns);
            return all.get(range).map_or_else(Vec::new, <[f64]>::to_vec);
        };
        let first = field.first();
        let entries = read(first..first + field.len(range.len())).unwrap_or_default();
        let value = |unknown| entries.get(field.place(unknown) - first).copied();
        (0..range.len()).map_while(value).collect()
    }

    /// Returns the value of one degree of freedom.
    pub(super) fn get(&self, unknown: usize, unknowns: usize) -> f64 {
        let place = self.place(unknown, unknowns);
        let value = self.arithmetic.element(&self.array, place);
        self.arithmetic.keep(value).unwrap_or(f64::NAN)
    }

    /// Replaces all values.
    pub(super) fn set(&mut self, values: &[f64]) {
        self.act(|on, y| match on.layout() {
            layout if layout.permutes(values.len()) => on.overwrite(y, 0, &layout.spread(values)),
            _ => on.overwrite(y, 0, values),
        });
    }

    /// Replaces one value.
    pub(super) fn set_entry(&mut self, unknown: usize, unknowns: usize, value: f64) {
        let place = self.place(unknown, unknowns);
        self.act(|on, y| on.overwrite(y, place, &[value]));
    }

    /// Returns the place of a degree of freedom in the array.
    pub(super) fn place(&self, unknown: usize, unknowns: usize) -> usize {
        let layout = self.arithmetic.layout();
        if layout.permutes(unknowns) { layout.place(unknown) } else { unknown }
    }

    /// Sets all degrees of freedom to a value, and padding to 0.
    pub(super) fn fill(&mut self, unknowns: usize, value: f64) {
        let (count, layout) = (self.array.len(), self.arithmetic.layout());
        if count > unknowns && value != 0.0 && !layout.permutes(unknowns) {
            return self.set(&vec![value; unknowns]);
        }
        let padding = if value == 0.0 { Vec::new() } else { layout.padding(unknowns) };
        self.act(|on, y| {
            on.compute("assign", [y], [], &[value])?;
            on.clear_all(y, &padding)
        });
    }

    /// Does an operation of the table: [`Arithmetic::compute`].
    pub(super) fn compute<const W: usize, const R: usize>(
        operation: &'static str,
        written: [&mut Self; W],
        read: [&Self; R],
        scalars: &[f64],
    ) {
        let on = written.first().map(|first| Arc::clone(&first.arithmetic));
        let Some(on) = on else { return };
        let (written, read) = (written.map(|own| &mut own.array), read.map(|own| &own.array));
        on.keep(on.check().and_then(|()| on.compute(operation, written, read, scalars)));
    }

    /// Does a reduction of the table: [`Arithmetic::reduce`].
    pub(super) fn reduce<const W: usize, const R: usize>(
        operation: &'static str,
        written: [&mut Self; W],
        read: [&Self; R],
        scalars: &[f64],
    ) -> PendingProducts {
        let first = written.first().map(|first| &**first).or(read.first().copied());
        let first = first.expect("a reduction has operands");
        let (on, shared) = (Arc::clone(&first.arithmetic), first.shared.clone());
        let (written, read) = (written.map(|own| &mut own.array), read.map(|own| &own.array));
        let sums = on.check();
        let sums =
            sums.and_then(|()| on.reduce(operation, written, read, scalars, shared.as_ref()));
        PendingProducts::new(&on, sums)
    }

    /// Returns the products with several vectors: [`Arithmetic::products`]; NaN after a failure.
    pub(super) fn products(&self, x: &[&Self]) -> Vec<f64> {
        let (on, shared) = (&self.arithmetic, self.shared.as_ref());
        let arrays: Vec<&Array> = x.iter().map(|x| &x.array).collect();
        let found = on.check().and_then(|()| on.products(&self.array, &arrays, shared));
        on.keep(found).unwrap_or_else(|| vec![f64::NAN; x.len()])
    }

    /// Adds a linear combination: [`Arithmetic::combination`].
    pub(super) fn combination(&mut self, a: f64, x: &[&Self], factors: &[f64]) {
        let arrays: Vec<&Array> = x.iter().map(|x| &x.array).collect();
        self.act(|on, y| on.combination(y, a, &arrays, factors));
    }

    /// See [`Arithmetic::ramp`].
    pub(super) fn ramp(&mut self, period: usize) {
        self.act(|on, y| on.ramp(y, period));
    }

    /// Sets pseudorandom numbers: [`Arithmetic::randomise`], and 0 in padding.
    pub(super) fn randomise(&mut self, unknowns: usize, seed: u64) {
        let padding = self.arithmetic.layout().padding(unknowns);
        self.act(|on, y| {
            on.randomise(y, seed)?;
            on.clear_all(y, &padding)
        });
    }

    /// Multiplies the components of a field by weights.
    pub(super) fn weigh(&mut self, range: &Range<usize>, unknowns: usize, weights: &[f64]) {
        let layout = self.arithmetic.layout();
        let field =
            layout.field_of(range, unknowns).filter(|field| field.components() == weights.len());
        let Some((from, n, tile)) =
            field.map(|field| (field.first(), field.len(range.len()), field.tile()))
        else {
            let mut numbers = self.to_vec(unknowns);
            weigh(&mut numbers[range.clone()], weights);
            return self.set(&numbers);
        };
        self.act(|on, y| on.weigh(y, (from, n), tile, weights));
    }

    /// See [`Arithmetic::flip_signs`].
    pub(super) fn flip_signs(&mut self) {
        self.act(|on, y| on.flip_signs(y));
    }

    /// Converts x to its own precision; through the host if the layouts differ.
    pub(super) fn convert_from(&mut self, x: &Self, unknowns: usize) {
        let (own, other) = (self.arithmetic.layout(), x.arithmetic.layout());
        if !(own.begins_as(other) && other.begins_as(own)) {
            let numbers = x.to_vec(unknowns);
            return self.set(&numbers);
        }
        let n = self.array.len();
        self.convert(1.0, (x, 0), 0, n);
    }

    /// Sets self to a·x for a range of x.
    pub(super) fn take_part(&mut self, a: f64, (x, all): (&Self, usize), part: &Range<usize>) {
        let (own, field) = (self.arithmetic.layout(), x.arithmetic.layout().field_of(part, all));
        match field.filter(|field| field.orders_as(own.field(0))) {
            Some(field) => {
                let (from, n) = (field.first(), self.array.len());
                self.convert(a, (x, from), 0, n);
            }
            None => {
                let numbers = &x.to_vec(all)[part.clone()];
                self.set(&numbers.iter().map(|x| a * x).collect::<Vec<_>>());
            }
        }
    }

    /// Sets a range of self to a·x.
    pub(super) fn put_part(&mut self, a: f64, x: &Self, (part, all): (&Range<usize>, usize)) {
        let (own, source) = (self.arithmetic.layout().field_of(part, all), x.arithmetic.layout());
        match own.filter(|own| own.orders_as(source.field(0))) {
            Some(own) => {
                let (into, n) = (own.first(), x.array.len());
                self.convert(a, (x, 0), into, n);
            }
            None => {
                let mut numbers = self.to_vec(all);
                let own = x.to_vec(part.len()).into_iter().map(|x| a * x);
                numbers.splice(part.clone(), own);
                self.set(&numbers);
            }
        }
    }

    /// Sets the entries `to` to a times the entries `from` of x, a vector in the same layout.
    pub(super) fn copy_part(
        &mut self,
        a: f64,
        x: &Self,
        (from, to): (&Range<usize>, &Range<usize>),
        all: usize,
    ) {
        let (own, source) = (self.arithmetic.layout(), x.arithmetic.layout());
        match (source.field_of(from, all), own.field_of(to, all)) {
            (Some(source), Some(own)) if source.orders_as(own) => {
                let (from, into, n) = (source.first(), own.first(), own.len(to.len()));
                self.convert(a, (x, from), into, n);
            }
            _ => {
                let mut numbers = self.to_vec(all);
                let copied = x.to_vec(all)[from.clone()].iter().map(|x| a * x).collect::<Vec<_>>();
                numbers.splice(to.clone(), copied);
                self.set(&numbers);
            }
        }
    }

    /// Copies a range of x to a zero vector like x.
    pub(super) fn take_alone(&mut self, x: &Self, (part, all): (&Range<usize>, usize)) {
        match x.arithmetic.layout().field_of(part, all) {
            Some(field) => {
                let (first, n) = (field.first(), field.len(part.len()));
                self.convert(1.0, (x, first), first, n);
            }
            None => {
                let mut numbers = vec![0.0; all];
                numbers[part.clone()].copy_from_slice(&x.to_vec(all)[part.clone()]);
                self.set(&numbers);
            }
        }
    }

    /// Converts n entries of a·x, from one offset to another.
    fn convert(&mut self, a: f64, (x, from): (&Self, usize), into: usize, n: usize) {
        let single = |on: &Arc<Arithmetic>| on.precision() == Precision::F32;
        let by = if single(&x.arithmetic) { &x.arithmetic } else { &self.arithmetic };
        let by = Arc::clone(by);
        let checked = x.arithmetic.check();
        self.act(|_, y| checked.and_then(|()| by.convert(a, (&x.array, from), (y, into), n)));
    }

    /// See [`Arithmetic::conjugate`].
    pub(super) fn conjugate(
        &mut self,
        rz: f64,
        curvature: &PendingProducts,
        p: &Self,
        q: &Self,
        d: Option<&Self>,
        r: &mut Self,
    ) -> PendingProducts {
        let (on, x) = (&self.arithmetic, &mut self.array);
        let sums = on.check().and_then(|()| {
            let curvature = curvature.sums.as_ref().ok_or(DeviceError::Foreign)?;
            let d = d.map(|d| &d.array);
            let written = [x, &mut r.array];
            let read = [&p.array, &q.array];
            on.conjugate((rz, curvature), read, d, written, self.shared.as_ref())
        });
        PendingProducts::new(on, sums)
    }
}

/// Sums, possibly still pending on a device; `None` after a failure.
pub(super) struct PendingProducts {
    arithmetic: Arc<Arithmetic>,
    sums: Option<PendingSums>,
}

impl PendingProducts {
    fn new(arithmetic: &Arc<Arithmetic>, sums: Result<PendingSums, DeviceError>) -> Self {
        Self { arithmetic: Arc::clone(arithmetic), sums: arithmetic.keep(sums) }
    }

    /// Waits for the sums; NaN after a failure.
    pub(super) fn values(&self) -> SumValues {
        let values = self.sums.as_ref().map(PendingSums::values);
        let lost = SumValues { first: f64::NAN, second: f64::NAN, curvature: f64::NAN };
        values.and_then(|values| self.arithmetic.keep(values)).unwrap_or(lost)
    }
}
