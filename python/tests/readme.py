"""README's problem in ten lines, with NumPy alone."""

import weakform as wf

file = wf.parse("""
form poisson { field u: scalar; param f = 1; f0[u] = -f; f1[u] = grad(u); }
problem disc solves poisson {
    mesh = ball(dim: 2, refine: 2, order: 2); degree = 2;
    dirichlet u = 0 on all;
    exact u = f / 4 * (1 - dot(x, x));
}""")
solution = file.problem("disc").run(f=2.0)
assert solution.error("u")[0] < 1e-3, solution.error("u")
assert abs(solution.u.max() - 0.5) < 1e-3
