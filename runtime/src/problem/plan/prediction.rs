//! Prediction of a solve from counts alone, before anything is made: a [`SolvePlan`] → iterations, levels, bytes and seconds.
//!
//! Iterations are those that were counted for elliptic problems on compact domains, and seconds follow from those of an
//! application: rough figures, by which one sees whether a solve takes seconds or days.
//!
//! ```text
//! a multigrid cycle     2 k products in single precision, and one in double
//! bytes of a level      6 vectors, the maps of its cells, the numbers of its nodes
//! ```

use super::levels::{MULTIGRID_STOPS, halved, most_factorised};
use super::{HierarchySettings, ProblemProperties, SolvePlan, SolveResources, cost};
use crate::mesh::EntityCounts;
use fem_dsl::point::{PointForm, complex_pairs, eliminated};
use kernels_gen::element::{Element, Lagrange, Whitney};
use kernels_gen::plan::Elements;

/// Iterations of CG to 10⁻⁸ with multigrid, as counted: cubes and squares 5 to 8, balls 8 to 11, elasticity 7 to 13, tetrahedra 11 to 17.
const WITH_MULTIGRID: [f64; 2] = [5.0, 17.0];
/// The same of a saddle point, by FGMRES.
const OF_A_SADDLE: [f64; 2] = [25.0, 80.0];
/// The same of a complex field in H(curl) or H(div), by FGMRES.
const OF_A_COMPLEX_FIELD: [f64; 2] = [7.0, 30.0];
/// The same of a mixed form, by MINRES.
const OF_A_MIXED_FORM: [f64; 2] = [30.0, 80.0];
/// Applications that an estimate of the largest eigenvalue takes.
const ESTIMATE: f64 = 12.0;
/// Seconds of an application with all that comes with it, coarser levels too, for each unknown: of one core, and of a GPU.
const AN_APPLICATION: [f64; 2] = [1.0e-8, 4e-11];
/// Bytes of an entry of a level's matrix, with those of the levels below it.
const AN_ENTRY: f64 = 3.0 * 12.0;

/// Level of a multigrid hierarchy.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PredictedLevel {
    /// The degree of its element.
    pub degree: usize,
    /// Its cells.
    pub cells: u64,
    /// Its degrees of freedom.
    pub unknowns: f64,
}

/// Prediction of a solve.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Prediction {
    /// The linear solver.
    pub solver: &'static str,
    /// The preconditioner; none of a factorisation.
    pub preconditioner: Option<&'static str>,
    /// The levels of the first field, the finest first.
    pub levels: Vec<PredictedLevel>,
    /// The solver of the coarsest level.
    pub coarsest: Option<&'static str>,
    /// Bytes of the levels.
    pub bytes: f64,
    /// Iterations, from the fewest to the most that are usual.
    pub iterations: Option<[f64; 2]>,
    /// Applications of the operator, likewise.
    pub applications: Option<[f64; 2]>,
    /// Seconds of making factors or levels.
    pub making: f64,
    /// Seconds of the solve, from the fewest to the most.
    pub solving: [f64; 2],
}

impl SolveResources {
    /// Seconds of an application for each unknown.
    fn application(self) -> f64 {
        match self.has_device {
            true => AN_APPLICATION[1],
            false => AN_APPLICATION[0] / self.cores as f64,
        }
    }
}

/// Predicts the solve of a plan on the first of these meshes, of which the others are coarser ones.
pub fn predict(
    plan: &SolvePlan,
    form: &PointForm,
    elements: &Elements,
    meshes: &[EntityCounts],
) -> Option<Prediction> {
    let ProblemProperties { size, is_symmetric, is_saddle, resources, .. } = plan.properties;
    let (unknowns, cores) = (size.unknowns, resources.cores as f64);
    if plan.linear.is_direct() {
        let making = cost::seconds(size);
        return Some(Prediction { solver: "direct", making, ..Prediction::default() });
    }
    let solver = |multigrid| plan.linear.solver.iterating(is_symmetric, multigrid).word();
    let named = &plan.linear.preconditioner.settings;
    let Some(settings) = HierarchySettings::of(named) else {
        let iterations = cost::iterations(&plan.properties);
        let range = [iterations / 2.0, 2.0 * iterations];
        let each = cost::an_iteration(resources.has_device, cores) * unknowns;
        return Some(Prediction {
            solver: solver(!named.is_diagonal()),
            preconditioner: Some(named.word()),
            iterations: Some(range),
            applications: Some(range),
            solving: range.map(|iterations| iterations * each),
            ..Prediction::default()
        });
    };
    if plan.properties.is_mixed {
        let each = cost::an_iteration(resources.has_device, cores) * unknowns;
        return Some(Prediction {
            solver: solver(true),
            preconditioner: Some(named.word()),
            coarsest: Some("smoothed aggregation"),
            iterations: Some(OF_A_MIXED_FORM),
            applications: Some(OF_A_MIXED_FORM),
            making: cost::making_levels(unknowns, cores),
            solving: OF_A_MIXED_FORM.map(|iterations| iterations * each),
            ..Prediction::default()
        });
    }
    let eliminated = eliminated(form);
    let stays = |number: &usize| !eliminated.contains(number);
    let first = (0..elements.fields.len()).find(stays)?;
    let (element, components) = (elements.fields[first], elements.components[first]);
    let of_field = settings.of_field(&form.fields[first].name);
    let levels = match of_field.is_algebraic {
        true => vec![level(element, components, meshes.first()?)],
        false => levels(element, components, meshes),
    };
    let last = levels.last()?;
    let most = most_factorised(resources.has_device, is_symmetric);
    let coarsest = match of_field.is_algebraic || last.unknowns > most as f64 {
        true => "smoothed aggregation",
        false => "direct",
    };
    let mut bytes: f64 = levels.iter().map(|level| bytes_of(element, components, level)).sum();
    if coarsest != "direct" {
        let along = 2.0 * last.degree as f64 + 1.0;
        bytes += AN_ENTRY * last.unknowns * components as f64 * along.powi(size.dim as i32);
    }
    let is_complex = plan.properties.has_vector_functions && complex_pairs(form).is_some();
    let iterations = match (is_saddle, is_complex) {
        (true, _) => OF_A_SADDLE,
        (_, true) => OF_A_COMPLEX_FIELD,
        _ => WITH_MULTIGRID,
    };
    let products = if of_field.is_algebraic { 1.0 } else { (2 * of_field.steps + 1) as f64 };
    let applications = iterations.map(|iterations| ESTIMATE + 1.0 + iterations * products);
    let each = resources.application() * unknowns;
    Some(Prediction {
        solver: solver(true),
        preconditioner: Some(named.word()),
        levels,
        coarsest: Some(coarsest),
        bytes,
        iterations: Some(iterations),
        applications: Some(applications),
        making: cost::making_levels(unknowns, cores),
        solving: applications.map(|applications| applications * each),
    })
}

fn level(element: Element, components: usize, counts: &EntityCounts) -> PredictedLevel {
    PredictedLevel {
        degree: element.degree(),
        cells: counts.cells(),
        unknowns: components as f64 * counts.nodes(element),
    }
}

/// Levels of continuous functions with [half](halved) the degree each down to 1, then those of coarser meshes; a
/// discontinuous field is above them.
fn levels(element: Element, components: usize, meshes: &[EntityCounts]) -> Vec<PredictedLevel> {
    let of = |degree: usize| -> Option<Element> {
        match element.whitney() {
            Some(own) => {
                Whitney::new(own.cell(), degree as i64, own.family()).ok().map(Element::from)
            }
            None => Lagrange::continuous(element.cell(), degree).ok().map(Element::from),
        }
    };
    let mut levels = Vec::new();
    if !element.is_continuous() {
        levels.push(level(element, components, &meshes[0]));
    }
    let mut degree = element.degree();
    loop {
        levels.extend(of(degree).map(|own| level(own, components, &meshes[0])));
        if degree <= 1 {
            break;
        }
        degree = halved(degree);
    }
    for counts in &meshes[1..] {
        if levels.last().is_some_and(|last| last.unknowns <= MULTIGRID_STOPS as f64) {
            break;
        }
        levels.extend(of(1).map(|own| level(own, components, counts)));
    }
    levels
}

/// Bytes of a level: vectors and geometry in single precision, and numbers of nodes.
fn bytes_of(element: Element, components: usize, level: &PredictedLevel) -> f64 {
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
    use crate::problem::plan_solve;
    use fem_dsl::problem::{
        Argument, LinearSettings, Method, PreconditionerSettings, SolverSettings,
    };
    use fem_dsl::program::compile;
    use fem_dsl::source::Source;
    use kernels_gen::generate::elements;
    use std::collections::BTreeMap;

    /// Predictions of Poisson's problem on a cube of cells.
    fn of(
        cells: f64,
        degree: usize,
        solver: Option<&SolverSettings>,
        resources: SolveResources,
    ) -> Prediction {
        let text = "form f { field u: scalar; f0[u] = 1; f1[u] = grad(u); }";
        of_form(text, cells, degree, solver, resources)
    }

    fn of_form(
        text: &str,
        cells: f64,
        degree: usize,
        solver: Option<&SolverSettings>,
        resources: SolveResources,
    ) -> Prediction {
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
        let properties = ProblemProperties::counted(&form, &elements, &meshes[0], resources);
        let plan = plan_solve(&properties, solver).expect("a plan");
        predict(&plan, &form, &elements, &meshes).expect("a prediction")
    }

    #[test]
    fn a_cube_has_the_levels_that_its_solve_has() {
        let found = of(32.0, 4, None, SolveResources::cores(1));
        assert_eq!((found.solver, found.preconditioner), ("cg", Some("multigrid")));
        let sizes: Vec<f64> = found.levels.iter().map(|level| level.unknowns).collect();
        assert_eq!(sizes, [129.0, 65.0, 33.0, 17.0, 9.0].map(|n: f64| n.powi(3)));
        assert_eq!(found.coarsest, Some("direct"));
        assert!(found.solving[0] > 0.0 && found.bytes > 24.0 * sizes[0]);
        // Odd numbers of cells have no coarser mesh.
        assert_eq!(
            of(33.0, 4, None, SolveResources::cores(1)).coarsest,
            Some("smoothed aggregation")
        );
    }

    /// The choice compares solves, not the compilation of their kernels.
    #[test]
    fn multigrid_is_the_default_where_it_solves_faster() {
        let preconditioner = |cells| of(cells, 4, None, SolveResources::cores(2)).preconditioner;
        assert_eq!(preconditioner(24.0), Some("multigrid"), "912,673 unknowns");
        assert_eq!(preconditioner(16.0), Some("multigrid"), "274,625 unknowns");
        assert_eq!(preconditioner(12.0), Some("jacobi"), "117,649 unknowns");
    }

    /// By levels in few iterations; by the diagonal, which needs many, in few vectors.
    #[test]
    fn large_saddle_points_are_solved_by_levels_of_their_fields() {
        let text = "form f { field u: vector; field p: scalar in H1(k - 1); f1[u] = grad(u) - p * I; f0[p] = -div(u); }";
        let large = of_form(text, 32.0, 2, None, SolveResources::cores(2));
        assert_eq!((large.solver, large.preconditioner), ("fgmres", Some("multigrid")));
        let small = of_form(text, 8.0, 2, None, SolveResources::cores(2));
        assert_eq!(small.solver, "direct");
    }

    #[test]
    fn levels_serve_unsymmetric_diffusion_but_not_transport() {
        let of = |terms: &str| {
            let text = format!("form f {{ field u: scalar; {terms} }}");
            let found = of_form(&text, 24.0, 4, None, SolveResources::cores(2));
            (found.solver, found.preconditioner)
        };
        let diffusion = "f0[u] = 1; f1[u] = [[1, 0.5, 0], [-0.5, 1, 0], [0, 0, 1]] * grad(u);";
        assert_eq!(of(diffusion), ("fgmres", Some("multigrid")));
        let transport = "f0[u] = dot([1, 0, 0], grad(u)) - 1; f1[u] = grad(u);";
        assert_eq!(of(transport), ("gmres", Some("jacobi")));
    }

    #[test]
    fn small_systems_are_factorised_and_the_diagonal_serves_where_it_is_named() {
        let small = of(6.0, 1, None, SolveResources::cores(2));
        assert_eq!((small.solver, small.preconditioner), ("direct", None));
        // Several processes have the matrix in pieces.
        let several = of(6.0, 1, None, SolveResources::cores(2).in_processes(2));
        assert_eq!((several.solver, several.preconditioner), ("cg", Some("jacobi")));
        let cg = LinearSettings {
            preconditioner: Some(PreconditionerSettings::Jacobi),
            ..LinearSettings::new(Method::Cg)
        };
        let cg = SolverSettings::from(cg);
        let found = of(32.0, 4, Some(&cg), SolveResources::cores(16).with_device(true));
        assert_eq!(found.preconditioner, Some("jacobi"));
        assert!(found.levels.is_empty() && found.iterations.is_some());
    }
}
