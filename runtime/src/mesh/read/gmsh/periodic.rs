//! `$Periodic`: entities that are images of others, by pairs of nodes → tags of the two sides.
//!
//! A side that is in a physical group keeps its tags. Others are called by Gmsh's number of the entity, `curve 4` or
//! `surface 4`; their facets are those all of whose vertices are in the list of nodes.

use super::Sections;
use crate::mesh::MeshError;
use crate::mesh::periodic::note;
use crate::mesh::read::ReadError;
use crate::mesh::read::contents::Contents;
use crate::mesh::read::cursor::{Cursor, Mode};
use crate::mesh::read::node_sets::{self, NodeSet};

/// An entity, and the one of which it is the image.
#[derive(Debug)]
pub(super) struct Link {
    dim: u8,
    entities: [i64; 2],
    /// The nodes of each.
    nodes: [Vec<u64>; 2],
}

/// One side of a pair.
pub(super) struct Side {
    name: String,
    /// The nodes, where the side has no tag of its own.
    nodes: Option<Vec<u64>>,
}

/// Two sides of dimension `dim`.
pub(super) struct Pair {
    dim: u8,
    sides: [Side; 2],
}

/// Reads the section.
pub(super) fn links(cursor: &mut Cursor<'_>, four: bool) -> Result<Vec<Link>, ReadError> {
    // Format 2 writes the section as text in every file.
    if !four {
        cursor.set_mode(Mode::Text);
    }
    let mode = cursor.mode();
    let found = all_links(cursor, four);
    cursor.set_mode(mode);
    found
}

fn all_links(cursor: &mut Cursor<'_>, four: bool) -> Result<Vec<Link>, ReadError> {
    cursor.numbers()?;
    let count = cursor.count("periodic entities", 12, 3)?;
    let mut links = Vec::with_capacity(count);
    for _ in 0..count {
        let dim = cursor.int("a dimension")?;
        let entities = [cursor.int("an entity's number")?, cursor.int("an entity's number")?];
        if four {
            for _ in 0..cursor.count("numbers of an affine map", 8, 1)? {
                cursor.double("a number of an affine map")?;
            }
        } else {
            let mark = cursor.mark();
            match cursor.word()?.as_str() {
                "Affine" => {
                    for _ in 0..16 {
                        cursor.double("a number of an affine map")?;
                    }
                }
                _ => cursor.back(mark),
            }
        }
        let pairs = cursor.count("pairs of nodes", 8, 2)?;
        let mut nodes = [Vec::with_capacity(pairs), Vec::with_capacity(pairs)];
        for _ in 0..pairs {
            for side in &mut nodes {
                side.push(cursor.size("a node number")?);
            }
        }
        links.push(Link { dim: u8::try_from(dim).unwrap_or(u8::MAX), entities, nodes });
    }
    Ok(links)
}

/// The sides of entities by their tags, or the names that they get.
pub(super) fn pairs(sections: &Sections, links: Vec<Link>) -> Vec<Pair> {
    let pair = |link: Link| {
        let Link { dim, entities, nodes } = link;
        let mut sides = entities.into_iter().zip(nodes).map(|(entity, nodes)| {
            let own = sections.tags_of.get(&(dim, entity)).and_then(|tags| tags.first());
            let kind = if dim == 1 { "curve" } else { "surface" };
            let name = own.cloned().unwrap_or_else(|| format!("{kind} {entity}"));
            Side { name, nodes: own.is_none().then_some(nodes) }
        });
        let sides = [sides.next()?, sides.next()?];
        Some(Pair { dim, sides })
    };
    links.into_iter().filter_map(pair).collect()
}

/// Tags the sides that have no tags, and notes the pairs.
pub(super) fn name(contents: &mut Contents, pairs: Vec<Pair>) -> Result<(), MeshError> {
    let dim = contents.dim();
    for pair in pairs.into_iter().filter(|pair| usize::from(pair.dim) + 1 == dim) {
        let [image, source] = pair.sides;
        let unnamed = [&image, &source].iter().any(|side| side.nodes.is_some());
        if !unnamed {
            continue;
        }
        let names = [&image, &source].map(|side| side.name.clone());
        let sets = [image, source].into_iter().filter_map(|side| {
            let Side { name, nodes } = side;
            Some(NodeSet { name, nodes: nodes? })
        });
        node_sets::tag(contents, &sets.collect::<Vec<_>>())?;
        contents.notes.push(note([&names[0], &names[1]]));
    }
    Ok(())
}
