"""What an expression gives: a number of Python, an array of NumPy, or something else.

Followed by name: what variables and attributes are assigned and what functions return, in all files of the program.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Literal

from flatout.source.editing.dataflow import FUNCTIONS, arguments, called_name, within
from flatout.source.editing.graph_fit import GraphFit, is_traced
from flatout.source.side_effects import Definition

NUMBERS = {"float", "int", "min", "max", "round", "abs", "len", "pow"}
"""Functions of Python that give numbers where they are given numbers."""
_ARRAY_METHODS = ("astype", "copy", "numpy")
_NO_ARRAY = ("item", "tolist")
_LIBRARIES = {*sys.stdlib_module_names, "numpy", "tensorflow", "keras", "tf_keras"}
_DEPTH = 5
Kind = Literal["number", "unknown", "other"]


class Kinds:
    """Of values in one file, `fit`, of a program that has further ones."""

    def __init__(self, fit: GraphFit, others: Iterable[GraphFit] = (), but: str = "") -> None:
        """`but`: a type whose arrays do not count."""
        self.fit = fit
        self.fits = (fit, *others)
        self.but = but
        self._known: dict[tuple[str, int, str], bool] = {}
        """What was asked before, of a name in a file."""

    def of_other_types(self, floats: str) -> Kinds:
        """The same, for which arrays that are plainly of this type are none."""
        return Kinds(self.fit, self.fits[1:], floats)

    # ── arrays ───────────────────────────────────────────────────────────────────────────────────────────────────

    def is_array(self, name: str) -> bool:
        """Whether NumPy makes what a name of this file is bound to, here or in a function of the program."""
        return self._name_is_array(name, self.fit, _DEPTH)

    def is_draw(self, name: str) -> bool:
        """Whether a name is bound to what `np.random` gives: an array, or a number of Python where it has no size."""
        values = self.fit.bound.get(name, ())
        return any(isinstance(value, ast.Call) and self._is_draw(value) for value in values)

    def _is_draw(self, value: ast.Call) -> bool:
        return self.fit.dotted(value.func).startswith("numpy.random.")

    def _name_is_array(self, name: str, fit: GraphFit, depth: int) -> bool:
        def found() -> bool:
            if name in fit.bound:
                return any(self._made_by_numpy(value, fit, depth) for value in fit.bound[name])
            takers = (node for found in fit.definitions.values() for node in found if name in arguments(node))
            given = (pair for taker in takers for pair in _given(self.fits, taker, name))
            return any(self._made_by_numpy(value, other, depth - 1) for value, other in given)

        return depth > 0 and self._once(("array", id(fit), name), found)

    def _once(self, key: tuple[str, int, str], found: Callable[[], bool], meanwhile: bool = False) -> bool:
        """`meanwhile`: what a name that is made of itself says of it."""
        if key not in self._known:
            self._known[key] = meanwhile
            self._known[key] = found()
        return self._known[key]

    def attribute_is_array(self, name: str, depth: int = _DEPTH) -> bool:
        """Whether NumPy makes what an attribute of this name is assigned."""
        pairs = ((value, fit) for fit in self.fits for value in fit.attributes.get(name, ()))
        return depth > 0 and self._once(
            ("attribute", 0, name), lambda: any(self._made_by_numpy(value, fit, depth) for value, fit in pairs)
        )

    def _made_by_numpy(self, value: ast.expr, fit: GraphFit, depth: int) -> bool:
        if depth <= 0:
            return False
        if isinstance(value, ast.Call):
            return self._call_gives_array(value, fit, depth)
        if isinstance(value, ast.BinOp):
            return any(self._made_by_numpy(side, fit, depth) for side in (value.left, value.right))
        if isinstance(value, ast.Compare):
            return any(self._made_by_numpy(side, fit, depth) for side in (value.left, *value.comparators))
        if isinstance(value, ast.Tuple):
            return any(self._made_by_numpy(item, fit, depth) for item in value.elts)
        if isinstance(value, ast.Subscript):
            return self._made_by_numpy(value.value, fit, depth)
        if isinstance(value, ast.Attribute):
            return not fit.dotted(value) and self.attribute_is_array(value.attr, depth - 1)
        return isinstance(value, ast.Name) and self._name_is_array(value.id, fit, depth - 1)

    def _call_gives_array(self, call: ast.Call, fit: GraphFit, depth: int) -> bool:
        first = call.args[0] if call.args else None
        if self.but and self.but in _types(call):
            return False
        if called_name(call.func) == "map" and first is not None:
            return fit.dotted(first).startswith("numpy.")
        dotted = fit.dotted(call.func)
        if dotted.split(".")[0] in _LIBRARIES:
            return dotted.startswith("numpy.")
        if isinstance(call.func, ast.Attribute):
            if call.func.attr in _ARRAY_METHODS:
                return True
            if call.func.attr not in _NO_ARRAY and self._made_by_numpy(call.func.value, fit, depth - 1):
                return True  # `np.arange(9).reshape(3, 3)`
        if depth <= 1:
            return False
        returned = _returned(self.fits, called_name(call.func))
        return any(self._made_by_numpy(value, other, depth - 1) for value, other in returned)

    # ── numbers ──────────────────────────────────────────────────────────────────────────────────────────────────

    def is_number(self, name: str, around: Sequence[ast.AST]) -> bool:
        """Whether a name is a number of Python wherever `around`, the loops or the function, assigns it."""
        inside = {id(node) for part in around for node in ast.walk(part)}
        found = [value for value in self.fit.bound.get(name, ()) if id(value) in inside]
        return bool(found) and all(self._gives_number(value, self.fit) for value in found)

    def is_given_numbers(self, function: Definition, name: str) -> bool:
        """Whether an argument of a function is a number of Python in each of its calls."""
        values = list(_given(self.fits, function, name))
        if all(isinstance(value, ast.Constant) for value, _ in values):
            return False  # a few settings, each with a trace of its own
        return all(self._gives_number(value, fit) for value, fit in values)

    def is_given_arrays(self, function: Definition, name: str) -> bool:
        """Whether an argument of a function is an array of NumPy in each of its calls."""
        values = list(_given(self.fits, function, name))
        return bool(values) and all(self._made_by_numpy(value, fit, _DEPTH) for value, fit in values)

    def is_flag(self, name: str, function: ast.AST) -> bool:
        """Whether a name, or an argument of a function, is True or False somewhere: no operation is to get it."""
        values = list(self.fit.bound.get(name, ()))
        if isinstance(function, FUNCTIONS):
            values += [value for value, _ in _given(self.fits, function, name)]
            values += _default(function, name)
        return any(isinstance(value, ast.Constant) and isinstance(value.value, bool) for value in values)

    def is_scalar_attribute(self, name: str) -> bool:
        """Whether an attribute of this name is a number of Python: something says so, nothing speaks against it."""
        kinds = {self._kind(value, name, fit) for fit in self.fits for value in fit.attributes.get(name, ())}
        return "number" in kinds and "other" not in kinds

    def _gives_number(self, value: ast.expr, fit: GraphFit) -> bool:
        if isinstance(value, ast.Constant):
            return isinstance(value.value, (int, float))
        if isinstance(value, ast.IfExp):
            return self._gives_number(value.body, fit) or self._gives_number(value.orelse, fit)
        if isinstance(value, ast.UnaryOp):
            return self._gives_number(value.operand, fit)
        if isinstance(value, ast.BinOp):
            return all(self._gives_number(side, fit) for side in (value.left, value.right))
        if isinstance(value, ast.Name):
            return self._name_is_number(value.id, fit)
        if isinstance(value, ast.Call):
            dotted = fit.dotted(value.func)
            plain = isinstance(value.func, ast.Name) and value.func.id in {*NUMBERS, "range"}
            known = plain or dotted.startswith(("math.", "random.")) or fit.is_environment(value.func)
            return known or (dotted.split(".")[0] not in _LIBRARIES and self._returns_number(called_name(value.func)))
        return False

    def _name_is_number(self, name: str, fit: GraphFit) -> bool:
        """Whether a number is all that a name of a file is bound to, or that is passed for an argument of this name."""
        values = [(value, fit) for value in fit.bound.get(name, ())]
        if not values:
            takers = (node for found in fit.definitions.values() for node in found if name in arguments(node))
            values = [pair for taker in takers for pair in _given(self.fits, taker, name)]
            # `train(data)` with a name that nothing binds says nothing of it.
            values = [(value, of) for value, of in values if not (isinstance(value, ast.Name) and value.id == name)]
        key = ("number", id(fit), name)
        return bool(values) and self._once(key, lambda: all(self._gives_number(*pair) for pair in values), True)

    def _returns_number(self, name: str) -> bool:
        """Whether the functions of the program with this name return numbers: `lr_at(epoch)`."""
        functions = [function for fit in self.fits for function in fit.definitions.get(name, ())]
        if any(map(is_traced, functions)):
            return False
        values = list(_returned(self.fits, name))
        key = ("returns number", 0, name)
        return bool(values) and self._once(key, lambda: all(self._gives_number(*pair) for pair in values), True)

    def _kind(self, value: ast.expr, attribute: str, fit: GraphFit) -> Kind:
        """Of what is assigned to an attribute. Which arithmetic says nothing of itself is "unknown"."""
        if isinstance(value, ast.Constant):
            return "number" if type(value.value) in (int, float) else "other"
        if isinstance(value, ast.UnaryOp):
            return "other" if isinstance(value.op, ast.Not) else self._kind(value.operand, attribute, fit)
        if isinstance(value, (ast.BinOp, ast.IfExp)):
            sides = (value.left, value.right) if isinstance(value, ast.BinOp) else (value.body, value.orelse)
            kinds = [self._kind(side, attribute, fit) for side in sides if not _is_attribute(side, attribute)]
            return next((kind for kind in ("other", "unknown") if kind in kinds), "number")
        if isinstance(value, ast.Call):
            dotted = fit.dotted(value.func)
            if dotted.startswith(("math.", "random.")):
                return "number"
            if isinstance(value.func, ast.Name) and value.func.id in NUMBERS:
                kinds = [self._kind(item, attribute, fit) for item in value.args if not _is_attribute(item, attribute)]
                return "other" if "other" in kinds else "number"
            return "unknown" if dotted.startswith("numpy.") else "other"
        return "unknown" if isinstance(value, (ast.Name, ast.Attribute, ast.Subscript)) else "other"


def _types(call: ast.Call) -> set[str]:
    """The types that a call asks for: `x.astype("float32")`, `np.zeros(3, dtype=np.float32)`, `np.float32(x)`."""
    given = [item.value for item in call.keywords if item.arg == "dtype"]
    given += call.args[:1] if called_name(call.func) == "astype" else []
    named = (value.value if isinstance(value, ast.Constant) else called_name(value) for value in given)
    return {called_name(call.func), *filter(lambda name: isinstance(name, str), named)}  # type: ignore[arg-type]


def float_type(fits: Iterable[GraphFit]) -> str | None:
    """The type that the program computes in: `float32`, or what it gives to `set_floatx`; None where it is unknown."""
    found: set[str | None] = set()
    for fit in fits:
        for call in fit.calls.get("set_floatx", ()):
            given = call.args[0] if call.args else None
            known = isinstance(given, ast.Constant) and given.value in ("float16", "float32", "float64")
            found.add(str(given.value) if known and isinstance(given, ast.Constant) else None)
    return found.pop() if len(found) == 1 else None if found else "float32"


def _is_attribute(node: ast.expr, name: str) -> bool:
    return isinstance(node, ast.Attribute) and node.attr == name


def _given(fits: Iterable[GraphFit], function: Definition, name: str) -> Iterator[tuple[ast.expr, GraphFit]]:
    """What the calls of a function pass for one of its arguments."""
    taken = arguments(function)
    for fit in fits:
        for call in fit.calls.get(function.name, ()):
            if function in fit.definitions.get(function.name, ()) and function not in fit.meant(call):
                continue  # a method of another class
            bound = isinstance(call.func, ast.Attribute) and taken[:1] in (["self"], ["cls"])
            pairs = [*zip(taken[1:] if bound else taken, call.args, strict=False)]
            yield from ((value, fit) for argument, value in pairs if argument == name)
            yield from ((item.value, fit) for item in call.keywords if item.arg == name)


def _default(function: Definition, name: str) -> list[ast.expr]:
    given = function.args
    plain = [*given.posonlyargs, *given.args]
    pairs = [*zip(reversed(plain), reversed(given.defaults), strict=False)]
    pairs += [(item, value) for item, value in zip(given.kwonlyargs, given.kw_defaults, strict=True) if value]
    return [value for item, value in pairs if item.arg == name]


def _returned(fits: Iterable[GraphFit], name: str) -> Iterator[tuple[ast.expr, GraphFit]]:
    """What the functions with a name return."""
    for fit in fits:
        for function in fit.definitions.get(name, ()):
            for node in within(function.body):
                if isinstance(node, ast.Return) and node.value is not None:
                    yield node.value, fit
