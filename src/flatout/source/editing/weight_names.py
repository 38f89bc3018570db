"""What names in a copy of weights stand for elsewhere in the file: a share that changes, a list of variables."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from flatout.source.editing.dataflow import FUNCTIONS, LOOPS, arguments, called_name, names_in
from flatout.source.editing.weight_expressions import ATTRIBUTES

_COUNTS = re.compile(r"(^|_)(step|iter|iteration|epoch|episode|frame|count|counter|batch|t|i|n)s?$", re.IGNORECASE)
"""Parameters that count, whoever calls the function."""
_COMPUTES = re.compile(r"(float|int|abs|min|max|pow|round|(np|numpy|math|tf|tensorflow)\.[\w.]+)$")
"""Functions whose result changes only with what they are given."""
_OF_NUMPY = re.compile(r"(np|numpy)\.")
_DEEPEST = 4
_Function = ast.FunctionDef | ast.AsyncFunctionDef


class Names:
    """The names of one module."""

    def __init__(self, module: ast.Module) -> None:
        self.module = module
        self._functions = [node for node in ast.walk(module) if isinstance(node, FUNCTIONS)]
        self._loops = [node for node in ast.walk(module) if isinstance(node, LOOPS)]
        self._counted = {
            name for loop in self._loops if isinstance(loop, (ast.For, ast.AsyncFor)) for name in names_in(loop.target)
        }
        self._added = {ast.unparse(node.target) for node in ast.walk(module) if isinstance(node, ast.AugAssign)}

    def change(self, share: str, line: int) -> bool:
        """Whether a share, as written on this line, may have another value the next time: as a number of Python each
        value would be traced anew."""
        return self._changes(ast.parse(share, mode="eval").body, self._around(line), 0)

    def are_variables(self, text: str, line: int) -> bool:
        """Whether a list, as written on this line, always holds variables of models."""
        return self._are_variables(ast.parse(text, mode="eval").body, self._around(line), 0)

    def is_of_numpy(self, share: str, line: int) -> bool:
        """Whether a share may be a scalar of NumPy."""
        return self._is_of_numpy(ast.parse(share, mode="eval").body, self._around(line), 0)

    def _is_of_numpy(self, node: ast.expr, around: _Function | None, depth: int) -> bool:
        if isinstance(node, ast.Call) and ast.unparse(node.func) in ("float", "int"):
            return False
        if isinstance(node, ast.Call) and _OF_NUMPY.match(ast.unparse(node.func)):
            return True
        if isinstance(node, (ast.Name, ast.Attribute)) and depth < _DEEPEST:
            text = ast.unparse(node)
            values = list(self._bound(text, also_set_up=True))
            if around is not None and text in arguments(around):
                values += self._given(around, text)
            return any(self._is_of_numpy(value, self._around(value.lineno), depth + 1) for value in values)
        parts = (part for part in ast.iter_child_nodes(node) if isinstance(part, ast.expr))
        return any(self._is_of_numpy(part, around, depth) for part in parts)

    def is_made_anew(self, owner: str, line: int) -> bool:
        """Whether an object is made, by a call, in the innermost loop or function around a line, or again and again by
        another function of the file."""
        kinds = (*LOOPS, *FUNCTIONS)
        around = [node for node in ast.walk(self.module) if isinstance(node, kinds)]
        around = [node for node in around if node.lineno <= line <= (node.end_lineno or 0)]
        innermost = max(around, key=lambda node: node.lineno, default=None)
        if innermost is not None and owner.isidentifier() and self._made(owner, innermost):
            return True
        return self._is_made_elsewhere(owner, line, 0)

    def _made(self, owner: str, within: ast.AST) -> list[int]:
        """The lines on which a call makes it."""
        made = (n for n in ast.walk(within) if isinstance(n, ast.Assign) and isinstance(n.value, ast.Call))
        return [
            node.lineno
            for node in made
            if any(ast.unparse(target) == owner or owner in names_in(target) for target in node.targets)
        ]

    def _is_made_elsewhere(self, owner: str, line: int, depth: int) -> bool:
        around = self._around(line)
        if depth >= _DEEPEST:
            return False
        if around is not None and owner in arguments(around):
            return any(self._is_given_anew(value, depth + 1) for value in self._given(around, owner))
        if owner.isidentifier():
            return False
        return any(isinstance(value, ast.Call) and self._runs_again(value.lineno, 0) for value in self._bound(owner))

    def _is_given_anew(self, value: ast.expr, depth: int) -> bool:
        if isinstance(value, ast.Call):
            return self._runs_again(value.lineno, 0)
        text, around = ast.unparse(value), self._around(value.lineno)
        made = self._made(text, around or self.module) if isinstance(value, ast.Name) else []
        here = (line for line in made if self._around(line) is around)
        return any(self._runs_again(line, 0) for line in here) or self._is_made_elsewhere(text, value.lineno, depth)

    def _runs_again(self, line: int, depth: int) -> bool:
        """Whether a line is in a loop of its function, or in a function that such a line calls."""
        around = self._around(line)
        begin = around.lineno if around is not None else 0
        if any(begin <= loop.lineno < line <= (loop.end_lineno or 0) for loop in self._loops):
            return True
        if around is None or depth >= _DEEPEST:
            return False
        calls = (node for node in ast.walk(self.module) if isinstance(node, ast.Call))
        return any(self._runs_again(c.lineno, depth + 1) for c in calls if called_name(c.func) == around.name)

    def _are_variables(self, node: ast.expr, around: _Function | None, depth: int) -> bool:
        if isinstance(node, ast.Attribute) and node.attr in ATTRIBUTES:
            return True
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
            return all(self._are_variables(side, around, depth) for side in (node.left, node.right))
        if not isinstance(node, (ast.Name, ast.Attribute)) or depth >= _DEEPEST:
            return False
        text = ast.unparse(node)
        values = list(self._bound(text, also_set_up=True))
        if around is not None and text in arguments(around):
            values += self._given(around, text)
        return bool(values) and all(self._are_variables(one, self._around(one.lineno), depth + 1) for one in values)

    def _around(self, line: int) -> _Function | None:
        around = [node for node in self._functions if node.lineno <= line <= (node.end_lineno or 0)]
        return max(around, key=lambda node: node.lineno, default=None)

    def _changes(self, node: ast.expr, around: _Function | None, depth: int) -> bool:
        if isinstance(node, (ast.BinOp, ast.UnaryOp, ast.BoolOp, ast.Compare, ast.IfExp)):
            parts = (part for part in ast.iter_child_nodes(node) if isinstance(part, ast.expr))
            return any(self._changes(part, around, depth) for part in parts)
        if isinstance(node, ast.Call):
            given = [*node.args, *(item.value for item in node.keywords)]
            known = _COMPUTES.match(ast.unparse(node.func))
            return known is None or any(self._changes(part, around, depth) for part in given)
        if isinstance(node, ast.Subscript):
            return not isinstance(node.slice, ast.Constant) or self._changes(node.value, around, depth)
        if isinstance(node, (ast.Name, ast.Attribute)):
            return self._is_set_again(node, around, depth)
        return not isinstance(node, ast.Constant)

    def _is_set_again(self, node: ast.Name | ast.Attribute, around: _Function | None, depth: int) -> bool:
        text = ast.unparse(node)
        if text in self._added or text in self._counted:
            return True
        if around is not None and text in arguments(around):
            given = list(self._given(around, text))
            if not given and _COUNTS.search(text):
                return True
            if depth < _DEEPEST and any(self._changes(value, self._around(value.lineno), depth + 1) for value in given):
                return True
        return any(self._of_itself(text, value, depth) for value in self._bound(text))

    def _of_itself(self, text: str, value: ast.expr, depth: int) -> bool:
        """`rate = rate * 0.99`, or what is computed of something that changes; not `tau = tau or self.tau`."""
        named = (part for part in ast.walk(value) if isinstance(part, (ast.Name, ast.Attribute)))
        if any(ast.unparse(part) == text for part in named):
            return not isinstance(value, (ast.BoolOp, ast.IfExp, ast.Name, ast.Attribute))
        return depth < _DEEPEST and self._changes(value, self._around(value.lineno), depth + 1)

    def _bound(self, text: str, also_set_up: bool = False) -> Iterator[ast.expr]:
        """What a name or an attribute is set to; where its object is set up only if asked for."""
        own = [node for node in self._functions if node.name == "__init__"]
        setting_up = {id(inner) for node in own for inner in ast.walk(node)}
        for node in ast.walk(self.module):
            if not isinstance(node, ast.Assign) or (id(node) in setting_up and not also_set_up):
                continue
            if any(ast.unparse(target) == text for target in node.targets):
                yield node.value

    def _given(self, function: _Function, name: str) -> Iterator[ast.expr]:
        """What the calls of a function in this file give for one of its arguments."""
        names = arguments(function)
        for node in ast.walk(self.module):
            if not isinstance(node, ast.Call) or called_name(node.func) != function.name:
                continue
            # A method's first argument is its object.
            bound = isinstance(node.func, ast.Attribute) and names[:1] in (["self"], ["cls"])
            yield from (value for other, value in zip(names[bound:], node.args, strict=False) if other == name)
            yield from (item.value for item in node.keywords if item.arg == name)
