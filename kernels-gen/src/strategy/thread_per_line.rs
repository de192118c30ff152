//! `thread_per_line`: q² threads of a GPU work on a hexahedron, each on one whole line a phase.
//!
//! With n nodes and q points a direction, and thread (i, j) of a cell:
//!
//! ```text
//! gather   column (i, j): n nodes, B in z, to shared memory
//! x, y     rows (z, y): B in x;  rows (z, x): B in y and D in y at once
//! x        rows (z, y): D in x
//! column   (i, j): D in z in registers, the point function at q points, Dᵀ in z
//! x, y     the way back: Dᵀ, then Bᵀ
//! scatter  column (i, j): Bᵀ in z, atomic additions
//! ```
//!
//! Where nodes and points coincide, gathering and scattering are done by the rows in y, and the
//! interpolations vanish. All 1D matrices are literals; a thread reads and writes each entry of its
//! line once a phase. The layout and its costs: the measurements behind the `thread_per_line` rows of
//! `wf bench --backend cuda`.

use super::cell_per_lane::setting::{Setting, Source};
use super::cell_per_lane::tensor::{CellGeometry, Factors, cell_geometry, factors};
use super::cell_per_lane::{at_point, map_of};
use crate::abi::{Indices, KernelAbi, Role};
use crate::element::{Cell, LinePoints, LineTable};
use crate::kir::build::Builder;
use crate::kir::{Entries, Index, Kernel, SharedId, TableId, ValueId, VarId};
use crate::lower::contract::{Matrix, contract};
use crate::lower::geometry::{
    AtPoint, MultilinearRow, multilinear_layer, multilinear_point, multilinear_row,
};
use crate::plan::{Elements, Geometry, Linearisation, Plan, PlanError, Task};
use fem_dsl::point::{Location, Part, PointForm};

/// Shared memory of a group that every device has, in bytes.
const SHARED: usize = 48 << 10;
/// Threads of a group that every device allows.
const THREADS: usize = 1024;

/// Cells of a group that do well with q points a direction: groups of 64 to 130 threads.
pub fn cells(q: usize) -> usize {
    match q {
        0..=3 => 8,
        4 => 4,
        5 => 5,
        6 | 7 => 3,
        _ => 1,
    }
}

/// Groups that a processor is to hold: about 80 registers a thread up to 7 points, 96 above.
pub fn residency(q: usize, cells: usize) -> usize {
    let registers = if q <= 7 { 80 } else { 96 };
    let threads = (cells * q * q).next_multiple_of(32);
    (65536 / (registers * threads)).clamp(1, 32)
}

/// Whether this strategy can do a plan.
pub(crate) fn check(
    form: &PointForm,
    elements: &Elements,
    plan: &Plan,
    cells: usize,
) -> Result<(), PlanError> {
    let refuse = |text: String| Err(PlanError::Unsupported(text));
    let Some(line) = elements.rule.line().filter(|_| elements.cell == Cell::Hexahedron) else {
        return refuse("a thread a line works on hexahedra".to_owned());
    };
    if !matches!(plan.task, Task::Residual | Task::Action)
        || plan.linearisation == Linearisation::Stored
        || plan.lanes != 1
        || plan.indices == Indices::Runs
    {
        let word = plan.task.word();
        return refuse(format!("a thread a line computes no {word} in this way"));
    }
    if !matches!(plan.geometry, Geometry::Affine | Geometry::Vertices) {
        return refuse(format!("a thread a line does not take geometry `{}`", plan.geometry));
    }
    let q = line.count();
    let nodal =
        form.aux.iter().zip(&elements.aux).filter_map(|(aux, degree)| {
            matches!(aux.location, Location::Nodes(_)).then_some(*degree)
        });
    let fields = elements.fields.iter().map(|&degree| Some(degree));
    let mut degrees = fields.chain(nodal);
    if degrees.any(|degree| degree.is_some_and(|degree| degree + 1 > q)) {
        return refuse("a thread a line needs as many points as nodes a direction".to_owned());
    }
    let (kernel, _) = lower(form, elements, plan, cells);
    let numbers: usize = kernel.shared.iter().map(|array| array.length).sum();
    let (bytes, threads) = (numbers * plan.precision.bytes(), cells * q * q);
    if bytes > SHARED || threads > THREADS {
        return refuse(format!(
            "{cells} cells a group would take {bytes} bytes of shared memory and {threads} threads"
        ));
    }
    Ok(())
}

/// From one row to the next in shared memory: odd, so that rows begin in different banks.
fn row_stride(q: usize) -> usize {
    q | 1
}

/// Writes the kernel.
pub(super) fn lower(
    form: &PointForm,
    elements: &Elements,
    plan: &Plan,
    cells: usize,
) -> (Kernel, KernelAbi) {
    let mut setting = Setting::new(form, elements, plan);
    let lines = Lines::new(&mut setting, cells);
    lines.write(&mut setting);
    setting.finish()
}

/// A quantity, or the result, in shared memory.
struct Held {
    factors: Factors,
    components: usize,
    /// Values.
    value: SharedId,
    /// Derivatives in x and y.
    slopes: Option<[SharedId; 2]>,
}

/// Everything that stays the same through a kernel.
struct Lines {
    q: usize,
    /// The cell in its group, and the thread's two digits.
    cell: VarId,
    i: VarId,
    j: VarId,
    derive: Matrix,
    line: LinePoints,
    points: TableId,
    weights: TableId,
    inputs: Vec<Held>,
    result: Held,
}

impl Lines {
    fn new(s: &mut Setting<'_>, cells: usize) -> Self {
        let line = s.elements.rule.line().expect("the plan should have checked the rule");
        let q = line.count();
        s.b.set_threads(cells * q * q, cells);
        let cell = s.b.thread_var("cell", q * q, cells);
        let i = s.b.thread_var("i", 1, q);
        let j = s.b.thread_var("j", q, q);
        let table = LineTable::new(line, line);
        let derive = Matrix::from_fn(q, q, |a, b| table.derivative(a, b));
        let points = s.b.table("points", Entries::Real(line.points()));
        let weights = s.b.table("weights", Entries::Real(line.weights()));
        let length = |components: usize| cells * components * q * q * row_stride(q);
        let mut inputs = Vec::new();
        for quantity in s.quantities.clone() {
            let length = length(quantity.components);
            let name = &quantity.name;
            let value = s.b.shared(&format!("{name}_s"), length);
            let slopes = quantity
                .gradient
                .then(|| ["x", "y"].map(|axis| s.b.shared(&format!("{name}_{axis}"), length)));
            let factors = factors(line, quantity.degree);
            inputs.push(Held { factors, components: quantity.components, value, slopes });
        }
        let own = [Source::Direction(0), Source::State(0)];
        let own = own.iter().find_map(|&source| s.quantity(source));
        let components = s.components(0);
        let gradient = (0..components).any(|component| s.tested(component).1);
        let value = match own {
            Some(own) => inputs[own].value,
            None => s.b.shared("r_s", length(components)),
        };
        let known = own.and_then(|own| inputs[own].slopes);
        let slopes = match (gradient, known) {
            (true, Some(known)) => Some(known),
            (true, None) => {
                Some(["x", "y"].map(|axis| s.b.shared(&format!("r_{axis}"), length(components))))
            }
            (false, _) => None,
        };
        let factors = factors(line, s.elements.fields[0]);
        let result = Held { factors, components, value, slopes };
        Self { q, cell, i, j, derive, line, points, weights, inputs, result }
    }

    /// The place of (z, y, x) of a component in the shared array of a held quantity.
    fn place(&self, held: &Held, component: usize, [z, y, x]: [&Index; 3]) -> Index {
        let row = row_stride(self.q);
        let volume = self.q * self.q * row;
        let cell = Index::from(self.cell).times(held.components * volume);
        let inner = &z.times(self.q * row) + &(&y.times(row) + x);
        (&cell + &inner).plus(component * volume)
    }

    fn i(&self) -> Index {
        Index::from(self.i)
    }

    fn j(&self) -> Index {
        Index::from(self.j)
    }

    /// Runs `body` in the threads with i and j below their bounds.
    fn when(
        &self,
        s: &mut Setting<'_>,
        (i, j): (usize, usize),
        body: impl FnOnce(&mut Setting<'_>),
    ) {
        let bounds = [(self.i, i), (self.j, j)];
        let below: Vec<_> = bounds.into_iter().filter(|(_, bound)| *bound < self.q).collect();
        if below.is_empty() {
            body(s);
            return;
        }
        s.b.open_when();
        body(s);
        s.b.close_when(below);
    }

    /// The first `count` entries of the line along `axis` (0 for x) through (j, i).
    fn load(
        &self,
        b: &mut Builder,
        array: SharedId,
        held: &Held,
        component: usize,
        axis: usize,
        count: usize,
    ) -> Vec<ValueId> {
        (0..count)
            .map(|at| {
                let place = self.on_line(held, component, axis, at);
                b.load_shared(array, place)
            })
            .collect()
    }

    fn store(
        &self,
        b: &mut Builder,
        array: SharedId,
        held: &Held,
        component: usize,
        axis: usize,
        values: &[ValueId],
    ) {
        for (at, &value) in values.iter().enumerate() {
            let place = self.on_line(held, component, axis, at);
            b.statement(crate::kir::Statement::StoreShared(array, place, value));
        }
    }

    /// Entry `at` of the thread's line: rows along x and y belong to layer j, columns to (j, i).
    fn on_line(&self, held: &Held, component: usize, axis: usize, at: usize) -> Index {
        let (i, j, at) = (self.i(), self.j(), Index::from(at));
        match axis {
            0 => self.place(held, component, [&j, &i, &at]),
            1 => self.place(held, component, [&j, &at, &i]),
            _ => self.place(held, component, [&at, &j, &i]),
        }
    }

    fn write(&self, s: &mut Setting<'_>) {
        s.gathered();
        self.gather(s);
        barrier(s);
        self.interpolate(s);
        self.slopes(s);
        self.column(s);
        self.slopes_back(s);
        self.scatter(s);
    }

    /// The unknowns of the thread's line of nodes, along `axis`.
    fn nodes(&self, s: &Setting<'_>, n: usize, axis: usize) -> Vec<Index> {
        let (i, j) = (self.i(), self.j());
        (0..n)
            .map(|at| {
                let at = Index::from(at);
                let [z, y, x] = if axis == 1 { [&j, &at, &i] } else { [&at, &j, &i] };
                let node = &(&z.times(n) + y).times(n) + x;
                &Index::from(s.b.batch()).times(n * n * n) + &node
            })
            .collect()
    }

    fn gather(&self, s: &mut Setting<'_>) {
        for (index, quantity) in s.quantities.clone().iter().enumerate() {
            let held = &self.inputs[index];
            let n = held.factors.n;
            let identity = held.factors.interpolate.is_identity();
            s.b.comment(&format!("gather {}", quantity.name));
            let axis = if identity { 1 } else { 2 };
            self.when(s, (n, n), |s| {
                let source = s.arguments[&quantity.source.role()];
                let (map, indices) = map_of(s, quantity);
                let nodes = self.nodes(s, n, axis);
                for c in 0..quantity.components {
                    let gather = |s: &mut Setting<'_>, at: &Index| match indices {
                        Indices::Dofs => {
                            let at = at.times(quantity.components).plus(c);
                            s.b.gather(source, map, at, (1, 0), true)
                        }
                        Indices::Nodes | Indices::Runs => {
                            s.b.gather(source, map, at.clone(), (quantity.components, c), false)
                        }
                    };
                    let line: Vec<ValueId> = nodes.iter().map(|at| gather(s, at)).collect();
                    let even_odd = s.plan.even_odd;
                    if identity {
                        self.store(&mut s.b, held.value, held, c, axis, &line);
                        if let Some([_, y]) = held.slopes {
                            let slope = contract(&mut s.b, &self.derive, &line, None, even_odd);
                            self.store(&mut s.b, y, held, c, axis, &slope);
                        }
                    } else {
                        let matrix = &held.factors.interpolate;
                        let values = contract(&mut s.b, matrix, &line, None, even_odd);
                        self.store(&mut s.b, held.value, held, c, axis, &values);
                    }
                }
            });
        }
    }

    /// B in x, then B and D in y.
    fn interpolate(&self, s: &mut Setting<'_>) {
        let even_odd = s.plan.even_odd;
        let moved = |held: &&Held| !held.factors.interpolate.is_identity();
        if !self.inputs.iter().any(|held| moved(&held)) {
            return;
        }
        s.b.comment("interpolate in x");
        for held in self.inputs.iter().filter(moved) {
            let (n, matrix) = (held.factors.n, &held.factors.interpolate);
            self.when(s, (n, self.q), |s| {
                for c in 0..held.components {
                    let line = self.load(&mut s.b, held.value, held, c, 0, n);
                    let values = contract(&mut s.b, matrix, &line, None, even_odd);
                    self.store(&mut s.b, held.value, held, c, 0, &values);
                }
            });
        }
        barrier(s);
        s.b.comment("interpolate and differentiate in y");
        for held in self.inputs.iter().filter(moved) {
            let (n, matrix) = (held.factors.n, &held.factors.interpolate);
            for c in 0..held.components {
                let line = self.load(&mut s.b, held.value, held, c, 1, n);
                let values = contract(&mut s.b, matrix, &line, None, even_odd);
                self.store(&mut s.b, held.value, held, c, 1, &values);
                if let Some([_, y]) = held.slopes {
                    let slope = contract(&mut s.b, &self.derive, &values, None, even_odd);
                    self.store(&mut s.b, y, held, c, 1, &slope);
                }
            }
        }
        barrier(s);
    }

    /// D in x.
    fn slopes(&self, s: &mut Setting<'_>) {
        if self.inputs.iter().all(|held| held.slopes.is_none()) {
            return;
        }
        s.b.comment("differentiate in x");
        let even_odd = s.plan.even_odd;
        for held in &self.inputs {
            let Some([x, _]) = held.slopes else { continue };
            for c in 0..held.components {
                let line = self.load(&mut s.b, held.value, held, c, 0, self.q);
                let slope = contract(&mut s.b, &self.derive, &line, None, even_odd);
                self.store(&mut s.b, x, held, c, 0, &slope);
            }
        }
        barrier(s);
    }

    /// D in z, the points, and Dᵀ in z.
    fn column(&self, s: &mut Setting<'_>) {
        s.b.comment("points");
        let (q, even_odd) = (self.q, s.plan.even_odd);
        let mut columns = Vec::new();
        for held in &self.inputs {
            for c in 0..held.components {
                let values = self.load(&mut s.b, held.value, held, c, 2, q);
                let slopes = match held.slopes {
                    Some(_) => contract(&mut s.b, &self.derive, &values, None, even_odd),
                    None => Vec::new(),
                };
                columns.push((values, slopes));
            }
        }
        let first: Vec<usize> = self
            .inputs
            .iter()
            .scan(0, |next, held| {
                let first = *next;
                *next += held.components;
                Some(first)
            })
            .collect();
        let geometry = self.column_geometry(s);
        let line_weights = self.line.weights();
        let line_points = self.line.points();
        let across = {
            let (i, j) = (self.i(), self.j());
            let (a, b) = (s.b.load_table(self.weights, i), s.b.load_table(self.weights, j));
            s.b.mul(a, b)
        };
        let zero = s.b.constant(0.0);
        let components = self.result.components;
        let mut values = vec![vec![zero; q]; components];
        let mut fluxes = vec![vec![zero; q]; components];
        for z in 0..q {
            let number = &(&Index::from(z * q) + &self.j()).times(q) + &self.i();
            let weight = s.b.constant(line_weights[z]);
            let weight = s.b.mul(across, weight);
            let at = self.geometry_at(s, &geometry, line_points[z], weight);
            let mut evaluate = |s: &mut Setting<'_>, quantity: usize, c: usize, part: Part| {
                let held = &self.inputs[quantity];
                let (column, slope) = &columns[first[quantity] + c];
                match (part, held.slopes) {
                    (Part::Value, _) => column[z],
                    (Part::Derivative(2), _) => slope[z],
                    (Part::Derivative(axis), Some(arrays)) => {
                        let place = self.on_line(held, c, 2, z);
                        s.b.load_shared(arrays[axis], place)
                    }
                    (Part::Derivative(_), None) => {
                        unreachable!("a gradient should be held where it is needed")
                    }
                }
            };
            let tested = at_point(s, &at, &number, &mut evaluate);
            for (c, tested) in tested.iter().enumerate() {
                values[c][z] = tested.value.unwrap_or(zero);
                let [fx, fy, fz] = tested.gradient[..] else { continue };
                let Some(arrays) = self.result.slopes else { continue };
                for (array, flux) in arrays.into_iter().zip([fx, fy]) {
                    let place = self.on_line(&self.result, c, 2, z);
                    s.b.statement(crate::kir::Statement::StoreShared(array, place, flux));
                }
                fluxes[c][z] = fz;
            }
        }
        let back = self.derive.transposed();
        for c in 0..components {
            let (has_value, has_gradient) = s.tested(c);
            let onto = has_value.then_some(&values[c][..]);
            let sum = if has_gradient {
                contract(&mut s.b, &back, &fluxes[c], onto, even_odd)
            } else {
                values[c].clone()
            };
            self.store(&mut s.b, self.result.value, &self.result, c, 2, &sum);
        }
        barrier(s);
    }

    /// Dᵀ in x, then Dᵀ and Bᵀ in y, then Bᵀ in x.
    fn slopes_back(&self, s: &mut Setting<'_>) {
        let (q, even_odd, result) = (self.q, s.plan.even_odd, &self.result);
        let back = self.derive.transposed();
        if let Some([x, _]) = result.slopes {
            s.b.comment("back in x");
            for c in (0..result.components).filter(|&c| s.tested(c).1).collect::<Vec<_>>() {
                let values = self.load(&mut s.b, result.value, result, c, 0, q);
                let flux = self.load(&mut s.b, x, result, c, 0, q);
                let sum = contract(&mut s.b, &back, &flux, Some(&values), even_odd);
                self.store(&mut s.b, result.value, result, c, 0, &sum);
            }
            barrier(s);
        }
        if result.factors.interpolate.is_identity() {
            return;
        }
        s.b.comment("back in y");
        let integrate = result.factors.interpolate.transposed();
        for c in 0..result.components {
            let sum = self.back_in_y(s, c);
            let line = contract(&mut s.b, &integrate, &sum, None, even_odd);
            self.store(&mut s.b, result.value, result, c, 1, &line);
        }
        barrier(s);
        s.b.comment("integrate in x");
        self.when(s, (result.factors.n, q), |s| {
            for c in 0..result.components {
                let line = self.load(&mut s.b, result.value, result, c, 0, q);
                let line = contract(&mut s.b, &integrate, &line, None, even_odd);
                self.store(&mut s.b, result.value, result, c, 0, &line);
            }
        });
        barrier(s);
    }

    /// The sum of a row in y and Dᵀ of its flux.
    fn back_in_y(&self, s: &mut Setting<'_>, c: usize) -> Vec<ValueId> {
        let (q, result) = (self.q, &self.result);
        let even_odd = s.plan.even_odd;
        let values = self.load(&mut s.b, result.value, result, c, 1, q);
        match result.slopes.filter(|_| s.tested(c).1) {
            Some([_, y]) => {
                let flux = self.load(&mut s.b, y, result, c, 1, q);
                let back = self.derive.transposed();
                contract(&mut s.b, &back, &flux, Some(&values), even_odd)
            }
            None => values,
        }
    }

    fn scatter(&self, s: &mut Setting<'_>) {
        let result = &self.result;
        let (n, components) = (result.factors.n, result.components);
        let identity = result.factors.interpolate.is_identity();
        let axis = if identity { 1 } else { 2 };
        let indices = s.plan.indices;
        let target = s.arguments[&Role::Result(0)];
        let map = s.arguments[&Role::Map(Source::Direction(0).owner(), indices)];
        s.b.comment("scatter");
        self.when(s, (n, n), |s| {
            let nodes = self.nodes(s, n, axis);
            for c in 0..components {
                let line = if identity {
                    self.back_in_y(s, c)
                } else {
                    let matrix = result.factors.interpolate.transposed();
                    let line = self.load(&mut s.b, result.value, result, c, 2, self.q);
                    let even_odd = s.plan.even_odd;
                    contract(&mut s.b, &matrix, &line, None, even_odd)
                };
                for (at, value) in nodes.iter().zip(line) {
                    match indices {
                        Indices::Dofs => {
                            let at = at.times(components).plus(c);
                            s.b.scatter(target, map, at, (1, 0), true, value);
                        }
                        Indices::Nodes | Indices::Runs => {
                            s.b.scatter(target, map, at.clone(), (components, c), false, value);
                        }
                    }
                }
            }
        });
    }

    /// What is known of the geometry of the thread's column.
    fn column_geometry(&self, s: &mut Setting<'_>) -> ColumnGeometry {
        if s.plan.geometry == Geometry::Affine {
            return ColumnGeometry::Cell(cell_geometry(s));
        }
        let (i, j) = (self.i(), self.j());
        let base = Index::from(s.b.batch()).times(s.geometry_numbers());
        let argument = s.arguments[&Role::Geometry];
        // The column runs along z: z, x, y take the places of the first, second, third direction.
        let order = |bits: usize| ((bits & 1) << 2) | ((bits >> 1) & 3);
        let eta = s.b.load_table(self.points, j);
        let layer = multilinear_layer(&mut s.b, 3, Some(eta), |b, mode, axis| {
            b.load_lanes(argument, base.plus(order(mode) * 3 + axis))
        });
        let xi = s.b.load_table(self.points, i);
        let needs_x = s.needs_x;
        ColumnGeometry::Row(Box::new(multilinear_row(&mut s.b, &layer, xi, 0, needs_x)))
    }

    fn geometry_at(
        &self,
        s: &mut Setting<'_>,
        geometry: &ColumnGeometry,
        zeta: f64,
        weight: ValueId,
    ) -> AtPoint {
        let zeta = s.b.constant(zeta);
        match geometry {
            ColumnGeometry::Cell(CellGeometry::Constant { k, det, origin, jacobian }) => {
                let weight = s.b.mul(weight, *det);
                let x = if s.needs_x {
                    let (i, j) = (self.i(), self.j());
                    let (xi, eta) =
                        (s.b.load_table(self.points, i), s.b.load_table(self.points, j));
                    let at = [xi, eta, zeta];
                    super::cell_per_lane::tensor::affine_point(s, origin, jacobian, &at)
                } else {
                    Vec::new()
                };
                AtPoint { k: k.clone(), det: None, weight, x }
            }
            ColumnGeometry::Cell(_) => unreachable!("an affine cell should be constant"),
            ColumnGeometry::Row(row) => {
                let mut at = multilinear_point(&mut s.b, row, zeta, weight);
                // Back from z, x, y.
                at.k.rotate_left(1);
                at
            }
        }
    }
}

/// What stays the same along a column of points.
enum ColumnGeometry {
    /// All of it.
    Cell(CellGeometry),
    /// The multilinear map along z.
    Row(Box<MultilinearRow>),
}

fn barrier(s: &mut Setting<'_>) {
    s.b.statement(crate::kir::Statement::Barrier);
}
