//! Predicted solve ([`Forecast`]) from a form, its elements and the entity counts of its meshes, before anything is
//! allocated.
//!
//! The solver follows from the rules of the solve itself ([`super::solver`]). Iteration counts are measured ones of
//! elliptic problems on compact domains, and seconds follow from those of an operator application. The figures are
//! rough: they tell seconds from days.
//!
//! ```text
//! multigrid iteration        2 k products per cycle in single precision, and one in double
//! bytes of a level           6 vectors, the maps of its cells, the numbers of its nodes
//! ```

use super::factors::{self, Facts, Size};
use super::multigrid::{Asked, FEW, factorised, halved};
use super::solver::is_saddle;
use crate::mesh::Counts;
use crate::solve::Factors;
use fem_dsl::point::{PointForm, eliminated, is_symmetric_without};
use fem_dsl::problem::{Argument, Solver};
use kernels_gen::element::Lagrange;
use kernels_gen::plan::Elements;

/// Multigrid-preconditioned CG iterations to 10⁻⁸, measured: cubes and squares 5 to 8, balls 8 to 11, elasticity 7 to
/// 13, tetrahedra 11 to 17.
const BY_LEVELS: [f64; 2] = [5.0, 17.0];
/// The same for saddle points with FGMRES.
const OF_A_SADDLE: [f64; 2] = [25.0, 80.0];
/// Operator applications in a largest-eigenvalue estimate.
const ESTIMATE: f64 = 12.0;
/// Seconds of an operator application with its vector updates and coarser levels, per degree of freedom: on one core,
/// and on a GPU.
const AN_APPLICATION: [f64; 2] = [1.0e-8, 4e-11];
/// Bytes per entry of a level's matrix, with those of the coarser levels.
const AN_ENTRY: f64 = 3.0 * 12.0;

/// A predicted multigrid level.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ForecastLevel {
    /// Polynomial degree.
    pub degree: usize,
    /// Number of cells.
    pub cells: u64,
    /// Number of degrees of freedom.
    pub unknowns: f64,
}

/// Predicted solver, memory and time.
#[derive(Clone, Debug, PartialEq)]
pub struct Forecast {
    /// Linear solver, within Newton's method that of a step.
    pub solver: String,
    /// True for one Newton step, false for a linear solve.
    pub step: bool,
    /// Preconditioner; `None` for a direct solver.
    pub preconditioner: Option<String>,
    /// Multigrid levels, finest first; with several fields, those of the first.
    pub levels: Vec<ForecastLevel>,
    /// Coarse-grid solver.
    pub below: Option<&'static str>,
    /// Bytes of the levels.
    pub bytes: f64,
    /// Range of usual iteration counts.
    pub iterations: Option<[f64; 2]>,
    /// Range of operator applications.
    pub applications: Option<[f64; 2]>,
    /// Seconds of factorisation or multigrid set-up.
    pub making: f64,
    /// Range of solve seconds.
    pub solving: [f64; 2],
}

/// Execution resources of a solve.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Where {
    /// A number of cores.
    Cores(usize),
    /// A device, with a number of host cores.
    Device(usize),
    /// A number of cores over several processes.
    Processes(usize),
}

impl Where {
    fn is_device(self) -> bool {
        matches!(self, Self::Device(_))
    }

    fn cores(self) -> f64 {
        let (Self::Cores(cores) | Self::Device(cores) | Self::Processes(cores)) = self;
        cores.max(1) as f64
    }

    /// Returns the seconds of an operator application per degree of freedom.
    fn application(self) -> f64 {
        match self {
            Self::Cores(_) | Self::Processes(_) => AN_APPLICATION[0] / self.cores(),
            Self::Device(_) => AN_APPLICATION[1],
        }
    }
}

/// Predicts the solve of a form on the first of these meshes; the others are its coarser meshes.
pub fn forecast(
    form: &PointForm,
    elements: &Elements,
    meshes: &[Counts],
    solver: Option<&Solver>,
    place: Where,
) -> Option<Forecast> {
    let counts = meshes.first()?;
    let linear = form.integrals.iter().all(|integral| integral.linear);
    let eliminated = eliminated(form);
    let symmetric = is_symmetric_without(form, &eliminated);
    let fields = || {
        let all = elements.fields.iter().copied().zip(elements.components.iter().copied());
        all.enumerate().filter(|(number, _)| !eliminated.contains(number)).map(|(_, of)| of)
    };
    let unknowns: f64 =
        fields().map(|(element, components)| components as f64 * counts.nodes(element)).sum();
    let size = Size {
        dim: counts.cell.dim(),
        unknowns,
        components: fields().map(|(_, components)| components).sum::<usize>() as f64,
        degree: fields().map(|(element, _)| element.degree()).max()? as f64,
    };
    let facts = Facts { linear, saddle: is_saddle(form), device: place.is_device() };
    let named = solver.map_or("", |solver| match solver.name.as_str() {
        "newton" => solver.arguments.get("linear").and_then(Argument::word).unwrap_or(""),
        name => name,
    });
    let named = if named == "automatic" { "" } else { named };
    let several = matches!(place, Where::Processes(_));
    let factors = factors::foretold(size, facts, several);
    let word = match named {
        "" if factors == Factors::First => "direct",
        "" if several && facts.saddle && !symmetric => "fgmres",
        "" if !symmetric => "gmres",
        "" if facts.saddle => "minres",
        "" => "cg",
        named => named,
    };
    let step = !linear || solver.is_some_and(|solver| solver.name == "newton");
    let bare = Forecast {
        solver: word.to_owned(),
        step,
        preconditioner: None,
        levels: Vec::new(),
        below: None,
        bytes: 0.0,
        iterations: None,
        applications: None,
        making: 0.0,
        solving: [0.0; 2],
    };
    if word == "direct" {
        let seconds = factors::seconds(size);
        return Some(Forecast { making: seconds, ..bare });
    }
    let asked = solver.and_then(|solver| solver.arguments.get("preconditioner"));
    let preconditioner = match asked.and_then(Argument::word) {
        Some(word) => word,
        None if matches!(named, "" | "cg")
            && symmetric
            && factors != Factors::First
            && factors::pays(size, facts.saddle, place.is_device(), place.cores()) =>
        {
            "multigrid"
        }
        None => "jacobi",
    };
    // FGMRES with multigrid needs few iterations and can store its basis; MINRES with the diagonal needs few vectors.
    let by_levels = !matches!(preconditioner, "jacobi" | "none");
    let word = if named.is_empty() && facts.saddle && by_levels { "fgmres" } else { word };
    let (solver, preconditioner) = (word.to_owned(), preconditioner);
    let bare = Forecast { solver, preconditioner: Some(preconditioner.to_owned()), ..bare };
    if matches!(preconditioner, "jacobi" | "none") {
        let iterations = factors::iterations(size, facts.saddle);
        let range = [iterations / 2.0, 2.0 * iterations];
        let each = factors::an_iteration(place.is_device(), place.cores()) * unknowns;
        let solving = range.map(|iterations| iterations * each);
        return Some(Forecast {
            iterations: Some(range),
            applications: Some(range),
            solving,
            ..bare
        });
    }
    let manner = asked.map(Asked::of).unwrap_or_default().manner;
    let (element, components) = fields().next()?;
    let of_matrix = manner.of_matrix;
    let levels = if of_matrix {
        vec![level(element, components, counts)]
    } else {
        levels(element, components, meshes)
    };
    let last = levels.last()?;
    let most = factorised(place.is_device(), symmetric);
    let below = match of_matrix || last.unknowns > most as f64 {
        true => "smoothed aggregation",
        false => "direct",
    };
    let mut bytes: f64 = levels.iter().map(|level| bytes_of(element, components, level)).sum();
    if below != "direct" {
        let along = 2.0 * last.degree as f64 + 1.0;
        bytes += AN_ENTRY * last.unknowns * components as f64 * along.powi(size.dim as i32);
    }
    let iterations = if facts.saddle { OF_A_SADDLE } else { BY_LEVELS };
    let products = if of_matrix { 1.0 } else { (2 * manner.steps + 1) as f64 };
    let applications = iterations.map(|iterations| ESTIMATE + 1.0 + iterations * products);
    let each = place.application() * unknowns;
    let solving = applications.map(|applications| applications * each);
    let making = factors::making_levels(unknowns, place.cores());
    Some(Forecast {
        levels,
        below: Some(below),
        bytes,
        iterations: Some(iterations),
        applications: Some(applications),
        making,
        solving,
        ..bare
    })
}

fn level(element: Lagrange, components: usize, counts: &Counts) -> ForecastLevel {
    ForecastLevel {
        degree: element.degree(),
        cells: counts.cells(),
        unknowns: components as f64 * counts.nodes(element),
    }
}

/// Predicts the levels: [half](halved) the degree down to 1, then coarser meshes.
fn levels(element: Lagrange, components: usize, meshes: &[Counts]) -> Vec<ForecastLevel> {
    let of = |degree| Lagrange::continuous(element.cell(), degree).ok();
    let mut levels = Vec::new();
    let mut degree = element.degree();
    loop {
        let own = if degree == element.degree() { Some(element) } else { of(degree) };
        levels.extend(own.map(|own| level(own, components, &meshes[0])));
        if degree <= 1 {
            break;
        }
        degree = halved(degree);
    }
    for counts in &meshes[1..] {
        if levels.last().is_some_and(|last| last.unknowns <= FEW as f64) {
            break;
        }
        levels.extend(of(1).map(|own| level(own, components, counts)));
    }
    levels
}

/// Predicts the bytes of a level: vectors and geometry in single precision, and node numbers.
fn bytes_of(element: Lagrange, components: usize, level: &ForecastLevel) -> f64 {
    let dim = element.cell().dim();
    let nodes = Lagrange::continuous(element.cell(), level.degree).map_or(0, |own| own.count());
    let cell = 4 * (2 * nodes + 3usize.pow(dim as u32) + dim * element.cell().vertex_count());
    6.0 * 4.0 * level.unknowns
        + level.cells as f64 * cell as f64
        + 4.0 * level.unknowns / components as f64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mesh::generate;
    use fem_dsl::program::compile;
    use fem_dsl::source::Source;
    use kernels_gen::generate::elements;
    use std::collections::BTreeMap;

    /// Predicts Poisson's problem on a cube of cells.
    fn of(cells: f64, degree: usize, solver: Option<&Solver>, place: Where) -> Forecast {
        let text = "form f { field u: scalar; f0[u] = 1; f1[u] = grad(u); }";
        of_form(text, cells, degree, solver, place)
    }

    fn of_form(
        text: &str,
        cells: f64,
        degree: usize,
        solver: Option<&Solver>,
        place: Where,
    ) -> Forecast {
        let (program, _) = compile(&Source::new("f", text));
        let form = program.expect("a form").point_form("f", 3).expect("a form");
        let arguments = [("dim", 3.0), ("cells", cells)];
        let arguments: BTreeMap<String, Argument> =
            arguments.map(|(name, value)| (name.to_owned(), Argument::Number(value))).into();
        let mut meshes = vec![generate::counts("box", &arguments).expect("counts")];
        let mut own = arguments;
        while let Some(coarser) = generate::coarser("box", &own) {
            meshes.push(generate::counts("box", &coarser).expect("counts"));
            own = coarser;
        }
        let elements = elements(&form, meshes[0].cell, degree, 1, None).expect("elements");
        forecast(&form, &elements, &meshes, solver, place).expect("a forecast")
    }

    #[test]
    fn a_cube_has_the_levels_that_its_solve_has() {
        let found = of(32.0, 4, None, Where::Cores(1));
        assert_eq!(
            (found.solver.as_str(), found.preconditioner.as_deref()),
            ("cg", Some("multigrid"))
        );
        let sizes: Vec<f64> = found.levels.iter().map(|level| level.unknowns).collect();
        assert_eq!(sizes, [129.0, 65.0, 33.0, 17.0, 9.0].map(|n: f64| n.powi(3)));
        assert_eq!(found.below, Some("direct"));
        assert!(found.solving[0] > 0.0 && found.bytes > 24.0 * sizes[0]);
        // Odd cell counts have no coarser mesh.
        assert_eq!(of(33.0, 4, None, Where::Cores(1)).below, Some("smoothed aggregation"));
    }

    /// Large saddle points take few multigrid iterations; small ones are factorised.
    #[test]
    fn large_saddle_points_are_solved_by_levels_of_their_fields() {
        let text = "form f { field u: vector; field p: scalar in H1(k - 1); f1[u] = grad(u) - p * I; f0[p] = -div(u); }";
        let large = of_form(text, 32.0, 2, None, Where::Cores(2));
        assert_eq!(
            (large.solver.as_str(), large.preconditioner.as_deref()),
            ("fgmres", Some("multigrid"))
        );
        let small = of_form(text, 8.0, 2, None, Where::Cores(2));
        assert_eq!(small.solver, "direct");
    }

    #[test]
    fn small_systems_are_factorised_and_the_diagonal_serves_where_it_is_named() {
        let small = of(6.0, 1, None, Where::Cores(2));
        assert_eq!((small.solver.as_str(), small.preconditioner), ("direct", None));
        // The matrix of several processes is distributed.
        let several = of(6.0, 1, None, Where::Processes(2));
        assert_eq!(
            (several.solver.as_str(), several.preconditioner.as_deref()),
            ("cg", Some("jacobi"))
        );
        let arguments = [("preconditioner".to_owned(), Argument::Word("jacobi".to_owned()))];
        let cg = Solver { name: "cg".to_owned(), arguments: arguments.into() };
        let found = of(32.0, 4, Some(&cg), Where::Device(16));
        assert_eq!(found.preconditioner.as_deref(), Some("jacobi"));
        assert!(found.levels.is_empty() && found.iterations.is_some());
    }
}
