//! Abaqus input files (`.inp`), also written by CalculiX and others.
//!
//! `lines` splits the text into keywords and data, this module collects them in a `Model`, and `flat` converts it to
//! `Contents`. These keywords are read:
//!
//! | keyword | gives |
//! | --- | --- |
//! | `*NODE`, `*ELEMENT` | nodes and elements, and members of the sets named there |
//! | `*ELSET` | a tag of cells, or of the boundary from elements of one dimension less |
//! | `*SURFACE` | a boundary tag of its faces |
//! | `*NSET`, `*SURFACE` of nodes | a boundary tag of the facets whose vertices it contains |
//! | `*PART`, `*INSTANCE` | one part, at the position of its only instance |
//!
//! Internal sets give no tag. If the assembly and its part use one name, the part's set is called INSTANCE.NAME.
//! Keywords that define nodes in another way are rejected, all others ignored.
//!
//! The format is described in the Abaqus Keywords Guide and the CalculiX CrunchiX manual.

mod elements;
mod flat;
mod lines;
mod model;

use super::ReadError;
use super::contents::Contents;
use super::cursor::shorten;
use elements::ElementType;
use lines::{DataLine, Keyword, Lines};
use model::{
    ElementFaces, Elements, Instance, Model, ModelPart, NamedSets, NumberRange, Set, Sets, Surface,
};

pub(super) fn contents(bytes: &[u8]) -> Result<Contents, ReadError> {
    let mut lines = Lines::new(bytes);
    if let Some(data) = lines.data() {
        return Err(data.wrong(
            "a keyword, *NODE for example, at the beginning of an Abaqus file",
            &data.text,
        ));
    }
    let mut reader = AbaqusReader { lines, model: Model::default(), here: Section::Outside };
    while let Some(keyword) = reader.lines.keyword() {
        reader.read(&keyword)?;
    }
    flat::contents(reader.model)
}

/// The section of the file that contains a line.
#[derive(Clone, Copy, PartialEq)]
enum Section {
    Outside,
    /// A part or its instance.
    Part(usize),
    Assembly,
}

/// The kind of a set.
#[derive(Clone, Copy, PartialEq)]
enum SetKind {
    Nodes,
    Elements,
}

struct AbaqusReader<'a> {
    lines: Lines<'a>,
    model: Model,
    here: Section,
}

impl<'a> AbaqusReader<'a> {
    fn read(&mut self, keyword: &Keyword) -> Result<(), ReadError> {
        match keyword.name.as_str() {
            "NODE" => self.nodes(keyword),
            "ELEMENT" => self.elements(keyword),
            "NSET" => self.set(keyword, SetKind::Nodes),
            "ELSET" => self.set(keyword, SetKind::Elements),
            "SURFACE" => self.surface(keyword),
            "PART" => {
                let name = keyword.expect("NAME")?.to_owned();
                self.here = Section::Part(self.model.parts.len());
                self.model.parts.push(ModelPart { name, ..ModelPart::default() });
                Ok(())
            }
            "END PART" | "END ASSEMBLY" => {
                self.here = Section::Outside;
                Ok(())
            }
            "ASSEMBLY" | "END INSTANCE" => {
                self.here = Section::Assembly;
                Ok(())
            }
            "INSTANCE" => self.instance(keyword),
            "INCLUDE" | "NGEN" | "NFILL" | "NCOPY" | "NMAP" | "ELGEN" | "ELCOPY" | "SYSTEM" => {
                Err(refused(keyword))
            }
            _ => Ok(()),
        }
    }

    /// Returns the part to which lines belong; `None` in the assembly, whose nodes are not part of the mesh.
    fn part(&mut self) -> Option<&mut ModelPart> {
        match self.here {
            Section::Outside => Some(&mut self.model.flat),
            Section::Part(part) => self.model.parts.get_mut(part),
            Section::Assembly => None,
        }
    }

    /// Returns the sets and surfaces of the current section.
    fn names(&mut self) -> Option<&mut NamedSets> {
        match self.here {
            Section::Assembly => Some(&mut self.model.assembly),
            _ => self.part().map(|part| &mut part.names),
        }
    }

    fn nodes(&mut self, keyword: &Keyword) -> Result<(), ReadError> {
        let cartesian =
            keyword.parameter("SYSTEM").is_none_or(|system| system.eq_ignore_ascii_case("R"));
        if keyword.parameter("INPUT").is_some() || !cartesian {
            return Err(refused(keyword));
        }
        let mut numbers = Vec::new();
        while let Some(data) = self.lines.data() {
            let mut fields = data.numbers();
            let number = data.whole(fields.next().unwrap_or_default(), "a node's number")?;
            let mut point = [0.0; 3];
            for (x, field) in point.iter_mut().zip(fields) {
                *x = data.real(field, "a coordinate")?;
            }
            numbers.push(NumberRange::one(number));
            if let Some(part) = self.part() {
                part.node_numbers.push(number);
                part.points.push(point);
                part.node_lines.push(data.number);
            }
        }
        if let (Some(name), Some(part)) = (keyword.parameter("NSET"), self.part()) {
            part.names.node_sets.entry(name).members.append(&mut numbers);
        }
        Ok(())
    }

    fn elements(&mut self, keyword: &Keyword) -> Result<(), ReadError> {
        let name = keyword.expect("TYPE")?.to_owned();
        if keyword.parameter("INPUT").is_some() {
            return Err(refused(keyword));
        }
        if self.here == Section::Assembly {
            return Ok(());
        }
        let kind = elements::of(&name).map_err(|what| ReadError::Unsupported {
            place: keyword.place(),
            what: format!("elements of type {} {what}", shorten(name.as_bytes())),
        })?;
        let ElementType::Kind(kind) = kind else {
            if let Some(part) = self.part() {
                part.skipped.insert(name.to_ascii_uppercase());
            }
            return Ok(());
        };
        let mut all = Elements { kind, numbers: Vec::new(), nodes: Vec::new() };
        while let Some(data) = self.lines.data() {
            self.element(data, &mut all)?;
        }
        let mut numbers: Vec<NumberRange> =
            all.numbers.iter().map(|&number| NumberRange::one(number)).collect();
        if let Some(part) = self.part() {
            part.elements.push(all);
            if let Some(set) = keyword.parameter("ELSET") {
                part.names.element_sets.entry(set).members.append(&mut numbers);
            }
        }
        Ok(())
    }

    /// Reads one element, over as many lines as its nodes need.
    fn element(&mut self, mut data: DataLine<'a>, all: &mut Elements) -> Result<(), ReadError> {
        let count = all.kind.nodes();
        let mut left = count + 1;
        loop {
            for field in data.numbers() {
                if left == 0 {
                    return Err(data.wrong(&format!("{count} nodes of a {}", all.kind), field));
                }
                if left > count {
                    all.numbers.push(data.whole(field, "an element's number")?);
                } else {
                    all.nodes.push(data.whole(field, "a node's number")?);
                }
                left -= 1;
            }
            if left == 0 {
                return Ok(());
            }
            let Some(next) = self.lines.data() else {
                return Err(ReadError::Syntax {
                    place: self.lines.place(),
                    expected: format!("{left} more nodes of a {}", all.kind),
                    found: "the end of the data".to_owned(),
                });
            };
            data = next;
        }
    }

    /// Returns a set that is defined already. In the assembly, an instance name may precede its name.
    fn known(&self, name: &str, of: SetKind) -> Option<&Set> {
        let here = match self.here {
            Section::Outside => &self.model.flat.names,
            Section::Part(part) => &self.model.parts.get(part)?.names,
            Section::Assembly => {
                let own = sets(&self.model.assembly, of).get(name);
                let lower = &self.model.parts.get(self.model.instance.as_ref()?.part)?.names;
                return own.or_else(|| sets(lower, of).get(self.local(name)));
            }
        };
        sets(here, of).get(name)
    }

    /// Removes the instance prefix of a name.
    fn local<'n>(&self, name: &'n str) -> &'n str {
        let Some(instance) = &self.model.instance else { return name };
        match name.split_once('.') {
            Some((first, rest)) if first.eq_ignore_ascii_case(&instance.name) => {
                rest.trim_matches('"')
            }
            _ => name,
        }
    }

    fn set(&mut self, keyword: &Keyword, of: SetKind) -> Result<(), ReadError> {
        let name = keyword.expect(if of == SetKind::Nodes { "NSET" } else { "ELSET" })?;
        // Plain numbers in the assembly are its own nodes, which are not part of the mesh.
        let counted = self.here != Section::Assembly || keyword.parameter("INSTANCE").is_some();
        let generate = keyword.parameter("GENERATE").is_some();
        let mut found = Set::default();
        if let (SetKind::Nodes, Some(elements)) = (of, keyword.parameter("ELSET")) {
            let known = self.known(elements, SetKind::Elements);
            found.elements = known.map(|set| set.members.clone()).unwrap_or_default();
        }
        while let Some(data) = self.lines.data() {
            if generate {
                let range = range(&data)?;
                found.members.extend(counted.then_some(range));
            } else {
                for field in data.names() {
                    self.member(&data, field, of, counted, &mut found)?;
                }
            }
        }
        self.add(name, of, found, keyword.parameter("INTERNAL").is_some());
        Ok(())
    }

    /// Reads a number, or the members of another set.
    fn member(
        &self,
        data: &DataLine<'_>,
        field: &str,
        of: SetKind,
        counted: bool,
        found: &mut Set,
    ) -> Result<(), ReadError> {
        if let Ok(number) = field.parse() {
            found.members.extend(counted.then(|| NumberRange::one(number)));
        } else if let Ok(number) = self.local(field).parse() {
            found.members.push(NumberRange::one(number));
        } else if let Some(other) = self.known(field, of) {
            found.members.extend(&other.members);
            found.elements.extend(&other.elements);
            // Remove duplicates, so that nested sets do not grow.
            for ranges in [&mut found.members, &mut found.elements] {
                ranges.sort_unstable();
                ranges.dedup();
            }
        } else {
            return Err(data.wrong("a number, or the name of a set that came before", field));
        }
        Ok(())
    }

    /// Adds members to a set of the current section.
    fn add(&mut self, name: &str, of: SetKind, found: Set, internal: bool) {
        let Some(names) = self.names() else { return };
        let all = match of {
            SetKind::Nodes => &mut names.node_sets,
            SetKind::Elements => &mut names.element_sets,
        };
        let set = all.entry(name);
        set.members.extend(found.members);
        set.elements.extend(found.elements);
        set.internal |= internal;
    }

    fn surface(&mut self, keyword: &Keyword) -> Result<(), ReadError> {
        let name = keyword.expect("NAME")?;
        let kind = keyword.parameter("TYPE").unwrap_or("ELEMENT").to_ascii_uppercase();
        if keyword.parameter("COMBINE").is_some() || !matches!(kind.as_str(), "ELEMENT" | "NODE") {
            return Ok(());
        }
        let (mut nodes, mut faces) = (Set::default(), Vec::new());
        let counted = self.here != Section::Assembly;
        while let Some(data) = self.lines.data() {
            let mut fields = data.names();
            let Some(first) = fields.next() else { continue };
            if kind == "NODE" {
                self.member(&data, first, SetKind::Nodes, counted, &mut nodes)?;
                continue;
            }
            let mut set = Set::default();
            self.member(&data, first, SetKind::Elements, counted, &mut set)?;
            let label = fields.next().unwrap_or_default().to_owned();
            faces.push(ElementFaces { line: data.number, elements: set.members, label });
        }
        if kind == "NODE" {
            self.add(name, SetKind::Nodes, nodes, false);
            return Ok(());
        }
        let surface = Surface { name: name.to_owned(), faces };
        if let Some(names) = self.names() {
            names.surfaces.push(surface);
        }
        Ok(())
    }

    /// Reads the instance of a part, and its position.
    fn instance(&mut self, keyword: &Keyword) -> Result<(), ReadError> {
        let place = keyword.place();
        if self.model.instance.is_some() {
            let what = "an assembly of several instances is not read, for nothing joins their meshes: merge them to one part \
                        (Merge/Cut Instances in Abaqus/CAE), or write the input of one"
                .to_owned();
            return Err(ReadError::Unsupported { place, what });
        }
        let name = keyword.expect("NAME")?.to_owned();
        let part = keyword.expect("PART")?;
        let mut parts = self.model.parts.iter();
        let Some(part) = parts.position(|own| own.name.eq_ignore_ascii_case(part)) else {
            let found = format!("`{}`", shorten(part.as_bytes()));
            return Err(ReadError::Syntax {
                place,
                expected: "the name of a part".to_owned(),
                found,
            });
        };
        let mut instance = Instance { name, part, translation: [0.0; 3], rotation: None };
        if let Some(data) = self.lines.data() {
            instance.translation = reals(&data, "a translation")?;
        }
        if let Some(data) = self.lines.data() {
            instance.rotation = Some(reals(&data, "two points of an axis and an angle")?);
        }
        self.model.instance = Some(instance);
        self.here = Section::Part(part);
        Ok(())
    }
}

fn sets(names: &NamedSets, of: SetKind) -> &Sets {
    match of {
        SetKind::Nodes => &names.node_sets,
        SetKind::Elements => &names.element_sets,
    }
}

/// Reads first, last and step; the default step is 1.
fn range(data: &DataLine<'_>) -> Result<NumberRange, ReadError> {
    let mut fields = data.numbers();
    let mut next = |what| data.whole(fields.next().unwrap_or_default(), what);
    let (first, last) = (next("the first number")?, next("the last number")?);
    let step = match fields.next() {
        None | Some("") => 1,
        Some(field) => data.whole(field, "a step")?,
    };
    if step == 0 {
        return Err(data.wrong("a step of at least 1", "0"));
    }
    Ok(NumberRange { first, last, step })
}

/// Reads N numbers.
fn reals<const N: usize>(data: &DataLine<'_>, expected: &str) -> Result<[f64; N], ReadError> {
    let mut all = [0.0; N];
    for (slot, field) in all.iter_mut().zip(data.numbers()) {
        *slot = data.real(field, expected)?;
    }
    Ok(all)
}

/// Returns the error of a keyword that would change the mesh.
fn refused(keyword: &Keyword) -> ReadError {
    let name = &keyword.name;
    let what = match name.as_str() {
        "SYSTEM" => format!(
            "*{name} gives nodes in a system of its own, which is not read: write them in the global one"
        ),
        "NODE" if keyword.parameter("INPUT").is_none() => {
            "cylindrical and spherical coordinates of *NODE are not read: write Cartesian ones"
                .to_owned()
        }
        "INCLUDE" | "NODE" | "ELEMENT" => {
            format!("*{name} takes lines from another file, which is not read: copy them to here")
        }
        _ => format!(
            "*{name} makes nodes or elements of others, which is not done here: write all of them, as Abaqus/CAE does of a \
             model that it imported"
        ),
    };
    ReadError::Unsupported { place: keyword.place(), what }
}
