"""What a tune is asked to do."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from flatout.cures import find
from flatout.model.errors import InvalidOption
from flatout.model.levers import parse
from flatout.process.fence.means import NOTHING, Leave

ALLOWED = ("precision", "semantic")


@dataclass(frozen=True)
class TuneRequest:
    program: str
    arguments: tuple[str, ...] = ()
    module: bool = False
    """Whether `program` is a module, as with `python -m`."""
    levers: tuple[str, ...] = ()
    """Only these; empty: all that fit the program."""
    without: tuple[str, ...] = ()
    allow: tuple[str, ...] = ()
    """Equivalences that may be combined although they change the numbers or the training."""
    budget: float | None = None
    """Seconds; None: what a program that starts like this one needs."""
    resume: bool = False
    json: str | None = None
    quiet: bool = False
    silent: bool = False
    """Print not even the verdict: for a caller that gets the case."""
    verbose: bool = False
    """Print every trial and every lever that was left out, not one screen."""
    patch: Path | None = None
    """Where to write the patch."""
    branch: str | None = None
    """A new branch of the git repository here, for the patch as one commit."""
    apply: bool = False
    """Edit the source in place."""
    prove: bool = False
    """Follow the last tune's claim over the whole training, in place of tuning."""
    on: str | None = None
    """The cluster whose nodes race levers, as `ray` or `ray:ADDRESS`; None: this machine does."""
    leave: Leave = NOTHING
    """What trials may do besides: write by ways that cannot be redirected, use the network."""

    def check(self) -> None:
        """Raises for names that do not exist, before anything is run."""
        for text in (*self.levers, *self.without):
            find(parse(text)[0])
        unknown = set(self.allow) - set(ALLOWED)
        if unknown:
            raise InvalidOption(f"--allow takes precision or semantic, not {', '.join(sorted(unknown))}.")
        if self.on is not None and self.on.partition(":")[0] != "ray":
            raise InvalidOption(f"--on takes ray, ray:local or ray:HOST:PORT, not {self.on!r}.")
