//! Gmsh files: format 2 and 4.1, text and binary, straight and curved cells, physical names.
//!
//! `version2` and `version4` turn the sections into plain lists (`Sections`), from text or binary. Then physical groups
//! become tags (by number, if they have no name), and nodes are permuted to Lagrange order.
//!
//! The format is described in Gmsh's reference manual, chapter "Gmsh mesh file formats".

mod kinds;
mod periodic;
mod sections;
mod version2;
mod version4;

use super::contents::{self, Contents, ElementKind, NodePermutation};
use super::cursor::Cursor;
use super::{MeshFormat, ReadError};
use crate::mesh::Mesh;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::Path;

/// Reads a mesh from a Gmsh file.
///
/// # Errors
///
/// Those of [`parse`](super::parse), and unreadable files.
pub fn read(path: &Path) -> Result<Mesh, ReadError> {
    parse(&super::bytes(path)?)
}

/// Reads a mesh from the contents of a Gmsh file.
///
/// # Errors
///
/// Those of [`parse`](super::parse).
pub fn parse(bytes: &[u8]) -> Result<Mesh, ReadError> {
    super::parse(MeshFormat::Gmsh, bytes)
}

/// The sections of a Gmsh file.
#[derive(Debug, Default)]
struct Sections {
    /// Physical names by dimension and number.
    names: BTreeMap<(u8, i64), String>,
    /// Physical groups by dimension and entity (format 4).
    entities: BTreeMap<(u8, i64), Vec<i64>>,
    /// The numbers of the nodes.
    node_numbers: Vec<u64>,
    /// Their coordinates.
    points: Vec<[f64; 3]>,
    /// The positions of the node numbers in the file.
    node_marks: Vec<usize>,
    runs: Vec<ElementRun>,
    /// The tags of entities with elements.
    tags_of: BTreeMap<(u8, i64), BTreeSet<String>>,
    /// Periodic entities.
    periodic: Vec<periodic::PeriodicLink>,
}

/// Elements of one kind in one entity.
#[derive(Debug)]
struct ElementRun {
    kind: ElementKind,
    entity: i64,
    /// The physical groups of the elements (format 2).
    groups: Vec<i64>,
    /// The numbers of the elements.
    numbers: Vec<u64>,
    /// The numbers of their nodes, in Gmsh's order.
    nodes: Vec<u64>,
}

/// Parses a file.
pub(super) fn contents(bytes: &[u8]) -> Result<Contents, ReadError> {
    let mut cursor = Cursor::new(bytes);
    let version = header(&mut cursor)?;
    let sections = sections_of(&mut cursor, version)?;
    let (numbers, points) = (&sections.node_numbers, &sections.points);
    contents::once(numbers, points, &sections.node_marks, |mark| cursor.place(mark))?;
    // Format 2 repeats an element for each of its groups.
    named(sections, version == Version::Two)
}

/// Names the groups and permutes nodes to Lagrange order.
fn named(mut sections: Sections, repeats: bool) -> Result<Contents, ReadError> {
    let mut layouts: HashMap<ElementKind, NodePermutation> = HashMap::new();
    let mut blocks = Vec::with_capacity(sections.runs.len());
    for run in std::mem::take(&mut sections.runs) {
        let kind = run.kind;
        let layout = match layouts.entry(kind) {
            std::collections::hash_map::Entry::Occupied(known) => known.into_mut(),
            std::collections::hash_map::Entry::Vacant(new) => {
                new.insert(NodePermutation::new(kind, &kinds::lattice(kind))?)
            }
        };
        let tags = tags(&sections, &run);
        let mut nodes = Vec::with_capacity(run.nodes.len());
        run.nodes.chunks_exact(kind.nodes()).for_each(|own| nodes.extend(layout.ours(own)));
        if !tags.is_empty() {
            let dim = kind.dim() as u8;
            sections.tags_of.entry((dim, run.entity)).or_insert_with(|| tags.clone());
        }
        blocks.push(contents::ElementBlock { kind, tags, numbers: run.numbers, nodes });
    }
    let links = std::mem::take(&mut sections.periodic);
    let pairs = periodic::pairs(&sections, links);
    let mut contents = Contents {
        node_numbers: sections.node_numbers,
        points: sections.points,
        blocks,
        repeats,
        no_cells: Some(
            "; was the mesh made with `gmsh -2` or `-3`, and do physical groups cover the domain?",
        ),
        ..Contents::default()
    };
    periodic::name(&mut contents, pairs)?;
    Ok(contents)
}

/// Returns the names of the physical groups of a run, or their numbers.
fn tags(sections: &Sections, run: &ElementRun) -> BTreeSet<String> {
    let dim = run.kind.dim() as u8;
    let entity = sections.entities.get(&(dim, run.entity));
    let groups = run.groups.iter().chain(entity.into_iter().flatten());
    groups
        .map(|&group| {
            sections.names.get(&(dim, group)).cloned().unwrap_or_else(|| group.to_string())
        })
        .collect()
}

fn sections_of(cursor: &mut Cursor<'_>, version: Version) -> Result<Sections, ReadError> {
    let mut sections = Sections::default();
    let (mut nodes, mut elements) = (false, false);
    while let Some(section) = cursor.section()? {
        match (section.as_str(), version) {
            ("PhysicalNames", _) => names(cursor, &mut sections)?,
            ("Entities", Version::Four) => version4::entities(cursor, &mut sections)?,
            ("PartitionedEntities", Version::Four) => {
                let what = "partitioned meshes are not supported; save the mesh without partitions";
                return Err(cursor.unsupported(cursor.mark(), what));
            }
            ("ParametricNodes", Version::Two) => {
                let what = "parametric nodes of format 2 are not supported; save as format 4.1";
                return Err(cursor.unsupported(cursor.mark(), what));
            }
            ("Nodes", Version::Two) => version2::nodes(cursor, &mut sections)?,
            ("Nodes", Version::Four) => version4::nodes(cursor, &mut sections)?,
            ("Elements", Version::Two) => version2::elements(cursor, &mut sections)?,
            ("Elements", Version::Four) => version4::elements(cursor, &mut sections)?,
            ("Periodic", _) => {
                // Errors of this section do not affect the mesh.
                let mark = cursor.mark();
                sections.periodic =
                    periodic::links(cursor, version == Version::Four).unwrap_or_default();
                cursor.back(mark);
                cursor.skip_section(&section)?;
                continue;
            }
            _ => {
                cursor.skip_section(&section)?;
                continue;
            }
        }
        nodes |= section == "Nodes";
        elements |= section == "Elements";
        cursor.end_section(&section)?;
    }
    match (nodes, elements) {
        (false, _) => Err(ReadError::Missing("$Nodes section".to_owned())),
        (_, false) => Err(ReadError::Missing("$Elements section".to_owned())),
        _ => Ok(sections),
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Version {
    Two,
    Four,
}

/// Reads `$MeshFormat` and sets the cursor to text or binary and to the file's byte order.
fn header(cursor: &mut Cursor<'_>) -> Result<Version, ReadError> {
    match cursor.section()? {
        Some(name) if name == "MeshFormat" => {}
        other => {
            let expected = "$MeshFormat at the beginning of a Gmsh file";
            let found = other.map_or("an empty file".to_owned(), |name| format!("${name}"));
            return Err(cursor.syntax(0, expected, &found));
        }
    }
    let mark = cursor.mark();
    let version = match cursor.word()?.as_str() {
        "2" | "2.0" | "2.1" | "2.2" => Version::Two,
        "4.1" => Version::Four,
        other => {
            let what = format!(
                "Gmsh format {other} is not supported, only 2.2 and 4.1 are; \
                 `gmsh FILE -save -format msh41` converts it"
            );
            return Err(cursor.unsupported(mark, what));
        }
    };
    let mark = cursor.mark();
    let binary = match cursor.word()?.as_str() {
        "0" => false,
        "1" => true,
        other => {
            let expected = "the file type 0 (text) or 1 (binary)";
            return Err(cursor.syntax(mark, expected, &format!("`{other}`")));
        }
    };
    let mark = cursor.mark();
    let size = match (cursor.word()?.as_str(), version) {
        ("8", _) => 8,
        ("4", Version::Four) => 4,
        (other, _) => {
            return Err(cursor.syntax(mark, "the data size 8", &format!("`{other}`")));
        }
    };
    if binary {
        cursor.binary(size)?;
    }
    cursor.end_section("MeshFormat")?;
    Ok(version)
}

/// Reads `$PhysicalNames`, which is text in every file.
fn names(cursor: &mut Cursor<'_>, sections: &mut Sections) -> Result<(), ReadError> {
    let count = cursor.text_count("physical names", 7)?;
    for _ in 0..count {
        let (dim, number, name) = cursor.physical_name()?;
        sections.names.insert((dim, number), name);
    }
    Ok(())
}
