//! Problems with more than one solution: none of them is returned.

use weakform::{Form, mesh};

use super::gallery::{Said, Stand};

/// Returns unit squares, one cell each, at these positions along x; their left sides are tagged `left0`, `left1` and so
/// on.
fn squares(at: &[f64]) -> String {
    let (mut nodes, mut elements, mut names) = (Vec::new(), Vec::new(), Vec::new());
    for (i, x) in at.iter().enumerate() {
        let first = 4 * i + 1;
        for (dx, y) in [(0.0, 0), (1.0, 0), (1.0, 1), (0.0, 1)] {
            nodes.push(format!("{} {} {y} 0", nodes.len() + 1, x + dx));
        }
        elements.push(format!("3 2 1 1 {} {} {} {first}", first + 1, first + 2, first + 3));
        elements.push(format!("1 2 {} 1 {first} {}", i + 2, first + 3));
        names.push(format!("1 {} \"left{i}\"", i + 2));
    }
    let numbered: Vec<String> =
        elements.iter().enumerate().map(|(i, element)| format!("{} {element}", i + 1)).collect();
    format!(
        "$MeshFormat\n2.2 0 8\n$EndMeshFormat\n$PhysicalNames\n{}\n{}\n$EndPhysicalNames\n\
         $Nodes\n{}\n{}\n$EndNodes\n$Elements\n{}\n{}\n$EndElements\n",
        names.len(),
        names.join("\n"),
        nodes.len(),
        nodes.join("\n"),
        numbered.len(),
        numbered.join("\n"),
    )
}

/// Returns a form and a problem with these items.
fn stand(form: &str, items: &str) -> Stand {
    Stand::with(format!("form f {{ {form} }}\nproblem q solves f {{ {items} }}\n"))
}

const POISSON: &str = "field u: scalar; f0[u] = -1; f1[u] = grad(u);";
const ELASTIC: &str =
    "field u: vector; let e = sym(grad(u)); f0[u] = -x; f1[u] = tr(e) * I + 2 * e;";
const STOKES: &str = "field u: vector; field p: scalar in H1(k - 1); \
                      f0[u] = -x; f1[u] = grad(u) - p * I; f0[p] = -div(u);";

fn refused(form: &str, items: &str, words: &[&str]) {
    let stand = stand(form, items);
    stand.write("two.msh", squares(&[0.0, 2.0]));
    let place = stand.place("q solves");
    stand.refuses_run(&[], Said { code: Some("E0412"), place: Some(place), words });
}

fn solved(form: &str, items: &str) -> String {
    let stand = stand(form, items);
    stand.write("two.msh", squares(&[0.0, 2.0]));
    let output = stand.output(&["run", "a.wf", "--interpret", "--no-output"]);
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{form}\n{items}\n{said}");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

#[test]
fn two_parts_and_one_mean_leave_a_constant() {
    let two =
        ["`mean` fixes one constant, and nothing fixes `u`", "one of the 2 parts", "(2.5, 0.5, 0)"];
    let balanced = "field u: scalar; f0[u] = x[1] - 1 / 2; f1[u] = grad(u);";
    refused(balanced, "mesh = \"two.msh\"; mean u = 0;", &two);
    solved(balanced, "mesh = box(dim: 2, cells: 2); mean u = 0;");
}

#[test]
fn each_part_needs_a_condition() {
    let words = [
        "nothing fixes `u` on one of the 2 parts of the mesh, at (2.5, 0.5, 0)",
        "reach each part",
    ];
    refused(POISSON, "mesh = \"two.msh\"; dirichlet u = 0 on \"left0\";", &words);
    refused(POISSON, "mesh = \"two.msh\"; dirichlet u = 0 on \"left1\";", &["at (0.5, 0.5, 0)"]);
    refused(POISSON, "mesh = \"two.msh\";", &["nothing fixes `u`: its solution"]);
    let vector = "field u: vector; f0[u] = -x; f1[u] = grad(u);";
    let half =
        "mesh = \"two.msh\"; dirichlet u = [0, 0] on \"left0\"; dirichlet u[0] = 0 on \"left1\";";
    refused(vector, half, &["component 1 of `u` on one of the 2 parts"]);
    // A term on the boundary determines the component of the mesh that it is on.
    let robin = format!("{POISSON} on boundary \"left1\" {{ f0[u] = u; }}");
    solved(&robin, "mesh = \"two.msh\"; dirichlet u = 0 on \"left0\";");
    refused(&robin, "mesh = \"two.msh\";", &["one of the 2 parts of the mesh, at (0.5, 0.5, 0)"]);
    solved(POISSON, "mesh = \"two.msh\"; dirichlet u = 0 on \"left0\", \"left1\";");
    // It is also detected for a nonlinear form.
    let nonlinear = "field u: scalar; f0[u] = -1; f1[u] = (1 + dot(grad(u), grad(u))) * grad(u);";
    refused(nonlinear, "mesh = \"two.msh\"; dirichlet u = 0 on \"left0\";", &words);
}

/// One pressure for each closed component, even if another one is open.
#[test]
fn pressures_of_closed_parts_need_a_mean() {
    let closed = "mesh = box(dim: 2, cells: 2); degree = 2; dirichlet u = [0, 0];";
    refused(
        STOKES,
        closed,
        &["nothing fixes `p`: its solution is known up to a constant", "mean p"],
    );
    solved(STOKES, &format!("{closed} mean p = 0;"));
    solved(
        STOKES,
        "mesh = box(dim: 2, cells: 2); degree = 2; dirichlet u = [0, 0] on \"x0\", \"y0\";",
    );
    let two = "mesh = \"two.msh\"; degree = 2; dirichlet u = [0, 0]; mean p = 0;";
    refused(STOKES, two, &["`mean` fixes one constant, and nothing fixes `p`", "(2.5, 0.5, 0)"]);
}

#[test]
fn forms_that_are_zero_have_no_solution() {
    let held = "mesh = box(dim: 2, cells: 2); dirichlet u = 0;";
    let words = ["no term of the form determines `u` at (0.5, 0.5, 0)", "coefficient is not 0"];
    for form in [
        "field u: scalar; f1[u] = 0 * grad(u);",
        "field u: scalar; f0[u] = -1; f1[u] = 0 * grad(u);",
        "field u: scalar; param c = 0; f0[u] = c * u - 1; f1[u] = c * grad(u);",
        "field u: scalar; aux c: scalar on cells; f0[u] = -1; f1[u] = c * grad(u);",
        "field u: scalar; aux c: scalar; f0[u] = -1; f1[u] = (c - 1) * grad(u);",
        "field u: scalar; f1[u] = 0 * grad(u); on boundary \"x0\" { f0[u] = u; }",
    ] {
        let value = if form.contains("c - 1") { "1" } else { "0" };
        let aux = if form.contains("aux") { format!("aux c = {value};") } else { String::new() };
        refused(form, &format!("{held} {aux}"), &words);
    }
    // A coefficient that vanishes in a part of the domain, and a component without any term.
    let half = "field u: scalar; let c = if x[0] < 1 / 2 { 1 } else { 0 }; f0[u] = -c; f1[u] = c * grad(u);";
    let items = "mesh = box(dim: 2, cells: 4); dirichlet u = 0 on \"x0\";";
    refused(half, items, &["no term of the form determines `u` at (0.75, 0, 0)"]);
    let one = "field u: vector; f0[u] = [u[0], 0]; f1[u] = grad(u) * 0;";
    refused(one, "mesh = box(dim: 2, cells: 2);", &["component 1 of `u`"]);
    // With a mass term nothing is missing, however small it is; a parameter may remove it.
    let mass = "field u: scalar; param m = 1e-9; f0[u] = m * (u - 1); f1[u] = grad(u);";
    solved(mass, "mesh = box(dim: 2, cells: 2);");
    refused(mass, "mesh = box(dim: 2, cells: 2); param m = 0;", &["nothing fixes `u`"]);
    // A form on the boundary only is one in which every DoF is on the boundary.
    let boundary =
        "field u: scalar; f1[u] = 0 * grad(u); on boundary \"x0\", \"x1\" { f0[u] = u - x[0]; }";
    solved(boundary, "mesh = box(dim: 2, cells: 1);");
}

/// One component on a side that permits sliding, and another on one that permits sliding, too.
#[test]
fn elastic_bodies_may_not_turn() {
    let square = "mesh = box(dim: 2, cells: 2, deform: 0.1);";
    let turns = format!("{square} dirichlet u[0] = 0 on \"y0\"; dirichlet u[1] = 0 on \"x0\";");
    refused(ELASTIC, &turns, &["the conditions on `u` let the part at", "turn", "rigid motion"]);
    solved(
        ELASTIC,
        &format!("{square} dirichlet u[0] = 0 on \"x0\"; dirichlet u[1] = 0 on \"y0\";"),
    );
    // A spring on a side prevents it, and so does a form whose null space does not contain all rigid motions.
    let spring = format!("{ELASTIC} on boundary \"x1\" {{ f0[u] = 1e-6 * u; }}");
    solved(&spring, &turns);
    solved("field u: vector; f0[u] = -x; f1[u] = grad(u);", &turns);
    let cube = "mesh = box(dim: 3, cells: 1, cell: tet);";
    let about_z =
        "dirichlet u[0] = 0 on \"y0\"; dirichlet u[1] = 0 on \"x0\"; dirichlet u[2] = 0 on \"z0\";";
    refused(ELASTIC, &format!("{cube} {about_z}"), &["turn"]);
    solved(ELASTIC, &format!("{cube} dirichlet u = [0, 0, 0] on \"x0\";"));
}

/// A round wall permits a rotation: neither the factorisation of a matrix with condition number 8e17, nor displacements
/// of 3e5 due to errors of the wall's normals are a solution.
#[test]
fn a_body_may_not_turn_inside_a_round_wall() {
    let round = |mesh: &str, degree: usize| {
        format!("mesh = shell({mesh}); degree = {degree}; dirichlet dot(u, n) = 0 on \"outer\";")
    };
    let words = ["turn about (0, 0)", "rigid motion", "dirichlet u["];
    // Exact normals, and some with an error of 1e-7.
    refused(ELASTIC, &round("dim: 2, refine: 1, order: 2", 2), &words);
    refused(ELASTIC, &round("dim: 2, order: 4", 4), &words);
    let coarse = solved(ELASTIC, &round("dim: 2, refine: 1, order: 3", 3));
    assert!(
        coarse.contains("turn about (0, 0) but for the error of the mesh's normals"),
        "{coarse}"
    );
    // Nothing is reported for constrained bodies, nor for a form whose rigid motions take energy.
    let held = format!("{} dirichlet u[1] = 0 on \"inner\";", round("dim: 2, order: 4", 4));
    assert!(!solved(ELASTIC, &held).contains("turn"));
    let gradient = "field u: vector; f0[u] = -x; f1[u] = grad(u);";
    assert!(!solved(gradient, &round("dim: 2, refine: 1, order: 3", 3)).contains("turn"));
    // By symmetry the normals of the coarsest shell are exact.
    refused(ELASTIC, &round("dim: 3, refine: 0, order: 2", 2), &["turn about the axis"]);
    let solid = solved(ELASTIC, &round("dim: 3, refine: 1, order: 2", 2));
    assert!(solid.contains("turn about the axis"), "{solid}");
    assert!(solid.contains("but for the error of the mesh's normals"), "{solid}");
}

/// The condition in the help, inserted into the problem.
#[test]
fn the_proposed_condition_prevents_the_rigid_motion() {
    for items in [
        "mesh = box(dim: 2, cells: 2); dirichlet u = [0, 0] at [0, 0];",
        "mesh = box(dim: 3, cells: 2); dirichlet u = [0, 0, 0] at [0, 0, 0]; dirichlet u[2] = 0 at [1, 0, 0]; \
         dirichlet u[2] = 0 at [0, 1, 0];",
        "mesh = shell(dim: 2, refine: 1, order: 2); degree = 2; dirichlet dot(u, n) = 0 on \"outer\";",
    ] {
        let output = stand(ELASTIC, items).output(&["run", "a.wf", "--interpret", "--no-output"]);
        let said = String::from_utf8_lossy(&output.stderr);
        let proposed = said.split("help: add `").nth(1).and_then(|rest| rest.split('`').next());
        let proposed = proposed.unwrap_or_else(|| panic!("{items}: {said}"));
        assert!(proposed.starts_with("dirichlet u[") && proposed.contains("at ["), "{proposed}");
        solved(ELASTIC, &format!("{items} {proposed}"));
    }
}

#[test]
fn systems_of_the_library_are_looked_at_too() {
    let system = |form: &str, tags: [&str; 2]| {
        let form = Form::parse(&format!("form f {{ {form} }}"), "f").expect("a form");
        let square = mesh("box(dim: 2, cells: 2)").expect("a mesh");
        let setup = form.on(square).execution(weakform::Execution::Interpreted);
        let [first, second] = tags;
        let setup = setup.dirichlet_component("u", 0, first, |_| 0.0);
        setup.dirichlet_component("u", 1, second, |_| 0.0).build().expect("a system")
    };
    let mut turns = system(ELASTIC, ["y0", "x0"]);
    let mut u = turns.vector();
    let error = turns.solve(&mut u).expect_err("a rotation is left").to_string();
    assert!(error.contains("turn"), "{error}");
    let mut held = system(ELASTIC, ["x0", "y0"]);
    let mut u = held.vector();
    assert!(held.solve(&mut u).is_ok());
}
