"""Files, forms and problems of the language."""

from __future__ import annotations

import html
import json
import os
import warnings
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from . import _native
from ._errors import InvalidValue, LanguageWarning, unknown
from ._solution import Solution, warn_of_kernels

if TYPE_CHECKING:
    from ._mesh import Mesh
    from ._system import System

#: The keyword arguments of `Problem.run` that are no parameters.
SETTINGS = (
    "mesh",
    "refine",
    "degree",
    "quadrature",
    "solver",
    "device",
    "scatter",
    "operator",
    "kernels",
    "checkpoint",
    "restart",
    "folder",
)

#: Cells by the dimension of a form.
CELLS = {1: "interval", 2: "quad", 3: "hex"}


def load(path: str | os.PathLike[str]) -> File:
    """Reads a file of the language."""
    return File(_native.File.read(os.fspath(path)))


def parse(text: str) -> File:
    """Compiles a text of the language."""
    return File(_native.File.parse(text))


class File:
    """The forms and problems of a text."""

    def __init__(self, native: _native.File) -> None:
        self._own = native
        if native.warnings:
            warnings.warn(native.rendered_warnings(), LanguageWarning, stacklevel=3)

    @property
    def text(self) -> str:
        """The text."""
        return self._own.text

    @property
    def forms(self) -> list[str]:
        """The names of the forms."""
        return self._own.forms

    @property
    def problems(self) -> list[str]:
        """The names of the problems."""
        return self._own.problems

    @property
    def warnings(self) -> list[dict[str, Any]]:
        """Warnings about valid but probably unintended text."""
        return self._own.warnings

    def form(self, name: str | None = None) -> Form:
        """Returns the form of this name, or the only one."""
        return Form._of(self._own.form(_only("form", name, self.forms)))

    def problem(self, name: str | None = None) -> Problem:
        """Returns the problem of this name, or the only one."""
        return Problem(self._own.problem(_only("problem", name, self.problems)))

    def __repr__(self) -> str:
        return f"File(forms={self.forms}, problems={self.problems})"


def _only(what: str, name: str | None, known: list[str]) -> str:
    if name is not None:
        return name
    if len(known) != 1:
        raise InvalidValue(
            f"the text has {len(known)} {what}s: {', '.join(known) or 'none'}\n"
            f"help: name one of them, `file.{what}(NAME)`"
        )
    return known[0]


class Form:
    """A form: the physics of a PDE at one point, checked.

    ``Form("form a { … }")`` compiles a text with one form; ``name`` selects one of several.
    """

    _own: _native.Form
    #: The degree of `on` without one.
    degree: int = 1

    def __init__(self, text: str, name: str | None = None) -> None:
        self._own = parse(text).form(name)._own

    @classmethod
    def _of(cls, native: _native.Form) -> Form:
        form = cls.__new__(cls)
        form._own = native
        return form

    @property
    def name(self) -> str:
        """The name."""
        return self._own.name

    @property
    def text(self) -> str:
        """The text from which it was compiled."""
        return self._own.text

    @property
    def documentation(self) -> str:
        """The documentation comment before it."""
        return self._own.documentation

    @property
    def dimensions(self) -> list[int]:
        """The dimensions in which it is valid."""
        return self._own.dimensions

    def _names(self, dim: int | None) -> dict[str, dict[str, tuple[int, ...]]]:
        dim = self.dimensions[-1] if dim is None else dim
        found = self._own.names(dim)
        return {kind: {name: tuple(s) for name, s in own.items()} for kind, own in found.items()}

    def fields(self, dim: int | None = None) -> dict[str, tuple[int, ...]]:
        """Returns the fields with their shapes."""
        return self._names(dim)["fields"]

    def params(self, dim: int | None = None) -> dict[str, tuple[int, ...]]:
        """Returns the parameters with their shapes."""
        return self._names(dim)["params"]

    def data(self, dim: int | None = None) -> dict[str, tuple[int, ...]]:
        """Returns the auxiliary data with their shapes."""
        return self._names(dim)["data"]

    def emit(self, stage: str = "print", cell: str | None = None, degree: int = 2) -> str:
        """Returns the output of a stage of the compiler, like `wf emit --stage`."""
        cell = CELLS[self.dimensions[-1]] if cell is None else cell
        return self._own.emit(stage, cell, degree)

    def on(
        self,
        mesh: Mesh,
        *,
        degree: int | None = None,
        params: Mapping[str, Any] | None = None,
        data: Mapping[str, Any] | None = None,
        quadrature: int | str | None = None,
        time: float = 0.0,
        device: str = "cpu",
        kernels: str = "automatic",
    ) -> System:
        """Returns the system of the form on a mesh.

        ``data`` has for each name a number, an array with a row for each cell or each point of
        the mesh in the caller's order, or a function of points of shape (n, 3).
        ``kernels`` is ``"automatic"``, ``"compiled"`` or ``"interpreted"``.
        """
        from ._system import System

        return System(
            self,
            mesh,
            degree=self.degree if degree is None else degree,
            params=params,
            data=data,
            quadrature=quadrature,
            time=time,
            device=device,
            kernels=kernels,
        )

    def __repr__(self) -> str:
        return f"Form({self.name!r}, dimensions={self.dimensions})"

    def _repr_html_(self) -> str:
        rows = []
        for kind, own in self._names(None).items():
            rows += [
                f"<tr><td>{html.escape(kind.rstrip('s') if kind != 'data' else kind)}</td>"
                f"<td><code>{html.escape(name)}</code></td>"
                f"<td>{' × '.join(map(str, shape)) or 'scalar'}</td></tr>"
                for name, shape in own.items()
            ]
        about = f"<p>{html.escape(self.documentation)}</p>" if self.documentation else ""
        try:
            equations = self.emit("simplify")
        except Exception as error:  # A display never fails.
            equations = str(error)
        return (
            f"<b>form {html.escape(self.name)}</b>{about}"
            f"<table><tr><th></th><th>name</th><th>shape</th></tr>{''.join(rows)}</table>"
            f"<pre>{html.escape(equations)}</pre>"
        )


class Problem:
    """A form with its mesh, degree, conditions and data."""

    def __init__(self, native: _native.Problem) -> None:
        self._own = native

    @property
    def name(self) -> str:
        """The name."""
        return self._own.name

    @property
    def form(self) -> str:
        """The name of its form."""
        return self._own.form

    def run(
        self,
        *,
        progress: bool | Callable[[str, Any], bool | None] = False,
        data: Mapping[str, str] | None = None,
        params: Mapping[str, Any] | None = None,
        **settings: Any,
    ) -> Solution:
        """Solves the problem.

        Keyword arguments replace statements of the text: ``mesh``, ``refine``, ``degree``,
        ``quadrature``, ``solver``, and parameters by their names; parameters that are named like
        a setting are in ``params``. Further settings are those of `wf run`: ``device``
        (``"cuda:0"``), ``scatter``, ``operator`` (``"assembled"``), ``kernels``
        (``"automatic"``, ``"compiled"``, ``"interpreted"``), ``checkpoint``, ``restart``.
        ``data`` has expressions of the language for auxiliary data.

        ``progress=True`` draws a bar where tqdm is installed. A callable gets the kind and the
        content of each event, ``("iteration", (number, residual, target))``,
        ``("time", (t, end))`` or ``("step", {…})``, and ends the run by returning ``False``.
        """
        own = self._own.params()
        shapes: dict[str, list[int]] = dict(own)
        given: list[tuple[str, str]] = []
        values = dict(params or {})
        options: list[tuple[str, str]] = []
        for name, value in settings.items():
            if value is None:
                continue
            if name in SETTINGS:
                options.append((name, _setting(name, value, settings.get("device"))))
            elif name in shapes:
                values[name] = value
            else:
                raise unknown("parameter or setting", name, [*shapes, *SETTINGS])
        for name, value in values.items():
            if name not in shapes:
                raise unknown("parameter", name, list(shapes))
            given.append((name, _literal(value)))
        observe = _observer(self.name, progress)
        try:
            native = self._own.run(options, given, list((data or {}).items()), observe)
        finally:
            close = getattr(observe, "close", None)
            if close is not None:
                close()
        solution = Solution(native)
        warn_of_kernels(native.kernel_notes)
        return solution

    def __repr__(self) -> str:
        return f"Problem({self.name!r}, form={self.form!r})"


def _setting(name: str, value: Any, device: Any) -> str:
    if name in ("checkpoint", "restart", "folder") or (
        name == "mesh" and isinstance(value, os.PathLike)
    ):
        return str(os.fspath(value))
    if name == "operator" and value == "assembled":
        # The same sums at every run, as for `wf run --operator assembled`.
        return "assembled:pattern" if device in (None, "cpu") else "assembled:owner"
    return str(value)


def _literal(value: Any) -> str:
    """Returns a value as the language writes it."""
    if isinstance(value, str):
        return value
    array = np.asarray(value, dtype=float)
    if array.ndim == 0:
        return repr(float(array))
    return f"[{', '.join(_literal(row) for row in array)}]"


def _observer(
    name: str, progress: bool | Callable[[str, Any], bool | None]
) -> Callable[[str, Any], Any] | None:
    if progress is False:
        return None
    if callable(progress):
        call: Callable[[str, Any], Any] = progress

        def observe(kind: str, content: Any) -> Any:
            return call(kind, json.loads(content) if kind == "step" else content)

        return observe
    return _Bar(name)


class _Bar:
    """A bar of tqdm, or lines of text without it."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.bar: Any = None
        try:
            from tqdm.auto import tqdm

            self.bar = tqdm(desc=name, unit="it")
        except ImportError:
            print(f"{name}: running (install tqdm for a bar)", flush=True)

    def __call__(self, kind: str, content: Any) -> None:
        if self.bar is None:
            return
        if kind == "iteration":
            number, residual, target = content
            self.bar.update()
            self.bar.set_postfix_str(f"residual {residual:.2e} of {target:.2e}", refresh=False)
        elif kind == "time":
            self.bar.set_description(f"{self.name}: t = {content[0]:.6g} of {content[1]:.6g}")

    def close(self) -> None:
        if self.bar is not None:
            self.bar.close()
