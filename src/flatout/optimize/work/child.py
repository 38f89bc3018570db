"""The child's side: reads a task from a pipe, does it, answers on another. Run as a module by `Worker`.

Nothing of a task ends this loop but the death of the process: an exception is an answer. What a converter prints goes
to the log, never into the answers.
"""

from __future__ import annotations

import json
import os
import sys
import traceback
from typing import IO

from flatout.model.errors import FlatoutError, RouteNotNeeded
from flatout.optimize.work.tasks import Tasks

LONGEST = 600
"""Of a message: converters put whole graphs into theirs."""


def main(reading: int, writing: int) -> None:
    _offer_to_the_reaper()
    tasks = Tasks()
    with os.fdopen(reading, "r") as requests, os.fdopen(writing, "w") as answers:
        for line in requests:
            request = json.loads(line)
            try:
                answer = {"answer": getattr(tasks, request["task"])(**request["arguments"])}
            except FlatoutError as error:
                answer = {"error": str(error), "how": "needless" if isinstance(error, RouteNotNeeded) else "failed"}
            except (Exception, SystemExit) as error:
                traceback.print_exc()
                answer = {"error": shortened(error), "how": "failed"}
            _say(answers, answer)


def _say(answers: IO[str], answer: dict[str, object]) -> None:
    sys.stdout.flush()
    sys.stderr.flush()
    answers.write(json.dumps(answer) + "\n")
    answers.flush()


def shortened(error: BaseException) -> str:
    """The exception in one bounded line: its first lines say what, the rest is for the log."""
    words = " ".join(str(error).split())
    return f"{type(error).__name__}: {words[:LONGEST]}" if words else type(error).__name__


def _offer_to_the_reaper() -> None:
    """When memory runs out it is this process that should go, not flatout or something of the user's."""
    try:
        with open("/proc/self/oom_score_adj", "w") as stream:
            stream.write("1000")
    except OSError:
        return


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))
