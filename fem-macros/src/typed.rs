//! `typed`: a form → structs of its parameters and of its auxiliary data, as text.
//!
//! ```text
//! param f = 4; param g: vector = x;     struct Params<const DIM: usize> { f: f64, g: [f64; DIM] }
//! aux kappa: scalar on cells;           struct Aux { kappa: Function<f64> }
//! ```
//!
//! What depends on the dimension, where the form holds in two, makes its struct generic in it. A name or a shape that the
//! form does not have is then one that does not compile.

use fem_dsl::point::{PointForm, Shape};
use fem_dsl::program::Program;
use std::fmt::Write;

/// Words that the language takes as names and Rust keeps for itself.
const KEPT: [&str; 13] = [
    "abstract", "become", "box", "do", "final", "gen", "macro", "override", "priv", "try",
    "typeof", "unsized", "virtual",
];

fn ident(name: &str) -> String {
    if KEPT.contains(&name) || name == "yield" { format!("r#{name}") } else { name.to_owned() }
}

/// A field of a struct: its name, its type, and its documentation.
struct Field {
    name: String,
    ty: String,
    doc: String,
}

/// The structs of a form of a program, and what makes them known to the facade; empty where there is nothing to be set.
pub(crate) fn structs(program: &Program, name: &str) -> String {
    let forms: Vec<PointForm> =
        [2, 3].into_iter().filter_map(|dim| program.point_form(name, dim).ok()).collect();
    let Some(first) = forms.first() else { return String::new() };
    let mut text = String::new();
    if !first.params.is_empty() {
        params(&mut text, &forms, first);
    }
    if !first.aux.is_empty() {
        data(&mut text, &forms, first);
    }
    text
}

fn params(text: &mut String, forms: &[PointForm], first: &PointForm) {
    let mut fields = Vec::new();
    let mut generic = false;
    for (at, param) in first.params.iter().enumerate() {
        let shapes: Vec<Shape> = forms.iter().map(|form| form.params[at].shape).collect();
        let differ = forms.iter().any(|form| form.params[at].value != param.value);
        generic |= differ;
        let doc = format!("The parameter `{}`.", param.name);
        fields.push(Field { name: param.name.clone(), ty: ty(&shapes), doc });
    }
    let of = declare(text, ("Params", "The parameters of the form."), &fields, generic);
    for form in forms {
        let to = if of.is_empty() { String::new() } else { format!("<{}>", form.dim) };
        let values = form.params.iter().map(|param| {
            format!("{}: {},", ident(&param.name), literal(param.shape, &param.value))
        });
        let _ = write!(
            text,
            "/// The form's own values.\nimpl ::core::default::Default for Params{to} {{\n\
             fn default() -> Self {{ Self {{ {} }} }}\n}}\n",
            values.collect::<String>()
        );
        if of.is_empty() {
            break;
        }
    }
    let visits = fields.iter().map(|field| {
        let (name, own) = (&field.name, ident(&field.name));
        format!("each(\"{name}\", ::weakform::Value::components(&self.{own}));\n")
    });
    let _ = write!(
        text,
        "impl{} ::weakform::Params for Params{of} {{\n\
         fn visit(&self, each: &mut dyn ::core::ops::FnMut(&'static str, &[f64])) {{\n{}}}\n}}\n",
        bound(&of),
        visits.collect::<String>()
    );
}

fn data(text: &mut String, forms: &[PointForm], first: &PointForm) {
    let fields: Vec<Field> = (0..first.aux.len())
        .map(|at| {
            let shapes: Vec<Shape> = forms.iter().map(|form| form.aux[at].shape).collect();
            let name = first.aux[at].name.clone();
            let doc = format!("The data `{name}`, as a function of the place.");
            Field { name, ty: format!("::weakform::Function<{}>", ty(&shapes)), doc }
        })
        .collect();
    let of = declare(text, ("Aux", "The auxiliary data of the form."), &fields, false);
    let adds = fields
        .iter()
        .map(|field| format!(".aux(\"{}\", self.{}.into_inner())", field.name, ident(&field.name)));
    let _ = write!(
        text,
        "impl{} ::weakform::Data for Aux{of} {{\n\
         fn add(self, setup: ::weakform::Setup) -> ::weakform::Setup {{ setup{} }}\n}}\n",
        bound(&of),
        adds.collect::<String>()
    );
}

/// Writes a struct, generic in the dimension where `generic` or a field says so; the arguments that its name takes.
fn declare(
    text: &mut String,
    (name, doc): (&str, &str),
    fields: &[Field],
    generic: bool,
) -> String {
    let used = fields.iter().any(|field| field.ty.contains("DIM"));
    let of = if used || generic { "<DIM>".to_owned() } else { String::new() };
    let derives = if name == "Params" { "#[derive(Clone, Copy, Debug, PartialEq)]\n" } else { "" };
    let all = fields
        .iter()
        .map(|field| format!("/// {}\npub {}: {},\n", field.doc, ident(&field.name), field.ty));
    let all: String = all.collect();
    let _ = write!(text, "/// {doc}\n{derives}pub struct {name}{} {{\n{all}}}\n", bound(&of));
    of
}

fn bound(of: &str) -> &'static str {
    if of.is_empty() { "" } else { "<const DIM: usize>" }
}

/// The type of a value that has these shapes in the dimensions of the form.
fn ty(shapes: &[Shape]) -> String {
    let differ = shapes.windows(2).any(|pair| pair[0] != pair[1]);
    let extent = |n: usize| if differ { "DIM".to_owned() } else { n.to_string() };
    match shapes[0] {
        Shape::Scalar => "f64".to_owned(),
        Shape::Vector(n) => format!("[f64; {}]", extent(n)),
        Shape::Matrix(n, m) => format!("[[f64; {}]; {}]", extent(m), extent(n)),
    }
}

/// A value of a shape.
fn literal(shape: Shape, value: &[f64]) -> String {
    let row = |row: &[f64]| {
        let numbers: Vec<String> = row.iter().map(|number| format!("{number:?}_f64")).collect();
        format!("[{}]", numbers.join(", "))
    };
    match shape {
        Shape::Scalar => format!("{:?}_f64", value[0]),
        Shape::Vector(_) => row(value),
        Shape::Matrix(_, m) => {
            let rows: Vec<String> = value.chunks(m).map(row).collect();
            format!("[{}]", rows.join(", "))
        }
    }
}
