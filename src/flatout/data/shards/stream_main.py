"""The child of `stream.py`: runs the user's pipeline and writes its elements as they come.

What it has to say goes through a pipe of its own as lines of JSON: how far it is, what went wrong, what was written.
"""

from __future__ import annotations

import dataclasses
import json
import os
import signal
import sys
import time
from collections.abc import Iterator
from typing import Any

from flatout.data.shards import containers, elements, example, shard
from flatout.data.shards.convert import FULL
from flatout.data.shards.schema import Skipped
from flatout.data.shards.tfrecord import FRAME
from flatout.model.errors import FlatoutError, Internal

MOST_IN_A_ROW = 1000
"""Errors without an element between them after which it is the pipeline that is broken, not an element."""


class Failed(Internal):
    """What the user is told instead of a traceback."""


def main(asked: dict[str, Any]) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent ends it
    with open(asked["answer"], "w", encoding="utf-8", buffering=1) as answer:

        def say(word: str, content: Any) -> None:
            if word != "progress":  # the parent may end this process as soon as it has read the answer
                sys.stdout.flush()
                sys.stderr.flush()
            answer.write(json.dumps([word, content]) + "\n")

        try:
            say("done", _converted(asked, say))
        except (Failed, FlatoutError) as error:
            say("failed", str(error))
        except BrokenPipeError:
            os._exit(1)  # the parent is gone; TensorFlow would wait for the pipeline before it lets go
        except OSError as error:
            if error.errno not in FULL:
                raise
            say("full", [error.errno, error.strerror])


def _converted(asked: dict[str, Any], say: Any) -> dict[str, Any]:
    dataset = made(asked["target"])
    layout = elements.Layout(dataset)
    skipped: list[Skipped] = []
    records = _told(_records(dataset, layout, asked["skip"], skipped), say)
    written = list(_shards(records, asked))
    if not written:
        raise Failed(f"{asked['target']} gives no element, so there is nothing to write.")
    return {
        "shards": [dataclasses.asdict(one.shard) for one in written],
        "digest": f"{sum(one.digest for one in written) % 2**64:016x}",
        "features": [dataclasses.asdict(one) for one in layout.features],
        "structure": layout.structure,
        "skipped": [dataclasses.asdict(one) for one in skipped],
    }


def made(target: str, endless: bool = False) -> Any:
    """The dataset that the user's function makes; one without an end only where that is no harm."""
    import tensorflow as tf

    from flatout.data import target_main

    name, _, function = target.rpartition(":")
    sys.path.insert(0, os.getcwd())
    try:
        value: Any = target_main.load(name)
    except ModuleNotFoundError as error:
        raise Failed(f"There is no module {name!r} here ({error}). Name one that Python finds from here.") from None
    for part in function.split("."):
        if not hasattr(value, part):
            raise Failed(f"{name} has no {function}. Name a function of it that makes a tf.data.Dataset.")
        value = getattr(value, part)
    found = target_main.datasets_in(value() if callable(value) and not isinstance(value, tf.data.Dataset) else value)
    if len(found) != 1:
        raise Failed(f"{target} gives {len(found)} datasets where one was expected. Name a function that returns one.")
    if not endless and int(found[0].cardinality()) == tf.data.INFINITE_CARDINALITY:
        raise Failed(f"The pipeline of {target} has no end. Leave out its `repeat()`, or add `take(count)`.")
    return found[0]


def _records(dataset: Any, layout: elements.Layout, skip: bool, skipped: list[Skipped]) -> Iterator[bytes]:
    import tensorflow as tf

    iterator, number, in_a_row = iter(dataset), 0, 0
    while True:
        try:
            element = next(iterator)
        except StopIteration:
            return
        except tf.errors.OpError as error:
            reason = (error.message or type(error).__name__).strip().split("\n")[0][:500]
            in_a_row += 1
            if not skip or in_a_row > MOST_IN_A_ROW:
                raise Failed(
                    f"Element {number} of the pipeline failed: {reason}. Mend it, or leave such elements out with "
                    "`--on-error skip`."
                ) from None
            skipped.append(Skipped(f"element {number}", reason))
        else:
            in_a_row = 0
            yield example.encode(layout.values(element))
        number += 1


def _told(records: Iterator[bytes], say: Any) -> Iterator[bytes]:
    count = size = 0
    last = time.monotonic()
    for record in records:
        yield record
        count, size = count + 1, size + len(record)
        if time.monotonic() - last > shard.EVERY:
            say("progress", [count, size])
            count, size, last = 0, 0, time.monotonic()


def _shards(records: Iterator[bytes], asked: dict[str, Any]) -> Iterator[shard.Written]:
    """One file after the other, each up to the cap."""
    record = next(records, None)
    number = 0
    while record is not None:
        path = os.path.join(asked["working"], f"stream-{number:05d}.part")
        with open(path, "w+b", buffering=1 << 20) as stream:
            writer = containers.FORMATS[asked["format"]].Writer(stream, asked["compression"])
            count = digest = size = 0
            while record is not None and (not count or size + len(record) + FRAME <= asked["cap"]):
                writer.write(record)
                count, size = count + 1, size + len(record) + FRAME
                digest = (digest + shard.digest_of(record)) % 2**64
                record = next(records, None)
            writer.close()
            yield shard.sealed(stream, os.path.basename(path), count, digest)
        number += 1


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
