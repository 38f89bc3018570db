"""The conversion of a pipeline, which gives its elements one after the other and no other way.

The pipeline runs in a child with TensorFlow (`stream_main.py`), which writes the shards as their elements come. How
many there will be is known at the end only, so they take their names then, one right after the other. After a kill the
pipeline starts from its beginning, as it has no place to go on from. One that is seeded gives the same bytes again.
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

from flatout.data.shards import containers, place, plan, reader, schema
from flatout.data.shards.convert import Outcome, Wishes, writable
from flatout.data.shards.progress import Progress
from flatout.data.shards.schema import Feature, Shard, Skipped
from flatout.data.shards.shard import sync
from flatout.model.errors import DataUnusable, InvalidOption, ProcessFailed


def convert(given: str, destination: Path, wishes: Wishes, runner: str | None = None) -> Outcome:
    """`given` is `module:function` or `file.py:function`."""
    _expect_possible(wishes, runner)
    suffix = containers.suffix(wishes.format, wishes.compression)
    name = plan.set_name(wishes.name, given)
    there = place.Place(destination, name)
    cap = wishes.shard_size or plan.CAP
    fingerprint = hashlib.sha256(repr((given, name, suffix, cap)).encode()).hexdigest()
    with writable(there), there.held():
        if there.begin(fingerprint, wishes.force):
            there.leave()
            return Outcome(schema.load(there.schema), there.schema, complete_before=True)
        there.clear()  # what an earlier run has left under a final name is one of another number
        there.begin(fingerprint, force=False)
        progress = Progress("converting", None, None, wishes.quiet)
        try:
            done = _run(given, there, name, wishes, cap, progress)
        except BaseException:
            there.leave()  # there is nothing to go on with
            raise
        finally:
            progress.end()
        complete = _named(done, there, name, suffix, wishes, fingerprint)
        there.finish(complete, reader.write(complete))
    return Outcome(complete, there.schema, progress.seconds)


def _expect_possible(wishes: Wishes, runner: str | None) -> None:
    if wishes.shuffle is not None:
        raise InvalidOption(
            "A pipeline has no order that could be changed beforehand. Shuffle in the pipeline itself: "
            "`.shuffle(buffer_size, seed=…)`."
        )
    if runner is not None:
        raise InvalidOption("A pipeline runs in one process; --runner is for files, tables and arrays.")


def _run(given: str, there: place.Place, name: str, wishes: Wishes, cap: int, progress: Progress) -> dict[str, Any]:
    reading, writing = os.pipe()
    asked = {
        "target": given,
        "working": str(there.working.absolute()),
        "format": wishes.format,
        "compression": wishes.compression,
        "cap": cap,
        "skip": wishes.skip,
        "answer": writing,
    }
    command = [sys.executable, "-m", "flatout.data.shards.stream_main", json.dumps(asked)]
    variables = {"TF_CPP_MIN_LOG_LEVEL": "2", **os.environ}
    # What the user's code prints is no output of ours.
    child = subprocess.Popen(command, env=variables, pass_fds=(writing,), stdin=subprocess.DEVNULL, stdout=sys.stderr)
    os.close(writing)
    try:
        with open(reading, encoding="utf-8") as answers:
            for line in answers:
                word, content = json.loads(line)
                if word == "progress":
                    progress.tell(*content)
                elif word == "full":
                    raise OSError(*content)
                elif word == "failed":
                    raise DataUnusable(content)
                else:
                    return dict(content)
        raise ProcessFailed(
            f"The pipeline did not come to its end: its process {_ended(child)}. Nothing was kept of it."
        )
    finally:
        if child.poll() is None:
            child.kill()
        child.wait()


def _ended(child: subprocess.Popen[bytes]) -> str:
    code = child.wait()
    return f"was ended by {signal.Signals(-code).name}" if code < 0 else f"ended with exit code {code}"


def _named(
    done: dict[str, Any], there: place.Place, name: str, suffix: str, wishes: Wishes, fingerprint: str
) -> schema.Schema:
    """Give the shards their names, now that their number is known."""
    shards = []
    for number, written in enumerate(done["shards"]):
        file = plan.shard_name(name, number, len(done["shards"]), suffix)
        os.replace(there.working / written["file"], there.directory / file)
        shards.append(Shard(**{**written, "file": file}))
    sync(there.directory)
    return schema.Schema(
        name=name,
        source="pipeline",
        format=wishes.format,
        compression=wishes.compression,
        elements=sum(one.elements for one in shards),
        digest=done["digest"],
        features=tuple(Feature(**{**one, "shape": tuple(one["shape"])}) for one in done["features"]),
        shards=tuple(shards),
        skipped=tuple(Skipped(**one) for one in done["skipped"]),
        structure=done["structure"],
        fingerprint=fingerprint,
    )
