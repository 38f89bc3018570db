"""`flatout optimize MODEL`: make a trained model fast and small to serve, within an accuracy budget, and prove it."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from flatout.cli._options import command
from flatout.model.errors import InvalidOption
from flatout.model.quantities import seconds

if TYPE_CHECKING:
    from flatout.optimize.request import OptimizeRequest

INTERRUPTED = 130


@dataclass(frozen=True)
class Options:
    """The options as they are typed."""

    model: Annotated[
        str, typer.Argument(help="A .keras or .h5 file, a SavedModel's directory, a frozen .pb, or module:function.")
    ]
    data: Annotated[
        str | None, typer.Option(metavar="DATA", help=".npz, .npy, a directory of TFRecords, or module:function.")
    ] = None
    metric: Annotated[
        str | None, typer.Option(metavar="NAME", help="A Keras metric by name, or module:function(labels, answers).")
    ] = None
    max_drop: Annotated[float, typer.Option(min=0.0, help="How much worse than the original it may be.")] = 0.01
    lower_is_better: Annotated[
        bool | None, typer.Option("--lower-is-better/--higher-is-better", help="The metric's good direction.")
    ] = None
    goal: Annotated[
        str, typer.Option("--goal", "--for", metavar="GOAL", help="latency, throughput, size or memory.")
    ] = "latency"
    batch: Annotated[str, typer.Option(metavar="SIZES", help="Batch sizes that matter, the first most: 1,8,32.")] = "1"
    shape: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=SIZES", help="Shape of an input whose lengths are open, without the batch: x=128,64."
        ),
    ] = None
    features: Annotated[
        str | None, typer.Option(metavar="FILE", help="JSON that describes the features of TFRecords.")
    ] = None
    samples: Annotated[int, typer.Option(min=16, help="Held-out samples to check on, at most.")] = 2000
    signature: Annotated[str | None, typer.Option(metavar="NAME", help="The signature of a SavedModel.")] = None
    route: Annotated[
        list[str] | None, typer.Option("--route", metavar="NAME", help="Try this route or family only (repeat it).")
    ] = None
    without: Annotated[list[str] | None, typer.Option(metavar="NAME", help="Leave this route out.")] = None
    compare: Annotated[
        list[Path] | None, typer.Option(metavar="FILE", help="A .tflite or .onnx file to measure for comparison.")
    ] = None
    compress: Annotated[
        str | None,
        typer.Option(
            metavar="STAGES",
            help="Compress it first, and race that too: prune=0.5,distill,int8, or search (docs/compress.md).",
        ),
    ] = None
    train: Annotated[
        str | None,
        typer.Option(metavar="MODULE:FUNCTION", help="With --compress: compiles and trains the model it is given."),
    ] = None
    exhaustive: Annotated[bool, typer.Option("--exhaustive", help="Also try what is known not to help here.")] = False
    no_cache: Annotated[
        bool, typer.Option("--no-cache", help="Convert everything again, and keep no conversion for the next call.")
    ] = False
    trust: Annotated[bool, typer.Option("--trust", help="Run code that the model's file contains.")] = False
    imports: Annotated[
        list[str] | None, typer.Option("--import", metavar="MODULE", help="Import this first: custom objects.")
    ] = None
    budget: Annotated[
        str | None,
        typer.Option(metavar="TIME", help="How long it may take: 90s, 10m, 1h. Else 5m, more for large models."),
    ] = None
    layout: Annotated[
        str | None,
        typer.Option(
            metavar="SERVER",
            help="Write it as this server loads it: tensorflow-serving, triton or openvino-model-server.",
        ),
    ] = None
    output: Annotated[Path | None, typer.Option("--output", "-o", metavar="DIR", help="Where the artefact goes.")] = (
        None
    )
    force: Annotated[bool, typer.Option("--force", help="Overwrite an existing artefact.")] = False
    json: Annotated[
        str | None, typer.Option("--json", metavar="FILE", help="Write the case as JSON (- is stdout).")
    ] = None
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Print the verdict only.")] = False

    def request(self) -> OptimizeRequest:
        from flatout.optimize.request import OptimizeRequest

        return OptimizeRequest(
            model=self.model,
            data=self.data,
            features=self.features,
            metric=self.metric,
            lower_is_better=self.lower_is_better,
            max_drop=self.max_drop,
            objective=self.goal,
            batches=parse_batches(self.batch),
            shapes=parse_shapes(self.shape or ()),
            samples=self.samples,
            signature=self.signature,
            trust=self.trust,
            imports=tuple(self.imports or ()),
            routes=tuple(self.route or ()),
            without=tuple(self.without or ()),
            exhaustive=self.exhaustive,
            cache=not self.no_cache,
            compare=tuple(self.compare or ()),
            compress=self.compress,
            train=self.train,
            seconds=None if self.budget is None else seconds(self.budget),
            layout=self.layout,
            output=self.output,
            force=self.force,
        )


def register(app: typer.Typer) -> None:
    command(app, "optimize", Options, run)


def run(options: Options) -> None:
    """Try the ways to serve a trained model, check and measure each, and hand over the best within the budget."""
    from flatout.cli._output import show
    from flatout.optimize.session import optimize
    from flatout.process import termination

    with termination.as_interrupt():
        result = optimize(options.request(), quiet=options.quiet)
    show(result.case, "serving", result.directory, options.json, options.quiet)
    sys.exit(INTERRUPTED if result.interrupted else 0 if result.artefact is not None else 1)


def parse_batches(text: str) -> tuple[int, ...]:
    try:
        sizes = tuple(dict.fromkeys(int(part) for part in text.split(",")))
        if not sizes or min(sizes) < 1:
            raise ValueError
    except ValueError:
        raise InvalidOption(f"--batch takes sizes such as 1 or 1,8,32, not {text!r}.") from None
    return sizes


def parse_shapes(texts: Sequence[str]) -> dict[str, list[int]]:
    shapes = {}
    for text in texts:
        name, equals, sizes = text.partition("=")
        try:
            if not equals or not name:
                raise ValueError
            shapes[name] = [int(part) for part in sizes.split(",")] if sizes else []
        except ValueError:
            raise InvalidOption(f"--shape takes NAME=SIZES such as tokens=128 or x=224,224,3, not {text!r}.") from None
    return shapes
