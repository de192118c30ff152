//! `wf run --picture`: options of the picture, checked before the solve, and its drawing after it.

use std::path::{Path, PathBuf};
use std::str::FromStr;

use clap::{ArgGroup, Args};
use fem_dsl::point::PointForm;
use fem_dsl::problem::Problem;
use runtime::mesh::Mesh;
use runtime::problem::{Solution, form_with_outputs, with_derived};
use runtime::space::discretisation::Discretisation;
use runtime::support::memory::{InsufficientMemory, MemoryBudget};
use weakform::picture::{Animation, PictureError, PictureOptions, SIZES, Slice, check, write};

use super::destination::numbered;
use super::{STEP, one_file};
use crate::console::Console;
use crate::picture::{animation, possible};
use crate::processes::together;
use crate::report::Failure;

/// Picture of the solution.
#[derive(Args, Clone, Debug, Default)]
#[command(group(ArgGroup::new("drawing").args(["picture", "animate"]).multiple(true)))]
pub(crate) struct PictureArguments {
    /// Draw the solution, too: PNG or SVG, as the file's name says. A body is seen from before it, its boundary in the
    /// colours of the field, with the edges of its cells, and a field on a line is a curve; no display and no other program is
    /// needed. `{step}` in the name stands for numbers from 0 on: a picture for each time, adaptive step or value of a parameter.
    #[arg(long, value_name = "FILE")]
    picture: Option<PathBuf>,

    /// Draw all times, adaptive steps or values of a parameter as one animated PNG, ten frames a second.
    #[arg(long, value_name = "FILE")]
    animate: Option<PathBuf>,

    /// The values of the first and the last colour, or of the ends of a curve's axis, in all pictures: -1..1.
    #[arg(long, value_name = "LOW..HIGH", requires = "drawing", allow_hyphen_values = true)]
    range: Option<ValueRange>,

    /// Draw what is on a plane inside a body, not its boundary: z=0.5, x=0, y=-1.
    #[arg(long, value_name = "AXIS=VALUE", requires = "drawing")]
    slice: Option<Slice>,

    /// Draw this field or data, of a vector its magnitude, or a component, 'u[0]'; the first field without it.
    #[arg(long, value_name = "NAME", requires = "drawing")]
    field: Option<String>,

    /// Draw the mesh deformed by so many times a vector field: the one that is drawn, if it is one, else the first.
    #[arg(long, value_name = "FACTOR", requires = "drawing", allow_hyphen_values = true)]
    warp: Option<f64>,

    /// Pixels of the picture, 1600x1200; what fits without it.
    #[arg(long, value_name = "WxH", requires = "drawing")]
    picture_size: Option<Size>,
}

impl PictureArguments {
    /// Returns the picture of one of several solves: `u-3.png` for the third.
    pub(super) fn numbered(&self, number: Option<usize>) -> Self {
        let picture = self.picture.as_ref().map(|path| match number {
            Some(number) if !is_pattern(path) => numbered(path, number),
            _ => path.clone(),
        });
        Self { picture, ..self.clone() }
    }

    pub(super) fn is_wanted(&self) -> bool {
        self.picture.is_some() || self.animate.is_some()
    }

    /// Returns whether each step is drawn.
    pub(super) fn draws_steps(&self) -> bool {
        self.animate.is_some() || self.picture.as_deref().is_some_and(is_pattern)
    }

    /// Returns the reported path: of several pictures the last.
    pub(super) fn path(&self) -> Option<&Path> {
        self.picture.as_deref()
    }

    /// Returns the path of the animation.
    pub(super) fn animation(&self) -> Option<&Path> {
        self.animate.as_deref()
    }

    /// Checks that the file is writable, before hours of work.
    pub(super) fn try_out(&self) -> Result<(), Failure> {
        if let Some(path) = &self.animate {
            one_file(path, "--animate", "shows all steps")?;
            animation(path)?;
        }
        match &self.picture {
            Some(path) => possible(&of_step(path, 0), "--picture"),
            None => Ok(()),
        }
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

    /// Draws it, unless each step is, and returns a remark if there is one. With several processes the first draws the
    /// gathered solution.
    pub(super) fn draw(
        &self,
        problem: &Problem,
        solution: &Solution,
        console: &Console,
    ) -> Result<Option<String>, Failure> {
        let Some(path) = self.picture.as_deref().filter(|path| !is_pattern(path)) else {
            return Ok(None);
        };
        console.progress().say(format!("{}: drawing", problem.name));
        let drawn = whole(problem, solution, |named, on, u| self.draw_whole(path, named, on, u))?;
        Ok(drawn.flatten())
    }

    /// Draws a step, if each is drawn.
    pub(super) fn draw_step(
        &self,
        pictures: &mut StepPictures,
        problem: &Problem,
        solution: &Solution,
        console: &Console,
    ) -> Result<(), Failure> {
        if !self.draws_steps() {
            return Ok(());
        }
        console.progress().detail("drawing the solution");
        let number = pictures.number;
        pictures.number += 1;
        whole(problem, solution, |named, on, u| {
            if let Some(path) = self.picture.as_deref().filter(|path| is_pattern(path)) {
                self.draw_whole(&of_step(path, number), named, on, u)?;
            }
            if self.animate.is_some() {
                let (name, form) = named;
                let frames = &mut pictures.animation;
                frames.add(name, form, on, u, &self.options()).map_err(failure)?;
            }
            Ok(())
        })
        .map(drop)
    }

    /// Writes the animation of all steps, on the process that has drawn them.
    pub(super) fn finish(&self, pictures: &StepPictures) -> Result<(), Failure> {
        match self.animate.as_deref().filter(|_| !pictures.animation.is_empty()) {
            Some(path) => pictures.animation.write(path).map_err(failure),
            None => Ok(()),
        }
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
            range: self.range.map(|ValueRange(low, high)| (low, high)),
        }
    }
}

/// The pictures of a problem's steps so far.
#[derive(Debug, Default)]
pub(super) struct StepPictures {
    /// Their number.
    number: usize,
    animation: Animation,
}

/// Returns whether a file name stands for a file for each step.
pub(super) fn is_pattern(path: &Path) -> bool {
    path.to_string_lossy().contains(STEP)
}

/// Returns the file of a step.
fn of_step(path: &Path, number: usize) -> PathBuf {
    PathBuf::from(path.to_string_lossy().replace(STEP, &number.to_string()))
}

/// Draws a solution with its derived fields on the whole mesh: on the first process, which gathers it.
fn whole<T>(
    problem: &Problem,
    solution: &Solution,
    draw: impl FnOnce((&str, &PointForm), &Discretisation, &[f64]) -> Result<T, Failure>,
) -> Result<Option<T>, Failure> {
    let (form, on) = with_derived(&problem.form, &solution.context.on, &solution.derived);
    let (named, u) = ((&*problem.name, &form), &solution.u);
    let Some(cut) = on.mesh.cut() else { return draw(named, &on, u).map(Some) };
    let group = &**cut.group();
    together(group, room(solution))?;
    let joined = on.joined(u).map_err(|error| Failure::input(error.to_string()));
    let drawn = joined.and_then(|joined| match joined.filter(|_| group.rank() == 0) {
        Some((on, u)) => draw(named, &on, &u).map(Some),
        None => Ok(None),
    });
    together(group, drawn)
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
        PictureError::Range(..) => "--range",
        PictureError::Animated(_) => "--animate",
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

/// The ends of a range, `-1..1`.
#[derive(Clone, Copy, Debug, PartialEq)]
struct ValueRange(f64, f64);

impl FromStr for ValueRange {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let number = |text: &str| text.trim().parse::<f64>().ok().filter(|x| x.is_finite());
        let ends = text.split_once("..");
        let ends = ends.and_then(|(low, high)| Some((number(low)?, number(high)?)));
        let ends = ends.filter(|(low, high)| low < high);
        let (low, high) = ends.ok_or_else(|| {
            format!("`{text}` is no range; expected -1..1, the smaller number first")
        })?;
        Ok(Self(low, high))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_two_ascending_numbers() {
        assert_eq!("-1..2.5".parse(), Ok(ValueRange(-1.0, 2.5)));
        for wrong in ["", "1", "2..1", "1..1", "a..2", "1..", "0..inf"] {
            assert!(wrong.parse::<ValueRange>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn sizes_are_two_numbers() {
        assert_eq!("1600x1200".parse(), Ok(Size(1600, 1200)));
        for wrong in ["", "1600", "0x5", "1x1", "1600x", "99999x500", "-5x500"] {
            assert!(wrong.parse::<Size>().is_err(), "{wrong}");
        }
    }
}
