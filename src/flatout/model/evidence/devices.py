"""What a trace shows of devices, hosts and their threads. The source is the host or the device."""

from __future__ import annotations

from dataclasses import field

from flatout.model.codec import named
from flatout.model.evidence.base import Evidence
from flatout.model.record import record


@record(frozen=True)
class DeviceBusy(Evidence, kind="device-busy", value="share", unit="share"):
    share: float
    busy_ms: float
    window_ms: float
    device: str = field(default="", metadata=named("kind"))
    """cpu, gpu or tpu."""


@record(frozen=True)
class DeviceIdle(Evidence, kind="device-idle", value="share", unit="share"):
    share: float


@record(frozen=True)
class TensorCoreShare(Evidence, kind="tensor-core-share", value="share", unit="share"):
    """Of the time in kernels."""

    share: float


@record(frozen=True)
class MatrixPrecision(Evidence, kind="precision", value="most"):
    """The precision of most matrix arithmetic; the data are the shares of time by precision."""

    most: str


@record(frozen=True)
class CopyTime(Evidence, kind="copy", value="ms", unit="ms"):
    """Copies of one kind, which is the note."""

    ms: float
    count: int
    bytes: int


@record(frozen=True)
class CopyNotOverlapped(Evidence, kind="copy-not-overlapped", value="ms", unit="ms"):
    ms: float


@record(frozen=True)
class Collective(Evidence, kind="collective", value="ms", unit="ms"):
    """Time in collectives, such as an all-reduce."""

    ms: float


@record(frozen=True)
class StepTime(Evidence, kind="step-time", value="median_ms", unit="ms"):
    median_ms: float
    count: int
    p10: float
    p90: float


@record(frozen=True)
class HostThread(Evidence, kind="host-thread", value="busy_ms", unit="ms"):
    """One thread, whose name is the note."""

    busy_ms: float
    events: int
    busy_share: float


@record(frozen=True)
class HostWhileDeviceIdle(Evidence, kind="host-while-device-idle", value="share", unit="share"):
    """Share of the device's idle time in which a host event, which is the note, was running."""

    share: float
    thread: str


@record(frozen=True)
class MemoryPeak(Evidence, kind="memory-peak", value="peak_bytes", unit="bytes"):
    """Of one more allocator, whose name is the note."""

    peak_bytes: int
    lifetime_peak_bytes: int = 0


@record(frozen=True)
class Straggler(Evidence, kind="straggler", value="ratio", unit="ratio"):
    """A host that holds the others up."""

    ratio: float
