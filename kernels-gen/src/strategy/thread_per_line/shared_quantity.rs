//! Shared-memory arrays of a group of threads: quantities, and contributions to each field.
//!
//! Values are nodal first and at points in the end. Derivatives along all axes except the last have separate arrays,
//! without those in x if a plan lets them overwrite values. A result reuses the array of its field's values, and
//! otherwise any arrays that the inputs no longer need. A column reads its own entries of all of them before it writes
//! there.

use super::layout::Traffic;
use crate::element::LinePoints;
use crate::kir::{Index, SharedId};
use crate::limits::LOOPED;
use crate::lower::factors::{Factors, factors};
use crate::lower::facts::{Quantity, QuantitySource};
use crate::lower::lowering::{Lowering, repeat};
use crate::plan::Task;
use std::collections::BTreeMap;
use std::ops::Range;

/// A quantity, or a result, in shared memory.
pub(super) struct SharedQuantity {
    pub(super) factors: Factors,
    pub(super) components: usize,
    /// True if it has no gradients: a column then interpolates, or integrates, in registers.
    pub(super) flat: bool,
    /// True if its nodes may hang: they then pass through shared memory.
    pub(super) hangs: bool,
    /// Values; `None` if columns access the nodes directly.
    value: Option<SharedId>,
    /// Derivatives along all axes except the last, where functions are differentiated.
    slopes: Option<Vec<Option<SharedId>>>,
}

impl SharedQuantity {
    /// Returns whether nodes are points.
    pub(super) fn identity(&self) -> bool {
        self.factors.is_collocated
    }

    /// Returns the array of the derivatives along an axis except the last, if there are any.
    pub(super) fn slope(&self, axis: usize) -> Option<SharedId> {
        self.slopes.as_ref().and_then(|slopes| slopes[axis])
    }

    /// Returns whether there are derivatives along an axis.
    pub(super) fn derives(&self, axis: usize) -> bool {
        self.slopes.is_some() && self.factors.derived[axis]
    }

    /// Returns whether columns of points gather or scatter it.
    pub(super) fn in_column(&self) -> bool {
        self.value.is_none()
    }

    /// Calls `body` with each component of a thread's rows, which are processed alike.
    pub(super) fn each_component(
        &self,
        s: &mut Lowering<'_>,
        mut body: impl FnMut(&mut Lowering<'_>, &Index),
    ) {
        let q = s.facts.elements.rule.line().map_or(1, LinePoints::count);
        let written_out = q < LOOPED.0 || self.components < LOOPED.1 || self.flat;
        repeat(s, "c", self.components, written_out, |s, c| body(s, &c));
    }

    /// Returns the array of its values.
    pub(super) fn value(&self) -> SharedId {
        self.value.expect("what goes through shared memory should have an array there")
    }
}

/// The contributions to a field.
pub(super) struct ElementVector {
    pub(super) field: usize,
    /// Its components among those of all fields.
    pub(super) rows: Range<usize>,
    pub(super) shared: SharedQuantity,
}

impl ElementVector {
    /// Calls `body` with each of its components, and true if it is tested by gradients.
    pub(super) fn each_tested(
        &self,
        s: &mut Lowering<'_>,
        mut body: impl FnMut(&mut Lowering<'_>, &Index, bool),
    ) {
        let derived: Vec<bool> = self.rows.clone().map(|row| s.facts.tested(row).1).collect();
        if derived.iter().all(|&one| one == derived[0]) {
            return self.shared.each_component(s, |s, c| body(s, c, derived[0]));
        }
        for (c, derived) in derived.into_iter().enumerate() {
            body(s, &Index::from(c), derived);
        }
    }
}

/// Declares the arrays of all quantities and results, `length` values per component.
pub(super) fn declare(
    s: &mut Lowering<'_>,
    line: LinePoints,
    length: usize,
) -> (Vec<SharedQuantity>, Vec<ElementVector>) {
    let axes = &["x", "y"][..s.facts.form.dim - 1];
    let (mut inputs, mut left) = (Vec::new(), FreeArrays { arrays: Vec::new() });
    for quantity in &s.facts.quantities {
        let (name, numbers) = (&quantity.name, quantity.components * length);
        let (factors, flat) =
            (factors(line, quantity.element, s.facts.plan.task), is_flat(s, quantity));
        let mut array = |s: &mut Lowering<'_>, name: String| {
            let array = s.b.shared(&name, numbers);
            left.arrays.push((array, numbers));
            array
        };
        let hangs = s.facts.hangs(quantity.source, quantity.element);
        let in_column = flat && factors.is_collocated && !hangs;
        let value = (!in_column).then(|| array(s, format!("{name}_s")));
        let along = |(at, axis): (usize, &&str)| match value {
            _ if !factors.derived[at] => None,
            Some(value) if is_in_place(s) && at == 0 => Some(value),
            _ => Some(array(s, format!("{name}_{axis}"))),
        };
        let slopes = quantity.gradient.then(|| axes.iter().enumerate().map(along).collect());
        let components = quantity.components;
        inputs.push(SharedQuantity { factors, components, flat, hangs, value, slopes });
    }
    let in_place = is_in_place(s);
    // First each field's own arrays, then unused ones.
    let mut claimed: Vec<ReusedArrays> =
        s.facts.results().into_iter().map(|field| left.own(s, &inputs, field)).collect();
    let results = claimed.iter_mut().map(|claim| {
        let field = claim.field;
        let (factors, components) = (
            factors(line, s.facts.elements.fields[field], s.facts.plan.task),
            s.facts.components(field),
        );
        let rows = s.facts.rows_of(field);
        let tested = rows.clone().any(|row| s.facts.tested(row).1);
        let flat = s.facts.is_flat_field(field);
        let hangs = s.facts.result_hangs(field);
        let diagonal = s.facts.plan.task == Task::Diagonal;
        let in_column = flat && factors.is_collocated && !hangs && !diagonal;
        let numbers = components * length;
        let mut array = |own: Option<SharedId>, axis: &str| {
            own.or_else(|| left.any(numbers)).unwrap_or_else(|| {
                let name = s.facts.of_field("r", field);
                s.b.shared(&format!("{name}_{axis}"), numbers)
            })
        };
        let value = (!in_column).then(|| array(claim.value, "s"));
        let slopes = tested.then(|| {
            let own = claim.slopes.take();
            let own = |axis: usize| own.as_ref().and_then(|own| own[axis]);
            let along = |(at, axis): (usize, &&str)| match value {
                _ if !factors.derived[at] => None,
                Some(value) if in_place && at == 0 => Some(value),
                _ => Some(array(own(at), axis)),
            };
            axes.iter().enumerate().map(along).collect()
        });
        ElementVector {
            field,
            rows,
            shared: SharedQuantity { factors, components, flat, hangs, value, slopes },
        }
    });
    let results = results.collect();
    (inputs, results)
}

/// Returns whether derivatives in x overwrite values: if there are any, and in three dimensions only, because in two
/// dimensions D in x is applied together with B.
pub(super) fn is_in_place(s: &Lowering<'_>) -> bool {
    s.facts.plan.in_place && s.facts.form.dim == 3 && !s.facts.is_flat()
}

/// Returns whether only the values of a quantity are used, for a field also in its tests. All of it is then gathered
/// and scattered along one axis.
fn is_flat(s: &Lowering<'_>, quantity: &Quantity) -> bool {
    match quantity.source {
        QuantitySource::State(field) | QuantitySource::Direction(field) => {
            s.facts.is_flat_field(field)
        }
        QuantitySource::Aux(_) | QuantitySource::Position(_) => !quantity.gradient,
    }
}

/// The arrays of a field's own values that its result reuses.
struct ReusedArrays {
    field: usize,
    value: Option<SharedId>,
    slopes: Option<Vec<Option<SharedId>>>,
}

/// Arrays, with their lengths, that inputs no longer need.
struct FreeArrays {
    arrays: Vec<(SharedId, usize)>,
}

impl FreeArrays {
    /// Takes the arrays of the direction or the state of a field.
    fn own(&mut self, s: &Lowering<'_>, inputs: &[SharedQuantity], field: usize) -> ReusedArrays {
        let own = [QuantitySource::Direction(field), QuantitySource::State(field)];
        let own = own.iter().find_map(|&source| s.facts.quantity(source)).map(|own| &inputs[own]);
        let (value, slopes) = own.map_or((None, None), |own| (own.value, own.slopes.clone()));
        // Derivatives that are not tested are released.
        let tested = s.facts.rows_of(field).any(|row| s.facts.tested(row).1);
        let slopes = slopes.filter(|_| tested);
        let of_slopes = slopes.iter().flatten().flatten();
        let taken: Vec<SharedId> = value.iter().chain(of_slopes).copied().collect();
        self.arrays.retain(|(array, _)| !taken.contains(array));
        ReusedArrays { field, value, slopes }
    }

    /// Takes the shortest array of at least this many values.
    fn any(&mut self, numbers: usize) -> Option<SharedId> {
        let roomy = self.arrays.iter().enumerate().filter(|(_, (_, length))| *length >= numbers);
        let at = roomy.min_by_key(|(_, (_, length))| *length)?.0;
        Some(self.arrays.remove(at).0)
    }
}

/// Returns the shared-memory traffic of the phases, on q points per direction in `dim` dimensions. Counted is that of
/// the fields, which dominates; a curved map takes part in all phases. Columns may be permuted if a group has a
/// `single` cell. Lines of nodes may not, because neighbours are neighbours in memory.
pub(super) fn traffic(s: &Lowering<'_>, (dim, q): (usize, usize), single: bool) -> Vec<Traffic> {
    let mut kinds = BTreeMap::<(usize, bool, bool), usize>::new();
    let curved = s.facts.is_curved();
    for (field, &element) in s.facts.elements.fields.iter().enumerate() {
        let flat = !curved && s.facts.is_flat_field(field);
        let kind = (element.degree() + 1, flat, s.facts.elements.collocated(element));
        *kinds.entry(kind).or_default() += s.facts.components(field);
    }
    let of = |((n, flat, collocated), components): ((usize, bool, bool), usize)| {
        let mut phases = phases((dim, n, q), single, (flat, collocated));
        phases.iter_mut().for_each(|phase| phase.accesses *= components);
        phases
    };
    kinds.into_iter().flat_map(of).collect()
}

/// Returns the traffic of one value at each point, in both directions, with n nodes per direction.
fn phases(
    (dim, n, q): (usize, usize, usize),
    single: bool,
    (flat, collocated): (bool, bool),
) -> Vec<Traffic> {
    let rows = |axis: usize, extents: &[usize], accesses: usize, distributed: bool| Traffic {
        axis,
        extents: extents[..dim - 1].to_vec(),
        accesses,
        distributed,
    };
    match (dim, flat, collocated) {
        (2, true, _) => vec![rows(0, &[n], 2 * q, false), rows(1, &[q], 2 * n, single)],
        (2, false, true) => vec![rows(0, &[q], 4 * q, false), rows(1, &[q], 4 * q, single)],
        (2, false, false) => vec![
            rows(1, &[n], 2 * q, false),
            rows(0, &[q], 2 * n + 4 * q, true),
            rows(1, &[q], 4 * q, single),
        ],
        (_, true, _) => vec![
            rows(1, &[n, n], 2 * q, false),
            rows(0, &[q, n], 2 * (n + q), true),
            rows(2, &[q, q], 2 * n, single),
        ],
        (_, false, true) => vec![
            rows(1, &[q, q], 4 * q, false),
            rows(0, &[q, q], 5 * q, true),
            rows(2, &[q, q], 6 * q, single),
        ],
        (_, false, false) => vec![
            rows(2, &[n, n], 2 * q, false),
            rows(0, &[n, q], 2 * (n + q), true),
            rows(1, &[q, q], 2 * n + 4 * q, true),
            rows(0, &[q, q], 5 * q, true),
            rows(2, &[q, q], 6 * q, single),
        ],
    }
}
