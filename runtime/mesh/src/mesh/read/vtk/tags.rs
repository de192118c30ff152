//! Choice of the cell data array that gives the tags, for both VTK formats.
//!
//! VTK has no cell sets; programs write one integer per cell. Among the one-component arrays of integers, the first
//! match in [`NAMES`] is taken. Case and punctuation are ignored: "gmsh:physical" equals "Gmsh_Physical". A value
//! becomes a tag by its digits, "3" or "-1": a cell tag on cells of the mesh, a boundary tag on cells of one dimension
//! less. Physical groups of Gmsh start at 1; its 0 means none.

use fem_dsl::source::shortened;

/// Names of tag arrays in lower case, letters and digits only, with the programs that write them.
const NAMES: [&str; 22] = [
    // Gmsh, and meshio from its files.
    "cellentityids",
    "gmshphysical",
    "physicalids",
    "physicalgroup",
    "physical",
    // OpenGeoSys, PFLOTRAN and many more.
    "materialids",
    "materialid",
    "materials",
    "material",
    "matid",
    // Exodus, through ParaView.
    "elementblockids",
    "objectid",
    "blockids",
    "blockid",
    // MFEM, Netgen, medit, FEniCS, TetGen and hand-made files.
    "attribute",
    "attributes",
    "meditref",
    "celltags",
    "regions",
    "region",
    "tags",
    "tag",
];

/// Returns the index of a name in [`NAMES`], 0 best.
pub(super) fn rank(name: &str) -> Option<usize> {
    let letters = name.chars().filter(char::is_ascii_alphanumeric);
    let plain: String = letters.map(|c| c.to_ascii_lowercase()).collect();
    NAMES.iter().position(|&known| known == plain)
}

/// One tag value per cell.
#[derive(Debug)]
pub(super) struct Tags {
    rank: usize,
    name: String,
    pub(super) values: Vec<i64>,
}

impl Tags {
    /// Replaces the current array by one of integers with a better rank.
    pub(super) fn offer(
        best: &mut Option<Tags>,
        name: &str,
        values: impl FnOnce() -> Option<Vec<i64>>,
    ) {
        let Some(rank) = rank(name) else { return };
        if best.as_ref().is_none_or(|best| rank < best.rank)
            && let Some(values) = values()
        {
            *best = Some(Tags { rank, name: name.to_owned(), values });
        }
    }

    /// Returns the tag of a cell.
    pub(super) fn of(&self, cell: usize) -> Option<i64> {
        let physical = NAMES[self.rank].contains("physical");
        self.values.get(cell).copied().filter(|&value| !(physical && value == 0))
    }

    /// Returns the name of the array, for messages.
    pub(super) fn shown(&self) -> String {
        shortened(&self.name).to_string()
    }

    pub(super) fn note(&self) -> String {
        format!("tags are the values of the cell data \"{}\"", self.shown())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_known_in_any_spelling() {
        assert_eq!(rank("CellEntityIds"), Some(0));
        assert!(rank("gmsh:physical") < rank("MaterialIDs"));
        assert_eq!(rank("Gmsh_Physical"), rank("gmsh:physical"));
        assert_eq!(rank("temperature"), None);
    }

    #[test]
    fn the_best_array_of_whole_numbers_is_taken() {
        let mut best = None;
        Tags::offer(&mut best, "tag", || Some(vec![1]));
        Tags::offer(&mut best, "CellEntityIds", || None);
        Tags::offer(&mut best, "gmsh:physical", || Some(vec![0, 7]));
        Tags::offer(&mut best, "material", || Some(vec![2]));
        let best = best.expect("an array");
        assert_eq!((best.name.as_str(), best.of(0), best.of(1)), ("gmsh:physical", None, Some(7)));
    }
}
