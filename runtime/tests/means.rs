//! Fields determined up to a constant, on several processes (as threads): results agree with those of one process.

use fem_dsl::check::problem::Overrides;
use fem_dsl::source::Source;
use runtime::kernels::compile::{Execution, Target};
use runtime::mesh::Mesh;
use runtime::problem::run;
use runtime::processes::threads::each;
use runtime::solve::Continue;
use std::path::Path;
use std::sync::Arc;

const FORMS: &str = "
form stokes { field u: vector in H1(k); field p: scalar in H1(k - 1); f0[u] = [x[1], -x[0]^2]; f1[u] = grad(u) - p * I; f0[p] = -div(u); }
form neumann { field p: scalar; f0[p] = x[0] - x[1] ; f1[p] = (1 + x[0]) * grad(p); }
";

/// Returns the values of a field at its nodes, by position, and its mean on the whole mesh.
fn found(form: &str, items: &str, size: usize) -> Vec<Vec<([i64; 2], f64)>> {
    let text = format!(
        "{FORMS} problem p solves {form} {{ mesh = box(dim: 2, cells: 6); mean p = 4; {items} }}"
    );
    let (program, errors) = fem_dsl::program::compile(&Source::new("test", &text));
    let program = program.unwrap_or_else(|| panic!("{errors:?}"));
    let (source, _) = program.mesh("p", &Overrides::default()).expect("a mesh");
    let mesh = Arc::new(runtime::mesh::load(&source, Path::new("..")).expect("a mesh"));
    let problem = program.problem("p", 2, &Overrides::default()).expect("a problem");
    let target = Target { execution: Execution::Interpreted, ..Target::native() };
    let solve = |mesh: Arc<Mesh>| {
        let solution = run(&problem, mesh, &target.into(), &mut |_| Continue::Yes);
        let solution = solution.unwrap_or_else(|error| panic!("{error}\n{text}"));
        let on = &solution.context.on;
        let field = on.fields.len() - 1;
        let points = on.fields[field].space.points(&on.mesh, &on.partition).expect("points");
        let values = &solution.u[on.dofs_of(field)];
        let place = |x: &[f64; 3]| [0, 1].map(|c| (x[c] * 1e6).round() as i64);
        points.iter().zip(values).map(|(x, &p)| (place(x), p)).collect::<Vec<_>>()
    };
    match size {
        1 => vec![solve(mesh)],
        _ => each(size, |group| solve(mesh.clone().part(&group))),
    }
}

#[test]
fn processes_agree_on_constants() {
    let stokes = "degree = 2; dirichlet u = [0, 0];";
    for (form, items) in [
        ("stokes", format!("{stokes} solver = minres(rtol: 1e-11);")),
        ("stokes", format!("{stokes} solver = fgmres(rtol: 1e-11, preconditioner: multigrid);")),
        ("stokes", format!("{stokes} solver = direct;")),
        ("neumann", "degree = 2; solver = cg(rtol: 1e-11, preconditioner: multigrid);".to_owned()),
        ("neumann", "solver = cg(rtol: 1e-11);".to_owned()),
        ("neumann", "solver = direct;".to_owned()),
    ] {
        let mut known = found(form, &items, 1).concat();
        known.sort_by_key(|(place, _)| *place);
        for size in [2, 3] {
            let parts = found(form, &items, size);
            assert_eq!(parts.len(), size);
            for (place, value) in parts.concat() {
                let at = known.binary_search_by_key(&place, |(place, _)| *place).expect("a node");
                let apart = (value - known[at].1).abs();
                assert!(apart < 1e-8, "{form}, {items}: {value} for {} at {place:?}", known[at].1);
            }
        }
    }
}
