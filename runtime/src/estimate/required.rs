//! Values at points that an estimate needs, and their indices in the kernel output.

use crate::operator::FluxSelection;
use fem_dsl::measures::{EstimatorComponents, EstimatorForm};
use fem_dsl::point::Side;
use fem_dsl::point::{Part, PointForm};
use kernels_gen::element::{Whitney, WhitneyFamily};
use kernels_gen::plan::{Elements, tested_in_kernel};
use std::ops::Range;

/// All values needed at a point.
#[derive(Clone, Debug)]
pub(super) struct RequiredValues {
    /// Selection of kernel outputs.
    pub(super) asked: FluxSelection,
    /// Index of the quadrature weight.
    pub(super) one: usize,
    /// Indices of the metric, a ≤ b, of forms with fields of H(curl) or H(div).
    pub(super) metric: Vec<usize>,
    /// Fields of the form.
    pub(super) fields: Vec<FieldValues>,
    /// Number of components of all traces.
    pub(super) traced: usize,
    /// Number of weights of residuals: one for each field, then one for each [`MassValues`].
    pub(super) scales: usize,
    /// Values of each integral over pairs of cells.
    pub(super) of_pairs: Vec<Option<PairIntegrands>>,
}

/// Values needed of an integral over pairs of cells.
#[derive(Clone, Debug)]
pub(super) struct PairIntegrands {
    /// Number of values per point.
    pub(super) numbers: usize,
    /// Integrands tested against values of a trace: index, side, component among those of the fields with a flux.
    pub(super) rows: Vec<(usize, Side, usize)>,
    /// Shares of the energy: index, field, share.
    pub(super) energies: Vec<(usize, usize, usize)>,
}

/// Values needed for a field.
#[derive(Clone, Debug)]
pub(super) struct FieldValues {
    pub(super) name: String,
    /// Degree of its element.
    pub(super) degree: usize,
    /// True for continuous fields.
    pub(super) continuous: bool,
    pub(super) has_flux: bool,
    pub(super) components: Vec<ComponentIntegrands>,
    /// Its traces on facets; none without a flux.
    pub(super) traces: Vec<Trace>,
    pub(super) energy: [Option<usize>; 3],
    pub(super) coefficient: Option<usize>,
    pub(super) slope: Option<usize>,
    pub(super) tangent: Vec<usize>,
    /// Values of a field in H(curl) or H(div).
    pub(super) vector: Option<VectorValues>,
    /// True if its residual has no flux, and belongs to the divergence of a flux without an energy of its own.
    pub(super) is_divergence: bool,
}

/// Values needed for a field in H(curl) or H(div), as functions of the reference cell.
#[derive(Clone, Debug)]
pub(super) struct VectorValues {
    pub(super) family: WhitneyFamily,
    /// Factor of each component.
    pub(super) signs: Vec<f64>,
    /// Index and factor of each component tested against the exterior derivative, `None` where nothing is.
    pub(super) exterior: Option<Vec<(usize, f64)>>,
    /// Values of the residual of gradients or curls, of a field with a flux.
    pub(super) mass: Option<MassValues>,
}

/// Values needed for the residual of gradients or curls.
#[derive(Clone, Debug)]
pub(super) struct MassValues {
    pub(super) coefficient: Option<usize>,
    pub(super) tangent: Vec<usize>,
    /// Index of its weight.
    pub(super) scale: usize,
}

/// Kind of the functions that a trace is tested against, by which it depends on the facet's parameters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TraceKind {
    /// Values: a density per parameter, r ds.
    Value,
    /// Tangential components along the parameters: the components of a tangential vector, times the measure.
    Tangential,
    /// Fluxes: a number.
    Flux,
}

/// A trace of a field on facets.
#[derive(Clone, Copy, Debug)]
pub(super) struct Trace {
    pub(super) kind: TraceKind,
    /// Its first component among those of all traces, and their number.
    pub(super) first: usize,
    pub(super) count: usize,
    /// Index of its weight.
    pub(super) scale: usize,
}

impl VectorValues {
    fn new(
        element: Whitney,
        place: impl Fn(usize, Part) -> Option<usize>,
        mass: Option<MassValues>,
    ) -> Self {
        let dim = element.cell().dim();
        let signs: Vec<f64> = (0..dim).map(|a| element.sign(a)).collect();
        // The component and the axis of one of the derivatives in each component of the exterior derivative.
        let parts: Vec<(usize, usize)> = match (element.family(), dim) {
            (WhitneyFamily::Div, _) => vec![(0, 0)],
            (WhitneyFamily::Curl, 2) => vec![(1, 0)],
            (WhitneyFamily::Curl, _) => (0..3).map(|c| ((c + 2) % 3, (c + 1) % 3)).collect(),
        };
        let own = |&(a, axis): &(usize, usize)| Some((place(a, Part::Derivative(axis))?, signs[a]));
        let exterior = parts.iter().map(own).collect();
        Self { family: element.family(), signs, exterior, mass }
    }

    /// Returns the kinds and numbers of components of the traces of the exterior derivative's flux, and of the values.
    fn traces(&self) -> [(TraceKind, usize); 2] {
        match (self.family, self.signs.len()) {
            (WhitneyFamily::Curl, dim) => [(TraceKind::Tangential, dim - 1), (TraceKind::Value, 1)],
            (WhitneyFamily::Div, 2) => [(TraceKind::Flux, 1), (TraceKind::Value, 1)],
            (WhitneyFamily::Div, _) => [(TraceKind::Flux, 1), (TraceKind::Tangential, 2)],
        }
    }
}

impl FieldValues {
    /// Returns the traces of a field with a flux, and counts their components.
    fn traces(
        (number, components): (usize, usize),
        vector: Option<&VectorValues>,
        traced: &mut usize,
    ) -> Vec<Trace> {
        let mut trace = |(kind, count): (TraceKind, usize), scale: usize| {
            *traced += count;
            Trace { kind, first: *traced - count, count, scale }
        };
        match vector.and_then(|vector| Some((vector, vector.mass.as_ref()?))) {
            None => vec![trace((TraceKind::Value, components), number)],
            Some((vector, mass)) => {
                let [flux, values] = vector.traces();
                vec![trace(flux, number), trace(values, mass.scale)]
            }
        }
    }
}

/// Integrands tested against a component.
#[derive(Clone, Debug, Default)]
pub(super) struct ComponentIntegrands {
    pub(super) value: Option<usize>,
    /// Indices by direction.
    pub(super) gradient: Option<Vec<usize>>,
}

impl PairIntegrands {
    fn new(
        form: &PointForm,
        of: &EstimatorForm,
        fields: &[FieldValues],
        (elements, integral): (&Elements, usize),
    ) -> Self {
        let all = tested_in_kernel(&of.form, elements, integral);
        let place = |row: usize| all.binary_search(&(row, Part::Value)).ok();
        let (mut rows, mut energies) = (Vec::new(), Vec::new());
        for (number, field) in fields.iter().enumerate() {
            for (side, first) in [(Side::Inside, 0), (Side::Outside, of.form.rows())] {
                let components = if field.has_flux { field.components.len() } else { 0 };
                rows.extend((0..components).filter_map(|component| {
                    let place = place(first + form.row(number, component))?;
                    Some((place, side, field.traces.first()?.first + component))
                }));
            }
            let shares = of.fields[number].energy.iter().enumerate();
            energies.extend(shares.filter_map(|(share, &row)| Some((place(row)?, number, share))));
        }
        Self { numbers: all.len(), rows, energies }
    }
}

impl RequiredValues {
    /// Selects the values for a form with its estimate, on its elements.
    pub(super) fn new(form: &PointForm, of: &EstimatorForm, elements: &Elements) -> Self {
        let is_interior = |integral: usize| of.form.integrals[integral].region.is_interior();
        let tested = |integral: usize| match is_interior(integral) {
            true => Vec::new(),
            false => tested_in_kernel(&of.form, elements, integral),
        };
        let integrals = 0..of.form.integrals.len();
        let mut all: Vec<(usize, Part)> = integrals.clone().flat_map(tested).collect();
        all.sort_unstable();
        all.dedup();
        let place = |number: &(usize, Part)| all.binary_search(number).ok();
        let places = integrals.map(|integral| tested(integral).iter().filter_map(place).collect());
        let value = |row: usize| place(&(row, Part::Value));
        let metric: Vec<usize> = of.metric.clone().filter_map(value).collect();
        let once = value(of.one).into_iter().chain(metric.iter().copied()).collect();
        let asked = FluxSelection { numbers: all.len(), places: places.collect(), once };
        let (mut traced, mut scales) = (0, form.fields.len());
        let fields = form.fields.iter().zip(&of.fields).enumerate();
        let fields =
            fields.map(|(number, (field, shares))| {
                let EstimatorComponents {
                    has_flux,
                    energy,
                    coefficient,
                    slope,
                    ref tangent,
                    ref mass,
                } = *shares;
                let (element, count) = (elements.fields[number], field.shape.components());
                let part =
                    |component: usize, part: Part| place(&(form.row(number, component), part));
                let components = (0..count).map(|component| {
                    let axes = (0..form.dim).map(|axis| part(component, Part::Derivative(axis)));
                    let gradient = if has_flux { axes.collect() } else { None };
                    ComponentIntegrands { value: part(component, Part::Value), gradient }
                });
                let listed = |rows: &Range<usize>| rows.clone().filter_map(value).collect();
                let mass = mass.as_ref().map(|mass| MassValues {
                    coefficient: value(mass.coefficient),
                    tangent: listed(&mass.tangent),
                    scale: scales,
                });
                scales += usize::from(mass.is_some());
                let vector =
                    element.whitney().map(|element| VectorValues::new(element, part, mass));
                let traces = match has_flux {
                    true => FieldValues::traces((number, count), vector.as_ref(), &mut traced),
                    false => Vec::new(),
                };
                FieldValues {
                    name: field.name.clone(),
                    degree: element.degree(),
                    continuous: element.is_continuous(),
                    has_flux,
                    components: components.collect(),
                    traces,
                    energy: energy.map(value),
                    coefficient: value(coefficient),
                    slope: value(slope),
                    tangent: listed(tangent),
                    vector,
                    is_divergence: false,
                }
            });
        let mut fields: Vec<FieldValues> = fields.collect();
        let is_mixed = |of: &FieldValues| {
            let mass = of.vector.as_ref().and_then(|vector| vector.mass.as_ref());
            of.coefficient.is_none() && mass.is_some_and(|mass| mass.coefficient.is_some())
        };
        let mut flows = fields.iter().filter(|of| of.has_flux).peekable();
        if flows.peek().is_some() && flows.all(is_mixed) {
            let others = fields.iter_mut().filter(|of| !of.has_flux && of.vector.is_none());
            others.for_each(|of| of.is_divergence = true);
        }
        let one = value(of.one).unwrap_or(0);
        let of_pairs = (0..of.form.integrals.len()).map(|integral| {
            is_interior(integral)
                .then(|| PairIntegrands::new(form, of, &fields, (elements, integral)))
        });
        let of_pairs = of_pairs.collect();
        Self { asked, one, metric, fields, traced, scales, of_pairs }
    }

    /// Multiplies values, `[part][value][point]`, so that all squares and energies belong to residuals scaled by
    /// `factor`.
    pub(super) fn scale(&self, factor: f64, points: usize, numbers: &mut [f64]) {
        // Number of multiplications, since the square of the factor may overflow.
        let mut times = vec![0; self.asked.numbers];
        for field in &self.fields {
            let squares = field.energy.iter().flatten().chain(&field.slope);
            squares.for_each(|&at| times[at] = 2);
            let values = field.components.iter().filter_map(|tested| tested.value.as_ref());
            let fluxes = field.components.iter().filter_map(|tested| tested.gradient.as_ref());
            let linear = values.chain(fluxes.flatten()).chain(&field.tangent);
            linear.for_each(|&at| times[at] = 1);
            if let Some(vector) = &field.vector {
                let exterior = vector.exterior.iter().flatten().map(|(at, _)| at);
                let mass = vector.mass.iter().flat_map(|mass| &mass.tangent);
                exterior.chain(mass).for_each(|&at| times[at] = 1);
            }
        }
        for (own, &times) in numbers.chunks_mut(points).zip(times.iter().cycle()) {
            for _ in 0..times {
                own.iter_mut().for_each(|number| *number *= factor);
            }
        }
    }
}
