//! Orders of methods with terms between cells: interior penalty, elasticity, and flows in time.

use weakform::{Execution, Form, Solution};

/// Solves the problem `case` of a form with interpreted kernels, both given by their items.
fn interpreted(form: &str, problem: &str) -> Solution {
    let text = format!("form f {{ {form} }} problem case solves f {{ {problem} }}");
    let form = Form::parse(&text, "f").unwrap_or_else(|error| panic!("{error}\n{text}"));
    let case = form.problem("case").unwrap_or_else(|error| panic!("{error}\n{text}"));
    case.execution(Execution::Interpreted).run().unwrap_or_else(|error| panic!("{error}\n{text}"))
}

const SIDES: &str = "\"x0\", \"x1\", \"y0\", \"y1\"";

/// Returns the orders in L2 and in H1 from the errors on a mesh and on one of half its size.
fn orders(errors: [(f64, f64); 2]) -> (f64, f64) {
    let [(l2, h1), (less, lower)] = errors;
    ((l2 / less).log2(), (h1 / lower).log2())
}

/// The symmetric method has order k + 1 in L2, the nonsymmetric one k for even k. A small penalty shows it at once.
#[test]
fn orders_of_interior_penalty_are_those_of_theory() {
    let form = format!(
        "field u: scalar in L2(k); param eta = 2; param theta = 1; let g = exp(x[0]) * cos(2 * x[1]); \
         f0[u] = -3 * g; f1[u] = grad(u); \
         on interior {{ \
             f0[jump(u)] = eta * avg(penalty(u)) * jump(u) - dot(avg(grad(u)), n); \
             f1[avg(u)] = -theta * jump(u) * n; \
         }} \
         on boundary {SIDES} {{ f0[u] = eta * penalty(u) * (u - g) - dot(grad(u), n); f1[u] = -theta * (u - g) * n; }}"
    );
    for (degree, cells, nonsymmetric) in [(1, 8, 2.0), (2, 6, 2.0), (3, 4, 4.0), (4, 5, 4.0)] {
        let k = f64::from(degree);
        for (theta, eta, wanted) in [(1, 2.0, k + 1.0), (-1, 0.02, nonsymmetric)] {
            let errors = [cells, 2 * cells].map(|cells| {
                let problem = format!(
                    "mesh = box(dim: 2, cells: {cells}); degree = {degree}; param theta = {theta}; param eta = {eta}; \
                     solver = direct; exact u = exp(x[0]) * cos(2 * x[1]);"
                );
                interpreted(&form, &problem).error("u").expect("known errors")
            });
            let (l2, h1) = orders(errors);
            let of = format!("degree {degree}, theta {theta}: {l2} {h1}");
            assert!(l2 > wanted - 0.3 && l2 < wanted + 0.45 && (h1 - k).abs() < 0.2, "{of}");
        }
    }
}

/// C0 interior penalty of degree k has order k − 1 in second derivatives, k in H1, and k + 1 in L2, of degree 2 only 2
/// (Brenner and Sung, "C0 interior penalty methods for fourth order elliptic boundary value problems on polygonal
/// domains", J. Sci. Comput. 22/23, 2005).
#[test]
fn plates_have_the_orders_of_c0_interior_penalty() {
    let form = format!(
        "field u: scalar in H1(k); param eta = 2; let H = grad(grad(u)); energy = inner(H, H) / 2; \
         on interior {{ \
             let kink = dot(jump(grad(u)), n); \
             energy = eta * avg(penalty(u)) / 2 * kink^2 - dot(avg(H) * n, n) * kink; \
         }} \
         on boundary {SIDES} {{ \
             let slope = dot(grad(u), n); \
             energy = eta * penalty(u) / 2 * slope^2 - dot(H * n, n) * slope; \
         }}"
    );
    let exact = "sin(pi * x[0])^2 * exp(x[1]) * x[1]^2 * (1 - x[1])^2";
    for (degree, cells, wanted) in [(2, 8, [1.0, 2.0, 2.0]), (3, 6, [2.0, 3.0, 4.0])] {
        let errors = [cells, 2 * cells].map(|cells| {
            let problem = format!(
                "mesh = box(dim: 2, cells: {cells}); degree = {degree}; solver = direct; \
                 manufactured u = {exact}; dirichlet u; report bend = l2(grad(grad(u - {exact})));"
            );
            let solution = interpreted(&form, &problem);
            let (l2, h1) = solution.error("u").expect("known errors");
            let bend = solution.report("bend").and_then(|value| value.number());
            [bend.expect("a number"), h1, l2]
        });
        let found = [0, 1, 2].map(|norm| (errors[0][norm] / errors[1][norm]).log2());
        let near = |(found, wanted): (&f64, &f64)| (found - wanted).abs() < 0.15;
        assert!(found.iter().zip(&wanted).all(near), "degree {degree}: {found:?} {errors:?}");
    }
}

/// Round plates on curved cells, whose map has second derivatives. With straight sides the supported one would turn
/// into another problem (Babuška's paradox), with 3/64 in the middle.
#[test]
fn round_plates_bend_as_known() {
    let form = |boundary: &str| {
        format!(
            "field u: scalar in H1(k); param eta = 2; let H = grad(grad(u)); energy = inner(H, H) / 2 - u; \
             on interior {{ \
                 let kink = dot(jump(grad(u)), n); \
                 energy = eta * avg(penalty(u)) / 2 * kink^2 - dot(avg(H) * n, n) * kink; \
             }} {boundary}"
        )
    };
    let clamped = form(
        "on boundary \"surface\" { \
             let slope = dot(grad(u), n); \
             energy = eta * penalty(u) / 2 * slope^2 - dot(H * n, n) * slope; \
         }",
    );
    let problem = |refine: usize| {
        format!(
            "mesh = ball(dim: 2, refine: {refine}, order: 3); degree = 3; solver = direct; dirichlet u = 0; \
             report middle = u([0, 0]);"
        )
    };
    let errors = [1, 2].map(|refine| {
        let problem = problem(refine) + "exact u = (1 - dot(x, x))^2 / 64;";
        interpreted(&clamped, &problem).error("u").expect("known errors")
    });
    let (l2, h1) = orders(errors);
    assert!(l2 > 3.5 && h1 > 2.7, "{l2} {h1} {errors:?}");
    let supported = interpreted(&form(""), &problem(2));
    let middle = supported.report("middle").and_then(|value| value.number()).expect("a number");
    assert!((middle * 64.0 / 5.0 - 1.0).abs() < 1e-3, "{middle}");
}

/// On triangles the error of a motion without divergence does not grow with lambda, which multiplies normal jumps alone
/// (P. Hansbo and M. G. Larson, "Discontinuous Galerkin methods for incompressible and nearly incompressible elasticity
/// by Nitsche's method", Comput. Methods Appl. Mech. Engrg. 191, 2002). On squares it does: their functions do not
/// contain those of Brezzi, Douglas and Marini.
#[test]
fn elasticity_does_not_lock_on_triangles() {
    let form = format!(
        "field u: vector in L2(k); param mu = 1; param lambda = 1; param eta = 2; \
         let e = sym(grad(u)); let s = 2 * mu * e + lambda * tr(e) * I; \
         fn stiff(j, m) = 2 * mu * dot(j, j) + lambda * dot(j, m)^2; \
         energy = inner(s, e) / 2; \
         on interior {{ energy = eta * avg(penalty(u)) / 2 * stiff(jump(u), n) - dot(avg(s) * n, jump(u)); }} \
         on boundary {SIDES} {{ energy = eta * penalty(u) / 2 * stiff(u, n) - dot(s * n, u); }}"
    );
    let errors = [1.0, 1e3, 1e6].map(|lambda| {
        let problem = format!(
            "mesh = box(dim: 2, cells: 6, cell: tri); degree = 3; param lambda = {lambda}; solver = direct; \
             manufactured u = [sin(pi * x[0])^2 * sin(2 * pi * x[1]), -sin(2 * pi * x[0]) * sin(pi * x[1])^2];"
        );
        interpreted(&form, &problem).error("u").expect("known errors")
    });
    for (l2, h1) in errors {
        let (wanted, slope) = errors[0];
        assert!(l2 < 2.0 * wanted && h1 < 2.0 * slope, "{errors:?}");
    }
    assert!(errors[0].0 < 2e-3, "{errors:?}");
}

/// A bump after a turn, carried by upwind fluxes.
#[test]
fn rotation_has_its_order_after_a_turn() {
    let bump =
        "exp(-10 * ((x[0] * cos(t) + x[1] * sin(t) - 0.4)^2 + (x[1] * cos(t) - x[0] * sin(t))^2))";
    let form = format!(
        "field c: scalar in L2(k); let b = [-x[1], x[0]]; f0[c] = dt(c); f1[c] = -c * b; \
         on interior {{ f0[jump(c)] = dot(b, n) * avg(c) + abs(dot(b, n)) / 2 * jump(c); }} \
         on boundary {SIDES} {{ let s = dot(b, n); f0[c] = max(s, 0) * c + min(s, 0) * {bump}; }}"
    );
    for (degree, cells) in [(1, 8), (2, 6)] {
        let errors = [cells, 2 * cells].map(|cells| {
            let steps = 20 * degree * cells;
            let problem = format!(
                "mesh = box(dim: 2, cells: {cells}, from: [-1, -1], to: [1, 1]); degree = {degree}; \
                 time = rk(order: 4, to: 2 * pi, step: 2 * pi / {steps}, every: 2 * pi); exact c = {bump};"
            );
            interpreted(&form, &problem).error("c").expect("known errors")
        });
        let (l2, _) = orders(errors);
        assert!(l2 > f64::from(degree) + 0.75, "degree {degree}: {l2} {errors:?}");
    }
}

/// Euler's equations with Rusanov's flux; w consists of density, momentum and energy, g is the state beyond the
/// boundary.
fn euler(space: &str, boundary: &str) -> String {
    format!(
        "field w: vector(4) in {space}; param gamma = 1.4; \
         fn pressure(s) = (gamma - 1) * (s[3] - (s[1]^2 + s[2]^2) / s[0] / 2); \
         fn flux(s) = [[s[1], s[2]], [s[1]^2 / s[0] + pressure(s), s[1] * s[2] / s[0]], \
             [s[1] * s[2] / s[0], s[2]^2 / s[0] + pressure(s)], \
             [s[1] / s[0] * (s[3] + pressure(s)), s[2] / s[0] * (s[3] + pressure(s))]]; \
         f0[w] = dt(w); f1[w] = -flux(w); \
         on interior {{ \
             fn speed(s) = abs(s[1] * n[0] + s[2] * n[1]) / s[0] + sqrt(gamma * pressure(s) / s[0]); \
             f0[jump(w)] = avg(flux(w)) * n + max(speed(inside(w)), speed(outside(w))) / 2 * jump(w); \
         }} \
         on boundary {SIDES} {{ {boundary} }}"
    )
}

/// The isentropic vortex of step-67 of deal.II, which has orders 2.91 and 3.96 there on finer meshes.
#[test]
fn a_vortex_of_euler_has_its_order() {
    let swirl = "5 / (2 * pi) * exp(1 - (x[0] - 5 - t)^2 - x[1]^2)";
    let heat = format!("(1 - 0.4 / 1.4 / 4 * ({swirl})^2)");
    let (density, pressure) = (format!("{heat}^2.5"), format!("{heat}^3.5"));
    let (u, v) = (format!("(1 - {swirl} * x[1])"), format!("({swirl} * (x[0] - 5 - t))"));
    let exact = format!(
        "[{density}, {density} * {u}, {density} * {v}, {pressure} / 0.4 + {density} * ({u}^2 + {v}^2) / 2]"
    );
    let form = euler(
        "L2(k)",
        &format!(
            "let g = {exact}; \
             fn fast(s) = abs(s[1] * n[0] + s[2] * n[1]) / s[0] + sqrt(gamma * pressure(s) / s[0]); \
             f0[w] = (flux(w) + flux(g)) * n / 2 + max(fast(w), fast(g)) / 2 * (w - g);"
        ),
    );
    for (degree, wanted) in [(2, 2.6), (3, 3.8)] {
        let errors = [6, 12].map(|cells| {
            let problem = format!(
                "mesh = box(dim: 2, cells: {cells}, from: [4, -1], to: [6, 1]); degree = {degree}; \
                 time = rk(order: 4, to: 0.2, step: 0.04 / {cells}, every: 0.2); exact w = {exact};"
            );
            interpreted(&form, &problem).error("w").expect("known errors")
        });
        let (l2, _) = orders(errors);
        assert!(l2 > wanted && l2 < wanted + 0.6, "degree {degree}: {l2} {errors:?}");
    }
}

/// Values of the first component of a field of cellwise constants on a strip from 0 to 1, from left to right.
fn along(solution: &Solution, field: &str, components: usize) -> Vec<(f64, f64)> {
    let points = solution.points_of(field).expect("points");
    let values = solution.values_of(field).expect("values").chunks(components);
    let mut all: Vec<(f64, f64)> = points.iter().zip(values).map(|(x, w)| (x[0], w[0])).collect();
    all.sort_by(|a, b| a.0.total_cmp(&b.0));
    all
}

/// Compares a strip with its exact solution: the error in L1 falls by the square root of h at least, and the steepest
/// front is within two cells of its place.
fn converges(fine: [Vec<(f64, f64)>; 2], exact: impl Fn(f64) -> f64, (front, middle): (f64, f64)) {
    let error = |of: &Vec<(f64, f64)>| {
        of.iter().map(|(x, h)| (h - exact(*x)).abs()).sum::<f64>() / of.len() as f64
    };
    let order = (error(&fine[0]) / error(&fine[1])).log2();
    assert!(order > 0.5 && order < 1.1, "{order}");
    for strip in &fine {
        let beyond = strip.iter().rposition(|(_, h)| *h > middle).expect("a front");
        let cells = (strip[beyond].0 - front) * strip.len() as f64;
        assert!(cells.abs() < 2.0, "{cells} of {}", strip.len());
    }
}

/// A dam that breaks over wet ground (J. J. Stoker, "Water Waves", 1957).
#[test]
fn a_dam_breaks_as_in_stokers_solution() {
    let form = format!(
        "field w: vector(3) in L2(0); param g = 1; \
         fn flux(s) = [[s[1], s[2]], [s[1]^2 / s[0] + g * s[0]^2 / 2, s[1] * s[2] / s[0]], \
             [s[1] * s[2] / s[0], s[2]^2 / s[0] + g * s[0]^2 / 2]]; \
         f0[w] = dt(w); f1[w] = -flux(w); \
         on interior {{ \
             fn speed(s) = abs(s[1] * n[0] + s[2] * n[1]) / s[0] + sqrt(g * s[0]); \
             f0[jump(w)] = avg(flux(w)) * n + max(speed(inside(w)), speed(outside(w))) / 2 * jump(w); \
         }} \
         on boundary {SIDES} {{ f0[w] = [0, g * w[0]^2 / 2 * n[0], g * w[0]^2 / 2 * n[1]]; }}"
    );
    let (left, right, time) = (2.0_f64, 1.0, 0.2);
    // The depth between both waves: the speed behind the shock is that behind the rarefaction.
    let behind = |h: f64| {
        2.0 * (left.sqrt() - h.sqrt()) - (h - right) * ((h + right) / (2.0 * h * right)).sqrt()
    };
    let (mut low, mut high) = (right, left);
    for _ in 0..60 {
        let h = (low + high) / 2.0;
        *(if behind(h) > 0.0 { &mut low } else { &mut high }) = h;
    }
    let (h, u) = (low, 2.0 * (left.sqrt() - low.sqrt()));
    let front = 0.5 + h * u / (h - right) * time;
    let exact = |x: f64| {
        let s = (x - 0.5) / time;
        match () {
            () if s < -left.sqrt() => left,
            () if s < u - h.sqrt() => (2.0 * left.sqrt() - s).powi(2) / 9.0,
            () if x < front => h,
            () => right,
        }
    };
    let strips = [100, 200].map(|cells| {
        let problem = format!(
            "mesh = box(dim: 2, cells: [{cells}, 1], to: [1, 1 / {cells}]); \
             time = rk(order: 1, to: {time}, step: 0.2 / {cells}); \
             initial w = if x[0] < 0.5 {{ [2, 0, 0] }} else {{ [1, 0, 0] }};"
        );
        along(&interpreted(&form, &problem), "w", 3)
    });
    converges(strips, exact, (front, (h + right) / 2.0));
}

/// Sod's shock tube (E. F. Toro, "Riemann Solvers and Numerical Methods for Fluid Dynamics", section 4.3.3).
#[test]
fn sods_tube_has_its_waves() {
    let form = euler("L2(0)", "f0[w] = [0, pressure(w) * n[0], pressure(w) * n[1], 0];");
    let (time, pressure, speed) = (0.2, 0.30313, 0.92745);
    let sound = 1.4_f64.sqrt();
    // Densities on both sides of the contact.
    let (behind, ahead) = (pressure_to_density(pressure), 0.26557);
    let front = 0.5 + 1.75216 * time;
    let exact = |x: f64| {
        let s = (x - 0.5) / time;
        match () {
            () if s < -sound => 1.0,
            () if s < speed - (1.4 * pressure / behind).sqrt() => {
                (2.0 / 2.4 - 0.4 / (2.4 * sound) * s).powi(5)
            }
            () if s < speed => behind,
            () if x < front => ahead,
            () => 0.125,
        }
    };
    let strips = [100, 200].map(|cells| {
        let problem = format!(
            "mesh = box(dim: 2, cells: [{cells}, 1], to: [1, 1 / {cells}]); \
             time = rk(order: 1, to: {time}, step: 0.2 / {cells}); \
             initial w = if x[0] < 0.5 {{ [1, 0, 0, 2.5] }} else {{ [0.125, 0, 0, 0.25] }};"
        );
        along(&interpreted(&form, &problem), "w", 4)
    });
    converges(strips, exact, (front, (ahead + 0.125) / 2.0));
}

/// Returns the density of the gas on the left when it has expanded to a pressure.
fn pressure_to_density(pressure: f64) -> f64 {
    pressure.powf(1.0 / 1.4)
}

/// Depth and momentum of water around a periodic square stay what they are for 1000 steps.
#[test]
fn a_thousand_steps_conserve() {
    let form = "field w: vector(3) in L2(k); param g = 1; \
         fn flux(s) = [[s[1], s[2]], [s[1]^2 / s[0] + g * s[0]^2 / 2, s[1] * s[2] / s[0]], \
             [s[1] * s[2] / s[0], s[2]^2 / s[0] + g * s[0]^2 / 2]]; \
         f0[w] = dt(w); f1[w] = -flux(w); \
         on interior { \
             fn speed(s) = abs(s[1] * n[0] + s[2] * n[1]) / s[0] + sqrt(g * s[0]); \
             f0[jump(w)] = avg(flux(w)) * n + max(speed(inside(w)), speed(outside(w))) / 2 * jump(w); \
         }";
    let after = |steps: i32| {
        let problem = format!(
            "mesh = box(dim: 2, cells: 6); degree = 1; periodic \"x0\" = \"x1\"; periodic \"y0\" = \"y1\"; \
             time = rk(order: 2, to: {steps} * 4e-3, step: 4e-3); \
             initial w = [1 + 0.1 * sin(2 * pi * x[0]), 0.1 * cos(2 * pi * x[1]) + 0.2, 0.1]; \
             report depth = integral(w[0]); report x = integral(w[1]); report y = integral(w[2]);"
        );
        let solution = interpreted(form, &problem);
        ["depth", "x", "y"]
            .map(|name| solution.report(name).and_then(|own| own.number()).expect("a number"))
    };
    for (first, last) in after(1).into_iter().zip(after(1000)) {
        assert!((first - last).abs() < 1000.0 * 4.0 * f64::EPSILON, "{first} {last}");
    }
}
