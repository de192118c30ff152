//! Expansions of the macro, as text.

use super::*;

fn expanded(text: &str) -> String {
    expand(text.parse().expect("the text should be tokens of Rust")).to_string()
}

#[test]
fn a_right_form_becomes_a_module() {
    let text = expanded("form a { field u: scalar; f0[u] = -u^2; }");
    assert!(text.contains("pub mod a {"), "{text}");
    assert!(text.contains("field u: scalar;") && text.contains("pub fn form ()"), "{text}");
    assert!(!text.contains("extern"), "{text}");
}

#[test]
fn problems_become_functions() {
    let text = expanded(
        "form a { field u: scalar; f0[u] = u; } problem b solves a { mesh = box(dim: 2, cells: 1); }",
    );
    assert!(text.contains("pub mod problem") && text.contains("known_problem (\"b\")"), "{text}");
}

#[test]
fn each_error_becomes_a_compile_error() {
    let text = expanded("form a { field u: scalar; f0[u] = alpha + beta * ; f1[u] = gama; }");
    assert_eq!(text.matches("compile_error").count(), 2, "{text}");
    let text = expanded("form a { field u: scalar; f0[u] = alpha + beta; }");
    assert_eq!(text.matches("compile_error").count(), 2, "{text}");
    assert!(text.contains("unknown name `alpha` [E0201]"), "{text}");
}

#[test]
fn later_items_are_errors() {
    let text = expanded("form a { field u: scalar; f0[u] = mean * u; }");
    assert!(text.contains("[E0910]"), "{text}");
}

#[test]
fn kernels_between_cells_are_compiled_ahead_of_time() {
    let form =
        "form a { field u: scalar in L2(k); f0[u] = u; on interior { f0[jump(u)] = jump(u); } }";
    let text = expanded(&format!("#![ahead_of_time(tri(1, order = 1))] {form}"));
    assert!(!text.contains("compile_error") && text.contains("a_action_pairs1_tri_1"), "{text}");
}

#[test]
fn adaptive_steps_are_checked() {
    let form = "form a { field u: scalar; f0[u] = u; }";
    let problem = |arguments: &str| {
        expanded(&format!("{form} problem b solves a {{ mesh = ball(); adapt({arguments}); }}"))
    };
    let right = problem("steps: 6, fraction: 0.3, until: 1e-3, max_dofs: 1e6, coarsen: 0.03");
    assert!(right.contains("known_problem (\"b\")"), "{right}");
    let wrong = problem("steps: 6, fraction: 3e-1 + 1");
    assert_eq!(wrong.matches("compile_error").count(), 1, "{wrong}");
    assert!(wrong.contains("`fraction` should be a number above 0 and at most 1"), "{wrong}");
}

#[test]
fn kernels_are_generated_for_named_items() {
    let form = "form a { field u: scalar; f0[u] = u; f1[u] = grad(u); }";
    let text = expanded(&format!("#![ahead_of_time(tri(1, order = 1))] {form}"));
    for part in ["mod avx512_2d", "mod avx2_2d", "mod portable_2d", "a_residual_tri_1_nodes_"] {
        assert!(text.contains(part), "{part}: {text}");
    }
    assert!(!text.contains("_tri_2_") && !text.contains("export_name"), "{text}");
}

#[test]
fn unsupported_kernels_are_errors() {
    let form = "form a { field u: vector; f1[u] = cross([1, 2, 3], u)[0] * I; }";
    let text = expanded(&format!("#![ahead_of_time(tri(1))] {form}"));
    assert!(text.contains("no form here holds in the 2 dimensions of a tri"), "{text}");
    let text = expanded(&format!("#![ahead_of_time(tet(9))] {form}"));
    assert!(text.contains("supported are degrees 1 to 4"), "{text}");
}

#[test]
fn keywords_of_rust_name_no_item_but_anything_else() {
    let free =
        "form a { field u: scalar; let where = 2; fn loop(use) = where * use; f0[u] = loop(u); }";
    let text = expanded(free);
    assert!(!text.contains("compile_error") && text.contains("pub mod a {"), "{text}");
    for (wrong, name) in [
        ("form match { field u: scalar; f0[u] = u; }", "match"),
        ("form a { field self: scalar; f0[self] = self; }", "self"),
        ("form a { field u: scalar; param while = 2; f0[u] = while * u; }", "while"),
        (
            "form a { field u: scalar; f0[u] = u; } problem for solves a { mesh = box(dim: 2, cells: 1); }",
            "for",
        ),
    ] {
        let text = expanded(wrong);
        assert_eq!(text.matches("compile_error").count(), 1, "{text}");
        assert!(text.contains(&format!("`{name}` is a keyword of Rust")), "{text}");
    }
}
