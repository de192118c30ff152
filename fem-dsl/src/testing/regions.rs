//! Random forms in all three notations, with integrals over the boundary and fields in different spaces.

use super::Random;
use super::expressions::Generator;
use super::lines::Lines;
use super::{FieldShape, Options};

/// A random form and its properties.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Regions {
    /// The form, `random_SEED`.
    pub text: String,
    /// True if all of it is smooth in the fields, so that differences approximate its derivatives.
    pub smooth: bool,
    /// True if all of it is the derivative of an energy.
    pub energy: bool,
}

/// The notation of a region.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum RegionNotation {
    Pointwise,
    Weak,
    Energy,
}

/// The names of fields and of their test functions.
const FIELDS: [(&str, &str); 3] = [("u", "du"), ("v", "dv"), ("s", "ds")];

/// The spaces, frequent ones repeated.
const SPACES: [&str; 12] = [
    "",
    "",
    "",
    " in H1(k)",
    " in H1(k + 1)",
    " in H1(1)",
    " in H1(k - 1)",
    " in L2(k)",
    " in L2(k)",
    " in L2(k - 1)",
    " in L2(0)",
    " in L2(k + 1)",
];

/// The spaces of nodal data.
const DATA: [&str; 6] = [
    "",
    " on nodes",
    " on nodes in H1(k + 1)",
    " on nodes in L2(k)",
    " on nodes in L2(0)",
    " on nodes in H1(1)",
];

/// The tags of a box that exist in both dimensions.
const TAGS: [&str; 4] = ["x0", "x1", "y0", "y1"];

/// Returns the text of a form `random_SEED` for `dim` dimensions: one to three fields in continuous and discontinuous
/// spaces, data, parameters and conditions, an integral over the cells, perhaps another over those with the tags "left"
/// and "right", and up to two over parts of the boundary with the tags of a box, each as rows, as a weak form or as an
/// energy.
///
/// ```
/// let form = fem_dsl::testing::random_regions(3, 2);
/// assert!(form.text.starts_with("form random_3 {"));
/// assert_eq!(form, fem_dsl::testing::random_regions(3, 2));
/// ```
pub fn random_regions(seed: u64, dim: usize) -> Regions {
    let mut random = Random(seed ^ 0x5bd1_e995_7f4a_7c15);
    // A form of energies requires energies in all of its regions.
    let energy = random.below(4) == 0;
    let smooth = random.below(4) > 0;
    let count = [1, 1, 1, 2, 2, 3][random.below(6)];
    let fields: Vec<(&'static str, FieldShape)> =
        FIELDS[..count].iter().map(|(name, _)| (*name, shape(&mut random, dim))).collect();
    let (aux, params) = (random.below(3) > 0, random.below(3) > 0);
    let options = Options { dim, aux, params, kinks: !smooth, depth: 1, ..Options::default() };
    let (uses_u, points, normal) = (true, true, false);
    let mut writer = Writer {
        lines: Lines::new(&format!("random_{seed}")),
        generator: Generator { random, options, fields, main: 0, uses_u, points, normal },
    };
    writer.declare();
    let blocks = [0, 0, 1, 1, 2][writer.below(5)];
    // Named expressions are also used on the boundary.
    writer.generator.points = blocks == 0;
    let depth = if count == 1 { 2 } else { 1 };
    let shared = writer.generator.scalar(depth);
    writer.lines.push(1, &format!("let w = {shared};"));
    writer.generator.points = true;
    let notation = writer.notation(energy);
    let all: Vec<usize> = (0..count).collect();
    writer.region(notation, &all, (1, depth));
    if writer.below(3) == 0 {
        writer.cells(energy);
    }
    writer.generator.points = false;
    writer.generator.normal = true;
    for _ in 0..blocks {
        writer.block(energy);
    }
    Regions { text: writer.lines.finish(), smooth, energy }
}

fn shape(random: &mut Random, dim: usize) -> FieldShape {
    match random.below(8) {
        0..=3 => FieldShape::Scalar,
        4 | 5 => FieldShape::Vector,
        6 if dim == 2 => FieldShape::Tensor,
        _ => FieldShape::VectorOf(2),
    }
}

struct Writer {
    lines: Lines,
    generator: Generator,
}

impl Writer {
    fn below(&mut self, n: usize) -> usize {
        self.generator.random.below(n)
    }

    /// Declares fields, data and parameters.
    fn declare(&mut self) {
        for (name, shape) in self.generator.fields.clone() {
            let space = SPACES[self.below(SPACES.len())];
            self.lines.push(1, &format!("field {name}: {}{space};", shape.text()));
        }
        if self.generator.options.aux {
            for data in ["a: scalar", "b: vector"] {
                let place = DATA[self.below(DATA.len())];
                self.lines.push(1, &format!("aux {data}{place};"));
            }
            self.lines.push(1, "aux c: scalar on cells;");
            self.lines.push(1, "aux q: scalar on points;");
        }
        if self.generator.options.params {
            let number = self.generator.number();
            self.lines.push(1, &format!("param p = {number};"));
            let dim = self.generator.options.dim;
            let components: Vec<String> = (0..dim).map(|_| self.generator.number()).collect();
            self.lines.push(1, &format!("param r: vector = [{}];", components.join(", ")));
        }
    }

    fn notation(&mut self, energy: bool) -> RegionNotation {
        match self.below(3) {
            _ if energy => RegionNotation::Energy,
            0 => RegionNotation::Pointwise,
            1 => RegionNotation::Weak,
            _ => [RegionNotation::Pointwise, RegionNotation::Weak, RegionNotation::Energy]
                [self.below(3)],
        }
    }

    /// Adds an integral over a part of the cells.
    fn cells(&mut self, energy: bool) {
        let tags = ["\"left\"", "\"right\"", "\"left\", \"right\""][self.below(3)];
        self.block_of(&format!("cells {tags}"), energy);
    }

    /// Adds an integral over a part of the boundary.
    fn block(&mut self, energy: bool) {
        let first = self.below(4);
        let tags = match self.below(3) {
            0 => format!("\"{}\", \"{}\"", TAGS[first], TAGS[(first + 1 + self.below(3)) % 4]),
            _ => format!("\"{}\"", TAGS[first]),
        };
        self.block_of(&format!("boundary {tags}"), energy);
    }

    /// Adds a block with some of the fields.
    fn block_of(&mut self, place: &str, energy: bool) {
        self.lines.push(1, &format!("on {place} {{"));
        let count = self.generator.fields.len();
        let one = self.below(count);
        let whole = self.below(2) == 0;
        let fields: Vec<usize> = (0..count).filter(|&field| whole || field == one).collect();
        let notation = self.notation(energy);
        self.region(notation, &fields, (2, 1));
        self.lines.push(1, "}");
    }

    /// Writes the physics of a region, with rows for some of the fields.
    fn region(
        &mut self,
        notation: RegionNotation,
        fields: &[usize],
        (indent, depth): (usize, usize),
    ) {
        self.generator.options.depth = depth;
        match notation {
            RegionNotation::Pointwise => self.rows(fields, indent),
            RegionNotation::Weak => self.weak(fields, indent),
            RegionNotation::Energy => self.energy(fields, indent),
        }
    }

    /// Chooses the rows of a field: values, gradients, or both.
    fn parts(&mut self) -> (bool, bool) {
        [(true, true), (true, true), (true, false), (false, true)][self.below(4)]
    }

    fn rows(&mut self, fields: &[usize], indent: usize) {
        for &field in fields {
            let (name, shape) = self.generator.fields[field];
            self.generator.main = field;
            let (value, gradient) = self.parts();
            if value {
                let row = self.generator.row0(name, shape);
                self.lines.push(indent, &format!("f0[{name}] = {row};"));
            }
            if gradient {
                let row = self.generator.row1(name, shape);
                self.lines.push(indent, &format!("f1[{name}] = {row};"));
            }
        }
    }

    fn weak(&mut self, fields: &[usize], indent: usize) {
        // Test functions are declared per region.
        let region = self.lines.len();
        let mut terms = Vec::new();
        for &field in fields {
            let ((name, shape), test) = (self.generator.fields[field], FIELDS[field].1);
            let test = format!("{test}{region}");
            self.lines.push(indent, &format!("test {test} for {name};"));
            self.generator.main = field;
            let (value, gradient) = self.parts();
            if value {
                let row = self.generator.row0(name, shape);
                terms.push(match shape {
                    FieldShape::Scalar => format!("({row}) * {test}"),
                    _ => format!("inner({row}, {test})"),
                });
            }
            if gradient {
                let row = self.generator.row1(name, shape);
                terms.push(format!("inner(grad({test}), {row})"));
            }
            if shape == FieldShape::Vector && self.below(2) == 0 {
                let factor = self.generator.scalar(1);
                terms.push(format!("({factor}) * div({test})"));
            }
        }
        self.lines.push(indent, &format!("residual = {};", terms.join(" + ")));
    }

    fn energy(&mut self, fields: &[usize], indent: usize) {
        let mut terms = Vec::new();
        for &field in fields {
            let (name, _) = self.generator.fields[field];
            self.generator.main = field;
            let (value, gradient) = self.parts();
            if value {
                let (number, factor) = (self.generator.number(), self.generator.scalar(1));
                terms.push(format!("{number} / 2 * inner({name}, {name}) * (2 + sin({factor}))"));
            }
            if gradient {
                let (number, factor) = (self.generator.number(), self.generator.scalar(1));
                let square = format!("inner(grad({name}), grad({name}))");
                terms.push(format!("{number} / 2 * {square} * (2 + cos({factor}))"));
            }
        }
        let free = self.generator.scalar(self.generator.options.depth);
        let number = self.generator.number();
        self.lines
            .push(indent, &format!("energy = {} + {number} * sin({free} + w);", terms.join(" + ")));
    }
}
