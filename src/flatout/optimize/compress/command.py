"""`flatout optimize --compress`: the model is compressed in a process of its own, and its files are raced like all
others.

    flatout (never imports Keras)            a child: python -m flatout.optimize.compress.command
    `compressed(…)` starts it            →   opens the model, runs the stages, writes .keras, .tflite and .onnx files
    the files are contestants            ←   checked and timed beside the routes, on held-out samples
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from flatout.model.errors import CompressionFailed, FlatoutError, InvalidOption
from flatout.optimize.checks import Budget
from flatout.optimize.compress.search import SEARCH, Search, file_name
from flatout.optimize.compress.stages import Means, apply, parse
from flatout.subject.preparing import Request


@dataclass(frozen=True)
class Wish:
    request: Request
    stages: str
    """Techniques in sequence, or `search`."""
    train: str | None
    budget: Budget
    seconds: float
    """For a search; the stages that are asked for by name take as long as they take."""

    @property
    def place(self) -> Path:
        """Where files and checkpoints are kept."""
        return (
            Path(".flatout")
            / "compressed"
            / f"{Path(self.request.model).stem.replace(':', '-')}-{file_name(self.stages)}"
        )


@dataclass(frozen=True)
class Files:
    """What was written, and what the stages say of themselves."""

    paths: tuple[Path, ...] = ()
    told: tuple[str, ...] = ()
    missing: tuple[str, ...] = field(default_factory=tuple)


def compressed_files(wish: Wish, quiet: bool) -> tuple[Path, ...]:
    """For the command: compress what it was asked to optimize; the files that can be raced."""
    if wish.stages != SEARCH:
        parse(wish.stages)
    elif wish.budget.metric is None or wish.request.data is None:
        raise InvalidOption("A search has to know what is good enough: give --metric, and --data with labels.")
    files = compressed(wish)
    if not quiet:
        lines = [*files.told, *files.missing, f"kept in {wish.place}"]
        sys.stderr.write("".join(f"flatout: {line}\n" for line in lines))
    return tuple(path for path in files.paths if path.suffix in (".tflite", ".onnx"))


def compressed(wish: Wish) -> Files:
    """In flatout's own process: start the child, let its progress through, read what it wrote."""
    with tempfile.NamedTemporaryFile("w", suffix=".json") as request:
        json.dump(asdict(wish), request)
        request.flush()
        quieter = {"TF_CPP_MIN_LOG_LEVEL": "3", **os.environ}
        command = [sys.executable, "-m", __name__, request.name]
        child = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=quieter)
        try:
            said, _ = child.communicate()
        except BaseException:
            child.terminate()
            child.wait()
            raise
    answer = (
        json.loads(said.strip().splitlines()[-1]) if said.strip() else {"error": f"it ended with {child.returncode}"}
    )
    if "error" in answer:
        raise CompressionFailed(f"The compression did not come to its end: {answer['error']}")
    return Files(tuple(Path(path) for path in answer["paths"]), tuple(answer["told"]), tuple(answer["missing"]))


def _work(wish: Wish) -> dict[str, Any]:
    """In the child."""
    from flatout.optimize.compress import samples
    from flatout.subject import original

    for name in wish.request.imports:
        original.imported(name)
    model = _opened(wish.request)
    seen = samples.read(wish.request, model)
    train = original.named(wish.train) if wish.train else None
    score = samples.score(seen, wish.budget)
    means = Means(model, train, seen.calibration, wish.place / "checkpoints", score)
    if wish.stages == SEARCH:
        drop, deadline = samples.judge(seen, model, wish.budget), time.monotonic() + wish.seconds
        found = Search(means, drop, wish.budget.max_drop, deadline, _say).run()
        made = [(one.stages, one.model, one.int8) for one in found]
        told = [] if made else ["search: nothing smaller was good enough"]
    else:
        stages = parse(wish.stages)
        if wish.request.data is None and any(name == "int8" for name, _ in stages):
            raise InvalidOption("int8 has to see real samples to find its ranges: give --data.")
        results = apply(stages, means)
        made = [(wish.stages, results[-1].model, stages[-1][0] == "int8")]
        told = [str(result) for result in results]
    paths, missing = list[str](), list[str]()
    for name, smaller, int8 in made:
        written, failed = _written(smaller, int8, seen.calibration, wish.place, file_name(name))
        paths += map(str, written)
        missing += failed
    return {"paths": paths, "told": told, "missing": missing}


def _say(text: str) -> None:
    print(f"flatout: {text}", file=sys.stderr, flush=True)  # noqa: T201


def _opened(request: Request) -> Any:
    from flatout.subject import keras_models, original

    if Path(request.model).is_file():
        return keras_models.load_file(Path(request.model), request.trust, bool(request.imports))
    if ":" in request.model:
        return original.named(request.model)()
    raise InvalidOption(f"--compress needs a Keras model: a .keras file or module:function, not {request.model}.")


def _written(model: Any, int8: bool, inputs: list[Any], output: Path, name: str) -> tuple[list[Path], list[str]]:
    from flatout.optimize.compress import floats, litert, onnx_qdq

    output.mkdir(parents=True, exist_ok=True)
    keras_file = output / f"{name}.keras"
    model.save(keras_file)
    paths, missing = [keras_file], list[str]()
    writers = (litert.write, onnx_qdq.write) if int8 else (floats.write_litert, floats.write_onnx)
    for write, ending in zip(writers, (".tflite", ".onnx"), strict=True):
        try:
            paths.append(write(model, output / (name + ending), inputs).path)
        except FlatoutError as error:
            missing.append(f"{name}{ending}: {error}")
    return paths, missing


def main() -> None:
    wish = json.loads(Path(sys.argv[1]).read_text())
    try:
        request, budget = Request.from_json(wish["request"]), Budget(**wish["budget"])
        answer = _work(Wish(**wish | {"request": request, "budget": budget}))
    except FlatoutError as error:
        answer = {"error": str(error)}
    sys.stdout.write("\n" + json.dumps(answer) + "\n")


if __name__ == "__main__":
    main()
