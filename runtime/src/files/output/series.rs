//! File series for ParaView: a name with [`STEP`] → the file name of each step, and a collection file.
//!
//! `u-{step}.vtu` stands for `u-0.vtu`, `u-1.vtu`, … and the collection `u.pvd`, an XML file with the time of each. The
//! collection is rewritten atomically after every file, so that an interrupted run leaves a valid series.

use super::{OutputError, format_of, index_of, write_text};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

/// Placeholder of the step number in a name.
pub const STEP: &str = "{step}";

/// The name of the collection if a name consists of [`STEP`] only.
const UNNAMED: &str = "steps";

/// Series of files with [`STEP`] in the name, and the files written so far.
#[derive(Clone, Debug, PartialEq)]
pub struct FileSeries {
    folder: PathBuf,
    name: String,
    /// The times and names of the files.
    files: Vec<(f64, String)>,
}

impl FileSeries {
    /// Parses a path; `None` without [`STEP`].
    ///
    /// # Errors
    ///
    /// [`STEP`] is in a folder's name, or the name is unsuitable for a collection.
    pub fn of(path: &Path) -> Result<Option<Self>, OutputError> {
        let folder = path.parent().unwrap_or(Path::new(""));
        let name = path.file_name().unwrap_or_default();
        let refused = |reason| {
            let path = path.display().to_string();
            Err(OutputError::Series { path, reason })
        };
        if folder.to_string_lossy().contains(STEP) {
            return refused(
                "`{step}` stands in a folder's name\nhelp: let it stand in that of the file",
            );
        }
        if !name.to_string_lossy().contains(STEP) {
            return Ok(None);
        }
        match name.to_str().filter(|name| !name.contains(char::is_control)) {
            Some(name) => {
                Ok(Some(Self { folder: folder.into(), name: name.into(), files: Vec::new() }))
            }
            None => refused(
                "collections hold names in UTF-8 without control characters\nhelp: name it otherwise",
            ),
        }
    }

    /// Returns the path of a step's file.
    pub fn file(&self, step: usize) -> PathBuf {
        self.folder.join(self.name_of(step))
    }

    fn name_of(&self, step: usize) -> String {
        self.name.replace(STEP, &step.to_string())
    }

    /// Continues after the first `count` files of an existing collection, for any number of processes; starts from the
    /// beginning if it has fewer.
    pub fn resume(&mut self, count: usize) {
        let text = std::fs::read_to_string(self.collection()).unwrap_or_default();
        let Ok(document) = roxmltree::Document::parse(&text) else { return };
        let sets = document.descendants().filter(|node| node.has_tag_name("DataSet"));
        let index = format_of(Path::new(&self.name)).index_extension();
        let found = sets.map_while(|set| {
            let in_pieces = set.attribute("file")?.ends_with(index);
            Some((set.attribute("timestep")?.parse().ok()?, in_pieces))
        });
        let found: Vec<(f64, bool)> = found.take(count).collect();
        if found.len() == count {
            let named = found.into_iter().enumerate().map(|(number, (time, in_pieces))| {
                (time, if in_pieces { self.name_in_pieces(number) } else { self.name_of(number) })
            });
            self.files = named.collect();
        }
    }

    /// Returns the number of files, which is the number of the next step.
    pub fn len(&self) -> usize {
        self.files.len()
    }

    /// Returns whether there are no files yet.
    pub fn is_empty(&self) -> bool {
        self.files.is_empty()
    }

    /// Returns the path of the collection: `u.pvd` for `u-{step}.vtu`.
    pub fn collection(&self) -> PathBuf {
        let (stem, _) = self.name.rsplit_once('.').unwrap_or((&self.name, ""));
        let joins: &[char] = &['-', '_', '.', ' '];
        let parts: Vec<&str> = stem.split(STEP).collect();
        let mut left = String::new();
        for (i, &part) in parts.iter().enumerate() {
            let begins = i > 0 && left.is_empty();
            let part = if begins { part.trim_start_matches(joins) } else { part };
            let ends = i + 1 < parts.len();
            left.push_str(if ends { part.trim_end_matches(joins) } else { part });
        }
        let stem = if left.is_empty() { UNNAMED } else { &left };
        self.folder.join(format!("{stem}.pvd"))
    }

    /// Records the next file, which has been written, and writes the collection.
    ///
    /// # Errors
    ///
    /// It cannot be written; the old collection is then kept.
    pub fn add(&mut self, time: f64) -> Result<(), OutputError> {
        self.files.push((time, self.name_of(self.files.len())));
        self.write()
    }

    /// Records the next file that lists those of several processes.
    pub fn add_in_pieces(&mut self, time: f64) {
        self.files.push((time, self.name_in_pieces(self.files.len())));
    }

    fn name_in_pieces(&self, step: usize) -> String {
        index_of(Path::new(&self.name_of(step))).to_string_lossy().into_owned()
    }

    /// Writes the collection.
    ///
    /// # Errors
    ///
    /// It cannot be written; the old collection is then kept.
    pub fn write(&self) -> Result<(), OutputError> {
        write_text(&self.collection(), &self.text())
    }

    fn text(&self) -> String {
        let mut text = String::from(
            "<?xml version=\"1.0\"?>\n<VTKFile type=\"Collection\" version=\"0.1\" byte_order=\"LittleEndian\">\n  <Collection>\n",
        );
        for (time, name) in &self.files {
            let name = escaped(name);
            let _ = writeln!(text, "    <DataSet timestep=\"{time}\" part=\"0\" file=\"{name}\"/>");
        }
        text + "  </Collection>\n</VTKFile>\n"
    }
}

/// Escapes an attribute value.
fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '"' => escaped.push_str("&quot;"),
            other => escaped.push(other),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    fn series(path: &str) -> FileSeries {
        let found = FileSeries::of(Path::new(path)).expect("a name that can be");
        found.unwrap_or_else(|| panic!("{path} has no step"))
    }

    #[test]
    fn steps_are_numbered_and_the_collection_is_named_after_the_rest() {
        for (path, third, collection) in [
            ("u-{step}.vtu", "u-2.vtu", "u.pvd"),
            ("out/u_{step}.vtu", "out/u_2.vtu", "out/u.pvd"),
            ("{step}.vtu", "2.vtu", "steps.pvd"),
            ("{step}-u.vtu", "2-u.vtu", "u.pvd"),
            (".u-{step}-.vtu", ".u-2-.vtu", ".u-.pvd"),
            ("a-{step}-b.vtu", "a-2-b.vtu", "a-b.pvd"),
            ("a.b-{step}.vtu", "a.b-2.vtu", "a.b.pvd"),
            ("u{step}", "u2", "u.pvd"),
            ("/{step}/../u.{step}.vtu", "", ""),
        ] {
            if third.is_empty() {
                assert!(FileSeries::of(Path::new(path)).is_err(), "{path}");
                continue;
            }
            let series = series(path);
            assert_eq!(series.file(2), Path::new(third), "{path}");
            assert_eq!(series.collection(), Path::new(collection), "{path}");
        }
        for path in ["u.vtu", "u-{Step}.vtu", "-", "", "/"] {
            assert_eq!(FileSeries::of(Path::new(path)).expect("a name"), None, "{path}");
        }
        assert!(FileSeries::of(Path::new("u\n{step}.vtu")).is_err());
    }

    #[test]
    fn the_collection_holds_what_was_added_under_its_own_name() {
        let folder = tempfile::tempdir().expect("a folder");
        let mut series = series(&folder.path().join("a & <b>\"-{step}.vtu").to_string_lossy());
        let mut read = |time: f64| {
            series.add(time).expect("a collection");
            let text = std::fs::read_to_string(series.collection()).expect("a collection");
            let document = roxmltree::Document::parse(&text).expect("XML");
            let sets = document.descendants().filter(|node| node.has_tag_name("DataSet"));
            sets.map(|set| {
                let of = |name| set.attribute(name).unwrap_or_default().to_owned();
                (of("timestep"), of("file"))
            })
            .collect::<Vec<_>>()
        };
        let set = |time: &str, name: &str| (time.to_owned(), name.to_owned());
        assert_eq!(read(0.0), [set("0", "a & <b>\"-0.vtu")]);
        let both = [set("0", "a & <b>\"-0.vtu"), set("0.25", "a & <b>\"-1.vtu")];
        assert_eq!(read(0.25), both);
        assert_eq!((series.len(), series.is_empty()), (2, false));
        for (count, found) in [(1, 1), (2, 2), (3, 0)] {
            let mut again = FileSeries { files: Vec::new(), ..series.clone() };
            again.resume(count);
            assert_eq!(again.files, series.files[..found], "{count}");
        }
        series.add_in_pieces(0.5);
        series.write().expect("a collection");
        let mut again = FileSeries { files: Vec::new(), ..series.clone() };
        again.resume(3);
        assert_eq!(again, series);
        assert!(again.files[2].1.ends_with("-2.pvtu"));
    }
}
