"""What `flatout run` is asked to do."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class RunRequest:
    program: str
    arguments: tuple[str, ...] = ()
    module: bool = False
    """Whether `program` is a module, as with `python -m`."""
    trace: bool | None = None
    """Whether some steps are traced; None: yes, but for the ranks of a job, whom TensorFlow's profiler may abort."""
    window_start: int | None = None
    window_steps: int | None = None
    observe_for: float | None = None
    """Seconds to observe; then the program goes on by itself, and its case is made. None: to its end."""
    flame: bool = False
    nsys: bool = False
    levers: tuple[str, ...] = ()
    """To run with; `@tuned` stands for those that won the last tune of this program."""
    json: str | None = None
    view: str = "overview"
    quiet: bool = False
    """Print the verdict only."""
    silent: bool = False
    """Print not even that: for a caller that gets the case."""
    job: str | None = None
    """The directory in which the ranks of a job meet."""
