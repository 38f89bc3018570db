"""Operations per device, fallbacks, copies between devices, casts and float64."""

from __future__ import annotations

import re
from pathlib import Path

from flatout.model.case import Case, Evidence
from flatout.report.formatting import clean, duration, evidence_text, number, size
from flatout.report.labels import device_name
from flatout.report.terminal.page import Column, Page

MOST = 20
_TYPES = re.compile(r"float64|double|cast", re.IGNORECASE)


def has_data(case: Case) -> bool:
    return case.placement is not None or any(device.copies for device in case.devices)


def write(case: Case, page: Page, directory: Path | None) -> None:
    placement = case.placement
    page.heading("Placement")
    if placement is None:
        page.missing(
            "Where the operations ran was not recorded in this case.",
            "It comes from the trace window of `flatout run`. `flatout env` lists this machine's devices.",
        )
    else:
        names = ", ".join(device_name(name) for name in placement.devices) or "none recorded"
        page.line(f"devices: {names}")
        if placement.by_device:
            rows = sorted(placement.by_device.items(), key=lambda item: -item[1])
            page.table(
                [Column("operations a step", right=True), Column("device", flexible=True)],
                [[number(count), device_name(name)] for name, count in rows],
            )
        page.heading("Fallbacks", "requested on one device, run on another")
        _evidence(placement.fallbacks, page, "none")
    _copies(case, page)
    page.heading("Casts and float64")
    _evidence(tuple(item for item in case.evidence if _TYPES.search(item.kind)), page, "")
    _typed_ops(case, page)


def _evidence(items: tuple[Evidence, ...], page: Page, nothing: str) -> None:
    if not items and nothing:
        page.line(nothing)
    for item in items[:MOST]:
        spot = page.location(item.where, 48)
        note = f" – {clean(item.note, 200)}" if item.note else ""
        page.line(evidence_text(item), note, (f"   {spot}" if spot else "", "bold"))
    if len(items) > MOST:
        page.line(f"and {len(items) - MOST:,} more")


def _copies(case: Case, page: Page) -> None:
    rows = [
        [device_name(device.name), copy.kind, number(copy.count), size(copy.bytes), duration(copy.ms)]
        for device in case.devices
        for copy in device.copies
    ]
    if rows:
        page.heading("Copies", "over the trace window")
        page.table(
            [Column("device", flexible=True), Column("kind", flexible=True), Column("count", right=True),
             Column("bytes", right=True), Column("time", right=True)],
            rows,
        )  # fmt: skip


def _typed_ops(case: Case, page: Page) -> None:
    found = [op for op in case.ops if op.type == "Cast" or re.search(r"float64|double", op.dtype)]
    if found:
        ranked = sorted(found, key=lambda op: -op.self_ms)[:MOST]
        page.table(
            [Column("self", right=True), Column("count", right=True), Column("type"), Column("dtype"),
             Column("operation", flexible=True, middle=True),
             Column("where", flexible=True, middle=True, drop=1)],
            [[duration(op.self_ms), number(op.count), clean(op.type, 24), clean(op.dtype, 16), op.name,
              page.location(op.where)] for op in ranked],
        )  # fmt: skip
    elif not any(_TYPES.search(item.kind) for item in case.evidence):
        page.line("None were seen." if case.ops else "Not recorded: this case has no operation times.")
