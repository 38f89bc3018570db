"""The devices during the trace window: how busy they were, their precision, and the hosts of a cluster."""

from __future__ import annotations

from collections.abc import Callable

from flatout.model.case import Device
from flatout.model.codec import to_plain
from flatout.report.formatting import clean, duration, number, quantity, share, size
from flatout.report.html.components import bar, chip, facts, subheading
from flatout.report.html.context import ReportContext
from flatout.report.html.markup import Html, join, tag
from flatout.report.html.tables import Cell, Column, Row, table
from flatout.report.labels import device_name

TITLE = "Devices"
MOST = 64
_SPECIAL: dict[str, Callable[[float], str]] = {
    "memory_bandwidth": lambda value: f"{value / 1e9:,.0f} GB/s",
    "memory_size": size,
    "clock_rate": lambda value: f"{value / 1e6:.2f} GHz",
}
"""Facts that the profiler gives in other units."""


def has_data(context: ReportContext) -> bool:
    return bool(context.case.devices or context.case.hosts)


def write(context: ReportContext) -> Html:
    case = context.case
    return join(
        tag("div", [_device(device) for device in case.devices[:MOST]], class_="devices"),
        _hosts(context) if case.hosts else None,
    )


def _device(device: Device) -> Html:
    return tag(
        "div",
        subheading(device_name(device.name), device.model or device.kind),
        tag("p", tag("b", share(device.busy_share)), " busy ", bar(device.busy_share, "good"), class_="busy"),
        facts(
            [
                ("busy", f"{duration(device.busy_ms)} of {duration(device.window_ms)}"),
                ("tensor cores", share(device.tensor_core_share) if device.tensor_core_share is not None else None),
                ("precision", device.precision),
                ("host", device.host),
                *((_words(key), _value(key, value)) for key, value in list(to_plain(device.detail).items())[:10]),
            ]
        ),
        class_="block",
    )


def _words(key: str) -> str:
    return clean(key, 40).removesuffix("_ms").replace("_", " ")


def _value(key: str, value: object) -> str | None:
    if isinstance(value, (dict, list)) or value is None:
        return None
    if key in _SPECIAL and isinstance(value, (int, float)):
        return _SPECIAL[key](value)
    return quantity(value, "ms" if key.endswith("_ms") else "")


def _hosts(context: ReportContext) -> Html:
    rows: list[Row] = [
        [
            [host.name, " ", chip("straggler", "warning") if host.straggler else None],
            Cell(number(host.steps), host.steps),
            Cell(duration(host.step_ms), host.step_ms or 0.0),
            host.note,
        ]
        for host in context.case.hosts
    ]
    columns = [Column("host", wide=True), Column("steps", True), Column("step", True), Column("note", minor=True)]
    return table(columns, rows, "Hosts", find="hosts")
