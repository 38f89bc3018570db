"""What a call of a traced function passes for Python numbers and NumPy arrays."""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator, Sequence

from flatout.source.editing.dataflow import arguments, names_in
from flatout.source.editing.graph_fit import GraphFit, Obstacle, every
from flatout.source.editing.step_arguments import Surroundings
from flatout.source.editing.step_split import NotSplit
from flatout.source.editing.value_kinds import float_type
from flatout.source.side_effects import Definition

_ARITHMETIC = {"add", "subtract", "multiply", "divide", "minimum", "maximum", "pow", "squared_difference"}
"""Operations whose arguments take the type of the tensor among them."""
_DEEP = 3


def tensors(
    around: Surroundings,
    body: Sequence[ast.stmt],
    given: Sequence[str],
    unproven: bool,
    changing: Collection[str] = (),
) -> dict[str, str]:
    """Name → expression, where the name itself would be traced anew for each value or has another type in a graph.

    A Python number takes the type of the tensor beside it; a tensor does not. So it is passed in the type that the
    program computes in. `changing`: names whose values change from step to step, whatever they are. Raises `NotSplit`
    where Python needs the number itself.
    """
    numbers = around.counters() & set(given)
    changing = set(changing) & set(given) - numbers
    loose = {name for name in given if name not in numbers | changing and around.is_number(name)}
    arrays = {name for name in given if name not in numbers | loose | changing and around.kinds.is_array(name)}
    if unproven and (numbers or loose or arrays or _indexes(body, set(given))):
        raise NotSplit(Obstacle(body[0].lineno, "begins a step that reads numbers or arrays of Python"))
    fit = around.fit
    tf = next((name for name, full in fit.modules.items() if full == "tensorflow"), "")
    floats = float_type(around.kinds.fits)
    found: dict[str, str] = {}
    for name in sorted(numbers | changing):
        if name in changing and not _is_scalar(around, body, name):
            continue  # a tensor, or an object: it goes in as it is
        use = python_use(fit, body, name)
        if use is not None or not tf:
            line = use or body[0].lineno
            raise NotSplit(Obstacle(line, f"needs the Python number {name}, for which each value is traced again"))
        if floats is None:
            raise NotSplit(Obstacle(body[0].lineno, f"begins a step that reads {name}, whose type set_floatx decides"))
        make = "convert_to_tensor" if name in changing else "constant"
        found[name] = f"{tf}.{make}({name}, {tf}.{floats})"
    if not tf or floats is None:
        return found
    for name in sorted(loose):
        if python_use(fit, body, name) is not None:
            continue
        if in_arithmetic(fit, body, name):
            found[name] = f"{tf}.cast({name}, {tf}.{floats})"
        elif not around.kinds.is_flag(name, around.scopes[0]):
            found[name] = f"{tf}.convert_to_tensor({name})"
    mixed = around.kinds.of_other_types(floats)
    for name in sorted(arrays):
        if in_arithmetic(fit, body, name) and mixed.is_array(name):
            found[name] = f"{tf}.cast({name}, {tf}.{floats})"
        elif around.kinds.is_draw(name):  # one number is a float of Python
            found[name] = f"{tf}.convert_to_tensor({name})"
    return found


def _is_scalar(around: Surroundings, body: Sequence[ast.stmt], name: str) -> bool:
    """Whether a changing name is a number, or at least takes part in arithmetic."""
    attributes = [value.attr for value in around.bound_to(name) if isinstance(value, ast.Attribute)]
    return any(map(around.kinds.is_scalar_attribute, attributes)) or in_arithmetic(around.fit, body, name)


def python_use(fit: GraphFit, body: Sequence[ast.stmt], name: str, deep: int = _DEEP) -> int | None:
    """The line at which a number is an index, a condition or a length, here or in a function of the file that it is
    passed to."""
    for node in _as_given(body, name):
        parts: list[ast.AST] = []
        if isinstance(node, ast.Subscript):
            parts = [node.slice]
        elif isinstance(node, (ast.If, ast.IfExp, ast.While, ast.Assert)):
            parts = [node.test]
        elif isinstance(node, (ast.For, ast.comprehension)):
            parts = [node.iter]
        elif isinstance(node, ast.JoinedStr):
            parts = [node]
        if any(name in names_in(part) for part in parts):
            return int(getattr(node, "lineno", 0)) or min(getattr(part, "lineno", 0) for part in parts)
        for function, argument in _handed_on(fit, node, name) if deep and isinstance(node, ast.Call) else ():
            use = python_use(fit, function.body, argument, deep - 1)
            if use is not None:
                return use
    return None


def _as_given(body: Sequence[ast.stmt], name: str) -> Iterator[ast.AST]:
    """The nodes of statements up to where the name gets another value: `actions = tf.one_hot(actions, 4)`."""
    for statement in body:
        bound = isinstance(statement, ast.Assign) and any(
            isinstance(target, ast.Name) and target.id == name for target in statement.targets
        )
        yield from ast.walk(statement.value if isinstance(statement, ast.Assign) and bound else statement)
        if bound:
            return


def _handed_on(fit: GraphFit, call: ast.Call, name: str) -> Iterator[tuple[Definition, str]]:
    """The functions of the file that a call may give a value to as it is, and what they call it."""
    for function in fit.meant(call):
        taken = arguments(function)
        if taken[:1] in (["self"], ["cls"]) and isinstance(call.func, ast.Attribute):
            taken = taken[1:]
        pairs = [*zip(taken, call.args, strict=False), *((item.arg or "", item.value) for item in call.keywords)]
        for argument, value in pairs:
            if argument and isinstance(value, ast.Name) and value.id == name:
                yield function, argument


def in_arithmetic(
    fit: GraphFit, body: Sequence[ast.stmt], name: str, deep: int = _DEEP, but: Collection[int] = ()
) -> bool:
    """`rewards + 0.99 * values`, here or in a function of the file that it is passed to: an array of doubles would take
    the type of the tensor beside it. `but`: nodes, by identity, that do not count."""
    for node in _as_given(body, name):
        sides: list[ast.expr] = []
        if id(node) in but:
            continue
        if isinstance(node, ast.BinOp):
            sides = [node.left, node.right]
        elif isinstance(node, ast.Call) and _is_arithmetic(fit.dotted(node.func)):
            sides = list(node.args)
        if any(isinstance(side, ast.Name) and side.id == name for side in sides):
            return True
        if deep and isinstance(node, ast.Call):
            further = _handed_on(fit, node, name)
            if any(in_arithmetic(fit, function.body, argument, deep - 1) for function, argument in further):
                return True
    return False


def _is_arithmetic(dotted: str) -> bool:
    head, _, name = dotted.rpartition(".")
    return head in ("tensorflow", "tensorflow.math") and name in _ARITHMETIC


def _indexes(body: Sequence[ast.stmt], given: set[str]) -> bool:
    return any(isinstance(node, ast.Subscript) and given & set(names_in(node.slice)) for node in every(body))
