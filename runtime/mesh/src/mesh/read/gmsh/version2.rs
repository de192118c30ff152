//! The sections of format 2, text and binary.

use super::kinds;
use super::{ElementRun, Sections};
use crate::mesh::read::ReadError;
use crate::mesh::read::contents::ElementKind;
use crate::mesh::read::cursor::Cursor;

/// Reads `$Nodes`: a text count, then numbers and coordinates.
pub(super) fn nodes(cursor: &mut Cursor<'_>, sections: &mut Sections) -> Result<(), ReadError> {
    let item = if cursor.is_binary() { 28 } else { 8 };
    let count = cursor.text_count("nodes", item)?;
    cursor.numbers()?;
    sections.node_numbers.reserve(count);
    sections.points.reserve(count);
    for _ in 0..count {
        sections.node_marks.push(cursor.mark());
        sections.node_numbers.push(number(cursor, "a node number")?);
        sections.points.push(cursor.point()?);
    }
    Ok(())
}

/// Reads `$Elements`: a text count, then elements; in binary files, runs of one kind.
pub(super) fn elements(cursor: &mut Cursor<'_>, sections: &mut Sections) -> Result<(), ReadError> {
    let item = if cursor.is_binary() { 8 } else { 6 };
    let count = cursor.text_count("elements", item)?;
    cursor.numbers()?;
    let mut left = count;
    while left > 0 {
        if cursor.is_binary() {
            let kind = kind(cursor)?;
            let run = cursor.int_count("elements of a run", 4 * (1 + kind.nodes()))?;
            if run == 0 || run > left {
                let expected = format!("a run of 1 to {left} elements");
                return Err(cursor.syntax(cursor.mark(), &expected, &run.to_string()));
            }
            let n_tags = cursor.int_count("tags of an element", 4)?;
            for _ in 0..run {
                let number = number(cursor, "an element number")?;
                element(cursor, sections, kind, number, n_tags)?;
            }
            left -= run;
        } else {
            let number = number(cursor, "an element number")?;
            let kind = kind(cursor)?;
            let n_tags = cursor.int_count("tags of an element", 2)?;
            element(cursor, sections, kind, number, n_tags)?;
            left -= 1;
        }
    }
    Ok(())
}

/// Reads the tags (physical group, entity, …) and the nodes of one element.
fn element(
    cursor: &mut Cursor<'_>,
    sections: &mut Sections,
    kind: ElementKind,
    number: u64,
    n_tags: usize,
) -> Result<(), ReadError> {
    let mut tags = [0; 2];
    for i in 0..n_tags {
        let tag = cursor.int("a tag of an element")?;
        if let Some(slot) = tags.get_mut(i) {
            *slot = tag;
        }
    }
    // Group 0 means none; the sign is only the orientation.
    let groups = if tags[0] == 0 { Vec::new() } else { vec![tags[0].abs()] };
    let fits = |run: &ElementRun| run.kind == kind && run.entity == tags[1] && run.groups == groups;
    if !sections.runs.last().is_some_and(fits) {
        let (numbers, nodes) = (Vec::new(), Vec::new());
        let run = ElementRun { kind, entity: tags[1], groups, numbers, nodes };
        sections.runs.push(run);
    }
    if let Some(run) = sections.runs.last_mut() {
        run.numbers.push(number);
        for _ in 0..kind.nodes() {
            run.nodes.push(self::number(cursor, "a node number")?);
        }
    }
    Ok(())
}

fn number(cursor: &mut Cursor<'_>, expected: &str) -> Result<u64, ReadError> {
    let mark = cursor.mark();
    let value = cursor.int(expected)?;
    u64::try_from(value).map_err(|_| cursor.syntax(mark, expected, &value.to_string()))
}

/// Reads an element type.
pub(super) fn kind(cursor: &mut Cursor<'_>) -> Result<ElementKind, ReadError> {
    let mark = cursor.mark();
    let number = cursor.int("an element type")?;
    kinds::of(number).map_err(|name| ReadError::Unsupported {
        place: cursor.place(mark),
        what: format!("elements of type {number} ({}) are not there yet{}", name.what, name.remedy),
    })
}
