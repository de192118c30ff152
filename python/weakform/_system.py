"""Forms on meshes: residual, Jacobian, solves and time steps with the caller's arrays."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from . import _native
from ._errors import InvalidValue, unknown
from ._language import Form
from ._mesh import Mesh
from ._native import Vector
from ._solution import Solution, warn_of_kernels

Array = NDArray[np.float64]
#: Values of a condition or of data: a number, an array, or a function of points (n, 3).
Values = float | ArrayLike | Callable[..., ArrayLike]


@dataclass(frozen=True)
class Scheme:
    """A time integrator with its settings."""

    name: str
    settings: dict[str, Any] = field(default_factory=dict)


def theta(theta: float = 0.5) -> Scheme:
    """Returns the θ-scheme: backward Euler for 1, Crank–Nicolson for ½."""
    return Scheme("theta", {"theta": theta})


def bdf(order: int = 2) -> Scheme:
    """Returns backward differentiation formulas of an order from 1 to 5."""
    return Scheme("bdf", {"order": order})


def sdirk(stages: int = 2) -> Scheme:
    """Returns a singly diagonally implicit Runge–Kutta scheme of 2 to 4 stages."""
    return Scheme("sdirk", {"stages": stages})


def rk(order: int = 4, formula: str = "classical", mass: str = "consistent") -> Scheme:
    """Returns an explicit Runge–Kutta scheme of an order from 1 to 4, classical or `"ssp"`."""
    return Scheme("rk", {"order": order, "formula": formula, "mass": mass})


def newmark(beta: float = 0.25, gamma: float = 0.5) -> Scheme:
    """Returns the Newmark scheme, for forms with second time derivatives."""
    return Scheme("newmark", {"beta": beta, "gamma": gamma})


def generalised_alpha(rho: float = 0.8) -> Scheme:
    """Returns the generalised-α scheme with a spectral radius."""
    return Scheme("generalised_alpha", {"rho": rho})


def leapfrog(mass: str = "consistent") -> Scheme:
    """Returns explicit central differences."""
    return Scheme("leapfrog", {"mass": mass})


def _numbers(what: str, value: ArrayLike) -> list[float]:
    array = np.asarray(value, dtype=np.float64)
    if not np.all(np.isfinite(array)):
        raise InvalidValue(f"`{what}` has a value that is not finite")
    return [float(number) for number in array.ravel()]


class System:
    """A form on a mesh, with conditions and data.

    States are arrays with one entry for each degree of freedom: field after field, node after
    node, components interleaved. `split` and `join` convert between them and fields.
    On a device, they may be `Vector`s, which stay in its memory.
    """

    _own: _native.System
    _mesh: Mesh | None

    def __init__(
        self,
        form: Form,
        mesh: Mesh,
        *,
        degree: int = 1,
        params: Mapping[str, Any] | None = None,
        data: Mapping[str, Any] | None = None,
        quadrature: int | str | None = None,
        time: float = 0.0,
        device: str = "cpu",
        kernels: str = "automatic",
    ) -> None:
        names = form._names(mesh.dim)
        given = []
        for name, value in (params or {}).items():
            if name not in names["params"]:
                raise unknown("parameter", name, list(names["params"]))
            given.append((name, _numbers(name, value)))
        self._mesh = mesh
        self._own = _native.System(
            form._own,
            mesh._own,
            degree,
            None if quadrature is None else str(quadrature),
            time,
            given,
            kernels,
            device,
        )
        for name, values in (data or {}).items():
            if name not in names["data"]:
                raise unknown("data", name, list(names["data"]))
            shape = names["data"][name]
            self._put_data(name, int(np.prod(shape, dtype=int)), values)
        self._warned = False

    @classmethod
    def _of(cls, native: _native.System) -> System:
        own = cls.__new__(cls)
        own._own, own._mesh, own._warned = native, None, False
        return own

    def _put_data(self, name: str, components: int, values: Values) -> None:
        if callable(values):
            self._own.data(name, _function(values, components, name))
            return
        array = np.ascontiguousarray(values, dtype=np.float64)
        if array.size == components:
            self._own.data(name, _constant(array.ravel()))
            return
        self._own.data_rows(name, components, array.ravel())

    def _check(self) -> None:
        """Warns once of kernels that are interpreted for lack of a compiler."""
        if not self._warned:
            self._warned = True
            warn_of_kernels(self._own.kernel_notes)

    # Conditions and data.

    def dirichlet(
        self,
        name: str,
        value: Values = 0.0,
        on: str | Sequence[str] | None = None,
        *,
        component: int | None = None,
        normal: bool = False,
        at: ArrayLike | None = None,
    ) -> System:
        """Adds an essential condition on tags of the boundary, by default on all of it.

        ``value`` is a number (or one for each component), an array with a row for each of
        `points(name)`, of which those on the boundary are used, or a function of points of shape
        (n, 3), and of the time if it has a second argument. ``component`` constrains one
        component, ``normal`` the normal component, ``at`` the vertex nearest to a point.
        Later conditions take precedence.
        """
        shape = self._shape(name)
        size = int(np.prod(shape, dtype=int))
        if component is not None and not 0 <= component < size:
            raise InvalidValue(
                f"`{name}` has no component {component}\n"
                f"help: name one from 0 to {size - 1}"
                if size > 1
                else f"`{name}` is a scalar, without components\nhelp: leave `component` out"
            )
        if normal and len(shape) != 1:
            raise InvalidValue(
                f"`{name}` is no vector, and has no normal component\nhelp: leave `normal` out"
            )
        count = 1 if component is not None or normal else size
        tags = [on] if isinstance(on, str) else None if on is None else list(on)
        point = None if at is None else _point(at)
        if callable(value):
            values = _function(value, count, name)
        else:
            array = np.ascontiguousarray(value, dtype=np.float64)
            if not np.isfinite(array).all():
                raise InvalidValue(f"the condition on `{name}` has a value that is not finite")
            if array.size in (1, count):
                values = _constant(np.broadcast_to(array.ravel(), count).copy())
            else:
                values = _nodal(name, self.points(name), array, count)
        self._own.dirichlet(name, component, normal, tags, point, values)
        return self

    def clear_conditions(self) -> System:
        """Removes all essential conditions."""
        self._own.clear_conditions()
        return self

    def mean(self, name: str, value: ArrayLike = 0.0) -> System:
        """Sets the mean of a field that is determined up to a constant."""
        self._own.mean(name, _numbers(name, value))
        return self

    def set_param(self, name: str, value: ArrayLike) -> System:
        """Replaces a parameter, without compiling."""
        self._own.set_param(name, _numbers(name, value))
        return self

    def set_data(self, name: str, values: ArrayLike) -> System:
        """Replaces data by rows in the order of `data_points`, without compiling."""
        array = np.ascontiguousarray(values, dtype=np.float64)
        self._own.set_data(name, array.ravel())
        return self

    def data_points(self, name: str) -> Array:
        """Returns the points of data: nodes, centres of cells, or quadrature points."""
        return self._own.data_points(name)

    def data_values(self, name: str) -> Array:
        """Returns the values of data, in the order of `data_points`."""
        return self._own.data_values(name)

    @property
    def time(self) -> float:
        """The time t."""
        return self._own.time

    @time.setter
    def time(self, time: float) -> None:
        self._own.set_time(time)

    # Degrees of freedom.

    @property
    def fields(self) -> dict[str, tuple[int, ...]]:
        """The fields with their shapes."""
        return {name: tuple(shape) for name, shape, _ in self._own.fields}

    def _shape(self, name: str) -> tuple[int, ...]:
        fields = self.fields
        if name not in fields:
            raise unknown("field", name, list(fields))
        return fields[name]

    @property
    def dofs(self) -> int:
        """The number of degrees of freedom."""
        return self._own.dofs

    @property
    def constrained_dofs(self) -> NDArray[np.int64]:
        """The degrees of freedom with an essential condition, ascending."""
        return self._own.constrained_dofs()

    @property
    def notes(self) -> list[str]:
        """Remarks on the quadrature, on conditions that meet, and on kernels."""
        return self._own.notes

    def points(self, name: str | None = None) -> Array:
        """Returns the position of each node of a field, (nodes, 3); by default of the first."""
        return self._own.points(next(iter(self.fields)) if name is None else name)

    def _slices(self) -> dict[str, tuple[slice, tuple[int, ...]]]:
        self._own.build()
        fields = self._own.fields
        ends = [start for *_, start in fields[1:]] + [self.dofs]
        rows = zip(fields, ends, strict=True)
        return {name: (slice(start, end), tuple(shape)) for (name, shape, start), end in rows}

    def split(self, u: Array) -> dict[str, Array]:
        """Returns views of the fields in a state: (nodes,) or (nodes, components)."""
        found = {}
        if np.shape(u) != (self.dofs,):
            raise InvalidValue(
                f"a state has {self.dofs} entries, but the shape of this one is {np.shape(u)}"
            )
        for name, (part, shape) in self._slices().items():
            own = u[part]
            found[name] = own.reshape(-1, int(np.prod(shape))) if shape else own
        return found

    def join(self, fields: Mapping[str, ArrayLike]) -> Array:
        """Returns the state with these fields; others are 0."""
        u = np.zeros(self.dofs)
        slices = self._slices()
        for name, values in fields.items():
            if name not in slices:
                raise unknown("field", name, list(slices))
            part, _ = slices[name]
            array = np.asarray(values, dtype=np.float64)
            if array.size != part.stop - part.start:
                raise InvalidValue(
                    f"`{name}` has {part.stop - part.start} entries, but there are {array.size}"
                )
            u[part] = array.ravel()
        return u

    def interpolate(self, **functions: Values) -> Array:
        """Returns the state with the nodal values of functions of points; other fields are 0."""
        fields = {}
        for name, value in functions.items():
            count = int(np.prod(self._shape(name), dtype=int))
            points = self.points(name)
            values = _function(value, count, name) if callable(value) else None
            if values is None:
                rows = np.asarray(value, dtype=np.float64)
                fields[name] = np.broadcast_to(rows, (len(points), count) if rows.ndim else (len(points) * count,))
            else:
                fields[name] = values(points, self.time)
        return self.join(fields)

    def at_points(self, name: str, u: Array) -> Array:
        """Returns a field at the points of the mesh, in the caller's order; NaN for unused points.

        It takes a continuous field of degree 1 or higher.
        """
        values = self.split(np.asarray(u))[name]
        mesh = self._mesh
        if mesh is None:
            raise InvalidValue("the system of a solution has no mesh of the caller")
        numbers, _ = mesh._sorted()
        vertices = mesh._own.n_vertices
        nodes = self.points(name)[:vertices]
        if len(nodes) < vertices or not np.allclose(nodes, mesh._own.points[:vertices]):
            raise InvalidValue(f"the nodes of `{name}` are not those of the mesh")
        inside = (0 <= numbers) & (numbers < vertices)
        found = values[np.where(inside, numbers, 0)].astype(np.float64)
        found[~inside] = np.nan
        return found

    # The equations.

    def initial(self) -> Array:
        """Returns the initial state: zero with the values of the conditions."""
        return self._own.initial()

    def vector(self, entries: Any = None) -> Vector:
        """Returns a vector in the memory of the device: zeros, or the entries of an array."""
        vector = self._own.vector()
        if entries is not None:
            if isinstance(entries, np.ndarray):
                vector.set(_state(entries))
            else:
                vector.take(entries)
        return vector

    def impose(self, u: Any) -> Any:
        """Returns a state with the values of the conditions."""
        return self._own.impose(_state(u))

    def residual(self, u: Any, out: Array | None = None) -> Any:
        """Returns R(u); entries of constrained degrees of freedom are 0."""
        self._check()
        return _out(self._own.residual(_state(u)), out)

    def linearise(self, u: Any) -> System:
        """Linearises the Jacobian at a state."""
        self._check()
        self._own.linearise(_state(u))
        return self

    def apply(self, w: Any, out: Array | None = None) -> Any:
        """Returns J·w at the last linearisation."""
        return _out(self._own.apply(_state(w)), out)

    def diagonal(self) -> Array:
        """Returns the diagonal of J at the last linearisation."""
        return self._own.diagonal()

    def operator(self) -> Any:
        """Returns the Jacobian as a `scipy.sparse.linalg.LinearOperator`."""
        from scipy.sparse.linalg import LinearOperator

        return LinearOperator(
            (self.dofs, self.dofs),
            matvec=lambda w: self.apply(np.asarray(w).ravel()),
            dtype=np.dtype(np.float64),
        )

    def to_scipy(self) -> Any:
        """Returns the Jacobian as a `scipy.sparse.csr_array`."""
        from scipy.sparse import csr_array

        starts, columns, values = self._own.matrix()
        return csr_array((values, columns, starts), shape=(self.dofs, self.dofs))

    def set_load(self, load: Any = None) -> System:
        """Sets an additional right-hand side l, R(u) = l; none removes it."""
        self._own.set_load(None if load is None else _state(load))
        return self

    def solve(
        self,
        u: Any = None,
        *,
        solver: str | None = None,
        progress: Callable[[str, Any], bool | None] | None = None,
    ) -> Any:
        """Solves R(u) = 0 from a state, by default the initial one, and returns the solution.

        ``solver`` is text of the language, ``"cg(preconditioner: multigrid)"``. ``progress`` gets
        the iterations like that of `Problem.run`. `report` has the statistics.
        """
        self._check()
        start = self.initial() if u is None else u
        return self._own.solve(_state(start), solver, progress)

    @property
    def report(self) -> dict[str, Any] | None:
        """The statistics of the last solve."""
        return self._own.report

    def solution(self, u: Any) -> Solution:
        """Returns the solution with its errors, energy and pictures, after `solve`."""
        return Solution(_native.measured(self._own, _state(u)))

    def measure(self, u: Any, text: str) -> Any:
        """Evaluates a report of the language, ``"integral(u^2)"``: a float, an array, or a line."""
        return self._own.measure(_state(u), text)

    def values_at(self, name: str, u: Any, points: ArrayLike) -> Array:
        """Returns the values of a field at points of the mesh."""
        return self._own.at(name, _state(u), _points(points), False)

    def gradients_at(self, name: str, u: Any, points: ArrayLike) -> Array:
        """Returns the gradients of a field at points, ∂u_i/∂x_j row by row."""
        return self._own.at(name, _state(u), _points(points), True)

    def write(self, path: str | os.PathLike[str], u: Any) -> None:
        """Writes a state for ParaView, to a file with the extension ``.vtu``."""
        if os.path.splitext(path)[1].lower() != ".vtu":
            raise InvalidValue(f"a state is written as `.vtu`, not to {os.fspath(path)}")
        self._own.write(os.fspath(path), _state(u))

    # Time.

    def steps(
        self,
        scheme: Scheme,
        u: Any = None,
        *,
        to: float,
        dt: float,
        start: float = 0.0,
        rate: Any = None,
        solver: str | None = None,
    ) -> Iterator[Step]:
        """Goes through time in steps of ``dt``, with a shorter last one, and yields each step.

        The form has `dt(u)`; ``rate`` is the first derivative at the start, of a form with second
        ones.
        """
        if not (dt > 0 and np.isfinite(dt) and np.isfinite(to)):
            raise InvalidValue(f"steps of {dt} to {to} are no steps")
        self._check()
        settings = [(name, str(value)) for name, value in scheme.settings.items()]
        begin = self.initial() if u is None else u
        steps = _native.Steps(
            self._own,
            scheme.name,
            settings,
            start,
            _state(begin),
            None if rate is None else _state(rate),
        )
        return self._each(steps, to, dt, solver)

    def _each(
        self, steps: _native.Steps, to: float, dt: float, solver: str | None
    ) -> Iterator[Step]:
        number = 0
        while (left := to - steps.time) > 1e-9 * dt:
            length = left if left <= dt * (1 + 1e-9) else dt
            estimate = steps.advance(length, solver)
            number += 1
            yield Step(self, steps, number, steps.time, steps.u, estimate)

    def __repr__(self) -> str:
        return f"System(fields={self.fields}, dofs={self.dofs})"


@dataclass
class Step:
    """A time step: its number from 1, time, state, and error estimate."""

    system: System = field(repr=False)
    _steps: _native.Steps = field(repr=False)
    number: int
    t: float
    state: Array = field(repr=False)
    estimate: float | None

    def __getattr__(self, name: str) -> Array:
        if not name.startswith("_") and name in self.system.fields:
            return self.system.split(self.state)[name]
        raise AttributeError(f"a step has no attribute {name!r}")

    def __getitem__(self, name: str) -> Array:
        return self.system.split(self.state)[name]

    @property
    def rate(self) -> Array | None:
        """The time derivative of the state, of the last step taken."""
        return self._steps.rate

    def measure(self, text: str) -> Any:
        """Evaluates a report of the language at the state of the last step taken."""
        return self._steps.measure(text)


def _state(u: Any) -> Any:
    if isinstance(u, Vector):
        return u
    array = np.ascontiguousarray(u, dtype=np.float64)
    return array.ravel()


def _out(result: Any, out: Array | None) -> Any:
    if out is None:
        return result
    if out.shape != result.shape or out.dtype != np.float64:
        raise InvalidValue(
            f"`out` has the shape {out.shape} and the type {out.dtype}, "
            f"but the result has {result.shape} and float64"
        )
    np.copyto(out, result)
    return out


def _point(at: ArrayLike) -> tuple[float, float, float]:
    x, y, z = _points(np.asarray(at, dtype=np.float64)[None])[0]
    return x, y, z


def _points(points: ArrayLike) -> list[tuple[float, float, float]]:
    array = np.atleast_2d(np.asarray(points, dtype=np.float64))
    if array.ndim != 2 or not 1 <= array.shape[1] <= 3:
        raise InvalidValue(f"points of the shape {array.shape}; expected (points, 1 to 3)")
    padded = np.zeros((len(array), 3))
    padded[:, : array.shape[1]] = array
    return [(float(x), float(y), float(z)) for x, y, z in padded]


def _constant(row: Array) -> Callable[[Array, float], Array]:
    return lambda x, t: np.tile(row, len(x))


def _function(
    values: Callable[..., ArrayLike], count: int, name: str
) -> Callable[[Array, float], Array]:
    timed = _arguments(values) > 1

    def call(x: Array, t: float) -> Array:
        found = np.asarray(values(x, t) if timed else values(x), dtype=np.float64)
        shape = (len(x),) if count == 1 else (len(x), count)
        if count == 1 and found.shape == (len(x), 1):
            found = found[:, 0]
        if found.ndim < len(shape) or found.shape != shape:
            if found.size not in (1, count):
                raise InvalidValue(
                    f"the function of `{name}` returned the shape {found.shape} for {len(x)} points\n"
                    f"help: let it return {shape}"
                )
            found = np.broadcast_to(found, shape)
        return np.ascontiguousarray(found).ravel()

    return call


def _arguments(values: Callable[..., Any]) -> int:
    import inspect

    try:
        signature = inspect.signature(values)
    except (TypeError, ValueError):
        return 1
    kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    return sum(
        own.kind in kinds and own.default is inspect.Parameter.empty
        for own in signature.parameters.values()
    )


def _nodal(name: str, points: Array, values: Array, count: int) -> Callable[[Array, float], Array]:
    """Returns the values of nodes by their positions.

    Coarser levels of multigrid solve for corrections. Their nodes, which may be others, have no
    values of their own there.
    """
    if values.size != len(points) * count:
        raise InvalidValue(
            f"the condition on `{name}` has {values.size} values\n"
            f"help: pass a number, {count} numbers, or a row for each of the {len(points)} nodes"
        )
    rows = np.array(values.reshape(len(points), count))
    places = {point.tobytes(): row for point, row in zip(points + 0.0, rows, strict=True)}
    none = np.zeros(count)
    return lambda x, t: np.concatenate(
        [places.get(point.tobytes(), none) for point in x + 0.0] or [none[:0]]
    )
