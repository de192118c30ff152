//! PETSc: the pointwise functions of a PetscDS, `f0`, `f1`, `g0` … `g3`, and their registration.
//!
//! ```text
//! component c of field f                u[uOff[f] + c]           data: a, aOff
//! its derivative j                      u_x[uOff_x[f] + c dim + j]
//! f0_c, f1_cj                           f0[c], f1[c dim + j]
//! ∂f0_c/∂v_d,     ∂f0_c/∂v_d,l          g0[c Nd + d], g1[(c Nd + d) dim + l]
//! ∂f1_cj/∂v_d,    ∂f1_cj/∂v_d,l         g2[(c Nd + d) dim + j], g3[((c Nd + d) dim + j) dim + l]
//! dt(u) = s u + r                       f: s = 0, r = u_t; g: s = u_tShift, r = u_t − u_tShift u
//! ```
//!
//! Source: Knepley, Brown, Rupp and Smith (2013), and the manual pages of PetscDSSetResidual, PetscDSSetJacobian.

use super::expression::{Words, statements};
use super::names::{Names, string};
use super::{TableEntry, data, fields, inputs, region_names, tags, title};
use crate::plan::Elements;
use fem_dsl::point::{
    Input, Integral, NodeId, Part, PointForm, Region, Slot, Unary, with_given_rates,
};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

const WORDS: Words = Words {
    real: "PetscScalar",
    unary: |function| match function {
        Unary::Neg | Unary::Sign => "",
        Unary::Sqrt => "PetscSqrtReal",
        Unary::Exp => "PetscExpReal",
        Unary::Log => "PetscLogReal",
        Unary::Sin => "PetscSinReal",
        Unary::Cos => "PetscCosReal",
        Unary::Tan => "PetscTanReal",
        Unary::Asin => "PetscAsinReal",
        Unary::Acos => "PetscAcosReal",
        Unary::Atan => "PetscAtanReal",
        Unary::Sinh => "PetscSinhReal",
        Unary::Cosh => "PetscCoshReal",
        Unary::Tanh => "PetscTanhReal",
        Unary::Abs => "PetscAbsReal",
    },
    pow: "PetscPowReal",
    atan2: "PetscAtan2Real",
    infinity: "PETSC_INFINITY",
};

/// Names of arguments, and of PETSc's macros in small letters.
const ARGUMENTS: &str = "dim Nf NfAux uOff uOff_x u u_t u_x aOff aOff_x a a_t a_x t u_tShift x n numConstants constants f0 f1 g0 g1 g2 g3";

/// The name of a pointwise function by its part of the formula and its fields.
type Key = (&'static str, usize, Option<usize>);

/// Entries of a pointwise function: an index and a value.
type Entries = Vec<(usize, NodeId)>;

/// The pointwise functions of one region.
struct Functions<'a> {
    name: String,
    region: &'a Region,
    names: BTreeMap<Key, String>,
}

impl Functions<'_> {
    fn name(&self, key: Key) -> String {
        self.names.get(&key).map_or("NULL", String::as_str).to_owned()
    }

    /// Returns f0 and f1 of a field, if it has one of them.
    fn residual(&self, field: usize) -> Option<[String; 2]> {
        let names = ["f0", "f1"].map(|word| self.name((word, field, None)));
        names.iter().any(|name| name != "NULL").then_some(names)
    }

    /// Returns g0 to g3 of a pair of fields.
    fn jacobian(&self, field: usize, trial: usize) -> [String; 4] {
        ["g0", "g1", "g2", "g3"].map(|word| self.name((word, field, Some(trial))))
    }

    /// Returns the pairs of fields with a part of the Jacobian.
    fn pairs(&self) -> BTreeSet<(usize, usize)> {
        self.names.keys().filter_map(|(_, field, trial)| Some((*field, (*trial)?))).collect()
    }

    /// Returns the tested fields.
    fn fields(&self) -> Vec<usize> {
        let fields: BTreeSet<usize> = self.names.keys().map(|(_, field, _)| *field).collect();
        fields.into_iter().collect()
    }
}

/// Returns the header.
pub(super) fn header(form: &PointForm, elements: &Elements) -> String {
    let name = &form.name;
    let mut text = title(form, elements, super::Library::Petsc);
    text.push_str(&PREAMBLE.replace("$NAME", name));
    tables(&mut text, form, elements);
    let residuals = with_given_rates(form);
    let mut functions = Names::default();
    let mut regions = Vec::new();
    for ((integral, residual), region) in
        form.integrals.iter().zip(&residuals.integrals).zip(region_names(form))
    {
        let prefix = if region.is_empty() { name.clone() } else { format!("{name}_{region}") };
        let mut of = Functions { name: region, region: &integral.region, names: BTreeMap::new() };
        for (key, entries) in residual_entries(form, residual) {
            let own = function_name(form, &prefix, key, &mut functions);
            function(&mut text, (form, elements.degree), residual, (key, &own, &entries));
            of.names.insert(key, own);
        }
        for (key, entries) in jacobian_entries(form, integral) {
            let own = function_name(form, &prefix, key, &mut functions);
            function(&mut text, (form, elements.degree), integral, (key, &own, &entries));
            of.names.insert(key, own);
        }
        regions.push(of);
    }
    registrations(&mut text, form, &regions);
    text.push_str(END);
    text
}

const PREAMBLE: &str = "#ifndef WEAKFORM_PETSC_$NAME_H
#define WEAKFORM_PETSC_$NAME_H

#include <petscds.h>

#if defined(PETSC_USE_COMPLEX)
  #error weakform: these functions are real, PETSc is configured with complex scalars
#endif

#ifndef WEAKFORM_PETSC_TABLES
#define WEAKFORM_PETSC_TABLES
/* A field or data: continuous or discontinuous Lagrange elements of a degree. The tables end with a name NULL. */
typedef struct {
  const char *name;
  PetscInt    components, degree;
  PetscBool   continuous;
} WeakformField;

/* A parameter: its components follow constants[first]. */
typedef struct {
  const char *name;
  PetscInt    first, components;
} WeakformParameter;

/* A part of the cells or of the boundary, by its tags (none for the whole boundary), and the registration of its terms.
   On the boundary: those tested by a field. The table ends with add NULL. */
typedef struct {
  const char *const *tags;
  PetscInt           field;
  PetscErrorCode (*add)(PetscWeakForm, DMLabel, PetscInt);
} WeakformRegion;
#endif

#if defined(__GNUC__)
  #pragma GCC diagnostic push
  #pragma GCC diagnostic ignored \"-Wunused-parameter\"
#endif

";

const END: &str = "
#if defined(__GNUC__)
  #pragma GCC diagnostic pop
#endif
#endif
";

/// Writes the tables of fields, data and parameters.
fn tables(text: &mut String, form: &PointForm, elements: &Elements) {
    let name = &form.name;
    let points = elements.largest() + 1;
    let time = i32::from(!form.rates.is_empty());
    let _ = writeln!(text, "enum {{");
    let _ = writeln!(text, "  {name}_DIM = {},", form.dim);
    let _ = writeln!(
        text,
        "  {name}_QUADRATURE_POINTS = {points}, /* Gauss points in each direction */"
    );
    let _ = writeln!(text, "  {name}_TIME = {time} /* 1: has dt(…), for TS */");
    let _ = writeln!(text, "}};\n");
    for (kind, entries) in
        [("fields", fields(form, elements)), ("data", data(form, form.own_aux(), elements))]
    {
        let _ = writeln!(text, "static const WeakformField {name}_{kind}[] = {{");
        for TableEntry { name, components, degree, continuous, .. } in entries {
            let continuous = if continuous { "PETSC_TRUE" } else { "PETSC_FALSE" };
            let _ = writeln!(text, "  {{{}, {components}, {degree}, {continuous}}},", string(name));
        }
        let _ = writeln!(text, "  {{NULL, 0, 0, PETSC_FALSE}}\n}};\n");
    }
    let _ = writeln!(text, "static const WeakformParameter {name}_parameters[] = {{");
    let mut values = Vec::new();
    for param in form.own_params() {
        let _ = writeln!(
            text,
            "  {{{}, {}, {}}},",
            string(&param.name),
            values.len(),
            param.value.len()
        );
        values.extend(param.value.iter().map(|value| format!("{value:?}")));
    }
    let _ = writeln!(text, "  {{NULL, 0, 0}}\n}};\n");
    let count = values.len();
    let _ = writeln!(text, "/* The defaults of the parameters, in their order. */");
    values.push("0.0".to_owned());
    let _ = writeln!(text, "enum {{ {name}_CONSTANTS = {count} }};");
    let _ =
        writeln!(text, "static const PetscScalar {name}_constants[] = {{{}}};", values.join(", "));
}

/// Returns the entries of f0 and f1 of each field.
fn residual_entries(form: &PointForm, of: &Integral) -> BTreeMap<Key, Entries> {
    let mut functions: BTreeMap<Key, Entries> = BTreeMap::new();
    for (slot, node) in &of.residual {
        let (word, index) = match slot.part {
            Part::Derivative(j) => ("f1", slot.component * form.dim + j),
            _ => ("f0", slot.component),
        };
        functions.entry((word, slot.field, None)).or_default().push((index, *node));
    }
    functions
}

/// Returns the entries of g0 to g3 of each pair of fields.
fn jacobian_entries(form: &PointForm, of: &Integral) -> BTreeMap<Key, Entries> {
    let mut functions: BTreeMap<Key, Entries> = BTreeMap::new();
    let dim = form.dim;
    for entry in &of.jacobian {
        let (test, trial) = (entry.test, entry.trial);
        let pair = test.component * form.fields[trial.field].shape.components() + trial.component;
        let (word, index) = match (test.part, trial.part) {
            (Part::Derivative(j), Part::Derivative(l)) => ("g3", (pair * dim + j) * dim + l),
            (Part::Derivative(j), _) => ("g2", pair * dim + j),
            (_, Part::Derivative(l)) => ("g1", pair * dim + l),
            _ => ("g0", pair),
        };
        let key = (word, test.field, Some(trial.field));
        functions.entry(key).or_default().push((index, entry.value));
    }
    functions
}

fn function_name(
    form: &PointForm,
    prefix: &str,
    (word, field, trial): Key,
    names: &mut Names,
) -> String {
    let fields = [Some(field), trial].into_iter().flatten();
    let fields: Vec<&str> = fields.map(|field| form.fields[field].name.as_str()).collect();
    names.unique(&format!("{prefix}_{word}_{}", fields.join("_")))
}

/// Writes a pointwise function.
fn function(
    text: &mut String,
    (form, degree): (&PointForm, usize),
    integral: &Integral,
    ((word, _, trial), name, entries): (Key, &str, &Entries),
) {
    let boundary = !integral.region.is_of_cells();
    let shift = if trial.is_some() { "PetscReal u_tShift, " } else { "" };
    let normal = if boundary { "const PetscReal n[], " } else { "" };
    let _ = write!(
        text,
        "\nstatic void {name}(PetscInt dim, PetscInt Nf, PetscInt NfAux, const PetscInt uOff[], const PetscInt uOff_x[],
    const PetscScalar u[], const PetscScalar u_t[], const PetscScalar u_x[], const PetscInt aOff[], const PetscInt aOff_x[],
    const PetscScalar a[], const PetscScalar a_t[], const PetscScalar a_x[], PetscReal t, {shift}const PetscReal x[],
    {normal}PetscInt numConstants, const PetscScalar constants[], PetscScalar {word}[])
{{
"
    );
    let roots: Vec<NodeId> = entries.iter().map(|(_, node)| *node).collect();
    let mut names = Names::with(ARGUMENTS);
    let mut params = BTreeMap::new();
    for input in inputs(integral, &roots) {
        let Input::Param(param, component) = input else { continue };
        if form.rates.iter().any(|rate| rate.param == param) {
            continue;
        }
        let own = &form.params[param];
        let wish = match own.value.len() {
            1 => own.name.clone(),
            _ => format!("{}_{component}", own.name),
        };
        let local = names.unique(&wish);
        let first: usize = form.params[..param].iter().map(|param| param.value.len()).sum();
        let _ = writeln!(text, "  const PetscScalar {local} = constants[{}];", first + component);
        params.insert((param, component), local);
    }
    let scope = Scope { form, degree, jacobian: trial.is_some(), params };
    let (lines, values) =
        statements(integral, &roots, &WORDS, &mut names, &|input| scope.input(input));
    for line in lines {
        let _ = writeln!(text, "  {line}");
    }
    for ((index, _), value) in entries.iter().zip(values) {
        let _ = writeln!(text, "  {word}[{index}] = {value};");
    }
    text.push_str("}\n");
}

/// The inputs of a pointwise function.
struct Scope<'a> {
    form: &'a PointForm,
    degree: usize,
    /// True for g0 to g3, false for f0 and f1.
    jacobian: bool,
    /// The variable of each component of a parameter.
    params: BTreeMap<(usize, usize), String>,
}

impl Scope<'_> {
    /// Returns an input as an expression of the arguments.
    fn input(&self, input: Input) -> String {
        match input {
            Input::State(slot) => self.place("u", "uOff", slot),
            Input::Aux(slot) => {
                let Some(rate) = self.form.rates.iter().find(|rate| rate.aux == slot.field) else {
                    return self.place("a", "aOff", slot);
                };
                let own = Slot { field: rate.field, ..slot };
                let rate = self.place("u_t", "uOff", own);
                match self.jacobian {
                    true => format!("({rate} - u_tShift * {})", self.place("u", "uOff", own)),
                    false => rate,
                }
            }
            Input::Param(param, component) => match self.params.get(&(param, component)) {
                Some(name) => name.clone(),
                None => "u_tShift".to_owned(),
            },
            Input::Coordinate(j) => format!("x[{j}]"),
            Input::Normal(j) => format!("n[{j}]"),
            Input::Time => "t".to_owned(),
            Input::Degree => format!("{}.0", self.degree),
            _ => unreachable!("{input:?} is refused"),
        }
    }

    /// Returns an entry of an array of fields or data.
    fn place(&self, array: &str, offsets: &str, slot: Slot) -> String {
        let (array, offsets, at) = match slot.part {
            Part::Derivative(j) => {
                (format!("{array}_x"), format!("{offsets}_x"), slot.component * self.form.dim + j)
            }
            _ => (array.to_owned(), offsets.to_owned(), slot.component),
        };
        // The first offset is 0.
        match (slot.field, at) {
            (0, at) => format!("{array}[{at}]"),
            (field, 0) => format!("{array}[{offsets}[{field}]]"),
            (field, at) => format!("{array}[{offsets}[{field}] + {at}]"),
        }
    }
}

/// Writes the functions that register the pointwise functions, and the tables of regions.
fn registrations(text: &mut String, form: &PointForm, regions: &[Functions<'_>]) {
    let name = &form.name;
    let _ = writeln!(
        text,
        "\n/* Registers the terms over all cells, and the parameters. */
static inline PetscErrorCode {name}_setup(PetscDS ds)
{{
  PetscFunctionBeginUser;"
    );
    for own in regions.iter().filter(|own| own.name.is_empty()) {
        for field in 0..form.fields.len() {
            if let Some([f0, f1]) = own.residual(field) {
                let _ = writeln!(text, "  PetscCall(PetscDSSetResidual(ds, {field}, {f0}, {f1}));");
            }
        }
        for (field, trial) in own.pairs() {
            let [g0, g1, g2, g3] = own.jacobian(field, trial);
            let _ = writeln!(
                text,
                "  PetscCall(PetscDSSetJacobian(ds, {field}, {trial}, {g0}, {g1}, {g2}, {g3}));"
            );
        }
    }
    let _ = writeln!(
        text,
        "  PetscCall(PetscDSSetConstants(ds, {name}_CONSTANTS, (PetscScalar *)(size_t){name}_constants));
  PetscFunctionReturn(0);
}}"
    );
    for own in regions.iter().filter(|own| !own.name.is_empty()) {
        region(text, form, own);
    }
    for (kind, of_cells) in [("cells", true), ("boundary", false)] {
        let _ = writeln!(text, "\nstatic const WeakformRegion {name}_{kind}[] = {{");
        for own in regions
            .iter()
            .filter(|own| !own.name.is_empty() && own.region.is_of_cells() == of_cells)
        {
            let fields = own.fields();
            let fields = if of_cells { &fields[..1.min(fields.len())] } else { &fields };
            for field in fields {
                let _ = writeln!(text, "  {{{name}_{0}_tags, {field}, {name}_{0}}},", own.name);
            }
        }
        let _ = writeln!(text, "  {{NULL, 0, NULL}}\n}};");
    }
}

/// Writes the function that registers the terms of a region.
fn region(text: &mut String, form: &PointForm, own: &Functions<'_>) {
    let name = &form.name;
    let bd = if own.region.is_of_cells() { "" } else { "Bd" };
    let comment = match bd {
        "" => "of cells, in the weak form of the PetscDS",
        _ => "of a boundary, in the weak form of a condition DM_BC_NATURAL",
    };
    let _ = writeln!(
        text,
        "\n/* Registers the terms {comment}, for one value of a label. */
static inline PetscErrorCode {name}_{}(PetscWeakForm wf, DMLabel label, PetscInt value)
{{
  PetscFunctionBeginUser;",
        own.name
    );
    for field in 0..form.fields.len() {
        if let Some([f0, f1]) = own.residual(field) {
            let _ = writeln!(
                text,
                "  PetscCall(PetscWeakFormAdd{bd}Residual(wf, label, value, {field}, 0, {f0}, {f1}));"
            );
        }
    }
    for (field, trial) in own.pairs() {
        let [g0, g1, g2, g3] = own.jacobian(field, trial);
        let _ = writeln!(
            text,
            "  PetscCall(PetscWeakFormAdd{bd}Jacobian(wf, label, value, {field}, {trial}, 0, {g0}, {g1}, {g2}, {g3}));"
        );
    }
    let _ = writeln!(text, "  PetscFunctionReturn(0);\n}}");
    let tags = tags(own.region);
    let _ = writeln!(text, "\nstatic const char *const {name}_{}_tags[] = {{{tags}}};", own.name);
}
