"""What a comparison of environments is asked to do."""

from __future__ import annotations

from dataclasses import dataclass

from flatout.process.fence.means import NOTHING, Leave


@dataclass(frozen=True)
class Subject:
    """The program, as it is started in every environment."""

    program: str
    arguments: tuple[str, ...] = ()
    module: bool = False
    """Whether `program` is a module, as with `python -m`."""
    leave: Leave = NOTHING
    """What its trials may do besides."""


@dataclass(frozen=True)
class CompareRequest:
    subject: Subject
    before: str
    """The environments as they were typed."""
    after: str
    budget: float = 300.0
    """Seconds, without the time that making the environments takes."""
    quiet: bool = False
