//! `wf run --picture`: files in the format of their extension with nonempty contents, and rejections before the solve.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::Value;

const FORMS: &str = "
form poisson { field u: scalar; param f = 1; f0[u] = -f; f1[u] = grad(u); }
form elastic {
    field u: vector;
    aux stiffness: scalar on cells;
    f1[u] = stiffness * sym(grad(u));
}
form curls { field E: vector in Hcurl(k); f0[E] = E; f1[E] = curl(E); }
problem whirl solves curls {
    mesh = box(dim: 2, cells: 4);
    degree = 2;
    dirichlet E = [x[0] * x[1]^2, x[0]^3] on all;
}
problem cube solves poisson { mesh = box(dim: 3, cells: 2); dirichlet u = 0 on all; }
problem ramp solves poisson {
    mesh = box(dim: 3, cells: 2);
    param f = 0;
    dirichlet u = x[0] + 2 * x[1] on all;
}
problem plate solves elastic {
    mesh = box(dim: 2, cells: 4, to: [2, 1], cell: tri);
    aux stiffness = 1 + x[0];
    dirichlet u = [0, 0] on \"x0\";
    dirichlet u = [0.1, 0.2] on \"x1\";
}
";

/// A folder with a file of forms.
struct Stand {
    folder: tempfile::TempDir,
}

impl Stand {
    fn new() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        std::fs::write(folder.path().join("a.wf"), FORMS).expect("written");
        Self { folder }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn run(&self, arguments: &[&str]) -> Output {
        let mut command = Command::new(env!("CARGO_BIN_EXE_wf"));
        command.current_dir(self.folder.path()).env("WF_CACHE_DIR", self.path("cache"));
        command.args(["run", "a.wf", "--interpret", "--no-output", "--quiet"]).args(arguments);
        command.output().expect("wf should start")
    }

    /// Draws, and returns the file.
    fn draw(&self, name: &str, arguments: &[&str]) -> Vec<u8> {
        let picture = ["--picture", name, "--picture-size", "300x240"];
        let output = self.run(&[&picture[..], arguments].concat());
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{arguments:?}: {said}");
        let told = String::from_utf8_lossy(&output.stdout);
        assert!(told.contains(&format!("  picture     {name}\n")), "{told}");
        std::fs::read(self.path(name)).expect("a picture")
    }

    /// Returns the reason for a missing picture.
    fn refusal(&self, arguments: &[&str]) -> String {
        let output = self.run(&[arguments, &["--json"]].concat());
        assert!(!output.status.success(), "{arguments:?}");
        assert!(!self.path("u.png").exists(), "{arguments:?}");
        let text = String::from_utf8_lossy(&output.stdout);
        let value: Value = serde_json::from_str(text.trim()).expect("one object");
        assert!(value.get("iterations").is_none(), "before the solve: {value}");
        value["error"].as_str().expect("a message").to_owned()
    }
}

/// Returns width, height and the colours of a PNG file.
fn decoded(bytes: &[u8]) -> (u32, u32, BTreeSet<[u8; 3]>) {
    let decoder = png::Decoder::new(std::io::Cursor::new(bytes));
    let mut reader = decoder.read_info().expect("PNG");
    let mut pixels = vec![0; reader.output_buffer_size().expect("a size")];
    let info = reader.next_frame(&mut pixels).expect("pixels");
    assert_eq!(info.color_type, png::ColorType::Rgb);
    let colours = pixels.chunks_exact(3).map(|rgb| [rgb[0], rgb[1], rgb[2]]).collect();
    (info.width, info.height, colours)
}

/// Returns whether the colours of a field are present: violet, green and yellow.
fn has_the_colours_of_a_field(colours: &BTreeSet<[u8; 3]>) -> bool {
    let near = |[r, g, b]: [i32; 3]| {
        let close = |c: u8, want: i32| (i32::from(c) - want).abs() < 24;
        colours.iter().any(|&[x, y, z]| close(x, r) && close(y, g) && close(z, b))
    };
    near([0x48, 0x18, 0x6A]) && near([0x21, 0x91, 0x8C]) && near([0xD5, 0xE2, 0x1A])
}

#[test]
fn boundaries_slices_and_deformed_plates_are_drawn() {
    let stand = Stand::new();
    for arguments in [
        &["--problem", "ramp"][..],
        &["--problem", "cube", "--slice", "z=0.5"],
        &["--problem", "cube", "--slice", "x=0.3", "--degree", "2"],
        &["--problem", "plate", "--warp", "2"],
        &["--problem", "plate", "--field", "u[1]", "--warp", "-5e-1"],
        &["--problem", "plate", "--field", "stiffness"],
        &["--problem", "whirl", "--field", "curl(E)"],
    ] {
        let (width, height, colours) = decoded(&stand.draw("u.png", arguments));
        assert_eq!((width, height), (300, 240));
        assert!(colours.len() > 100, "{arguments:?}: {}", colours.len());
        assert!(has_the_colours_of_a_field(&colours), "{arguments:?}");
    }
}

#[test]
fn one_value_is_drawn_and_said() {
    let stand = Stand::new();
    let picture = ["--picture", "u.png", "--picture-size", "300x240"];
    let output = stand.run(&[&picture[..], &["--problem", "cube", "--json"]].concat());
    let value: Value = serde_json::from_slice(&output.stdout).expect("one object");
    assert_eq!(value["picture"], "u.png");
    let note = value["notes"][0].as_str().expect("a note");
    assert!(note.contains("all of the boundary is 0") && note.contains("--slice z=0.5"), "{note}");
    assert!(decoded(&std::fs::read(stand.path("u.png")).expect("a picture")).2.len() > 10);
}

/// Returns whether opened elements are closed, in order.
fn is_well_formed(text: &str) -> bool {
    let mut open: Vec<&str> = Vec::new();
    for tag in text.split('<').skip(1) {
        let (tag, _) = tag.split_once('>').unwrap_or((tag, ""));
        let name = tag.trim_start_matches('/').split([' ', '/']).next().unwrap_or_default();
        if tag.starts_with('/') {
            if open.pop() != Some(name) {
                return false;
            }
        } else if !tag.ends_with('/') {
            open.push(name);
        }
    }
    open.is_empty()
}

#[test]
fn vectors_stay_vectors() {
    let stand = Stand::new();
    let text = stand.draw("u.svg", &["--problem", "ramp"]);
    let text = String::from_utf8(text).expect("UTF-8");
    assert!(is_well_formed(&text));
    for part in [
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"300\" height=\"240\"",
        "<title>ramp: u on the boundary</title>",
        "data:image/png;base64,iVBORw0KGgo",
        ">ramp: u on the boundary</text>",
        "<path d=\"M",
        ">3</text>",
        ">z</text>",
    ] {
        assert!(text.contains(part), "{part}");
    }
    assert!(text.len() < 100_000, "{}", text.len());
}

#[test]
fn what_cannot_be_drawn_is_refused_before_the_solve() {
    let stand = Stand::new();
    for (arguments, words) in [
        (
            &["--problem", "ramp", "--field", "v"][..],
            ["--field: there is no field `v`", "there are u"],
        ),
        (&["--problem", "ramp", "--field", "u[1]"], ["names no number of `u`", "`u`"]),
        (
            &["--problem", "plate", "--field", "u[2]"],
            ["which is a vector of 2", "`u[0]` to `u[1]`"],
        ),
        (
            &["--problem", "ramp", "--slice", "z=2"],
            ["--slice: the plane z = 2", "z goes from 0 to 1"],
        ),
        (
            &["--problem", "plate", "--slice", "z=0"],
            ["only a body has a slice", "leave the slice out"],
        ),
        (&["--problem", "ramp", "--warp", "10"], ["no vector field of 3 components", "--warp"]),
        (&[], ["--picture names one file", "choose one with --problem NAME"]),
    ] {
        let said = stand.refusal(&[&["--picture", "u.png"], arguments].concat());
        assert!(words.iter().all(|word| said.contains(word)), "{arguments:?}: {said}");
    }
    for (arguments, word) in [
        (["--picture", "u.png", "--slice", "z"], "expected x=0.5, y=0.5 or z=0.5"),
        (["--picture", "u.png", "--picture-size", "10x10"], "expected 1600x1200"),
        (["--problem", "ramp", "--slice", "z=0"], "--picture"),
    ] {
        let said = stand.refusal(&arguments);
        assert!(said.contains(word), "{arguments:?}: {said}");
    }
}

/// A minimal test that the library draws like the program.
#[test]
fn a_path_of_the_library_must_end_in_a_format() {
    let options = weakform::picture::PictureOptions::default();
    weakform::weak_form! {
        form laplace { field u: scalar; f1[u] = grad(u); }
        problem square solves laplace { mesh = box(dim: 2, cells: 1); dirichlet u = x[0] on all; }
    }
    let solution = laplace::problem::square().run().expect("a solution");
    let error = solution.picture(Path::new("u.gif"), &options).expect_err("no such format");
    assert!(error.to_string().contains("name it u.png"), "{error}");
}

/// Two lines over logarithmic axes, one of them with its reference: marks, ticks, names and dashes, letter by letter.
#[test]
fn a_chart_is_drawn_the_same_everywhere() {
    use weakform::picture::{Axis, Chart, Scale, Series, write_charts};
    let axis = |name: &str| Axis { name: name.into(), scale: Scale::Logarithmic };
    let line = |name: &str, points: &[(f64, f64)], dashed: &[(f64, f64)]| Series {
        name: name.into(),
        points: points.to_vec(),
        dashed: dashed.to_vec(),
        is_plain: false,
        fits_dashed: false,
    };
    let series = vec![
        line(
            "u, k = 1",
            &[(0.2, 4e-2), (0.1, 1e-2), (0.05, 2.5e-3)],
            &[(0.2, 4e-1), (0.05, 2.5e-3)],
        ),
        line("u < v", &[(0.2, 1e-3), (0.1, 1e-4)], &[]),
    ];
    let (x, y) = (axis("size of cells"), axis("error in L2"));
    let chart = Chart { x, y, series, dashed: "expected order".into() };
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("chart.svg");
    write_charts(&path, "Errors", &[chart]).expect("written");
    insta::assert_snapshot!(std::fs::read_to_string(path).expect("a picture"));
}
