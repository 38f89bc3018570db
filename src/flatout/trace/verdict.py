"""Host-bound or device-bound, in one sentence with its numbers, and which host delays the others."""

from __future__ import annotations

from statistics import median

from flatout.model.case import Device, Evidence, Host, Steps
from flatout.model.evidence.devices import (
    Collective,
    CopyNotOverlapped,
    CopyTime,
    DeviceBusy,
    DeviceIdle,
    MatrixPrecision,
    StepTime,
    Straggler,
    TensorCoreShare,
)

DEVICE_BOUND = 0.85
"""From this busy share on, a faster host could win at most the remaining 15 %."""
HOST_BOUND = 0.60
"""Below this, the device waits so long that its own speed is not the limit."""
STRAGGLER = 1.10
"""A host that takes this much longer than the median of the others is named."""


def verdict_of(devices: tuple[Device, ...], steps: Steps | None, hosts: tuple[Host, ...]) -> str:
    accelerators = [device for device in devices if device.kind != "cpu"]
    working = [device for device in accelerators if device.busy_ms > 0]
    every = f", {steps.ms.median:.3g} ms a step" if steps else ""
    if not accelerators:
        if not devices or not devices[0].busy_ms:
            return "No verdict: the trace has no ops and no accelerator."
        cpu = devices[0]
        return (
            f"On the CPU only: ops ran in {cpu.busy_share:.0%} of {cpu.window_ms:.4g} ms{every}, "
            f"on {cpu.detail.mean_parallel_ops or 0:.1f} threads at a time."
        )
    if not working:
        names = ", ".join(device.name for device in accelerators)
        return f"Host-bound: {names} executed nothing while the trace ran."
    share = median(device.busy_share for device in working)
    who = _who(working)
    window = max(device.window_ms for device in working)
    waiting = _straggler_clause(hosts)
    communication = sum(device.detail.collective_ms or 0 for device in working)
    if communication > 0.3 * sum(device.busy_ms for device in working):
        part = communication / sum(device.busy_ms for device in working)
        return (
            f"Communication-bound: {who} spent {part:.0%} of their busy time in collectives "
            f"({share:.0%} busy over {window:.4g} ms{every}){waiting}."
        )
    if share >= DEVICE_BOUND:
        return f"Device-bound: {who} busy {share:.0%} of {window:.4g} ms{every}{_how(working)}{waiting}."
    if share <= HOST_BOUND:
        return (
            f"Host-bound: {who} busy only {share:.0%} of {window:.4g} ms{every}; "
            f"the other {1 - share:.0%} it waited for the host{waiting}."
        )
    return (
        f"Mostly device-bound: {who} busy {share:.0%} of {window:.4g} ms{every}; "
        f"up to {1 - share:.0%} could be won on the host{waiting}."
    )


def _who(devices: list[Device]) -> str:
    model = devices[0].model
    if len(devices) == 1:
        return f"{devices[0].name} ({model}) was" if model else f"{devices[0].name} was"
    kind = devices[0].kind.upper()
    return f"{len(devices)} {kind}s ({model}) were" if model else f"{len(devices)} {kind}s were"


def _how(devices: list[Device]) -> str:
    first = devices[0]
    if first.tensor_core_share is None or not first.precision:
        return ""
    return f"; {first.tensor_core_share:.0%} of kernel time on tensor cores, in {first.precision}"


def _straggler_clause(hosts: tuple[Host, ...]) -> str:
    slow = [host.name for host in hosts if host.straggler]
    return f"; {', '.join(slow)} holds the other hosts up" if slow else ""


def stragglers(
    measured: list[tuple[str, Steps | None, float | None]],
) -> tuple[tuple[Host, ...], tuple[Straggler, ...]]:
    """Compare hosts by their median step, and by the work in it.

    Where hosts wait for each other in every step, all have the same step time; the one that delays them is
    then the one whose devices compute longer than the others'.
    """
    entries: list[Host] = []
    evidence: list[Straggler] = []
    for index, (name, steps, work) in enumerate(measured):
        others = [item for position, item in enumerate(measured) if position != index]
        note = ""
        step_ms = steps.ms.median if steps else None
        other_steps = [item[1].ms.median for item in others if item[1]]
        other_work = [item[2] for item in others if item[2] is not None]
        if step_ms and other_steps and step_ms > STRAGGLER * median(other_steps):
            ratio = step_ms / median(other_steps)
            note = f"its steps take {ratio:.2f} times as long as on the other hosts"
            evidence.append(Straggler(ratio, source=name, note=note))
        elif work and other_work and median(other_work) > 0 and work > STRAGGLER * median(other_work):
            ratio = work / median(other_work)
            note = f"its devices compute {ratio:.2f} times as long per step as the others, which wait for it"
            evidence.append(Straggler(ratio, source=name, note=note))
        entries.append(Host(name, steps.count if steps else 0, step_ms, bool(note), note))
    return tuple(entries), tuple(evidence)


def observe(devices: tuple[Device, ...], steps: Steps | None, host: str) -> list[Evidence]:
    """The numbers about devices that findings are based on."""
    found: list[Evidence] = []
    for device in devices:
        source = f"{host} {device.name}"
        found.append(
            DeviceBusy(
                device.busy_share, device.busy_ms, device.window_ms, device.kind, source=source,
                note=f"{device.name} busy {device.busy_ms:.4g} of {device.window_ms:.4g} ms",
            )
        )  # fmt: skip
        if device.kind == "cpu":
            continue
        found.append(DeviceIdle(1 - device.busy_share, source=source))
        if device.tensor_core_share is not None:
            found.append(TensorCoreShare(device.tensor_core_share, source=source))
        if device.precision:
            found.append(
                MatrixPrecision(device.precision, source=source, note=_precision_note(device),
                                other=dict(device.detail.precision_shares or {}))
            )  # fmt: skip
        for copy in device.copies:
            found.append(
                CopyTime(copy.ms, copy.count, copy.bytes, source=source, note=copy.kind)
            )  # fmt: skip
        if device.detail.copy_only_ms:
            found.append(CopyNotOverlapped(device.detail.copy_only_ms, source=source))
        if device.detail.collective_ms:
            found.append(Collective(device.detail.collective_ms, source=source))
    if steps:
        found.append(
            StepTime(steps.ms.median, steps.count, steps.ms.p10, steps.ms.p90, source=host, note=steps.found_by)
        )  # fmt: skip
    return found


def _precision_note(device: Device) -> str:
    share = (device.detail.precision_shares or {}).get(device.precision, 0.0)
    if device.precision == "TF32":
        return f"fp32 tensors, but {share:.0%} of the matrix arithmetic ran in TF32 on tensor cores"
    if device.precision == "fp32":
        return f"{share:.0%} of the matrix arithmetic ran in full fp32, without tensor cores"
    return f"{share:.0%} of the matrix arithmetic ran in {device.precision}"
