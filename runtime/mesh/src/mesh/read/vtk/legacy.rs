//! Legacy files of unstructured grids (`.vtk`): bytes → [`UnstructuredGrid`].
//!
//! A file has a three-line header, then upper-case keywords with counts and numbers, as text or big-endian binary.
//! Cells are lists of points, each preceded by its length; from version 5 on, they are two arrays, OFFSETS and
//! CONNECTIVITY.

use super::UnstructuredGrid;
use super::numbers::{ArrayValues, NumberType, shown};
use super::tags::{self, Tags};
use crate::mesh::read::ReadError;
use crate::mesh::read::contents::Contents;
use crate::mesh::read::cursor::{Cursor, Encoding, shorten};

pub(in crate::mesh::read) fn contents(bytes: &[u8]) -> Result<Contents, ReadError> {
    let mut cursor = Cursor::new(bytes);
    let version = header(&mut cursor)?;
    let mut file = LegacySections::default();
    while let Some((mark, keyword)) = keyword(&mut cursor) {
        section(&mut cursor, &mut file, mark, &keyword)?;
    }
    let missing = |what: &str| ReadError::Missing(what.to_owned());
    let (ends, connectivity) = file.cells.ok_or_else(|| missing("CELLS"))?;
    super::contents(UnstructuredGrid {
        points: file.points.ok_or_else(|| missing("POINTS"))?,
        connectivity,
        ends,
        types: file.types.ok_or_else(|| missing("CELL_TYPES"))?,
        tags: file.tags,
        degrees: file.degrees,
        old_hexahedra: version < (5, 1),
        place: cursor.place(file.cells_mark),
    })
}

/// Sections read so far.
#[derive(Default)]
struct LegacySections {
    points: Option<Vec<[f64; 3]>>,
    /// The end of each cell in the list of points, and the points.
    cells: Option<(Vec<u64>, Vec<u64>)>,
    cells_mark: usize,
    types: Option<Vec<u64>>,
    /// The association of the following attributes, and their number of tuples.
    data: Option<(Association, u64)>,
    tags: Option<Tags>,
    degrees: Option<Vec<f64>>,
}

#[derive(Clone, Copy, PartialEq)]
enum Association {
    Cells,
    Points,
}

/// Reads up to the data set type and sets the encoding. Returns the version.
fn header(cursor: &mut Cursor<'_>) -> Result<(u32, u32), ReadError> {
    let first = line(cursor);
    let version = first.strip_prefix(b"# vtk DataFile Version").map(<[u8]>::trim_ascii);
    let Some(version) = version else {
        let expected = "`# vtk DataFile Version 3.0` or the like at the beginning of a VTK file";
        return Err(cursor.syntax(0, expected, &shown(first)));
    };
    let mut parts = version.split(|&b| b == b'.').map(|part| {
        std::str::from_utf8(part).ok().and_then(|part| part.trim().parse().ok()).unwrap_or(0)
    });
    let version = (parts.next().unwrap_or(0), parts.next().unwrap_or(0));
    line(cursor);
    cursor.skip_blank();
    let mark = cursor.mark();
    let binary = match cursor.raw_word().to_ascii_uppercase().as_slice() {
        b"ASCII" => false,
        b"BINARY" => true,
        other => return Err(cursor.syntax(mark, "ASCII or BINARY", &shown(other))),
    };
    cursor.skip_blank();
    let mark = cursor.mark();
    let word = cursor.raw_word().to_ascii_uppercase();
    if word != b"DATASET" {
        return Err(cursor.syntax(mark, "DATASET", &shown(&word)));
    }
    let kind = cursor.word()?;
    if !kind.eq_ignore_ascii_case("UNSTRUCTURED_GRID") {
        let what = format!(
            "a data set {kind} is not read: save an UNSTRUCTURED_GRID; in ParaView, the filter Append Datasets makes one"
        );
        return Err(cursor.unsupported(mark, what));
    }
    if binary {
        cursor.set_mode(Encoding::Binary { size: 8, swap: cfg!(target_endian = "little") });
    }
    Ok(version)
}

/// Reads the rest of a line, trimmed.
fn line<'a>(cursor: &mut Cursor<'a>) -> &'a [u8] {
    let rest = cursor.rest();
    let length = rest.iter().position(|&b| b == b'\n').map_or(rest.len(), |end| end + 1);
    cursor.skip(length);
    rest[..length].trim_ascii()
}

/// Skips the metadata of an array, up to an empty line.
fn metadata(cursor: &mut Cursor<'_>) {
    line(cursor);
    while !line(cursor).is_empty() {}
}

/// Reads the next keyword and its position; `None` at the end of the file.
fn keyword(cursor: &mut Cursor<'_>) -> Option<(usize, String)> {
    cursor.skip_blank();
    let mark = cursor.mark();
    let word = cursor.raw_word();
    (!word.is_empty()).then(|| (mark, shorten(word).to_ascii_uppercase()))
}

/// Reads the section of a keyword.
fn section(
    cursor: &mut Cursor<'_>,
    file: &mut LegacySections,
    mark: usize,
    keyword: &str,
) -> Result<(), ReadError> {
    match keyword {
        "POINTS" => {
            let count: u64 = cursor.parsed("the number of points")?;
            let kind = kind(cursor)?;
            let numbers = numbers(cursor, "coordinates", kind, count, 3)?;
            let finite =
                |found: String| cursor.syntax(mark, "finite coordinates of all points", &found);
            file.points = Some(numbers.points().map_err(finite)?);
        }
        "CELLS" => {
            file.cells_mark = mark;
            file.cells = Some(cells(cursor)?);
        }
        "CELL_TYPES" => {
            let count: u64 = cursor.parsed("the number of cells")?;
            let numbers = numbers(cursor, "types of cells", NumberType::Signed(4), count, 1)?;
            file.types = Some(counts(cursor, mark, "types of cells", numbers)?);
        }
        "CELL_DATA" => {
            file.data = Some((Association::Cells, cursor.parsed("the number of cells")?))
        }
        "POINT_DATA" => {
            file.data = Some((Association::Points, cursor.parsed("the number of points")?))
        }
        "FIELD" => fields(cursor, file)?,
        "METADATA" => metadata(cursor),
        _ => attribute(cursor, file, mark, keyword)?,
    }
    Ok(())
}

/// Reads the cells in either form: the end of each cell in the list of points, and the points.
fn cells(cursor: &mut Cursor<'_>) -> Result<(Vec<u64>, Vec<u64>), ReadError> {
    let mark = cursor.mark();
    let first: u64 = cursor.parsed("the number of cells")?;
    let second: u64 = cursor.parsed("the size of the list of cells")?;
    let word = cursor.rest().trim_ascii_start();
    if word.get(..7).is_some_and(|word| word.eq_ignore_ascii_case(b"OFFSETS")) {
        return two_arrays(cursor, first, second);
    }
    let list = numbers(cursor, "numbers of cells", NumberType::Signed(4), second, 1)?;
    let list = counts(cursor, mark, "points of cells", list)?;
    let (mut ends, mut connectivity) = (Vec::new(), Vec::with_capacity(list.len()));
    let mut rest = &list[..];
    while let Some((&n, points)) = rest.split_first() {
        let own = usize::try_from(n).ok().and_then(|n| points.get(..n));
        let Some(own) = own else {
            let expected = format!("{n} points of cell {}", ends.len());
            return Err(cursor.syntax(mark, &expected, &points.len().to_string()));
        };
        connectivity.extend_from_slice(own);
        ends.push(connectivity.len() as u64);
        rest = &points[own.len()..];
    }
    if ends.len() as u64 != first {
        let expected = format!("{first} cells in a list of {second} numbers");
        return Err(cursor.syntax(mark, &expected, &ends.len().to_string()));
    }
    Ok((ends, connectivity))
}

/// Reads `OFFSETS`, which start with 0, and `CONNECTIVITY`.
fn two_arrays(
    cursor: &mut Cursor<'_>,
    offsets: u64,
    size: u64,
) -> Result<(Vec<u64>, Vec<u64>), ReadError> {
    let mut both = [Vec::new(), Vec::new()];
    for (all, (name, count)) in both.iter_mut().zip([("OFFSETS", offsets), ("CONNECTIVITY", size)])
    {
        cursor.skip_blank();
        let mark = cursor.mark();
        let word = cursor.raw_word();
        if !word.eq_ignore_ascii_case(name.as_bytes()) {
            return Err(cursor.syntax(mark, name, &shown(word)));
        }
        let kind = kind(cursor)?;
        let found = numbers(cursor, "numbers of cells", kind, count, 1)?;
        *all = counts(cursor, mark, "points of cells", found)?;
    }
    let [mut ends, connectivity] = both;
    // The first offset is the start of the first cell.
    if !ends.is_empty() {
        ends.remove(0);
    }
    Ok((ends, connectivity))
}

/// Reads named arrays (`FIELD`).
fn fields(cursor: &mut Cursor<'_>, file: &mut LegacySections) -> Result<(), ReadError> {
    cursor.word()?;
    let count: u64 = cursor.parsed("the number of arrays")?;
    let mut left = count;
    while left > 0 {
        cursor.skip_blank();
        let name = cursor.raw_word();
        if name.eq_ignore_ascii_case(b"METADATA") {
            metadata(cursor);
            continue;
        }
        let components: u64 = cursor.parsed("the number of components")?;
        let tuples: u64 = cursor.parsed("the number of tuples")?;
        let kind = kind(cursor)?;
        array(cursor, file, name, kind, tuples, components)?;
        left -= 1;
    }
    Ok(())
}

/// Reads an attribute with its own keyword.
fn attribute(
    cursor: &mut Cursor<'_>,
    file: &mut LegacySections,
    mark: usize,
    keyword: &str,
) -> Result<(), ReadError> {
    let known = [
        "SCALARS",
        "COLOR_SCALARS",
        "LOOKUP_TABLE",
        "VECTORS",
        "NORMALS",
        "TENSORS",
        "TENSORS6",
        "TEXTURE_COORDINATES",
        "GLOBAL_IDS",
        "PEDIGREE_IDS",
        "EDGE_FLAGS",
    ];
    if !known.contains(&keyword) {
        let expected = "a keyword: POINTS, CELLS, CELL_TYPES, CELL_DATA, SCALARS or the like";
        return Err(cursor.syntax(mark, expected, &format!("`{keyword}`")));
    }
    let tuples = file.data.map_or(0, |(_, tuples)| tuples);
    cursor.skip_blank();
    let name = cursor.raw_word();
    let byte = if cursor.is_binary() { NumberType::Unsigned(1) } else { NumberType::Real(4) };
    match keyword {
        "SCALARS" => {
            let kind = kind(cursor)?;
            let words = line(cursor);
            let components = std::str::from_utf8(words).ok().and_then(|text| text.parse().ok());
            let start = cursor.mark();
            if cursor.raw_word().eq_ignore_ascii_case(b"LOOKUP_TABLE") {
                line(cursor);
            } else {
                cursor.back(start);
            }
            values(cursor, file, name, kind, tuples, components.unwrap_or(1))
        }
        "COLOR_SCALARS" => {
            let components: u64 = cursor.parsed("the number of components")?;
            array(cursor, file, name, byte, tuples, components)
        }
        "LOOKUP_TABLE" => {
            let size: u64 = cursor.parsed("the size of a table of colours")?;
            skip(cursor, byte, size, 4)
        }
        "TEXTURE_COORDINATES" => {
            let components: u64 = cursor.parsed("the number of components")?;
            let kind = kind(cursor)?;
            array(cursor, file, name, kind, tuples, components)
        }
        _ => {
            let kind = kind(cursor)?;
            let components = match keyword {
                "VECTORS" | "NORMALS" => 3,
                "TENSORS" => 9,
                "TENSORS6" => 6,
                _ => 1,
            };
            array(cursor, file, name, kind, tuples, components)
        }
    }
}

/// Reads an array after its header line.
fn array(
    cursor: &mut Cursor<'_>,
    file: &mut LegacySections,
    name: &[u8],
    kind: NumberType,
    tuples: u64,
    components: u64,
) -> Result<(), ReadError> {
    if cursor.is_binary() {
        cursor.line_end()?;
    }
    values(cursor, file, name, kind, tuples, components)
}

/// Reads the values of an array if they become tags, else skips them.
fn values(
    cursor: &mut Cursor<'_>,
    file: &mut LegacySections,
    name: &[u8],
    kind: NumberType,
    tuples: u64,
    components: u64,
) -> Result<(), ReadError> {
    let name = decoded(name);
    if matches!(file.data, Some((Association::Cells, _))) {
        if components == 1 && tags::rank(&name).is_some() {
            let numbers = all(cursor, "values of cell data", kind, tuples, 1)?;
            Tags::offer(&mut file.tags, &name, || numbers.whole());
            return Ok(());
        }
        if components == 3 && name == "HigherOrderDegrees" {
            let numbers = all(cursor, "degrees of cells", kind, tuples, 3)?;
            file.degrees = Some(numbers.reals());
            return Ok(());
        }
    }
    skip_all(cursor, kind, tuples, components)
}

/// Decodes a name with percent-encoded characters (`%3A`).
fn decoded(name: &[u8]) -> String {
    let hex = |digits: &[u8]| {
        std::str::from_utf8(digits).ok().and_then(|text| u8::from_str_radix(text, 16).ok())
    };
    let mut bytes = Vec::with_capacity(name.len());
    let mut rest = name;
    while let Some((&byte, after)) = rest.split_first() {
        match after.get(..2).filter(|_| byte == b'%').and_then(hex) {
            Some(code) => {
                bytes.push(code);
                rest = &after[2..];
            }
            None => {
                bytes.push(byte);
                rest = after;
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

fn kind(cursor: &mut Cursor<'_>) -> Result<NumberType, ReadError> {
    cursor.skip_blank();
    let mark = cursor.mark();
    let word = cursor.raw_word();
    let text = String::from_utf8_lossy(word);
    if matches!(text.as_ref(), "bit" | "string" | "utf8_string" | "variant") {
        let what = format!("arrays of type {text} are not read: save the mesh without them");
        return Err(cursor.unsupported(mark, what));
    }
    let expected = "a type of numbers, `double` for example";
    NumberType::of_legacy(&text).ok_or_else(|| cursor.syntax(mark, expected, &shown(word)))
}

fn counts(
    cursor: &Cursor<'_>,
    mark: usize,
    what: &str,
    numbers: ArrayValues,
) -> Result<Vec<u64>, ReadError> {
    let expected = || format!("whole numbers from 0 as {what}");
    numbers.counts().map_err(|found| cursor.syntax(mark, &expected(), &found))
}

/// Reads numbers after their header line.
fn numbers(
    cursor: &mut Cursor<'_>,
    what: &'static str,
    kind: NumberType,
    tuples: u64,
    components: u64,
) -> Result<ArrayValues, ReadError> {
    if cursor.is_binary() {
        cursor.line_end()?;
    }
    all(cursor, what, kind, tuples, components)
}

/// Reads all values of an array.
fn all(
    cursor: &mut Cursor<'_>,
    what: &'static str,
    kind: NumberType,
    tuples: u64,
    components: u64,
) -> Result<ArrayValues, ReadError> {
    let count = checked(cursor, what, kind, tuples, components)?;
    if cursor.is_binary() {
        let bytes = &cursor.rest()[..(count * kind.size()).min(cursor.left())];
        if bytes.len() < count * kind.size() {
            let (place, left) = (cursor.place(cursor.mark()), cursor.left());
            return Err(ReadError::Count { place, what, count: count as u64, left });
        }
        cursor.skip(bytes.len());
        return Ok(kind.bytes(bytes, true));
    }
    let mut numbers = kind.none();
    for _ in 0..count {
        cursor.skip_blank();
        let mark = cursor.mark();
        let word = cursor.raw_word();
        if !kind.word(word, &mut numbers) {
            let expected = format!("{count} {what}");
            let found =
                if word.is_empty() { "the end of the file".to_owned() } else { shown(word) };
            return Err(cursor.syntax(mark, &expected, &found));
        }
    }
    Ok(numbers)
}

fn skip(
    cursor: &mut Cursor<'_>,
    kind: NumberType,
    tuples: u64,
    components: u64,
) -> Result<(), ReadError> {
    if cursor.is_binary() {
        cursor.line_end()?;
    }
    skip_all(cursor, kind, tuples, components)
}

/// Skips the values of an array.
fn skip_all(
    cursor: &mut Cursor<'_>,
    kind: NumberType,
    tuples: u64,
    components: u64,
) -> Result<(), ReadError> {
    let what = "numbers of an array";
    let count = checked(cursor, what, kind, tuples, components)?;
    if cursor.is_binary() {
        let bytes = count * kind.size();
        if bytes > cursor.left() {
            let (place, left) = (cursor.place(cursor.mark()), cursor.left());
            return Err(ReadError::Count { place, what, count: count as u64, left });
        }
        cursor.skip(bytes);
        return Ok(());
    }
    for _ in 0..count {
        cursor.skip_blank();
        let mark = cursor.mark();
        if cursor.raw_word().is_empty() {
            return Err(cursor.syntax(mark, &format!("{count} {what}"), "the end of the file"));
        }
    }
    Ok(())
}

/// Returns the number of values, if the rest of the file can hold them.
fn checked(
    cursor: &Cursor<'_>,
    what: &'static str,
    kind: NumberType,
    tuples: u64,
    components: u64,
) -> Result<usize, ReadError> {
    let count = tuples.saturating_mul(components);
    // The position of the count, not of the next line.
    let mark = cursor.mark().saturating_sub(1);
    cursor.checked(mark, what, count, if cursor.is_binary() { kind.size() } else { 2 })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_decoded() {
        assert_eq!(decoded(b"gmsh%3aphysical"), "gmsh:physical");
        assert_eq!(decoded(b"100%"), "100%");
        assert_eq!(decoded(b"%zz%C3%A4"), "%zzä");
    }
}
