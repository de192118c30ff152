"""weakform: weak forms compiled to fast finite-element kernels.

    import weakform as wf

    file = wf.load("poisson.wf")
    solution = file.problem("square").run(degree=2)
    solution.u

The page docs/python.md shows all parts.
"""

from __future__ import annotations

from ._errors import (
    Error,
    InvalidValue,
    LanguageError,
    LanguageWarning,
    MeshError,
    NotConverged,
    PerformanceWarning,
    UnknownName,
)
from ._language import File, Form, Problem, load, parse
from ._mesh import Mesh, mesh
from ._native import Vector, devices, set_threads
from ._solution import Solution
from ._system import (
    Scheme,
    Step,
    System,
    bdf,
    generalised_alpha,
    leapfrog,
    newmark,
    rk,
    sdirk,
    theta,
)
from ._ufl import from_ufl

__all__ = [
    "Error",
    "File",
    "Form",
    "InvalidValue",
    "LanguageError",
    "LanguageWarning",
    "Mesh",
    "MeshError",
    "NotConverged",
    "PerformanceWarning",
    "Problem",
    "Scheme",
    "Solution",
    "Step",
    "System",
    "UnknownName",
    "Vector",
    "bdf",
    "devices",
    "from_ufl",
    "generalised_alpha",
    "leapfrog",
    "load",
    "mesh",
    "newmark",
    "parse",
    "rk",
    "sdirk",
    "set_threads",
    "theta",
]
