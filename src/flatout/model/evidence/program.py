"""What the program did once, and what it used of the machine."""

from __future__ import annotations

from dataclasses import field

from flatout.model.codec import LATER
from flatout.model.evidence.base import Evidence
from flatout.model.record import record


@record(frozen=True)
class Switch(Evidence, kind="switch", value="name"):
    """A function of TensorFlow or Keras was called that changes how everything runs."""

    name: str
    given: tuple[str, ...] = ()
    """The arguments, as text."""

    @property
    def is_off(self) -> bool:
        return "False" in self.given


@record(frozen=True)
class LegacyInput(Evidence, kind="legacy-input", value="name"):
    """An input of TF1 was used: a queue, a reader."""

    name: str


@record(frozen=True)
class ProgramError(Evidence, kind="exception", value="type"):
    """The exception that ended the program; its text is the note."""

    type: str


@record(frozen=True)
class ModelCompiled(Evidence, kind="compile"):
    """Keras `compile` was called with these arguments."""

    run_eagerly: bool | None = None
    steps_per_execution: int | str | None = None
    jit_compile: bool | str | None = None


MANY_EPOCHS = 20
"""Of one batch, from which on calling the step directly pays: tracing it takes as long as Keras needs for some."""
BATCH_METHODS = ("train_on_batch", "test_on_batch")
"""Methods of a Keras model for one batch that set its metrics back before it."""


@record(frozen=True)
class KerasCall(Evidence, kind="keras-call", value="method"):
    """`fit`, `predict`, `evaluate` or a method for one batch was called from one line."""

    method: str
    calls: int
    ms: float
    """Of all calls together."""
    batches: int
    batch_ms: float | None = None
    """Of one batch, without what surrounds it in a call."""
    single: int | None = None
    """Calls that asked for nothing but one batch of arrays: a call for a single batch can stand for them."""
    first_ms: float = field(default=0.0, metadata=LATER)
    """Of the first call, which traces; 0 where it was not kept."""
    values: int = field(default=0, metadata=LATER)
    """Numbers that each call of a method for one batch returns, in the order of its logs; 0 where that differs."""
    epochs: int = field(default=0, metadata=LATER)
    """That the calls for a single batch asked for, in all. A run that is cut short has seen fewer batches."""
    few: int = field(default=0, metadata=LATER)
    """Calls of `fit` for a few batches of arrays, in the order of their rows."""
    apart: int = field(default=0, metadata=LATER)
    """Calls that had callbacks, and else were for one batch."""
    outside: bool = field(default=False, metadata=LATER)
    """All of them were made before the first of the steps, or after the last."""

    @property
    def is_one_batch_again(self) -> bool:
        """Whether each call is a `fit` for many epochs of a single batch of arrays."""
        single = self.method == "fit" and self.single == self.calls
        return single and max(self.batches, self.epochs) >= MANY_EPOCHS * self.calls

    @property
    def per_call_ms(self) -> float:
        """Of a call that does not trace."""
        return (self.ms - self.first_ms) / max(self.calls - bool(self.first_ms), 1)


@record(frozen=True)
class RecurrentLayer(Evidence, kind="recurrent-layer", value="layer"):
    """A recurrent layer of Keras that was made on one line."""

    layer: str
    name: str = ""
    steps: int | None = None
    """Time steps of its longest sequences; None where they are not known, or where it cannot be unrolled."""
    unrolled: bool = False


@record(frozen=True)
class CpuUse(Evidence, kind="cpu-use", value="used", unit="cores"):
    """Cores that the process kept busy during the steady steps."""

    used: float
    cores: int
    """That it may use."""
    idle: float | None = None
    """Cores that nothing used."""


@record(frozen=True)
class MemoryGrowth(Evidence, kind="memory-growth", value="bytes_per_second", unit="bytes/s"):
    bytes_per_second: float


@record(frozen=True)
class ProcessMemory(Evidence, kind="process-memory", value="peak_bytes", unit="bytes"):
    peak_bytes: int


@record(frozen=True)
class UndisturbedMean(Evidence, kind="undisturbed-mean", value="ms", unit="ms"):
    """Mean of the steps during which nothing else had the processors, where something else had them now and then."""

    ms: float


@record(frozen=True)
class Yardstick(Evidence, kind="yardstick", value="median_us", unit="µs"):
    """The speed of the machine, second by second: the time that a fixed piece of work took."""

    median_us: float
    by: str = ""
    """What did the work: numpy and its version."""
    rows: tuple[tuple[float, float, float], ...] = ()
    """(step it began with, microseconds, error of that)."""


@record(frozen=True)
class Injected(Evidence, kind="injected", value="lever"):
    """The run had this lever."""

    lever: str


@record(frozen=True)
class LastSeen(Evidence, kind="last-seen", value="without_step", unit="s"):
    """Where the main thread was when it was last looked at, before the process ended."""

    without_step: float
    """From the end of the last step to the end of the process."""
    in_call: bool = False
    """Inside of a tf.function's call."""
