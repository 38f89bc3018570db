"""Converts a pipeline, whose elements come one after the other and cannot be read by number.

The pipeline runs in a child with TensorFlow (`stream_main.py`), which writes the shards as their elements come. Their
number is known only at the end, so they are renamed then, one right after the other. After a kill the conversion starts
from the beginning, because a pipeline cannot be resumed. A seeded one gives the same bytes again.
"""

from __future__ import annotations

import hashlib
import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

from flatout.data.shards import formats, plan, reader, schema
from flatout.data.shards.convert import ConvertRequest, Outcome, explain_write_errors
from flatout.data.shards.destination import Destination
from flatout.data.shards.progress import Progress
from flatout.data.shards.schema import Feature, Shard, Skipped
from flatout.data.shards.shard import sync
from flatout.model.errors import DataUnusable, InvalidOption, ProcessFailed


def convert(target: str, directory: Path, request: ConvertRequest, runner: str | None = None) -> Outcome:
    """`target`: `module:function` or `file.py:function`."""
    _check_options(request, runner)
    suffix = formats.suffix(request.format, request.compression)
    name = plan.set_name(request.name, target)
    destination = Destination(directory, name)
    cap = request.shard_size or plan.SHARD_BYTES
    fingerprint = _fingerprint(target, name, suffix, cap)
    with explain_write_errors(destination), destination.lock():
        if destination.begin(fingerprint, request.force):
            destination.remove_working_directory()
            return Outcome(schema.load(destination.schema), destination.schema, complete_before=True)
        destination.clear()  # shards of an earlier run are numbered out of another total
        destination.begin(fingerprint, force=False)
        progress = Progress("converting", None, None, request.quiet)
        try:
            done = _run(target, destination, name, request, cap, progress)
        except BaseException:
            destination.remove_working_directory()  # destination is nothing to go on with
            raise
        finally:
            progress.end()
        complete = _rename_shards(done, destination, name, suffix, request, fingerprint)
        destination.finish(complete, reader.write(complete))
    return Outcome(complete, destination.schema, progress.seconds)


def _fingerprint(target: str, name: str, suffix: str, cap: int) -> str:
    """Changes with the file of the function, where the target names one. What it reads is not known."""
    digest = hashlib.sha256(repr((target, name, suffix, cap)).encode())
    file = Path(target.rpartition(":")[0])
    if file.suffix == ".py" and file.is_file():
        digest.update(file.read_bytes())
    return digest.hexdigest()


def _check_options(request: ConvertRequest, runner: str | None) -> None:
    if request.shuffle is not None:
        raise InvalidOption(
            "--shuffle does not work on a pipeline. Shuffle in the pipeline itself: `.shuffle(buffer_size, seed=…)`."
        )
    if runner is not None:
        raise InvalidOption("A pipeline runs in one process; --runner is for files, tables and arrays.")


def _run(
    target: str, destination: Destination, name: str, request: ConvertRequest, cap: int, progress: Progress
) -> dict[str, Any]:
    reading, writing = os.pipe()
    task = {
        "target": target,
        "working": str(destination.working.absolute()),
        "format": request.format,
        "compression": request.compression,
        "cap": cap,
        "skip": request.skip,
        "answer": writing,
    }
    command = [sys.executable, "-m", "flatout.data.shards.stream_main", json.dumps(task)]
    variables = {"TF_CPP_MIN_LOG_LEVEL": "2", **os.environ}
    # The output of the user's code is not output of flatout.
    child = subprocess.Popen(command, env=variables, pass_fds=(writing,), stdin=subprocess.DEVNULL, stdout=sys.stderr)
    os.close(writing)
    try:
        with open(reading, encoding="utf-8") as answers:
            for line in answers:
                word, content = json.loads(line)
                if word == "progress":
                    progress.report(*content)
                elif word == "full":
                    raise OSError(*content)
                elif word == "failed":
                    raise DataUnusable(content)
                else:
                    return dict(content)
        raise ProcessFailed(
            f"The process of the pipeline {_end_reason(child)} before its last element. Nothing was kept."
        )
    finally:
        if child.poll() is None:
            child.kill()
        child.wait()


def _end_reason(child: subprocess.Popen[bytes]) -> str:
    code = child.wait()
    return f"was ended by {signal.Signals(-code).name}" if code < 0 else f"ended with exit code {code}"


def _rename_shards(
    done: dict[str, Any], destination: Destination, name: str, suffix: str, request: ConvertRequest, fingerprint: str
) -> schema.Schema:
    """Give the shards their names, now that their number is known."""
    shards = []
    for number, written in enumerate(done["shards"]):
        file = plan.shard_name(name, number, len(done["shards"]), suffix)
        os.replace(destination.working / written["file"], destination.directory / file)
        shards.append(Shard(**{**written, "file": file}))
    sync(destination.directory)
    return schema.Schema(
        name=name,
        source="pipeline",
        format=request.format,
        compression=request.compression,
        elements=sum(one.elements for one in shards),
        digest=done["digest"],
        features=tuple(Feature(**{**one, "shape": tuple(one["shape"])}) for one in done["features"]),
        shards=tuple(shards),
        skipped=tuple(Skipped(**one) for one in done["skipped"]),
        structure=done["structure"],
        fingerprint=fingerprint,
    )
