"""Writes the artefact: the model files, a loader, samples for checks elsewhere, and a manifest.

manifest.json   route, versions, measurements, the files and their digests
load.py         `load(directory)` returns a function from arrays to arrays; needs the runtime and nothing of flatout
check.npz       samples with the original's answers and the artefact's, for `flatout verify`
"""

from __future__ import annotations

import hashlib
import json
import os
import platform
import shutil
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from flatout.environment import gather, packages
from flatout.environment.machine import cores
from flatout.model.case import Interval, Serving, to_plain
from flatout.model.errors import OutputNotWritable
from flatout.model.version import __version__
from flatout.optimize import loader_guard
from flatout.optimize.contestant import Contestant
from flatout.optimize.layouts import LAYOUTS
from flatout.routes._split import Split
from flatout.subject import Array, Subject, any_length

MANIFEST = loader_guard.MANIFEST
LOADER = "load.py"
CHECK = "check.npz"
SCHEMA = 1
KEPT_SAMPLES = 32
KEPT_BYTES = 8 << 20
PACKAGES = ("tensorflow", "tensorflow-cpu", "keras", "tf-keras", "numpy", "ai-edge-litert", "onnxruntime", "onnx",
            "tf2onnx", "openvino", "nncf", "tensorrt")  # fmt: skip


def output_directory(output: Path | None, directory: Path, force: bool) -> Path:
    """Where the artefact goes. Called before anything is run, so that a wrong --output fails early."""
    if output is None:
        return directory / "artefact"
    if output.exists() and any(output.iterdir() if output.is_dir() else [output]):
        if not force:
            raise OutputNotWritable(f"{output} already exists: give --force to overwrite it.")
        if not (output / MANIFEST).exists():
            raise OutputNotWritable(
                f"{output} is not an artefact of flatout and is not overwritten, not even with --force."
            )
    _require_writable(output)
    return output


def _require_writable(output: Path) -> None:
    """It is put together beside its place, and takes that place by a change of names."""
    parent = next(one for one in output.absolute().parents if one.exists())
    if not parent.is_dir() or not os.access(parent, os.W_OK | os.X_OK):
        raise OutputNotWritable(
            f"{output} cannot be written: nothing can be created in {parent}. Give another --output."
        )
    if os.path.ismount(output):
        raise OutputNotWritable(
            f"{output} is a mounted directory, which cannot be replaced: give --output {output / 'artefact'}."
        )


def unfinished(output: Path) -> Path:
    """Where the artefact is put together and tried. It takes its own name once it is whole: what stood there before is
    kept until then, and nothing half made is ever found under that name."""
    output = output.absolute()
    return output.with_name(f".{output.name}.unfinished")


def publish(output: Path) -> None:
    """Give the finished artefact its name, in place of an earlier one."""
    made, before = unfinished(output), output.with_name(f".{output.name}.before")
    if not output.exists():
        made.rename(output)
        return
    shutil.rmtree(before, ignore_errors=True)
    output.rename(before)
    try:
        made.rename(output)
    except OSError:
        before.rename(output)
        raise
    shutil.rmtree(before, ignore_errors=True)


def assemble(one: Contestant, subject: Subject, directory: Path, with_any_length: bool = True) -> None:
    """Copy the model files and write the loader. The manifest is written after both were tried.

    `with_any_length`: with the model itself for samples of other lengths, where it leaves some open.
    """
    if directory.exists():
        shutil.rmtree(directory)
    shutil.copytree(one.candidate.directory, directory)
    if with_any_length and (subject.directory / any_length.FOLDER).exists():
        shutil.copytree(subject.directory / any_length.FOLDER, directory / any_length.FOLDER)
    write_loader(one, subject, directory)


def write_loader(
    one: Contestant, subject: Subject, directory: Path, name: str = LOADER, sizes: Sequence[int] = ()
) -> None:
    """`sizes`: the numbers of samples at once that this loader takes; empty: those of the candidate."""
    candidate, route = one.candidate, one.candidate.route
    sizes = sizes or candidate.sizes
    added = loader_guard.guard(subject, candidate.finite_only, sizes, opens_later=route.opens_later)
    (directory / name).write_text(route.loader(one.setting, one.batch) + added, encoding="utf-8")


def write_check(subject: Subject, answers: list[Array], directory: Path) -> int:
    """Write some held-out samples with both answers. Returns how many fit."""
    samples, original = subject.samples("held_out"), subject.answers("held_out")
    sample_bytes = sum(array[:1].nbytes for array in (*samples, *original, *answers))
    count = max(1, min(KEPT_SAMPLES, len(answers[0]), KEPT_BYTES // max(sample_bytes, 1)))
    arrays: dict[str, Any] = {f"in{i}": array[:count] for i, array in enumerate(samples)}
    arrays |= {f"original{i}": array[:count] for i, array in enumerate(original)}
    arrays |= {f"answer{i}": array[:count] for i, array in enumerate(answers)}
    np.savez_compressed(directory / CHECK, **arrays)
    return count


def size(directory: Path) -> int:
    """Bytes of the files that serve: without loaders, samples of the check, and what is written for servers, which are
    the same files once more."""
    apart = {MANIFEST, CHECK, *LAYOUTS}
    files = (path for path in directory.rglob("*") if path.is_file())
    inside = ((path, path.relative_to(directory).parts) for path in files)
    return sum(
        path.stat().st_size
        for path, parts in inside
        if parts[0] not in apart and not (len(parts) == 1 and path.suffix == ".py")
    )


def checked_answers(directory: Path) -> list[Array]:
    """The artefact's own answers to the samples of its check."""
    with np.load(directory / CHECK, allow_pickle=False) as stored:
        return [stored[f"answer{i}"] for i in range(sum(name.startswith("answer") for name in stored.files))]


def write_manifest(
    directory: Path,
    one: Contestant,
    subject: Subject,
    serving: Serving,
    speedup: Interval | None,
    extra: Mapping[str, Any],
) -> None:
    """`extra`: further entries of the manifest."""
    route = one.candidate.route
    manifest = {
        "schema": SCHEMA,
        "flatout": __version__,
        "created": time.strftime("%Y-%m-%dT%H:%M:%S%z"),
        "route": route.name,
        "family": route.family,
        "format": route.format,
        "precision": serving.precision,
        "equivalence": one.candidate.equivalence,
        "setting": dict(one.setting),
        "batch": one.batch,
        "source": Path(subject.source).name if "/" in subject.source else subject.source,
        "parameters": _parameters(one, subject),
        "inputs": [to_plain(tensor) for tensor in subject.inputs],
        "outputs": [to_plain(tensor) for tensor in subject.outputs],
        "serving": to_plain(serving),
        "speedup_over_tf_function": None if speedup is None else to_plain(speedup),
        **extra,
        "versions": versions(),
        "machine": {"processor": gather.cpu()["model"] or platform.machine(), "cores": cores()},
        "files": {
            str(path.relative_to(directory)): digest(path) for path in sorted(directory.rglob("*")) if path.is_file()
        },
    }
    (directory / MANIFEST).write_text(json.dumps(manifest, indent=1, allow_nan=False), encoding="utf-8")


def _parameters(one: Contestant, subject: Subject) -> int:
    """The weights that the artefact has to contain: of a compressed form those that are left, not the original's."""
    if one.candidate.given is not None and one.candidate.contents is not None:
        return one.candidate.contents.weights
    return subject.core().parameters if isinstance(one.candidate.route, Split) else subject.parameters


def versions() -> dict[str, str]:
    return {"python": platform.python_version(), "platform": sys.platform, **packages.versions(PACKAGES)}


def digest(path: Path) -> str:
    total = hashlib.sha256()
    with open(path, "rb") as stream:
        while chunk := stream.read(1 << 20):
            total.update(chunk)
    return total.hexdigest()
