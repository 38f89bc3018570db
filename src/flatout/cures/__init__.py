"""Cures: changes that may make a program faster, one folder each.

`cures/prefetch/__init__.py` holds the cure's page (its docstring: What it does, When it pays, What it changes, In the
source) and `CURE = Cure(…)`. The change itself stands beside it, in up to three parts: `inject.py` changes a running
program, `edit.py` its source, `dataset.py` a dataset object (see `_spec`). Nothing else registers a cure; its order
among the others is declared by `after`. A project's own cures come from the directories of FLATOUT_PLUGINS.

Modules with a leading underscore are what several cures share:

    _spec             Cure, Hooks, Edit, Rewrite: what a cure declares
    _catalogue        all cures by name, their parts, their order
    _injections       the levers of one child process: installed, and asked what they changed
    _rewriting        what a rewrite of a dataset receives and returns
    _pipelines        questions about the pipelines of a Case, for `skip`
    _trial_edit       whether an edit would change the program's own files, for `skip`
"""

from flatout.cures._catalogue import (
    LoadedCure,
    catalogue,
    edit_of,
    environment_of,
    find,
    in_order,
    is_injected,
    levers,
    order,
    rewrites,
)
from flatout.cures._spec import Cure, Edit, Hooks, Rewrite

__all__ = [
    "Cure",
    "Edit",
    "Hooks",
    "LoadedCure",
    "Rewrite",
    "catalogue",
    "edit_of",
    "environment_of",
    "find",
    "in_order",
    "is_injected",
    "levers",
    "order",
    "rewrites",
]
