//! Random forms with integrals over facets between cells.
//!
//! Their terms do not depend on which of the two cells comes first: sums and products of jumps, averages and the normal
//! with the right number of signs, except in a block `from … to …`.

use super::expressions::Generator;
use super::lines::Lines;
use super::{FieldShape, Options, Random};

/// The names of fields and of their test functions.
const FIELDS: [(&str, &str); 3] = [("u", "du"), ("v", "dv"), ("s", "ds")];

/// The spaces, frequent ones repeated.
const SPACES: [&str; 6] = ["L2(k)", "L2(k)", "L2(k - 1)", "L2(0)", "H1(k)", "H1(k + 1)"];

/// Returns the text of a form `interior_SEED` for `dim` dimensions: one to three fields in continuous and discontinuous
/// spaces, data and parameters, an integral over the cells, and one or two over facets between cells, all or those with a tag, each as rows, as
/// a weak form or as an energy. All of it is smooth in the fields.
///
/// ```
/// let text = fem_dsl::testing::random_interior(3, 2);
/// assert!(text.starts_with("form interior_3 {") && text.contains("on interior"));
/// assert_eq!(text, fem_dsl::testing::random_interior(3, 2));
/// ```
pub fn random_interior(seed: u64, dim: usize) -> String {
    interior(seed, dim, Kind::All)
}

/// Returns the text of such a form whose fields and nodal data are all in L2(k), so that their nodes are quadrature
/// points.
pub fn random_interior_at_points(seed: u64, dim: usize) -> String {
    interior(seed, dim, Kind::AtPoints)
}

/// Returns the text of such a form whose first field is in Hcurl or Hdiv; gradients of it in each cell are read and tested.
pub fn random_interior_vectors(seed: u64, dim: usize) -> String {
    interior(seed, dim, Kind::Vectors)
}

/// The fields of a form.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    All,
    /// Their nodes are quadrature points.
    AtPoints,
    /// The first one is in Hcurl or Hdiv.
    Vectors,
}

fn interior(seed: u64, dim: usize, kind: Kind) -> String {
    let mut random = Random(seed ^ 0x2545_f491_4f6c_dd1d);
    let count = [1, 1, 2, 3][random.below(4)];
    let shapes = [
        FieldShape::Scalar,
        FieldShape::Scalar,
        FieldShape::Vector,
        FieldShape::VectorOf(2),
        if dim == 2 { FieldShape::Tensor } else { FieldShape::Scalar },
    ];
    let mut fields: Vec<(&'static str, FieldShape)> = FIELDS[..count]
        .iter()
        .map(|(name, _)| (*name, shapes[random.below(shapes.len())]))
        .collect();
    let mut spaces: Vec<&'static str> =
        (0..count).map(|_| SPACES[random.below(SPACES.len())]).collect();
    match kind {
        Kind::All => {}
        Kind::AtPoints => spaces.fill(SPACES[0]),
        Kind::Vectors => {
            let own = [(FieldShape::Curl, "Hcurl(k)"), (FieldShape::Div, "Hdiv(k)")];
            (fields[0].1, spaces[0]) = own[random.below(2)];
        }
    }
    let options = Options { dim, depth: 1, ..Options::default() };
    let generator =
        Generator { random, options, fields, main: 0, uses_u: true, points: false, normal: false };
    let lines = Lines::new(&format!("interior_{seed}"));
    let mut writer = Writer { lines, generator, spaces, kind };
    writer.declare();
    let facets = ["", "", " \"inner\""][Random(seed).below(3)];
    writer.lines.push(1, &format!("on interior{facets} {{"));
    writer.block(false);
    writer.lines.push(1, "}");
    if writer.generator.below(2) == 0 {
        writer.lines.push(1, "on interior from \"left\" to \"right\" {");
        writer.block(true);
        writer.lines.push(1, "}");
    }
    writer.lines.finish()
}

struct Writer {
    lines: Lines,
    generator: Generator,
    spaces: Vec<&'static str>,
    kind: Kind,
}

impl Writer {
    /// Declares fields, data and parameters, and writes the rows of the cells.
    fn declare(&mut self) {
        let fields = self.generator.fields.clone();
        for ((name, shape), space) in fields.iter().zip(self.spaces.clone()) {
            self.lines.push(1, &format!("field {name}: {} in {space};", shape.text()));
        }
        let mut place = self.generator.pick(&["", " on nodes in H1(1)", " on nodes in L2(k)"]);
        let mut other = " on nodes";
        if self.kind == Kind::AtPoints {
            (place, other) = (" on nodes in L2(k)", " on nodes in L2(k)");
        }
        self.lines.push(1, &format!("aux a: scalar{place};"));
        self.lines.push(1, &format!("aux b: vector{other};"));
        self.lines.push(1, "aux c: scalar on cells;");
        let number = self.generator.number();
        self.lines.push(1, &format!("param p = {number};"));
        let components: Vec<String> =
            (0..self.generator.options.dim).map(|_| self.generator.number()).collect();
        self.lines.push(1, &format!("param r: vector = [{}];", components.join(", ")));
        let shared = self.generator.scalar(1);
        self.lines.push(1, &format!("let w = {shared};"));
        if self.kind == Kind::Vectors && self.generator.below(2) == 0 {
            let terms: Vec<String> = fields.iter().map(|(name, _)| self.density(name)).collect();
            return self.lines.push(1, &format!("energy = {};", terms.join(" + ")));
        }
        for (name, shape) in fields {
            let row = self.generator.row0(name, shape);
            self.lines.push(1, &format!("f0[{name}] = {row};"));
        }
    }

    /// Returns an energy density of a field and its gradient.
    fn density(&mut self, name: &str) -> String {
        let (one, other) = (self.generator.scalar(1), self.generator.number());
        format!(
            "{other} * inner(grad({name}), grad({name})) * (2 + sin({one})) + inner({name}, {name})"
        )
    }

    /// Returns a number that stays the same if the cells are exchanged.
    fn even(&mut self) -> String {
        let name = self.generator.fields[0].0;
        let (one, other) = (self.generator.scalar(1), self.generator.scalar(1));
        match self.generator.below(7) {
            0 => format!("avg({one})"),
            1 => format!("inside({one}) * outside({one})"),
            2 => format!("(inside({one}) * outside({other}) + inside({other}) * outside({one}))"),
            3 => format!("jump({one}) * jump({other})"),
            4 => format!("jump({one}) * n[0]"),
            5 => format!("sin(avg(penalty({name}) * hn) / 20)"),
            _ => format!("cos(avg(hn) + jump({one})^2)"),
        }
    }

    /// Returns a number that changes its sign if the cells are exchanged.
    fn odd(&mut self) -> String {
        let one = self.generator.scalar(1);
        let even = self.even();
        match self.generator.below(3) {
            0 => format!("jump({one}) * {even}"),
            1 => format!("dot(avg(b), n) * {even}"),
            _ => format!("n[0] * (2 + sin({even}))"),
        }
    }

    fn block(&mut self, ordered: bool) {
        match self.generator.below(3) {
            0 => self.rows(ordered),
            1 => self.weak(ordered),
            _ => self.energy(),
        }
    }

    fn is_continuous(&self, field: usize) -> bool {
        self.spaces[field].starts_with("H1")
    }

    fn rows(&mut self, ordered: bool) {
        for (field, (name, shape)) in self.generator.fields.clone().into_iter().enumerate() {
            self.generator.main = field;
            let (value, flux) =
                (self.generator.row0(name, shape), self.generator.row1(name, shape));
            let (even, odd) = (self.even(), self.odd());
            match (self.is_continuous(field), ordered) {
                (true, _) => self.lines.push(2, &format!("f0[{name}] = {even} * avg({value});")),
                (false, false) => {
                    self.lines.push(2, &format!("f0[jump({name})] = {even} * jump({value});"));
                    self.lines.push(2, &format!("f0[avg({name})] = {odd} * jump({value});"));
                }
                (false, true) => {
                    self.lines.push(2, &format!("f0[inside({name})] = {odd} * outside({value});"));
                }
            }
            match ordered {
                true => {
                    self.lines.push(2, &format!("f1[outside({name})] = {even} * inside({flux});"))
                }
                false => {
                    self.lines.push(2, &format!("f1[jump({name})] = {odd} * avg({flux});"));
                    self.lines.push(2, &format!("f1[avg({name})] = {even} * avg({flux});"));
                }
            }
        }
    }

    fn weak(&mut self, ordered: bool) {
        // Test functions are declared per block.
        let number = self.lines.len();
        let mut terms = Vec::new();
        for (field, (name, shape)) in self.generator.fields.clone().into_iter().enumerate() {
            self.generator.main = field;
            let test = format!("{}{number}", FIELDS[field].1);
            self.lines.push(2, &format!("test {test} for {name};"));
            let (value, flux) =
                (self.generator.row0(name, shape), self.generator.row1(name, shape));
            let product = match shape {
                FieldShape::Scalar => format!("({value}) * {test}"),
                _ => format!("inner({value}, {test})"),
            };
            let word = if ordered { "outside" } else { "avg" };
            terms.push(format!("{} * {word}({product})", self.even()));
            let derivative = match shape {
                FieldShape::Curl => "curl",
                FieldShape::Div => "div",
                _ => "grad",
            };
            let flux = format!("inner({flux}, {derivative}({test}))");
            let word = if ordered { "inside" } else { "jump" };
            terms.push(format!("{} * {word}({flux})", self.odd()));
            if derivative != "grad" {
                let slopes = format!("inner(grad({name}), grad({test}))");
                terms.push(format!("{} * {word}({slopes})", self.odd()));
            }
        }
        self.lines.push(2, &format!("residual = {};", terms.join(" + ")));
    }

    fn energy(&mut self) {
        let mut terms = Vec::new();
        for (name, _) in self.generator.fields.clone() {
            let (number, even) = (self.generator.number(), self.even());
            let square = format!("inner(jump({name}), jump({name}))");
            terms.push(format!("{number} / 2 * {square} * (2 + sin({even}))"));
            let gradients = format!("inner(avg(grad({name})), avg(grad({name})))");
            terms.push(format!("{} * {gradients}", self.generator.number()));
        }
        let even = self.even();
        self.lines.push(2, &format!("energy = {} + sin({even});", terms.join(" + ")));
    }
}
