"""`flatout optimize MODEL`: make a trained model fast and small to serve, within an accuracy budget, and prove it."""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from flatout.cli.tune import seconds
from flatout.model.errors import InvalidOption

if TYPE_CHECKING:
    from flatout.optimize.checks import Budget
    from flatout.subject.preparing import Request


def register(app: typer.Typer) -> None:
    @app.command("optimize")
    def _command(
        model: Annotated[
            str, typer.Argument(help="A .keras or .h5 file, a SavedModel's directory, or module:function.")
        ],
        data: Annotated[
            str | None, typer.Option(metavar="DATA", help=".npz, .npy, a directory of TFRecords, or module:function.")
        ] = None,
        metric: Annotated[
            str | None,
            typer.Option(metavar="NAME", help="A Keras metric by name, or module:function(labels, answers)."),
        ] = None,
        max_drop: Annotated[float, typer.Option(min=0.0, help="How much worse than the original it may be.")] = 0.01,
        lower_is_better: Annotated[
            bool | None, typer.Option("--lower-is-better/--higher-is-better", help="The metric's good direction.")
        ] = None,
        objective: Annotated[
            str, typer.Option("--for", metavar="GOAL", help="latency, throughput, size or memory.")
        ] = "latency",
        batch: Annotated[
            str, typer.Option(metavar="SIZES", help="Batch sizes that matter, the first most: 1,8,32.")
        ] = "1",
        shape: Annotated[
            list[str] | None,
            typer.Option(
                metavar="NAME=SIZES", help="Shape of an input whose lengths are open, without the batch: x=128,64."
            ),
        ] = None,
        features: Annotated[
            str | None, typer.Option(metavar="FILE", help="JSON that describes the features of TFRecords.")
        ] = None,
        samples: Annotated[int, typer.Option(min=16, help="Held-out samples to check on, at most.")] = 2000,
        signature: Annotated[str | None, typer.Option(metavar="NAME", help="The signature of a SavedModel.")] = None,
        route: Annotated[
            list[str] | None, typer.Option("--route", metavar="NAME", help="Try this route or family only (repeat it).")
        ] = None,
        without: Annotated[list[str] | None, typer.Option(metavar="NAME", help="Leave this route out.")] = None,
        compare: Annotated[
            list[Path] | None,
            typer.Option(metavar="FILE", help="A .tflite or .onnx file to measure beside the others."),
        ] = None,
        compress: Annotated[
            str | None,
            typer.Option(
                metavar="STAGES",
                help="Compress it first, and race that too: prune=0.5,distill,int8, or search (docs/compress.md).",
            ),
        ] = None,
        train: Annotated[
            str | None,
            typer.Option(metavar="MODULE:FUNCTION", help="With --compress: compiles and trains the model it is given."),
        ] = None,
        exhaustive: Annotated[bool, typer.Option(help="Also try what is known not to pay here.")] = False,
        trust: Annotated[bool, typer.Option(help="Run code that the model's file holds.")] = False,
        imports: Annotated[
            list[str] | None, typer.Option("--import", metavar="MODULE", help="Import this first: custom objects.")
        ] = None,
        budget: Annotated[
            str | None,
            typer.Option(metavar="TIME", help="How long it may take: 90s, 10m, 1h. Else 5m, more for large models."),
        ] = None,
        output: Annotated[
            Path | None, typer.Option("--output", "-o", metavar="DIR", help="Where the artefact goes.")
        ] = None,
        force: Annotated[bool, typer.Option(help="Overwrite an artefact that is there.")] = False,
        json: Annotated[
            str | None, typer.Option("--json", metavar="FILE", help="Write the case as JSON (- is stdout).")
        ] = None,
        quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Print the verdict only.")] = False,
    ) -> None:
        """Try the ways to serve a trained model, check and measure each, and hand over the best within the budget."""
        from flatout.optimize.checks import Budget
        from flatout.optimize.metrics import lower_is_better as usually_lower
        from flatout.optimize.optimizer import Options
        from flatout.optimize.session import optimize, show
        from flatout.subject.preparing import Request

        request = Request(
            directory="",
            model=model,
            data=data,
            features=features,
            metric=metric,
            batches=_batches(batch),
            shapes=_shapes(shape or ()),
            samples=samples,
            signature=signature,
            trust=trust,
            imports=tuple(imports or ()),
        )
        if train is not None and compress is None:
            raise InvalidOption("--train is for --compress: say what to train for, such as --compress prune=0.5,int8.")
        lower = usually_lower(metric) if lower_is_better is None else lower_is_better
        made: tuple[Path, ...] = ()
        left = None if budget is None else seconds(budget)
        if compress is not None:
            made, left = _compressed(request, compress, train, Budget(max_drop, metric, lower), left, quiet)
        options = Options(
            objective=objective,
            max_drop=max_drop,
            lower_is_better=lower,
            routes=tuple(route or ()),
            without=tuple(without or ()),
            compare=tuple(compare or ()),
            compressed=made,
            exhaustive=exhaustive,
            budget=left,
            output=output,
            force=force,
        )
        result = optimize(request, options, quiet=quiet)
        show(result, json, quiet)
        sys.exit(0 if result.artefact is not None else 1)


def _compressed(
    request: Request, stages: str, train: str | None, budget: Budget, seconds: float | None, quiet: bool
) -> tuple[tuple[Path, ...], float | None]:
    """Files to race, and the time that is left for that: a search may take half of it, stages come on top."""
    from flatout.optimize.allowance import LEAST
    from flatout.optimize.compress.command import Wish, compressed_files
    from flatout.optimize.compress.search import SEARCH

    began, given = time.monotonic(), seconds or LEAST
    files = compressed_files(Wish(request, stages, train, budget, given / 2), quiet)
    if stages != SEARCH:
        return files, seconds
    return files, max(given - (time.monotonic() - began), given / 2)


def _batches(text: str) -> tuple[int, ...]:
    try:
        sizes = tuple(dict.fromkeys(int(part) for part in text.split(",")))
        if not sizes or min(sizes) < 1:
            raise ValueError
    except ValueError:
        raise InvalidOption(f"--batch takes sizes such as 1 or 1,8,32, not {text!r}.") from None
    return sizes


def _shapes(texts: Sequence[str]) -> dict[str, list[int]]:
    found = {}
    for text in texts:
        name, equals, sizes = text.partition("=")
        try:
            if not equals or not name:
                raise ValueError
            found[name] = [int(part) for part in sizes.split(",")] if sizes else []
        except ValueError:
            raise InvalidOption(f"--shape takes NAME=SIZES such as tokens=128 or x=224,224,3, not {text!r}.") from None
    return found
