"""Cures: changes that may make a program faster, one folder each.

`cures/prefetch/__init__.py` holds the cure's page (its docstring: What it does, When it pays, What it changes, In the
source) and `CURE = Cure(…)`. The change itself stands beside it, in up to three parts: `inject.py` changes a running
program, `edit.py` its source, `dataset.py` a dataset object (see `_spec`). Nothing else registers a cure; its order
among the others is declared by `after`. A project's own cures come from the directories of FLATOUT_PLUGINS.

Modules with a leading underscore are what several cures share:

    _spec                  Cure, Hooks, Edit, Rewrite: what a cure declares
    _catalogue             all cures by name, their parts, their order
    _offers                which cures a finding of a run names: those that fit its program
    _injections            the levers of one child process: loaded, installed, and what they changed

    _pipelines             for `skip`: questions about the pipelines of a Case
    _trial_edit            for `skip`: whether an edit would change the program's own files

    _keras_arguments       changes the arguments of `compile`, `fit` and `predict` on their way in
    _batch_size            changes the batch size of `fit` and of `Dataset.batch`
    _dtype_policy          sets the precision in which Keras layers compute
    _layouts               computes a value in another order of its axes, without transposes

    _tracing               runs an eager function through a tf.function, or leaves it alone for good
    _function_replacement  puts the traced version in place of a Python function
    _traced_calls          traces calls of models, losses and optimizers one by one
    _free_variables        the Python values that a function reads from outside
    _fingerprint           a Python value as something that can be compared later
    _loads                 what the source of a function reads
    _frozen                why an edit must not trace a function, from the source of all files
    _frozen_here           the same for the program of this process, for levers
    _scalars               Python numbers among the arguments of a function, which change from call to call
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
    load,
    order,
    rewrites,
)
from flatout.cures._offers import name_offered
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
    "load",
    "name_offered",
    "order",
    "rewrites",
]
