"""The devices: how busy each was, its kernels, the hosts of a cluster, and the environment."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from flatout.model.case import Case, Device
from flatout.model.codec import to_plain
from flatout.report.formatting import clean, duration, elide, number, quantity, share
from flatout.report.labels import device_name
from flatout.report.terminal.page import Column, Page

MOST = 15


def has_data(case: Case) -> bool:
    return bool(case.devices or case.hosts or case.environment)


def write(case: Case, page: Page, directory: Path | None) -> None:
    page.heading("Devices")
    if not case.devices:
        page.missing(
            "No device was traced in this case.",
            "Device activity comes from the trace window of `flatout run`, or from `flatout trace PATH`.",
        )
    for position, device in enumerate(case.devices):
        if position:
            page.gap()
        _device(device, page)
    if case.hosts:
        page.heading("Hosts")
        page.table(
            [Column("host", flexible=True), Column("steps", right=True), Column("step", right=True),
             Column("", drop=2), Column("note", flexible=True, drop=1)],
            [[host.name, number(host.steps), duration(host.step_ms),
              "straggler" if host.straggler else "", host.note]
             for host in case.hosts],
        )  # fmt: skip
    if case.environment:
        page.heading("Environment")
        rows = [[key, value] for key, value in _flat(case.environment)]
        page.table([Column("what", flexible=True), Column("value", flexible=True)], rows)


def _device(device: Device, page: Page) -> None:
    page.line((device_name(device.name), "bold"), f"   {clean(device.model, 60)}" if device.model else "")
    details = _flat(to_plain(device.detail))[:8]
    page.fields(
        [
            f"busy {duration(device.busy_ms)} of {duration(device.window_ms)} ({share(device.busy_share)})",
            "" if device.tensor_core_share is None else f"tensor cores {share(device.tensor_core_share)}",
            f"precision {clean(device.precision, 30)}" if device.precision else "",
            f"host {clean(device.host, 40)}" if device.host else "",
            *(f"{_words(key)} {elide(value, 40)}" for key, value in details),
        ]
    )
    if device.kernels:
        ranked = sorted(device.kernels, key=lambda kernel: -kernel.ms)
        page.table(
            [
                Column("time", right=True),
                Column("share", right=True),
                Column("count", right=True),
                Column("cores", drop=3),
                Column("precision", drop=4),
                Column("occupancy", right=True, drop=5),
                Column("kernel", flexible=True, middle=True),
                Column("operation", flexible=True, drop=2),
            ],
            [
                [duration(k.ms), share(k.share), number(k.count), "tensor" if k.tensor_core else "",
                 clean(k.precision, 12), "" if k.occupancy is None else share(k.occupancy), k.name, k.op]
                for k in ranked[:MOST]
            ],
        )  # fmt: skip
        if len(ranked) > MOST:
            page.line(f"and {len(ranked) - MOST:,} kernels more, {duration(sum(k.ms for k in ranked[MOST:]))}")


def _flat(data: dict[str, Any], prefix: str = "") -> list[tuple[str, str]]:
    """Nested settings as dotted names. Depth and number are bounded, as a case may come from anywhere."""
    rows: list[tuple[str, str]] = []
    for key, value in list(data.items())[:200]:
        name = f"{prefix}{clean(key, 60)}"
        if isinstance(value, dict) and value and prefix.count(".") < 4:
            rows += _flat(value, f"{name}.")
        else:
            rows.append((name, _value(key, value)))
    return rows


def _value(key: object, value: Any) -> str:
    if isinstance(value, list):
        return clean(", ".join(str(item) for item in value[:50]))
    if isinstance(value, float):
        return quantity(value, "ms" if str(key).endswith("_ms") else "")
    return "–" if value is None else clean(value)


def _words(key: str) -> str:
    return clean(key, 40).removesuffix("_ms").replace("_", " ")
