//! A gallery of forms in three dimensions: the cost of their arithmetic at a point in comparison with manual
//! derivations. No view of a form may cost more than the manual version.
//!
//! Manual counts include operations that do not depend on the point (2 μ of a parameter). A change of sign is an
//! addition, and so is a choice between two numbers; each number is computed once for all its uses.

use fem_dsl::differentiate::differentiate;
use fem_dsl::point::{Integral, NodeId, OperationCount, operation_count, point};
use fem_dsl::program::compile;
use fem_dsl::simplify::simplify;
use fem_dsl::source::Source;
use std::fmt::Write;

/// Additions, multiplications, divisions, square roots and other functions.
type Hand = [usize; 5];

/// A form with the counts of its residual, its Jacobian's action and the coefficients of its Jacobian.
struct Entry {
    text: &'static str,
    residual: Hand,
    action: Hand,
    /// `None` if it was not counted.
    jacobian: Option<Hand>,
}

const GALLERY: &[Entry] = &[
    // s = x·x: 2+ 3×; 0.05 + 2s: 1+ 1×; κ: 1÷; κ∇u: 3×; −f: 1+. The action lacks −f, the coefficient the product.
    Entry {
        text: "form poisson {
            field u: scalar;
            param f = 1;
            let kappa = 1 / (0.05 + 2 * dot(x, x));
            f0[u] = -f;
            f1[u] = kappa * grad(u);
        }",
        residual: [4, 7, 1, 0, 0],
        action: [3, 7, 1, 0, 0],
        jacobian: Some([3, 4, 1, 0, 0]),
    },
    // ∂_j u_i + ∂_i u_j: 3+, times μ: 3×; div u: 2+, times λ: 1×; 2μ: 1×, times ∂_i u_i: 3×, plus λ div u: 3+.
    // Coefficients: λ, μ, and λ + 2μ: 1+ 1×.
    Entry {
        text: "form elasticity {
            field u: vector;
            aux lambda: scalar on cells;
            aux mu: scalar on cells;
            let eps = sym(grad(u));
            f1[u] = lambda * tr(eps) * I + 2 * mu * eps;
        }",
        residual: [8, 8, 0, 0, 0],
        action: [8, 8, 0, 0, 0],
        jacobian: Some([1, 1, 0, 0, 0]),
    },
    // F: 3+. cof F: 9+ 18×; J: 2+ 3×; log; m = λ log J − μ: 1+ 1×; s = m/J: 1÷; P = μF + s cof F: 9+ 18×.
    // Action: with r = 1/J (1÷): s = m r: 1×; t = (λ − m) r²: 1+ 2×; δJ = cof F : δF: 8+ 9×; t δJ: 1×;
    // δcof F: 27+ 36×; μ δF + s δcof F + t δJ cof F: 18+ 27×.
    // Coefficients: t cof F: 9×; its products with cof F: 45×; s F: 9×, added to 18 of them, and μ to 9: 27+.
    Entry {
        text: "form neo_hookean {
            field u: vector;
            param mu = 1;
            param lambda = 10;
            let F = I + grad(u);
            let J = det(F);
            energy = mu / 2 * (inner(F, F) - dim - 2 * log(J)) + lambda / 2 * log(J)^2;
        }",
        residual: [24, 40, 1, 0, 1],
        action: [69, 98, 1, 0, 1],
        jacobian: Some([43, 88, 1, 0, 1]),
    },
    // ∇u u: 6+ 9×; −p I + ν (∇u + ∇uᵀ): as elasticity without the trace, 2ν: 3+ 7×, −p: 3+; −div u: 3+.
    // Action: ∇δu u + ∇u δu: 15+ 18×, the rest as before. Coefficients: inputs, 2ν.
    Entry {
        text: "form navier_stokes {
            field u: vector in H1(k);
            field p: scalar in H1(k - 1);
            test v for u;
            test q for p;
            param nu = 0.1;
            residual = dot(grad(u) * u, v) + 2 * nu * inner(sym(grad(u)), sym(grad(v))) - p * div(v) - q * div(u);
        }",
        residual: [15, 16, 0, 0, 0],
        action: [24, 25, 0, 0, 0],
        jacobian: Some([0, 1, 0, 0, 0]),
    },
    // ∇u u + u div u / 2 (Temam's), one field: div u: 2+; half of it: 1×; added to ∂_i u_i: 3+; then as ∇u u: 6+ 9×;
    // ν∇u: 9×. Action: the same twice, for ∇δu u and ∇u δu: 2·(5+ 1×) and 15+ 18×; ν∇δu: 9×.
    // Coefficients: ∂_i u_i + div u / 2: 5+ 1×; u_i / 2: 3×; u_i + u_i / 2: 3×.
    Entry {
        text: "form convection {
            field u: vector;
            param nu = 0.1;
            f0[u] = grad(u) * u + div(u) / 2 * u;
            f1[u] = nu * grad(u);
        }",
        residual: [11, 19, 0, 0, 0],
        action: [25, 29, 0, 0, 0],
        jacobian: Some([5, 7, 0, 0, 0]),
    },
    // w = ε + ∇u·∇u: 3+ 3×; q = (p − 2)/2: 1+ 1×; w^q; times ∇u: 3×. Action: w^(q−1): 1+ and the power, w^q = w^(q−1)
    // w: 1×; d = ∇u·∇δu: 2+ 3×; c = (p − 2) w^(q−1) d: 2×; w^q ∇δu + c ∇u: 3+ 6×. Coefficients: c = (p − 2) w^(q−1):
    // 1×; c (∂₀u)², whose square w has: 1×; c ∂₁u and c ∂₂u: 2×, times their partners: 5×; plus w^q: 3+. For q = 0 the
    // slope of w^q is 0, also at w = 0, where w^(q−1) is infinite: a choice and its condition, and w · w^(q−1) cannot
    // replace w^q: 1 function, 1×.
    Entry {
        text: "form p_laplace {
            field u: scalar;
            param p = 3.5;
            param eps = 0.01;
            f1[u] = (eps + dot(grad(u), grad(u)))^((p - 2) / 2) * grad(u);
        }",
        residual: [4, 7, 0, 0, 1],
        action: [12, 17, 0, 0, 2],
        jacobian: Some([10, 15, 0, 0, 2]),
    },
    // (c − c₀) · 1/τ, whose second factor is outside of all loops: 1+ 1× 1÷; M∇w: 3×; w − c (c² − 1): 2+ 2×; −ε²: 1+
    // 1×, times ∇c: 3×. Action: δc · 1/τ: 1× 1÷; M∇δw: 3×; δw − (3c² − 1) δc: 2+ 3×; −ε²∇δc: 1+ 4×. Coefficients: 1/τ:
    // 1÷; 1 − 3c²: 1+ 2×; −ε²: 1+ 1×.
    Entry {
        text: "form cahn_hilliard {
            field c: scalar;
            field w: scalar;
            aux old: scalar;
            param tau = 0.1;
            param mobility = 1;
            param eps = 0.05;
            f0[c] = (c - old) / tau;
            f1[c] = mobility * grad(w);
            f0[w] = w - (c^3 - c);
            f1[w] = -eps^2 * grad(c);
        }",
        residual: [4, 10, 1, 0, 0],
        action: [3, 11, 1, 0, 0],
        jacobian: Some([2, 3, 1, 0, 0]),
    },
    // ∇u u: 6+ 9×; j = curl b: 3+; j × b: 3+ 6×; their difference: 3+; ν∇u: 9×; ∇b u − ∇u b: 15+ 18×; η∇b: 9×.
    // Action: ∇δu u + ∇u δu: 15+ 18×; curl b and curl δb: 6+; δj × b + j × δb: 9+ 12×; difference: 3+; ν∇δu: 9×;
    // ∇δb u + ∇b δu − ∇δu b − ∇u δb: 33+ 36×; η∇δb: 9×. Coefficients: j and −j, −b, −∇u: 18+.
    Entry {
        text: "form mhd {
            field u: vector;
            field b: vector;
            param nu = 0.1;
            param eta = 0.2;
            f0[u] = grad(u) * u - cross(curl(b), b);
            f1[u] = nu * grad(u);
            f0[b] = grad(b) * u - grad(u) * b;
            f1[b] = eta * grad(b);
        }",
        residual: [30, 51, 0, 0, 0],
        action: [66, 84, 0, 0, 0],
        jacobian: Some([18, 0, 0, 0, 0]),
    },
    // s = 1 + ∇u·∇u: 3+ 3×; r = 1/√s: 1√ 1÷; r∇u: 3×. Action: d = ∇u·∇δu: 2+ 3×; r r d: 2×; r (∇δu − r r d ∇u): 3+ 6×.
    // Coefficients: r³: 2×; r³ (∂₀u)²: 1×; r³ ∂₁u and r³ ∂₂u: 2×, times their partners: 5×; r − …: 3+; signs of the
    // others: 3+.
    Entry {
        text: "form minimal_surface {
            field u: scalar;
            f1[u] = grad(u) / sqrt(1 + dot(grad(u), grad(u)));
        }",
        residual: [3, 6, 1, 1, 0],
        action: [8, 14, 1, 1, 0],
        jacobian: Some([9, 13, 1, 1, 0]),
    },
    // C = FᵀF, symmetric: F: 3+; 6 entries: 12+ 18×. E = (C − I)/2: 6× (3+); tr E: 2+; λ tr E: 1×; S = λ tr E I + 2μE:
    // μ(C − I) needs 3+ 6×, λ/2 tr(C − I): 2+ 2×, added: 3+; F S: 18+ 27×.
    Entry {
        text: "form saint_venant {
            field u: vector;
            param mu = 1;
            param lambda = 10;
            let F = I + grad(u);
            let E = (transpose(F) * F - I) / 2;
            f1[u] = F * (lambda * tr(E) * I + 2 * mu * E);
        }",
        residual: [41, 53, 0, 0, 0],
        // δC = δFᵀF + FᵀδF, symmetric: 6 entries, of which the 3 diagonal ones are twice a product: 3·2+ 3·3× (with 2:
        // 3×) and 3·5+ 3·6×; δS = μ δC + λ/2 tr δC I: 6× 2+ 1× 3+; δF S + F δS: 45+ 54×; S as before: 23+ 26×.
        action: [94, 115, 0, 0, 0],
        jacobian: None,
    },
];

fn five(count: OperationCount) -> Hand {
    let OperationCount { additions, multiplications, divisions, roots, functions, choices } = count;
    [additions + choices, multiplications, divisions, roots, functions]
}

/// Counts the operations of residual, action and coefficients.
fn counts(integral: &Integral) -> [Hand; 3] {
    let count = |roots: Vec<NodeId>| five(operation_count(&integral.graph, &roots));
    [
        count(integral.residual.iter().map(|entry| entry.1).collect()),
        count(integral.action.iter().map(|entry| entry.1).collect()),
        count(integral.jacobian.iter().map(|entry| entry.value).collect()),
    ]
}

/// Returns the cost of counts in additions, weighted like [`OperationCount::weight`].
fn weight([additions, multiplications, divisions, roots, functions]: Hand) -> usize {
    additions.saturating_add(multiplications) + 8 * (divisions + roots) + 20 * functions
}

#[test]
fn no_form_costs_more_than_by_hand() {
    let mut table = String::new();
    let mut above = Vec::new();
    for entry in GALLERY {
        let (program, errors) = compile(&Source::new("gallery.wf", entry.text));
        let program = program.unwrap_or_else(|| panic!("{errors:#?}"));
        let checked = &program.forms()[0];
        let form = checked.dimensions.form(3).expect("the gallery has three dimensions");
        let form = point(&simplify(&differentiate(form)));
        let hands = [Some(entry.residual), Some(entry.action), entry.jacobian];
        let found = counts(&form.integrals[0]);
        for ((view, found), hand) in ["residual", "action", "jacobian"].iter().zip(found).zip(hands)
        {
            let Some(hand) = hand else { continue };
            writeln!(table, "{:16} {view:9} {found:3?}   by hand {hand:3?}", form.name)
                .expect("text");
            let slow = |count: Hand| count[2..].iter().sum::<usize>();
            if weight(found) > weight(hand) || slow(found) > slow(hand) {
                above.push(format!("{} {view}: {found:?}, by hand {hand:?}", form.name));
            }
        }
    }
    insta::assert_snapshot!(table);
    assert!(above.is_empty(), "{table}\n{}", above.join("\n"));
}
