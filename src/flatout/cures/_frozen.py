"""Why an edit must not trace a function: Python state that the trace would freeze, or effects that it would lose.

The same rule for all cures that turn eager code into a graph. What is known: the source of the program's files, and the
lines that the observed run was seen to make its steps from.
"""

from __future__ import annotations

import ast
import functools
import os
from collections.abc import Callable, Iterable, Iterator, Sequence

from flatout.cures import _trial_edit
from flatout.model.case import Case
from flatout.model.evidence.steps import EagerLine, EagerTape, StepStack, Stream
from flatout.source.editing import decorated, frozen_state
from flatout.source.editing.case_facts import same_file
from flatout.source.editing.dataflow import FUNCTIONS
from flatout.source.editing.project import CALLED, Code, Project
from flatout.source.editing.repeated_code import Repeated

KERAS_STEPS = ("train_step", "test_step", "predict_step", "compute_loss", "compute_metrics", "call")
"""Methods of a model, a layer or a loss that Keras runs in its graph."""
KERAS_CALLS = ("fit", "evaluate", "predict", "train_on_batch", "test_on_batch", "predict_on_batch")
BATCH_METHODS = ("on_train_batch_begin", "on_train_batch_end", "on_batch_begin", "on_batch_end")
"""Methods of a callback that Keras calls for each batch, or once for several."""
ADVICE = "Pass it as an argument, or keep it in a tf.Variable"


def of_function(source: str, path: str, case: Case, line: int) -> str | None:
    """Why the function on this line must not be traced; None where nothing speaks against it."""
    project = project_of(source, path, case)
    code = project.at(path, line)
    return _frozen(project, [code], case) or decorated.reason(project, code) if code is not None else None


def of_layers(source: str, path: str, case: Case) -> str | None:
    """Why what runs when a model or a layer of the program is called must not be traced. An object of a class
    that inherits from nothing is neither: the noise of an agent, say."""
    project = project_of(source, path, case)
    called = [code for name in CALLED for code in project.codes.get(name, ())]
    return _frozen(project, [code for code in called if project.bases.get(code.holder, set()) - {"object", ""}], case)


def of_thawed(source: str, path: str, case: Case) -> str | None:
    """Where layers are frozen or thawed between the steps: a trace keeps how batch normalization behaves."""
    project = project_of(source, path, case)
    repeated = Repeated(project, (), frozenset(), frozenset(_lines(project, case)), False)
    changes = (change for part in repeated.parts() for change in frozen_state.changes(project, part))
    found = next((change for change in changes if change.name == "trainable"), None)
    if found is None:
        return None
    return (
        f"line {found.line} of {os.path.basename(found.path)} sets {found.text}: a trace would keep what it was before"
    )


def of_making(source: str, path: str, case: Case, name: str, line: int) -> str | None:
    """Why a function of this name, made into a `tf.function` on this line again and again, must not be made once."""
    project = project_of(source, path, case)
    functions = project.codes.get(name, []) if name else list(_lambdas(project, path, line))
    around = [code for code in project.all() if code.path == path and _holds(code, line)]
    innermost = max(around, key=lambda code: code.node.lineno, default=None)
    if innermost is not None and innermost in functions:
        around.remove(innermost)
        innermost = max(around, key=lambda code: code.node.lineno, default=None)
    calls = [innermost.name] if innermost is not None else []
    if not functions:
        return None
    state = frozen_state.frozen(project, functions, calls, [(path, line), *_lines(project, case)], kept=True)
    return f"{state.text}. {ADVICE}" if state is not None else None


def _lambdas(project: Project, path: str, line: int) -> Iterator[Code]:
    """Those that are given to `tf.function` on a line."""
    nodes = list(ast.walk(project.modules[path]))
    around = [node for node in nodes if isinstance(node, FUNCTIONS) and node.lineno <= line <= (node.end_lineno or 0)]
    around.sort(key=lambda node: node.lineno, reverse=True)
    for node in nodes:
        if not isinstance(node, ast.Call) or not node.lineno <= line <= (node.end_lineno or 0) or not node.args:
            continue
        if isinstance(node.args[0], ast.Lambda) and project.dotted(node.func, path) == "tensorflow.function":
            yield Code(path, "", node.args[0], "", tuple(around))


def of_new(source: str, new: str, path: str, case: Case) -> str | None:
    """The same for the functions that an edit has written: those of the new text that the old one lacks."""
    state = state_of_new(source, new, path, case)
    return told_of(state) if state is not None else None


def state_of_new(source: str, new: str, path: str, case: Case) -> frozen_state.Frozen | None:
    before = set(project_of(source, path, case).codes)
    after = project_of(new, path, case)
    functions = [code for name, codes in after.codes.items() if name not in before for code in codes]
    return frozen_state.frozen(after, functions) if functions else None


def told_of(state: frozen_state.Frozen) -> str:
    return f"{state.text}. {ADVICE}"


def of_keras(source: str, path: str, case: Case) -> str | None:
    """Why a model that runs eagerly must not run in a graph: in its own steps, layers and losses."""
    project = project_of(source, path, case)
    return keras_in(project, _lines(project, case))


def keras_in(project: Project, lines: Iterable[tuple[str, int]] = ()) -> str | None:
    functions = [code for name in KERAS_STEPS for code in project.codes.get(name, ()) if code.holder]
    functions += frozen_state.given_to_compile(project)
    return in_project(project, functions, KERAS_CALLS, lines)


def of_traced(source: str, path: str, case: Case) -> str | None:
    """Why functions that the program traces, and now runs eagerly, must not run in a graph."""
    project = project_of(source, path, case)
    return traced_in(project, _lines(project, case))


def traced_in(project: Project, lines: Iterable[tuple[str, int]] = ()) -> str | None:
    functions = [code for code in project.all() if code.is_traced]
    functions += [code for name in frozen_state.wrapped(project) for code in project.codes.get(name, ())]
    return in_project(project, functions, (), lines) or keras_in(project, lines)


def in_project(
    project: Project,
    functions: Sequence[Code],
    calls: Iterable[str] = (),
    lines: Iterable[tuple[str, int]] = (),
    *,
    kept: bool = False,
) -> str | None:
    """What would be lost or frozen in these functions, whoever runs them. `kept`: by keeping their results, rather than
    by tracing them."""
    if not functions:
        return None
    found = frozen_state.effect(project, functions, kept=kept)
    if found is not None:
        return found
    state = frozen_state.frozen(project, functions, calls, lines)
    return f"{state.text}. {ADVICE}" if state is not None else None


def batch_callback(source: str, path: str, case: Case) -> str | None:
    """A callback of the program that acts on each batch: with several steps per call it would see fewer."""
    project = project_of(source, path, case)
    for name in BATCH_METHODS:
        for code in project.codes.get(name, ()):
            if code.holder:
                return f"{code.holder}.{name} ({code.path}:{code.node.lineno}) acts on each batch and would see fewer"
    for file, module in project.modules.items():
        for node in ast.walk(module):
            for item in node.keywords if isinstance(node, ast.Call) else ():
                if item.arg in BATCH_METHODS:
                    return f"{item.arg} ({file}:{item.value.lineno}) acts on each batch and would see fewer"
    return None


def told(of: Callable[[str, str, Case], str | None], case: Case) -> str:
    """The first reason in one of the program's files, for `Cure.by_hand`; empty where there is none."""
    reasons = (of(text, path, case) for path, text in _trial_edit.sources(case))
    return next(filter(None, reasons), "")


def project_of(source: str, path: str, case: Case) -> Project:
    texts = {other: text for other, text in _trial_edit.sources(case) if not same_file(path, other)}
    return _project(((path, source), *sorted(texts.items())))


def others(source: str, path: str, case: Case) -> dict[str, ast.Module]:
    """The program's other files."""
    return {file: module for file, module in project_of(source, path, case).modules.items() if file != path}


@functools.lru_cache(maxsize=4)
def _project(texts: tuple[tuple[str, str], ...]) -> Project:
    return Project(dict(texts))


def _frozen(project: Project, functions: Sequence[Code], case: Case) -> str | None:
    if not functions:
        return None
    inside = [(code.path, code.node.lineno, code.node.end_lineno or 0) for code in functions]
    lines = [
        (path, line)
        for path, line in _lines(project, case)
        if not any(path == file and first <= line <= last for file, first, last in inside)
    ]
    state = frozen_state.frozen(project, functions, (), lines)
    return f"{state.text}. {ADVICE}" if state is not None else None


def _holds(code: Code, line: int) -> bool:
    return code.node.lineno <= line <= (code.node.end_lineno or 0)


def _lines(project: Project, case: Case) -> Iterator[tuple[str, int]]:
    """Where the observed run made its steps from."""
    items: list[StepStack | EagerTape | Stream] = [
        *case.evidence_of(StepStack),
        *case.evidence_of(EagerTape),
        *case.evidence_of(Stream),
    ]
    frames = {(frame.file, frame.line) for item in items for frame in item.stack}
    frames |= {
        (item.where.file, item.where.line)
        for item in case.evidence_of(EagerLine)
        if item.where is not None and item.where.file and item.where.line
    }
    for file, line in sorted(frames):
        for path in project.modules:
            if same_file(path, file):
                yield path, line
