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
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from flatout.errors import CompressionFailed, FlatoutError
from flatout.optimize.compress.stages import parse
from flatout.optimize.prepare.preparing import Request

CALIBRATION = 256


@dataclass(frozen=True)
class Wish:
    model: str
    stages: str
    train: str | None
    data: str | None
    output: str
    features: str | None = None
    trust: bool = False
    imports: tuple[str, ...] = ()
    checkpoint: str | None = None


@dataclass(frozen=True)
class Files:
    """What was written, and what the stages say of themselves."""

    paths: tuple[Path, ...] = ()
    told: tuple[str, ...] = ()
    missing: tuple[str, ...] = field(default_factory=tuple)


def compressed_files(request: Request, stages: str, train: str | None, quiet: bool) -> tuple[Path, ...]:
    """For the command: compress what it was asked to optimize; the files that can be raced."""
    parse(stages)
    place = Path(".flatout") / "compressed" / f"{Path(request.model).stem.replace(':', '-')}-{_name(stages)}"
    wish = Wish(
        request.model,
        stages,
        train,
        request.data,
        str(place),
        features=request.features,
        trust=request.trust,
        imports=request.imports,
        checkpoint=str(place / "checkpoints"),
    )
    files = compressed(wish)
    if not quiet:
        lines = [*files.told, *files.missing, f"kept in {place}"]
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
    import numpy as np

    from flatout.optimize.compress import checks
    from flatout.optimize.compress.stages import Means, apply
    from flatout.optimize.prepare import data, original

    stages = parse(wish.stages)
    for name in wish.imports:
        original.imported(name)
    model = _opened(wish)
    train = original.named(wish.train) if wish.train else None
    if wish.data is not None:
        gathered = data.gather(wish.data, None, wish.features, CALIBRATION)
        inputs = [np.asarray(array[:CALIBRATION]) for array in gathered.arrays.values()]
    elif any(name == "int8" for name, _ in stages):
        raise FlatoutError("int8 has to see real samples to find its ranges: give --data.")
    else:
        inputs = checks.samples(model, 32)
    means = Means(model, train, inputs, None if wish.checkpoint is None else Path(wish.checkpoint))
    results = apply(stages, means)
    paths, missing = _written(results[-1].model, stages[-1][0] == "int8", inputs, Path(wish.output), wish.stages)
    return {"paths": [str(path) for path in paths], "told": [str(result) for result in results], "missing": missing}


def _opened(wish: Wish) -> Any:
    from flatout.optimize.prepare import keras_models, original

    if Path(wish.model).is_file():
        return keras_models.load_file(Path(wish.model), wish.trust, bool(wish.imports))
    if ":" in wish.model:
        return original.named(wish.model)()
    raise FlatoutError(f"--compress needs a Keras model: a .keras file or module:function, not {wish.model}.")


def _written(model: Any, int8: bool, inputs: list[Any], output: Path, stages: str) -> tuple[list[Path], list[str]]:
    from flatout.optimize.compress import floats, litert, onnx_qdq

    output.mkdir(parents=True, exist_ok=True)
    name = _name(stages)
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


def _name(stages: str) -> str:
    return stages.replace("=", "-").replace(",", "-").replace(" ", "")


def main() -> None:
    wish = json.loads(Path(sys.argv[1]).read_text())
    try:
        answer = _work(Wish(**wish | {"imports": tuple(wish["imports"])}))
    except FlatoutError as error:
        answer = {"error": str(error)}
    sys.stdout.write("\n" + json.dumps(answer) + "\n")


if __name__ == "__main__":
    main()
