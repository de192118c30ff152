//! libCEED: the QFunctions of a CeedOperator, and tables of their fields.
//!
//! ```text
//! qdata in cells      w |det J|, ∂X_k/∂x_j                 J = ∂x/∂X: X on the reference cell
//! qdata on facets     w |cof(J) N|, n, ∂X_k/∂x_j           N: the reference cell's normal
//! component c         u[i + Q c]                           INTERP
//! ∂u_c/∂X_k           u_grad[i + Q (c + Nc k)]             GRAD;  ∂u_c/∂x_j = Σ_k ∂u_c/∂X_k ∂X_k/∂x_j
//! outputs             w f0_c,  w Σ_j f1_cj ∂X_k/∂x_j       INTERP, GRAD
//! ```
//!
//! Source: Brown et al. (2021), and the manual of libCEED.

use super::expression::{Words, statements};
use super::names::{Names, string};
use super::{TableEntry, data, fields, inputs, region_names, tags, title};
use crate::dialect::maths::c_function;
use crate::plan::Elements;
use fem_dsl::point::{Input, Integral, NodeId, Part, PointForm, Slot};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

const WORDS: Words = Words {
    real: "CeedScalar",
    unary: c_function,
    pow: "pow",
    atan2: "atan2",
    infinity: "(1e300 * 1e300)",
};

/// Names of arguments and of variables that every function has.
const ARGUMENTS: &str = "ctx Q in out i j k w context qdata";

/// The array of a QFunction: an input or output of an operator.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Source {
    State(usize),
    Direction(usize),
    Data(usize),
    Coordinates,
    Test(usize),
}

impl Source {
    /// Returns the source and the part of it that an input reads.
    fn of(input: Input) -> Option<(Self, Slot)> {
        match input {
            Input::State(slot) => Some((Self::State(slot.field), slot)),
            Input::Direction(slot) => Some((Self::Direction(slot.field), slot)),
            Input::Aux(slot) => Some((Self::Data(slot.field), slot)),
            _ => None,
        }
    }

    /// Returns the constant of the tables, and the index.
    fn constant(self) -> (&'static str, usize) {
        match self {
            Self::State(field) => ("WEAKFORM_STATE", field),
            Self::Direction(field) => ("WEAKFORM_DIRECTION", field),
            Self::Data(aux) => ("WEAKFORM_DATA", aux),
            Self::Coordinates => ("WEAKFORM_COORDINATES", 0),
            Self::Test(field) => ("WEAKFORM_TEST", field),
        }
    }

    fn components(self, form: &PointForm) -> usize {
        match self {
            Self::State(field) | Self::Direction(field) | Self::Test(field) => {
                form.fields[field].shape.components()
            }
            Self::Data(aux) => form.aux[aux].shape.components(),
            Self::Coordinates => form.dim,
        }
    }

    fn wish(self, form: &PointForm, gradient: bool) -> String {
        let name = match self {
            Self::State(field) => form.fields[field].name.clone(),
            Self::Direction(field) => format!("d{}", form.fields[field].name),
            Self::Data(aux) => form.aux[aux].name.clone(),
            Self::Coordinates => "x".to_owned(),
            Self::Test(field) => format!("{}_test", form.fields[field].name),
        };
        if gradient { format!("{name}_grad") } else { name }
    }
}

/// Arrays of a QFunction, each with the flag of a gradient, and their names.
type Arrays = BTreeMap<(Source, bool), String>;

/// Returns the header.
pub(super) fn header(form: &PointForm, elements: &Elements) -> String {
    let name = &form.name;
    let mut text = title(form, elements, super::Library::LibCeed);
    text.push_str(&PREAMBLE.replace("$NAME", name));
    let params = context(&mut text, form);
    geometry(&mut text, form);
    let mut host = String::new();
    let mut table = String::new();
    for (integral, region) in form.integrals.iter().zip(region_names(form)) {
        let prefix = if region.is_empty() { name.clone() } else { format!("{name}_{region}") };
        let _ = writeln!(
            host,
            "static const char *const {prefix}_tags[] = {{{}}};",
            tags(&integral.region)
        );
        let facets = i32::from(!integral.region.is_of_cells());
        let _ = write!(table, "  {{{}, {prefix}_tags, {facets}", string(&prefix));
        for (kind, rows) in [("residual", &integral.residual), ("jacobian", &integral.action)] {
            if rows.is_empty() {
                table.push_str(",\n   {NULL, NULL, NULL, NULL}");
                continue;
            }
            let function = format!("{prefix}_{kind}");
            let scope = (form, elements.degree, params.as_slice());
            qfunction(&mut text, &mut host, scope, (integral, &function, rows));
            let _ = write!(
                table,
                ",\n   {{{function}, {function}_loc, {function}_inputs, {function}_outputs}}"
            );
        }
        table.push_str("},\n");
    }
    text.push_str("\n#ifndef CEED_RUNNING_JIT_PASS\n");
    text.push_str(TABLES);
    tables(&mut text, form, elements);
    registration(&mut text, form, &params);
    text.push_str(&host);
    let _ = writeln!(text, "static const WeakformOperator {name}_operators[] = {{");
    text.push_str(&table);
    text.push_str("  {NULL, NULL, 0, {NULL, NULL, NULL, NULL}, {NULL, NULL, NULL, NULL}}\n};\n");
    text.push_str(END);
    text
}

const PREAMBLE: &str = "#ifndef WEAKFORM_LIBCEED_$NAME_H
#define WEAKFORM_LIBCEED_$NAME_H

#include <ceed/types.h>
#ifndef CEED_RUNNING_JIT_PASS
#include <ceed.h>
#include <math.h>
#include <stddef.h>
#endif

#if defined(__GNUC__)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored \"-Wunused-parameter\"
#endif
";

const TABLES: &str = "#ifndef WEAKFORM_LIBCEED_TABLES
#define WEAKFORM_LIBCEED_TABLES
/* A field or data: continuous or discontinuous Lagrange elements of a degree. Data of order 1 or 2 is r of the time
   derivative s u + r of a field, s the parameter per_dt or per_dt2. Tables end with a name NULL. */
typedef struct {
  const char *name;
  CeedInt components, degree;
  int continuous;
  CeedInt order, field;
} WeakformField;

/* Where an input or output of a QFunction comes from: the state u, the direction du, data, the coordinates of points,
   the geometric factors, or the test function. */
typedef enum {
  WEAKFORM_STATE,
  WEAKFORM_DIRECTION,
  WEAKFORM_DATA,
  WEAKFORM_COORDINATES,
  WEAKFORM_QDATA,
  WEAKFORM_TEST
} WeakformSource;

/* An input or output of a QFunction; index is that of the field or data. */
typedef struct {
  const char *name;
  WeakformSource source;
  CeedInt index, size;
  CeedEvalMode mode;
} WeakformArgument;

/* A QFunction with its arguments; NULL if there is none. */
typedef struct {
  CeedQFunctionUser function;
  const char *source;
  const WeakformArgument *inputs, *outputs;
} WeakformQFunction;

/* The terms over a part of the cells or of the boundary, by its tags; no tags for all of them. */
typedef struct {
  const char *name;
  const char *const *tags;
  int on_facets;
  WeakformQFunction residual, jacobian;
} WeakformOperator;
#endif

";

const END: &str = "#endif

#if defined(__GNUC__)
#pragma GCC diagnostic pop
#endif
#endif
";

/// Writes the struct of parameters; returns their members.
fn context(text: &mut String, form: &PointForm) -> Vec<String> {
    let name = &form.name;
    let mut names = Names::with("t");
    let mut members = Vec::new();
    let _ =
        writeln!(text, "\n/* The time and the parameters. */\ntypedef struct {{\n  CeedScalar t;");
    for param in &form.params {
        let member = names.unique(&param.name);
        let _ = match param.value.len() {
            1 => writeln!(text, "  CeedScalar {member};"),
            count => writeln!(text, "  CeedScalar {member}[{count}];"),
        };
        members.push(member);
    }
    let _ = writeln!(text, "}} {name}_context;");
    let _ = writeln!(
        text,
        "\n/* The unit normal of a facet on the reference cell: the context of {name}_facet_geometry. */
typedef struct {{
  CeedScalar normal[{}];
}} {name}_facet;",
        form.dim
    );
    members
}

/// Writes the QFunctions of geometric factors.
fn geometry(text: &mut String, form: &PointForm) {
    let (name, dim) = (&form.name, form.dim);
    let map = |text: &mut String| {
        let _ = writeln!(text, "  CeedPragmaSIMD for (CeedInt i = 0; i < Q; i++) {{");
        let _ = writeln!(text, "    CeedScalar J[{dim}][{dim}], A[{dim}][{dim}], det = 0.0;");
        let _ = writeln!(text, "    for (int c = 0; c < {dim}; c++) {{");
        let _ = writeln!(
            text,
            "      for (int k = 0; k < {dim}; k++) J[c][k] = in[0][i + Q * (c + {dim} * k)];\n    }}"
        );
        let _ = match dim {
            1 => writeln!(text, "    A[0][0] = 1.0;"),
            2 => writeln!(
                text,
                "    A[0][0] = J[1][1];\n    A[0][1] = -J[0][1];\n    A[1][0] = -J[1][0];\n    A[1][1] = J[0][0];"
            ),
            _ => writeln!(
                text,
                "    for (int k = 0; k < 3; k++) {{
      for (int j = 0; j < 3; j++) {{
        const int a = (j + 1) % 3, b = (j + 2) % 3, c = (k + 1) % 3, d = (k + 2) % 3;
        A[k][j] = J[a][c] * J[b][d] - J[a][d] * J[b][c];
      }}
    }}"
            ),
        };
        let _ = writeln!(text, "    for (int k = 0; k < {dim}; k++) det += J[0][k] * A[k][0];");
    };
    let signature = |text: &mut String, what: &str, comment: &str| {
        let _ = writeln!(
            text,
            "\n/* {comment} */
CEED_QFUNCTION({name}_{what})(void *ctx, const CeedInt Q, const CeedScalar *const *in, CeedScalar *const *out) {{"
        );
    };
    let cells = format!(
        "Inputs: x GRAD ({} components), the weight of the cell's rule. Output: qdata NONE ({} components).",
        dim * dim,
        1 + dim * dim
    );
    signature(text, "geometry", &cells);
    map(text);
    let _ = writeln!(text, "    out[0][i] = in[1][i] * fabs(det);");
    let entries = |text: &mut String, first: usize| {
        let _ = writeln!(text, "    for (int k = 0; k < {dim}; k++) {{");
        let _ = writeln!(
            text,
            "      for (int j = 0; j < {dim}; j++) out[0][i + Q * ({first} + {dim} * k + j)] = A[k][j] / det;\n    }}"
        );
        text.push_str("  }\n  return 0;\n}\n");
    };
    entries(text, 1);
    let facets = format!(
        "Inputs: x GRAD ({} components) by the cell's basis at the points of a facet, the weight of the facet's rule.\n   Output: qdata NONE ({} components).",
        dim * dim,
        1 + dim + dim * dim
    );
    signature(text, "facet_geometry", &facets);
    let _ = writeln!(text, "  const {name}_facet *context = (const {name}_facet *)ctx;");
    map(text);
    let _ = writeln!(
        text,
        "    CeedScalar a[{dim}], area = 0.0;
    for (int j = 0; j < {dim}; j++) {{
      a[j] = 0.0;
      for (int k = 0; k < {dim}; k++) a[j] += A[k][j] * context->normal[k];
      area += a[j] * a[j];
    }}
    area = sqrt(area);
    out[0][i] = in[1][i] * area;
    for (int j = 0; j < {dim}; j++) out[0][i + Q * (1 + j)] = (det < 0.0 ? -a[j] : a[j]) / area;"
    );
    entries(text, 1 + dim);
}

/// Writes a QFunction, and to `host` the tables of its arguments.
fn qfunction(
    text: &mut String,
    host: &mut String,
    (form, degree, params): (&PointForm, usize, &[String]),
    (integral, function, rows): (&Integral, &str, &[(Slot, NodeId)]),
) {
    let roots: Vec<NodeId> = rows.iter().map(|(_, node)| *node).collect();
    let read = inputs(integral, &roots);
    let mut names = Names::with(ARGUMENTS);
    let (inputs, outputs) = arrays(form, &read, rows, &mut names);
    let facets = !integral.region.is_of_cells();
    let factors = 1 + if facets { form.dim } else { 0 } + form.dim * form.dim;
    arguments(host, form, (function, "inputs"), &inputs, Some(factors));
    arguments(host, form, (function, "outputs"), &outputs, None);
    let _ = writeln!(
        text,
        "\nCEED_QFUNCTION({function})(void *ctx, const CeedInt Q, const CeedScalar *const *in, CeedScalar *const *out) {{"
    );
    let mut scope = Scope {
        form,
        degree,
        inputs: &inputs,
        facets,
        locals: BTreeMap::new(),
        factors: BTreeMap::new(),
    };
    scope.uniform(text, &read, params, &mut names);
    for (number, name) in inputs.values().map(String::as_str).chain(["qdata"]).enumerate() {
        let _ = writeln!(text, "  const CeedScalar *{name} = in[{number}];");
    }
    for (number, name) in outputs.values().enumerate() {
        let _ = writeln!(text, "  CeedScalar *{name} = out[{number}];");
    }
    let _ = writeln!(text, "  CeedPragmaSIMD for (CeedInt i = 0; i < Q; i++) {{");
    let _ = writeln!(text, "    const CeedScalar w = qdata[i];");
    scope.gradients(text, &read, rows, &mut names);
    let (lines, values) =
        statements(integral, &roots, &WORDS, &mut names, &|input| scope.input(input));
    for line in lines {
        let _ = writeln!(text, "    {line}");
    }
    let values: BTreeMap<Slot, &str> =
        rows.iter().zip(&values).map(|((slot, _), value)| (*slot, value.as_str())).collect();
    scope.outputs(text, &outputs, &values, &mut names);
    text.push_str("  }\n  return 0;\n}\n");
}

/// Returns the arrays that a QFunction reads and writes.
fn arrays(
    form: &PointForm,
    read: &BTreeSet<Input>,
    rows: &[(Slot, NodeId)],
    names: &mut Names,
) -> (Arrays, Arrays) {
    let mut named = |keys: BTreeSet<(Source, bool)>| -> Arrays {
        let name = |key: (Source, bool)| (key, names.unique(&key.0.wish(form, key.1)));
        keys.into_iter().map(name).collect()
    };
    let is_gradient = |slot: Slot| slot.part != Part::Value;
    let sources = read.iter().filter_map(|input| match input {
        Input::Coordinate(_) => Some((Source::Coordinates, false)),
        input => Source::of(*input).map(|(source, slot)| (source, is_gradient(slot))),
    });
    let inputs = named(sources.collect());
    let tested = rows.iter().map(|(slot, _)| (Source::Test(slot.field), is_gradient(*slot)));
    let outputs = named(tested.collect());
    (inputs, outputs)
}

/// Writes a table of arguments; inputs end with the geometric factors.
fn arguments(
    host: &mut String,
    form: &PointForm,
    (function, kind): (&str, &str),
    arrays: &Arrays,
    factors: Option<usize>,
) {
    let _ = writeln!(host, "static const WeakformArgument {function}_{kind}[] = {{");
    for ((source, gradient), name) in arrays {
        let (constant, index) = source.constant();
        let (mode, factor) = if *gradient { ("GRAD", form.dim) } else { ("INTERP", 1) };
        let size = source.components(form) * factor;
        let name = string(name);
        let _ = writeln!(host, "  {{{name}, {constant}, {index}, {size}, CEED_EVAL_{mode}}},");
    }
    if let Some(size) = factors {
        let _ = writeln!(host, "  {{\"qdata\", WEAKFORM_QDATA, 0, {size}, CEED_EVAL_NONE}},");
    }
    let _ = writeln!(host, "  {{NULL, WEAKFORM_QDATA, 0, 0, CEED_EVAL_NONE}}\n}};");
}

/// The inputs of a QFunction.
struct Scope<'a> {
    form: &'a PointForm,
    degree: usize,
    inputs: &'a Arrays,
    facets: bool,
    /// Variables of the time, parameters and derivatives.
    locals: BTreeMap<Input, String>,
    /// Variables of ∂X_k/∂x_j.
    factors: BTreeMap<(usize, usize), String>,
}

impl Scope<'_> {
    /// Writes variables of the time and the parameters.
    fn uniform(
        &mut self,
        text: &mut String,
        read: &BTreeSet<Input>,
        params: &[String],
        names: &mut Names,
    ) {
        let own = |input: &&Input| matches!(input, Input::Param(..) | Input::Time);
        if !read.iter().any(|input| own(&input)) {
            return;
        }
        let name = &self.form.name;
        let _ = writeln!(text, "  const {name}_context *context = (const {name}_context *)ctx;");
        for input in read.iter().filter(own) {
            let (wish, member) = match *input {
                Input::Param(param, component) => {
                    let member = &params[param];
                    match self.form.params[param].value.len() {
                        1 => (member.clone(), member.clone()),
                        _ => (format!("{member}_{component}"), format!("{member}[{component}]")),
                    }
                }
                _ => ("t".to_owned(), "t".to_owned()),
            };
            let local = names.unique(&wish);
            let _ = writeln!(text, "  const CeedScalar {local} = context->{member};");
            self.locals.insert(*input, local);
        }
    }

    /// Writes variables of the derivatives in space, and of the factors of all derivatives.
    fn gradients(
        &mut self,
        text: &mut String,
        read: &BTreeSet<Input>,
        rows: &[(Slot, NodeId)],
        names: &mut Names,
    ) {
        let dim = self.form.dim;
        let axis = |slot: Slot| match slot.part {
            Part::Derivative(j) => Some(j),
            _ => None,
        };
        let derivatives: Vec<(Input, Source, Slot, usize)> = read
            .iter()
            .filter_map(|input| {
                let (source, slot) = Source::of(*input)?;
                Some((*input, source, slot, axis(slot)?))
            })
            .collect();
        let tested = rows.iter().filter_map(|(slot, _)| axis(*slot));
        let axes: BTreeSet<usize> = tested.chain(derivatives.iter().map(|of| of.3)).collect();
        let first = if self.facets { 1 + dim } else { 1 };
        for k in 0..dim {
            for &j in &axes {
                let name = names.unique(&format!("dXdx_{k}_{j}"));
                let _ = writeln!(
                    text,
                    "    const CeedScalar {name} = qdata[i + Q * {}];",
                    first + dim * k + j
                );
                self.factors.insert((k, j), name);
            }
        }
        for (input, source, slot, j) in derivatives {
            let array = &self.inputs[&(source, true)];
            let components = source.components(self.form);
            let wish = format!("{}_{}_{j}", source.wish(self.form, false), slot.component);
            let name = names.unique(&wish);
            let terms: Vec<String> = (0..dim)
                .map(|k| {
                    let at = slot.component + components * k;
                    format!("{array}[i + Q * {at}] * {}", self.factors[&(k, j)])
                })
                .collect();
            let _ = writeln!(text, "    const CeedScalar {name} = {};", terms.join(" + "));
            self.locals.insert(input, name);
        }
    }

    /// Returns an input as an expression.
    fn input(&self, input: Input) -> String {
        if let Some(local) = self.locals.get(&input) {
            return local.clone();
        }
        match input {
            Input::Coordinate(j) => {
                format!("{}[i + Q * {j}]", self.inputs[&(Source::Coordinates, false)])
            }
            Input::Normal(j) => format!("qdata[i + Q * {}]", 1 + j),
            Input::Degree => format!("{}.0", self.degree),
            input => match Source::of(input) {
                Some((source, slot)) => {
                    format!("{}[i + Q * {}]", self.inputs[&(source, false)], slot.component)
                }
                None => unreachable!("{input:?} is refused"),
            },
        }
    }

    /// Writes the outputs, with zeros for components without a term.
    fn outputs(
        &self,
        text: &mut String,
        outputs: &Arrays,
        values: &BTreeMap<Slot, &str>,
        names: &mut Names,
    ) {
        let dim = self.form.dim;
        for ((source, gradient), array) in outputs {
            let Source::Test(field) = *source else { continue };
            let components = source.components(self.form);
            let slot = |component: usize, part: Part| Slot {
                field,
                side: fem_dsl::point::Side::Inside,
                component,
                part,
            };
            for c in 0..components {
                if !gradient {
                    let _ = match values.get(&slot(c, Part::Value)) {
                        Some(value) => {
                            writeln!(text, "    {array}[i + Q * {c}] = w * ({value});")
                        }
                        None => writeln!(text, "    {array}[i + Q * {c}] = 0.0;"),
                    };
                    continue;
                }
                let mut factors = Vec::new();
                for j in 0..dim {
                    let Some(value) = values.get(&slot(c, Part::Derivative(j))) else { continue };
                    let name =
                        names.unique(&format!("f1_{}_{c}_{j}", self.form.fields[field].name));
                    let _ = writeln!(text, "    const CeedScalar {name} = w * ({value});");
                    factors.push((j, name));
                }
                for k in 0..dim {
                    let terms: Vec<String> = factors
                        .iter()
                        .map(|(j, name)| format!("{name} * {}", self.factors[&(k, *j)]))
                        .collect();
                    let sum = if terms.is_empty() { "0.0".to_owned() } else { terms.join(" + ") };
                    let _ = writeln!(text, "    {array}[i + Q * {}] = {sum};", c + components * k);
                }
            }
        }
    }
}

/// Writes the tables of fields and data.
fn tables(text: &mut String, form: &PointForm, elements: &Elements) {
    let name = &form.name;
    let points = elements.largest() + 1;
    let _ = writeln!(
        text,
        "enum {{ {name}_DIM = {}, {name}_QUADRATURE_POINTS = {points} }};",
        form.dim
    );
    for (kind, entries) in
        [("fields", fields(form, elements)), ("data", data(form, &form.aux, elements))]
    {
        let _ = writeln!(text, "static const WeakformField {name}_{kind}[] = {{");
        for TableEntry { name, components, degree, continuous, rate } in entries {
            let (continuous, (field, order)) = (i32::from(continuous), rate.unwrap_or((0, 0)));
            let _ = writeln!(
                text,
                "  {{{}, {components}, {degree}, {continuous}, {order}, {field}}},",
                string(name)
            );
        }
        let _ = writeln!(text, "  {{NULL, 0, 0, 0, 0, 0}}\n}};");
    }
}

/// Writes the defaults of the parameters, and the function that registers them.
fn registration(text: &mut String, form: &PointForm, params: &[String]) {
    let name = &form.name;
    let value = |value: &Vec<f64>| {
        let texts: Vec<String> = value.iter().map(|value| format!("{value:?}")).collect();
        if texts.len() == 1 { texts[0].clone() } else { format!("{{{}}}", texts.join(", ")) }
    };
    let values: Vec<String> = form.params.iter().map(|param| value(&param.value)).collect();
    let all = ["0.0".to_owned()].into_iter().chain(values).collect::<Vec<_>>().join(", ");
    let _ = writeln!(
        text,
        "
static const {name}_context {name}_defaults = {{{all}}};

/* Registers the time and the parameters as fields of a context that holds a {name}_context. */
static inline int {name}_register(CeedQFunctionContext context) {{
  int error = CeedQFunctionContextRegisterDouble(context, \"t\", offsetof({name}_context, t), 1, \"the time\");"
    );
    for (param, member) in form.params.iter().zip(params) {
        let _ = writeln!(
            text,
            "  if (!error) error = CeedQFunctionContextRegisterDouble(context, {}, offsetof({name}_context, {member}), {}, \"a parameter\");",
            string(&param.name),
            param.value.len()
        );
    }
    text.push_str("  return error;\n}\n\n");
}
