"""The settings of the observer inside the program."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class ObserveSettings:
    trace: bool = True
    """Whether TensorFlow's profiler records some of the steps."""
    window_start: int | None = None
    """The step at which that begins; None: once the steps are steady."""
    window_steps: int | None = None
    """How many steps it records; None: some, for about a second."""
    sample: bool = True
    """Whether a thread samples the main thread's stack."""
    graphs: bool = True
    """Whether graphs are described: nobody reads those of a trial that is only timed."""
    nvtx: bool = False
    """Whether steps are marked for Nsight Systems."""
    seconds: float | None = None
    """How long the program is observed; then it goes on without. None: to its end."""
