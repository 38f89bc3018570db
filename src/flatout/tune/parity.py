"""Whether a contestant computes what the baseline computes: by what the race recorded, or by runs of both apart."""

from __future__ import annotations

import contextlib
import json
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, replace
from hashlib import blake2b
from pathlib import Path

from flatout.cures import find
from flatout.measure import parity
from flatout.model.levers import parse
from flatout.observe.levers import LeverReport, failed_levers, not_at_work
from flatout.trial.child_process import ChildProcess, Ended, Launch, Overdue
from flatout.tune.contestant import Contestant
from flatout.tune.starter import Starter

FILE = "numbers.npz"
LEVERS = "levers.json"
"""What the levers of such a run have changed."""
FOLLOWED = "followed.json"
"""How long such a run was followed, where it was not followed to its end."""
MUCH_LONGER = 1.5
"""Times as long as it was followed: it is worth another run."""
PINNED = "pinned"
"""Where the short runs are kept, beside those of the whole training."""
APART_SECONDS = 90.0
APART_STEPS = 40
ALL_STEPS = 1_000_000_000
FIRST_BLOCK = 64
BLOCKS = 10
"""Of a run that is followed for as long as time allows, at least."""
SEEDS = 6
"""Runs of each side, where random numbers cannot be pinned."""
MORE_SEEDS = 2
"""Of the program as it is, to see how many steps it makes by chance."""
SEEDS_SECONDS = 150.0
"""After so long no further pair of them is begun."""
AGREE = ("exact", "reassociated")
WAITS = parity.Parity("unknown", None, "several seeds are compared only where this is to be claimed")
"""The answer where only they would tell, and nobody needs to know yet."""


def compare(
    baselines: Sequence[Contestant],
    one: Contestant,
    starter: Starter,
    directory: Path,
    seconds: float = APART_SECONDS,
    *,
    over_seeds: bool = True,
) -> parity.Parity:
    """What the race recorded decides where it agrees, with losses from most of its steps. Otherwise both run once more
    with pinned random numbers: a traced step draws in another order, a compiler draws others, and both are right. What
    then is more than rounding, as it seems, is held against a second run of the baseline and one that begins some
    roundings apart. Several seeds of both are compared where that tells nothing: two runs of the baseline differ from
    the start, the contestant draws in other places, or rounding alone soon leads the program elsewhere.

    `directory`: where these runs are kept; a baseline is run once for all contestants. `seconds`: what each gets.
    `over_seeds`: whether several seeds are compared now where nothing else tells; else the answer is `WAITS`.
    """
    baseline, twin = (_load(other.directories) for other in baselines)
    trial = _load(one.directories)
    found = parity.Parity("unknown", None, "no numbers could be compared")
    seen = 0
    if baseline is not None and trial is not None:
        found = parity.compare(baseline, trial, twin)
        if found.verdict in AGREE and parity.shown(baseline, trial):
            return found
        seen = min(baseline.steps, trial.steps)
    launches = starter.launch_of(baselines[0]), starter.launch_of(one)
    apart = _Apart(directory / PINNED, starter, *launches, seconds=seconds, over_seeds=over_seeds)
    again = apart.compare(min(seen, APART_STEPS) // 2)
    if again is not None or found.verdict == "unknown":
        return found if again is None else again
    why = "a run with the same random numbers in both could not be made"
    return parity.Parity("unknown", found.deviation, f"{found.sentence}, and {why}")


def compare_whole(baseline: Launch, trial: Launch, starter: Starter, directory: Path, seconds: float) -> parity.Parity:
    """Both with pinned random numbers from their start to their end, or as far as they come in `seconds` each: every
    loss, every variable. What is more than a few roundings is held against what the program makes of rounding.

    `directory`: where these runs are kept; a baseline is run once for all that is compared with it there. Cells of a
    notebook that are kept run too."""
    launches = replace(baseline, kept=""), replace(trial, kept="")
    found = _Apart(directory, starter, *launches, ALL_STEPS, seconds).compare()
    return found or parity.Parity("unknown", None, "a run with pinned random numbers could not be made")


@dataclass(frozen=True)
class _Apart:
    """Runs of both sides that are only compared."""

    directory: Path
    starter: Starter
    baseline: Launch
    trial: Launch
    steps: int = APART_STEPS
    seconds: float = APART_SECONDS
    over_seeds: bool = True

    def compare(self, fewest: int = 0) -> parity.Parity | None:
        """None where a run came to fewer steps than that: it does not outweigh what the race has recorded."""
        base, trial = self.numbers((self.baseline, ""), (self.trial, ""))
        if base is None or trial is None or min(base.steps, trial.steps) < fewest:
            return None
        if lost := self._not_at_work():
            return parity.Parity("unknown", None, f"a run with pinned random numbers shows nothing: {lost}")
        found = parity.whole.compare(base, trial)
        if found.verdict in AGREE:
            return _pinned(found)
        alike: list[parity.Numbers | None] = []
        why = parity.spread.NOT_PINNED
        if not base.draws_elsewhere(trial):
            # More than rounding, as it seems. How far does this program deviate by chance, and by rounding alone?
            alike = twin, perturbed = self.numbers(
                (self.baseline, "twin"), (replace(self.baseline, perturbed=True), "")
            )
            chance = twin is not None and parity.whole.compare(base, twin).verdict == "failed"
            if not chance:
                found = parity.whole.compare(base, trial, twin, perturbed)
                if found.verdict != "unknown":
                    return _pinned(found)
                why = found.sentence
        elif parity.lacking.of(base, trial):
            # Both draw otherwise. Does the program as it is make another number of steps where it draws otherwise?
            seeds = (replace(self.baseline, seed=seed, perturbed=True) for seed in range(1, MORE_SEEDS + 1))
            alike = self.numbers(*((launch, "") for launch in seeds))
        if lacks := parity.lacking.of(base, trial, [one for one in alike if one is not None]):
            return parity.Parity("failed", None, lacks)  # several seeds are compared over their first steps alone
        if not self.over_seeds:
            return WAITS
        seconds = min(self.seconds, APART_SECONDS)
        steps = self._steps_of_seeds(base)
        where = self.directory.parent / (PINNED if steps == APART_STEPS else f"{PINNED}-{steps}")
        return parity.spread.compare(*replace(self, directory=where, steps=steps, seconds=seconds).seeds(), why)

    def _not_at_work(self) -> str:
        """Why the trial that was compared is the program as it is, as far as its levers say."""
        try:
            rows = json.loads((self.directory / key_of(self.trial) / LEVERS).read_text())
            reports = {name: LeverReport(**facts) for name, facts in rows.items()}
        except (OSError, ValueError, TypeError):
            return ""
        return failed_levers(reports) if self.trial.sources else not_at_work(reports)

    def _steps_of_seeds(self, base: parity.Numbers) -> int:
        """What keeps the first epoch shows itself in the second one."""
        fills = self.trial.fills_cache or any(find(parse(text)[0]).spec.fills for text in self.trial.levers)
        return APART_STEPS + (base.epochs[1] if fills and len(base.epochs) > 1 else 0)

    def seeds(self) -> tuple[list[parity.Numbers], list[parity.Numbers]]:
        """What both sides compute with several seeds. Each run begins some roundings apart as well: where a program
        seeds itself all of them would be the same, and a change as small as rounding makes would stand out.
        """
        end = time.monotonic() + SEEDS_SECONDS
        found: tuple[list[parity.Numbers], list[parity.Numbers]] = ([], [])
        pairs = [
            [replace(launch, seed=seed, perturbed=True, kept="") for launch in (self.baseline, self.trial)]
            for seed in range(1, SEEDS + 1)
        ]
        while pairs and time.monotonic() < end:
            # Two runs at a time: one of each side, or two with the change where those without it are known.
            known = all(_is_made(self.directory / key_of(baseline), self.seconds) for baseline, _ in pairs[:2])
            now, pairs = pairs[: 1 + known], pairs[1 + known :]
            runs = self.numbers(*((launch, "") for pair in now for launch in pair))
            for side, numbers in zip(found, (runs[::2], runs[1::2]), strict=True):
                side.extend(filter(None, numbers))
        return found

    def numbers(self, *wanted: tuple[Launch, str]) -> list[parity.Numbers | None]:
        """Of these runs, each with a mark that tells it from others of the same launch. They run side by side: nothing
        is timed."""
        directories = [self.directory / key_of(launch, mark) for launch, mark in wanted]
        missing = [
            (replace(launch, pinned=True), directory)
            for (launch, _), directory in zip(wanted, directories, strict=True)
            if not _is_made(directory, self.seconds)
        ]
        children: list[ChildProcess] = []
        try:
            for launch, directory in missing:
                for name in (FILE, LEVERS):  # of a run that was interrupted or is too short now
                    (directory / name).unlink(missing_ok=True)
                children.append(ChildProcess(launch, directory, self.starter.watchdog, self.starter.fork_servers))
            with ThreadPoolExecutor(max(len(children), 1)) as pool:
                complete = list(pool.map(self._run, children))
        finally:
            for child in children:
                child.end()
        for child, is_complete in zip(children, complete, strict=True):
            _write_followed(child.directory / FOLLOWED, None if is_complete else self.seconds)
            _write_levers(child.directory / LEVERS, child)
        return [_load([directory]) for directory in directories]

    def _run(self, child: ChildProcess) -> bool:
        """Whether it came to its end, or as far as it was to come."""
        try:
            child.warm(self.seconds)
            return self._follow(child)
        except Ended:
            return True
        except Overdue:
            return False

    def _follow(self, child: ChildProcess) -> bool:
        """Whether it made all of its steps, and not only as many as time allows. What was computed is written after
        each block: they are short against the time there is."""
        end, left = time.monotonic() + self.seconds, self.steps
        block = min(FIRST_BLOCK, left)
        while left > 0 and time.monotonic() < end:
            began = time.monotonic()
            child.go(block)
            child.block(end - began)
            left -= block
            if time.monotonic() - began < self.seconds / BLOCKS:
                block *= 2
            block = min(block, left)
        return left <= 0


def _is_made(directory: Path, seconds: float) -> bool:
    """Whether such a run has come as far as it comes in this time: one that was interrupted left what it had by then,
    and a tune that is resumed may have more time than the one before."""
    if not (directory / FILE).exists() or not (directory / LEVERS).exists():
        return False
    try:
        had = json.loads((directory / FOLLOWED).read_text())["seconds"]
    except (OSError, ValueError, KeyError, TypeError):
        return True
    return not isinstance(had, (int, float)) or seconds < MUCH_LONGER * had


def _write_followed(path: Path, seconds: float | None) -> None:
    with contextlib.suppress(OSError):
        path.write_text(json.dumps({"seconds": seconds}))


def _write_levers(path: Path, child: ChildProcess) -> None:
    with contextlib.suppress(OSError):
        path.write_text(json.dumps({name: asdict(report) for name, report in child.levers.items()}))


def key_of(launch: Launch, mark: str = "") -> str:
    """The same for the same run. Another edit of a file may be written to the same place."""
    digest = blake2b(f"{launch}{mark}".encode(), digest_size=8)
    for _, changed in launch.sources:
        digest.update(Path(changed).read_bytes())
    return digest.hexdigest()


def _pinned(found: parity.Parity) -> parity.Parity:
    """Says how it was compared."""
    if found.verdict == "unknown":
        return found
    return replace(found, sentence=f"with the same random numbers in both, {found.sentence}")


def _load(directories: Sequence[Path]) -> parity.Numbers | None:
    for directory in directories:
        if (directory / FILE).exists():
            return parity.Numbers.load(directory / FILE)
    return None
