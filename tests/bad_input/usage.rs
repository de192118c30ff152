//! Requests on the command line that have no effect, or only a partial one: each is reported, and none hangs.

use std::io::Write as _;
use std::process::{Output, Stdio};

use serde_json::Value;

use super::gallery::{FORM, Said, Stand, at, plain_failure, said};

const BOX: &str = "mesh = box(dim: 2, cells: 2); dirichlet u = 0;";
const RUN: [&str; 3] = ["run", "a.wf", "--interpret"];

/// Runs `wf` with a text on standard input.
fn with_input(stand: &Stand, arguments: &[&str], text: &[u8]) -> Output {
    let mut command = stand.command(arguments);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().expect("wf should start");
    // The reader may close the pipe early.
    let _ = child.stdin.take().expect("a pipe").write_all(text);
    child.wait_with_output().expect("wf should end")
}

fn lines(output: &Output) -> Vec<Value> {
    let text = std::str::from_utf8(&output.stdout).expect("UTF-8");
    text.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect()
}

fn errors(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn options_without_effect_are_warned_of() {
    let stand = Stand::with(FORM);
    // The suite has no such problem, so that nothing is measured.
    let bench = ["bench", "--problem", "none"];
    let cases: [(&[&str], &str, &str); 8] = [
        (&["emit", "a.wf", "--stage", "point", "--degree", "3"], "--degree", "--stage plan"),
        (&["emit", "a.wf", "--stage", "parse", "--cell", "hex"], "--cell", "the whole file"),
        (&["emit", "a.wf", "--stage", "plan", "--strategy", "cell_per_lane"], "--strategy", "cuda"),
        (
            &["emit", "a.wf", "--stage", "plan", "--target", "cuda", "--isa", "avx2"],
            "--isa",
            "--target rust",
        ),
        (&[&bench[..], &["--cells", "4"]].concat(), "--cells", "it is for devices"),
        (&[&bench[..], &["--slots", "256x4"]].concat(), "--slots", "it is for devices"),
        (&[&bench[..], &["--in-place", "true"]].concat(), "--in-place", "it is for devices"),
        (
            &["verify", "none.wf", "--backend", "cpu", "--no-kernels"],
            "--backend",
            "none are compared",
        ),
    ];
    for (arguments, option, because) in cases {
        let said = format!("warning: `{option}` has no effect: ");
        let text = errors(&stand.output(arguments));
        assert_eq!(text.matches(&said).count(), 1, "{arguments:?}: {text}");
        assert!(text.contains(because) && text.contains("\nhelp: leave it out"), "{text}");
        let output = stand.output(&[arguments, &["--json"]].concat());
        let [value] = &lines(&output)[..] else { panic!("{arguments:?}: one line") };
        let warnings = value["warnings"].as_array().expect("warnings");
        let about = |warning: &&Value| {
            warning["message"]
                .as_str()
                .is_some_and(|text| text.starts_with(&said["warning: ".len()..]))
        };
        let about: Vec<&Value> = warnings.iter().filter(about).collect();
        let [warning] = &about[..] else { panic!("{arguments:?}: {value}") };
        assert_eq!(warning["severity"], "warning", "{warning}");
        assert!(warning["message"].to_string().contains(because), "{warning}");
        assert_eq!(warning["help"][0], "leave it out");
    }
    for arguments in [&["emit", "a.wf", "--stage", "plan", "--degree", "3"][..], &["check", "a.wf"]]
    {
        let output = stand.output(&[arguments, &["--json"]].concat());
        assert!(output.status.success() && errors(&output).is_empty(), "{arguments:?}");
        assert_eq!(lines(&output)[0]["warnings"], Value::Array(Vec::new()), "{arguments:?}");
    }
}

#[test]
fn outputs_of_other_formats_are_refused_before_the_work() {
    let stand = Stand::problem(BOX);
    for (name, right) in [("x.png", "x.vtu"), ("x.xdmf", "x.vtu"), ("u.vtu.gz", "u.vtu")] {
        let extension = name.rsplit('.').next().expect("an extension");
        let words = [
            format!("not written as `.{extension}`, only as `.vtu`"),
            format!("help: name it {right}"),
        ];
        let words = [words[0].as_str(), words[1].as_str()];
        stand.refuses_run(&["--output", name], said(&words));
        // Missing input files are not reported first.
        stand.refuses(&["run", "none.wf", "-o", name], said(&words));
    }
    let words =
        &["a picture is not written as `.jpg`, only as `.png` or `.svg`", "help: name it x.png"];
    stand.refuses(&["verify", "a.wf", "--plot", "x.jpg"], said(words));
    stand.refuses_run(&["--picture", "x.jpg"], said(words));
    stand.refuses(&["run", "none.wf", "--picture", "x.jpg"], said(words));
    stand.refuses_run(&["--picture", "x"], said(&["PNG or SVG", "help: name it x.png"]));
    stand.refuses_run(&["--picture", "-"], said(&["a picture goes to a file"]));
    stand.refuses(&["verify", "a.wf", "--plot", "-"], said(&["standard output takes the result"]));
    let output = stand.output(&["bench", "--problem", "BP1", "--plot", "x.jpg"]);
    assert!(plain_failure(&output, &["bench"]).contains(words[0]));
    for name in ["u.VTU", "u"] {
        let output = stand.output(&[&RUN[..], &["--output", name]].concat());
        assert!(output.status.success(), "{}", errors(&output));
        let written = std::fs::read(stand.path(name)).expect("written");
        assert!(written.starts_with(b"<?xml"), "{name}");
    }
}

#[test]
fn files_that_cannot_be_standard_output_are_not_called_like_it() {
    let stand = Stand::problem(BOX);
    let report = ["a table of reports goes to a file", "help: name one, `--report a.csv`"];
    stand.refuses_run(&["--report", "-"], said(&report));
    let folder = ["the files of a system go to a folder", "help: name one, `--output a`"];
    stand.refuses(&["assemble", "a.wf", "-o", "-"], said(&folder));
    stand.refuses_run(&["--checkpoint", "-"], said(&["a checkpoint goes to a file"]));
}

#[test]
fn a_solution_on_standard_output_is_alone_there() {
    let stand = Stand::problem(BOX);
    let arguments = [&RUN[..], &["--output", "-"]].concat();
    let output = stand.output(&arguments);
    assert!(output.status.success(), "{}", errors(&output));
    stand.output(&[&RUN[..], &["--output", "u.vtu"]].concat());
    assert_eq!(output.stdout, std::fs::read(stand.path("u.vtu")).expect("written"));
    assert!(errors(&output).contains("output      standard output"), "{}", errors(&output));
    assert!(!stand.path("-").exists());
    let both = stand.output(&[&arguments[..], &["--json"]].concat());
    assert_eq!(both.status.code(), Some(2));
    assert!(lines(&both)[0]["error"].as_str().is_some_and(|error| error.contains("--json")));
    let emitted = stand.output(&["emit", "a.wf", "--stage", "check", "-o", "-"]);
    assert!(String::from_utf8_lossy(&emitted.stdout).contains("form p"));
    assert!(!stand.path("-").exists());
}

/// Two unsolvable problems around a solvable one.
#[test]
fn a_problem_that_fails_keeps_no_other_from_being_solved() {
    let stand = Stand::with(format!(
        "{FORM}problem gone solves p {{ mesh = \"gone.msh\"; dirichlet u = 0; }}\n\
         problem good solves p {{ {BOX} }}\n\
         problem slow solves p {{ {BOX} solver = cg(rtol: 1e-12, max_iterations: 1); }}\n"
    ));
    let arguments = [&RUN[..], &["--degree", "3"]].concat();
    let output = stand.output(&arguments);
    let (text, said) = (String::from_utf8_lossy(&output.stdout), errors(&output));
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(text.starts_with("good (p)\n") && text.contains("good.vtu"), "{text}");
    assert!(stand.path("good.vtu").exists());
    for words in ["error[E0413]", "cg did not converge", "`gone` is not", "`slow` is not"] {
        assert!(said.contains(words), "{words}: {said}");
    }
    let output = stand.output(&[&arguments[..], &["--json"]].concat());
    assert_eq!(output.status.code(), Some(1));
    let [gone, good, slow] = &lines(&output)[..] else { panic!("three lines") };
    for (value, name) in [(gone, "gone"), (good, "good"), (slow, "slow")] {
        assert_eq!(value["problem"], name, "{value}");
        assert_eq!(value["error"].is_string(), name != "good", "{value}");
        assert!(value["warnings"].is_array(), "{value}");
    }
    assert_eq!(gone["diagnostics"][0]["code"], "E0413", "{gone}");
    let verify = ["verify", "a.wf", "--json", "--interpret", "--no-kernels", "--degree", "1"];
    let output = stand.output(&[&verify[..], &["--levels", "2", "--dofs", "100"]].concat());
    let values = lines(&output);
    assert_eq!(
        values.iter().map(|value| &value["problem"]).collect::<Vec<_>>(),
        ["gone", "good", "slow"]
    );
    assert!(values[0]["error"].is_string() && values[1]["holds"].is_boolean(), "{values:?}");
}

#[test]
fn each_file_that_is_checked_has_its_line() {
    let stand = Stand::with(FORM);
    stand.write("b.wf", "form b { field u: scalar; f0[u] = +; }");
    let output = stand.output(&["check", "a.wf", "b.wf", "gone.wf", "--json"]);
    assert_eq!(output.status.code(), Some(1));
    let [good, wrong, gone] = &lines(&output)[..] else { panic!("three lines") };
    assert_eq!((&good["file"], &good["forms"][0]["name"]), (&"a.wf".into(), &"p".into()));
    assert_eq!((&wrong["file"], &gone["file"]), (&"b.wf".into(), &"gone.wf".into()));
    assert_eq!(wrong["diagnostics"][0]["code"], "E0101");
    assert!(gone["error"].as_str().is_some_and(|error| error.contains("cannot read gone.wf")));
    let output = stand.output(&["check", "a.wf", "b.wf"]);
    assert!(
        String::from_utf8_lossy(&output.stdout).starts_with("a.wf: form p: good in 1, 2 and 3")
    );
}

#[test]
fn standard_input_is_read_by_all() {
    let stand = Stand::new();
    let text = format!("{FORM}problem q solves p {{ {BOX} }}\n");
    let verify = ["verify", "-", "--interpret", "--no-kernels", "--degree", "1", "--levels", "2"];
    let cases: [(&[&str], &str); 6] = [
        (&["check", "-"], "<stdin>: form p: good in 1, 2 and 3 dimensions"),
        (&["run", "-", "--interpret"], "q (p)"),
        (&["probe", "-", "--interpret", "--at", "u=1"], "R(u)·v"),
        (&["emit", "-", "--stage", "check"], "form p"),
        (&["fmt", "-"], "form p {\n"),
        (&[&verify[..], &["--dofs", "100"]].concat(), "q (p), quad cells"),
    ];
    for (arguments, words) in cases {
        let output = with_input(&stand, arguments, text.as_bytes());
        let found = String::from_utf8_lossy(&output.stdout);
        assert!(found.contains(words), "{arguments:?}: {found}{}", errors(&output));
    }
    assert!(stand.path("q.vtu").exists());
    // A form without a problem is verified on a generated mesh: the text is read once.
    let output = with_input(&stand, &[&verify[..], &["--dofs", "100"]].concat(), FORM.as_bytes());
    assert!(String::from_utf8_lossy(&output.stdout).contains("verify_p"), "{}", errors(&output));

    let wrong = b"form a { field u: scalar; f0[u] = v; }";
    let output = with_input(&stand, &["check", "-", "--json"], wrong);
    let value = &lines(&output)[0];
    assert_eq!(
        (&value["file"], &value["diagnostics"][0]["file"]),
        (&"<stdin>".into(), &"<stdin>".into())
    );
    let output = with_input(&stand, &["run", "-"], wrong);
    assert!(errors(&output).contains("--> <stdin>:1:35"), "{}", errors(&output));
    let gone = format!("{FORM}problem q solves p {{ mesh = \"gone.msh\"; dirichlet u = 0; }}\n");
    let output = with_input(&stand, &["run", "-"], gone.as_bytes());
    assert!(errors(&output).contains("cannot read the mesh file gone.msh"), "{}", errors(&output));
}

/// Endless input is read up to the limit.
#[cfg(target_os = "linux")]
#[test]
fn endless_files_are_not_read_for_ever() {
    let stand = Stand::problem(BOX);
    let too_long = Said {
        code: Some("E0110"),
        place: None,
        words: &["/dev/zero is longer than 1048576 bytes"],
    };
    for arguments in [
        &["check", "/dev/zero"][..],
        &["run", "/dev/zero"],
        &["fmt", "/dev/zero"],
        &["emit", "/dev/zero"],
        &["verify", "/dev/zero"],
        &["probe", "/dev/zero", "--at", "u=1"],
    ] {
        stand.refuses(arguments, too_long);
    }
    let output = with_input(&stand, &["check", "-"], &vec![b'/'; 2 << 20]);
    assert!(errors(&output).contains("error[E0110]"), "{}", errors(&output));
    let mesh = at(
        "E0413",
        ("--mesh", 1, 1),
        &["/dev/zero", "expected a mesh of Gmsh", "Abaqus", "-save -o"],
    );
    stand.refuses_run(&["--mesh", "/dev/zero"], mesh);
    std::fs::create_dir(stand.path("folder")).expect("a folder");
    stand.refuses(&["check", "folder"], said(&["cannot read folder", "help: "]));
}

/// The stacks of a thousand threads do not fit into 8 GB of address space.
#[cfg(target_os = "linux")]
#[test]
fn threads_that_cannot_be_started_are_said() {
    let stand = Stand::problem(BOX);
    const LIMIT: u32 = 8_000_000;
    let limited = |arguments: &[&str], kilobytes: u32| {
        let wf = stand.command(arguments);
        let mut command = std::process::Command::new("sh");
        command.args(["-c", &format!("ulimit -v {kilobytes}; exec \"$@\""), "sh"]);
        command.arg(wf.get_program()).args(wf.get_args()).current_dir(stand.path(""));
        command.env("WF_CACHE_DIR", stand.cache()).output().expect("sh should start")
    };
    let arguments = [&RUN[..], &["--no-output", "--threads", "200"]].concat();
    let text = plain_failure(&limited(&arguments, LIMIT), &arguments);
    for words in ["cannot start 200 threads", "64 MiB", "ulimit -u", "ulimit -v", "--threads"] {
        assert!(text.contains(words), "{words}: {text}");
    }
    let none = limited(&[&RUN[..], &["--no-output"]].concat(), 70_000);
    assert!(errors(&none).contains("cannot start 1 thread with"), "{}", errors(&none));
    let few = [&RUN[..], &["--no-output", "--threads", "2"]].concat();
    assert!(limited(&few, LIMIT).status.success());
    let output = stand.output(&arguments);
    assert!(output.status.success(), "{}", errors(&output));
}
