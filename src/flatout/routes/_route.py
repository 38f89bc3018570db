"""`Route`: the base class of the ways to serve a model.

A route converts the subject into an artefact (a directory with everything needed to serve it elsewhere), opens the
artefact in a fresh process, and reports what its files contain. It promises nothing about speed or accuracy: both are
measured.

Where the methods run:

    missing_package, skip_reason, settings, loader   in flatout's own process: plain Python, no heavy imports
    convert, import_file, inspect, ends              in a conversion process with limits on time and memory
    open                                             in a serving process that holds only what serving needs

An exception in one of them, or the death of its process, becomes a row of the results with the reason. Of a
`FlatoutError` only the text is shown.
"""

from __future__ import annotations

import importlib.util
import inspect
import shutil
import sys
import textwrap
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Literal, Protocol

import numpy as np

from flatout.model.case import Equivalence
from flatout.subject import Subject

Arrays = Sequence[np.ndarray[Any, Any]]
Setting = Mapping[str, Any]
"""Options of the runtime as plain JSON values, such as {"threads": 2}: part of the search, not of the artefact."""

Precision = Literal["float32", "float16", "bfloat16", "int8", "int8-weights"]
"""The type that the heavy nodes compute in. `int8-weights`: activations stay float or are quantized at run time."""


class Runner(Protocol):
    """An opened artefact. Takes and returns arrays in the order of the original's inputs and outputs, batch first."""

    def __call__(self, inputs: Arrays, /) -> Arrays: ...


@dataclass(frozen=True)
class Contents:
    """What an artefact contains, read from its files and not from the converter's messages."""

    weights: int
    """Elements of all constants with more than `FEW_ELEMENTS` elements."""
    weight_bytes: int
    computes: Mapping[str, int] = field(default_factory=dict)
    """How many heavy nodes (convolutions, matrix products, recurrent cells) compute in each type, in numpy's names:
    {"int8": 52, "float32": 1}. A node with int8 weights and float activations counts as "int8-weights".
    Empty where the format does not record it."""


@dataclass(frozen=True)
class End:
    """An input or output as a file names it."""

    name: str
    dtype: str
    """numpy's name; empty where it is not one of numpy's."""
    shape: tuple[int | None, ...]
    """With the batch dimension; None is any length."""


class Route(ABC):
    """One way to serve a model. The docstring of a route's class, or else of its module, is its page."""

    name: ClassVar[str]
    """What users type and see: `litert-int8`."""
    family: ClassVar[str]
    """The runtime, for display: LiteRT, ONNX Runtime."""
    format: ClassVar[str]
    """What is deployed: SavedModel, LiteRT, ONNX, OpenVINO IR, TensorRT engine."""
    precision: ClassVar[Precision]
    equivalence: ClassVar[Equivalence]
    packages: ClassVar[tuple[str, ...]] = ()
    """Import names of the packages that it needs to convert and run, besides TensorFlow."""
    extra: ClassVar[str] = "backends"
    """The extra of flatout that installs them."""
    needs_data: ClassVar[bool] = False
    """Whether the conversion needs samples (calibration)."""
    order: ClassVar[int] = 1
    """When it is tried, which matters if time runs short. 0: the model as it is; 1: float32; 2: fully quantized, the
    most frequent winner; 3: in between; 4: replacements for a quantization that failed."""
    accepts: ClassVar[str] = ""
    """Suffix of the files made elsewhere that it can serve, or convert into its own: `.onnx`."""
    takes_core: ClassVar[bool] = True
    """Whether it is given the numeric core alone where a model's preprocessing was split off; else the whole model."""
    keeps_conversion: ClassVar[bool] = False
    """Whether what it converts is kept for the next call (`_conversions.py`). Of flatout's own routes alone."""
    opens_later: ClassVar[bool] = False
    """Whether its loader opens files at a call as well, such as for another number of samples."""
    deployable: ClassVar[bool] = True
    """False for what is measured only for comparison, such as Keras' own `predict`."""

    @property
    def title(self) -> str:
        """The first line of the docstring of the class, or else of its module."""
        return self._docstring.partition("\n")[0].strip().rstrip(".")

    @property
    def page(self) -> str:
        """The rest of that docstring, in Markdown."""
        return self._docstring.partition("\n")[2].strip()

    @property
    def _docstring(self) -> str:
        own = type(self).__dict__.get("__doc__")
        return inspect.cleandoc(own or sys.modules[type(self).__module__].__doc__ or "")

    def missing_package(self) -> str | None:
        """The first package that is not installed."""
        return next((name for name in self.packages if importlib.util.find_spec(name) is None), None)

    def skip_reason(self, subject: Subject) -> str | None:
        """Why it is known not to help, or not to work, for this model on this machine. --exhaustive tries it anyway."""
        return None

    def settings(self, subject: Subject, cores: int) -> Sequence[Setting]:
        """Settings worth trying, the most promising first. Each is one contestant of the race."""
        return ({},)

    @abstractmethod
    def convert(self, subject: Subject, directory: Path) -> None:
        """Write the artefact into this empty directory. `subject.calibration()` yields samples, where there are any.

        Where the format or its runtime needs static shapes, write one file for each of `subject.batches`.
        """

    def import_file(self, path: Path, directory: Path) -> None:
        """Write the artefact from a file with the suffix that the route accepts."""
        shutil.copyfile(path, directory / f"model{path.suffix}")

    def ends(self, directory: Path) -> tuple[Sequence[End], Sequence[End]]:
        """The inputs and outputs as the artefact's file names and orders them; empty where the format has no names."""
        return (), ()

    @abstractmethod
    def inspect(self, directory: Path) -> Contents:
        """Read the artefact's files."""

    def open(self, directory: Path, setting: Setting, batch: int) -> Runner:
        """Load the artefact, ready to be called with `batch` samples (0: the model has no batch dimension).

        This runs the loader, so that what is measured is what the user gets.
        """
        return run_loader(self.loader(setting, batch), directory)

    @abstractmethod
    def loader(self, setting: Setting, batch: int) -> str:
        """Python source for the user to copy; flatout runs it on the artefact before handing it over.

        It defines `load(directory)`, which returns a function from a list of arrays to a list of arrays (a `Runner`
        for this batch). It imports the runtime alone and nothing of flatout.
        """


def run_loader(loader: str, directory: Path) -> Runner:
    namespace: dict[str, Any] = {}
    exec(compile(loader, "the loader", "exec"), namespace)
    runner: Runner = namespace["load"](directory)
    return runner


def lines_if(condition: object, lines: str) -> str:
    """These lines, indented for the body of a function in a loader, or nothing."""
    return textwrap.indent(textwrap.dedent(lines).strip("\n"), "    ") + "\n" if condition else ""
