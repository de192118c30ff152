//! `print`: kir → text. A dialect only prints: what its language lacks, `legalise` has rewritten.

pub mod c;
pub mod cuda;
pub mod opencl;
pub mod rust;

use crate::abi::KernelAbi;
use std::fmt;

/// The language of a [`SourceFile`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Language {
    /// Rust with SIMD vectors.
    Rust,
    /// CUDA C++.
    Cuda,
    /// OpenCL C 1.2.
    OpenCl,
}

impl fmt::Display for Language {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Rust => "Rust",
            Self::Cuda => "CUDA",
            Self::OpenCl => "OpenCL",
        })
    }
}

/// Generated source: self-contained but for [`KernelAbi::tables`], the same bytes for the same inputs.
#[derive(Clone, Debug, PartialEq)]
pub struct SourceFile {
    /// The text.
    pub text: String,
    /// Its language.
    pub language: Language,
    /// Its kernels.
    pub kernels: Vec<KernelAbi>,
    /// Where the text of each kernel begins; nothing where kernels cannot be told apart.
    pub starts: Vec<usize>,
}

impl SourceFile {
    /// A source without kernels.
    pub fn empty(language: Language) -> Self {
        Self { text: String::new(), language, kernels: Vec::new(), starts: Vec::new() }
    }

    /// Appends a source of the same language and precision.
    pub fn append(&mut self, other: Self) {
        let before = self.text.len();
        // One that cannot be taken apart leaves the whole so.
        let apart = self.starts.len() == self.kernels.len() && !other.starts.is_empty();
        self.starts.extend(other.starts.iter().map(|start| before + start));
        if !apart {
            self.starts.clear();
        }
        self.text.push_str(&other.text);
        self.kernels.extend(other.kernels);
    }

    /// A source for each kernel, with what stands before the first; the whole where kernels cannot be told apart.
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
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dialect::opencl::OPENCL;
    use crate::element::Cell;
    use crate::generate::{elements, generate_for_threads};
    use crate::kir::Precision;
    use crate::plan::{Geometry, Plan, Task};

    fn source(name: &str) -> SourceFile {
        let text = format!("form {name} {{ field u: scalar; f1[u] = grad(u); }}");
        let (program, _) = fem_dsl::program::compile(&fem_dsl::source::Source::new("f", text));
        let form = program.and_then(|program| program.point_form(name, 2).ok()).expect("a form");
        let elements = elements(&form, Cell::Quadrilateral, 1, 1, None).expect("elements");
        let plan = |task| Plan::new(task, 32, Precision::F64, Geometry::Vertices);
        let plans = [Task::Residual, Task::Action].map(plan);
        generate_for_threads(&form, &elements, &plans, &OPENCL).expect("a source")
    }

    #[test]
    fn sources_come_apart_kernel_by_kernel() {
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
            assert!(has(abi) && part.text.contains("#define WEAKFORM_PREAMBLE"));
            assert_eq!(part.parts(), std::slice::from_ref(part));
        }
    }

    #[test]
    fn what_does_not_say_where_kernels_begin_stays_whole() {
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
