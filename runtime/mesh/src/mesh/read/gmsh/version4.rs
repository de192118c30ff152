//! The sections of format 4.1, text and binary.

use super::version2::kind;
use super::{ElementRun, Sections};
use crate::mesh::read::ReadError;
use crate::mesh::read::cursor::Cursor;

/// Reads `$Entities`: the physical groups of each entity.
pub(super) fn entities(cursor: &mut Cursor<'_>, sections: &mut Sections) -> Result<(), ReadError> {
    cursor.numbers()?;
    let mut counts = [0; 4];
    for (dim, count) in counts.iter_mut().enumerate() {
        let numbers = if dim == 0 { 5 } else { 9 };
        *count = cursor.count("entities", 4 * numbers, numbers)?;
    }
    for (dim, count) in counts.into_iter().enumerate() {
        for _ in 0..count {
            let entity = cursor.int("an entity's number")?;
            for _ in 0..if dim == 0 { 3 } else { 6 } {
                cursor.double("a coordinate of an entity's bounding box")?;
            }
            let n_groups = cursor.count("physical groups", 4, 1)?;
            let mut groups = Vec::with_capacity(n_groups);
            for _ in 0..n_groups {
                // The sign is only the orientation.
                groups.push(cursor.int("a physical group")?.abs());
            }
            if dim > 0 {
                for _ in 0..cursor.count("bounding entities", 4, 1)? {
                    cursor.int("a bounding entity")?;
                }
            }
            sections.entities.insert((dim as u8, entity), groups);
        }
    }
    Ok(())
}

/// Reads `$Nodes`: blocks of node numbers, each followed by the coordinates.
pub(super) fn nodes(cursor: &mut Cursor<'_>, sections: &mut Sections) -> Result<(), ReadError> {
    cursor.numbers()?;
    let n_blocks = cursor.count("blocks of nodes", 16, 4)?;
    let n_nodes = cursor.count("nodes", 28, 4)?;
    cursor.size("the smallest node number")?;
    cursor.size("the largest node number")?;
    sections.node_numbers.reserve(n_nodes);
    sections.points.reserve(n_nodes);
    for _ in 0..n_blocks {
        let mark = cursor.mark();
        let dim = cursor.int("an entity's dimension")?;
        if !(0..=3).contains(&dim) {
            return Err(cursor.syntax(mark, "a dimension from 0 to 3", &dim.to_string()));
        }
        cursor.int("an entity's number")?;
        let mark = cursor.mark();
        let parameters = match cursor.int("0 or 1 (parametric)")? {
            0 => 0,
            1 => dim,
            other => return Err(cursor.syntax(mark, "0 or 1 (parametric)", &other.to_string())),
        };
        let count = cursor.count("nodes of a block", 28, 4)?;
        for _ in 0..count {
            sections.node_marks.push(cursor.mark());
            sections.node_numbers.push(cursor.size("a node number")?);
        }
        for _ in 0..count {
            sections.points.push(cursor.point()?);
            for _ in 0..parameters {
                cursor.double("a parametric coordinate")?;
            }
        }
    }
    check_total(cursor, "nodes", n_nodes, sections.points.len())
}

/// Reads `$Elements`: blocks of elements of one kind in one entity.
pub(super) fn elements(cursor: &mut Cursor<'_>, sections: &mut Sections) -> Result<(), ReadError> {
    cursor.numbers()?;
    let n_blocks = cursor.count("blocks of elements", 16, 4)?;
    let n_elements = cursor.count("elements", 8, 2)?;
    cursor.size("the smallest element number")?;
    cursor.size("the largest element number")?;
    let mut total = 0;
    for _ in 0..n_blocks {
        let mark = cursor.mark();
        let dim = cursor.int("an entity's dimension")?;
        let entity = cursor.int("an entity's number")?;
        let kind = kind(cursor)?;
        if dim != kind.dim() as i64 {
            let found = format!("a {kind} in an entity of dimension {dim}");
            return Err(cursor.syntax(mark, "elements of the entity's dimension", &found));
        }
        let per_element = kind.nodes() + 1;
        let count = cursor.count("elements of a block", 4 * per_element, per_element)?;
        let mut run = ElementRun {
            kind,
            entity,
            groups: Vec::new(),
            numbers: Vec::with_capacity(count),
            nodes: Vec::with_capacity(count * kind.nodes()),
        };
        for _ in 0..count {
            run.numbers.push(cursor.size("an element number")?);
            for _ in 0..kind.nodes() {
                run.nodes.push(cursor.size("a node number")?);
            }
        }
        total += count;
        sections.runs.push(run);
    }
    check_total(cursor, "elements", n_elements, total)
}

fn check_total(
    cursor: &Cursor<'_>,
    what: &str,
    announced: usize,
    found: usize,
) -> Result<(), ReadError> {
    if announced == found {
        return Ok(());
    }
    let expected = format!("{announced} {what} in all blocks together");
    Err(cursor.syntax(cursor.mark(), &expected, &found.to_string()))
}
