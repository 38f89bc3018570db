"""The devices over the trace window: how busy, at what precision, and the hosts of a cluster."""

from __future__ import annotations

from collections.abc import Callable

from flatout.model.case import Device
from flatout.model.codec import to_plain
from flatout.report.html.markup import Html, join, tag
from flatout.report.html.material import Material
from flatout.report.html.parts import bar, chip, device_name, facts, subheading
from flatout.report.html.tables import Cell, Column, Row, table
from flatout.report.terminal.text import clean, duration, number, quantity, share, size

TITLE = "Devices"
MOST = 64
_SPECIAL: dict[str, Callable[[float], str]] = {
    "memory_bandwidth": lambda value: f"{value / 1e9:,.0f} GB/s",
    "memory_size": size,
    "clock_rate": lambda value: f"{value / 1e6:.2f} GHz",
}
"""Facts of a device that its profiler gives in units of its own."""


def has_data(material: Material) -> bool:
    return bool(material.case.devices or material.case.hosts)


def write(material: Material) -> Html:
    case = material.case
    return join(
        tag("div", [_device(device) for device in case.devices[:MOST]], class_="devices"),
        _hosts(material) if case.hosts else None,
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


def _hosts(material: Material) -> Html:
    rows: list[Row] = [
        [
            [host.name, " ", chip("straggler", "warning") if host.straggler else None],
            Cell(number(host.steps), host.steps),
            Cell(duration(host.step_ms), host.step_ms or 0.0),
            host.note,
        ]
        for host in material.case.hosts
    ]
    columns = [Column("host", wide=True), Column("steps", True), Column("step", True), Column("note", minor=True)]
    return table(columns, rows, "Hosts", find="hosts")
