//! `cargo xtask gallery`: every example, run and drawn → `docs/gallery.md` and its pictures.
//!
//! Each example has the relevant blocks of its file, the command that draws it, and its output: DoFs and seconds.

use std::fmt::Write as _;
use std::fs;
use std::process::Command;

use serde_json::Value;

use crate::{capture, cargo, execute, root};

/// An example of the page.
struct ShownExample {
    /// The file, without `.wf`.
    example: &'static str,
    /// The printed blocks; the last is the drawn problem.
    blocks: &'static [&'static str],
    /// Drawing options.
    options: &'static str,
}

/// Returns one example per line.
const fn shown(
    example: &'static str,
    blocks: &'static [&'static str],
    options: &'static str,
) -> ShownExample {
    ShownExample { example, blocks, options }
}

/// The examples in the order of the page: from simple to coupled and nonlinear ones.
const GALLERY: [ShownExample; 64] = [
    shown("poisson", &["form poisson", "problem ball"], "--slice z=0"),
    shown("poisson_unstructured", &["form poisson", "problem unstructured_ball"], "--slice x=0"),
    shown("three_ways", &["form a", "form b", "form c", "problem stationary"], ""),
    shown("line", &["form layer", "problem channel"], ""),
    shown("supg", &["form supg", "problem skew"], ""),
    shown("points", &["form bending", "problem square"], ""),
    shown("nonlinear", &["form nonlinear", "problem plate"], ""),
    shown("p_laplacian", &["form p_laplacian", "problem disc"], ""),
    shown("film", &["form film", "problem ring"], ""),
    shown("radiation", &["form radiation", "problem plate"], ""),
    shown("capacitor", &["form electrostatics", "problem capacitor"], ""),
    shown("steel", &["form magnet", "problem frame"], "--field flux_density"),
    shown("coil", &["form magnetostatics", "problem coil"], "--slice z=0"),
    shown("eddy_plate", &["form eddy_currents", "problem plate"], "--field 'curl(E_im)'"),
    shown("discontinuous", &["form darcy", "problem soil"], "--field q"),
    shown("darcy", &["form darcy", "problem lens"], ""),
    shown("five_spot", &["form darcy", "problem five_spot"], "--field p"),
    shown("checkerboard", &["form cell", "problem checkerboard"], "--field T"),
    shown("interior_penalty", &["form interior_penalty", "problem chequerboard"], ""),
    shown("continuous_penalty", &["form continuous_penalty", "problem layers"], ""),
    shown("contact", &["form contact", "problem spot"], ""),
    shown("wheel", &["form wheel", "problem driven"], "--field mises --warp 0.3"),
    shown("elasticity", &["form elasticity", "problem bracket"], "--warp 1"),
    shown("kirsch", &["form plate", "problem hole"], "--field mises"),
    shown(
        "thermal",
        &["form heat", "form expansion", "problem warm", "problem plate"],
        "--field u --warp 1",
    ),
    shown("bimetal", &["form bimetal", "problem strip"], "--field stress --warp 10"),
    shown("thick_cylinder", &["form axisymmetric", "problem pipe"], "--field hoop"),
    shown("traction", &["form elasticity", "problem bracket"], "--warp 0.01"),
    shown("obstacle", &["form membrane", "problem ball"], "--field multiplier_u"),
    shown("hertz", &["form cylinder", "problem plane"], "--field pressure"),
    shown("plasticity", &["form plastic", "problem plate"], "--field strain"),
    shown("cantilever", &["form plastic", "problem beam"], "--field strain --warp 2"),
    shown("creep", &["form solid", "problem bracket"], "--warp 1"),
    shown("bratu", &["form bratu", "problem square"], ""),
    shown("neo_hookean", &["form neo_hookean", "problem compression"], "--warp 1"),
    shown("locking", &["form body", "problem beam"], "--warp 5"),
    shown("vibration", &["form elasticity", "form inertia", "problem bracket"], "--warp 60"),
    shown("plates", &["form inertia", "problem free", "problem held"], "--warp 100"),
    shown("plate", &["form clamped", "problem fixed"], ""),
    shown("stokes", &["form stokes", "problem channel"], "--field p"),
    shown("stokes_hdiv", &["form stokes_hdiv", "problem lid"], ""),
    shown(
        "projection",
        &["form predictor", "form projection", "form corrector", "problem lid"],
        "",
    ),
    shown("cavity", &["form navier_stokes", "problem cavity"], ""),
    shown("cylinder", &["form navier_stokes", "problem cylinder"], ""),
    shown("conjugate", &["form conjugate", "problem channel"], "--field T"),
    shown("fluid_structure", &["form coupled", "problem wall"], "--field u"),
    shown("vortices", &["form navier_stokes", "problem vortices"], ""),
    shown("heat", &["form heat", "problem bar"], "--field T"),
    shown("rotation", &["form rotation", "problem turn"], ""),
    shown("front", &["form front", "problem travel"], ""),
    shown("euler", &["form euler", "problem vortex"], "--field rho"),
    shown("shallow_water", &["form shallow_water", "problem pool"], "--field depth"),
    shown("wave", &["form wave", "problem pulse"], ""),
    shown("scattering", &["form scattering", "problem cylinder"], "--field u_re"),
    shown("waveguide", &["form waveguide", "problem block"], "--field E_re[1]"),
    shown("resonator", &["form resonator", "problem lshape"], ""),
    shown("cube", &["form resonator", "problem cube"], "--slice z=0.5"),
    shown("shaken", &["form shaken", "problem bracket"], "--warp 5"),
    shown("phases", &["form phases", "problem separation"], "--field c"),
    shown("gray_scott", &["form gray_scott", "problem spots"], "--field v"),
    shown("adaptive_lshape", &["form laplace", "problem lshape"], "--degree 3"),
    shown("adaptive_fichera", &["form poisson", "problem fichera"], "--slice z=-0.01"),
    shown("adaptive_corner", &["form maxwell", "problem edge"], ""),
    shown("adaptive_shells", &["form poisson", "problem shells"], "--slice z=0"),
];

/// Pixels; a picture should be below 60 kB, and those with many cells have the second size.
const SIZE: [&str; 2] = ["400x300", "340x255"];

/// Examples drawn with many cells, or with a full picture.
const FINE: [&str; 23] = [
    "front",
    "hertz",
    "obstacle",
    "film",
    "coil",
    "resonator",
    "shallow_water",
    "capacitor",
    "poisson",
    "poisson_unstructured",
    "p_laplacian",
    "gray_scott",
    "phases",
    "traction",
    "darcy",
    "scattering",
    "waveguide",
    "wave",
    "neo_hookean",
    "adaptive_lshape",
    "adaptive_fichera",
    "adaptive_corner",
    "adaptive_shells",
];

const HEAD: &str = "\
# Gallery

What the files in `examples` solve, each with its physics, the command that draws it, and what it takes on two cores with AVX-512:
seconds to compile its kernels, once, as they are kept, and seconds of the solve. `cargo xtask gallery` writes this page.
";

/// Runs all examples with a release build and an empty cache.
pub(crate) fn run() -> Result<(), String> {
    let build = ["build", "--release", "--workspace", "--all-features", "--bin", "wf"];
    execute(&mut cargo(&build))?;
    let io = |error: std::io::Error| error.to_string();
    fs::create_dir_all(root().join("docs/gallery")).map_err(io)?;
    let cache = tempfile::tempdir().map_err(io)?;
    let mut page = HEAD.to_owned();
    for shown in &GALLERY {
        page.push_str(&entry(shown, cache.path())?);
    }
    fs::write(root().join("docs/gallery.md"), page).map_err(io)
}

fn entry(shown: &ShownExample, cache: &std::path::Path) -> Result<String, String> {
    let ShownExample { example, blocks, options } = shown;
    let path = format!("examples/{example}.wf");
    let text = fs::read_to_string(root().join(&path)).map_err(|error| error.to_string())?;
    let problem = blocks.last().and_then(|block| block.strip_prefix("problem "));
    let problem = problem.ok_or_else(|| format!("{example} names no problem"))?;
    let alone = text.matches("\nproblem ").count() == 1;
    let which = if alone { String::new() } else { format!(" --problem {problem}") };
    let options = if options.is_empty() { String::new() } else { format!(" {options}") };
    let size = SIZE[usize::from(FINE.contains(example))];
    let command = format!(
        "run {path}{which} --picture docs/gallery/{example}.png --picture-size {size}{options}"
    );
    let output = output_of(&command, cache)?;
    let (doc, lines) = excerpt(&text, blocks)?;
    let mut entry = format!("\n## [{example}](../{path})\n\n");
    if !doc.is_empty() {
        let _ = writeln!(entry, "{doc}\n");
    }
    let _ = write!(entry, "![{example}](gallery/{example}.png)\n\n```wf\n{lines}```\n\n");
    let _ = write!(entry, "```sh\nwf {command}\n```\n\n{output}\n");
    Ok(entry)
}

/// Runs a command, and summarises its output.
fn output_of(command: &str, cache: &std::path::Path) -> Result<String, String> {
    let words = command.split(' ').map(|word| word.trim_matches('\''));
    let words = words.chain(["--json", "--no-output"]);
    let mut wf = Command::new(root().join("target/release/wf"));
    wf.args(words).env("WF_CACHE_DIR", cache).current_dir(root());
    let output = capture(&mut wf)?;
    let value: Value = serde_json::from_str(&output).map_err(|error| error.to_string())?;
    let number = |value: &Value| value.as_f64().ok_or_else(|| format!("no number in {output}"));
    let (dofs, cells) = (number(&value["dofs"])?, number(&value["cells"])?);
    let seconds = &value["seconds"];
    let (compile, solve) = (number(&seconds["compile"])?, number(&seconds["solve"])?);
    let solver = value["solver"].as_str().unwrap_or("?");
    let iterations = number(&value["iterations"])?;
    Ok(format!(
        "{} unknowns on {} cells; kernels in {compile:.1} s, solved in {solve:.2} s by `{solver}` in {iterations} iterations.",
        grouped(dofs),
        grouped(cells)
    ))
}

/// Formats 12345 as 12,345.
fn grouped(number: f64) -> String {
    let digits = format!("{number:.0}");
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at) % 3 == 0 {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// Returns some blocks of a file without their comments, and the comments above them as one text.
fn excerpt(text: &str, blocks: &[&str]) -> Result<(String, String), String> {
    let lines: Vec<&str> = text.lines().collect();
    let (mut docs, mut excerpt) = (Vec::new(), String::new());
    for block in blocks {
        let head =
            |line: &&str| line.strip_prefix(block).is_some_and(|rest| rest.starts_with([' ', '{']));
        let start = lines.iter().position(head).ok_or_else(|| format!("there is no {block}"))?;
        let length = lines[start..].iter().position(|line| *line == "}").unwrap_or_default();
        let above = lines[..start].iter().rev().map_while(|line| line.strip_prefix("/// "));
        let above: Vec<&str> = above.collect();
        docs.extend(above.into_iter().rev());
        if !excerpt.is_empty() {
            excerpt.push('\n');
        }
        for line in &lines[start..=start + length] {
            let _ = writeln!(excerpt, "{line}");
        }
    }
    Ok((docs.join("\n"), excerpt))
}
