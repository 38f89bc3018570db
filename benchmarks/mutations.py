"""Corruptions planted in eight programs: which of them are taken for the same training? And is a right cure refused?

Each corruption is a lever (`mutation=NAME`, `tests/programs/mutations/`) that promises exact numbers. Program and
corrupted program run from start to end and are compared as `flatout tune` compares before it makes a claim
(`tune.parity.compare_whole`), without the race. One run of a program serves all its corruptions. The honest cures are
levers of flatout on the same programs. Bars: 95 % of the corruptions caught, no honest cure refused.

A corruption that changes nothing is none: the program prints a checksum of all that it has come to (`planted.finish`),
and where that is the one of the program as it is, the pair does not count. Nor does an honest cure that has found
nothing to change.

    python benchmarks/mutations.py [PROGRAM …] [--only TEXT] [--honest | --corrupt] [--part 1/4]
"""

from __future__ import annotations

import argparse
import ast
import os
import re
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
HOME = ROOT / "tests" / "programs" / "mutations"
os.environ["FLATOUT_PLUGINS"] = os.pathsep.join(
    filter(None, [str(HOME / "plugins"), os.environ.get("FLATOUT_PLUGINS", "")])
)
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

from flatout.measure.parity import Parity  # noqa: E402
from flatout.process import fork_server  # noqa: E402
from flatout.process.watchdog import Watchdog  # noqa: E402
from flatout.trial.child_process import Launch  # noqa: E402
from flatout.trial.fork_servers import ForkServers  # noqa: E402
from flatout.tune import parity  # noqa: E402
from flatout.tune.starter import Starter  # noqa: E402

SECONDS = 400.0
"""What one run may take."""
SAME = ("exact", "reassociated", "statistical")
"""What lets a trial be claimed that promises exact or reassociated numbers."""
CAUGHT = ("precision", "failed")
CACHE, SUMS = "mutation=right-cache", "mutation=right-other-order-of-sums"
HONEST = {
    "fit": ("placebo", "xla", "prefetch", "direct-fit", "threads=1", CACHE, SUMS),
    "tape": ("placebo", "function={train_step}", "function=parts", "traced-calls", "prefetch", CACHE, SUMS),
    "traced": ("placebo", "xla", "prefetch", "threads=1", CACHE, SUMS),
    "pipeline": ("placebo", "xla", "prefetch", "parallel-map", "threadpool=4", "threads=1", SUMS),
    "vae": ("placebo", "function={train_critic}", "function=parts", "prefetch", CACHE, SUMS),
    "session": ("placebo", "prepared-runs", "threads=1", "feed-once", "caller-thread", SUMS),
    "predict": ("placebo", "direct-predict", "xla", "prefetch", "threads=1", "vectorize-map", CACHE),
    "serve": ("placebo", "function={score}", "traced-calls", "prefetch", "parallel-map", "vectorize-map", CACHE),
}
"""`{name}` is the line of that function."""
WRONG = {"pipeline": ("cache",)}
"""Levers of flatout that would corrupt this very program, of which they cannot know: Python draws random numbers."""


Lever = tuple[str, bool]
"""As a user types it, and whether it is honest."""


@dataclass(frozen=True)
class Pair:
    program: str
    lever: str
    honest: bool
    parity: Parity
    seconds: float
    acts: bool = True
    """Whether it changes anything."""

    @property
    def right(self) -> bool:
        return self.parity.verdict in (SAME if self.honest else CAUGHT)

    @property
    def outcome(self) -> str:
        if not self.acts:
            return "idle"
        if self.honest:
            return "accepted" if self.right else "REFUSED"
        return "caught" if self.right else "MISSED"


def main() -> int:
    given = _arguments()
    found: list[Pair] = []
    for program in given.programs or sorted(HONEST):
        levers = chosen(program, given.only, corrupt=not given.honest, honest=not given.corrupt)
        for pair in compared(program, part_of(program, levers, given.part)):
            found.append(pair)
            text = f"{pair.parity.verdict}: {pair.parity.sentence}"
            print(f"{program:9s} {pair.lever:34s} {pair.outcome:9s} {pair.seconds:5.1f} s  {text[:240]}", flush=True)
    print()
    print(table(found))
    return 0 if all(pair.right or not pair.acts for pair in found) else 1


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("programs", nargs="*", choices=[*sorted(HONEST), []], metavar="PROGRAM")
    parser.add_argument("--only", default="", help="a regular expression that the lever has to match")
    parser.add_argument("--honest", action="store_true", help="only the honest cures")
    parser.add_argument("--corrupt", action="store_true", help="only the corruptions")
    parser.add_argument("--part", default="1/1", help="1/4: a quarter of the corruptions, others in each program")
    return parser.parse_args()


def chosen(program: str, only: str = "", *, corrupt: bool = True, honest: bool = True) -> list[Lever]:
    levers = [(f"mutation={name}", False) for name in corruptions(program)] if corrupt else []
    levers += [(text, False) for text in WRONG.get(program, ())] if corrupt else []
    levers += [(text, True) for text in honest_cures(program)] if honest else []
    return [(text, right) for text, right in levers if re.search(only, text)]


def part_of(program: str, levers: list[Lever], part: str) -> list[Lever]:
    """Of the corruptions those of this part, others in each program; all honest cures."""
    number, _, parts = part.partition("/")
    shift = sorted(HONEST).index(program) + int(number)
    return [lever for place, lever in enumerate(levers) if lever[1] or (place + shift) % int(parts or 1) == 0]


def compared(program: str, levers: list[Lever]) -> Iterator[Pair]:
    """The program against each of its corruptions and honest cures."""
    if not levers:
        return
    launch = Launch((sys.executable, str(HOME / f"{program}.py")))
    with tempfile.TemporaryDirectory() as name, _starter(launch, Path(name)) as starter:
        for text, right in levers:
            began = time.monotonic()
            trial = replace(launch, levers=(text,))
            result = parity.compare_whole(launch, trial, starter, Path(name) / "runs", SECONDS)
            acts = _acts(Path(name) / "runs", launch, trial, right)
            yield Pair(program, text, right, result, time.monotonic() - began, acts)


def _acts(runs: Path, launch: Launch, trial: Launch, honest: bool) -> bool:
    """A corruption: by what the program says it has come to. A cure: by what it says it has changed."""
    ours, theirs = (runs / parity.key_of(one) for one in (launch, trial))
    if honest:
        return '"changes": 0' not in _text(theirs / parity.LEVERS)
    known = _checksum(ours)
    return known is None or known != _checksum(theirs)


def _checksum(directory: Path) -> str | None:
    found = re.findall(r"^checksum (\d+)$", _text(directory / "output.txt"), re.MULTILINE)
    return found[-1] if found else None


def _text(path: Path) -> str:
    try:
        return path.read_text(errors="replace")
    except OSError:
        return ""


@contextmanager
def _starter(launch: Launch, directory: Path) -> Iterator[Starter]:
    watchdog = Watchdog()
    fork_server.IMPORT_SECONDS = SECONDS  # however busy the machine is
    fork_servers = ForkServers(launch.command, watchdog, directory)
    fork_servers.prepare(("tensorflow", "keras"), {})
    try:
        yield Starter(directory / "race", watchdog, fork_servers)
    finally:
        fork_servers.close()
        watchdog.close()


def corruptions(program: str) -> list[str]:
    """Those that the program looks for, itself, in what it calls of `planted.py`, or anywhere in `scoring.py`."""
    shared = {
        node.name: node
        for node in ast.walk(ast.parse((HOME / "planted.py").read_text()))
        if isinstance(node, ast.FunctionDef)
    }
    found: set[str] = set()
    waiting: list[ast.AST] = [ast.parse((HOME / f"{program}.py").read_text())]
    if any(isinstance(node, ast.Import) and node.names[0].name == "scoring" for node in ast.walk(waiting[0])):
        waiting.append(ast.parse((HOME / "scoring.py").read_text()))
    seen: set[str] = set()
    while waiting:
        for call in (node for node in ast.walk(waiting.pop()) if isinstance(node, ast.Call)):
            name = ast.unparse(call.func).rpartition(".")[2]
            if name == "on":
                found.update(one.value for one in call.args if isinstance(one, ast.Constant))
            elif name in shared and name not in seen and name not in ("apply",):
                seen.add(name)
                waiting.append(shared[name])
    return sorted(name for name in found if not name.startswith("right-"))


def honest_cures(program: str) -> list[str]:
    path = HOME / f"{program}.py"
    lines = {
        node.name: f"{path}:{node.lineno}"
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.FunctionDef)
    }
    return [re.sub(r"\{(\w+)\}", lambda match: lines[match[1]], text) for text in HONEST[program]]


def table(found: list[Pair]) -> str:
    """Corruptions by program, then the counts."""
    programs = sorted({pair.program for pair in found})
    rows = [f"{'':34s} {' '.join(f'{name:>9s}' for name in programs)}"]
    outcomes = {(_title(pair), pair.program): pair.outcome for pair in found}
    for title in sorted({title for title, _ in outcomes}):
        cells = (outcomes.get((title, name), "-") for name in programs)
        rows.append(f"{title:34s} {' '.join(f'{cell:>9s}' for cell in cells)}")
    for honest, what, good in ((False, "corruptions", "caught"), (True, "honest cures", "accepted")):
        pairs = [pair for pair in found if pair.honest == honest and pair.acts]
        right = sum(pair.right for pair in pairs)
        if pairs:
            kinds = len({_title(pair) for pair in pairs})
            share = f"{right / len(pairs):.1%}"
            rows.append(f"{right} of {len(pairs)} {good} ({share}); {kinds} {what} in {len(programs)} programs")
    return "\n".join(rows)


def _title(pair: Pair) -> str:
    return re.sub(r"^mutation=", "", re.sub(r"=/.*/", "=", pair.lever))


if __name__ == "__main__":
    sys.exit(main())
