//! Converts an Abaqus model to `Contents`: one part, elements in blocks by type and sets, surfaces and node sets as
//! facets.

use super::elements::{self, Face};
use super::model::{Model, ModelPart, NamedSets, NumberRange, Sets, Surface, among};
use crate::mesh::read::contents::{
    self, Contents, ElementBlock, ElementKind, ElementOrder, NodePermutation,
};
use crate::mesh::read::node_sets::{self, NodeSet};
use crate::mesh::read::{FilePosition, ReadError};
use crate::mesh::vtk_order;
use std::collections::{BTreeSet, HashMap};

pub(super) fn contents(mut model: Model) -> Result<Contents, ReadError> {
    let place = model.instance.take();
    let assembly = std::mem::take(&mut model.assembly);
    let mut part = chosen(model, place.as_ref().map(|instance| instance.part))?;
    contents::once(&part.node_numbers, &part.points, &part.node_lines, FilePosition::Line)?;
    if let Some(instance) = &place {
        part.points.iter_mut().for_each(|point| *point = instance.place(*point));
    }
    let whole = FlatPart {
        assembly,
        // If the assembly uses a name as well, the part's set gets the instance as prefix.
        owner: place.map_or_else(|| part.name.clone(), |instance| instance.name),
        index: index(&part),
        part,
    };
    whole.contents()
}

/// Returns the only part.
fn chosen(mut model: Model, instance: Option<usize>) -> Result<ModelPart, ReadError> {
    match (instance, model.parts.len()) {
        (Some(part), _) => Ok(model.parts.swap_remove(part)),
        (None, 0) => Ok(model.flat),
        (None, 1) => Ok(model.parts.swap_remove(0)),
        (None, several) => {
            let what = format!(
                "the file has {several} parts and no instance of one: write the input of an assembly with the one \
                 that is meant"
            );
            Err(ReadError::Unsupported { place: FilePosition::Line(1), what })
        }
    }
}

/// Returns for each element number its group and its index there.
fn index(part: &ModelPart) -> HashMap<u64, (usize, usize)> {
    let all = part.elements.iter().enumerate();
    all.flat_map(|(group, elements)| {
        elements.numbers.iter().enumerate().map(move |(place, &number)| (number, (group, place)))
    })
    .collect()
}

/// A part with the sets and surfaces of both levels.
struct FlatPart {
    part: ModelPart,
    assembly: NamedSets,
    owner: String,
    index: HashMap<u64, (usize, usize)>,
}

impl FlatPart {
    fn contents(self) -> Result<Contents, ReadError> {
        let missing = |what: &str| ReadError::Missing(what.to_owned());
        if self.part.node_numbers.is_empty() {
            return Err(missing("nodes behind *NODE"));
        }
        if self.part.elements.is_empty() {
            return Err(missing("elements behind *ELEMENT"));
        }
        let mut contents = Contents {
            node_numbers: self.part.node_numbers.clone(),
            points: self.part.points.clone(),
            blocks: self.blocks()?,
            notes: self.skipped(),
            order: ElementOrder::Ascending,
            ..Contents::default()
        };
        self.surfaces(&mut contents)?;
        self.node_sets(&mut contents)?;
        Ok(contents)
    }

    fn skipped(&self) -> Vec<String> {
        let types: Vec<&str> = self.part.skipped.iter().map(String::as_str).collect();
        match types[..] {
            [] => Vec::new(),
            _ => vec![format!("elements of type {} are no part of the mesh", types.join(", "))],
        }
    }

    /// Returns the sets of the part and the assembly, with their tags.
    fn named<'a>(
        &'a self,
        of: impl Fn(&'a NamedSets) -> &'a Sets,
    ) -> Vec<(String, &'a super::model::Set)> {
        let (own, assembly) = (of(&self.part.names), of(&self.assembly));
        let lower = own.0.iter().map(|(key, set)| {
            let taken = assembly.0.contains_key(key);
            (if taken { format!("{}.{}", self.owner, set.name) } else { set.name.clone() }, set)
        });
        let upper = assembly.0.values().map(|set| (set.name.clone(), set));
        lower.chain(upper).filter(|(_, set)| !set.internal).collect()
    }

    /// Returns the numbers of all elements, ascending.
    fn element_numbers(&self) -> Vec<u64> {
        let mut numbers: Vec<u64> = self.index.keys().copied().collect();
        numbers.sort_unstable();
        numbers
    }

    /// Groups elements by type and sets.
    fn blocks(&self) -> Result<Vec<ElementBlock>, ReadError> {
        let sets = self.named(|names| &names.element_sets);
        let numbers = self.element_numbers();
        let mut of: HashMap<u64, Vec<usize>> = HashMap::new();
        for (place, (_, set)) in sets.iter().enumerate() {
            for number in among(&set.members, &numbers) {
                of.entry(number).or_default().push(place);
            }
        }
        let none = Vec::new();
        let mut known: HashMap<(ElementKind, &Vec<usize>), usize> = HashMap::new();
        let mut blocks: Vec<ElementBlock> = Vec::new();
        for elements in &self.part.elements {
            let kind = elements.kind;
            let layout = NodePermutation::new(kind, &elements::lattice(kind))?;
            for (number, nodes) in
                elements.numbers.iter().zip(elements.nodes.chunks_exact(kind.nodes()))
            {
                let own = of.get(number).unwrap_or(&none);
                let place = *known.entry((kind, own)).or_insert(blocks.len());
                if place == blocks.len() {
                    let tags = own.iter().map(|&set| sets[set].0.clone()).collect();
                    blocks.push(ElementBlock {
                        kind,
                        tags,
                        numbers: Vec::new(),
                        nodes: Vec::new(),
                    });
                }
                blocks[place].numbers.push(*number);
                blocks[place].nodes.extend(layout.ours(nodes));
            }
        }
        Ok(blocks)
    }

    /// Adds the faces of surfaces as blocks.
    fn surfaces(&self, contents: &mut Contents) -> Result<(), ReadError> {
        let dim = contents.dim();
        let numbers = self.element_numbers();
        let taken: BTreeSet<String> = self
            .assembly
            .surfaces
            .iter()
            .map(|surface| surface.name.to_ascii_uppercase())
            .collect();
        let mut without: Vec<&str> = Vec::new();
        let lower = self.part.names.surfaces.iter().map(|surface| {
            let taken = taken.contains(&surface.name.to_ascii_uppercase());
            let name = if taken {
                format!("{}.{}", self.owner, surface.name)
            } else {
                surface.name.clone()
            };
            (name, surface)
        });
        let upper = self.assembly.surfaces.iter().map(|surface| (surface.name.clone(), surface));
        for (name, surface) in lower.chain(upper) {
            let mut blocks = self.faces(surface, &name, &numbers)?;
            blocks.retain(|block| block.kind.dim() + 1 == dim);
            if blocks.is_empty() {
                without.push(&surface.name);
            }
            contents.blocks.append(&mut blocks);
        }
        if !without.is_empty() {
            contents.notes.push(format!(
                "surfaces that name no faces of cells (S1, S2 and so on) give no tag: {}",
                list(&without)
            ));
        }
        Ok(())
    }

    /// Returns the faces of a surface, as blocks of straight facets.
    fn faces(
        &self,
        surface: &Surface,
        tag: &str,
        numbers: &[u64],
    ) -> Result<Vec<ElementBlock>, ReadError> {
        let mut blocks: HashMap<ElementKind, ElementBlock> = HashMap::new();
        for faces in surface.faces.iter().filter(|faces| !faces.label.is_empty()) {
            for number in among(&faces.elements, numbers) {
                let (group, place) = self.index[&number];
                let elements = &self.part.elements[group];
                let (ElementKind::Cell(cell, _) | ElementKind::Serendipity(cell)) = elements.kind
                else {
                    continue;
                };
                let count = elements.kind.nodes();
                let nodes = &elements.nodes[place * count..(place + 1) * count];
                let (facet, vertices) = match elements::face(cell, &faces.label) {
                    Some(Face::Vertices(vertices)) => (cell.facet_cell(), vertices),
                    Some(Face::Whole) => (Some(cell), &[0, 1, 2, 3][..cell.vertex_count()]),
                    None => return Err(no_face(faces.line, &faces.label, number, elements.kind)),
                };
                let Some(facet) = facet else { continue };
                let kind = ElementKind::Cell(facet, 1);
                let theirs: Vec<u64> = vertices.iter().map(|&vertex| nodes[vertex]).collect();
                let layout = NodePermutation::new(kind, &vtk_order::lattice(facet, 1))?;
                let block = blocks.entry(kind).or_insert_with(|| {
                    let tags = BTreeSet::from([tag.to_owned()]);
                    ElementBlock { kind, tags, numbers: Vec::new(), nodes: Vec::new() }
                });
                block.numbers.push(number);
                block.nodes.extend(layout.ours(&theirs));
            }
        }
        let mut blocks: Vec<ElementBlock> = blocks.into_values().collect();
        blocks.sort_by_key(|block| block.kind);
        Ok(blocks)
    }

    /// Adds the facets of a node set, or else its edges and points, unless facets have its name.
    fn node_sets(&self, contents: &mut Contents) -> Result<(), ReadError> {
        let dim = contents.dim();
        if dim < 2 {
            return Ok(());
        }
        let tags = contents.blocks_of(dim - 1).flat_map(|block| &block.tags);
        let taken: BTreeSet<String> = tags.map(|tag| tag.to_ascii_uppercase()).collect();
        let mut existing = self.part.node_numbers.clone();
        existing.sort_unstable();
        let numbers = self.element_numbers();
        let sets: Vec<NodeSet> = self
            .named(|names| &names.node_sets)
            .into_iter()
            .filter(|(name, _)| !taken.contains(&name.to_ascii_uppercase()))
            .map(|(name, set)| {
                let mut nodes = among(&set.members, &existing);
                nodes.extend(self.nodes_of(&set.elements, &numbers));
                NodeSet { name, nodes }
            })
            .filter(|set| !set.nodes.is_empty())
            .collect();
        Ok(node_sets::tag(contents, &sets)?)
    }

    /// Returns the nodes of some elements.
    fn nodes_of(&self, elements: &[NumberRange], numbers: &[u64]) -> Vec<u64> {
        let all = among(elements, numbers).into_iter().flat_map(|number| {
            let (group, place) = self.index[&number];
            let elements = &self.part.elements[group];
            let count = elements.kind.nodes();
            elements.nodes[place * count..(place + 1) * count].iter().copied()
        });
        all.collect()
    }
}

/// Joins names for a message, at most `MOST`.
fn list(names: &[&str]) -> String {
    const MOST: usize = 8;
    let shown: Vec<_> =
        names.iter().take(MOST).map(|name| fem_dsl::source::shortened(name)).collect();
    let more = names.len().saturating_sub(MOST);
    let rest = if more > 0 { format!(" and {more} more") } else { String::new() };
    format!("{}{rest}", shown.join(", "))
}

fn no_face(line: usize, label: &str, number: u64, kind: ElementKind) -> ReadError {
    ReadError::Syntax {
        place: FilePosition::Line(line),
        expected: format!("a face of element {number}, a {kind}"),
        found: format!("`{}`", crate::mesh::read::cursor::shorten(label.as_bytes())),
    }
}
