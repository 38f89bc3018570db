"""What a way of running a model has to offer: a `Route`.

A route turns the subject into an artefact (a directory with all that is needed to run it elsewhere), opens it in a
fresh process, and tells what is really inside. It promises nothing about speed or accuracy: that is measured.

Where its methods run:

    hopeless, settings, missing, loader   in flatout's own process: plain Python, no heavy import
    convert, adopt, inspect               in a converter's process, with a limit on time and memory
    open                                  in a runner's process, which holds nothing but what serving needs

An exception of any of them, or the death of its process, is a row that says why; of a `FlatoutError` the text alone.
"""

from __future__ import annotations

import importlib.util
import shutil
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Literal, Protocol

import numpy as np

from flatout.model.case import Equivalence
from flatout.model.errors import FlatoutError
from flatout.subject.subject import Subject

Arrays = Sequence[np.ndarray[Any, Any]]
Setting = Mapping[str, Any]
"""Options of the runtime as plain JSON values, such as {"threads": 2}: part of the search, not of the artefact."""

Precision = Literal["float32", "float16", "bfloat16", "int8", "int8-weights"]
"""What the heavy nodes compute with. `int8-weights`: the activations stay float, or are quantized on the fly."""


class Needless(FlatoutError):
    """Raised by `convert` where the route has nothing to offer here that another does not: left out, not failed."""


class Runner(Protocol):
    """An opened artefact. Takes and gives arrays in the order of the original's inputs and outputs, batch first."""

    def __call__(self, inputs: Arrays, /) -> Arrays: ...


@dataclass(frozen=True)
class Inside:
    """What an artefact really holds, read from its files and not from what the converter said."""

    weights: int
    """Elements of all constants with more than a few elements."""
    weight_bytes: int
    computes: Mapping[str, int] = field(default_factory=dict)
    """How many heavy nodes (convolutions, matrix products, recurrent cells) work in each type, as numpy spells it:
    {"int8": 52, "float32": 1}. A node with int8 weights whose activations are float counts as "int8-weights".
    Empty where the format does not tell."""


class Route(ABC):
    name: ClassVar[str]
    """Known everywhere by this name: `litert-int8`."""
    family: ClassVar[str]
    """The runtime, for people: LiteRT, ONNX Runtime."""
    format: ClassVar[str]
    """What is deployed: SavedModel, LiteRT, ONNX, OpenVINO IR, TensorRT engine."""
    precision: ClassVar[Precision]
    equivalence: ClassVar[Equivalence]
    packages: ClassVar[tuple[str, ...]] = ()
    """Import names it needs to convert and run; TensorFlow is always there."""
    extra: ClassVar[str] = "backends"
    """The extra of flatout that brings them."""
    needs_data: ClassVar[bool] = False
    """Whether it has to see samples to convert (calibration)."""
    turn: ClassVar[int] = 1
    """When it is tried, in case the time is short: 0 as the model is, 1 in float32, 2 fully quantized, which most often
    wins, 3 in between, 4 what makes up for a quantization that failed."""
    takes: ClassVar[str] = ""
    """Ending of the files, made elsewhere, that it runs or turns into its own: `.onnx`."""
    deployable: ClassVar[bool] = True
    """False for what is only there to compare with, such as Keras' own `predict`."""

    def missing(self) -> str | None:
        """The package that is not installed, if one is not."""
        return next((name for name in self.packages if importlib.util.find_spec(name) is None), None)

    def hopeless(self, subject: Subject) -> str | None:
        """Why it is known not to pay, or not to work, for this model on this machine; tried with --exhaustive only."""
        return None

    def settings(self, subject: Subject, cores: int) -> Sequence[Setting]:
        """Settings worth trying, the most promising first. Each is one contestant of the race."""
        return ({},)

    @abstractmethod
    def convert(self, subject: Subject, directory: Path) -> None:
        """Write the artefact into this empty directory. `subject.calibration()` has the samples, where there are any.

        Where the format or its runtime wants static shapes, write one file for each of `subject.batches`.
        """

    def adopt(self, given: Path, directory: Path) -> None:
        """Write the artefact from a file that it takes."""
        shutil.copyfile(given, directory / f"model{given.suffix}")

    @abstractmethod
    def inspect(self, directory: Path) -> Inside:
        """Look into the files."""

    def open(self, directory: Path, setting: Setting, batch: int) -> Runner:
        """Load the artefact, ready to be called with `batch` samples (0: the model has no batch dimension).

        It is the loader that is run, so that what is measured is what is handed over.
        """
        return opened(self.loader(setting, batch), directory)

    @abstractmethod
    def loader(self, setting: Setting, batch: int) -> str:
        """Python source that a user copies; it is run against the artefact before it is handed over.

        It defines `load(directory)`, which gives a function from a list of arrays to a list of arrays, as a `Runner`
        for this batch, and imports the runtime alone: nothing of flatout.
        """


def opened(loader: str, directory: Path) -> Runner:
    space: dict[str, Any] = {}
    exec(compile(loader, "the loader", "exec"), space)
    runner: Runner = space["load"](directory)
    return runner
