//! Functionals of a state of a [`System`]: errors, values at points, and everything that the language can report.

use super::value::checked;
use super::{FieldName, System, TypedField, Value};
use crate::{Error, ReportValue, Vector, threads};
use fem_dsl::problem::Reports;
use runtime::mesh::locate::{LocatedPoint, Locator};
use runtime::operator::functional::{QuadratureValues, errors_of, field_at, measuring_rule};
use runtime::problem::{
    DataError, EvaluationState, ReportCache, RunError, at_quadrature_points, report,
};
use std::sync::OnceLock;

/// Writes known values at a point.
type PointFunction<'a> = &'a (dyn Fn(&[f64; 3], &mut [f64]) + Sync);

/// A functional of states, as a `report` of the language states it: see [`System::functional`].
pub struct Functional {
    reports: Reports,
    cache: ReportCache,
}

impl System {
    /// Computes ‖u − exact‖ in L2, (∫ |u − exact|² dx)^½.
    ///
    /// # Errors
    ///
    /// There is no such field, or it has another number of components, or the vector does not fit.
    pub fn error_l2<V: Value>(
        &self,
        field: impl TypedField<V>,
        u: &Vector,
        exact: impl Fn(&[f64; 3]) -> V + Sync,
    ) -> Result<f64, Error> {
        let wrong = OnceLock::new();
        let errors = {
            let exact = checked(field.name(), exact, &wrong);
            self.errors(field.name(), u, &exact, None)?
        };
        wrong.into_inner().map_or(Ok(errors.0), Err)
    }

    /// Computes ‖u − exact‖ in H1, (∫ |u − exact|² + |∇u − gradient|² dx)^½. The gradient has the derivatives of each
    /// component in all directions: `[f64; DIM]` of a scalar, `[[f64; DIM]; N]` with ∂u_i/∂x_j at `[i][j]` of a vector.
    ///
    /// ```
    /// use weakform::{ALL, mesh, weak_form};
    ///
    /// weak_form! { form laplace { field u: scalar; f1[u] = grad(u); } }
    ///
    /// let setup = laplace::form().on(mesh("box(dim: 2, cells: 4)")?).degree(2);
    /// let mut system = setup.dirichlet(laplace::field::u, ALL, |x| x[0] * x[1]).build()?;
    /// let mut u = system.initial();
    /// system.solve(&mut u)?;
    /// let error = system.error_h1(laplace::field::u, &u, |x| x[0] * x[1], |x| [x[1], x[0]])?;
    /// assert!(error < 1e-8);
    /// # Ok::<(), weakform::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// There is no such field, or it or its gradient has another number of components, or the vector does not fit.
    pub fn error_h1<V: Value, G: Value>(
        &self,
        field: impl TypedField<V>,
        u: &Vector,
        exact: impl Fn(&[f64; 3]) -> V + Sync,
        gradient: impl Fn(&[f64; 3]) -> G + Sync,
    ) -> Result<f64, Error> {
        let (wrong, name) = (OnceLock::new(), format!("grad({})", field.name()));
        let errors = {
            let exact = checked(field.name(), exact, &wrong);
            let gradient = checked(&name, gradient, &wrong);
            self.errors(field.name(), u, &exact, Some(&gradient))?
        };
        wrong.into_inner().map_or(Ok(errors.1), Err)
    }

    /// Returns the values of a field at points of the mesh, point by point. A point beyond the mesh approximation of a
    /// curved boundary has the value of its nearest mesh point.
    ///
    /// ```
    /// use weakform::{mesh, weak_form};
    ///
    /// weak_form! { form laplace { field u: scalar; f1[u] = grad(u); } }
    ///
    /// let system = laplace::form().on(mesh("box(dim: 2, cells: 4)")?).degree(2).build()?;
    /// let u = system.interpolate(laplace::field::u, |x| x[0] * x[1])?;
    /// let places = [[0.3, 0.7, 0.0], [0.5, 0.5, 0.0]];
    /// let values = system.values_at(laplace::field::u, &u, &places)?;
    /// assert!((values[0] - 0.21).abs() < 1e-14 && (values[1] - 0.25).abs() < 1e-14);
    /// let gradients = system.gradients_at(laplace::field::u, &u, &places)?;
    /// assert!((gradients[0] - 0.7).abs() < 1e-13 && (gradients[1] - 0.3).abs() < 1e-13);
    /// # Ok::<(), weakform::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// There is no such field, the vector does not fit, or a point lies outside of the mesh.
    pub fn values_at(
        &self,
        field: impl FieldName,
        u: &Vector,
        points: &[[f64; 3]],
    ) -> Result<Vec<f64>, Error> {
        let found = self.field_at(field.name(), u, points)?;
        Ok(found.into_iter().flat_map(|(values, _)| values).collect())
    }

    /// Returns the gradients of a field at points of the mesh, ∂u_i/∂x_j at `[point][i][j]`. On the interface of cells
    /// it is that of one of them.
    ///
    /// # Errors
    ///
    /// See [`System::values_at`].
    pub fn gradients_at(
        &self,
        field: impl FieldName,
        u: &Vector,
        points: &[[f64; 3]],
    ) -> Result<Vec<f64>, Error> {
        let found = self.field_at(field.name(), u, points)?;
        Ok(found.into_iter().flat_map(|(_, gradients)| gradients).collect())
    }

    /// Evaluates a `report` of the language at the state `u`: arithmetic on integrals over the mesh, over cells or
    /// facets with a tag (with the normal n), extrema, norms, values at points, reactions, line plots. All names of the
    /// form are available.
    ///
    /// ```
    /// use weakform::{ReportValue, mesh, weak_form};
    ///
    /// weak_form! { form heat { field u: scalar; param kappa = 3; f1[u] = kappa * grad(u); } }
    ///
    /// let setup = heat::form().on(mesh("box(dim: 2, cells: 4)")?);
    /// let setup = setup.dirichlet(heat::field::u, "x0", |_| 0.0).dirichlet(heat::field::u, "x1", |_| 1.0);
    /// let mut system = setup.build()?;
    /// let mut u = system.initial();
    /// system.solve(&mut u)?;
    /// let number = |text: &str| Ok::<_, weakform::Error>(system.measure(&u, text)?.number().expect("a number"));
    /// assert!((number("integral(kappa * dot(grad(u), n), on: \"x1\")")? - 3.0).abs() < 1e-9);
    /// assert!((number("integral(u) / integral(1)")? - 0.5).abs() < 1e-9);
    /// assert!((number("reaction(u, on: \"x1\")")? - 3.0).abs() < 1e-9);
    /// let line = system.measure(&u, "line(u, from: [0, 0.5], to: [1, 0.5], points: 3)")?;
    /// let ReportValue::Line(_, line) = line else { unreachable!("a line") };
    /// assert_eq!(line.len(), 3);
    /// # Ok::<(), weakform::Error>(())
    /// ```
    ///
    /// The text is checked, and kernels are generated, at each call: see [`System::functional`] for repeated use.
    ///
    /// # Errors
    ///
    /// Errors in the text, a vector that does not fit, an unknown tag, or unsupported kernels. A point outside of the
    /// mesh has the value NaN, with a warning.
    pub fn measure(&self, u: &Vector, text: &str) -> Result<ReportValue, Error> {
        self.evaluate(&mut self.functional(text)?, u)
    }

    /// Checks the text of a `report` once, for [`System::evaluate`] at many states.
    ///
    /// ```
    /// use weakform::{mesh, weak_form};
    ///
    /// weak_form! { form heat { field u: scalar; f1[u] = grad(u); } }
    ///
    /// let system = heat::form().on(mesh("box(dim: 2, cells: 4)")?).build()?;
    /// let mut mean = system.functional("integral(u) / integral(1)")?;
    /// for value in [1.0, 2.0, 3.0] {
    ///     let u = system.interpolate("u", |_| value)?;
    ///     let found = system.evaluate(&mut mean, &u)?.number().expect("a number");
    ///     assert!((found - value).abs() < 1e-12);
    /// }
    /// # Ok::<(), weakform::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// Errors in the text.
    pub fn functional(&self, text: &str) -> Result<Functional, Error> {
        let reports = self.source.reports(self.context.form().dim, text)?;
        Ok(Functional { reports, cache: ReportCache::new(self.operator.table_cache()) })
    }

    /// Evaluates a functional at the state `u`. Its kernels and tables are made at the first call, and again after the mesh
    /// or the data has changed.
    ///
    /// # Errors
    ///
    /// As for [`System::measure`].
    pub fn evaluate(&self, functional: &mut Functional, u: &Vector) -> Result<ReportValue, Error> {
        self.fits(u)?;
        let numbers = u.to_vec();
        let (vector, load) = (Some(u), self.load.as_deref());
        let of = EvaluationState { vector, load, ..EvaluationState::of(&self.context, &numbers) };
        let Functional { reports, cache } = functional;
        let (outcomes, notes) =
            threads::roomy(|| report(reports, of, &self.context.platform, cache))?;
        notes.iter().for_each(|note| tracing::warn!("{note}"));
        let found = outcomes.into_iter().next().map(|outcome| outcome.value);
        Ok(found.unwrap_or_else(|| unreachable!("a report that was checked")))
    }

    /// Evaluates an expression of the language at the quadrature points of all cells, with the rule of the form.
    ///
    /// ```
    /// use weakform::{mesh, weak_form};
    ///
    /// weak_form! { form heat { field u: scalar; param kappa = 3; f1[u] = kappa * grad(u); } }
    ///
    /// let system = heat::form().on(mesh("box(dim: 2, cells: 4)")?).degree(2).build()?;
    /// let u = system.interpolate("u", |x| x[0] * x[1])?;
    /// let flux = system.at_quadrature_points(&u, "kappa * grad(u)")?;
    /// // ∫ 3 y dx, from the first component.
    /// let sum: f64 = flux.weights.iter().zip(flux.values.chunks(2)).map(|(w, flux)| w * flux[0]).sum();
    /// assert!((sum - 1.5).abs() < 1e-12);
    /// assert!((flux.weights.iter().sum::<f64>() - 1.0).abs() < 1e-12);
    /// # Ok::<(), weakform::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// Errors in the text, a vector that does not fit.
    pub fn at_quadrature_points(&self, u: &Vector, text: &str) -> Result<QuadratureValues, Error> {
        self.fits(u)?;
        let dim = self.context.form().dim;
        let (form, shape) = self.source.pointwise(dim, text)?;
        let numbers = u.to_vec();
        let of = EvaluationState::of(&self.context, &numbers);
        let count = shape.components();
        let Some(form) = form.filter(|form| !form.integrals.is_empty()) else {
            let one = self.at_quadrature_points(u, "1")?;
            let values = vec![0.0; one.points.len() * count];
            return Ok(QuadratureValues { values, ..one });
        };
        Ok(threads::roomy(|| at_quadrature_points(&form, count, of))?)
    }

    fn errors(
        &self,
        field: &str,
        u: &Vector,
        exact: PointFunction<'_>,
        gradient: Option<PointFunction<'_>>,
    ) -> Result<(f64, f64), Error> {
        let index = self.field(field)?;
        self.fits(u)?;
        let rule = measuring_rule(&self.context.on, self.context.elements.rule);
        let found = errors_of(&self.context.on, (index, rule), &u.to_vec(), exact, gradient);
        let (l2, h1) = found.map_err(|error| Error::Run(error.into()))?;
        match [l2, h1].into_iter().find(|error| !error.is_finite()) {
            Some(value) => {
                let field = field.to_owned();
                Err(RunError::from(DataError::ExactNotFinite { field, value }).into())
            }
            None => Ok((l2, h1)),
        }
    }

    fn field_at(
        &self,
        field: &str,
        u: &Vector,
        points: &[[f64; 3]],
    ) -> Result<Vec<(Vec<f64>, Vec<f64>)>, Error> {
        let index = self.field(field)?;
        self.fits(u)?;
        let locator = Locator::new(&self.context.on.mesh).map_err(RunError::from)?;
        let find = |point: &[f64; 3]| locator.find(point).ok_or(Error::Outside { point: *point });
        let located: Vec<LocatedPoint> = points.iter().map(find).collect::<Result<_, _>>()?;
        Ok(field_at(&self.context.on, index, &u.to_vec(), &located).map_err(RunError::from)?)
    }
}
