"""What to write at a line by hand, in the program's own names, where no cure can do it.

What a program parses and what a callback does may be anything: whether it can be kept in a file or leave the process,
and when a file is out of date, only its author knows. So this is advice, made of the statement that stands there.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from flatout.causes._run_parts import spot
from flatout.model.case import RunPart, Where
from flatout.source import context

MOST_NAMES = 4
HOLDERS = (ast.If, ast.With, ast.Try, ast.FunctionDef, ast.ClassDef)
OBJECTS = re.compile(
    r"\b(tf|keras|tf_keras|models?|layers?|ds|datasets?|\w+_ds|loader|generator)\b|\b[A-Z]\w*[a-z]\w*\("
)
"""In a statement: it makes models, datasets or objects of classes, or may make some."""
PANDAS = re.compile(r"\b(pd|pandas)\.")
READS_FRAME = re.compile(r"(pd|pandas)\.read_(csv|table|fwf|excel|json|sql|sql_query|xml)")
OTHER_THAN_FRAME = ("chunksize", "iterator", "sheet_name", "typ")
"""Arguments with which they may return something else."""
LONGEST = 60
"""Characters of a call that is told as it is."""


def keep(line: RunPart) -> str:
    """How to keep what is made at a line before the first step: by the first statement on the way to it that gives it
    names. Empty where there is none, or where it makes objects that no file holds."""
    for place in (*line.via, line.where):
        statement = _statement(place)
        if place is None or statement is None:
            continue
        names = _made(statement)
        if names and len(names) <= MOST_NAMES and not OBJECTS.search(ast.unparse(statement)):
            return _kept_frame(place, names, statement) if _is_of_pandas(statement) else _kept(place, names)
        if isinstance(statement, (ast.For, ast.While)):
            break  # from here on it is one piece at a time
    return ""


def _kept(place: Where, names: list[str]) -> str:
    file = f"{'-'.join(names)}.npz"
    given, back = (", ".join(f"{name}={name}" for name in names), ", ".join(f"kept['{name}']" for name in names))
    return (
        f"Keep {_listed(names)} ({spot(place)}) in a file: np.savez('{file}', {given}) once; where that file is there, "
        f"kept = np.load('{file}') and {', '.join(names)} = {back} instead. What is no array takes pickle. Delete the "
        "file when the data change."
    )


def _is_of_pandas(statement: ast.stmt) -> bool:
    """Whether a statement makes a frame, or may make one; a file of arrays holds no names of columns."""
    written = ast.unparse(statement)
    return PANDAS.search(written) is not None and not written.endswith((".values", ".to_numpy()"))


def _kept_frame(place: Where, names: list[str], statement: ast.stmt) -> str:
    """Empty where it is not plain that there is one frame."""
    call = statement.value if isinstance(statement, ast.Assign) else None
    reads = READS_FRAME.fullmatch(ast.unparse(call.func)) if isinstance(call, ast.Call) else None
    given = {keyword.arg for keyword in call.keywords} if isinstance(call, ast.Call) else set()
    if reads is None or len(names) != 1 or None in given or given & set(OTHER_THAN_FRAME):
        return ""
    name, file = names[0], f"{names[0]}.pkl"
    return (
        f"Keep {name} ({spot(place)}) in a file: {name}.to_pickle('{file}') once; where that file is there, "
        f"{name} = {reads[1]}.read_pickle('{file}') instead. Delete the file when the data change."
    )


def in_a_process(hook: Where | None, line: Where | None) -> str:
    """How to take a call out of a hook, where that is a function of the module with arguments beside the callback."""
    if hook is None or line is None or hook.file != line.file or not hook.file or not line.line:
        return ""
    module = context.tree(hook.file)
    function = _function(module, hook.line) if module is not None else None
    if module is None or function is None:
        return ""
    own = {node.name for node in module.body if isinstance(node, ast.FunctionDef)}
    for node in ast.walk(function):
        if not isinstance(node, ast.Expr) or not node.lineno <= line.line <= (node.end_lineno or node.lineno):
            continue
        call = node.value
        if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Name) or call.func.id not in own:
            continue
        given = ", ".join([call.func.id, *map(ast.unparse, call.args), *map(ast.unparse, call.keywords)])
        if len(given) <= LONGEST and not any(isinstance(one, ast.Starred) for one in call.args):
            return f"{spot(line)} becomes self.workers.submit({given}), and the page has the rest of it."
    return ""


def every_few_epochs(hook: Where | None) -> str:
    """The condition for a hook of epochs, with the name that it has for the epoch."""
    module = context.tree(hook.file) if hook is not None and hook.file else None
    function = _function(module, hook.line) if module is not None and hook is not None else None
    names = [argument.arg for argument in function.args.args] if function is not None else []
    return f"if {names[1]} % 10 == 9:" if len(names) > 1 and names[0] == "self" else ""


def _function(module: ast.Module, line: int | None) -> ast.FunctionDef | None:
    """That begins at this line, decorators included."""
    for node in ast.walk(module):
        if isinstance(node, ast.FunctionDef):
            first = min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])
            if line is not None and first <= line <= node.body[0].lineno:
                return node
    return None


def _statement(place: Where | None) -> ast.stmt | None:
    """The outermost statement around a line in its function, but for those that only hold others."""
    module = context.tree(place.file) if place is not None and place.file else None
    if module is None or place is None or not place.line:
        return None
    body: list[ast.stmt] = module.body
    while True:
        around = next((one for one in body if one.lineno <= place.line <= (one.end_lineno or one.lineno)), None)
        if not isinstance(around, HOLDERS):
            return around
        body = [one for one in ast.iter_child_nodes(around) if isinstance(one, ast.stmt)]


def _made(statement: ast.stmt) -> list[str]:
    """Names that a statement assigns, or that a loop fills."""
    found = [name for node in ast.walk(statement) for name in _filled(node, statement)]
    if isinstance(statement, (ast.For, ast.While)):
        found = [name for name in found if name not in _inside(statement)]
    return list(dict.fromkeys(found))


def _filled(node: ast.AST, statement: ast.stmt) -> Iterator[str]:
    if node is statement and isinstance(node, ast.Assign):
        for target in node.targets:
            elements = target.elts if isinstance(target, ast.Tuple) else [target]
            yield from (one.id for one in elements if isinstance(one, ast.Name))
    elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in ("append", "extend"):
        if isinstance(node.func.value, ast.Name):
            yield node.func.value.id
    elif isinstance(node, ast.Assign) and isinstance(statement, (ast.For, ast.While)):
        for target in node.targets:
            if isinstance(target, ast.Subscript) and isinstance(target.value, ast.Name):
                yield target.value.id


def _inside(statement: ast.For | ast.While) -> set[str]:
    """Names that each turn of a loop makes anew."""
    return {node.id for node in ast.walk(statement) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}


def _listed(names: list[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
