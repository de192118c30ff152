//! Meshes of lines, and sources at points, on several processes.

use std::sync::Arc;

use super::{compare, compare_parts, compare_refined, problem, text, with_hanging_nodes};
use runtime::mesh::Mesh;
use runtime::processes::ProcessGroup;

/// A nonlinear field and one that is transported, with sources at points.
const LINE: &str = "form bar {
        field u: scalar;
        field c: scalar in L2(k);
        aux a: scalar;
        f0[u] = a * u^3 + c;
        f1[u] = (1 + u^2) * grad(u);
        f0[c] = c * u;
        f1[c] = -c * grad(u);
        on interior { f0[jump(c)] = n[0] * avg(c * u) + (1 + avg(h)) * jump(c); }
        ENDS
    }
    problem p solves bar {
        mesh = interval(cells: 7, to: 2);
        degree = 3;
        aux a = 1 + x[0];
        source u = 2 + x[0] at 0.3;
        source c = 3 at 1.77;
        MORE
    }";

#[test]
fn parts_of_lines_add_up_to_the_whole() {
    for (ends, more) in [
        ("on boundary \"x1\" { f0[u] = u * n[0] + x[0]; }", "dirichlet u = x[0] on \"x0\";"),
        ("", "periodic \"x0\" = \"x1\";"),
    ] {
        let text = LINE.replace("ENDS", ends).replace("MORE", more);
        let (own, mesh) = problem(&text);
        let even = |whole: &Arc<Mesh>, group: &Arc<dyn ProcessGroup>| Arc::clone(whole).part(group);
        compare_parts(None, &own, mesh, &[2, 3, 8], &even, None);
        let (own, mesh) = problem(&text.replace("cells: 7", "cells: 4"));
        compare_refined(&own, mesh, &[2]);
    }
}

/// One process contributes each point, wherever it lies: in a cell, on a facet, at a vertex, where nodes hang.
#[test]
fn sources_at_points_have_one_owner() {
    let more = "source u = [1, 2 + x[0]] at [0.3, 0.4];
        source u[1] = -3 at [0.5, 0.5];
        source u[0] = 5 at [2 / 3, 1 / 3];
        source p = x[0] at [0.5, 0.9];";
    for (mesh, hangs) in
        [("box(dim: 2, cells: 3)", true), ("ball(dim: 2, refine: 1, order: 2)", false)]
    {
        let tags = if hangs { ["x1", "y0"] } else { ["surface", "surface"] };
        let (own, coarse) = problem(&text(mesh, 3, tags, more));
        let mesh = if hangs { with_hanging_nodes(coarse) } else { coarse };
        compare(&own, mesh, &[2, 3, 5]);
    }
}
