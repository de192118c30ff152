//! A refinement series: the mesh of a problem → meshes with repeatedly halved cells.
//!
//! A generator is called with more cells; `refine` is ignored. A file is replaced by a box of its cells, or an
//! interval, of its size, because the form is verified rather than the mesh. Tags named by the form are assigned to free sides of the
//! box; the others have essential conditions.

use crate::{Error, Mesh};
use fem_dsl::form::Form;
use fem_dsl::point::Region;
use fem_dsl::problem::{Argument, MeshSource, Problem};
use fem_dsl::program::fluxes;
use kernels_gen::element::{Cell, Element};
use kernels_gen::generate::elements;
use runtime::mesh::{LoadError, load};
use runtime::problem::{RunError, with_periodic_sides};
use runtime::processes::ProcessGroup;
use runtime::space::Space;
use std::collections::BTreeMap;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

/// A series of meshes, generated on demand.
pub(super) struct Series {
    generator: String,
    arguments: BTreeMap<String, Argument>,
    cell: Cell,
    note: Option<String>,
    /// True if these meshes replace the problem's.
    substitute: bool,
    /// Tags that the form refers to, each with its side of a box.
    tags: Vec<(String, &'static str)>,
    meshes: Vec<Arc<Mesh>>,
}

/// The sides of a box, in the order of assignment to the form's regions.
const SIDES: [&str; 6] = ["x1", "y1", "z1", "y0", "z0", "x0"];

impl Series {
    /// Returns the series of a problem's mesh, or of a box of other cells; `given` creates the mesh itself.
    pub(super) fn new(
        source: MeshSource,
        cell: Option<Cell>,
        given: impl Fn(&MeshSource) -> Result<Mesh, LoadError>,
    ) -> Result<Self, Error> {
        let mesh = given(&source)?;
        let of = |cell: Option<Cell>| cell.map_or(mesh.dim(), Cell::dim);
        if let (MeshSource::Generator { name, arguments }, None) = (source, cell) {
            let (generator, cell) = (name, mesh.cell());
            let (note, substitute, tags, meshes) = (None, false, Vec::new(), Vec::new());
            return Ok(Self { generator, arguments, cell, note, substitute, tags, meshes });
        }
        let dim = of(cell);
        let note = match cell {
            Some(_) => None,
            None => Some(format!(
                "boxes of {} cells stand for the mesh of the file, which has no series of coarser ones",
                mesh.cell().name()
            )),
        };
        let cell = cell.unwrap_or(mesh.cell());
        let (from, to) = mesh.bounding_box();
        let mut arguments = BTreeMap::new();
        let mut set = |name: &str, value: Argument| drop(arguments.insert(name.to_owned(), value));
        set("dim", Argument::Number(dim as f64));
        if dim > 1 {
            set("cell", Argument::Word(cell.name().to_owned()));
        }
        if dim == mesh.dim() {
            set("from", Argument::Numbers(from[..dim].to_vec()));
            set("to", Argument::Numbers(to[..dim].to_vec()));
        }
        if cell.is_tensor() && dim > 1 {
            // Non-affine cells: the general case.
            set("deform", Argument::Number(0.05));
        }
        let generator = if dim == 1 { "interval" } else { "box" };
        let (generator, substitute) = (generator.to_owned(), true);
        let (tags, meshes) = (Vec::new(), Vec::new());
        Ok(Self { generator, arguments, cell, note, substitute, tags, meshes })
    }

    /// Returns whether these meshes replace the problem's, whose tags they lack.
    pub(super) fn is_substitute(&self) -> bool {
        self.substitute
    }

    /// Returns whether the meshes are boxes or intervals, whose sides are named by axes.
    fn is_box(&self) -> bool {
        matches!(self.generator.as_str(), "box" | "interval")
    }

    /// Returns the sides of a box in its dimension.
    fn sides(&self) -> impl Iterator<Item = &'static str> {
        let axes = &["x", "y", "z"][..self.cell.dim()];
        SIDES.into_iter().filter(move |side| axes.iter().any(|axis| side.starts_with(axis)))
    }

    /// Assigns the tags that a form refers to and a box lacks to its sides.
    pub(super) fn set_tags(&mut self, form: &Form) {
        if !self.is_box() {
            return;
        }
        let mut wanted: Vec<&String> = Vec::new();
        for integral in &form.integrals {
            if let Region::Facets(tags) = &integral.region {
                wanted.extend(tags.iter().filter(|tag| !SIDES.contains(&tag.as_str())));
            }
        }
        wanted.dedup();
        // The last side is kept for a condition.
        let sides: Vec<&str> = self.sides().collect();
        let sides = sides[..sides.len() - 1].iter().copied().cycle();
        self.tags = wanted.into_iter().cloned().zip(sides).collect();
    }

    /// Returns conditions on a box: on the whole boundary for each continuous field with a flux. If the form has integrals over
    /// facets, or several fields, one of which may be determined up to a constant only, some sides stay free. A field
    /// with a mean-value constraint has no condition, and then all sides of the others are constrained.
    pub(super) fn conditions(&self, form: &Form, means: &[String]) -> Vec<String> {
        let mut free: Vec<&str> = self.tags.iter().map(|(_, side)| *side).collect();
        for integral in &form.integrals {
            if let Region::Facets(tags) = &integral.region {
                free.extend(self.sides().filter(|side| tags.iter().any(|tag| tag == side)));
            }
        }
        if form.fields.len() > 1 && free.is_empty() && means.is_empty() {
            free.push(SIDES[0]);
        }
        let held =
            self.sides().filter(|side| !free.contains(side)).map(|side| format!("\"{side}\""));
        let held: Vec<String> = held.collect();
        if held.is_empty() {
            // Boundary blocks define the conditions on the whole boundary.
            return Vec::new();
        }
        let place = match (free.is_empty(), self.is_box()) {
            (false, true) => format!(" on {}", held.join(", ")),
            _ => String::new(),
        };
        let fields = form.fields.iter().zip(fluxes(form));
        fields
            .filter(|(field, flux)| *flux && field.space.is_continuous())
            .filter(|(field, _)| !means.contains(&field.name))
            .map(|(field, _)| format!("{}{place}", field.name))
            .collect()
    }

    /// Returns the cells.
    pub(super) fn cell(&self) -> Cell {
        self.cell
    }

    /// Returns a remark on these meshes.
    pub(super) fn note(&self) -> Option<String> {
        self.note.clone()
    }

    /// Returns the mesh of a level, from 0 on.
    pub(super) fn mesh(&mut self, level: usize) -> Result<&Arc<Mesh>, Error> {
        while self.meshes.len() <= level {
            let arguments = self.arguments_of(self.meshes.len());
            let name = self.generator.clone();
            let mut mesh = load(&MeshSource::Generator { name, arguments }, Path::new(""))?;
            for (tag, side) in &self.tags {
                mesh.tag_like(side, tag);
            }
            self.meshes.push(Arc::new(mesh));
        }
        Ok(&self.meshes[level])
    }

    /// Returns the subdomain of that mesh for this process and a problem; the whole mesh for a single process.
    pub(super) fn part(
        &mut self,
        level: usize,
        problem: &Problem,
        group: &Arc<dyn ProcessGroup>,
    ) -> Result<Arc<Mesh>, Error> {
        let whole = with_periodic_sides(problem, Arc::clone(self.mesh(level)?));
        Ok(whole.map_err(RunError::from)?.part(group))
    }

    fn arguments_of(&self, level: usize) -> BTreeMap<String, Argument> {
        let mut arguments = self.arguments.clone();
        let times = (1usize << level) as f64;
        if !self.is_box() {
            arguments.insert("refine".to_owned(), Argument::Number(level as f64));
            return arguments;
        }
        let cells = match self.arguments.get("cells") {
            Some(Argument::Numbers(all)) => {
                // The aspect ratio of the cells is roughly preserved.
                let least = all.iter().copied().fold(f64::INFINITY, f64::min).max(1.0);
                let along = all.iter().map(|n| (n / least).round().clamp(1.0, 8.0) * times);
                Argument::Numbers(along.collect())
            }
            _ => Argument::Number(times),
        };
        arguments.insert("cells".to_owned(), cells);
        arguments
    }

    /// Returns the DoFs of a problem on a level.
    pub(super) fn dofs(&mut self, problem: &Problem, level: usize) -> Result<usize, Error> {
        let mesh = self.mesh(level)?;
        let (form, cell) = (&problem.form, mesh.cell());
        let elements = elements(form, cell, problem.degree, mesh.order(), problem.quadrature);
        let elements = elements.map_err(RunError::from)?;
        let unknowns =
            |(element, components): (Element, usize)| Space::count(mesh, element) * components;
        Ok(elements.spaces().into_iter().map(unknowns).sum())
    }

    /// Returns this many levels, the finest of which has at most `most` DoFs.
    pub(super) fn levels(
        &mut self,
        problem: &Problem,
        count: usize,
        most: usize,
    ) -> Result<Range<usize>, Error> {
        let mut end = count;
        while self.dofs(problem, end)? <= most {
            end += 1;
        }
        Ok(end - count..end)
    }
}
