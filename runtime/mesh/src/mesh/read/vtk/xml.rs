//! XML files of unstructured grids (`.vtu`): bytes → [`UnstructuredGrid`].
//!
//! Arrays are text, inline base64, or appended to the file, in base64 or raw; optionally compressed with zlib. Appended
//! data is not XML: the text is cut before it.

use super::UnstructuredGrid;
use super::encoded::{self, ByteEncoding, ByteSource, DecodeError};
use super::numbers::{ArrayValues, NumberType, shown};
use super::tags::{self, Tags};
use crate::mesh::MeshError;
use crate::mesh::read::contents::Contents;
use crate::mesh::read::cursor::shorten;
use crate::mesh::read::{FilePosition, ReadError};
use roxmltree::{Document, Node};
use std::borrow::Cow;

const APPENDED: &[u8] = b"<AppendedData";

/// The largest number of attributes of an element.
const MOST_ATTRIBUTES: usize = 256;

pub(in crate::mesh::read) fn contents(bytes: &[u8]) -> Result<Contents, ReadError> {
    super::contents(grid(bytes)?)
}

fn grid(bytes: &[u8]) -> Result<UnstructuredGrid, ReadError> {
    with(bytes, |reader, root| {
        let mut grid = reader.piece(reader.only_piece(root)?)?;
        let version = root.attribute("version").unwrap_or("0.1");
        grid.old_hexahedra = version_of(version) < (2, 1);
        Ok(grid)
    })
}

/// Parses a file and passes it to `work`.
pub(super) fn with<T>(
    bytes: &[u8],
    work: impl FnOnce(&XmlReader<'_>, Node<'_, '_>) -> Result<T, ReadError>,
) -> Result<T, ReadError> {
    let (text, appended) = split(bytes)?;
    check_attributes(&text)?;
    let document = Document::parse(&text).map_err(|error| ReadError::Syntax {
        place: FilePosition::Line(error.pos().row as usize),
        expected: "an XML file".to_owned(),
        found: error.to_string(),
    })?;
    let root = document.root_element();
    let at = |node: Node<'_, '_>| {
        FilePosition::Line(document.text_pos_at(node.range().start).row as usize)
    };
    let kind = root.attribute("type").unwrap_or("nothing");
    if root.tag_name().name() != "VTKFile" || kind != "UnstructuredGrid" {
        return Err(other_type(at(root), root.tag_name().name(), kind));
    }
    let reader = XmlReader { document: &document, coding: coding(root, at(root))?, appended };
    work(&reader, root)
}

/// Limits the number of attributes per element: the XML parser compares them pairwise.
fn check_attributes(text: &str) -> Result<(), ReadError> {
    let mut rest = text;
    while let Some(start) = rest.find('<') {
        rest = &rest[start..];
        let ending = match rest.as_bytes() {
            [b'<', b'!', b'-', b'-', ..] => "-->",
            [b'<', b'!', b'[', ..] => "]]>",
            [b'<', b'?', ..] => "?>",
            _ => "",
        };
        if !ending.is_empty() {
            rest = rest.find(ending).map_or("", |end| &rest[end + ending.len()..]);
            continue;
        }
        let (mut quote, mut count, mut end) = (None, 0, rest.len());
        for (at, byte) in rest.bytes().enumerate() {
            match (quote, byte) {
                (None, b'>') => {
                    end = at + 1;
                    break;
                }
                (None, b'"' | b'\'') => (quote, count) = (Some(byte), count + 1),
                (Some(open), byte) if byte == open => quote = None,
                _ => {}
            }
        }
        if count > MOST_ATTRIBUTES {
            let line = 1 + text[..text.len() - rest.len()].matches('\n').count();
            return Err(ReadError::Syntax {
                place: FilePosition::Line(line),
                expected: format!("at most {MOST_ATTRIBUTES} attributes of an element"),
                found: count.to_string(),
            });
        }
        rest = &rest[end..];
    }
    Ok(())
}

/// Returns the XML text, completed after the cut; and the appended data.
fn split(bytes: &[u8]) -> Result<(Cow<'_, str>, Option<AppendedData<'_>>), ReadError> {
    let text = |part| {
        std::str::from_utf8(part).map_err(|error| ReadError::Syntax {
            place: FilePosition::Byte(error.valid_up_to()),
            expected: "text in UTF-8".to_owned(),
            found: shown(&part[error.valid_up_to()..part.len().min(error.valid_up_to() + 1)]),
        })
    };
    let bytes = bytes.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(bytes);
    let Some(start) = bytes.windows(APPENDED.len()).position(|word| word == APPENDED) else {
        return Ok((Cow::Borrowed(text(bytes)?), None));
    };
    let Some(length) = bytes[start..].iter().position(|&b| b == b'>') else {
        return Ok((Cow::Borrowed(text(bytes)?), None));
    };
    let end = start + length + 1;
    let element = text(&bytes[start..end])?;
    if element.ends_with("/>") {
        return Ok((Cow::Borrowed(text(bytes)?), None));
    }
    let blank = bytes[end..].iter().take_while(|b| b.is_ascii_whitespace()).count();
    if bytes.get(end + blank) != Some(&b'_') {
        return Err(ReadError::Syntax {
            place: FilePosition::Byte(end + blank),
            expected: "`_`, with which appended data begin".to_owned(),
            found: shown(&bytes[end + blank..bytes.len().min(end + blank + 1)]),
        });
    }
    let whole = format!("{}</AppendedData></VTKFile>", text(&bytes[..end])?);
    let start = end + blank + 1;
    // The encoding is in quotes of either kind.
    let base64 = element.to_ascii_lowercase().contains("base64");
    Ok((Cow::Owned(whole), Some(AppendedData { start, bytes: &bytes[start..], base64 })))
}

/// Data appended to the XML.
struct AppendedData<'a> {
    /// The offset in the file.
    start: usize,
    bytes: &'a [u8],
    base64: bool,
}

fn other_type(place: FilePosition, name: &str, kind: &str) -> ReadError {
    if name != "VTKFile" {
        let expected = "the element VTKFile".to_owned();
        return ReadError::Syntax { place, expected, found: shown(name.as_bytes()) };
    }
    let remedy = if kind.starts_with('P') && kind != "PolyData" {
        "the file names parts of a mesh in other files; open it in ParaView and save it as one `.vtu` file"
    } else {
        "save an unstructured grid; in ParaView, the filter Append Datasets makes one"
    };
    let what = format!("a file of type {} is not read: {remedy}", shorten(kind.as_bytes()));
    ReadError::Unsupported { place, what }
}

/// Parses a version: (2, 1) for `2.1`.
fn version_of(text: &str) -> (u32, u32) {
    let mut parts = text.trim().splitn(2, '.').map(|part| part.parse().unwrap_or(0));
    (parts.next().unwrap_or(0), parts.next().unwrap_or(0))
}

fn coding(root: Node<'_, '_>, place: FilePosition) -> Result<ByteEncoding, ReadError> {
    let wrong = |expected: &str, found: &str| {
        let (expected, found) = (expected.to_owned(), shown(found.as_bytes()));
        Err(ReadError::Syntax { place, expected, found })
    };
    let big = match root.attribute("byte_order") {
        None | Some("LittleEndian") => false,
        Some("BigEndian") => true,
        Some(other) => return wrong("the byte order LittleEndian or BigEndian", other),
    };
    let header = match root.attribute("header_type") {
        None | Some("UInt32") => 4,
        Some("UInt64") => 8,
        Some(other) => return wrong("the type of headers UInt32 or UInt64", other),
    };
    let compressed = match root.attribute("compressor") {
        None | Some("") => false,
        Some("vtkZLibDataCompressor") => true,
        Some(other) => {
            let what = format!(
                "data compressed by {} are not read: save them compressed by zlib or not at all",
                shorten(other.as_bytes())
            );
            return Err(ReadError::Unsupported { place, what });
        }
    };
    Ok(ByteEncoding { header, big, compressed })
}

pub(super) struct XmlReader<'a> {
    document: &'a Document<'a>,
    coding: ByteEncoding,
    appended: Option<AppendedData<'a>>,
}

impl<'a> XmlReader<'a> {
    fn place(&self, node: Node<'_, '_>) -> FilePosition {
        FilePosition::Line(self.document.text_pos_at(node.range().start).row as usize)
    }

    fn wrong(&self, node: Node<'_, '_>, expected: impl Into<String>, found: String) -> ReadError {
        ReadError::Syntax { place: self.place(node), expected: expected.into(), found }
    }

    pub(super) fn child(&self, node: Node<'a, 'a>, name: &str) -> Option<Node<'a, 'a>> {
        node.children().find(|child| child.is_element() && child.tag_name().name() == name)
    }

    pub(super) fn expect(&self, node: Node<'a, 'a>, name: &str) -> Result<Node<'a, 'a>, ReadError> {
        self.child(node, name).ok_or_else(|| ReadError::Missing(format!("element <{name}>")))
    }

    /// Returns the only piece with points.
    pub(super) fn only_piece(&self, root: Node<'a, 'a>) -> Result<Node<'a, 'a>, ReadError> {
        let grid = self.expect(root, "UnstructuredGrid")?;
        let pieces = || {
            grid.children().filter(|child| child.is_element() && child.tag_name().name() == "Piece")
        };
        let mut full = pieces().filter(|piece| piece.attribute("NumberOfPoints") != Some("0"));
        let Some(first) = full.next().or_else(|| pieces().next()) else {
            return Err(ReadError::Missing("element <Piece>".to_owned()));
        };
        if let Some(second) = full.next() {
            let what = "a mesh in several pieces is not read, for nothing joins them: in ParaView, the filter Clean to Grid \
                        makes one of them; save that"
                .to_owned();
            return Err(ReadError::Unsupported { place: self.place(second), what });
        }
        Ok(first)
    }

    pub(super) fn piece(&self, piece: Node<'a, 'a>) -> Result<UnstructuredGrid, ReadError> {
        let points = self.expect(piece, "Points")?;
        let cells = self.expect(piece, "Cells")?;
        let array = points.children().find(|node| is_array(*node));
        let array = array
            .ok_or_else(|| ReadError::Missing("element <DataArray> in its <Points>".to_owned()))?;
        self.components(array, 3)?;
        let coordinates = self.array(array)?;
        self.count(piece, "NumberOfPoints", array, coordinates.count(), 3)?;
        let points =
            coordinates.points().map_err(|found| self.wrong(array, "finite coordinates", found))?;
        let (ends_at, ends) = self.counts(cells, "offsets")?;
        self.count(piece, "NumberOfCells", ends_at, ends.len(), 1)?;
        let (_, connectivity) = self.counts(cells, "connectivity")?;
        let (_, types) = self.counts(cells, "types")?;
        let (tags, degrees) = self.cell_data(piece)?;
        let place = self.place(cells);
        Ok(UnstructuredGrid {
            points,
            connectivity,
            ends,
            types,
            tags,
            degrees,
            old_hexahedra: false,
            place,
        })
    }

    /// Reads an array of counts or indices by name.
    fn counts(
        &self,
        cells: Node<'a, 'a>,
        name: &str,
    ) -> Result<(Node<'a, 'a>, Vec<u64>), ReadError> {
        let named = |node: &Node<'_, '_>| is_array(*node) && node.attribute("Name") == Some(name);
        let array = cells.children().find(named);
        let array =
            array.ok_or_else(|| ReadError::Missing(format!("array \"{name}\" in its <Cells>")))?;
        let numbers = self.array(array)?.counts();
        numbers.map(|numbers| (array, numbers)).map_err(|found| {
            self.wrong(array, format!("whole numbers from 0 in \"{name}\""), found)
        })
    }

    /// Reads the tags, and the degrees of Lagrange cells.
    fn cell_data(
        &self,
        piece: Node<'a, 'a>,
    ) -> Result<(Option<Tags>, Option<Vec<f64>>), ReadError> {
        let (mut best, mut degrees) = (None, None);
        let Some(data) = self.child(piece, "CellData") else { return Ok((None, None)) };
        for array in data.children().filter(|node| is_array(*node)) {
            let name = array.attribute("Name").unwrap_or_default();
            let components = array.attribute("NumberOfComponents").unwrap_or("1");
            if components == "1" && tags::rank(name).is_some() {
                let numbers = self.array(array)?;
                Tags::offer(&mut best, name, || numbers.whole());
            } else if name == "HigherOrderDegrees" && components == "3" {
                degrees = Some(self.array(array)?.reals());
            }
        }
        Ok((best, degrees))
    }

    fn components(&self, array: Node<'_, '_>, expected: usize) -> Result<(), ReadError> {
        let found = array.attribute("NumberOfComponents").unwrap_or("1");
        if found == expected.to_string() {
            return Ok(());
        }
        Err(self.wrong(array, format!("{expected} components"), shown(found.as_bytes())))
    }

    /// Checks the number of entries against the piece.
    fn count(
        &self,
        piece: Node<'_, '_>,
        attribute: &str,
        array: Node<'_, '_>,
        found: usize,
        each: usize,
    ) -> Result<(), ReadError> {
        let announced = piece.attribute(attribute).unwrap_or("none");
        let count: Option<usize> = announced.trim().parse().ok();
        if count.and_then(|count| count.checked_mul(each)) == Some(found) {
            return Ok(());
        }
        let expected =
            format!("as many numbers as {attribute}=\"{}\" says", shorten(announced.as_bytes()));
        Err(self.wrong(array, expected, found.to_string()))
    }

    /// Reads the values of an array in any encoding.
    pub(super) fn array(&self, array: Node<'a, 'a>) -> Result<ArrayValues, ReadError> {
        let name = array.attribute("type").unwrap_or("no type");
        let Some(kind) = NumberType::of_xml(name) else {
            return Err(self.wrong(
                array,
                "a type of numbers, Float64 for example",
                shown(name.as_bytes()),
            ));
        };
        match array.attribute("format").unwrap_or("ascii") {
            "ascii" => {
                let mut numbers = kind.none();
                for word in text(array).split_ascii_whitespace() {
                    if !kind.word(word.as_bytes(), &mut numbers) {
                        return Err(self.wrong(
                            array,
                            format!("numbers of type {name}"),
                            shown(word.as_bytes()),
                        ));
                    }
                }
                Ok(numbers)
            }
            "binary" => {
                let text = text(array);
                let bytes = encoded::array(&mut ByteSource::base64(text.as_bytes()), self.coding);
                self.decoded(array, kind, bytes, self.place(array))
            }
            "appended" => {
                let Some(appended) = &self.appended else {
                    return Err(ReadError::Missing("element <AppendedData>".to_owned()));
                };
                let offset = array.attribute("offset").unwrap_or("none").trim();
                let start: Option<usize> = offset.parse().ok();
                let Some(rest) = start.and_then(|start| appended.bytes.get(start..)) else {
                    let expected = format!("an offset up to {}", appended.bytes.len());
                    return Err(self.wrong(array, expected, shown(offset.as_bytes())));
                };
                let mut source = match appended.base64 {
                    true => {
                        ByteSource::base64(rest.split(|&b| b == b'<').next().unwrap_or_default())
                    }
                    false => ByteSource::Raw(rest),
                };
                let bytes = encoded::array(&mut source, self.coding);
                let at = appended.start + start.unwrap_or_default();
                self.decoded(array, kind, bytes, FilePosition::Byte(at))
            }
            other => {
                let expected = "the format ascii, binary or appended";
                Err(self.wrong(array, expected, shown(other.as_bytes())))
            }
        }
    }

    fn decoded(
        &self,
        array: Node<'_, '_>,
        kind: NumberType,
        bytes: Result<Cow<'_, [u8]>, DecodeError>,
        place: FilePosition,
    ) -> Result<ArrayValues, ReadError> {
        match bytes {
            Ok(bytes) if bytes.len().is_multiple_of(kind.size()) => {
                Ok(kind.bytes(&bytes, self.coding.big))
            }
            Ok(bytes) => {
                let expected = format!("numbers of {} bytes each", kind.size());
                Err(self.wrong(array, expected, format!("{} bytes", bytes.len())))
            }
            Err(DecodeError::Memory(error)) => Err(MeshError::Memory(error).into()),
            Err(DecodeError::Short { count, left }) => {
                Err(ReadError::Count { place, what: "bytes of an array", count, left })
            }
            Err(DecodeError::Wrong { expected, found }) => {
                Err(ReadError::Syntax { place, expected, found })
            }
        }
    }
}

pub(super) fn is_array(node: Node<'_, '_>) -> bool {
    node.is_element() && node.tag_name().name() == "DataArray"
}

/// Returns the text of an element, without that of its children.
fn text<'a>(node: Node<'a, 'a>) -> Cow<'a, str> {
    let mut pieces = node
        .children()
        .filter(|child| child.is_text())
        .filter_map(|child| child.text())
        .filter(|text| !text.trim().is_empty());
    let Some(first) = pieces.next() else { return Cow::Borrowed("") };
    let Some(second) = pieces.next() else { return Cow::Borrowed(first) };
    let mut all = format!("{first} {second}");
    for next in pieces {
        all.push(' ');
        all.push_str(next);
    }
    Cow::Owned(all)
}
