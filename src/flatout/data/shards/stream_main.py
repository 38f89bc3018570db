"""The child of `stream.py`: runs the user's pipeline and writes its elements as they come.

It answers through a pipe, in lines of JSON: its progress, what went wrong, what was written.
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

from flatout.data.shards import elements, example, formats, shard
from flatout.data.shards.convert import DISK_FULL
from flatout.data.shards.schema import Skipped
from flatout.data.shards.tfrecord import FRAME
from flatout.model.errors import FlatoutError, Internal

MAX_ERRORS_IN_A_ROW = 1000
"""After this many errors without an element between them, the pipeline is broken, not an element."""


class Failed(Internal):
    """An error that the user sees without a traceback."""


def main(request: dict[str, Any]) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent ends it
    with open(request["answer"], "w", encoding="utf-8", buffering=1) as answer:

        def say(word: str, content: Any) -> None:
            if word != "progress":  # the parent may end this process as soon as it has read the answer
                sys.stdout.flush()
                sys.stderr.flush()
            answer.write(json.dumps([word, content]) + "\n")

        try:
            say("done", _convert(request, say))
        except (Failed, FlatoutError) as error:
            say("failed", str(error))
        except BrokenPipeError:
            os._exit(1)  # the parent is gone; an orderly exit would wait for TensorFlow's pipeline
        except OSError as error:
            if error.errno not in DISK_FULL:
                raise
            say("full", [error.errno, error.strerror])


def _convert(request: dict[str, Any], say: Any) -> dict[str, Any]:
    dataset = make_dataset(request["target"])
    layout = elements.Layout(dataset)
    skipped: list[Skipped] = []
    records = _reporting(_records(dataset, layout, request["skip"], skipped), say)
    written = list(_write_shards(records, request))
    if not written:
        raise Failed(f"{request['target']} yields no element, so there is nothing to write.")
    return {
        "shards": [dataclasses.asdict(one.shard) for one in written],
        "digest": f"{sum(one.digest for one in written) % 2**64:016x}",
        "features": [dataclasses.asdict(one) for one in layout.features],
        "structure": layout.structure,
        "skipped": [dataclasses.asdict(one) for one in skipped],
    }


def make_dataset(target: str, endless: bool = False) -> Any:
    """The dataset that the user's function returns. An infinite one is an error, unless `endless`."""
    import tensorflow as tf

    from flatout.data import target_main

    name, _, function = target.rpartition(":")
    if not name or not function:
        raise Failed(f"{target!r} names no function. Give module:function or file.py:function.")
    sys.path.insert(0, os.getcwd())
    try:
        value: Any = target_main.load(name)
    except ModuleNotFoundError as error:
        raise Failed(
            f"There is no module {name!r} ({error}). Name one that Python finds from the working directory."
        ) from None
    except SystemExit as error:  # no such file
        raise Failed(str(error)) from None
    except Exception as error:  # whatever the user's module raises
        raise Failed(f"{name} cannot be imported: {type(error).__name__}: {error}.") from None
    for part in function.split("."):
        if not hasattr(value, part):
            raise Failed(f"{name} has no {function}. Name a function in it that returns a tf.data.Dataset.")
        value = getattr(value, part)
    found = target_main.datasets_in(value() if callable(value) and not isinstance(value, tf.data.Dataset) else value)
    if len(found) != 1:
        raise Failed(f"{target} returns {len(found)} datasets; one was expected. Name a function that returns one.")
    if not endless and int(found[0].cardinality()) == tf.data.INFINITE_CARDINALITY:
        raise Failed(f"The pipeline of {target} has no end. Remove its `repeat()`, or add `take(count)`.")
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
            if not skip or in_a_row > MAX_ERRORS_IN_A_ROW:
                raise Failed(
                    f"Element {number} of the pipeline failed: {reason}. Fix it, or leave such elements out with "
                    "`--on-error skip`."
                ) from None
            skipped.append(Skipped(f"element {number}", reason))
        else:
            in_a_row = 0
            record = example.encode(layout.values(element))
            if len(record) <= shard.MAX_RECORD_BYTES:
                yield record
            elif skip:
                skipped.append(Skipped(f"element {number}", shard.TOO_LARGE))
            else:
                raise Failed(
                    f"Element {number} of the pipeline cannot be written: {shard.TOO_LARGE}. Divide it, or leave such "
                    "elements out with `--on-error skip`."
                )
        number += 1


def _reporting(records: Iterator[bytes], say: Any) -> Iterator[bytes]:
    count = size = 0
    last = time.monotonic()
    for record in records:
        yield record
        count, size = count + 1, size + len(record)
        if time.monotonic() - last > shard.REPORT_SECONDS:
            say("progress", [count, size])
            count, size, last = 0, 0, time.monotonic()


def _write_shards(records: Iterator[bytes], request: dict[str, Any]) -> Iterator[shard.Written]:
    """Write one file after the other, each up to the size limit."""
    record = next(records, None)
    number = 0
    while record is not None:
        path = os.path.join(request["working"], f"stream-{number:05d}.part")
        with open(path, "w+b", buffering=1 << 20) as stream:
            writer = formats.FORMATS[request["format"]].Writer(stream, request["compression"])
            count = digest = size = 0
            while record is not None and (not count or size + len(record) + FRAME <= request["cap"]):
                writer.write(record)
                count, size = count + 1, size + len(record) + FRAME
                digest = (digest + shard.digest_of(record)) % 2**64
                record = next(records, None)
            writer.close()
            yield shard.seal(stream, os.path.basename(path), count, digest)
        number += 1


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
