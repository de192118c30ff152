//! `$Periodic`: pairs of entities and of their nodes, converted to tags of the two sides.
//!
//! A side keeps the tags of its physical groups. Other sides are named by their Gmsh entity, `curve 4` or `surface 4`;
//! they contain the facets whose vertices are all in the node list.

use super::Sections;
use crate::mesh::MeshError;
use crate::mesh::periodic::note;
use crate::mesh::read::ReadError;
use crate::mesh::read::contents::Contents;
use crate::mesh::read::cursor::{Cursor, Encoding};
use crate::mesh::read::node_sets::{self, NodeSet};

/// An entity and its image.
#[derive(Debug)]
pub(super) struct PeriodicLink {
    dim: u8,
    entities: [i64; 2],
    /// The nodes of each, in corresponding order.
    nodes: [Vec<u64>; 2],
}

/// One side of a pair.
pub(super) struct PeriodicSide {
    name: String,
    /// The nodes, if the side has no tag of its own.
    nodes: Option<Vec<u64>>,
}

/// Two sides of dimension `dim`.
pub(super) struct SidePair {
    dim: u8,
    sides: [PeriodicSide; 2],
}

/// Reads the section.
pub(super) fn links(cursor: &mut Cursor<'_>, four: bool) -> Result<Vec<PeriodicLink>, ReadError> {
    // Format 2 always writes this section as text.
    if !four {
        cursor.set_mode(Encoding::Text);
    }
    let mode = cursor.mode();
    let found = all_links(cursor, four);
    cursor.set_mode(mode);
    found
}

fn all_links(cursor: &mut Cursor<'_>, four: bool) -> Result<Vec<PeriodicLink>, ReadError> {
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
        links.push(PeriodicLink { dim: u8::try_from(dim).unwrap_or(u8::MAX), entities, nodes });
    }
    Ok(links)
}

/// Returns the sides with their tags, or with new names.
pub(super) fn pairs(sections: &Sections, links: Vec<PeriodicLink>) -> Vec<SidePair> {
    let pair = |link: PeriodicLink| {
        let PeriodicLink { dim, entities, nodes } = link;
        let mut sides = entities.into_iter().zip(nodes).map(|(entity, nodes)| {
            let own = sections.tags_of.get(&(dim, entity)).and_then(|tags| tags.first());
            let kind = if dim == 1 { "curve" } else { "surface" };
            let name = own.cloned().unwrap_or_else(|| format!("{kind} {entity}"));
            PeriodicSide { name, nodes: own.is_none().then_some(nodes) }
        });
        let sides = [sides.next()?, sides.next()?];
        Some(SidePair { dim, sides })
    };
    links.into_iter().filter_map(pair).collect()
}

/// Tags sides without tags, and adds a note for each pair.
pub(super) fn name(contents: &mut Contents, pairs: Vec<SidePair>) -> Result<(), MeshError> {
    let dim = contents.dim();
    for pair in pairs.into_iter().filter(|pair| usize::from(pair.dim) + 1 == dim) {
        let [image, source] = pair.sides;
        let unnamed = [&image, &source].iter().any(|side| side.nodes.is_some());
        if !unnamed {
            continue;
        }
        let names = [&image, &source].map(|side| side.name.clone());
        let sets = [image, source].into_iter().filter_map(|side| {
            let PeriodicSide { name, nodes } = side;
            Some(NodeSet { name, nodes: nodes? })
        });
        node_sets::tag(contents, &sets.collect::<Vec<_>>())?;
        contents.notes.push(note([&names[0], &names[1]]));
    }
    Ok(())
}
