"""`flatout optimize --compress`: compresses the model in a child process; its files join the race.

flatout (never imports Keras)            a child: python -m flatout.optimize.compress.command
`run_compression(…)` starts it       →   opens the model, runs the stages, writes .keras, .tflite and .onnx files
the files become contestants         ←   checked and timed like the routes, on held-out samples
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from flatout.model.errors import CompressionFailed, FlatoutError, InvalidOption
from flatout.optimize import time_budget
from flatout.optimize.checks import AccuracyBudget
from flatout.optimize.compress.search import Search, file_name
from flatout.optimize.compress.stages import Resources, apply, parse
from flatout.optimize.request import SEARCH, OptimizeRequest
from flatout.subject.preparation import SubjectRequest
from flatout.subject.samples import row_digests


@dataclass(frozen=True)
class CompressionRequest:
    """What the child has to do."""

    subject: SubjectRequest
    stages: str
    """Techniques in sequence, or `search`."""
    train: str | None
    budget: AccuracyBudget
    seconds: float
    """Time limit of a search; named stages have none."""

    @property
    def directory(self) -> Path:
        """Where files and checkpoints are kept."""
        name = Path(self.subject.model).stem.replace(":", "-")
        return Path(".flatout") / "compressed" / f"{name}-{file_name(self.stages)}"

    @classmethod
    def from_json(cls, values: dict[str, Any]) -> CompressionRequest:
        subject, budget = SubjectRequest.from_json(values["subject"]), AccuracyBudget(**values["budget"])
        return cls(**values | {"subject": subject, "budget": budget})


@dataclass(frozen=True)
class CompressedFiles:
    paths: tuple[Path, ...] = ()
    reports: tuple[str, ...] = ()
    """What the stages did."""
    missing: tuple[str, ...] = ()
    """Files that could not be written, and why."""
    order: tuple[str, ...] = ()
    """Digests of the first samples that it was given for calibration; empty where it was given none."""


def compress_for_race(request: OptimizeRequest, quiet: bool) -> OptimizeRequest:
    """The request with the compressed files to race, and the time that is left for the race.

    A search takes at most half of the time budget. Named stages take as long as they need, on top of it.
    """
    assert request.compress is not None
    if request.compress != SEARCH:
        parse(request.compress)
    began, total = time.monotonic(), request.seconds or time_budget.MIN_SECONDS
    budget = request.accuracy_budget(request.metric)
    compression = CompressionRequest(request.subject_request(), request.compress, request.train, budget, total / 2)
    files = run_compression(compression)
    if not quiet:
        lines = [*files.reports, *files.missing, f"kept in {compression.directory}"]
        sys.stderr.write("".join(f"flatout: {line}\n" for line in lines))
    servable = tuple(path for path in files.paths if path.suffix in (".tflite", ".onnx"))
    left = max(total - (time.monotonic() - began), total / 2) if request.compress == SEARCH else request.seconds
    return replace(request, compressed=servable, compressed_order=files.order, seconds=left)


def run_compression(request: CompressionRequest) -> CompressedFiles:
    """Start the child, let its progress through to standard error, and read its answer."""
    with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
        json.dump(asdict(request), file)
        file.flush()
        environment = {"TF_CPP_MIN_LOG_LEVEL": "3", **os.environ}
        command = [sys.executable, "-m", __name__, file.name]
        child = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment)
        try:
            output, _ = child.communicate()
        except BaseException:
            child.terminate()
            child.wait()
            raise
    answer = _answer(output, child.returncode)
    if "error" in answer:
        raise CompressionFailed(f"The compression failed: {answer['error']}")
    paths = tuple(Path(path) for path in answer["paths"])
    return CompressedFiles(paths, tuple(answer["reports"]), tuple(answer["missing"]), tuple(answer["order"]))


def _answer(output: str, code: int) -> dict[str, Any]:
    """The last line that the child has written. Where it died before, that is what its training printed, or nothing."""
    lines = output.strip().splitlines()
    try:
        answer = json.loads(lines[-1]) if lines else None
    except ValueError:
        answer = None
    if isinstance(answer, dict) and ("error" in answer or "paths" in answer):
        return answer
    return {"error": f"its process ended with exit code {code} and no answer"}


def _compress(request: CompressionRequest) -> dict[str, Any]:
    """The work of the child."""
    from flatout.optimize.compress import samples, training
    from flatout.optimize.compress.structure.graph import refuse_keras_2
    from flatout.subject import original

    for name in request.subject.imports:
        original.import_module(name)
    model = _open_model(request.subject)
    refuse_keras_2(model)
    data = samples.read(request.subject, model)
    train = original.import_object(request.train) if request.train else None
    score = samples.score(data, request.budget)
    checkpoints = request.directory / "checkpoints"
    if train is not None:  # an edited function begins anew
        checkpoints /= training.identity_of(train)[:12]
    resources = Resources(model, train, data.calibration, checkpoints, score)
    if request.stages == SEARCH:
        drop, deadline = samples.metric_drop(data, model, request.budget), time.monotonic() + request.seconds
        _say(f"search: chooses by {len(data.inputs[0]):,} samples; the race checks its results on others")
        found = Search(resources, drop, request.budget.max_drop, deadline, _say).run()
        made = [(one.stages, one.model, one.int8) for one in found]
        reports = [] if made else ["search: no smaller model was good enough"]
    else:
        stages = parse(request.stages)
        if request.subject.data is None and any(name == "int8" for name, _ in stages):
            raise InvalidOption("int8 needs real samples to find its ranges: give --data.")
        results = apply(stages, resources)
        made = [(request.stages, results[-1].model, stages[-1][0] == "int8")]
        reports = [str(result) for result in results]
    paths, missing = list[str](), list[str]()
    for name, smaller, int8 in made:
        written, failed = _write_files(smaller, int8, data.calibration, request.directory, file_name(name))
        paths += map(str, written)
        missing += failed
    order = row_digests(data.calibration) if data.inputs else []
    return {"paths": paths, "reports": reports, "missing": missing, "order": order}


def _say(text: str) -> None:
    print(f"flatout: {text}", file=sys.stderr, flush=True)  # noqa: T201


def _open_model(request: SubjectRequest) -> Any:
    from flatout.subject import keras_models, original

    if Path(request.model).is_file():
        return keras_models.load_file(Path(request.model), request.trust, request.imports)
    if ":" in request.model:
        return original.import_object(request.model)()
    raise InvalidOption(f"--compress needs a Keras model: a .keras file or module:function, not {request.model}.")


def _write_files(model: Any, int8: bool, inputs: list[Any], output: Path, name: str) -> tuple[list[Path], list[str]]:
    """The model in each format. Returns the paths, and what could not be written."""
    from flatout.optimize.compress import float_files, litert, onnx_qdq

    output.mkdir(parents=True, exist_ok=True)
    keras_file = output / f"{name}.keras"
    model.save(keras_file)
    paths, missing = [keras_file], list[str]()
    writers = (litert.write, onnx_qdq.write) if int8 else (float_files.write_litert, float_files.write_onnx)
    for write, suffix in zip(writers, (".tflite", ".onnx"), strict=True):
        try:
            paths.append(write(model, output / (name + suffix), inputs).path)
        except FlatoutError as error:
            missing.append(f"{name}{suffix}: {error}")
        except Exception as error:  # a converter or runtime may raise anything: the other file may still be written
            reason = " ".join(str(error).split())[:300]
            missing.append(f"{name}{suffix}: {type(error).__name__}: {reason}")
    return paths, missing


def main() -> None:
    try:
        answer = _compress(CompressionRequest.from_json(json.loads(Path(sys.argv[1]).read_text())))
    except FlatoutError as error:
        answer = {"error": str(error)}
    sys.stdout.write("\n" + json.dumps(answer) + "\n")


if __name__ == "__main__":
    main()
