"""Operations per device, ops that fell back to another device, and copies between devices."""

from __future__ import annotations

from flatout.model.case import Evidence, Placement
from flatout.report.formatting import duration, number, quantity, size
from flatout.report.html.components import bar, file_and_line, missing, subheading
from flatout.report.html.context import ReportContext
from flatout.report.html.markup import Html, join, tag
from flatout.report.html.tables import Cell, Column, Row, table
from flatout.report.labels import device_name

TITLE = "Placement and copies"


def has_data(context: ReportContext) -> bool:
    placement = context.case.placement
    return bool(placement and (placement.by_device or placement.fallbacks)) or any(
        device.copies for device in context.case.devices
    )


def write(context: ReportContext) -> Html:
    placement = context.case.placement
    return join(_devices(placement) if placement else None, _fallbacks(placement, context), _copies(context))


def _devices(placement: Placement) -> Html | None:
    if not placement.by_device:
        return None
    most = max(placement.by_device.values()) or 1
    rows: list[Row] = [
        [device_name(name), Cell([number(count), bar(count / most)], count)]
        for name, count in sorted(placement.by_device.items(), key=lambda item: -item[1])
    ]
    return table([Column("device", wide=True), Column("operations a step", True)], rows, "Operations on each device")


def _fallbacks(placement: Placement | None, context: ReportContext) -> Html | None:
    if placement is None:
        return None
    heading = subheading("Fallbacks", "requested on one device, run on another")
    if not placement.fallbacks:
        return tag("div", heading, missing("None."))
    rows: list[Row] = [_fallback(item, context) for item in placement.fallbacks]
    columns = [Column("what", wide=True), Column("how much", True), Column("where")]
    return tag("div", heading, table(columns, rows, "Fallbacks", find="fallbacks"))


def _fallback(item: Evidence, context: ReportContext) -> Row:
    return [f"{item.kind} {item.note}".strip(), quantity(item.value, item.unit), file_and_line(item.where)]


def _copies(context: ReportContext) -> Html | None:
    rows: list[Row] = [
        [
            device_name(device.name),
            copy.kind,
            Cell(number(copy.count), copy.count),
            Cell(size(copy.bytes), copy.bytes),
            Cell(duration(copy.ms), copy.ms),
            Cell(f"{size(1000 * rate)}/s" if (rate := copy.bytes / copy.ms if copy.ms else 0.0) else "", rate),
        ]
        for device in context.case.devices
        for copy in device.copies
    ]
    columns = [Column("device"), Column("copy", wide=True), Column("count", True, minor=True), Column("bytes", True),
               Column("time", True), Column("rate", True, minor=True)]  # fmt: skip
    return table(columns, rows, "Copies over the trace window") if rows else None
