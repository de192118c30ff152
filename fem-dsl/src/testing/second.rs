//! Random forms with second derivatives in cells, on the boundary and between cells.

use super::expressions::Generator;
use super::lines::Lines;
use super::{FieldShape, Options, Random};

/// The spaces of the field.
const SPACES: [&str; 4] = ["H1(k)", "H1(k + 1)", "L2(k)", "L2(k + 1)"];

/// Returns the text of a form `second_SEED` for `dim` dimensions: a scalar or vector field, perhaps another one, data and
/// parameters, and integrals over the cells, perhaps over a part of the boundary and over facets between cells, as a
/// weak form or an energy. All of it is smooth in the fields, and does not depend on which of two cells comes first.
///
/// ```
/// let text = fem_dsl::testing::random_second(3, 2);
/// assert!(text.starts_with("form second_3 {") && text.contains("grad(grad("));
/// assert_eq!(text, fem_dsl::testing::random_second(3, 2));
/// ```
pub fn random_second(seed: u64, dim: usize) -> String {
    let mut random = Random(seed ^ 0x7f4a_7c15_2545_f491);
    let shape = [FieldShape::Scalar, FieldShape::Scalar, FieldShape::Vector][random.below(3)];
    let mut fields = vec![("u", shape)];
    if random.below(3) == 0 {
        fields.push(("v", FieldShape::Scalar));
    }
    let options = Options { dim, depth: 1, ..Options::default() };
    let generator =
        Generator { random, options, fields, main: 0, uses_u: true, points: false, normal: false };
    let lines = Lines::new(&format!("second_{seed}"));
    let mut writer = Writer { lines, generator, shape };
    writer.declare();
    writer.cells();
    if writer.generator.below(2) == 0 {
        let tag = writer.generator.pick(&["x0", "x1", "y0", "y1"]);
        writer.lines.push(1, &format!("on boundary \"{tag}\" {{"));
        writer.facets("");
        writer.lines.push(1, "}");
    }
    if writer.generator.below(3) > 0 {
        writer.lines.push(1, "on interior {");
        writer.facets("avg");
        writer.lines.push(1, "}");
    }
    writer.lines.finish()
}

struct Writer {
    lines: Lines,
    generator: Generator,
    shape: FieldShape,
}

impl Writer {
    fn declare(&mut self) {
        let space = self.generator.pick(&SPACES);
        let shape = self.shape.text();
        self.lines.push(1, &format!("field u: {shape} in {space};"));
        if self.generator.fields.len() > 1 {
            let space = self.generator.pick(&["H1(k)", "L2(k)", "L2(k - 1)"]);
            self.lines.push(1, &format!("field v: scalar in {space};"));
        }
        self.generator.declare_data(&mut self.lines, "vector on nodes");
    }

    /// Returns a number with second derivatives of a function of the field's shape.
    fn bend(&self, of: &str) -> String {
        match self.shape {
            FieldShape::Scalar => format!("dot(grad(grad({of})) * r, r)"),
            _ => format!("(dot(div(grad({of})), r) + grad(div({of}))[0])"),
        }
    }

    fn cells(&mut self) {
        let (number, factor) = (self.generator.number(), self.generator.scalar(1));
        let bend = self.bend("u");
        if self.generator.below(2) == 0 {
            let square = "inner(grad(grad(u)), grad(grad(u)))";
            let other = self.generator.scalar(1);
            let mut energy =
                format!("{number} / 2 * {square} * (2 + sin({factor})) + sin({bend} + {other})");
            if self.generator.fields.len() > 1 {
                energy += " + v^2 * (1 + dot(grad(v), grad(v)))";
            }
            return self.lines.push(1, &format!("energy = inner(u, u) + {energy};"));
        }
        self.lines.push(1, "test du for u;");
        let (row0, row1) =
            (self.generator.row0("u", self.shape), self.generator.row1("u", self.shape));
        let other = self.generator.scalar(1);
        let mut terms = vec![
            format!("(2 + sin({factor})) * inner(grad(grad(u)), grad(grad(du)))"),
            format!("inner({row0}, du) * cos({bend})"),
            format!("({other}) * {}", self.bend("du")),
            format!("inner(grad(du), {row1})"),
        ];
        if self.generator.fields.len() > 1 {
            self.lines.push(1, "test dv for v;");
            terms.push(format!("dv * (v + {number} * {bend})"));
        }
        self.lines.push(1, &format!("residual = {};", terms.join(" + ")));
    }

    /// Writes the rows of facets; `avg` is the word that makes one value of two, if there are two.
    fn facets(&mut self, avg: &str) {
        let (test, shape) = (format!("du{}", self.lines.len()), self.shape);
        let of =
            |text: &str| if avg.is_empty() { text.to_owned() } else { format!("{avg}({text})") };
        let (one, other) = (self.generator.scalar(1), self.generator.scalar(1));
        let factor = format!("cos({} + {})", of("hn"), of(&one));
        let (bend, tested) = (of(&self.bend("u")), of(&self.bend(&test)));
        // The word changes its sign with the order of the cells, and so does n.
        let jump =
            |text: &str| if avg.is_empty() { text.to_owned() } else { format!("jump({text})") };
        let kink = |function: &str| match shape {
            FieldShape::Scalar => format!("dot({}, n)", jump(&format!("grad({function})"))),
            _ => format!("dot({} * n, n)", jump(&format!("outer(grad({function}) * r, r)"))),
        };
        let normal = |function: &str| match shape {
            FieldShape::Scalar => of(&format!("dot(grad(grad({function})) * n, n)")),
            _ => of(&format!("dot(grad({function}) * n, n)")),
        };
        let odd = match shape {
            FieldShape::Scalar => "",
            _ => " * n[0]",
        };
        let penalty = of("penalty(u) * hn");
        if self.generator.below(2) == 0 {
            let square = format!("{penalty} * {factor} * ({})^2", kink("u"));
            let flux = format!("{} * {}{odd}", normal("u"), kink("u"));
            return self.lines.push(2, &format!("energy = {square} - {flux} + {bend}^2 / 4;"));
        }
        self.lines.push(2, &format!("test {test} for u;"));
        let terms = [
            format!("{factor} * {bend} * {tested}"),
            format!("{} * {}{odd}", normal("u"), kink(&test)),
            format!("({}) * {} * {}{odd}", of(&other), kink("u"), normal(&test)),
        ];
        self.lines.push(2, &format!("residual = {};", terms.join(" + ")));
    }
}
