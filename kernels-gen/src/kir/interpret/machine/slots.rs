//! What threads or lanes do with the slots that they share.

use super::{Indexed, Machine};
use crate::kir::interpret::Fault;
use crate::kir::{ArgumentId, Index, SharedId, Slots, TermsId, ValueId, Write};
use fem_dsl::arena::Id;

impl Machine<'_, '_, '_> {
    /// Which of `count` entries that are dealt out are this thread's, each with the lane that does it.
    fn dealt_out(&self, count: usize) -> impl Iterator<Item = (usize, usize)> + use<> {
        let (first, step) = match self.thread {
            Some(thread) => (thread, self.kernel.threads),
            None => (0, 1),
        };
        let lanes = self.lanes;
        (first..count).step_by(step).map(move |entry| (entry, entry % lanes))
    }

    /// The element that a slot is for, with what is added to its index.
    fn element(&self, slots: &Slots, slot: usize, offset: usize) -> Result<Option<i64>, Fault> {
        let (map, at, scale, masked) = (slots.map, &slots.at, slots.scale, true);
        let indexed = Indexed { map, at, scale, offset, masked };
        self.place(&indexed, self.at(at) + slot as i64)
    }

    pub(super) fn gather_slots(&self, source: ArgumentId, slots: &Slots) -> Result<(), Fault> {
        for (slot, lane) in self.dealt_out(slots.count) {
            for &(offset, first) in &slots.parts {
                let number = match self.element(slots, slot, offset)? {
                    Some(place) => self.read(source, place)?,
                    None => 0.0,
                };
                self.shared(slots.shared, (first + slot) as i64, lane, Some(number))?;
            }
        }
        Ok(())
    }

    pub(super) fn clear(&self, shared: SharedId, length: usize) -> Result<(), Fault> {
        for (entry, lane) in self.dealt_out(length) {
            self.shared(shared, entry as i64, lane, Some(0.0))?;
        }
        Ok(())
    }

    pub(super) fn scatter_slots(
        &self,
        target: ArgumentId,
        slots: &Slots,
        terms: usize,
        write: Write,
    ) -> Result<(), Fault> {
        for (slot, lane) in self.dealt_out(slots.count) {
            for &(offset, first) in &slots.parts {
                let Some(place) = self.element(slots, slot, offset)? else { continue };
                let mut sum = 0.0;
                for term in 0..terms {
                    let entry = first + term * slots.stride + slot;
                    let number = self.shared(slots.shared, entry as i64, lane, None)?;
                    sum = super::rounded(self.kernel.precision, sum + number);
                }
                self.put(target, place, sum, write)?;
            }
        }
        Ok(())
    }

    pub(super) fn load_terms(
        &mut self,
        terms: TermsId,
        map: ArgumentId,
        at: &Index,
        step: usize,
    ) -> Result<(), Fault> {
        let begin = self.at(at) * self.lanes as i64;
        for j in 0..self.kernel.terms[terms].length {
            for lane in 0..self.lanes {
                let term = self.index(map, begin + (j * step + lane) as i64)?;
                self.terms[terms.index()][j * self.lanes + lane] = Some(term);
            }
        }
        Ok(())
    }

    /// An entry of a private array of indices.
    fn term(&self, terms: TermsId, entry: &Index, lane: usize) -> Result<usize, Fault> {
        let index = self.at(entry);
        let at = index * self.lanes as i64 + lane as i64;
        let found = usize::try_from(at).ok().and_then(|at| self.terms[terms.index()].get(at));
        let array = || self.kernel.terms[terms].name.clone();
        match found {
            Some(Some(term)) => Ok(*term as usize),
            Some(None) => Err(Fault::Unwritten { array: array(), index }),
            None => {
                let length = self.kernel.terms[terms].length;
                Err(Fault::OutOfBounds { array: array(), index, length })
            }
        }
    }

    pub(super) fn load_slot(
        &mut self,
        id: ValueId,
        shared: SharedId,
        (terms, entry): (TermsId, &Index),
        (stride, first): (usize, usize),
    ) -> Result<(), Fault> {
        for lane in 0..self.lanes {
            let term = self.term(terms, entry, lane)?;
            let number = self.shared(shared, (first + term % stride) as i64, lane, None)?;
            self.values[id.index() * self.lanes + lane] = number;
        }
        Ok(())
    }

    /// Lanes that write store what they have; no two in one place.
    pub(super) fn store_term(
        &self,
        shared: SharedId,
        (terms, entry): (TermsId, &Index),
        first: usize,
        value: ValueId,
    ) -> Result<(), Fault> {
        for lane in 0..self.active.min(self.lanes) {
            let term = self.term(terms, entry, lane)?;
            let number = self.value(value, lane);
            self.shared(shared, (first + term) as i64, lane, Some(number))?;
        }
        Ok(())
    }
}
