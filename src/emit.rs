//! `emit`: text of the language → the result of any stage of the compiler, as text; by default the generated source.

use crate::Error;
use fem_dsl::differentiate::differentiate;
use fem_dsl::point::{PointForm, point};
use fem_dsl::problem::Quadrature;
use fem_dsl::program::{CheckedForm, Program, compile};
use fem_dsl::simplify::simplify;
use fem_dsl::source::Source;
use kernels_gen::abi::{ArgumentText, KernelAbi};
use kernels_gen::aot::TASKS;
use kernels_gen::choose::{MeshFacts, PlanOverrides, choose, choose_for_threads};
use kernels_gen::dialect::cuda::CUDA;
use kernels_gen::dialect::opencl::OPENCL;
use kernels_gen::generate::{
    check_underflow, describe, elements, generate_for_threads, generate_for_vectors,
};
use kernels_gen::kir::Kernel;
use kernels_gen::pass::{for_threads, for_vectors};
use kernels_gen::plan::{Elements, Plan, PlanError};
use kernels_gen::strategy::lower;
use runtime::kernels::compile::Target;
use std::fmt;
use std::str::FromStr;

pub use kernels_gen::abi::Precision;
pub use kernels_gen::dialect::Language;
pub use kernels_gen::dialect::rust::Isa;
pub use kernels_gen::element::Cell;
pub use kernels_gen::plan::{Scatter, Strategy, Task};

/// A stage of the compiler, named after its verb.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Stage {
    /// The syntax tree.
    Parse,
    /// The form: names resolved, every expression with its shape.
    Check,
    /// The form with the pointwise action of its Jacobian.
    Differentiate,
    /// The same after algebra.
    Simplify,
    /// The scalar computation at one point.
    Point,
    /// The plan for this cell, degree and machine, with its counts.
    Plan,
    /// The kernel after the strategy.
    Lower,
    /// The kernel in operations of the target language.
    Legalise,
    /// The source.
    #[default]
    Print,
}

impl Stage {
    /// Every stage, in the order in which they follow one another.
    pub const ALL: [Self; 9] = [
        Self::Parse,
        Self::Check,
        Self::Differentiate,
        Self::Simplify,
        Self::Point,
        Self::Plan,
        Self::Lower,
        Self::Legalise,
        Self::Print,
    ];

    /// Returns its verb.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Parse => "parse",
            Self::Check => "check",
            Self::Differentiate => "differentiate",
            Self::Simplify => "simplify",
            Self::Point => "point",
            Self::Plan => "plan",
            Self::Lower => "lower",
            Self::Legalise => "legalise",
            Self::Print => "print",
        }
    }
}

impl fmt::Display for Stage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for Stage {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        Self::ALL.into_iter().find(|stage| stage.name() == text).ok_or_else(|| {
            let names = Self::ALL.map(Self::name).join(", ");
            format!("unknown stage `{text}`; the stages are {names}")
        })
    }
}

/// The kernels to emit, and the stage. [`Emission::default`] is the source of the kernels of degree 2 on hexahedra, or
/// quadrilaterals for a form in two dimensions, for this machine.
#[derive(Clone, Debug, PartialEq)]
#[must_use]
pub struct Emission {
    form: Option<String>,
    language: Language,
    stage: Stage,
    cell: Option<Cell>,
    degree: usize,
    quadrature: Option<Quadrature>,
    task: Option<Task>,
    isa: Option<Isa>,
    precision: Precision,
    strategy: Option<Strategy>,
    scatter: Option<Scatter>,
    hanging: bool,
}

impl Default for Emission {
    fn default() -> Self {
        Self {
            form: None,
            language: Language::Rust,
            stage: Stage::Print,
            cell: None,
            degree: 2,
            quadrature: None,
            task: None,
            isa: None,
            precision: Precision::F64,
            strategy: None,
            scatter: None,
            hanging: false,
        }
    }
}

impl Emission {
    /// Selects the source of the kernels on these cells, of this degree.
    pub fn new(cell: Cell, degree: usize) -> Self {
        Self { cell: Some(cell), degree, ..Self::default() }
    }

    /// Sets the form; required if the text has several.
    pub fn form(mut self, name: impl Into<String>) -> Self {
        self.form = Some(name.into());
        self
    }

    /// Sets the language of the source; [`Language::Rust`] by default.
    pub fn language(mut self, language: Language) -> Self {
        self.language = language;
        self
    }

    /// Sets the stage; the source by default.
    pub fn stage(mut self, stage: Stage) -> Self {
        self.stage = stage;
        self
    }

    /// Sets the cell.
    pub fn cell(mut self, cell: Cell) -> Self {
        self.cell = Some(cell);
        self
    }

    /// Sets the degree.
    pub fn degree(mut self, degree: usize) -> Self {
        self.degree = degree;
        self
    }

    /// Sets a quadrature other than the one that the language prescribes: a degree or [`Quadrature::Collocated`].
    pub fn quadrature(mut self, quadrature: impl Into<Quadrature>) -> Self {
        self.quadrature = Some(quadrature.into());
        self
    }

    /// Sets the task of the kernel; residual, Jacobian action and diagonal by default.
    pub fn task(mut self, task: Task) -> Self {
        self.task = Some(task);
        self
    }

    /// Sets the instruction set; that of this machine by default. Set one if the text must be the same on every
    /// machine.
    pub fn isa(mut self, isa: Isa) -> Self {
        self.isa = Some(isa);
        self
    }

    /// Sets the strategy of a GPU kernel; the fastest one by default.
    pub fn strategy(mut self, strategy: Strategy) -> Self {
        self.strategy = Some(strategy);
        self
    }

    /// Sets the scatter algorithm of a GPU kernel; the fastest one by default.
    pub fn scatter(mut self, scatter: Scatter) -> Self {
        self.scatter = Some(scatter);
        self
    }

    /// Selects the kernels of cells with hanging nodes, on quadrilaterals and hexahedra, instead of those of other
    /// cells.
    pub fn hanging(mut self) -> Self {
        self.hanging = true;
        self
    }

    /// Sets the precision; double by default.
    pub fn precision(mut self, precision: Precision) -> Self {
        self.precision = precision;
        self
    }
}

/// Returns the result of a compiler stage for a form: text to be read, compared in a test, or compiled.
///
/// ```
/// use weakform::{Cell, Emission, Isa, Task, emit};
///
/// let form = "form mass { field u: scalar; f0[u] = u; }";
/// let kernel = emit(form, &Emission::new(Cell::Quadrilateral, 1).task(Task::Action).isa(Isa::Avx2))?;
/// assert!(kernel.contains("pub unsafe fn run("));
/// # Ok::<(), weakform::Error>(())
/// ```
///
/// # Errors
///
/// Mistakes in the text, an unknown form, or unsupported kernels.
pub fn emit(text: &str, emission: &Emission) -> Result<String, Error> {
    let source = Source::new("form", text);
    let (program, diagnostics) = compile(&source);
    match program {
        Some(program) => emit_program(&program, emission),
        None => {
            let errors = diagnostics.into_iter().filter(|found| found.is_error()).collect();
            Err(Error::language(&source, errors))
        }
    }
}

/// Returns the same for a compiled file.
///
/// # Errors
///
/// See [`emit`].
pub fn emit_program(program: &Program, emission: &Emission) -> Result<String, Error> {
    Ok(emit_with_interfaces(program, emission)?.0)
}

/// A kernel's ABI, and its arguments in words.
pub type KernelInterface = (KernelAbi, Vec<ArgumentText>);

/// Returns the same with the interfaces of the kernels, in the order of the text; none before [`Stage::Print`].
///
/// # Errors
///
/// See [`emit`].
pub fn emit_with_interfaces(
    program: &Program,
    emission: &Emission,
) -> Result<(String, Vec<KernelInterface>), Error> {
    let only_text = |text: String| Ok((text, Vec::new()));
    if emission.stage == Stage::Parse {
        return only_text(format!("{:#?}\n", program.written()));
    }
    let checked = chosen(program, emission.form.as_deref())?;
    let is_valid = |dim: usize| checked.dimensions.form(dim).is_some();
    let cell = emission.cell.unwrap_or(match () {
        () if is_valid(3) => Cell::Hexahedron,
        () if is_valid(1) && !is_valid(2) => Cell::Interval,
        () => Cell::Quadrilateral,
    });
    let rejected = |found| Error::language(program.source(), found);
    let Some(form) = checked.dimensions.form(cell.dim()) else {
        // The error contains the token that determines the other dimension.
        program.point_form(&checked.name, cell.dim()).map_err(rejected)?;
        return Err(Error::unknown("form", &checked.name, []));
    };
    only_text(match emission.stage {
        Stage::Parse | Stage::Check => form.to_string(),
        Stage::Differentiate => differentiate(form).to_string(),
        Stage::Simplify => simplify(&differentiate(form)).to_string(),
        Stage::Point => point(&simplify(&differentiate(form))).to_string(),
        Stage::Plan | Stage::Lower | Stage::Legalise | Stage::Print => {
            let form = program.point_form(&checked.name, cell.dim()).map_err(rejected)?;
            return kernels(&form, cell, emission);
        }
    })
}

/// Returns the form of this name, or the only one.
pub(crate) fn chosen<'a>(
    program: &'a Program,
    name: Option<&str>,
) -> Result<&'a CheckedForm, Error> {
    let names = || program.forms().iter().map(|form| form.name.as_str());
    match (name, program.forms()) {
        (Some(name), _) => program.form(name).ok_or_else(|| Error::unknown("form", name, names())),
        (None, [form]) => Ok(form),
        (None, _) => Err(Error::WhichForm { known: names().map(str::to_owned).collect() }),
    }
}

/// Performs the stages from the plan on.
fn kernels(
    form: &PointForm,
    cell: Cell,
    emission: &Emission,
) -> Result<(String, Vec<KernelInterface>), Error> {
    let isa = emission.isa.unwrap_or_else(|| Target::native().isa);
    let elements = elements(form, cell, emission.degree, 1, emission.quadrature)?;
    elements.notes.iter().for_each(|note| tracing::warn!("{note}"));
    let plans = plans(form, &elements, isa, emission)?;
    let words = match emission.language {
        Language::Rust | Language::C => None,
        Language::Cuda => Some(&CUDA),
        Language::OpenCl => Some(&OPENCL),
    };
    let (mut text, mut interfaces) = (String::new(), Vec::new());
    match emission.stage {
        Stage::Plan => {
            for plan in &plans {
                text.push_str(&describe(form, &elements, plan)?);
            }
        }
        Stage::Lower | Stage::Legalise => {
            let lowered = plans.iter().map(|plan| Ok(lower(form, &elements, plan)?.0));
            let mut kernels: Vec<Kernel> = lowered.collect::<Result<_, PlanError>>()?;
            match words {
                _ if emission.stage == Stage::Lower => {}
                None => {
                    let legal = kernels.into_iter().map(for_vectors);
                    kernels = legal.collect::<Result<_, _>>().map_err(PlanError::from)?;
                }
                Some(words) => {
                    for_threads(&mut kernels, words.spread.is_some()).map_err(PlanError::from)?;
                }
            }
            kernels.iter().for_each(|kernel| text.push_str(&kernel.to_string()));
        }
        _ => {
            check_underflow(form, &elements, &plans)?;
            let source = match words {
                None => generate_for_vectors(form, &elements, &plans, isa, emission.language)?,
                Some(words) => generate_for_threads(form, &elements, &plans, words)?,
            };
            let source = source.into_file();
            text = source.text;
            source.kernels.iter().for_each(|abi| text.push_str(&tables(abi)));
            let kernels = source.kernels.into_iter();
            interfaces = kernels.map(|abi| (abi.clone(), abi.interface(form))).collect();
        }
    }
    Ok((text, interfaces))
}

/// Formats the values of a kernel's [`Role::Tables`](kernels_gen::abi::Role::Tables), as comments after its text.
fn tables(abi: &KernelAbi) -> String {
    let mut text = String::new();
    if !abi.tables.is_empty() {
        text = format!("\n// The {} numbers of `tables` for {}:\n", abi.tables.len(), abi.name);
    }
    for line in abi.tables.chunks(8) {
        let numbers: Vec<String> = line.iter().map(|number| format!("{number:?}")).collect();
        text.push_str(&format!("// {},\n", numbers.join(", ")));
    }
    text
}

/// Returns the plans for a straight-edged mesh.
fn plans(
    form: &PointForm,
    elements: &Elements,
    isa: Isa,
    emission: &Emission,
) -> Result<Vec<Plan>, Error> {
    let tensor = elements.cell.is_factorised();
    let facts = MeshFacts {
        affine: !tensor,
        order: 1,
        runs: tensor,
        signs: elements.are_vector_valued(),
        periodic: false,
        hanging: emission.hanging,
        pairs: None,
    };
    let tasks = emission.task.map_or_else(|| TASKS.to_vec(), |task| vec![task]);
    let Emission { strategy, scatter, .. } = *emission;
    let wishes = PlanOverrides { strategy, scatter, ..PlanOverrides::default() };
    let precision = emission.precision;
    let mut plans = match emission.language {
        Language::Rust | Language::C => {
            choose(form, elements, &facts, &tasks, isa, precision, &wishes)?
        }
        Language::Cuda | Language::OpenCl => {
            choose_for_threads(form, elements, &facts, &tasks, precision, &wishes)?
        }
    };
    plans.retain(|plan| plan.hanging == emission.hanging);
    Ok(plans)
}
