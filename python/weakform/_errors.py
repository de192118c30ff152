"""Exceptions and warnings of the package."""

from __future__ import annotations

from typing import Any


class Error(Exception):
    """An error of weakform; its text says what happened and what to do."""


class LanguageError(Error):
    """Mistakes in text of the language. The text of the exception underlines them."""

    def __init__(self, text: str, diagnostics: list[dict[str, Any]]) -> None:
        super().__init__(text)
        #: Each mistake with its code, message, file, line, column, labels, notes and help.
        self.diagnostics = diagnostics


class NotConverged(Error):
    """A solve without a solution."""

    def __init__(
        self, text: str, solution: dict[str, Any] | None, report: dict[str, Any]
    ) -> None:
        super().__init__(text)
        #: The values of each field that the solve had reached, if they are finite.
        self.solution = solution
        #: The number of iterations, and the residual norm of each.
        self.report = report


class MeshError(Error):
    """A mesh that cannot be generated, read or made of arrays."""


class InvalidValue(Error, ValueError):
    """A value of the wrong kind, size or range."""


class UnknownName(Error, KeyError):
    """A name that the form, the file or the solution does not have."""

    def __init__(self, text: str, what: str, name: str, known: list[str]) -> None:
        super().__init__(text)
        self.what = what
        self.name = name
        self.known = known

    def __str__(self) -> str:
        # That of KeyError would quote the text.
        return str(self.args[0])


class LanguageWarning(UserWarning):
    """Valid but probably unintended text of the language."""


class PerformanceWarning(UserWarning):
    """Kernels that are interpreted, because no compiler was found."""


def unknown(what: str, name: str, known: list[str]) -> UnknownName:
    """Returns the exception for an unknown name, with the nearest known one."""
    import difflib

    near = difflib.get_close_matches(name, known, n=1)
    if near:
        help = f"did you mean `{near[0]}`?"
    elif known:
        help = f"there are {', '.join(known)}"
    else:
        help = "there is none"
    return UnknownName(f"there is no {what} `{name}`\nhelp: {help}", what, name, known)
