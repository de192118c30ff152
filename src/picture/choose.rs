//! Selection of the field, its component and the deformation: names → a view.

use fem_dsl::point::{Location, PointForm, Shape};
use runtime::files::output::surface::{Quantity, ShownField, View, Warp};
use runtime::files::output::{Output, PointField};

use super::{PictureError, PictureOptions};

/// The selection.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Choice {
    field: String,
    quantity: Quantity,
    /// The label of the colour bar.
    pub(super) label: String,
    warp: Option<f64>,
    dim: usize,
}

impl Choice {
    /// Resolves the options.
    pub(super) fn new(form: &PointForm, options: &PictureOptions) -> Result<Self, PictureError> {
        let known = drawable(form);
        let asked = options.field.as_deref().map(str::trim);
        let first = || known.first().map_or_else(String::new, |(name, _)| name.clone());
        let asked = asked.map_or_else(first, str::to_owned);
        let (name, indices) = match asked.split_once('[') {
            Some((name, rest)) => (name.trim(), Some(rest)),
            None => (asked.as_str(), None),
        };
        let Some((field, shape)) = known.iter().find(|(known, _)| known == name) else {
            let known = known.iter().map(|(name, _)| name.clone()).collect();
            return Err(PictureError::Field { name: name.to_owned(), known });
        };
        let (field, shape) = (field.as_str(), *shape);
        let quantity = match indices {
            None if shape == Shape::Scalar => Quantity::Component(0),
            None => Quantity::Magnitude,
            Some(indices) => {
                let number = component(indices, shape);
                Quantity::Component(number.ok_or_else(|| wrong(&asked, field, shape))?)
            }
        };
        let label = match (quantity, shape) {
            (Quantity::Magnitude, _) => format!("|{field}|"),
            (_, Shape::Scalar) => field.to_owned(),
            (Quantity::Component(c), Shape::Vector(_)) => format!("{field}[{c}]"),
            (Quantity::Component(c), Shape::Matrix(_, n)) => {
                format!("{field}[{}, {}]", c / n, c % n)
            }
        };
        let choice =
            Self { field: field.to_owned(), quantity, label, warp: options.warp, dim: form.dim };
        match options.warp {
            Some(factor) if !factor.is_finite() => Err(PictureError::Factor(factor)),
            Some(_) if !known.iter().any(|(_, shape)| *shape == Shape::Vector(form.dim)) => {
                Err(PictureError::Rigid(form.dim))
            }
            _ => Ok(choice),
        }
    }

    /// Returns the view of the output data, and the largest absolute value of its field.
    pub(super) fn view<'a>(&self, output: &Output<'a>) -> Result<(View<'a>, f64), PictureError> {
        let named = |field: &&PointField<'_>| field.name == self.field;
        let points = output.point_fields.iter().find(named).copied();
        let cells = output.cell_fields.iter().find(|field| field.name == self.field).copied();
        let shown = match (points, cells) {
            (Some(field), _) => ShownField::Points(field),
            (_, Some(field)) => ShownField::Cells(field),
            (None, None) => {
                let known = output.point_fields.iter().map(|field| field.name);
                let known = known.chain(output.cell_fields.iter().map(|field| field.name));
                let known = known.map(str::to_owned).collect();
                return Err(PictureError::Field { name: self.field.clone(), known });
            }
        };
        let warp = self.warp.map(|factor| self.displacement(output, points, factor)).transpose()?;
        let values = match shown {
            ShownField::Points(field) => field.values,
            ShownField::Cells(field) => field.values,
        };
        let finite = values.iter().map(|value| value.abs()).filter(|value| value.is_finite());
        let scale = finite.fold(0.0, f64::max);
        Ok((View { mesh: output.mesh, shown, quantity: self.quantity, warp }, scale))
    }

    /// Returns the drawn field, if it is a displacement, else the first displacement.
    fn displacement<'a>(
        &self,
        output: &Output<'a>,
        shown: Option<PointField<'a>>,
        factor: f64,
    ) -> Result<Warp<'a>, PictureError> {
        let fields = shown.into_iter().chain(output.point_fields.iter().copied());
        let mut fields = fields.filter(|field| field.shape == Shape::Vector(self.dim));
        let field = fields.next().ok_or(PictureError::Rigid(self.dim))?;
        Ok(Warp { field, factor })
    }
}

/// Returns everything that has a value in each cell: fields, data, and the curl or divergence of fields in H(curl) and
/// H(div).
fn drawable(form: &PointForm) -> Vec<(String, Shape)> {
    let fields = form.fields.iter().map(|field| (field.name.clone(), field.shape));
    let aux = form.aux.iter().filter(|aux| !matches!(aux.location, Location::Points));
    let aux = aux.map(|aux| (aux.name.clone(), aux.shape));
    let derivatives = form.fields.iter().filter(|field| field.space.is_piola()).map(|field| {
        let shape = match field.space.exterior_components(form.dim) {
            1 => Shape::Scalar,
            several => Shape::Vector(several),
        };
        (format!("{}({})", field.space.derivative(), field.name), shape)
    });
    fields.chain(aux).chain(derivatives).collect()
}

/// Parses the index of a component, `0]` or `0, 1]`.
fn component(indices: &str, shape: Shape) -> Option<usize> {
    let inside = indices.trim_end().strip_suffix(']')?;
    let indices = inside.split(',').map(|index| index.trim().parse().ok());
    let indices: Vec<usize> = indices.collect::<Option<_>>()?;
    match (&indices[..], shape) {
        (&[0], Shape::Scalar) => Some(0),
        (&[i], Shape::Vector(n)) if i < n => Some(i),
        (&[i, j], Shape::Matrix(m, n)) if i < m && j < n => Some(i * n + j),
        _ => None,
    }
}

fn wrong(name: &str, field: &str, shape: Shape) -> PictureError {
    let (shape, help) = match shape {
        Shape::Scalar => ("a scalar".to_owned(), format!("`{field}`")),
        Shape::Vector(n) => {
            let last = n.saturating_sub(1);
            let help = format!("`{field}[0]` to `{field}[{last}]`, or `{field}` for its magnitude");
            (format!("a vector of {n}"), help)
        }
        Shape::Matrix(m, n) => {
            let last = (m.saturating_sub(1), n.saturating_sub(1));
            let help = format!(
                "`{field}[0, 0]` to `{field}[{}, {}]`, or `{field}` for its magnitude",
                last.0, last.1
            );
            (format!("a {m}×{n} matrix"), help)
        }
    };
    PictureError::Component { name: name.to_owned(), field: field.to_owned(), shape, help }
}
