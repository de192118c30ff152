//! C: functions that integrate over one batch of cells, for programs with an assembly of their own.
//!
//! ```text
//! header   constants, tables, kernels without index arrays, and a typed function for each
//! facets   the nodes of a cell in the order of the kernels of facets, ξ₀ = 0, and back
//! calls    the functions by number, for the driver program
//! ```
//!
//! Kernels are those of [`choose_for_batches`]: degrees of freedom, coordinates and results are stored cell by cell, the
//! cells of a batch last.

mod calls;
mod facets;
mod tables;

pub(super) use calls::driver;

use super::names::Names;
use super::{Library, region_names, title};
use crate::abi::{KernelAbi, Role};
use crate::choose::{BATCH_TASKS, choose_for_batches, has_terms};
use crate::dialect::gnu::{FLAGS, StaticKernel};
use crate::dialect::rust::Isa;
use crate::element::Lagrange;
use crate::generate::{check_underflow, generate_static};
use crate::kir::Precision;
use crate::plan::cell_matrix::CellMatrix;
use crate::plan::{Elements, Plan, PlanError, Task, reads};
use fem_dsl::point::{Input, Integral, Location, PointForm};
use std::collections::BTreeMap;
use std::fmt::Write;

/// The choices for a header beside the elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BatchSettings {
    /// The degree of the map of cells: the caller gives its nodes.
    pub order: usize,
    /// The instruction set, which determines the number of cells in a batch.
    pub isa: Isa,
    /// The precision.
    pub precision: Precision,
}

/// An argument of a function.
struct Parameter {
    name: String,
    /// The declaration.
    text: String,
    /// Of nodal values: the element's name in constants, and the numbers of a node.
    nodal: Option<(String, usize)>,
}

/// The names in a header.
struct Scope<'a> {
    form: &'a PointForm,
    elements: &'a Elements,
    settings: BatchSettings,
    lanes: usize,
    /// Fields and data as parts of the names of constants.
    fields: Vec<String>,
    data: Vec<String>,
    parameters: BTreeMap<Role, Parameter>,
}

/// Returns the header of a form whose terms all have a counterpart ([`super::check`]).
///
/// # Errors
///
/// Unsupported kernels.
pub(super) fn header(
    form: &PointForm,
    elements: &Elements,
    settings: BatchSettings,
) -> Result<String, PlanError> {
    let BatchSettings { order, isa, precision } = settings;
    let plans = choose_for_batches(form, elements, order, isa, precision)?;
    check_underflow(form, elements, &plans)?;
    let (preamble, kernels) = generate_static(form, elements, &plans, isa)?;
    let scope = Scope::new(form, elements, settings)?;
    let mut text = title(form, elements, Library::C);
    scope.notes(&mut text);
    let guard =
        format!("WEAKFORM_C_{}_{}_{}_{}", form.name, elements.cell, elements.degree, scope.real());
    let preamble = preamble.trim_end();
    let _ = writeln!(text, "#ifndef {guard}\n#define {guard}\n\n{preamble}");
    scope.constants(&mut text)?;
    let members = tables::parameters(&mut text, &scope);
    scope.tables(&mut text, &members)?;
    for (plan, (kernel, abi)) in plans.iter().zip(&kernels) {
        text.push_str(kernel.text.trim_end());
        text.push('\n');
        scope.function(&mut text, plan, kernel, abi);
    }
    text.push_str("\n#endif\n");
    Ok(text)
}

/// Returns the tasks of an integral that have a function.
fn tasks(integral: &Integral) -> Vec<Task> {
    // Fields in `Hcurl` and `Hdiv` are refused.
    BATCH_TASKS.into_iter().filter(|&task| has_terms(integral, |_| false, task)).collect()
}

/// Returns the beginning of the names of each integral.
fn prefixes(form: &PointForm) -> Vec<String> {
    let prefix = |region: String| match region.as_str() {
        "" => form.name.clone(),
        region => format!("{}_{region}", form.name),
    };
    region_names(form).into_iter().map(prefix).collect()
}

/// Returns the name of a function.
fn function_name(prefix: &str, integral: &Integral, task: Task) -> String {
    let of = if integral.region.is_of_cells() { "cells" } else { "facets" };
    format!("{prefix}_{}_{of}", task.word())
}

/// Returns whether any integral reads the diameter of a cell.
fn reads_diameter(form: &PointForm) -> bool {
    let is_read = |input| matches!(input, Input::Diameter(_));
    form.integrals.iter().any(|integral| reads(integral, is_read))
}

/// Returns whether a form has integrals over the boundary.
fn has_facets(form: &PointForm) -> bool {
    form.integrals.iter().any(|integral| !integral.region.is_of_cells())
}

/// Returns the roles of a function's arguments, in order.
fn roles(form: &PointForm, task: Task) -> Vec<Role> {
    let mut roles = vec![Role::Geometry];
    roles.extend(reads_diameter(form).then_some(Role::Diameter));
    roles.push(Role::Params);
    roles.extend(form.aux.iter().enumerate().map(|(i, aux)| match aux.location {
        Location::Nodes(_) => Role::AuxNodes(i),
        Location::Cells => Role::AuxCells(i),
        Location::Points => Role::AuxPoints(i),
    }));
    let fields = 0..form.fields.len();
    roles.extend(fields.clone().map(Role::State));
    if task == Task::Action {
        roles.extend(fields.clone().map(Role::Direction));
    }
    match task {
        Task::Matrix => roles.push(Role::CellMatrix),
        _ => roles.extend(fields.map(Role::CellResult)),
    }
    roles
}

impl<'a> Scope<'a> {
    fn new(
        form: &'a PointForm,
        elements: &'a Elements,
        settings: BatchSettings,
    ) -> Result<Self, PlanError> {
        let lanes = settings.isa.widest(settings.precision);
        let mut names = Names::with("x facet begin end");
        let mut constants = Names::with("geometry facet vertex point");
        let fields = form.fields.iter().map(|field| constants.unique(&field.name)).collect();
        let data = form.aux.iter().map(|aux| constants.unique(&aux.name)).collect();
        let mut scope =
            Self { form, elements, settings, lanes, fields, data, parameters: BTreeMap::new() };
        let dim = format!("{}_DIM", form.name);
        scope.add(Role::Geometry, "x".to_owned(), ("geometry", form.dim), &dim);
        for (role, wish) in [(Role::Diameter, "diameter"), (Role::Params, "params")] {
            let name = names.unique(wish);
            let text = match role {
                Role::Params => format!("const {}_params *{name}", form.name),
                _ => format!("{} {name}[{}_WIDTH]", scope.real(), form.name),
            };
            scope.parameters.insert(role, Parameter { name, text, nodal: None });
        }
        for (i, aux) in form.aux.iter().enumerate() {
            let (name, components) = (names.unique(&aux.name), aux.shape.components());
            let id = scope.data[i].clone();
            match aux.location {
                Location::Nodes(_) => {
                    scope.add(Role::AuxNodes(i), name, (&id, components), &components.to_string());
                }
                Location::Cells => {
                    scope.add_array(Role::AuxCells(i), name, &components.to_string());
                }
                Location::Points => {
                    let length = times(&format!("{}_POINTS", form.name), components);
                    scope.add_array(Role::AuxPoints(i), name, &length);
                }
            }
        }
        for (i, field) in form.fields.iter().enumerate() {
            let id = scope.fields[i].clone();
            let components = field.shape.components();
            for (role, wish) in [
                (Role::State(i), field.name.clone()),
                (Role::Direction(i), format!("d{}", field.name)),
                (Role::CellResult(i), format!("{}_result", field.name)),
            ] {
                let name = names.unique(&wish);
                scope.add(role, name, (&id, components), &format!("{}_{id}_COMPONENTS", form.name));
            }
        }
        let name = names.unique("matrix");
        scope.add_array(Role::CellMatrix, name, "$ENTRIES");
        Ok(scope)
    }

    /// Adds an argument with numbers at the nodes of an element.
    fn add(&mut self, role: Role, name: String, (id, numbers): (&str, usize), factor: &str) {
        let nodes =
            format!("{}_{}_NODES", self.form.name, if id == "geometry" { "GEOMETRY" } else { id });
        let length = if numbers == 1 { nodes } else { format!("{nodes} * {factor}") };
        self.add_array(role, name, &length);
        let nodal = Some((id.to_owned(), numbers));
        self.parameters.entry(role).and_modify(|own| own.nodal = nodal);
    }

    /// Adds an argument that is an array with a number for each cell of the batch.
    fn add_array(&mut self, role: Role, name: String, length: &str) {
        let text = format!("{} {name}[{length}][{}_WIDTH]", self.real(), self.form.name);
        self.parameters.insert(role, Parameter { name, text, nodal: None });
    }

    /// Returns the type of reals.
    fn real(&self) -> &'static str {
        match self.settings.precision {
            Precision::F64 => "double",
            Precision::F32 => "float",
        }
    }

    /// Returns the element of the map of cells.
    fn geometry(&self) -> Result<Lagrange, PlanError> {
        let made = Lagrange::continuous(self.elements.cell, self.settings.order);
        made.map_err(|error| PlanError::Unsupported(error.to_string()))
    }

    /// Writes the layouts and the flags of the compiler.
    fn notes(&self, text: &mut String) {
        let name = &self.form.name;
        let (cell, order) = (self.elements.cell, self.settings.order);
        let _ = writeln!(
            text,
            "//
// A function integrates over one batch of {name}_WIDTH = {} cells, {cell} with a map of degree {order}, by the rule
// {}. Arrays have the cells of the batch last; NAME is {name}:
//
//   x[node * NAME_DIM + d][cell]       coordinates of the nodes of the cells' maps
//   u[node * components + c][cell]     a field, its direction du and its result; data on nodes
//   a[c][cell]                         data on cells
//   a[point * components + c][cell]    data at the points of the rule
//   matrix[entry][cell]                J: entry first + j * rows + i of a block of NAME_blocks
//
// Nodes have the order of NAME_geometry_reference for x, of NAME_u_reference for a field u. Results are overwritten,
// for all cells: in a batch that is not full repeat a cell. Arrays need the alignment of their numbers only. Inputs are
// not written; they are not const, since C converts no pointer to an array to a pointer to a constant one. What a
// function does not read may be NULL.
//
// Compile with {} and the flags of the processor ({}).
",
            self.lanes,
            self.elements.rule,
            FLAGS.join(" "),
            self.settings.isa,
        );
    }

    /// Prints the function of a kernel.
    fn function(&self, text: &mut String, plan: &Plan, kernel: &StaticKernel, abi: &KernelAbi) {
        let integral = &self.form.integrals[plan.integral];
        let prefix = &prefixes(self.form)[plan.integral];
        let facets = !integral.region.is_of_cells();
        let mut declared: Vec<String> = Vec::new();
        if facets {
            declared.push(format!("const int facet[{}_WIDTH]", self.form.name));
        }
        let roles = roles(self.form, plan.task);
        let entries = format!("{prefix}_ENTRIES");
        let texts =
            roles.iter().map(|role| self.parameters[role].text.replace("$ENTRIES", &entries));
        declared.extend(texts);
        let used: Vec<Role> = kernel.arguments.iter().map(|&at| abi.arguments[at].role).collect();
        let comment = match (plan.task, facets) {
            (Task::Residual, _) => "R(u)",
            (Task::Action, _) => "J(u) du",
            (Task::Diagonal, _) => "The diagonal of J(u)",
            _ => "The matrices of J(u)",
        };
        let of =
            if facets { ": one facet of each cell of a batch" } else { " of the cells of a batch" };
        let name = function_name(prefix, integral, plan.task);
        let _ = writeln!(
            text,
            "\n// {comment}{of}.\nstatic inline void {name}(\n    {})\n{{",
            declared.join(",\n    ")
        );
        for role in roles.iter().filter(|role| !used.contains(role)) {
            let _ = writeln!(text, "    (void){};", self.parameters[role].name);
        }
        if facets {
            self.of_facets(text, plan, kernel, &used);
        } else {
            let values: Vec<String> = used.iter().map(|role| self.value(*role, None)).collect();
            self.call(text, &kernel.function, &values);
        }
        text.push_str("}\n");
    }

    /// Prints the call of a kernel for the batch 0.
    fn call(&self, text: &mut String, function: &str, values: &[String]) {
        let values: String = values.iter().map(|value| format!(",\n        {value}")).collect();
        let _ = writeln!(text, "    {function}(\n        0, 1{values});");
    }

    /// Returns an argument, or an array in its place, as a kernel takes it.
    fn value(&self, role: Role, array: Option<&str>) -> String {
        let real = self.real();
        let name = array.unwrap_or(&self.parameters[&role].name);
        match role {
            Role::CellResult(_) | Role::CellMatrix => format!("({real} *){name}"),
            _ => format!("(const {real} *){name}"),
        }
    }

    /// Returns the element matrices of an integral.
    fn matrix(&self, integral: usize) -> CellMatrix {
        CellMatrix::of(self.form, self.elements, integral)
    }
}

/// Returns a product as text.
fn times(factor: &str, number: usize) -> String {
    if number == 1 { factor.to_owned() } else { format!("{factor} * {number}") }
}
