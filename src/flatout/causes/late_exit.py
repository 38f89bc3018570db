"""The process goes on for a good part of the run after the program's last line.

## What it is
At the end Python waits for threads that are not daemons, calls what was registered with `atexit`, and frees objects.
Only then does the process end.

## Why it costs
The next job waits, and the machine is paid for. A pool that nobody has closed, a logger that uploads at exit, or a
queue that nobody empties may hold a process for minutes, or for good.

## How it looks
```python
worker = threading.Thread(target=copy_logs)     # not a daemon: Python waits for it
worker.start()
model.fit(dataset, epochs=3)
```

## The cure
```python
worker = threading.Thread(target=copy_logs, daemon=True)
worker.start()
model.fit(dataset, epochs=3)
worker.join(timeout=5)
```
Close pools and loggers where their work is done; let what is left run as a daemon where its work may be lost.

## When it is not worth it
When the work at the end has to be done, and nothing is left to do beside it.
"""

from __future__ import annotations

from collections.abc import Iterator

from flatout.causes._run_parts import busiest, most_of, of_run, seconds, spot
from flatout.causes._spec import Cause
from flatout.model.case import Case, Finding, Fix, RunPart

OF_RUN = 0.1
LEAST_SECONDS = 1.0
"""In lines or in waiting for threads, which the program could leave."""
USUAL_SECONDS = 2.5
OF_IMPORTS = 0.6
"""TensorFlow itself takes up to about this long to let go of its threads and memory, more on a machine on which its
import took long, too."""


def in_run(case: Case) -> Iterator[Finding]:
    for part in case.run.of("exit") if case.run is not None else ():
        seen = sum(one.seconds for one in part.parts)
        imports = case.run.seconds_of("import") if case.run is not None else 0.0
        unseen = part.seconds - seen - max(USUAL_SECONDS, OF_IMPORTS * imports)
        if case.run is None or (seen < LEAST_SECONDS and unseen < OF_RUN * case.run.seconds):
            continue
        what, advice = _reason(part)
        yield from of_run(
            "late-exit",
            case,
            f"The process ended {seconds(part.seconds)} after the program's last line{what}.",
            seen + max(unseen, 0.0),
            busiest(part),
            [Fix(advice)],
        )


def _reason(part: RunPart) -> tuple[str, str]:
    line = busiest(part)
    if line is not None:
        most = most_of(part.lines()[0].seconds, part.seconds)
        return f", {most} at {spot(line)}", "Do this before the end of the program, beside training, or not at all."
    if any(one.name == "threading" and one.seconds >= 0.25 * part.seconds for one in part.parts):
        return ": it waited for a thread", "Make the thread a daemon, or tell it to end before the last line."
    return ", in freeing what it held", "Close sessions, pools and files where they are done with; end with os._exit."


CAUSE = Cause(group="run", in_run=in_run)
