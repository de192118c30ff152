"""Runs the first Python block of README from the root, and compares its solution with the exact one."""

from pathlib import Path

import numpy as np

readme = Path(__file__).parents[2] / "README.md"
block = readme.read_text().split("```python\n")[1].split("```")[0]
names: dict[str, object] = {}
exec(compile(block, str(readme), "exec"), names)

# u(r) of −(r² κ u')' = 2 r² with κ = 1 / (0.05 + 2 r²): u' = −2 r (0.05 + 2 r²) / 3.
u, x = names["solution"].u, names["solution"].points("u")
r2 = (x**2).sum(axis=1)
exact = (0.05 * (1 - r2) + (1 - r2**2)) / 3
# The cells are straight, so that the ball is a polyhedron.
assert np.abs(u - exact).max() < 1.5e-2, np.abs(u - exact).max()
K = names["K"]
assert K.shape == (u.size, u.size) and names["solution"].to_dict()["kernels"] == "compiled"
print(f"README: {u.size} degrees of freedom, {K.nnz} entries, kernels by {names['solution'].to_dict()['compiler']}")
