//! Paths by arc length: `newton(path: arc_length, load: lambda)`, beyond folds.

use crate::outputs::{refused, solution};
use runtime::problem::ReportValue;

fn bratu(refine: usize, items: &str) -> String {
    format!(
        "form f {{ field u: scalar; param lambda = 1; f0[u] = -lambda * exp(u); f1[u] = grad(u); }}
         problem p solves f {{ mesh = ball(dim: 2, refine: {refine}, order: 4); degree = 4; {items} }}"
    )
}

/// Bratu's equation on the unit disc: λ = 8 b / (1 + b)² has two roots below its fold at 2, and the largest value is
/// 2 log(1 + b).
#[test]
fn both_branches_of_a_disc_have_their_peaks() {
    for crossing in [1, 2] {
        let solution = solution(&bratu(
            1,
            &format!(
            "dirichlet u = 0; solver = newton(path: arc_length, load: lambda, crossing: {crossing});
             report peak = u([0, 0]);"
        ),
        ));
        let Some(ReportValue::Value(_, peak)) = solution.report("peak") else { panic!("a peak") };
        let root = if crossing == 1 { -8.0_f64.sqrt() } else { 8.0_f64.sqrt() };
        let expected = 2.0 * (4.0 + root).ln();
        assert!((peak[0] / expected - 1.0).abs() < 1e-5, "{crossing}: {peak:?} {expected}");
        let fold = solution.notes().iter().any(|note| note.contains("a fold at lambda = 2.0000"));
        assert_eq!(fold, crossing == 2, "{:?}", solution.notes());
    }
}

#[test]
fn paths_that_do_not_arrive_are_refused() {
    let arc = "solver = newton(path: arc_length, load: lambda, steps: 3);";
    let cases = [
        (format!("dirichlet u = 0; param lambda = 3; {arc}"), "with a fold at lambda = 2.00"),
        (format!("dirichlet u = lambda * x[0]; {arc}"), "on which a condition depends"),
        ("dirichlet u = 0; solver = newton(path: arc_length);".to_owned(), "needs the parameter"),
        ("dirichlet u = 0; solver = newton(crossing: 2);".to_owned(), "a path by arc length"),
    ];
    for (items, expected) in cases {
        let message = refused(&bratu(0, &items));
        assert!(message.contains(expected), "{items}: {message}");
    }
}
