//! Mutations of bytes: small changes, keywords of the formats, parts of other seeds, repetition.

pub(crate) use fem_dsl::testing::Random;

/// Largest input.
const LONGEST: usize = 1 << 17;

/// Words with a special meaning for a grammar or a reader.
const WORDS: &[&str] = &[
    "form ",
    "problem p solves a ",
    "field ",
    "u",
    "v",
    "test v for u;",
    "residual = ",
    "energy = ",
    "on boundary \"a\" ",
    "f0[u] = ",
    "f1[u]",
    "let ",
    "fn f(a) = ",
    "if ",
    " else ",
    "grad(",
    "div(",
    "det(",
    "inv(",
    "log(",
    "sym(",
    "dot(",
    "norm(",
    "curl(",
    "(",
    ")",
    "[",
    "]",
    "{",
    "}",
    ";",
    ",",
    "^",
    "^-",
    "*",
    "/",
    "+",
    "-",
    "!",
    "&&",
    "<",
    "==",
    "//",
    "///",
    "/*",
    "*/",
    "/**/",
    "\"",
    "\\",
    "\n",
    "\r\n",
    "é",
    "∇",
    "\u{0}",
    "\u{feff}",
    "0",
    "1e308",
    "1e-320",
    "1e999",
    "-1",
    "99999999999999999999",
    "4294967296",
    "2147483647",
    "18446744073709551615",
    "nan",
    "inf",
    "0.5",
    "$Nodes\n",
    "$EndNodes\n",
    "$Elements\n",
    "$EndElements\n",
    "$MeshFormat\n",
    "4.1 1 8\n",
    "# vtk DataFile Version 5.1\n",
    "CELLS ",
    "CELL_DATA ",
    "<DataArray ",
    " format=\"ascii\"",
    "*NODE\n",
    "*ELEMENT, TYPE=C3D20\n",
    "*NSET, NSET=a, GENERATE\n",
    "H1(k - 1)",
    "L2(0)",
    "tensor",
    "vector(64)",
    "vector(3)",
    "n",
    "x",
    "I",
    "k",
    "dim",
    "on cells",
    "on points",
    "param ",
    "aux ",
];

/// A stream of inputs.
pub(crate) struct Mutator<'a> {
    random: Random,
    seeds: &'a [Vec<u8>],
}

impl<'a> Mutator<'a> {
    pub(crate) fn new(seed: u64, seeds: &'a [Vec<u8>]) -> Self {
        Self { random: Random(seed), seeds }
    }

    /// Returns the next input: a seed with a few changes.
    pub(crate) fn next(&mut self) -> Vec<u8> {
        let mut bytes = self.seeds[self.random.below(self.seeds.len())].clone();
        for _ in 0..=self.random.below(6) {
            self.change(&mut bytes);
            bytes.truncate(LONGEST);
        }
        bytes
    }

    fn change(&mut self, bytes: &mut Vec<u8>) {
        let at = self.random.below(bytes.len() + 1);
        let end = (at + 1 + self.random.below(20)).min(bytes.len());
        match self.random.below(12) {
            0 if at < bytes.len() => bytes[at] ^= 1 << self.random.below(8),
            1 if at < bytes.len() => bytes[at] = self.random.below(256) as u8,
            2 if at < end => drop(bytes.drain(at..end)),
            3 => bytes.truncate(at),
            4..=6 => {
                let word = WORDS[self.random.below(WORDS.len())];
                let end = if self.random.below(2) == 0 { at } else { end.max(at) };
                bytes.splice(at..end, word.bytes());
            }
            7 => {
                let other = &self.seeds[self.random.below(self.seeds.len())];
                let from = self.random.below(other.len() + 1);
                let to = (from + self.random.below(60)).min(other.len());
                bytes.splice(at..at, other[from..to].iter().copied());
            }
            8 => self.swap_words(bytes),
            9 if at < end => {
                // Often enough for deep nesting.
                let piece = bytes[at..end].repeat(1 + self.random.below(300));
                bytes.splice(at..at, piece);
            }
            10 => {
                let to = self.random.below(bytes.len() + 1);
                let piece = bytes[at.min(to)..at.max(to)].to_vec();
                let place = self.random.below(bytes.len() + 1);
                bytes.splice(place..place, piece);
            }
            _ => self.line(bytes),
        }
    }

    /// Exchanges two words.
    fn swap_words(&mut self, bytes: &mut Vec<u8>) {
        let word = |byte: &u8| byte.is_ascii_alphanumeric();
        let pieces: Vec<&[u8]> = bytes.chunk_by(|a, b| word(a) == word(b)).collect();
        let (a, b) = (self.random.below(pieces.len()), self.random.below(pieces.len()));
        let mut order: Vec<usize> = (0..pieces.len()).collect();
        if a < order.len() && b < order.len() {
            order.swap(a, b);
        }
        *bytes = order.into_iter().flat_map(|i| pieces[i].iter().copied()).collect();
    }

    /// Removes or repeats a line.
    fn line(&mut self, bytes: &mut Vec<u8>) {
        let lines: Vec<&[u8]> = bytes.split_inclusive(|&byte| byte == b'\n').collect();
        let (chosen, times) = (self.random.below(lines.len()), self.random.below(4));
        let copies = |(i, line): (usize, &&[u8])| line.repeat(if i == chosen { times } else { 1 });
        *bytes = lines.iter().enumerate().flat_map(copies).collect();
    }
}
