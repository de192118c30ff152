//! The sections of format 2, text and binary.

use super::cursor::Cursor;
use super::kinds::Kind;
use super::{Block, Contents, GmshError};

/// `$Nodes`: a count in text, then numbers and coordinates.
pub(super) fn nodes(cursor: &mut Cursor<'_>, contents: &mut Contents) -> Result<(), GmshError> {
    let item = if cursor.is_binary() { 28 } else { 8 };
    let count = cursor.text_count("nodes", item)?;
    cursor.numbers()?;
    contents.node_numbers.reserve(count);
    contents.points.reserve(count);
    for _ in 0..count {
        contents.node_marks.push(cursor.mark());
        contents.node_numbers.push(number(cursor, "a node number")?);
        contents.points.push(cursor.point()?);
    }
    Ok(())
}

/// `$Elements`: a count in text, then elements; in binary in runs of one kind.
pub(super) fn elements(cursor: &mut Cursor<'_>, contents: &mut Contents) -> Result<(), GmshError> {
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
                element(cursor, contents, kind, number, n_tags)?;
            }
            left -= run;
        } else {
            let number = number(cursor, "an element number")?;
            let kind = kind(cursor)?;
            let n_tags = cursor.int_count("tags of an element", 2)?;
            element(cursor, contents, kind, number, n_tags)?;
            left -= 1;
        }
    }
    Ok(())
}

/// The tags (physical group, entity, and more) and the nodes of one element.
fn element(
    cursor: &mut Cursor<'_>,
    contents: &mut Contents,
    kind: Kind,
    number: u64,
    n_tags: usize,
) -> Result<(), GmshError> {
    let mut tags = [0; 2];
    for i in 0..n_tags {
        let tag = cursor.int("a tag of an element")?;
        if let Some(slot) = tags.get_mut(i) {
            *slot = tag;
        }
    }
    // Group 0 means none; a sign says only which way the group looks at the element.
    let groups = if tags[0] == 0 { Vec::new() } else { vec![tags[0].abs()] };
    let fits =
        |block: &Block| block.kind == kind && block.entity == tags[1] && block.groups == groups;
    if !contents.blocks.last().is_some_and(fits) {
        let (numbers, nodes) = (Vec::new(), Vec::new());
        let block = Block { kind, entity: tags[1], groups, numbers, nodes };
        contents.blocks.push(block);
    }
    if let Some(block) = contents.blocks.last_mut() {
        block.numbers.push(number);
        for _ in 0..kind.nodes() {
            block.nodes.push(self::number(cursor, "a node number")?);
        }
    }
    Ok(())
}

fn number(cursor: &mut Cursor<'_>, expected: &str) -> Result<u64, GmshError> {
    let mark = cursor.mark();
    let value = cursor.int(expected)?;
    u64::try_from(value).map_err(|_| cursor.syntax(mark, expected, &value.to_string()))
}

/// The number of an element type.
pub(super) fn kind(cursor: &mut Cursor<'_>) -> Result<Kind, GmshError> {
    let mark = cursor.mark();
    let number = cursor.int("an element type")?;
    Kind::of(number).map_err(|name| GmshError::Unsupported {
        place: cursor.place(mark),
        what: format!(
            "elements of type {number} ({name}) are not there yet; cells are triangles, quadrilaterals, tetrahedra \
             and hexahedra of order 1 to 5: mesh the part with one kind of these"
        ),
    })
}
