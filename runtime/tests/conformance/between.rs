//! Random kernels of integrals between cells: forms, cells and choices of plans are drawn.

use super::launch::{Launcher, Shape};
use super::pairs::number_of;
use super::setting::Setting;
use fem_dsl::point::{PointForm, Side};
use fem_dsl::source::Source;
use fem_dsl::testing::{
    Random, random_interior, random_interior_at_points, random_interior_vectors,
};
use kernels_gen::abi::Indices;
use kernels_gen::element::{Cell, Rule, default_rule};
use kernels_gen::kir::Precision;
use kernels_gen::plan::{Elements, EvenOdd, Geometry, Plan, Scatter, Strategy, Target, Task};
use kernels_gen::strategy::check;

/// A kernel to be compiled, run and compared.
pub(crate) struct Case {
    /// The seed of the form.
    pub(crate) seed: u64,
    pub(crate) form: PointForm,
    pub(crate) elements: Elements,
    pub(crate) degree: usize,
    pub(crate) rule: Rule,
    pub(crate) shape: Shape,
    pub(crate) plan: Plan,
}

/// Cells of each dimension.
const CELLS: [[Cell; 2]; 2] =
    [[Cell::Quadrilateral, Cell::Triangle], [Cell::Hexahedron, Cell::Tetrahedron]];

const TASKS: [Task; 3] = [Task::Residual, Task::Action, Task::Diagonal];

/// The first seed of forms with a field in Hcurl or Hdiv.
pub(crate) const VECTORS: u64 = 1 << 10;

/// Largest number of nodes of all components of a cell.
const NODES: usize = 120;

/// Draws kernels for a target: of each form those of two cells and three tasks, as far as they are supported. Vectors have a
/// number of lanes for each precision.
pub(crate) fn draw(
    target: Target,
    lanes: impl Fn(Precision) -> usize,
    seed: u64,
    count: usize,
) -> Vec<Case> {
    let (mut random, mut drawn) = (Random(seed), Vec::new());
    for number in (seed << 20).. {
        let dim = 2 + random.below(2);
        let kind = if seed < VECTORS { random.below(2) } else { 2 };
        let at_points = kind == 1;
        let text = match kind {
            0 => random_interior(number, dim),
            1 => random_interior_at_points(number, dim),
            _ => random_interior_vectors(number, dim),
        };
        let form = integral(&text, &format!("interior_{number}"), dim, random.below(2));
        let Some(form) = form else { continue };
        for (own, task) in TASKS.iter().flat_map(|task| [task, task]).enumerate() {
            let cell = CELLS[dim - 2][own % 2];
            let form = PointForm { name: format!("{}_{own}", form.name), ..form.clone() };
            let seed = 8 * number + own as u64;
            let mut tries = (0..20).filter_map(|_| {
                let shares = target == Target::Threads && at_points && random.below(2) == 1;
                one((target, shares), &lanes, (&form, cell, *task), &mut random)
            });
            drawn.extend(tries.next().map(|own| Case { seed, ..own }));
            if drawn.len() == count {
                return drawn;
            }
        }
    }
    drawn
}

/// Draws a kernel of a form; `None` if the plan refuses the form, or nothing of its result is above rounding. Threads may
/// share pairs.
fn one(
    (target, shares): (Target, bool),
    lanes: impl Fn(Precision) -> usize,
    (form, cell, task): (&PointForm, Cell, Task),
    random: &mut Random,
) -> Option<Case> {
    let mut coin = || random.below(2) == 1;
    let (single, hanging, affine, one_sided) = (coin(), coin(), coin(), coin());
    let (tiles, owner, always) = (coin(), coin(), coin());
    let (dim, tensor) = (cell.dim(), cell.is_tensor());
    let straight = if tensor { Shape::Multilinear } else { Shape::Affine };
    let shapes = [Shape::Affine, straight, Shape::Curved(2)];
    let shape = shapes[random.below(if shares { 2 } else { 3 })];
    let degree = 1 + random.below(if dim == 2 { 3 } else { 2 });
    let rule = default_rule(cell, degree, shape.order(), None);
    let elements = Elements::new(form, cell, degree, rule).ok()?;
    let nodes: usize =
        elements.fields.iter().zip(&elements.components).map(|(own, c)| own.count() * c).sum();
    if nodes > NODES {
        return None;
    }
    // On simplices, squares of functions that vanish on a facet to rounding are below single precision.
    let is_mapped = elements.are_vector_valued() && !tensor;
    let precision = if single && !is_mapped { Precision::F32 } else { Precision::F64 };
    let (strategy, lanes) = match (target, shares) {
        (Target::Threads, true) => (Strategy::ThreadPerLine { cells: 1 + random.below(3) }, 1),
        (Target::Threads, false) => (Strategy::CellPerLane, 8),
        (Target::Vectors, _) => (Strategy::CellPerLane, lanes(precision)),
    };
    let indices = [Indices::Nodes, Indices::Dofs, Indices::Cells];
    let sizes = [None, None, Some(Side::Inside), Some(Side::Outside)];
    let larger = sizes[random.below(if tensor && !shares { 4 } else { 2 })];
    let geometry = match shares && random.below(2) == 1 {
        true => Geometry::Vertices,
        false => Geometry::Nodes(shape.order()),
    };
    let plan = Plan {
        strategy,
        indices: match target {
            Target::Vectors => indices[random.below(if tensor { 3 } else { 2 })],
            Target::Threads => Indices::Nodes,
        },
        tiles: tiles && target == Target::Threads,
        scatter: if owner { Scatter::Owner } else { Scatter::Atomic },
        hanging: hanging && tensor,
        larger,
        affine: affine && shape == Shape::Affine,
        one_sided: one_sided && target == Target::Vectors,
        even_odd: if always { EvenOdd::Always } else { EvenOdd::Never },
        unroll: [0, 8, 64][random.below(3)],
        block: [1, 3][random.below(2)],
        ..Plan::new(target, task, lanes, precision, geometry)
    };
    let setting = &Setting::new(form, degree, rule, shape, geometry, 1);
    // Of vector-valued functions on simplices, pairs of the same facets.
    let of_first = || Some(number_of(cell, &setting.pairs(&plan).first()?.1));
    let plan = Plan { facet: if is_mapped { of_first() } else { None }, ..plan };
    check(form, &elements, &plan).ok()?;
    // Terms of random forms may vanish.
    let wanted = Launcher { form, elements: &elements, setting }.wanted(&plan, None);
    let mut seen = wanted.iter().filter(|own| own.value.abs() > own.tolerance(f64::EPSILON));
    seen.next()?;
    let form = form.clone();
    Some(Case { seed: 0, form, elements, degree, rule, shape, plan })
}

/// Returns the form of a text with one of its integrals between cells alone; `None` if it has no diagonal.
fn integral(text: &str, name: &str, dim: usize, number: usize) -> Option<PointForm> {
    let (program, found) = fem_dsl::program::compile(&Source::new(name, text));
    let program = program.unwrap_or_else(|| panic!("{text}\n{found:?}"));
    let mut form =
        program.point_form(name, dim).unwrap_or_else(|found| panic!("{text}\n{found:?}"));
    form.integrals.retain(|integral| integral.region.is_interior());
    // Terms may cancel.
    let own = form.integrals.swap_remove(number.checked_rem(form.integrals.len())?);
    let is_diagonal = own.jacobian.iter().any(|entry| {
        (entry.test.field, entry.test.component) == (entry.trial.field, entry.trial.component)
            && entry.test.side == entry.trial.side
    });
    form.integrals = vec![own];
    is_diagonal.then_some(form)
}
