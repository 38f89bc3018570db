"""Whether a patched program computes what the original computes, from the start to the end, with pinned random numbers.

`python _public_numbers.py ORIGINAL PATCHED PROGRAM [ARGS…]`, in the working directory of the program: two checkouts and
the program's path in them. Prints `verdict: sentence`. Files that differ run in place of the original's.
"""

from __future__ import annotations

import sys
import tempfile
from dataclasses import replace
from pathlib import Path

from flatout.process.watchdog import Watchdog
from flatout.trial.child_process import Launch
from flatout.tune.parity import compare_whole
from flatout.tune.starter import Starter

SECONDS = 400.0
"""For each run. One that takes longer is compared as far as it came."""


def changed_files(original: Path, patched: Path) -> tuple[tuple[str, str], ...]:
    found = []
    for file in sorted(patched.rglob("*.py")):
        before = original / file.relative_to(patched)
        if before.is_file() and before.read_bytes() != file.read_bytes():
            found.append((str(before), str(file)))
    return tuple(found)


def main() -> None:
    original, patched = (Path(text).resolve() for text in sys.argv[1:3])
    launch = Launch((sys.executable, str(original / sys.argv[3]), *sys.argv[4:]))
    watchdog = Watchdog()
    try:
        with tempfile.TemporaryDirectory() as directory:
            changed = replace(launch, sources=changed_files(original, patched))
            starter = Starter(Path(directory), watchdog)
            found = compare_whole(launch, changed, starter, Path(directory) / "runs", SECONDS)
    finally:
        watchdog.close()
    print(f"{found.verdict}: {found.sentence}")


if __name__ == "__main__":
    main()
