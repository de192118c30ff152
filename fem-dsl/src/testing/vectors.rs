//! Random forms with fields in Hcurl and Hdiv, on cells and on the boundary.

use super::expressions::Generator;
use super::lines::Lines;
use super::{FieldShape, Options, Random};

/// Returns the text of a form `vectors_SEED` for `dim` dimensions: a field in Hcurl, one in Hdiv or both, perhaps another
/// one, data and parameters, and integrals over the cells and perhaps over a part of the boundary, as rows. All of it is
/// smooth in the fields.
///
/// ```
/// let text = fem_dsl::testing::random_vectors(3, 2);
/// assert!(text.starts_with("form vectors_3 {") && text.contains(": vector in H"));
/// assert_eq!(text, fem_dsl::testing::random_vectors(3, 2));
/// ```
pub fn random_vectors(seed: u64, dim: usize) -> String {
    let mut random = Random(seed ^ 0x1b87_3593_cc9e_2d51);
    let mut fields = match random.below(3) {
        0 => vec![("E", FieldShape::Curl)],
        1 => vec![("B", FieldShape::Div)],
        _ => vec![("E", FieldShape::Curl), ("B", FieldShape::Div)],
    };
    if random.below(2) == 0 {
        fields.push(("v", [FieldShape::Scalar, FieldShape::Vector][random.below(2)]));
    }
    let options = Options { dim, depth: 1, ..Options::default() };
    let generator =
        Generator { random, options, fields, main: 0, uses_u: true, points: false, normal: false };
    let mut writer = Writer { lines: Lines::new(&format!("vectors_{seed}")), generator };
    writer.declare();
    writer.rows(1);
    if writer.generator.below(2) == 0 {
        let tag = writer.generator.pick(&["x0", "x1", "y0", "y1"]);
        writer.lines.push(1, &format!("on boundary \"{tag}\" {{"));
        writer.generator.normal = true;
        writer.rows(2);
        writer.lines.push(1, "}");
    }
    writer.lines.finish()
}

struct Writer {
    lines: Lines,
    generator: Generator,
}

impl Writer {
    fn declare(&mut self) {
        for (name, shape) in self.generator.fields.clone() {
            let space = match shape {
                FieldShape::Curl => "Hcurl(k)",
                FieldShape::Div => "Hdiv(k)",
                _ => self.generator.pick(&["H1(k)", "L2(k)", "L2(k - 1)"]),
            };
            self.lines.push(1, &format!("field {name}: {} in {space};", shape.text()));
        }
        self.generator.declare_data(&mut self.lines, "vector on nodes in H1(1)");
    }

    fn rows(&mut self, depth: usize) {
        for (field, (name, shape)) in self.generator.fields.clone().into_iter().enumerate() {
            self.generator.main = field;
            let row = self.generator.row0(name, shape);
            self.lines.push(depth, &format!("f0[{name}] = {row};"));
            if self.generator.below(4) > 0 {
                let row = self.generator.row1(name, shape);
                self.lines.push(depth, &format!("f1[{name}] = {row};"));
            }
        }
    }
}
