"""`OptimizeRequest`: what the command and `flatout.optimize` ask for, validated in one place."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from flatout.model.errors import InvalidOption
from flatout.optimize.checks import AccuracyBudget
from flatout.optimize.layouts import LAYOUTS
from flatout.subject.metric import lower_is_better
from flatout.subject.preparation import SubjectRequest

OBJECTIVES = ("latency", "throughput", "size", "memory")
SEARCH = "search"
"""`compress="search"`: choose the stages and their amounts by the metric."""


@dataclass(frozen=True)
class OptimizeRequest:
    model: str
    """A .keras or .h5 file, the directory of a SavedModel, `module:function`; the name of a model in memory."""
    data: str | None = None
    """An .npz or .npy file, a directory of TFRecords, or `module:function`."""
    features: str | None = None
    """A JSON file that describes the features of TFRecords."""
    metric: str | None = None
    lower_is_better: bool | None = None
    """None: as usual for the metric of this name."""
    max_drop: float = 0.01
    objective: str = "latency"
    batches: tuple[int, ...] = (1,)
    shapes: Mapping[str, Sequence[int]] = field(default_factory=dict)
    samples: int = 2000
    """The largest number of held-out samples."""
    signature: str | None = None
    trust: bool = False
    imports: tuple[str, ...] = ()

    routes: tuple[str, ...] = ()
    without: tuple[str, ...] = ()
    exhaustive: bool = False
    """Also try the routes that have a `skip_reason`."""
    compare: tuple[Path, ...] = ()
    """Files made elsewhere, measured for comparison."""
    compress: str | None = None
    """Stages of compression, such as `prune=0.5,int8`, or `search`. The compressed files join the race."""
    train: str | None = None
    """`module:function` that compiles and trains a model, for `compress`."""
    compressed: tuple[Path, ...] = ()
    """Compressed forms of the model: checked and raced like routes, and handed over if one wins."""

    compressed_order: tuple[str, ...] = ()
    """Digests of the first calibration samples that the compression was given (`subject.samples`)."""

    seconds: float | None = None
    """Time budget. None: by the size and speed of the model (`time_budget`)."""
    cache: bool = True
    """Whether conversions of earlier calls are used, and those of this one kept."""
    layout: str | None = None
    """A server, by its name in `layouts`: the artefact is also written as it expects it."""
    output: Path | None = None
    force: bool = False

    def __post_init__(self) -> None:
        if self.objective not in OBJECTIVES:
            raise InvalidOption(
                f"--goal takes {', '.join(OBJECTIVES[:-1])} or {OBJECTIVES[-1]}, not {self.objective!r}."
            )
        if self.layout is not None and self.layout not in LAYOUTS:
            *others, last = LAYOUTS
            raise InvalidOption(f"--layout takes {', '.join(others)} or {last}, not {self.layout!r}.")
        if not self.batches or not all(isinstance(one, int) and one >= 1 for one in self.batches):
            raise InvalidOption(f"Batch sizes are whole numbers from 1 on, not {self.batches}.")
        if not isinstance(self.samples, int) or self.samples < 1:
            raise InvalidOption(f"The number of held-out samples is a whole number from 1 on, not {self.samples}.")
        if not (self.max_drop >= 0 and math.isfinite(self.max_drop)):
            raise InvalidOption(f"The largest drop of the metric is a number from 0 on, not {self.max_drop:g}.")
        if self.seconds is not None and self.seconds <= 0:
            raise InvalidOption(f"The time budget is more than 0 seconds, not {self.seconds:g}.")
        if self.train is not None and self.compress is None:
            raise InvalidOption("--train needs --compress: say what to train for, such as --compress prune=0.5,int8.")
        if self.compress == SEARCH and (self.metric is None or self.data is None):
            raise InvalidOption("--compress search chooses by the metric: give --metric, and --data with labels.")

    @property
    def minimizes_metric(self) -> bool:
        return lower_is_better(self.metric) if self.lower_is_better is None else self.lower_is_better

    @property
    def accepts_slow_routes(self) -> bool:
        """Whether routes that are many times slower than the model count: named explicitly, or small."""
        return self.exhaustive or bool(self.routes) or self.objective in ("size", "memory")

    def accuracy_budget(self, metric: str | None) -> AccuracyBudget:
        return AccuracyBudget(self.max_drop, metric, self.minimizes_metric)

    def subject_request(self, directory: Path | None = None) -> SubjectRequest:
        return SubjectRequest(
            directory="" if directory is None else str(directory),
            model=self.model,
            data=self.data,
            features=self.features,
            metric=self.metric,
            batches=self.batches,
            shapes=self.shapes,
            samples=self.samples,
            signature=self.signature,
            trust=self.trust,
            imports=self.imports,
        )
