"""Writes a compressed float model as a LiteRT or ONNX file, runs the file, and compares it with the model."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from flatout.model.errors import CompressionFailed, ToolMissing
from flatout.optimize.compress import checks, litert, onnx_qdq
from flatout.optimize.compress.litert import WrittenFile
from flatout.optimize.compress.quantize import Array


def write_litert(model: Any, path: str | os.PathLike[str], inputs: list[Array]) -> WrittenFile:
    target = Path(path)
    with litert.made_anew(target):
        with tempfile.TemporaryDirectory() as scratch:
            litert.save_model(model, Path(scratch) / "saved", None)
            command = [sys.executable, "-m", litert.__name__, str(Path(scratch) / "saved"), str(target), "float"]
            done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode or not target.exists():
            last = (done.stderr.strip().splitlines() or ["no message"])[-1]
            raise CompressionFailed(f"The LiteRT converter failed: {last[:500]}")
        found, int8 = litert.run_file(target, inputs)
        return _check_file(target, model, found, inputs, int8)


def write_onnx(model: Any, path: str | os.PathLike[str], inputs: list[Array]) -> WrittenFile:
    try:
        import onnx
    except ImportError as error:
        raise ToolMissing("onnx and tf2onnx are needed: pip install flatout[backends].") from error
    target = Path(path)
    with litert.made_anew(target):
        onnx.save(onnx_qdq.convert_model(model, None), str(target))
        return _check_file(target, model, onnx_qdq.open_with_onnxruntime(target)(inputs), inputs, 0)


def _check_file(path: Path, model: Any, found: list[Array], inputs: list[Array], int8: int) -> WrittenFile:
    expected = [part[: len(found[0])] for part in checks.outputs(model, inputs)]
    by_shape = sorted(found, key=lambda part: part.shape)
    check = checks.expect_equal(
        path.name, sorted(expected, key=lambda part: part.shape), by_shape, 10 * checks.rounding_tolerance(model)
    )
    return WrittenFile(path, path.stat().st_size, check.deviation, 1.0, int8)
