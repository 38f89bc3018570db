"""A route for a model whose preprocessing was split off: the route is given the numeric core alone.

The artefact holds the core as the route writes it (`core/`), the stage before it and, where there is one, the stage
after it. A stage is a SavedModel that TensorFlow runs, or steps that numpy runs (`subject.steps`). One loader joins
them.
"""

from __future__ import annotations

import inspect
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import ClassVar

from flatout.routes import _conversions
from flatout.routes._route import Contents, Route, Setting
from flatout.subject import Subject, fingerprint
from flatout.subject import steps as steps_module
from flatout.subject.split_writer import AFTER, BEFORE, CORE, FILE

SUFFIX = "-split"


class Split(Route):
    inner: ClassVar[Route]

    def skip_reason(self, subject: Subject) -> str | None:
        return self.inner.skip_reason(subject.core())

    def settings(self, subject: Subject, cores: int) -> Sequence[Setting]:
        return self.inner.settings(subject.core(), cores)

    def convert(self, subject: Subject, directory: Path) -> None:
        (directory / CORE).mkdir()
        _conversions.convert(self.inner, subject.core(), directory / CORE)
        for name in (BEFORE, AFTER):
            if (steps := subject.directory / f"{name}.json").exists():
                shutil.copyfile(steps, directory / steps.name)
                shutil.copyfile(steps.with_suffix(".npz"), directory / f"{name}.npz")
            elif (subject.directory / name).exists():
                shutil.copytree(subject.directory / name, directory / name)
        shutil.copyfile(subject.directory / FILE, directory / FILE)

    def inspect(self, directory: Path) -> Contents:
        return self.inner.inspect(directory / CORE)

    def loader(self, setting: Setting, batch: int) -> str:
        core = self.inner.loader(setting, batch).replace("def load(", "def load_core(")
        hashing = "MASK = " + inspect.getsource(fingerprint).partition("\nMASK = ")[2]
        steps = "def load_steps" + inspect.getsource(steps_module).partition("\ndef load_steps")[2]
        return f"{IMPORTS}\n{core}\n\n{hashing}\n\n{steps}\n{LOAD}"


def split(route: Route) -> Route:
    """This route, for models whose preprocessing was split off."""
    names = ("family", "format", "precision", "equivalence", "packages", "extra", "needs_data", "order", "deployable",
             "opens_later")  # fmt: skip
    members = {name: getattr(route, name) for name in names}
    page = f"{route.title}, with the preprocessing of its inputs as a stage of its own.\n\n{route.page}"
    made: Route = type(
        "SplitRoute", (Split,), {**members, "name": route.name + SUFFIX, "inner": route, "__doc__": page}
    )()
    return made


IMPORTS = """\
from __future__ import annotations

import json
import re
from bisect import bisect_right
from pathlib import Path
from typing import Any

import numpy as np
"""

LOAD = '''
def load_stage(directory, name):
    """Steps that numpy runs, or a SavedModel that TensorFlow runs."""
    if (directory / f"{name}.json").exists():
        return load_steps(directory, name)
    import tensorflow as tf

    model = tf.saved_model.load(str(directory / name))
    return lambda arrays: [output.numpy() for output in model.serve(*[tf.constant(array) for array in arrays])]


def load(directory):
    """A function from a list of arrays to a list of arrays: the stage before the core, the core, the stage after it."""
    directory = Path(directory)
    layout = json.loads((directory / "stages.json").read_text())
    before, core = load_stage(directory, "before"), load_core(directory / "core")
    after = load_stage(directory, "after") if layout["after"] else None
    count, to_after, outputs = layout["inputs"], layout["after"], layout["outputs"]

    def run(inputs):
        made = before(inputs)
        results = {"before": made, "core": core(made[:count])}
        if after is not None:
            results["after"] = after([results[stage][i] for stage, i in to_after])
        return [results[stage][i] for stage, i in outputs]

    def run_core_alone(inputs):
        return core(before(inputs))

    return run_core_alone if outputs == [["core", i] for i in range(len(outputs))] else run
'''
