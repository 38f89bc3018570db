"""Converts by a route, or takes what an earlier call converted from the same model.

The key is everything that the files depend on: what the model computes and its weights (`subject.graph_digest`), its
inputs and outputs, the calibration samples where they are used, the route, flatout's own code that converts, the
versions of the packages, the processor and the variables that TensorFlow and the runtimes read. Where one of them is
not known, such as the content of a table, nothing is kept.
"""

from __future__ import annotations

import functools
import hashlib
import importlib.metadata
import os
import platform
import sys
import time
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

from flatout.environment.machine import cpu_flags, has_gpu
from flatout.model.version import __version__
from flatout.routes._kept import Kept
from flatout.routes._route import Route
from flatout.subject import Subject

SCHEMA = 1
PACKAGES = (
    "tensorflow", "tensorflow-cpu", "tensorflow-intel", "tensorflow-cpu-aws", "tf-nightly", "tf-nightly-cpu", "keras",
    "tf-keras", "numpy", "protobuf", "flatbuffers", "ml-dtypes", "ai-edge-litert", "ai-edge-quantizer", "onnx",
    "onnxruntime", "onnxruntime-gpu", "tf2onnx", "openvino", "nncf", "scipy",
)  # fmt: skip
VARIABLES = ("TF_", "XLA_", "ONEDNN_", "DNNL_", "OPENVINO_", "OV_", "NNCF_", "ORT_")
WITHOUT_EFFECT = ("TF_CPP_",)
SAMPLES = ("calibration.npz", "calibration_out.npz")

store: Kept | None = None
"""Of this process; None: nothing is taken or kept."""


def convert(route: Route, subject: Subject, directory: Path) -> None:
    """Write the route's artefact into this empty directory."""
    if route.keeps_conversion and _is_ours(route):
        kept(route.name, subject, directory, lambda: route.convert(subject, directory), route.needs_data)
    else:
        route.convert(subject, directory)


def kept(what: str, subject: Subject, directory: Path, make: Callable[[], None], with_samples: bool = False) -> None:
    """Take the files that `make` would write into the directory from an earlier call, or make and keep them."""
    key = None if store is None else key_of(what, subject, with_samples)
    if store is not None and key is not None and store.take(key, directory):
        return
    began = time.monotonic()
    make()
    if store is not None and key is not None:
        store.put(key, directory, time.monotonic() - began)


def key_of(what: str, subject: Subject, with_samples: bool) -> dict[str, Any] | None:
    """What the files depend on; None where it is not known."""
    if set(subject.digests) != set(subject.flavours) or not all(subject.digests.values()):
        return None
    return {
        "schema": SCHEMA,
        "what": what,
        "model": dict(subject.digests),
        "inputs": [asdict(one) for one in subject.inputs],
        "outputs": [asdict(one) for one in subject.outputs],
        "batches": subject.batches,
        "batching": subject.batching,
        "samples": [_digest((subject.directory / name).read_bytes()) for name in SAMPLES] if with_samples else [],
        "code": _code(),
        "packages": _packages(),
        "machine": [platform.machine(), has_gpu(), _digest(" ".join(sorted(cpu_flags())).encode())],
        "variables": _variables(),
    }


def _variables() -> dict[str, str]:
    names = (one for one in os.environ if one.startswith(VARIABLES) and not one.startswith(WITHOUT_EFFECT))
    return {name: os.environ[name] for name in sorted(names)}


@functools.cache
def _packages() -> dict[str, str]:
    found = {"python": platform.python_version()}
    for name in PACKAGES:
        try:
            found[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
    return found


@functools.cache
def _code() -> str:
    """Of flatout's own code that takes part: a conversion of another version may have been mended since."""
    package = Path(__file__).parent
    made = hashlib.sha256(__version__.encode())
    for path in sorted([*package.rglob("*.py"), *package.parent.joinpath("subject").glob("*.py")]):
        made.update(path.relative_to(package.parent).as_posix().encode() + path.read_bytes())
    return made.hexdigest()


def _is_ours(route: Route) -> bool:
    """Whether its code is part of `_code`: a route of the user's own may read anything."""
    file = getattr(sys.modules.get(type(route).__module__), "__file__", None)
    return file is not None and Path(file).resolve().is_relative_to(Path(__file__).parent.resolve())


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()
