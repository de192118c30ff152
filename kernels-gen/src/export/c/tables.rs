//! Constants and tables of a header: numbers of nodes, reference coordinates, facets, blocks of matrices, parameters.

use super::{Scope, has_facets, prefixes, tasks};
use crate::element::Element;
use crate::export::names::{Names, string};
use crate::export::{TableEntry, data, fields, tags};
use crate::plan::{PlanError, Task};
use fem_dsl::point::{Location, PointForm};
use std::fmt::Write;

/// The types of the tables, which are the same for all forms.
const TYPES: &str = "
#ifndef WEAKFORM_C_TABLES
#define WEAKFORM_C_TABLES
// Where data has its numbers. Fields have them at nodes, whose reference coordinates are those of the table.
typedef enum { WEAKFORM_NODES, WEAKFORM_CELLS, WEAKFORM_POINTS } WeakformPlace;

// A field or data: Lagrange elements of a degree, continuous or not. Data of order 1 or 2 is r of the time derivative
// s u + r of the field with this index, s the parameter per_dt or per_dt2. Tables end with a name NULL.
typedef struct {
    const char *name;
    int components, degree, continuous, order, field;
    WeakformPlace place;
    int nodes;
    const double *reference;
} WeakformCellField;

// A parameter: its first number among those of NAME_params, and how many it has.
typedef struct {
    const char *name;
    int first, count;
} WeakformCellParameter;

// The block of a pair of components in the matrix of a cell: entry (i, j) of their nodes is first + j * rows + i.
typedef struct {
    int test_field, test_component, trial_field, trial_component, first, rows, columns;
} WeakformBlock;

// The terms over cells, or over facets of the boundary, with these tags; without tags over all. Tables end with a name
// NULL.
typedef struct {
    const char *name;
    const char *const *tags;
    int on_facets, entries, block_count;
    const WeakformBlock *blocks;
} WeakformPart;
#endif
";

/// Writes the struct of the time and the parameters, and its defaults. Returns the table of parameters.
pub(super) fn parameters(text: &mut String, scope: &Scope<'_>) -> String {
    let (form, real) = (scope.form, scope.real());
    let name = &form.name;
    let mut names = Names::with("t");
    let (mut table, mut first) = (String::new(), 1);
    let _ = writeln!(text, "\n// The time and the parameters.\ntypedef struct {{\n    {real} t;");
    for param in &form.params {
        let (member, count) = (names.unique(&param.name), param.value.len());
        let length = if count == 1 { String::new() } else { format!("[{count}]") };
        let _ = writeln!(text, "    {real} {member}{length};");
        let _ = writeln!(table, "    {{{}, {first}, {count}}},", string(&param.name));
        first += count;
    }
    let _ = writeln!(text, "}} {name}_params;");
    let value = |value: &Vec<f64>| {
        let texts: Vec<String> = value.iter().map(|value| format!("{value:?}")).collect();
        if texts.len() == 1 { texts[0].clone() } else { format!("{{{}}}", texts.join(", ")) }
    };
    let values = form.params.iter().map(|param| value(&param.value));
    let all: Vec<String> = ["0.0".to_owned()].into_iter().chain(values).collect();
    let _ =
        writeln!(text, "\nstatic const {name}_params {name}_defaults = {{{}}};", all.join(", "));
    table
}

/// Returns points with as many coordinates as the dimension, as rows of a table in C.
fn rows(points: impl Iterator<Item = [f64; 3]>, dim: usize) -> String {
    points
        .map(|point| {
            let numbers: Vec<String> = point[..dim].iter().map(|x| format!("{x:?}")).collect();
            format!("    {{{}}},\n", numbers.join(", "))
        })
        .collect()
}

impl Scope<'_> {
    /// Returns the field and the component of a row.
    pub(super) fn component(&self, row: usize) -> (usize, usize) {
        let firsts = |field: usize| self.form.row(field, 0);
        let field = (0..self.form.fields.len()).rev().find(|&field| firsts(field) <= row);
        let field = field.unwrap_or(0);
        (field, row - firsts(field))
    }

    /// Writes the constants.
    pub(super) fn constants(&self, text: &mut String) -> Result<(), PlanError> {
        let (form, elements) = (self.form, self.elements);
        let name = &form.name;
        let cell = elements.cell;
        let mut all = vec![
            ("WIDTH".to_owned(), self.lanes),
            ("DIM".to_owned(), form.dim),
            ("DEGREE".to_owned(), elements.degree),
            ("IS_TENSOR".to_owned(), usize::from(cell.is_tensor())),
            ("POINTS".to_owned(), elements.rule.count()),
            ("VERTICES".to_owned(), cell.vertex_count()),
            ("FACETS".to_owned(), cell.facets().len()),
            ("FACET_VERTICES".to_owned(), cell.facets()[0].len()),
            ("GEOMETRY_NODES".to_owned(), self.geometry()?.count()),
        ];
        for (id, (field, element)) in
            self.fields.iter().zip(form.fields.iter().zip(&elements.fields))
        {
            all.push((format!("{id}_NODES"), element.count()));
            all.push((format!("{id}_COMPONENTS"), field.shape.components()));
        }
        for (id, element) in self.data.iter().zip(&elements.aux) {
            all.extend(element.map(|element| (format!("{id}_NODES"), element.count())));
        }
        let _ = writeln!(text, "\ntypedef {} {name}_real;\n\nenum {{", self.real());
        for (constant, value) in all {
            let _ = writeln!(text, "    {name}_{constant} = {value},");
        }
        for (number, (integral, prefix)) in form.integrals.iter().zip(prefixes(form)).enumerate() {
            if tasks(integral).contains(&Task::Matrix) {
                let _ = writeln!(text, "    {prefix}_ENTRIES = {},", self.matrix(number).entries);
            }
        }
        text.push_str("};\n");
        Ok(())
    }

    /// Writes the tables.
    pub(super) fn tables(&self, text: &mut String, parameters: &str) -> Result<(), PlanError> {
        let (form, name) = (self.form, &self.form.name);
        text.push_str(TYPES);
        self.of_cell(text);
        self.nodes(text)?;
        self.entries(text);
        let _ = writeln!(
            text,
            "\nstatic const WeakformCellParameter {name}_parameters[] = {{\n{parameters}    {{NULL, 0, 0}}\n}};"
        );
        self.parts(text);
        if has_facets(form) {
            self.turns(text);
        }
        Ok(())
    }

    /// Writes the vertices and facets of the reference cell, and the points of the rule where data has numbers there.
    fn of_cell(&self, text: &mut String) {
        let (name, dim, cell) = (&self.form.name, self.form.dim, self.elements.cell);
        let _ = write!(
            text,
            "\n// The reference cell: its vertices, and those of its facets.
static const double {name}_vertex_reference[{name}_VERTICES][{name}_DIM] = {{\n{}}};
static const uint16_t {name}_facet_vertices[{name}_FACETS][{name}_FACET_VERTICES] = {{\n",
            rows(cell.vertices().into_iter(), dim)
        );
        for facet in cell.facets() {
            let vertices: Vec<String> = facet.iter().map(ToString::to_string).collect();
            let _ = writeln!(text, "    {{{}}},", vertices.join(", "));
        }
        text.push_str("};\n");
        if self.form.aux.iter().any(|aux| aux.location == Location::Points) {
            let points =
                self.elements.rule.points_and_weights().into_iter().map(|(point, _)| point);
            let _ = write!(
                text,
                "\n// The points of the rule.\nstatic const double {name}_point_reference[{name}_POINTS][{name}_DIM] = {{\n{}}};\n",
                rows(points, dim)
            );
        }
    }

    /// Writes the reference coordinates of the nodes of each element, and their rotations for facets.
    fn nodes(&self, text: &mut String) -> Result<(), PlanError> {
        let (form, elements) = (self.form, self.elements);
        let geometry = Element::from(self.geometry()?);
        let map = [("geometry", geometry)].into_iter();
        let own =
            self.fields.iter().zip(&elements.fields).map(|(id, element)| (id.as_str(), *element));
        let data = self.data.iter().zip(&elements.aux);
        let data = data.filter_map(|(id, element)| Some((id.as_str(), (*element)?)));
        for (id, element) in map.chain(own).chain(data) {
            let Some(lagrange) = element.lagrange() else { continue };
            let (name, upper) = (&form.name, if id == "geometry" { "GEOMETRY" } else { id });
            let _ = write!(
                text,
                "\nstatic const double {name}_{id}_reference[{name}_{upper}_NODES][{name}_DIM] = {{\n{}}};\n",
                rows(lagrange.points().into_iter(), form.dim)
            );
            if !has_facets(form) {
                continue;
            }
            let _ = writeln!(
                text,
                "static const uint16_t {name}_{id}_turns[{name}_FACETS][{name}_{upper}_NODES] = {{"
            );
            for facet in 0..elements.cell.facets().len() {
                let nodes: Vec<String> =
                    element.turned(facet, 0).iter().map(ToString::to_string).collect();
                let lines: Vec<String> = nodes.chunks(20).map(|line| line.join(", ")).collect();
                let _ = writeln!(text, "    {{{}}},", lines.join(",\n     "));
            }
            text.push_str("};\n");
        }
        Ok(())
    }

    /// Writes the tables of fields and data.
    fn entries(&self, text: &mut String) {
        let (form, elements) = (self.form, self.elements);
        let of_fields = self
            .fields
            .iter()
            .zip(fields(form, elements))
            .map(|(id, entry)| (entry, "NODES", Some(id.as_str())));
        let of_data = self.data.iter().zip(&form.aux).zip(data(form, &form.aux, elements));
        let of_data = of_data.map(|((id, aux), entry)| match aux.location {
            Location::Nodes(_) => (entry, "NODES", Some(id.as_str())),
            Location::Cells => (entry, "CELLS", None),
            Location::Points => (entry, "POINTS", Some("point")),
        });
        table(text, form, "fields", of_fields);
        table(text, form, "data", of_data);
    }

    /// Writes the table of the parts, with their tags and the blocks of their matrices.
    fn parts(&self, text: &mut String) {
        let form = self.form;
        let mut table = String::new();
        for (number, (integral, prefix)) in form.integrals.iter().zip(prefixes(form)).enumerate() {
            let tags = tags(&integral.region);
            let _ = writeln!(text, "\nstatic const char *const {prefix}_tags[] = {{{tags}}};");
            let facets = i32::from(!integral.region.is_of_cells());
            if !tasks(integral).contains(&Task::Matrix) {
                let _ = writeln!(
                    table,
                    "    {{{}, {prefix}_tags, {facets}, 0, 0, NULL}},",
                    string(&prefix)
                );
                continue;
            }
            let matrix = self.matrix(number);
            let _ = writeln!(text, "static const WeakformBlock {prefix}_blocks[] = {{");
            for pair in &matrix.pairs {
                let [(test, c), (trial, d)] =
                    [pair.test, pair.trial].map(|row| self.component(row));
                let (first, rows, columns) = (pair.first, pair.rows, pair.columns);
                let _ = writeln!(
                    text,
                    "    {{{test}, {c}, {trial}, {d}, {first}, {rows}, {columns}}},"
                );
            }
            text.push_str("};\n");
            let count = matrix.pairs.len();
            let _ = writeln!(
                table,
                "    {{{}, {prefix}_tags, {facets}, {prefix}_ENTRIES, {count}, {prefix}_blocks}},",
                string(&prefix)
            );
        }
        let _ = writeln!(
            text,
            "\nstatic const WeakformPart {}_parts[] = {{\n{table}    {{NULL, NULL, 0, 0, 0, NULL}}\n}};",
            form.name
        );
    }
}

/// Writes a table of fields or data; each has its place, and an element's name if it has nodes.
fn table<'e>(
    text: &mut String,
    form: &PointForm,
    kind: &str,
    entries: impl Iterator<Item = (TableEntry<'e>, &'static str, Option<&'e str>)>,
) {
    let own = &form.name;
    let _ = writeln!(text, "\nstatic const WeakformCellField {own}_{kind}[] = {{");
    for (entry, place, id) in entries {
        let TableEntry { name, components, degree, continuous, rate } = entry;
        let (continuous, (field, order)) = (i32::from(continuous), rate.unwrap_or((0, 0)));
        let nodes = match id {
            Some("point") => format!("{own}_POINTS, {own}_point_reference[0]"),
            Some(id) => format!("{own}_{id}_NODES, {own}_{id}_reference[0]"),
            None => "1, NULL".to_owned(),
        };
        let _ = writeln!(
            text,
            "    {{{}, {components}, {degree}, {continuous}, {order}, {field}, WEAKFORM_{place}, {nodes}}},",
            string(name)
        );
    }
    let _ = writeln!(text, "    {{NULL, 0, 0, 0, 0, 0, WEAKFORM_NODES, 0, NULL}}\n}};");
}
