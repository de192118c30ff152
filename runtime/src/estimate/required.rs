//! Values at points that an estimate needs, and their indices in the kernel output.

use crate::operator::FluxSelection;
use fem_dsl::measures::{EstimatorComponents, EstimatorForm};
use fem_dsl::point::Side;
use fem_dsl::point::{Part, PointForm};
use kernels_gen::plan::{Elements, tested, tested_on_pairs};

/// All values needed at a point.
#[derive(Clone, Debug)]
pub(super) struct RequiredValues {
    /// Selection of kernel outputs.
    pub(super) asked: FluxSelection,
    /// Index of the quadrature weight.
    pub(super) one: usize,
    /// Fields of the form.
    pub(super) fields: Vec<FieldValues>,
    /// Number of components of the fields with a flux.
    pub(super) traced: usize,
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
    /// Index of its first component among those of the fields with a flux.
    pub(super) first_trace: usize,
    pub(super) energy: [Option<usize>; 3],
    pub(super) coefficient: Option<usize>,
    pub(super) slope: Option<usize>,
    pub(super) tangent: Vec<usize>,
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
        let all = tested_on_pairs(&of.form, elements, integral);
        let place = |row: usize| all.binary_search(&(row, Part::Value)).ok();
        let (mut rows, mut energies) = (Vec::new(), Vec::new());
        for (number, field) in fields.iter().enumerate() {
            for (side, first) in [(Side::Inside, 0), (Side::Outside, of.form.rows())] {
                let components = if field.has_flux { field.components.len() } else { 0 };
                rows.extend((0..components).filter_map(|component| {
                    let place = place(first + form.row(number, component))?;
                    Some((place, side, field.first_trace + component))
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
            false => tested(&of.form, elements, integral),
        };
        let integrals = 0..of.form.integrals.len();
        let mut all: Vec<(usize, Part)> = integrals.clone().flat_map(tested).collect();
        all.sort_unstable();
        all.dedup();
        let place = |number: &(usize, Part)| all.binary_search(number).ok();
        let places = integrals.map(|integral| tested(integral).iter().filter_map(place).collect());
        let value = |row: usize| place(&(row, Part::Value));
        let once = value(of.one);
        let asked = FluxSelection { numbers: all.len(), places: places.collect(), once };
        let mut traced = 0;
        let fields = form.fields.iter().zip(&of.fields).enumerate();
        let fields = fields.map(|(number, (field, shares))| {
            let EstimatorComponents { has_flux, energy, coefficient, slope, ref tangent } = *shares;
            let (element, count) = (elements.fields[number], field.shape.components());
            let components = (0..count).map(|component| {
                let row = form.row(number, component);
                let axes = (0..form.dim).map(|axis| place(&(row, Part::Derivative(axis))));
                let gradient = if has_flux { axes.collect() } else { None };
                ComponentIntegrands { value: value(row), gradient }
            });
            let first_trace = traced;
            traced += if has_flux { count } else { 0 };
            FieldValues {
                name: field.name.clone(),
                degree: element.degree(),
                continuous: element.is_continuous(),
                has_flux,
                components: components.collect(),
                first_trace,
                energy: energy.map(value),
                coefficient: value(coefficient),
                slope: value(slope),
                tangent: tangent.clone().filter_map(value).collect(),
            }
        });
        let fields: Vec<FieldValues> = fields.collect();
        let one = once.unwrap_or(0);
        let of_pairs = (0..of.form.integrals.len()).map(|integral| {
            is_interior(integral)
                .then(|| PairIntegrands::new(form, of, &fields, (elements, integral)))
        });
        let of_pairs = of_pairs.collect();
        Self { asked, one, fields, traced, of_pairs }
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
        }
        for (own, &times) in numbers.chunks_mut(points).zip(times.iter().cycle()) {
            for _ in 0..times {
                own.iter_mut().for_each(|number| *number *= factor);
            }
        }
    }
}
