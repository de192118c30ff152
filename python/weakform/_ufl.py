"""Forms of UFL as text of the language."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from ._errors import InvalidValue
from ._language import Form

#: Functions of one number with the same meaning.
FUNCTIONS = {
    "Sqrt": "sqrt",
    "Exp": "exp",
    "Ln": "log",
    "Sin": "sin",
    "Cos": "cos",
    "Tan": "tan",
    "Asin": "asin",
    "Acos": "acos",
    "Atan": "atan",
    "Sinh": "sinh",
    "Cosh": "cosh",
    "Tanh": "tanh",
    "Abs": "abs",
    "Sign": "sign",
}
#: Functions of one tensor.
TENSORS = {
    "Trace": "tr",
    "Determinant": "det",
    "Inverse": "inv",
    "Cofactor": "cof",
    "Sym": "sym",
    "Skew": "skew",
    "Deviatoric": "dev",
    "Transposed": "transpose",
    "Div": "div",
    "Curl": "curl",
}
COMPARISONS = {"EQ": "==", "NE": "!=", "LT": "<", "LE": "<=", "GT": ">", "GE": ">="}
#: Constructs without a counterpart, with the reason.
REFUSED = {
    "CellVolume": "cells have a diameter `h`, no volume",
    "Circumradius": "cells have a diameter `h`, no circumradius",
    "FacetArea": "facets have no area in the language; `hn` is the extent of the cell from the facet",
    "MinCellEdgeLength": "cells have a diameter `h` alone",
    "MaxCellEdgeLength": "cells have a diameter `h` alone",
    "MinFacetEdgeLength": "facets have no edges in the language",
    "MaxFacetEdgeLength": "facets have no edges in the language",
    "BesselI": "Bessel functions are not in the language; a `table` interpolates their values",
    "BesselJ": "Bessel functions are not in the language; a `table` interpolates their values",
    "BesselK": "Bessel functions are not in the language; a `table` interpolates their values",
    "BesselY": "Bessel functions are not in the language; a `table` interpolates their values",
    "Erf": "the error function is not in the language; a `table` interpolates its values",
    "Imag": "complex mode has no counterpart; write real and imaginary parts, or complex fields of the language",
    "ComplexValue": "complex mode has no counterpart; write real and imaginary parts, or complex fields of the language",
    "CellAvg": "means of cells need a discontinuous field of degree 0",
    "FacetAvg": "means of facets have no counterpart",
    "ExternalOperator": "external operators are no expressions of the fields",
    "Interpolate": "interpolation within a form has no counterpart; interpolate into a coefficient first",
}
#: Families of elements of basix with a counterpart.
FAMILIES = {"P": "Lagrange", "N1E": "Nédélec, first kind", "RT": "Raviart–Thomas"}
#: Length from which a repeated expression gets a name.
LONG = 48

Components = tuple[int, ...]


def from_ufl(
    form: Any,
    unknowns: Mapping[str | tuple[str, ...], Any],
    constants: Mapping[str, Any] | None = None,
    *,
    name: str = "equations",
    boundary: Sequence[str] = ("boundary",),
    tags: Mapping[int, str] | None = None,
) -> Form:
    """Converts a form of UFL.

    ``form`` is a residual (linear in test functions), an energy without them, an equation
    ``a == L``, or a bilinear form minus a linear one. ``unknowns`` names the coefficients that are
    solved for; a coefficient of a mixed element takes a tuple of names. Other coefficients are
    auxiliary data and constants are parameters, with the names in ``constants``.
    ``boundary`` has the tags whose facets are the whole boundary, for ``ds`` without a number;
    ``tags`` names the numbers of subdomains, which are tags ``"3"`` without it.

    Constructs without a counterpart are refused by their names.
    """
    return _Translation(form, unknowns, constants or {}, name, boundary, tags or {}).result()


def _refuse(construct: str, reason: str) -> InvalidValue:
    return InvalidValue(f"`{construct}` of UFL has no counterpart here: {reason}")


class _Field:
    """A field, or one of the parts of a mixed coefficient."""

    def __init__(self, name: str, test: str, element: Any, shape: Components) -> None:
        self.name = name
        self.test = test
        self.shape = shape
        self.family, self.degree = _space(element)


def _space(element: Any) -> tuple[str, int]:
    """Returns the space of an element of basix, and its degree."""
    base = element
    while getattr(base, "block_size", 1) > 1 and base.sub_elements:
        base = base.sub_elements[0]
    if getattr(element, "is_symmetric", False):
        raise _refuse("a symmetric tensor element", "take a tensor element without symmetry")
    family = getattr(base, "element_family", None)
    word = getattr(family, "name", None)
    if word not in FAMILIES:
        raise _refuse(
            f"an element of the family {word or type(base).__name__}",
            f"the elements are {', '.join(FAMILIES.values())}",
        )
    degree = int(base.degree)
    if word == "P":
        return ("L2" if base.discontinuous else "H1"), degree
    return {"N1E": "Hcurl", "RT": "Hdiv"}[word], degree


class _Translation:
    def __init__(
        self,
        form: Any,
        unknowns: Mapping[str | tuple[str, ...], Any],
        constants: Mapping[str, Any],
        name: str,
        boundary: Sequence[str],
        tags: Mapping[int, str],
    ) -> None:
        import ufl

        self.name, self.boundary, self.tags = name, boundary, tags
        self.unknowns = unknowns
        form = _residual(ufl, form, list(unknowns.values()))
        self.form = form
        domains = {domain.geometric_dimension for domain in form.ufl_domains()}
        if len(domains) != 1:
            raise _refuse("a form on several meshes", "put the fields on one mesh")
        self.dim = int(domains.pop())
        self.fields: list[_Field] = []
        #: The fields of each coefficient, with their first component.
        self.parts: dict[Any, list[tuple[int, _Field]]] = {}
        for names, coefficient in unknowns.items():
            self.declare(names, coefficient)
        self.names: dict[Any, str] = {own: name for name, own in constants.items()}
        self.params: list[str] = []
        self.data: list[str] = []
        # State of one region.
        self.lets: list[str] = []
        self.known: dict[Any, str] = {}
        self.seen: dict[Any, int] = {}
        self.letters = 0

    def declare(self, names: str | tuple[str, ...], coefficient: Any) -> None:
        element = coefficient.ufl_element()
        is_mixed = bool(getattr(element, "is_mixed", False))
        parts = list(element.sub_elements) if is_mixed else [element]
        all_names = (names,) if isinstance(names, str) else tuple(names)
        if len(all_names) != len(parts):
            raise InvalidValue(
                f"the coefficient of {all_names} has {len(parts)} parts\n"
                "help: give a mixed coefficient a tuple with a name for each"
            )
        first, own = 0, []
        for name, part in zip(all_names, parts, strict=True):
            shape = tuple(part.reference_value_shape)
            if not is_mixed:
                shape = tuple(coefficient.ufl_shape)
            field = _Field(name, f"test_{name}", part, shape)
            self.fields.append(field)
            own.append((first, field))
            first += int(np.prod(shape, dtype=int))
        self.parts[coefficient] = own

    # The text.

    def result(self) -> Form:
        degree = max((field.degree for field in self.fields), default=1)
        blocks: dict[str, list[str]] = {}
        is_energy = False
        for head, kind, integrals in self.regions():
            is_energy = kind == "energy"
            self.lets, self.known, self.seen = [], {}, {}
            terms = [self.term(kind, integral) for integral in integrals]
            items = [f"{kind} = {' + '.join(terms)};"]
            blocks.setdefault(head, []).extend([*self.lets, *items])
        fields = []
        for field in self.fields:
            less = degree - field.degree
            order = "k" if less == 0 else f"k - {less}"
            fields.append(f"field {field.name}: {self.shape(field.shape)} in {field.family}({order});")
        if not is_energy:
            fields += [f"test {field.test} for {field.name};" for field in self.fields]
        body = [*fields, *self.params, *self.data, *blocks.pop("", [])]
        for head, items in blocks.items():
            body.append(f"{head} {{")
            body += [f"    {item}" for item in items]
            body.append("}")
        text = "\n".join([f"form {self.name} {{", *(f"    {line}" for line in body), "}", ""])
        form = Form(text)
        form.degree = degree
        return form

    def regions(self) -> list[tuple[str, str, list[Any]]]:
        """Returns the integrals of each region, and whether they are energies or residuals."""
        found: dict[str, list[Any]] = {}
        for integral in self.form.integrals():
            kind = integral.integral_type()
            heads = {"cell": "on cells", "exterior_facet": "on boundary", "interior_facet": "on interior"}
            if kind not in heads:
                raise _refuse(f"an integral of the type {kind}", "it is none over cells or facets")
            number = integral.subdomain_id()
            numbers = number if isinstance(number, tuple) else (number,)
            for one in numbers:
                if one == "everywhere":
                    tags = [] if kind != "exterior_facet" else list(self.boundary)
                elif one == "otherwise":
                    raise _refuse("dx(otherwise)", "name the subdomains")
                else:
                    tags = [self.tags.get(one, str(one))]
                quoted = ", ".join(f'"{tag}"' for tag in tags)
                head = f"{heads[kind]} {quoted}".rstrip()
                found.setdefault("" if head == "on cells" else head, []).append(integral)
        energy = self.energies(found)
        return [(head, "energy" if energy else "residual", own) for head, own in found.items()]

    def energies(self, found: dict[str, list[Any]]) -> bool:
        """Returns whether the form is an energy, or the derivative of one with respect to all unknowns."""
        whole = [own for integrals in found.values() for own in integrals]
        if not any(_has_test(own.integrand()) for own in whole):
            return True
        return all(self.energy(own) is not None for own in whole)

    def energy(self, integral: Any) -> Any | None:
        """Returns E of an integrand `derivative(E, u, v)`, with a test function of all unknowns."""
        own = integral.integrand()
        if type(own).__name__ != "CoefficientDerivative":
            return None
        body, of, direction, _ = own.ufl_operands
        is_whole = set(of.ufl_operands) == set(self.parts)
        tests = all(type(own).__name__ == "Argument" for own in direction.ufl_operands)
        return body if is_whole and tests else None

    def term(self, kind: str, integral: Any) -> str:
        import ufl

        integrand = integral.integrand()
        if kind == "energy":
            integrand = self.energy(integral) or integrand
        if _has_derivatives(integrand):
            from ufl.algorithms import expand_derivatives

            integrand = expand_derivatives(ufl.Form([integral.reconstruct(integrand)]))
            integrand = sum((own.integrand() for own in integrand.integrals()), ufl.zero())
        self.count(integrand)
        return f"({self.scalar(integrand, (), {})})"

    def count(self, root: Any) -> None:
        """Counts the occurrences of each expression, for names."""
        open_ = [root]
        while open_:
            own = open_.pop()
            self.seen[own] = self.seen.get(own, 0) + 1
            if self.seen[own] == 1:
                open_.extend(own.ufl_operands)

    def shape(self, shape: Components) -> str:
        if not shape:
            return "scalar"
        if shape == (self.dim,):
            return "vector"
        if shape == (self.dim, self.dim):
            return "tensor"
        if len(shape) == 1:
            return f"vector({shape[0]})"
        raise _refuse(f"a field of the shape {shape}", "fields are scalars, vectors and square tensors")

    # Expressions. `env` has the values of free indices.

    def scalar(self, own: Any, at: Components, env: dict[int, int]) -> str:
        """Returns a component of an expression as text, a number."""
        bound = tuple((i, env[i]) for i in own.ufl_free_indices if i in env)
        key = (own, at, bound)
        if key in self.known:
            return self.known[key]
        text = self.component(own, at, env)
        if len(text) > LONG and (self.seen.get(own, 0) > 1 or bound or at) and not _has_test(own):
            self.letters += 1
            name = f"e{self.letters}_"
            self.lets.append(f"let {name} = {text};")
            text = name
        self.known[key] = text
        return text

    def component(self, own: Any, at: Components, env: dict[int, int]) -> str:
        kind = type(own).__name__
        operands = own.ufl_operands
        if kind in REFUSED:
            raise _refuse(kind, REFUSED[kind])
        method: Callable[..., str] | None = getattr(self, f"of_{kind}", None)
        if method is not None:
            return method(own, at, env)
        if own._ufl_is_terminal_:
            return self.terminal(own, at)
        if kind in FUNCTIONS:
            return f"{FUNCTIONS[kind]}({self.scalar(operands[0], (), env)})"
        if kind in COMPARISONS:
            a, b = (self.scalar(part, (), env) for part in operands)
            return f"{a} {COMPARISONS[kind]} {b}"
        whole = self.whole(own, env)
        if whole is not None:
            return self.indexed(whole, at)
        raise _refuse(kind, "the language has no such operation")

    @staticmethod
    def indexed(text: str, at: Components) -> str:
        return f"{text}[{', '.join(map(str, at))}]" if at else text

    def whole(self, own: Any, env: dict[int, int]) -> str | None:
        """Returns a tensor as text if it is a word of the language, else nothing."""
        kind, operands = type(own).__name__, own.ufl_operands
        if kind in TENSORS:
            if kind == "Deviatoric" and operands[0].ufl_shape != (self.dim, self.dim):
                return None
            return f"{TENSORS[kind]}({self.tensor(operands[0], env)})"
        if kind in ("Inner", "Dot", "Outer", "Cross") and len(own.ufl_shape) <= 2:
            return f"{kind.lower()}({self.tensor(operands[0], env)}, {self.tensor(operands[1], env)})"
        if kind == "Grad" and len(operands[0].ufl_shape) <= 1:
            return f"grad({self.tensor(operands[0], env)})"
        if own._ufl_is_terminal_ and kind not in ("Zero", "Identity", "PermutationSymbol"):
            return self.whole_terminal(own)
        return None

    def tensor(self, own: Any, env: dict[int, int]) -> str:
        """Returns an expression as text: a word of the language, or the list of its components."""
        shape = own.ufl_shape
        if not shape:
            return self.scalar(own, (), env)
        kind, operands = type(own).__name__, own.ufl_operands
        if kind in ("Variable", "Conj", "Real"):
            return self.tensor(operands[0], env)
        if kind == "Identity" and shape == (self.dim, self.dim):
            return "I"
        if kind in ("PositiveRestricted", "NegativeRestricted"):
            return self.restricted(own, lambda part: self.tensor(part, env), operands[0])
        if kind == "Sum" and len(shape) <= 2:
            return f"({self.tensor(operands[0], env)} + {self.tensor(operands[1], env)})"
        product = _scaled(own)
        if product is not None and len(shape) <= 2:
            factor, tensor = product
            return f"({self.scalar(factor, (), env)}) * {self.tensor(tensor, env)}"
        whole = self.whole(own, env)
        if whole is not None:
            return whole
        if len(shape) > 2:
            raise _refuse(
                f"a tensor of rank {len(shape)} as a whole", "write its contraction with indices"
            )
        rows = [self.scalar(own, (i,), env) for i in range(shape[0])] if len(shape) == 1 else [
            f"[{', '.join(self.scalar(own, (i, j), env) for j in range(shape[1]))}]"
            for i in range(shape[0])
        ]
        return f"[{', '.join(rows)}]"

    # Terminals.

    def field_of(self, own: Any, test: bool) -> list[tuple[int, _Field]]:
        """Returns the fields of a coefficient, or of a test function with its space."""
        if not test:
            return self.parts[own]
        spaces = [
            (coefficient, parts)
            for coefficient, parts in self.parts.items()
            if coefficient.ufl_function_space() == own.ufl_function_space()
        ]
        part = own.part()
        if part is not None:
            spaces = [list(self.parts.items())[part]]
        if len(spaces) != 1:
            raise InvalidValue(
                "a test function belongs to no unknown, or to several\n"
                "help: name each unknown in `unknowns`; give fields of one space the test functions "
                "of a `MixedFunctionSpace` in the order of `unknowns`"
            )
        return spaces[0][1]

    def whole_terminal(self, own: Any) -> str:
        kind = type(own).__name__
        is_test = kind == "Argument"
        if is_test or own in self.parts:
            parts = self.field_of(own, is_test)
            if len(parts) == 1:
                return parts[0][1].test if is_test else parts[0][1].name
            items = []
            for _, field in parts:
                name = field.test if is_test else field.name
                size = int(np.prod(field.shape, dtype=int))
                items += [self.indexed(name, self.unravel(field.shape, i)) for i in range(size)]
            return f"[{', '.join(items)}]"
        if kind == "SpatialCoordinate":
            return "x"
        if kind == "FacetNormal":
            return "n"
        if kind == "CellDiameter":
            return "h"
        if kind == "Constant":
            return self.parameter(own)
        if kind == "Coefficient" or hasattr(own, "ufl_element"):
            return self.auxiliary(own)
        raise _refuse(kind, "the language has no such quantity")

    def terminal(self, own: Any, at: Components) -> str:
        kind = type(own).__name__
        if kind == "Zero":
            return "0"
        if kind in ("IntValue", "FloatValue", "RealValue"):
            value = float(own._value)
            text = repr(int(value)) if value.is_integer() and abs(value) < 1e15 else repr(value)
            return text if value >= 0 else f"({text})"
        if kind == "Identity":
            return "1" if at[0] == at[1] else "0"
        if kind == "PermutationSymbol":
            signs = {(0, 1): 1, (1, 0): -1, (0, 1, 2): 1, (1, 2, 0): 1, (2, 0, 1): 1}
            sign = signs.get(at, -1 if len(set(at)) == len(at) else 0)
            return str(sign) if sign >= 0 else f"({sign})"
        is_test = kind == "Argument"
        if (is_test or own in self.parts) and at:
            parts = self.field_of(own, is_test)
            if len(parts) > 1:
                first, field = [part for part in parts if part[0] <= at[0]][-1]
                name = field.test if is_test else field.name
                return self.indexed(name, self.unravel(field.shape, at[0] - first))
        return self.indexed(self.whole_terminal(own), at)

    @staticmethod
    def unravel(shape: Components, index: int) -> Components:
        return tuple(int(i) for i in np.unravel_index(index, shape)) if shape else ()

    def parameter(self, own: Any) -> str:
        if own not in self.names or not any(f" {self.names[own]}:" in line for line in self.params):
            name = self.names.setdefault(own, f"c{own.count()}_")
            value = np.asarray(getattr(own, "value", np.zeros(own.ufl_shape)), dtype=float)
            self.params.append(f"param {name}: {self.shape(own.ufl_shape)} = {_list(value)};")
        return self.names[own]

    def auxiliary(self, own: Any) -> str:
        name = self.names.setdefault(own, f"w{own.count()}_")
        if not any(f" {name}:" in line for line in self.data):
            element = own.ufl_element()
            shape = self.shape(tuple(own.ufl_shape))
            if getattr(element, "is_quadrature", False) or type(element).__name__ == "_QuadratureElement":
                place = "on points"
            else:
                family, degree = _space(element)
                if family == "L2" and degree == 0:
                    place = "on cells"
                elif family == "H1":
                    place = f"on nodes in H1({degree})"
                else:
                    raise _refuse(
                        f"a coefficient in {family} of degree {degree}",
                        "data is continuous, constant in each cell, or at quadrature points",
                    )
            self.data.append(f"aux {name}: {shape} {place};")
        return name

    # Operators.

    def of_Sum(self, own: Any, at: Components, env: dict[int, int]) -> str:
        terms = [self.scalar(part, at, env) for part in own.ufl_operands]
        kept = [term for term in terms if term != "0"]
        return f"({' + '.join(kept)})" if len(kept) > 1 else (kept or ["0"])[0]

    def of_Product(self, own: Any, at: Components, env: dict[int, int]) -> str:
        factors = [self.scalar(part, (), env) for part in own.ufl_operands]
        if "0" in factors:
            return "0"
        kept = [_factor(factor) for factor in factors if factor != "1"]
        return " * ".join(kept) or "1"

    def of_Division(self, own: Any, at: Components, env: dict[int, int]) -> str:
        a, b = own.ufl_operands
        top = self.scalar(a, at, env)
        return "0" if top == "0" else f"{_factor(top)} / ({self.scalar(b, (), env)})"

    def of_Power(self, own: Any, at: Components, env: dict[int, int]) -> str:
        a, b = (self.scalar(part, (), env) for part in own.ufl_operands)
        return f"({a})^({b})"

    def of_Conditional(self, own: Any, at: Components, env: dict[int, int]) -> str:
        condition, a, b = own.ufl_operands
        test = self.scalar(condition, (), env)
        return f"(if {test} {{ {self.scalar(a, at, env)} }} else {{ {self.scalar(b, at, env)} }})"

    def of_AndCondition(self, own: Any, at: Components, env: dict[int, int]) -> str:
        a, b = (self.scalar(part, (), env) for part in own.ufl_operands)
        return f"({a}) && ({b})"

    def of_OrCondition(self, own: Any, at: Components, env: dict[int, int]) -> str:
        a, b = (self.scalar(part, (), env) for part in own.ufl_operands)
        return f"({a}) || ({b})"

    def of_NotCondition(self, own: Any, at: Components, env: dict[int, int]) -> str:
        return f"!({self.scalar(own.ufl_operands[0], (), env)})"

    def of_MinValue(self, own: Any, at: Components, env: dict[int, int]) -> str:
        a, b = (self.scalar(part, (), env) for part in own.ufl_operands)
        return f"min({a}, {b})"

    def of_MaxValue(self, own: Any, at: Components, env: dict[int, int]) -> str:
        a, b = (self.scalar(part, (), env) for part in own.ufl_operands)
        return f"max({a}, {b})"

    def of_Atan2(self, own: Any, at: Components, env: dict[int, int]) -> str:
        a, b = (self.scalar(part, (), env) for part in own.ufl_operands)
        return f"atan2({a}, {b})"

    def of_Conj(self, own: Any, at: Components, env: dict[int, int]) -> str:
        # UFL conjugates test functions in real mode, too.
        return self.scalar(own.ufl_operands[0], at, env)

    of_Real = of_Conj

    def of_Variable(self, own: Any, at: Components, env: dict[int, int]) -> str:
        return self.scalar(own.ufl_operands[0], at, env)

    def of_Inverse(self, own: Any, at: Components, env: dict[int, int]) -> str:
        if not at:
            return f"1 / ({self.scalar(own.ufl_operands[0], (), env)})"
        return self.indexed(f"inv({self.tensor(own.ufl_operands[0], env)})", at)

    def of_Indexed(self, own: Any, at: Components, env: dict[int, int]) -> str:
        tensor, indices = own.ufl_operands
        return self.scalar(tensor, self.values(indices, env), env)

    @staticmethod
    def values(indices: Any, env: dict[int, int]) -> Components:
        return tuple(
            int(own) if type(own).__name__ == "FixedIndex" else env[own.count()] for own in indices
        )

    def of_IndexSum(self, own: Any, at: Components, env: dict[int, int]) -> str:
        summand, indices = own.ufl_operands
        index = indices[0].count()
        terms = [self.scalar(summand, at, {**env, index: i}) for i in range(own.dimension())]
        kept = [term for term in terms if term != "0"]
        return f"({' + '.join(kept)})" if len(kept) > 1 else (kept or ["0"])[0]

    def of_ComponentTensor(self, own: Any, at: Components, env: dict[int, int]) -> str:
        body, indices = own.ufl_operands
        new = {index.count(): i for index, i in zip(indices, at, strict=True)}
        return self.scalar(body, (), {**env, **new})

    def of_ListTensor(self, own: Any, at: Components, env: dict[int, int]) -> str:
        return self.scalar(own.ufl_operands[at[0]], at[1:], env)

    def of_Grad(self, own: Any, at: Components, env: dict[int, int]) -> str:
        (tensor,) = own.ufl_operands
        if _is_plain(tensor) and len(tensor.ufl_shape) <= 1 and len(self.mixed(tensor)) == 1:
            return self.indexed(f"grad({self.tensor(tensor, env)})", at)
        if type(tensor).__name__ == "Grad":
            inner = tensor.ufl_operands[0]
            if _is_plain(inner):
                scalar = self.scalar(inner, at[:-2], env)
                return self.indexed(f"grad(grad({scalar}))", at[-2:])
        return f"grad({self.scalar(tensor, at[:-1], env)})[{at[-1]}]"

    def mixed(self, own: Any) -> list[Any]:
        if type(own).__name__ == "Argument":
            return self.field_of(own, True)
        return self.parts.get(own, [own])

    def of_NablaGrad(self, own: Any, at: Components, env: dict[int, int]) -> str:
        return f"grad({self.scalar(own.ufl_operands[0], at[1:], env)})[{at[0]}]"

    def of_Div(self, own: Any, at: Components, env: dict[int, int]) -> str:
        (tensor,) = own.ufl_operands
        if _is_plain(tensor) and len(tensor.ufl_shape) == 1 and len(self.mixed(tensor)) == 1:
            return f"div({self.tensor(tensor, env)})"
        terms = [f"grad({self.scalar(tensor, (*at, i), env)})[{i}]" for i in range(self.dim)]
        return f"({' + '.join(terms)})"

    def of_NablaDiv(self, own: Any, at: Components, env: dict[int, int]) -> str:
        (tensor,) = own.ufl_operands
        terms = [f"grad({self.scalar(tensor, (i, *at), env)})[{i}]" for i in range(self.dim)]
        return f"({' + '.join(terms)})"

    def of_Perp(self, own: Any, at: Components, env: dict[int, int]) -> str:
        (tensor,) = own.ufl_operands
        return f"(-{self.scalar(tensor, (1,), env)})" if at == (0,) else self.scalar(tensor, (0,), env)

    def of_Outer(self, own: Any, at: Components, env: dict[int, int]) -> str:
        a, b = own.ufl_operands
        rank = len(a.ufl_shape)
        left, right = self.scalar(a, at[:rank], env), self.scalar(b, at[rank:], env)
        return f"{_factor(left)} * {_factor(right)}"

    def of_Dot(self, own: Any, at: Components, env: dict[int, int]) -> str:
        a, b = own.ufl_operands
        if len(own.ufl_shape) <= 2 and len(a.ufl_shape) <= 2 and len(b.ufl_shape) <= 2:
            return self.indexed(f"dot({self.tensor(a, env)}, {self.tensor(b, env)})", at)
        rank = len(a.ufl_shape) - 1
        terms = [
            f"{_factor(self.scalar(a, (*at[:rank], i), env))} * "
            f"{_factor(self.scalar(b, (i, *at[rank:]), env))}"
            for i in range(a.ufl_shape[-1])
        ]
        return f"({' + '.join(terms)})"

    def of_Inner(self, own: Any, at: Components, env: dict[int, int]) -> str:
        a, b = own.ufl_operands
        if not a.ufl_shape:
            return f"{_factor(self.scalar(a, (), env))} * {_factor(self.scalar(b, (), env))}"
        if len(a.ufl_shape) <= 2:
            return f"inner({self.tensor(a, env)}, {self.tensor(b, env)})"
        terms = [
            f"{_factor(self.scalar(a, index, env))} * {_factor(self.scalar(b, index, env))}"
            for index in np.ndindex(*a.ufl_shape)
        ]
        return f"({' + '.join(terms)})"

    def of_Deviatoric(self, own: Any, at: Components, env: dict[int, int]) -> str:
        whole = self.whole(own, env)
        if whole is not None:
            return self.indexed(whole, at)
        (tensor,) = own.ufl_operands
        size = tensor.ufl_shape[0]
        entry = self.scalar(tensor, at, env)
        if at[0] != at[1]:
            return entry
        trace = " + ".join(self.scalar(tensor, (i, i), env) for i in range(size))
        return f"({entry} - ({trace}) / {size})"

    def restricted(self, own: Any, text: Callable[[Any], str], body: Any) -> str:
        """Returns the value of an expression in one of the cells of a facet."""
        is_inside = type(own).__name__ == "PositiveRestricted"
        if type(body).__name__ == "FacetNormal":
            return text(body) if is_inside else f"(-1) * {text(body)}"
        if _has(body, "FacetNormal"):
            raise _refuse(
                "a restricted expression with the normal", "restrict the normal and the rest each"
            )
        lets, self.lets = self.lets, []
        known, self.known = self.known, {}
        inner, self.seen = self.seen, {}
        result = text(body)
        self.known, self.seen = known, inner
        self.lets = [*lets, *self.lets]
        return f"{'inside' if is_inside else 'outside'}({result})"

    def of_PositiveRestricted(self, own: Any, at: Components, env: dict[int, int]) -> str:
        (body,) = own.ufl_operands
        return self.restricted(own, lambda part: self.scalar(part, at, env), body)

    of_NegativeRestricted = of_PositiveRestricted


def _residual(ufl: Any, form: Any, unknowns: list[Any]) -> Any:
    """Returns the residual of an equation or of a bilinear form."""
    if isinstance(form, ufl.equation.Equation):
        form = form.lhs - form.rhs if form.rhs != 0 else form.lhs
    if not isinstance(form, ufl.Form):
        raise InvalidValue(f"{type(form).__name__} is no form of UFL")
    arguments = {own for integral in form.integrals() for own in _arguments(integral.integrand())}
    trials = sorted((own for own in arguments if own.number() == 1), key=lambda own: own.part() or 0)
    if not trials:
        return form
    if len(trials) != len(unknowns):
        raise InvalidValue(
            f"the form has {len(trials)} trial functions, but there are {len(unknowns)} unknowns\n"
            "help: name a coefficient of each trial function's space in `unknowns`"
        )
    own: dict[Any, Any] = {}
    for trial in trials:
        fitting = [
            u for u in unknowns if u.ufl_function_space() == trial.ufl_function_space()
        ]
        if trial.part() is not None:
            fitting = [unknowns[trial.part()]]
        if len(fitting) != 1:
            raise InvalidValue("a trial function has the space of no unknown, or of several")
        own[trial] = fitting[0]
    return ufl.replace(form, own)


def _arguments(own: Any) -> list[Any]:
    from ufl.corealg.traversal import unique_pre_traversal

    return [part for part in unique_pre_traversal(own) if type(part).__name__ == "Argument"]


def _has(own: Any, *kinds: str) -> bool:
    from ufl.corealg.traversal import unique_pre_traversal

    return any(type(part).__name__ in kinds for part in unique_pre_traversal(own))


def _has_test(own: Any) -> bool:
    return _has(own, "Argument")


def _has_derivatives(own: Any) -> bool:
    return _has(own, "CoefficientDerivative", "VariableDerivative", "CoordinateDerivative")


def _is_plain(own: Any) -> bool:
    """Returns whether an expression is a coefficient, an argument or another terminal."""
    return bool(own._ufl_is_terminal_)


def _scaled(own: Any) -> tuple[Any, Any] | None:
    """Returns the factor and the tensor of a product as UFL writes it: A_ij = s B_ij."""
    if type(own).__name__ != "ComponentTensor":
        return None
    body, indices = own.ufl_operands
    if type(body).__name__ != "Product":
        return None
    for factor, other in (body.ufl_operands, tuple(reversed(body.ufl_operands))):
        if type(other).__name__ != "Indexed":
            continue
        tensor, inner = other.ufl_operands
        numbers = [index.count() for index in indices]
        if (
            list(inner) == list(indices)
            and not set(numbers) & set(factor.ufl_free_indices)
            and not set(numbers) & set(tensor.ufl_free_indices)
        ):
            return factor, tensor
    return None


def _factor(text: str) -> str:
    """Returns a text that can be a factor."""
    depth = 0
    for i, letter in enumerate(text):
        depth += letter in "([{"
        depth -= letter in ")]}"
        if depth == 0 and (letter in "+<>=&|!?" or (letter == "-" and i >= 0) or letter == "/"):
            return f"({text})"
    return text


def _list(value: Any) -> str:
    if value.ndim == 0:
        return repr(float(value))
    return f"[{', '.join(_list(row) for row in value)}]"
