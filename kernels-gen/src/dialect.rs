//! Printing: kernel IR → text. A dialect only prints; `legalise` has rewritten the operations that its language lacks.

pub mod c;
pub(crate) mod comment;
pub mod cuda;
mod fold;
pub mod gnu;
pub(crate) mod maths;
pub(crate) mod names;
pub mod opencl;
pub mod rust;
mod vectors;

use crate::abi::KernelAbi;
use rust::Isa;
use std::collections::BTreeSet;
use std::fmt;
use std::ops::Deref;

/// The language of a [`SourceFile`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Language {
    /// Rust with SIMD vectors.
    Rust,
    /// C with GNU vector types.
    C,
    /// CUDA C++.
    Cuda,
    /// OpenCL C 1.2.
    OpenCl,
}

impl fmt::Display for Language {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Rust => "Rust",
            Self::C => "C",
            Self::Cuda => "CUDA",
            Self::OpenCl => "OpenCL",
        })
    }
}

/// Source text, deterministic for given inputs and self-contained except for [`KernelAbi::tables`]. Source printed by
/// this crate is a [`GeneratedSource`].
#[derive(Clone, Debug, PartialEq)]
pub struct SourceFile {
    /// The text.
    pub text: String,
    /// Its language.
    pub language: Language,
    /// Its kernels.
    pub kernels: Vec<KernelAbi>,
    /// The offset of each kernel's text; empty if the kernels cannot be separated.
    pub starts: Vec<usize>,
}

impl SourceFile {
    /// Returns a source without kernels.
    pub fn empty(language: Language) -> Self {
        Self { text: String::new(), language, kernels: Vec::new(), starts: Vec::new() }
    }

    /// Appends a source of the same language and precision. A preamble common to both is kept once.
    pub fn append(&mut self, mut other: Self) {
        let c_like = self.language != Language::Rust;
        let firsts = self.starts.first().zip(other.starts.first()).filter(|_| c_like);
        if let Some((&end, &first)) = firsts {
            let head: BTreeSet<&str> = self.text[..end].split("\n\n").map(str::trim).collect();
            let blocks = other.text[..first].trim_end().split("\n\n");
            let (title, blocks): (Vec<&str>, Vec<&str>) =
                blocks.partition(|block| block.lines().all(|line| line.starts_with("//")));
            let missing = blocks.into_iter().filter(|block| !head.contains(block.trim()));
            let missing: String = missing.map(|block| format!("\n{block}\n")).collect();
            let title = format!("\n{}\n", title.join("\n\n"));
            other.starts.iter_mut().for_each(|start| *start = *start - first + title.len());
            other.text.replace_range(..first, &title);
            self.text.insert_str(end, &missing);
            self.starts.iter_mut().for_each(|start| *start += missing.len());
        }
        let before = self.text.len();
        // A source that cannot be split makes the result unsplittable.
        let apart = self.starts.len() == self.kernels.len() && !other.starts.is_empty();
        self.starts.extend(other.starts.iter().map(|start| before + start));
        if !apart {
            self.starts.clear();
        }
        self.text.push_str(&other.text);
        self.kernels.extend(other.kernels);
    }

    /// Returns a source per kernel, each with the preamble; or the whole if the kernels cannot be separated.
    pub fn parts(&self) -> Vec<Self> {
        let Some(&first) = self.starts.first().filter(|_| self.starts.len() == self.kernels.len())
        else {
            return vec![self.clone()];
        };
        let ends = self.starts.iter().skip(1).copied().chain([self.text.len()]);
        let kernels = self.starts.iter().zip(ends).zip(&self.kernels);
        let part = |((&start, end), abi): ((&usize, usize), &KernelAbi)| Self {
            text: [&self.text[..first], &self.text[start..end]].concat(),
            language: self.language,
            kernels: vec![abi.clone()],
            starts: vec![first],
        };
        kernels.map(part).collect()
    }

    /// Separates the kernels that `later` selects by their position; `None` if there are none on either side, or the
    /// kernels cannot be separated.
    pub fn separate(&self, later: impl Fn(usize) -> bool) -> Option<[Self; 2]> {
        let parts = self.parts();
        let (now, later): (Vec<usize>, Vec<usize>) = (0..parts.len()).partition(|&at| !later(at));
        let apart = parts.len() == self.kernels.len() && !now.is_empty() && !later.is_empty();
        apart.then(|| [now, later].map(|group| self.group(&parts, &group)))
    }

    /// Returns the source of a group of its [parts](Self::parts).
    fn group(&self, parts: &[Self], group: &[usize]) -> Self {
        let first = self.starts.first().copied().unwrap_or(self.text.len());
        let mut source = parts[group[0]].clone();
        for &number in &group[1..] {
            source.starts.push(source.text.len());
            source.text.push_str(&parts[number].text[first..]);
            source.kernels.extend(parts[number].kernels.iter().cloned());
        }
        source
    }

    /// Distributes the kernels over at most `count` sources of similar length. Each has at least `least` bytes of
    /// kernels if there are several. Returns the whole if the kernels cannot be separated.
    pub fn distribute(&self, count: usize, least: usize) -> Vec<Self> {
        let parts = self.parts();
        let first = self.starts.first().copied().unwrap_or(self.text.len());
        let count = count.min(parts.len()).min((self.text.len() - first) / least.max(1));
        if count < 2 {
            return vec![self.clone()];
        }
        let length = |part: &Self| part.text.len() - first;
        let mut order: Vec<usize> = (0..parts.len()).collect();
        order.sort_by_key(|&number| std::cmp::Reverse(length(&parts[number])));
        let mut groups = vec![(0, Vec::new()); count];
        for number in order {
            let (sum, group) = groups.iter_mut().min_by_key(|(sum, _)| *sum).expect("a group");
            *sum += length(&parts[number]);
            group.push(number);
        }
        groups.iter_mut().for_each(|(_, group)| group.sort_unstable());
        groups.sort_unstable_by_key(|(_, group)| group[0]);
        groups.into_iter().map(|(_, group)| self.group(&parts, &group)).collect()
    }
}

/// Source that this crate has printed, with the interfaces of its kernels. Both are immutable and consistent, so that a
/// runtime may compile it and launch the kernels with arguments that fit the interfaces.
#[derive(Clone, Debug, PartialEq)]
pub struct GeneratedSource {
    file: SourceFile,
    isa: Option<Isa>,
}

impl GeneratedSource {
    pub(crate) fn new(file: SourceFile, isa: Option<Isa>) -> Self {
        Self { file, isa }
    }

    /// Returns a source without kernels.
    pub fn empty(language: Language) -> Self {
        Self::new(SourceFile::empty(language), None)
    }

    /// Returns the minimal instruction set of its kernels; `None` on GPUs.
    pub fn isa(&self) -> Option<Isa> {
        self.isa
    }

    /// Appends a source of the same language and precision.
    ///
    /// # Panics
    ///
    /// Panics if the languages differ.
    pub fn append(&mut self, other: Self) {
        assert_eq!(self.file.language, other.file.language, "one file has one language");
        // The most capable comes first, and includes the others.
        self.isa = self.isa.into_iter().chain(other.isa).min();
        self.file.append(other.file);
    }

    /// Returns the source as a Rust module, so that several sources can be in one file.
    ///
    /// # Panics
    ///
    /// Panics if the language has no modules, or the name is not an identifier.
    #[must_use]
    pub fn in_module(mut self, name: &str) -> Self {
        let plain = |c: char| c.is_ascii_alphanumeric() || c == '_';
        let named = name.chars().all(plain) && name.starts_with(|c: char| c.is_ascii_alphabetic());
        assert!(self.file.language == Language::Rust && named, "{name} is no module");
        self.file.text = format!("mod {name} {{\n{}}}\n", self.file.text);
        self.file.starts.clear();
        self
    }

    /// Separates some of its kernels, like [`SourceFile::separate`].
    pub fn separate(&self, later: impl Fn(usize) -> bool) -> Option<[Self; 2]> {
        let files = self.file.separate(later)?;
        Some(files.map(|file| Self { file, isa: self.isa }))
    }

    /// Distributes its kernels over several sources, like [`SourceFile::distribute`].
    pub fn distribute(&self, count: usize, least: usize) -> Vec<Self> {
        let files = self.file.distribute(count, least).into_iter();
        files.map(|file| Self { file, isa: self.isa }).collect()
    }

    /// Returns the text and the interfaces as a mutable source.
    pub fn into_file(self) -> SourceFile {
        self.file
    }
}

impl Deref for GeneratedSource {
    type Target = SourceFile;

    fn deref(&self) -> &SourceFile {
        &self.file
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dialect::opencl::OPENCL;
    use crate::element::Cell;
    use crate::generate::{elements, generate_for_threads, generate_for_vectors};
    use crate::kir::Precision;
    use crate::plan::{Geometry, Plan, Target, Task};

    fn source(name: &str) -> SourceFile {
        let text = format!("form {name} {{ field u: scalar; f1[u] = grad(u); }}");
        let (program, _) = fem_dsl::program::compile(&fem_dsl::source::Source::new("f", text));
        let form = program.and_then(|program| program.point_form(name, 2).ok()).expect("a form");
        let elements = elements(&form, Cell::Quadrilateral, 1, 1, None).expect("elements");
        let plan = |task| Plan::new(Target::Threads, task, 32, Precision::F64, Geometry::Vertices);
        let plans = [Task::Residual, Task::Action].map(plan);
        generate_for_threads(&form, &elements, &plans, &OPENCL).expect("a source").into_file()
    }

    /// For any text of a form, its lines are comments for the compilers of all dialects.
    #[test]
    fn no_text_of_a_form_leaves_its_comment() {
        let text = "form mass { field u: scalar; f0[u] = u; }";
        let (program, _) = fem_dsl::program::compile(&fem_dsl::source::Source::new("f", text));
        let form = program.and_then(|program| program.point_form("mass", 2).ok());
        let mut form = form.expect("a form");
        form.source =
            "/// note\r#define get_group_id(d) 0\u{2028}evil \\\n// ??/\n\u{85}evil\0\u{202e}"
                .into();
        let elements = elements(&form, Cell::Quadrilateral, 1, 1, None).expect("elements");
        let plans =
            [Plan::new(Target::Vectors, Task::Action, 8, Precision::F64, Geometry::Vertices)];
        let threads = |words| generate_for_threads(&form, &elements, &plans, words);
        let [rust, c] = [Language::Rust, Language::C]
            .map(|own| generate_for_vectors(&form, &elements, &plans, Isa::Portable, own));
        for source in [threads(&OPENCL), threads(&cuda::CUDA), rust, c] {
            let SourceFile { text, language, .. } = source.expect("a source").into_file();
            let head = text.split("Generated by").next().expect("a title");
            for line in head.split(['\n', '\r', '\u{b}', '\u{c}', '\u{85}', '\u{2028}', '\u{2029}'])
            {
                assert!(line.starts_with("//"), "{language}: {line:?}");
                assert!(!line.ends_with('\\') && !line.ends_with("??/"), "{language}: {line:?}");
                assert!(!line.contains(fem_dsl::source::is_unseen), "{language}: {line:?}");
            }
        }
    }

    #[test]
    fn sources_split_into_kernels() {
        let mut joined = SourceFile::empty(Language::OpenCl);
        let names = ["first", "second"];
        names.iter().for_each(|name| joined.append(source(name)));
        let parts = joined.parts();
        assert_eq!(parts.len(), 4);
        for (part, abi) in parts.iter().zip(&joined.kernels) {
            assert_eq!(part.kernels, std::slice::from_ref(abi));
            let begins = |abi: &KernelAbi| format!(" void {}(", abi.name);
            let has = |abi: &KernelAbi| part.text.contains(&begins(abi));
            assert_eq!(joined.kernels.iter().filter(|abi| has(abi)).count(), 1);
            assert!(has(abi) && part.text.contains("typedef double T;"));
            assert_eq!(part.parts(), std::slice::from_ref(part));
        }
    }

    #[test]
    fn kernels_are_distributed_over_sources_of_about_the_same_length() {
        let mut joined = source("first");
        ["second", "third"].into_iter().for_each(|name| joined.append(source(name)));
        let (names, parts) = (|file: &SourceFile| file.kernels.clone(), joined.parts());
        for count in 1..=4 {
            let source = joined.distribute(count, 1);
            assert_eq!(source.len(), count);
            let mut kernels: Vec<KernelAbi> = source.iter().flat_map(names).collect();
            kernels.sort_by_key(|abi| joined.kernels.iter().position(|own| own == abi));
            assert_eq!(kernels, joined.kernels);
            // A distributed source splits into the same kernels.
            let again: Vec<SourceFile> = source.iter().flat_map(SourceFile::parts).collect();
            assert!(again.iter().all(|part| parts.contains(part)));
            let lengths = source.iter().map(|part| part.text.len());
            let longest = parts.iter().map(|part| part.text.len()).max().expect("a part");
            assert!(lengths.clone().max() <= lengths.min().map(|least| least + longest));
        }
        assert_eq!(joined.distribute(8, 1), parts);
        assert_eq!(joined.distribute(8, joined.text.len()), std::slice::from_ref(&joined));
    }

    #[test]
    fn sources_without_starts_stay_whole() {
        let mut whole = source("first");
        whole.starts.clear();
        assert_eq!(whole.parts(), std::slice::from_ref(&whole));
        let mut joined = source("first");
        joined.append(whole.clone());
        assert_eq!(joined.parts(), std::slice::from_ref(&joined));
        whole.append(source("second"));
        assert_eq!(whole.parts(), std::slice::from_ref(&whole));
    }
}
