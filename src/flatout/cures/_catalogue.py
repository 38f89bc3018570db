"""All cures: found by name, with their parts, in the order in which they are applied."""

from __future__ import annotations

import functools
import importlib
import importlib.util
import inspect
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal

from flatout import plugins
from flatout.cures._spec import Cure, Edit, Hooks, Rewrite
from flatout.model.errors import PluginInvalid, UnknownLever
from flatout.model.levers import parse

LoadedCure = plugins.Loaded[Cure]
Part = Literal["inject", "edit", "dataset"]

_CURES = plugins.Catalogue("flatout.cures", declares="CURE", kind=Cure)


def catalogue() -> Mapping[str, LoadedCure]:
    """Every cure by its name, in alphabetical order."""
    return _CURES.all()


def load(name: str) -> LoadedCure:
    """One cure, without importing the others: all that a child process needs."""
    return _CURES.load(name)


@functools.cache
def levers() -> dict[str, LoadedCure]:
    """The cures of programs, which `tune` and `--with` offer: those that can be injected, or written as an edit."""
    return {name: cure for name, cure in catalogue().items() if is_injected(cure) or has(cure, "edit")}


def find(name: str) -> LoadedCure:
    """The lever of this name. Any other name is an error that says which levers there are."""
    if name in levers():
        return levers()[name]
    if name in catalogue():
        raise UnknownLever(f"{name} rewrites datasets only: use `flatout data tune`.")
    hint, known = plugins.suggestion(name, levers()), f" The levers are: {', '.join(levers())}."
    raise UnknownLever(f"There is no lever named {name!r}.{hint or known}")


def environment_of(levers: Iterable[str]) -> dict[str, str]:
    """All environment variables that these levers need before Python starts."""
    variables: dict[str, str] = {}
    for text in levers:
        name, value = parse(text)
        environment = find(name).spec.environment
        variables.update(environment(value) if environment is not None else {})
    return variables


# ── order ────────────────────────────────────────────────────────────────────────────────────────────────────────────


@functools.cache
def order() -> tuple[str, ...]:
    """The names of all cures, each behind those that it declares to come `after`."""
    return plugins.in_order({name: cure.spec.after for name, cure in catalogue().items()})


def in_order(levers: Sequence[str]) -> tuple[str, ...]:
    """Levers (`cache`, `threadpool=16`) in the order in which they are applied."""
    return tuple(sorted(levers, key=lambda text: order().index(find(parse(text)[0]).name)))


def rewrites() -> dict[str, Rewrite]:
    """The rewrites of datasets by the names of their cures, in the order in which they are tried."""
    found = {name: rewrite_of(catalogue()[name]) for name in order()}
    return {name: rewrite for name, rewrite in found.items() if rewrite is not None}


# ── parts ────────────────────────────────────────────────────────────────────────────────────────────────────────────


def has(cure: LoadedCure, part: Part) -> bool:
    """Whether the cure's folder has this part. Does not import it."""
    if not hasattr(cure.module, "__path__"):
        raise PluginInvalid(f"{cure.module.__file__} is a file: a cure is a folder with an __init__.py.")
    return importlib.util.find_spec(f"{cure.module.__name__}.{part}") is not None


def is_injected(cure: LoadedCure) -> bool:
    """Whether its trial runs the unmodified source; the trial of any other cure runs the edited source."""
    return cure.spec.environment is not None or has(cure, "inject")


def hooks_of(cure: LoadedCure) -> Hooks | None:
    """What the cure does in a running program. For child processes only."""
    if not has(cure, "inject"):
        return None
    hooks = _declared(cure, "inject", "HOOKS")
    if not isinstance(hooks, Hooks):
        raise _invalid(cure, "inject", "HOOKS = Hooks(…)")
    return hooks


def edit_of(cure: LoadedCure) -> Edit | None:
    """How the cure is written into the source of a program."""
    if not has(cure, "edit"):
        return None
    edit: Edit = _declared(cure, "edit", "edit")
    if not _takes(edit, 4):
        raise _invalid(cure, "edit", "def edit(source, path, case, value)")
    return edit


def rewrite_of(cure: LoadedCure) -> Rewrite | None:
    """How the cure changes a dataset object."""
    if not has(cure, "dataset"):
        return None
    rewrite: Rewrite = _declared(cure, "dataset", "rewrite")
    if not _takes(rewrite, 2):
        raise _invalid(cure, "dataset", "def rewrite(dataset, context)")
    return rewrite


def _declared(cure: LoadedCure, part: Part, name: str) -> Any:
    return getattr(importlib.import_module(f"{cure.module.__name__}.{part}"), name, None)


def _takes(function: object, count: int) -> bool:
    return callable(function) and len(inspect.signature(function).parameters) == count


def _invalid(cure: LoadedCure, part: Part, expected: str) -> PluginInvalid:
    file = importlib.import_module(f"{cure.module.__name__}.{part}").__file__
    return PluginInvalid(f"{file} declares nothing that can be used: `{expected}` was expected in it.")
