//! The [`Plan`]: all choices that determine a kernel for a form and its elements.
//!
//! The physics (a `PointForm`) and the [`Elements`] define the result; the plan defines the algorithm. The choices are
//! independent; [`Plan::check`] rejects unsupported combinations with a reason.

pub mod cell_matrix;
pub(crate) mod components;
pub mod rule;
mod support;
mod task;
pub(crate) mod traces;
pub mod turns;

use crate::abi::Indices;
use crate::element::{Cell, Element, ElementError, Lagrange, Rule};
use crate::kir::Precision;
pub use components::Origin;
use fem_dsl::point::{Field, Input, Integral, Location, Node, Part, PointForm, Side, Slot, Space};
use std::fmt;
use std::str::FromStr;
use support::{facets, gradients, has_kernel, second_derivatives};
pub use support::{has_second, needs_bends};
pub use task::Task;

/// Source of a cell's map; values per cell in the argument [`crate::abi::Role::Geometry`], with d the dimension.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Geometry {
    /// J is constant: J row-major (d² values), then x_0 (d) if the form needs x; see [`affine_numbers`].
    Affine,
    /// Multilinear, on the fly: the coefficient of the monomial with bits m (1 for ξ, 2 for η, 4
    /// for ζ), component i, at `m · d + i`.
    Vertices,
    /// Affine on simplices and multilinear on tensor cells, on the fly from the coordinates of the corners. These are
    /// the nodes of the first field, which has degree 1, and are gathered from the vector of coordinates:
    /// [`crate::abi::Role::Coordinates`], or [`crate::abi::Role::Axis`]. There are no values per cell.
    Corners,
    /// Isoparametric of this degree, on the fly: component i of geometry node a at `a · d + i`.
    Nodes(usize),
    /// Stored at the quadrature points: c = 1 + d² (+ d) values at each, w |det J|, J⁻¹ row-major, and x if the form
    /// needs it; see [`Target`].
    Stored,
}

impl fmt::Display for Geometry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Affine => write!(f, "affine"),
            Self::Vertices => write!(f, "vertices"),
            Self::Corners => write!(f, "corners"),
            Self::Nodes(order) => write!(f, "nodes of order {order}"),
            Self::Stored => write!(f, "stored"),
        }
    }
}

/// The algorithm by which results of cells are summed into a vector.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Scatter {
    /// Cells add to their DoFs: threads of a GPU atomically, lanes of a CPU one after another.
    #[default]
    Atomic,
    /// The same with cells coloured so that no two cells of a launch share a DoF, without atomics. The sums follow the
    /// order of the launches: results are reproducible.
    Coloured,
    /// Cells store their contributions, [`crate::abi::Role::CellResult`], and a second kernel sums them per DoF in a
    /// fixed order: results are reproducible.
    Owner,
    /// The cells of a batch first sum their contributions in shared memory, [`Plan::slots`]; one atomic addition per
    /// slot then updates its DoFs.
    Block,
}

impl Scatter {
    /// All algorithms.
    pub const ALL: [Self; 4] = [Self::Atomic, Self::Coloured, Self::Owner, Self::Block];
}

impl fmt::Display for Scatter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Atomic => "atomic",
            Self::Coloured => "coloured",
            Self::Owner => "owner",
            Self::Block => "block",
        })
    }
}

impl FromStr for Scatter {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let found = Self::ALL.into_iter().find(|scatter| scatter.to_string() == text);
        found.ok_or_else(|| {
            format!("unknown scatter `{text}`: it is atomic, coloured, owner or block")
        })
    }
}

/// Source of the u-dependent part of a Jacobian's action.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Linearisation {
    /// Recomputed from u, at each point and each action.
    Recompute,
    /// Read from the quadrature points, as stored by [`Task::Linearise`].
    Stored,
}

/// Use of the even-odd decomposition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EvenOdd {
    /// Wherever the matrix allows it.
    Always,
    /// Never.
    Never,
}

/// The discrete setting: one cell, one rule, an element for each field and each nodal auxiliary field.
#[derive(Clone, Debug, PartialEq)]
pub struct Elements {
    /// The cell.
    pub cell: Cell,
    /// The degree k of the form.
    pub degree: usize,
    /// Quadrature.
    pub rule: Rule,
    /// The element of each field.
    pub fields: Vec<Element>,
    /// The numbers of each degree of freedom of a field: its components, 1 of vector-valued functions.
    pub components: Vec<usize>,
    /// The place of each field among those of the form, if these are components of vector-valued functions.
    pub origins: Vec<Origin>,
    /// The same of the auxiliary data.
    pub aux_origins: Vec<Origin>,
    /// The element of each nodal auxiliary field; `None` for those on cells and points.
    pub aux: Vec<Option<Element>>,
    /// Remarks on an explicit quadrature.
    pub notes: Vec<String>,
    /// Rank deficiency of this quadrature in a single cell; mesh and boundary conditions then decide whether a problem
    /// is regular.
    pub lost: Option<rule::QuadratureError>,
}

/// An unsupported form, element or plan.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum PlanError {
    /// The cell and the form differ in dimension.
    #[error("the form `{form}` is for {form_dim} dimensions, but a {cell} has {cell_dim}")]
    Dimension {
        /// The form.
        form: String,
        /// Its dimension.
        form_dim: usize,
        /// The cell.
        cell: Cell,
        /// Its dimension.
        cell_dim: usize,
    },
    /// A space's degree is out of range.
    #[error(
        "`{name}` would have degree {degree} on a {cell}: supported are degrees {least} to {most}"
    )]
    Degree {
        /// The field or aux.
        name: String,
        /// Its degree.
        degree: i64,
        /// The cell.
        cell: Cell,
        /// Smallest supported.
        least: usize,
        /// Largest supported.
        most: usize,
    },
    /// A rejected explicit quadrature.
    #[error("{}\nhelp: {}", .0, .0.remedy())]
    Quadrature(#[from] rule::QuadratureError),
    /// An unimplemented feature.
    #[error("{0}")]
    Unsupported(String),
    /// A strategy generated a kernel that violates the rules of the kernel IR.
    #[error(transparent)]
    Malformed(#[from] crate::kir::verify::VerifyError),
}

/// Returns the largest supported degree of a Lagrange element.
pub fn largest_degree(cell: Cell) -> usize {
    if cell.is_tensor() { 12 } else { 4 }
}

impl Elements {
    /// Returns the elements of a form at degree `k`, with the given rule.
    pub fn new(form: &PointForm, cell: Cell, degree: usize, rule: Rule) -> Result<Self, PlanError> {
        if form.dim != cell.dim() {
            return Err(PlanError::Dimension {
                form: form.name.clone(),
                form_dim: form.dim,
                cell,
                cell_dim: cell.dim(),
            });
        }
        let resolve = |name: &str, space: Space| {
            let most = largest_degree(cell);
            let made = Element::in_space(cell, space, degree);
            match made.ok().filter(|element| element.degree() <= most) {
                Some(element) => Ok(element),
                None => {
                    let least = usize::from(!matches!(space, Space::L2(_)));
                    let (name, degree) = (name.to_owned(), space.degree_at(degree));
                    Err(PlanError::Degree { name, degree, cell, least, most })
                }
            }
        };
        let fields = form.fields.iter().map(|field| resolve(&field.name, field.space));
        let aux = form.aux.iter().map(|aux| match aux.location {
            Location::Nodes(space) => resolve(&aux.name, space).map(Some),
            Location::Cells | Location::Points => Ok(None),
        });
        let fields: Vec<Element> = fields.collect::<Result<_, _>>()?;
        let aux: Vec<Option<Element>> = aux.collect::<Result<_, _>>()?;
        let components = |(field, element): (&Field, &Element)| {
            element.whitney().map_or(field.shape.components(), |_| 1)
        };
        let components = form.fields.iter().zip(&fields).map(components).collect();
        let origin = |(index, name, element): (usize, &str, Option<Element>)| Origin {
            index,
            name: name.to_owned(),
            first: 0,
            total: element.map_or(0, Element::count),
        };
        let names = form.fields.iter().zip(&fields).enumerate();
        let origins = names.map(|(i, (field, &of))| origin((i, &field.name, Some(of)))).collect();
        let names = form.aux.iter().zip(&aux).enumerate();
        let aux_origins = names.map(|(i, (data, &of))| origin((i, &data.name, of))).collect();
        let (notes, lost) = (Vec::new(), None);
        Ok(Self { cell, degree, rule, fields, components, origins, aux_origins, aux, notes, lost })
    }

    /// Returns the elements of one field at its own degree, with the same data.
    pub fn of_one(&self, field: usize) -> Self {
        let element = self.fields[field];
        Self {
            degree: element.degree(),
            fields: vec![element],
            components: vec![self.components[field]],
            origins: vec![Origin { index: 0, ..self.origins[field].clone() }],
            notes: Vec::new(),
            lost: None,
            ..self.clone()
        }
    }

    /// Returns the elements of a form of one field without data, for a rule.
    pub fn of_field(name: &str, element: Element, components: usize, rule: Rule) -> Self {
        let (cell, degree, total) = (element.cell(), element.degree(), element.count());
        Self {
            cell,
            degree,
            rule,
            fields: vec![element],
            components: vec![components],
            origins: vec![Origin { index: 0, name: name.to_owned(), first: 0, total }],
            aux: Vec::new(),
            aux_origins: Vec::new(),
            notes: Vec::new(),
            lost: None,
        }
    }

    /// Returns the element and the number of components of each field.
    pub fn spaces(&self) -> Vec<(Element, usize)> {
        self.fields.iter().copied().zip(self.components.iter().copied()).collect()
    }

    /// Returns the element of nodal data; of degree 1 if it has none.
    pub fn element_of_aux(&self, aux: usize) -> Result<Element, ElementError> {
        match self.aux.get(aux).copied().flatten() {
            Some(element) => Ok(element),
            None => Ok(Lagrange::continuous(self.cell, 1)?.into()),
        }
    }

    /// Returns whether the nodes of an element are the quadrature points.
    pub fn collocated(&self, element: Element) -> bool {
        self.rule.line().is_some_and(|line| element.line() == Some(line))
    }

    /// Returns the largest degree among the fields.
    pub fn largest(&self) -> usize {
        self.fields.iter().map(|element| element.degree()).max().unwrap_or(1)
    }

    /// Returns whether the nodes of the first field are the corners of the cells.
    pub fn at_corners(&self) -> bool {
        let linear = |element: &Element| {
            element.lagrange().is_some_and(|own| own.is_continuous() && own.degree() == 1)
        };
        self.fields.first().is_some_and(linear)
    }

    /// Returns whether a slot is the derivative of a field that is constant in each cell, and therefore 0.
    pub fn vanishes(&self, slot: Slot) -> bool {
        is_derivative(slot.part) && self.fields[slot.field].degree() == 0
    }

    /// Returns whether an input is such a derivative, of a field or of nodal data.
    pub fn is_zero(&self, input: Input) -> bool {
        match input {
            Input::State(slot) | Input::Direction(slot) => self.vanishes(slot),
            Input::Aux(slot) => {
                let constant = self.aux[slot.field].is_some_and(|element| element.degree() == 0);
                constant && is_derivative(slot.part)
            }
            _ => false,
        }
    }

    /// Returns whether the functions of any field or data are vectors, or components of such.
    pub fn are_vector_valued(&self) -> bool {
        let mut all = self.fields.iter().chain(self.aux.iter().flatten());
        all.any(|element| element.lagrange().is_none())
    }

    /// Returns whether cells share DoFs in all fields.
    pub fn are_continuous(&self) -> bool {
        self.fields.iter().all(|element| element.is_continuous())
    }
}

/// Distribution of work over lanes and threads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Strategy {
    /// One SIMD lane, or one thread of a GPU, processes one cell.
    CellPerLane,
    /// Each thread of a GPU processes whole lines of points of a hexahedron, q² threads per cell.
    ThreadPerLine {
        /// Cells per group of threads.
        cells: usize,
    },
    /// Each thread of a GPU processes one node or point of a tensor cell; the cells of a group are the plan's lanes.
    ThreadPerDof,
    /// The threads of a GPU first own quadrature points of a batch of cells, then basis functions; the cells of a batch
    /// are the plan's lanes.
    ThreadTransposition {
        /// N_bl: blocks of LCM(N_b, N_q) · N_comp threads.
        blocks: usize,
        /// N_cb: batches that a group of threads processes one after another.
        batches: usize,
    },
}

impl fmt::Display for Strategy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::CellPerLane => "cell_per_lane",
            Self::ThreadPerLine { .. } => "thread_per_line",
            Self::ThreadPerDof => "thread_per_dof",
            Self::ThreadTransposition { .. } => "thread_transposition",
        })
    }
}

/// Parses a strategy by its name, with default sizes; thread transposition also as
/// `thread_transposition:BLOCKSxBATCHES`.
impl FromStr for Strategy {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (name, sizes) = text.split_once(':').unwrap_or((text, "0x0"));
        let sizes = sizes
            .split_once('x')
            .and_then(|(blocks, batches)| Some((blocks.parse().ok()?, batches.parse().ok()?)));
        match (name, sizes) {
            ("cell_per_lane", _) if name == text => Ok(Self::CellPerLane),
            ("thread_per_line", _) if name == text => Ok(Self::ThreadPerLine { cells: 1 }),
            ("thread_per_dof", _) if name == text => Ok(Self::ThreadPerDof),
            ("thread_transposition", Some((blocks, batches))) => {
                Ok(Self::ThreadTransposition { blocks, batches })
            }
            _ => Err(format!(
                "unknown strategy `{text}`; the strategies are cell_per_lane, thread_per_line, \
                 thread_per_dof and thread_transposition, or thread_transposition:BLOCKSxBATCHES"
            )),
        }
    }
}

/// The processor that runs a kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Target {
    /// A CPU, with a cell per vector lane. Vectors of DoFs are interleaved, and data at the points is stored as
    /// `[point][number]`, in the order of a loop over points. Tables of the next batch are prefetched.
    Vectors,
    /// A GPU, whose threads process cells, or parts of them, concurrently. Data read at once is contiguous. Data at the
    /// points is `[number][point]`, and coordinates are axis by axis unless vectors are tiled. Index arrays follow the
    /// order of lines if a thread processes a line, [`crate::abi::Role::Lines`].
    Threads,
}

/// All choices that determine a kernel.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    /// The processor that runs it.
    pub target: Target,
    /// Its computation.
    pub task: Task,
    /// The index of the integral in the form.
    pub integral: usize,
    /// The distribution of work.
    pub strategy: Strategy,
    /// Target number of resident groups per multiprocessor, which bounds their registers.
    pub residency: usize,
    /// True if a GPU's assembler roughly keeps the order of the source. This takes fewer registers and half the time,
    /// but does not optimise the order for latency.
    pub in_order: bool,
    /// True if threads with a line of a hexahedron each overwrite values by derivatives in x, which saves a third of
    /// the shared memory for two additional barriers.
    pub in_place: bool,
    /// True if threads with a line each store results at nodes inside of cells, and add only to the others.
    pub stores_inside: bool,
    /// Nodes per line above which such a thread recomputes interior values on demand instead of keeping them in
    /// registers.
    pub recomputed: usize,
    /// Bytes of shared memory per group.
    pub shared_bytes: usize,
    /// Cells per batch: one per SIMD lane.
    pub lanes: usize,
    /// Precision of vectors, tables and arithmetic.
    pub precision: Precision,
    /// The map of a cell.
    pub geometry: Geometry,
    /// The addressing of DoFs.
    pub indices: Indices,
    /// True if vectors of DoFs are tiled, [`Indices::Tiles`], rather than interleaved.
    pub tiles: bool,
    /// The algorithm that sums results into their vector.
    pub scatter: Scatter,
    /// The slots for each field if the cells of a batch sum first, [`Scatter::Block`]; else empty.
    pub slots: Vec<crate::abi::Slots>,
    /// True if cells have hanging nodes ([`crate::abi::hanging`]): values read from their parents are interpolated, and
    /// results are transformed by the transpose.
    pub hanging: bool,
    /// True if degrees of freedom of vector-valued functions have a sign in each cell, [`crate::abi::Role::Signs`].
    pub signs: bool,
    /// The facet of its cell that all facets of a kernel are: with vector-valued functions on simplices, which no rotation
    /// of the cell permutes. Of pairs of cells those of both ([`turns::of_pair`]).
    pub facet: Option<u16>,
    /// The larger of two cells at a facet, of which the facet is a half along each of its axes.
    pub larger: Option<Side>,
    /// True if threads with a cell each add to both ends of an edge at once, since the next thread's cell may continue
    /// there. Applies to atomic additions on tensor cells.
    pub edges: bool,
    /// The u-dependent part.
    pub linearisation: Linearisation,
    /// The even-odd decomposition.
    pub even_odd: EvenOdd,
    /// The trip count up to which loops are unrolled.
    pub unroll: usize,
    /// The number of batches that are gathered, then computed, then scattered together; 1 for each separately.
    pub block: usize,
    /// True if a batch of pairs may write to one of its cells alone, as in the chunks of a host: results then have index
    /// arrays of their own.
    pub one_sided: bool,
    /// True if cells of an integral between cells are known to be affine: their map is constant on a facet.
    pub affine: bool,
}

impl Plan {
    /// Returns a plan for a task with the choices that are valid on any machine.
    pub fn new(
        target: Target,
        task: Task,
        lanes: usize,
        precision: Precision,
        geometry: Geometry,
    ) -> Self {
        Self {
            target,
            task,
            integral: 0,
            strategy: Strategy::CellPerLane,
            residency: 1,
            in_order: false,
            in_place: false,
            stores_inside: false,
            recomputed: usize::MAX,
            shared_bytes: crate::abi::SHARED_BYTES,
            lanes,
            precision,
            geometry,
            indices: Indices::Nodes,
            tiles: false,
            scatter: Scatter::Atomic,
            slots: Vec::new(),
            hanging: false,
            signs: false,
            facet: None,
            larger: None,
            edges: false,
            linearisation: Linearisation::Recompute,
            even_odd: EvenOdd::Always,
            unroll: 0,
            block: 1,
            one_sided: target == Target::Vectors,
            affine: false,
        }
    }

    /// Checks that the choices of a plan are compatible, for the form; [`crate::strategy::check`] also checks the
    /// strategy.
    pub fn check(&self, form: &PointForm, elements: &Elements) -> Result<(), PlanError> {
        let unsupported = |text: &str| Err(PlanError::Unsupported(text.to_owned()));
        let Some(integral) = form.integrals.get(self.integral) else {
            return unsupported("the form has no such integral");
        };
        has_kernel(self, integral)?;
        if has_second(integral) {
            second_derivatives(self, form, integral, elements)?;
        }
        gradients(self, integral, elements)?;
        if !integral.region.is_of_cells() {
            facets(self, form, integral)?;
        }
        let tensor = elements.cell.is_factorised();
        if self.target == Target::Vectors && self.strategy != Strategy::CellPerLane {
            return unsupported("only the threads of a GPU share a cell");
        }
        match self.geometry {
            Geometry::Vertices if !tensor => {
                return unsupported("lines and straight simplices are affine: use that geometry");
            }
            Geometry::Stored if self.task.stores() => {
                return unsupported("what is stored at the points must come from the mesh itself");
            }
            Geometry::Corners if !elements.at_corners() || self.indices != Indices::Nodes => {
                return unsupported("corners are gathered by the nodes of a field of degree 1");
            }
            Geometry::Corners if self.tiles && form.fields[0].shape.components() < form.dim => {
                return unsupported(
                    "tiles of fewer components than directions have no room for corners",
                );
            }
            Geometry::Corners if self.task.stores() => {
                return unsupported("corners are gathered where a field is");
            }
            _ => {}
        }
        if self.task.is_of_matrices() {
            if matches!(self.indices, Indices::Runs | Indices::Cells) && self.task != Task::Matrix {
                return unsupported("an element matrix takes unknowns one by one");
            }
            if self.strategy != Strategy::CellPerLane {
                return unsupported("an element matrix is one thread's");
            }
            if self.scatter == Scatter::Block {
                return unsupported("element matrices are added entry by entry");
            }
        }
        if self.scatter != Scatter::Block && !self.slots.is_empty() {
            return unsupported("slots are where the cells of a batch sum first");
        }
        if self.indices == Indices::Tiles {
            return unsupported(
                "that vectors are in tiles is said apart from how unknowns are addressed",
            );
        }
        if self.indices == Indices::Cells && !(tensor && self.target == Target::Vectors) {
            return unsupported("whole cells are read by vectors of tensor cells");
        }
        if self.tiles && self.indices == Indices::Runs {
            return unsupported("runs of unknowns do not lie in tiles");
        }
        if self.indices == Indices::Runs && !(tensor && elements.are_continuous()) {
            return unsupported("runs of unknowns need a tensor cell and continuous fields");
        }
        let whitney = elements.are_vector_valued();
        if whitney && self.indices == Indices::Cells {
            return unsupported("cells share degrees of freedom of vector-valued functions");
        }
        if whitney && self.indices == Indices::Runs && self.signs {
            return unsupported("degrees of freedom with signs have an index each");
        }
        let shares = match self.strategy {
            Strategy::CellPerLane => true,
            Strategy::ThreadPerLine { .. } => tensor && !self.hanging,
            Strategy::ThreadTransposition { .. } => !tensor,
            Strategy::ThreadPerDof => false,
        };
        if whitney && (!shares || self.scatter == Scatter::Block) {
            return unsupported(
                "vector-valued functions have a lane or thread for each cell, lines of hexahedra or points of simplices",
            );
        }
        let at_one = whitney && !tensor && !integral.region.is_of_cells();
        if at_one != self.facet.is_some() {
            return unsupported(
                "vector-valued functions of simplices have a kernel for each facet",
            );
        }
        if self.hanging && !tensor {
            return unsupported("nodes of simplices do not hang");
        }
        if self.hanging && (self.geometry == Geometry::Corners || self.edges) {
            return unsupported("a corner of a cell with hanging nodes is no node");
        }
        if self.linearisation == Linearisation::Stored && self.task != Task::Action {
            return unsupported("only the Jacobian's action reads a stored linearisation");
        }
        Ok(())
    }
}

/// Returns the integrals over cells.
fn over_cells(form: &PointForm) -> impl Iterator<Item = &Integral> {
    form.integrals.iter().filter(|integral| integral.region.is_of_cells())
}

/// Returns the tested values of an integral's residual at a point: component, among those of all fields, and part of
/// each. A component tested against any derivative is tested against all of them.
pub fn tested(form: &PointForm, elements: &Elements, integral: usize) -> Vec<(usize, Part)> {
    let slots = form.integrals[integral].residual.iter().map(|(slot, _)| *slot);
    let slots: Vec<Slot> = slots.filter(|slot| !elements.vanishes(*slot)).collect();
    let has = |row: usize, derivative: bool| {
        let own = |slot: &&Slot| form.row(slot.field, slot.component) == row;
        slots.iter().filter(own).any(|slot| is_derivative(slot.part) == derivative)
    };
    let of_row = |row: usize| {
        let axes = if has(row, true) { 0..form.dim } else { 0..0 };
        let value = has(row, false).then_some(Part::Value);
        value.into_iter().chain(axes.map(Part::Derivative)).map(move |part| (row, part))
    };
    (0..form.rows()).flat_map(of_row).collect()
}

/// Returns the tested values of a kernel. Those of vector-valued functions are tested against components of the reference
/// functions. An integral over pairs of cells has the rows of the inside, then those of the outside.
pub fn tested_in_kernel(
    form: &PointForm,
    elements: &Elements,
    integral: usize,
) -> Vec<(usize, Part)> {
    let (form, elements) = traces::with_all_traces(form, elements, integral);
    tested(&form, &elements, integral)
}

/// Returns whether any graph node that `integral` needs for its views reads such an input.
pub fn reads(integral: &Integral, select: impl Fn(Input) -> bool) -> bool {
    integral.graph.nodes().iter().any(|node| matches!(node, Node::Input(input) if select(*input)))
}

/// Returns whether a form reads the coordinates x on cells.
pub fn reads_coordinates(form: &PointForm) -> bool {
    over_cells(form).any(|integral| reads(integral, |input| matches!(input, Input::Coordinate(_))))
}

/// Returns the values per cell of [`Geometry::Affine`], the same for all kernels of a form. They include the image of
/// the reference origin only for forms that read x, on cells or on their facets.
pub fn affine_numbers(form: &PointForm) -> usize {
    let coordinate = |input| matches!(input, Input::Coordinate(_));
    let x = form.integrals.iter().any(|integral| reads(integral, coordinate));
    form.dim * form.dim + if x { form.dim } else { 0 }
}

/// Returns whether no gradient is read or tested, as in a mass matrix.
pub fn is_flat(form: &PointForm) -> bool {
    over_cells(form).all(|integral| {
        let tested = integral.residual.iter().all(|(slot, _)| slot.part == Part::Value);
        let gradient = |slot: Slot| is_derivative(slot.part);
        tested
            && !reads(integral, |input| match input {
                Input::State(slot) | Input::Direction(slot) | Input::Aux(slot) => gradient(slot),
                _ => false,
            })
    })
}

/// Returns whether a part is a derivative.
pub fn is_derivative(part: Part) -> bool {
    part != Part::Value
}

fn gcd(a: usize, b: usize) -> usize {
    if b == 0 { a } else { gcd(b, a % b) }
}

/// Returns the least common multiple.
pub(crate) fn lcm(a: usize, b: usize) -> usize {
    a / gcd(a, b) * b
}
