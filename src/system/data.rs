//! Input of a [`System`] apart from its state: new values of auxiliary data, and a right-hand side.

use super::value::{ValueWriter, writing};
use super::{Data, DataValues, System, Value};
use crate::error::index;
use crate::{Error, Vector};
use runtime::problem::{RunError, datum};
use runtime::space::discretisation::AuxValues;
use std::sync::Arc;

impl System {
    /// Replaces the values of auxiliary data by those of a function of position, as [`Setup::aux`](crate::Setup::aux)
    /// does: at nodes, at the centre of each cell, or at each quadrature point. Nothing is compiled. The Jacobian
    /// changes at the next [`System::linearise`].
    ///
    /// ```
    /// use weakform::{ALL, at, mesh, weak_form};
    ///
    /// weak_form! {
    ///     form source { field u: scalar; aux f: scalar; f0[u] = -f; f1[u] = grad(u); }
    /// }
    ///
    /// let setup = source::form().on(mesh("box(dim: 2, cells: 4)")?).data(source::Aux { f: at(|_| 1.0) });
    /// let mut system = setup.dirichlet(source::field::u, ALL, |_| 0.0).build()?;
    /// let mut u = system.initial();
    /// system.solve(&mut u)?;
    /// let before = u.norm();
    /// system.set_aux(source::aux::f, |_| 2.0)?;
    /// system.solve(&mut u)?;
    /// assert!((u.norm() - 2.0 * before).abs() < 1e-9);
    /// # Ok::<(), weakform::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// There is no such data, or a value has another number of components or is not finite; nothing is replaced then.
    pub fn set_aux<V: Value>(
        &mut self,
        name: &str,
        value: impl Fn(&[f64; 3]) -> V + Send + Sync + 'static,
    ) -> Result<(), Error> {
        self.replace_aux(&[(self.aux(name)?, writing(name, value))])
    }

    /// Replaces all auxiliary data, in the struct that [`weak_form!`](crate::weak_form) generates for it.
    ///
    /// # Errors
    ///
    /// See [`System::set_aux`]; either all data is replaced or none.
    pub fn set_data(&mut self, data: impl Data) -> Result<(), Error> {
        let mut given = Vec::new();
        data.visit(&mut |name, DataValues(value)| given.push((name, value)));
        let place = |(name, value)| Ok((self.aux(name)?, value));
        let given: Vec<(usize, ValueWriter)> =
            given.into_iter().map(place).collect::<Result<_, Error>>()?;
        self.replace_aux(&given)
    }

    /// Replaces the values of auxiliary data by numbers: all components of each of [`System::aux_points`] in turn.
    ///
    /// # Errors
    ///
    /// There is no such data, the number of values is wrong, or one is not finite; nothing is replaced then.
    pub fn set_aux_values(&mut self, name: &str, values: &[f64]) -> Result<(), Error> {
        let index = self.aux(name)?;
        let expected = self.context.on.aux[index].numbers().len();
        if values.len() != expected {
            let (name, found) = (name.to_owned(), values.len());
            return Err(Error::Numbers { name, expected, found });
        }
        let (form, elements, on) = (self.context.form(), &self.context.elements, &self.context.on);
        let new = datum::<Error>(form, elements, on, index, |_, _| Ok(Some(values.to_vec())))?;
        self.put_aux([(index, new)])
    }

    /// Returns the points of auxiliary data: nodes, the centre of each cell of [`System::mesh`], or cell by cell the
    /// quadrature points.
    ///
    /// # Errors
    ///
    /// There is no such data.
    pub fn aux_points(&self, name: &str) -> Result<Vec<[f64; 3]>, Error> {
        let index = self.aux(name)?;
        let mut places = Vec::new();
        datum::<Error>(
            self.context.form(),
            &self.context.elements,
            &self.context.on,
            index,
            |points, _| {
                places = points.to_vec();
                Ok(Some(Vec::new()))
            },
        )?;
        Ok(places)
    }

    /// Returns the current values of auxiliary data, in the order of [`System::set_aux_values`].
    ///
    /// # Errors
    ///
    /// There is no such data.
    pub fn aux_values(&self, name: &str) -> Result<&[f64], Error> {
        Ok(self.context.on.aux[self.aux(name)?].numbers())
    }

    /// Sets an additional right-hand side l, so that the equations are R(u) = l: entry i is the load on the basis
    /// function φ_i, ∫ g φ_i dx for a density g, or the force of a point load. Constrained entries of l do not affect a
    /// solve; they count in reactions.
    ///
    /// ```
    /// use weakform::{ALL, mesh, weak_form};
    ///
    /// weak_form! { form laplace { field u: scalar; f1[u] = grad(u); } }
    /// weak_form! { form load { field u: scalar; f0[u] = 4; } }
    ///
    /// let square = || mesh("box(dim: 2, cells: 8)");
    /// let exact = |x: &[f64; 3]| -x[0] * x[0] - x[1] * x[1];
    /// let mut system = laplace::form().on(square()?).degree(2).dirichlet(laplace::field::u, ALL, exact).build()?;
    /// // l_i = ∫ 4 φ_i dx, as the residual of a form that has nothing else.
    /// let mut l = system.vector();
    /// let loading = load::form().on(square()?).degree(2).build()?;
    /// loading.residual(&loading.vector(), &mut l)?;
    /// system.set_load(&l)?;
    /// let mut u = system.initial();
    /// system.solve(&mut u)?;
    /// assert!(system.error_l2(laplace::field::u, &u, exact)? < 1e-8);
    /// # Ok::<(), weakform::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// The vector does not fit, or an entry is not finite; nothing is replaced then.
    pub fn set_load(&mut self, load: &Vector) -> Result<(), Error> {
        self.fits(load)?;
        let all = load.to_vec();
        if let Some(value) = all.iter().copied().find(|value| !value.is_finite()) {
            return Err(Error::LoadNotFinite { value });
        }
        let mut free = all.clone();
        for (field, constraints) in self.constraints.iter().enumerate() {
            let own = &mut free[self.context.on.dofs_of(field)];
            constraints.iter().for_each(|(unknown, _)| own[unknown] = 0.0);
        }
        self.operator.set_load(&free);
        self.load = Some(all);
        Ok(())
    }

    /// Removes the additional right-hand side, so that the equations are R(u) = 0.
    pub fn clear_load(&mut self) {
        self.operator.clear_load();
        self.load = None;
    }

    fn replace_aux(&mut self, given: &[(usize, ValueWriter)]) -> Result<(), Error> {
        let mut new = Vec::with_capacity(given.len());
        for (index, write) in given {
            let count = self.context.form().aux[*index].shape.components();
            let values = datum(
                self.context.form(),
                &self.context.elements,
                &self.context.on,
                *index,
                |points, _| {
                    let mut values = vec![0.0; points.len() * count];
                    write(points, &mut values)?;
                    Ok::<_, Error>(Some(values))
                },
            )?;
            new.push((*index, values));
        }
        self.put_aux(new)
    }

    /// Replaces some of the data, or none if the operator rejects it.
    pub(super) fn put_aux(
        &mut self,
        new: impl IntoIterator<Item = (usize, AuxValues)>,
    ) -> Result<(), Error> {
        let mut all = self.context.on.aux.clone();
        new.into_iter().for_each(|(index, values)| all[index] = values);
        if let Err(error) = self.operator.set_aux(&all) {
            // The error is reported, even if the old values cannot be restored.
            let _ = self.operator.set_aux(&self.context.on.aux);
            return Err(RunError::from(error).into());
        }
        Arc::make_mut(&mut self.context.on).aux = all;
        Ok(())
    }

    fn aux(&self, name: &str) -> Result<usize, Error> {
        index("aux", name, self.context.form().own_aux().iter().map(|aux| aux.name.as_str()))
    }
}
