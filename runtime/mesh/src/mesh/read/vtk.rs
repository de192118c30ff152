//! Unstructured grids of VTK: its XML files (`.vtu`) and its legacy files (`.vtk`).
//!
//! `xml` and `legacy` turn bytes into a [`UnstructuredGrid`]: points, cells with their types, and the numbers that
//! become tags (`tags`). [`contents`] sorts the cells into blocks; `cells` maps VTK's cell types. Points and cells are
//! numbered from 0, as in ParaView.
//!
//! The VTK User's Guide, "VTK File Formats" (docs.vtk.org), describes both formats.

mod cells;
pub mod data;
mod encoded;
mod legacy;
pub mod numbers;
mod tags;
mod xml;

use super::contents::{Contents, ElementBlock, ElementKind, ElementOrder, NodePermutation};
use super::{FilePosition, ReadError};
use std::collections::{BTreeSet, HashMap};
use tags::Tags;

pub(super) use legacy::contents as legacy;
pub(super) use xml::contents as xml;

/// Contents of a file of either format.
#[derive(Debug)]
struct UnstructuredGrid {
    points: Vec<[f64; 3]>,
    /// The concatenated points of all cells.
    connectivity: Vec<u64>,
    /// The end of each cell in `connectivity`.
    ends: Vec<u64>,
    /// The VTK type of each cell.
    types: Vec<u64>,
    tags: Option<Tags>,
    /// The degrees of Lagrange cells along their three axes, if given.
    degrees: Option<Vec<f64>>,
    /// True if Lagrange hexahedra have the order of VTK 8.
    old_hexahedra: bool,
    /// The position of the cells in the file.
    place: FilePosition,
}

/// Sorts the cells by kind and tag.
fn contents(grid: UnstructuredGrid) -> Result<Contents, ReadError> {
    let mut sorter = CellSorter {
        grid: &grid,
        found: HashMap::new(),
        known: HashMap::new(),
        blocks: Vec::new(),
    };
    sorter.check()?;
    let mut start = 0;
    for (cell, &end) in grid.ends.iter().enumerate() {
        sorter.cell(cell, &grid.connectivity[start..end as usize])?;
        start = end as usize;
    }
    let blocks = sorter.blocks;
    let notes = grid.tags.iter().map(Tags::note).collect();
    let node_numbers = (0..grid.points.len() as u64).collect();
    let (points, order) = (grid.points, ElementOrder::Numbers(grid.ends.len()));
    Ok(Contents { node_numbers, points, blocks, notes, order, ..Contents::default() })
}

/// Conversion of the cells of one type and number of points.
enum Conversion {
    Element(NodePermutation),
    /// A polyline.
    Lines,
    /// No cells, or single points.
    Ignored,
}

struct CellSorter<'a> {
    grid: &'a UnstructuredGrid,
    found: HashMap<(u64, usize), Conversion>,
    /// The block of each kind and tag.
    known: HashMap<(ElementKind, Option<i64>), usize>,
    blocks: Vec<ElementBlock>,
}

impl CellSorter<'_> {
    /// Checks that all arrays have one entry per cell, and that points exist.
    fn check(&self) -> Result<(), ReadError> {
        let grid = self.grid;
        let wrong = |expected: String, found: String| {
            Err(ReadError::Syntax { place: grid.place, expected, found })
        };
        let count = grid.ends.len();
        if grid.types.len() != count {
            return wrong(format!("types of {count} cells"), grid.types.len().to_string());
        }
        if let Some(tags) = &grid.tags
            && tags.values.len() != count
        {
            let what = format!("{count} values of \"{}\", one a cell", tags.shown());
            return wrong(what, tags.values.len().to_string());
        }
        if let Some(degrees) = &grid.degrees
            && degrees.len() != 3 * count
        {
            return wrong(
                format!("three degrees for each of {count} cells"),
                degrees.len().to_string(),
            );
        }
        let most = grid.connectivity.len() as u64;
        let mut last = 0;
        for (cell, &end) in grid.ends.iter().enumerate() {
            if end < last || end > most {
                let expected =
                    format!("an end of cell {cell} from {last} to {most} in the connectivity");
                return wrong(expected, end.to_string());
            }
            last = end;
        }
        Ok(())
    }

    fn cell(&mut self, cell: usize, points: &[u64]) -> Result<(), ReadError> {
        let grid = self.grid;
        let number = grid.types[cell];
        let found = match self.found.entry((number, points.len())) {
            std::collections::hash_map::Entry::Occupied(known) => known.into_mut(),
            std::collections::hash_map::Entry::Vacant(new) => {
                let found = cells::found(number, points.len(), grid.old_hexahedra);
                new.insert(found.map_err(|error| error.at(cell, number, points.len(), grid.place))?)
            }
        };
        let tag = grid.tags.as_ref().and_then(|tags| tags.of(cell));
        match found {
            Conversion::Ignored => {}
            Conversion::Lines => {
                let kind = ElementKind::Cell(crate::mesh::Cell::Interval, 1);
                let block = block(&mut self.known, &mut self.blocks, kind, tag);
                for ends in points.windows(2) {
                    block.numbers.push(cell as u64);
                    block.nodes.extend(ends);
                }
            }
            Conversion::Element(layout) => {
                if let ElementKind::Cell(_, order) = layout.kind
                    && cells::is_lagrange(number)
                    && let Some(degrees) = &grid.degrees
                {
                    check_degrees(
                        &degrees[3 * cell..3 * cell + 3],
                        layout.kind,
                        order,
                        cell,
                        grid.place,
                    )?;
                }
                let block = block(&mut self.known, &mut self.blocks, layout.kind, tag);
                block.numbers.push(cell as u64);
                block.nodes.extend(layout.ours(points));
            }
        }
        Ok(())
    }
}

/// Returns the block of a kind and tag.
fn block<'a>(
    known: &mut HashMap<(ElementKind, Option<i64>), usize>,
    blocks: &'a mut Vec<ElementBlock>,
    kind: ElementKind,
    tag: Option<i64>,
) -> &'a mut ElementBlock {
    let next = blocks.len();
    let place = *known.entry((kind, tag)).or_insert(next);
    if place == next {
        let tags = BTreeSet::from_iter(tag.map(|tag| tag.to_string()));
        blocks.push(ElementBlock { kind, tags, numbers: Vec::new(), nodes: Vec::new() });
    }
    &mut blocks[place]
}

/// Checks that a cell has one degree along all axes.
fn check_degrees(
    degrees: &[f64],
    kind: ElementKind,
    order: usize,
    cell: usize,
    place: FilePosition,
) -> Result<(), ReadError> {
    // Degree 0 means unspecified.
    let own = &degrees[..kind.dim()];
    if own.iter().all(|&degree| degree == order as f64 || degree == 0.0) {
        return Ok(());
    }
    let what = format!(
        "cell {cell} has degrees {own:?} along its axes, and only cells of one degree are there: save the mesh so"
    );
    Err(ReadError::Unsupported { place, what })
}
