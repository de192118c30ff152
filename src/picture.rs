//! A solved problem → a picture, PNG or SVG, without a display and without fonts or libraries of the system.
//!
//! ```text
//! fields on a mesh → triangles with values (runtime::files::output::surface) → scene → page → PNG or SVG
//! ```
//!
//! A three-dimensional mesh is seen from the front, its boundary in the colours of the field; a plane mesh, or a
//! [`Slice`], from above. The colour map is viridis. The field is drawn pixel by pixel, from the nearest triangle;
//! lines and letters of an SVG file stay vectors. A field on a line is a curve. [`Chart`]s of measurements use the same drawing primitives.

mod animation;
mod camera;
mod chart;
mod choose;
mod colour;
mod page;
mod raster;
mod scene;
mod ticks;

pub use animation::Animation;
pub use chart::{Axis, Chart, Scale, Series, write_charts};
pub use runtime::files::output::surface::SurfaceError;

use std::fmt;
use std::path::Path;
use std::str::FromStr;

use fem_dsl::diagnostic::nearest;
use fem_dsl::point::PointForm;
use runtime::files::output::surface::{Plane, View, curves, cut, outside};
use runtime::files::output::{OutputError, write_bytes, write_text};
use runtime::mesh::Mesh;
use runtime::space::discretisation::Discretisation;

use crate::output::with_output;
use choose::Choice;
use page::{Page, PageError};
use scene::{Scene, Viewpoint};

/// Approximate number of triangles of a picture: more do not improve it.
const MOST: usize = 1_000_000;
/// Approximate number of points of a curve.
const MOST_OF_LINE: usize = 100_000;
/// The same for a slice, whose triangles cost more.
const MOST_OF_SLICE: usize = 250_000;

/// Options of a picture of a solution.
///
/// ```
/// use weakform::picture::PictureOptions;
///
/// let slice = Some("z=0.5".parse()?);
/// let options = PictureOptions { slice, field: Some("u[0]".into()), ..Default::default() };
/// # Ok::<(), String>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PictureOptions {
    /// The field or data, `u` (the magnitude of a vector or matrix), or a component, `u[0]`; by default the first
    /// field.
    pub field: Option<String>,
    /// The plane that is shown instead of the boundary.
    pub slice: Option<Slice>,
    /// The factor by which points are displaced along the field, if it is a vector of the space, or else along the
    /// first such field.
    pub warp: Option<f64>,
    /// Width and height in pixels, each from [`SIZES`]; chosen automatically by default.
    pub size: Option<(u32, u32)>,
    /// The values of the first and the last colour, or of the ends of a curve's axis; by default those of the picture.
    pub range: Option<(f64, f64)>,
}

/// Range of the width and the height of a picture, in pixels.
pub const SIZES: std::ops::RangeInclusive<u32> = 200..=10_000;

/// A plane perpendicular to an axis: `z=0.5` as text.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Slice {
    /// The index of the axis, 0 to 2.
    pub axis: usize,
    /// The coordinate on the axis.
    pub at: f64,
}

impl FromStr for Slice {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let expected = || format!("`{text}` is no plane; expected x=0.5, y=0.5 or z=0.5");
        let (axis, at) = text.split_once('=').ok_or_else(expected)?;
        let axis = match axis.trim() {
            "x" | "x[0]" => 0,
            "y" | "x[1]" => 1,
            "z" | "x[2]" => 2,
            _ => return Err(expected()),
        };
        let at = at.trim().parse().ok().filter(|at: &f64| at.is_finite()).ok_or_else(expected)?;
        Ok(Self { axis, at })
    }
}

impl fmt::Display for Slice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} = {}", AXES[self.axis.min(2)], self.at)
    }
}

/// The names of the axes.
const AXES: [&str; 3] = ["x", "y", "z"];

/// The reason for a missing picture.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PictureError {
    /// A file name with another extension.
    #[error("a picture is PNG or SVG, by the end of its name\nhelp: name it {}", .0.with_extension("png").display())]
    Ending(std::path::PathBuf),
    /// A file name of an animation with another extension.
    #[error("an animation is an animated PNG, by the end of its name\nhelp: name it {}; `ffmpeg -i` makes other formats of it", .0.with_extension("png").display())]
    Animated(std::path::PathBuf),
    /// A range without length.
    #[error("there is no range from {0} to {1}\nhelp: give it two numbers, the smaller one first")]
    Range(f64, f64),
    /// No such field.
    #[error("there is no field `{name}` to draw\nhelp: {}", instead(name, known))]
    Field {
        /// The requested name.
        name: String,
        /// All available fields.
        known: Vec<String>,
    },
    /// No such component.
    #[error("`{name}` names no number of `{field}`, which is {shape}\nhelp: {help}")]
    Component {
        /// The requested name.
        name: String,
        /// The field.
        field: String,
        /// Its shape.
        shape: String,
        /// The available components.
        help: String,
    },
    /// A slice of a mesh in one or two dimensions.
    #[error("only a body has a slice {0}\nhelp: leave the slice out; all of the mesh is drawn")]
    Flat(Slice),
    /// A plane that does not intersect the mesh.
    #[error("the plane {slice} cuts no cell of the mesh\nhelp: there {} goes from {low} to {high}; take a value between", AXES[slice.axis.min(2)])]
    Beside {
        /// The plane.
        slice: Slice,
        /// Smallest coordinate of the mesh.
        low: f64,
        /// Largest coordinate of the mesh.
        high: f64,
    },
    /// No vector field for the deformation.
    #[error(
        "nothing deforms the mesh: there is no vector field of {0} components\nhelp: leave the deformation out"
    )]
    Rigid(usize),
    /// A factor that is not finite.
    #[error("a deformation of {0} times the field cannot be drawn\nhelp: give it a finite factor")]
    Factor(f64),
    /// A size out of range.
    #[error("a picture of {0} × {1} pixels cannot be drawn\nhelp: take {low} to {high} for each", low = SIZES.start(), high = SIZES.end())]
    Size(u32, u32),
    /// A field that does not fit its mesh.
    #[error(transparent)]
    Surface(#[from] SurfaceError),
    /// The picture cannot be written.
    #[error(transparent)]
    Output(#[from] OutputError),
    /// The picture cannot be drawn.
    #[error("the picture cannot be drawn: {0}")]
    Drawing(String),
}

impl From<PageError> for PictureError {
    fn from(error: PageError) -> Self {
        Self::Drawing(error.to_string())
    }
}

fn instead(name: &str, known: &[String]) -> String {
    match nearest(name, known.iter().map(String::as_str)) {
        Some(near) => format!("did you mean `{near}`?"),
        None => format!("there are {}", known.join(", ")),
    }
}

/// Checks that a form's fields on a mesh can be drawn with these options, before hours of work.
///
/// # Errors
///
/// There is no such field, component or vector field, or the plane does not intersect the mesh.
pub fn check(form: &PointForm, mesh: &Mesh, options: &PictureOptions) -> Result<(), PictureError> {
    Choice::new(form, options)?;
    if let Some((width, height)) = options.size
        && !(SIZES.contains(&width) && SIZES.contains(&height))
    {
        return Err(PictureError::Size(width, height));
    }
    if let Some((low, high)) = options.range
        && !(low < high && low.is_finite() && high.is_finite())
    {
        return Err(PictureError::Range(low, high));
    }
    let Some(slice) = options.slice else { return Ok(()) };
    if mesh.dim() < 3 {
        return Err(PictureError::Flat(slice));
    }
    let (low, high) = ends(mesh, slice.axis);
    // A curved cell may extend beyond its nodes, which only the intersection detects.
    let beyond = if mesh.order() > 1 { 0.1 * (high - low) } else { 0.0 };
    match (low - beyond..=high + beyond).contains(&slice.at) {
        true => Ok(()),
        false => Err(PictureError::Beside { slice, low, high }),
    }
}

/// Returns the extent of a mesh along an axis.
fn ends(mesh: &Mesh, axis: usize) -> (f64, f64) {
    let along = mesh.points().iter().map(|point| point[axis.min(2)]);
    along.fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), x| (low.min(x), high.max(x)))
}

/// Draws fields on a mesh and writes the file: PNG for the extension `.png`, SVG for `.svg`. The DoFs of the fields
/// follow one another in `u`. The title begins with `name`.
///
/// # Errors
///
/// Errors of [`check`], another extension, or a file that cannot be written; no partial file is left.
pub fn write(
    path: &Path,
    name: &str,
    form: &PointForm,
    on: &Discretisation,
    u: &[f64],
    options: &PictureOptions,
) -> Result<PictureContents, PictureError> {
    let format = Format::of(path)?;
    let (page, scale, range) = page(name, form, on, u, options)?;
    save(path, format, &page, scale)?;
    Ok(PictureContents { range })
}

/// The contents of a picture.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PictureContents {
    /// The smallest and the largest value, equal if all values agree up to rounding; `None` if no value is finite.
    pub range: Option<(f64, f64)>,
}

/// The range of values of a picture.
type ValueRange = Option<(f64, f64)>;

/// Returns the picture before output, its pixels per unit, and its range.
fn page(
    name: &str,
    form: &PointForm,
    on: &Discretisation,
    u: &[f64],
    options: &PictureOptions,
) -> Result<(Page, f64, ValueRange), PictureError> {
    check(form, &on.mesh, options)?;
    let choice = Choice::new(form, options)?;
    with_output(form, on, u, |output| {
        let (view, scale) = choice.view(output)?;
        let deformed = options.warp.map(|factor| format!(", deformed {}×", factor_text(factor)));
        let deformed = deformed.unwrap_or_default();
        if on.mesh.dim() == 1 {
            let title = format!("{name}: {}{deformed}", choice.label);
            return of_line(&view, &title, choice.label, options);
        }
        let (triangles, place, seen) = match options.slice {
            None => {
                let (of, seen) = match on.mesh.dim() {
                    3 => (" on the boundary", Viewpoint::Body),
                    _ => ("", Viewpoint::Along(2)),
                };
                (outside(&view, MOST)?, of.to_owned(), seen)
            }
            Some(slice) => {
                let mut normal = [0.0; 3];
                normal[slice.axis] = 1.0;
                let triangles = cut(&view, Plane { normal, offset: slice.at }, MOST_OF_SLICE)?;
                if triangles.corners.is_empty() {
                    let (low, high) = ends(&on.mesh, slice.axis);
                    return Err(PictureError::Beside { slice, low, high });
                }
                (triangles, format!(" at {slice}"), Viewpoint::Along(slice.axis))
            }
        };
        let label = choice.label;
        let title = format!("{name}: {label}{place}{deformed}");
        let size = options.size;
        let (page, range) = scene::draw(&Scene {
            triangles,
            view: seen,
            title,
            label,
            scale,
            size,
            fixed: options.range,
        });
        Ok((page, 1.0, range))
    })
}

/// Draws a field on a line as a curve, with gaps at its jumps.
fn of_line(
    view: &View<'_>,
    title: &str,
    label: String,
    options: &PictureOptions,
) -> Result<(Page, f64, ValueRange), PictureError> {
    let chains = curves(view, MOST_OF_LINE)?;
    let finite = chains.iter().flatten().map(|point| point.1).filter(|value| value.is_finite());
    let ends = (f64::INFINITY, f64::NEG_INFINITY);
    let (low, high) = finite.fold(ends, |(low, high), v| (low.min(v), high.max(v)));
    let points = chains.join(&(f64::NAN, f64::NAN));
    let axis = |name: String| Axis { name, scale: Scale::Linear };
    let series = Series { points, is_plain: true, ..Series::default() };
    let (x, dashed) = (axis("x".to_owned()), String::new());
    let scale = options.range.map_or(Scale::Linear, |(low, high)| Scale::Between(low, high));
    let y = Axis { scale, ..axis(label) };
    let (page, scale) =
        chart::of_size(title, Chart { x, y, series: vec![series], dashed }, options.size);
    Ok((page, scale, (low <= high).then_some((low, high))))
}

/// Formats a factor for a title.
fn factor_text(factor: f64) -> String {
    match factor.abs() {
        size if size != 0.0 && !(1e-4..1e6).contains(&size) => format!("{factor:e}"),
        _ => factor.to_string(),
    }
}

/// The file format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Format {
    Png,
    Svg,
}

impl Format {
    fn of(path: &Path) -> Result<Self, PictureError> {
        let ends = |word| path.extension().is_some_and(|end| end.eq_ignore_ascii_case(word));
        match (ends("png"), ends("svg")) {
            (true, _) => Ok(Self::Png),
            (_, true) => Ok(Self::Svg),
            _ => Err(PictureError::Ending(path.to_owned())),
        }
    }
}

/// Writes a page; a PNG has `scale` pixels per unit of the page.
fn save(path: &Path, format: Format, page: &Page, scale: f64) -> Result<(), PictureError> {
    match format {
        Format::Png => Ok(write_bytes(path, &page.pixels(scale)?)?),
        Format::Svg => Ok(write_text(path, &page.svg()?)?),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn planes_are_read_and_said() {
        let parse = |text: &str| text.parse::<Slice>();
        assert_eq!(parse("z=0.5"), Ok(Slice { axis: 2, at: 0.5 }));
        assert_eq!(parse(" x[1] = -1e-3 "), Ok(Slice { axis: 1, at: -1e-3 }));
        assert_eq!(Slice { axis: 0, at: 0.25 }.to_string(), "x = 0.25");
        for wrong in ["z", "z=", "w=1", "0.5", "z=nan", "z=inf", "z=0.5=1"] {
            assert!(parse(wrong).is_err_and(|error| error.contains("expected")), "{wrong}");
        }
    }

    #[test]
    fn files_are_what_their_names_say() {
        for (name, format) in [("u.png", Format::Png), ("a.b/u.SVG", Format::Svg)] {
            assert_eq!(Format::of(Path::new(name)).expect("a format"), format);
        }
        for name in ["u", "u.jpg", "png"] {
            let error = Format::of(Path::new(name)).expect_err("no format").to_string();
            assert!(error.contains("PNG or SVG") && error.contains(".png"), "{error}");
        }
    }
}
