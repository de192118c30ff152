//! `wf run --picture`: options of the picture, checked before the solve, and its drawing after it.

use std::path::{Path, PathBuf};
use std::str::FromStr;

use clap::Args;
use fem_dsl::point::PointForm;
use fem_dsl::problem::Problem;
use runtime::mesh::Mesh;
use runtime::problem::{Solution, form_with_outputs, with_derived};
use runtime::space::discretisation::Discretisation;
use runtime::support::memory::{InsufficientMemory, MemoryBudget};
use weakform::picture::{PictureError, PictureOptions, SIZES, Slice, check, write};

use super::destination::numbered;
use super::one_file;
use crate::console::Console;
use crate::picture::possible;
use crate::processes::together;
use crate::report::Failure;

/// Picture of the solution.
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct PictureArguments {
    /// Draw the solution, too: PNG or SVG, as the file's name says. A body is seen from before it, its boundary in the
    /// colours of the field, with the edges of its cells; no display and no other program is needed.
    #[arg(long, value_name = "FILE")]
    picture: Option<PathBuf>,

    /// Draw what is on a plane inside a body, not its boundary: z=0.5, x=0, y=-1.
    #[arg(long, value_name = "AXIS=VALUE", requires = "picture")]
    slice: Option<Slice>,

    /// Draw this field or data, of a vector its magnitude, or a component, 'u[0]'; the first field without it.
    #[arg(long, value_name = "NAME", requires = "picture")]
    field: Option<String>,

    /// Draw the mesh deformed by so many times a vector field: the one that is drawn, if it is one, else the first.
    #[arg(long, value_name = "FACTOR", requires = "picture", allow_hyphen_values = true)]
    warp: Option<f64>,

    /// Pixels of the picture, 1600x1200; what fits without it.
    #[arg(long, value_name = "WxH", requires = "picture")]
    picture_size: Option<Size>,
}

impl PictureArguments {
    /// Returns the picture of one of several solves: `u-3.png` for the third.
    pub(super) fn numbered(&self, number: Option<usize>) -> Self {
        let picture = self.picture.as_ref().map(|path| match number {
            Some(number) => numbered(path, number),
            None => path.clone(),
        });
        Self { picture, ..self.clone() }
    }

    pub(super) fn is_wanted(&self) -> bool {
        self.picture.is_some()
    }

    /// Returns the reported path.
    pub(super) fn path(&self) -> Option<&Path> {
        self.picture.as_deref()
    }

    /// Checks that the file is writable, before hours of work.
    pub(super) fn try_out(&self) -> Result<(), Failure> {
        let Some(path) = &self.picture else { return Ok(()) };
        one_file(path, "--picture", "shows the last step")?;
        possible(path, "--picture")
    }

    /// Checks before the solve that the requested field can be drawn.
    pub(super) fn check(&self, problem: &Problem, mesh: &Mesh) -> Result<(), Failure> {
        if !self.is_wanted() {
            return Ok(());
        }
        let whole = match mesh.cut() {
            Some(cut) => cut.whole().map_err(|error| Failure::input(error.to_string()))?,
            None => mesh,
        };
        check(&form_with_outputs(problem), whole, &self.options()).map_err(failure)
    }

    /// Draws it, and returns a remark if there is one. With several processes the first draws the gathered solution.
    pub(super) fn draw(
        &self,
        problem: &Problem,
        solution: &Solution,
        console: &Console,
    ) -> Result<Option<String>, Failure> {
        let Some(path) = &self.picture else { return Ok(None) };
        console.progress().say(format!("{}: drawing", problem.name));
        let (form, on) = with_derived(&problem.form, &solution.context.on, &solution.derived);
        let (named, u) = ((&*problem.name, &form), &solution.u);
        let Some(cut) = on.mesh.cut() else { return self.draw_whole(path, named, &on, u) };
        let group = &**cut.group();
        together(group, room(solution))?;
        let joined = on.joined(u).map_err(|error| Failure::input(error.to_string()));
        let drawn = joined.and_then(|joined| match joined.filter(|_| group.rank() == 0) {
            Some((on, u)) => self.draw_whole(path, named, &on, &u),
            None => Ok(None),
        });
        together(group, drawn)
    }

    /// Draws a solution on a whole mesh.
    fn draw_whole(
        &self,
        path: &Path,
        (name, form): (&str, &PointForm),
        on: &Discretisation,
        u: &[f64],
    ) -> Result<Option<String>, Failure> {
        let drawn = write(path, name, form, on, u, &self.options()).map_err(failure)?;
        let inside = on.mesh.dim() == 3 && self.slice.is_none();
        let one = drawn.range.filter(|(least, most)| inside && least == most);
        Ok(one.map(|(value, _)| {
            let centre = middle(&on.mesh);
            format!("the picture has one colour: all of the boundary is {value}; `--slice z={centre}` shows the inside")
        }))
    }

    fn options(&self) -> PictureOptions {
        PictureOptions {
            field: self.field.clone(),
            slice: self.slice,
            warp: self.warp,
            size: self.picture_size.map(|Size(width, height)| (width, height)),
        }
    }
}

/// Checks that a process has enough memory for a solution on the whole mesh: its entries, sent and received, and the
/// indices of each cell.
fn room(solution: &Solution) -> Result<(), Failure> {
    let [cells, unknowns] = solution.size.map(|size| size as f64);
    let nodes = solution.context.on.fields.iter().map(|field| field.space.nodes_per_cell());
    let bytes = 16.0 * unknowns + 4.0 * cells * nodes.sum::<usize>() as f64;
    let what = || format!("a picture of all {cells} cells at one process");
    let remedy = "`-o FILE` without --picture, for ParaView";
    MemoryBudget::check(what, bytes).map_err(|error| InsufficientMemory { remedy, ..error }.into())
}

/// Returns half the height of a mesh, to two digits.
fn middle(mesh: &Mesh) -> f64 {
    let heights = mesh.points().iter().map(|point| point[2]);
    let (low, high) =
        heights.fold((f64::MAX, f64::MIN), |(low, high), z| (low.min(z), high.max(z)));
    let exact = 0.5 * low + 0.5 * high;
    // Offset by a hundredth of the height, so that it is inside.
    let step = 10f64.powf((high - low).max(f64::MIN_POSITIVE).log10().floor() - 1.0);
    let round = (exact / step).round() * step;
    format!("{round:.3e}").parse().unwrap_or(exact) + 0.0
}

/// Reports an error with the responsible option.
fn failure(error: PictureError) -> Failure {
    let option = match &error {
        PictureError::Field { .. } | PictureError::Component { .. } => "--field",
        PictureError::Flat(_) | PictureError::Beside { .. } => "--slice",
        PictureError::Rigid(_) | PictureError::Factor(_) => "--warp",
        PictureError::Size(..) => "--picture-size",
        _ => return error.into(),
    };
    Failure::input(format!("{option}: {error}"))
}

/// Width and height, `1600x1200`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Size(u32, u32);

impl FromStr for Size {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let number = |text: &str| text.trim().parse().ok().filter(|n| SIZES.contains(n));
        let sides = text.split_once(['x', '×']);
        let sides = sides.and_then(|(width, height)| Some(Self(number(width)?, number(height)?)));
        sides.ok_or_else(|| {
            let (least, most) = (SIZES.start(), SIZES.end());
            format!("`{text}` is no size; expected 1600x1200, each side from {least} to {most}")
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_two_numbers() {
        assert_eq!("1600x1200".parse(), Ok(Size(1600, 1200)));
        for wrong in ["", "1600", "0x5", "1x1", "1600x", "99999x500", "-5x500"] {
            assert!(wrong.parse::<Size>().is_err(), "{wrong}");
        }
    }
}
