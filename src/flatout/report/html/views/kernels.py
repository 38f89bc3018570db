"""The kernels of each device by what they cost: how often, on tensor cores or not, at what precision and occupancy."""

from __future__ import annotations

from flatout.case import Device, Kernel
from flatout.report.html.charts import chart, label
from flatout.report.html.markup import Html, join, tag
from flatout.report.html.material import Material
from flatout.report.html.parts import bar, chip, device_name, subheading
from flatout.report.html.tables import Cell, Column, table
from flatout.report.terminal.text import duration, number, share

TITLE = "Kernels"
DRAWN = 12


def has_data(material: Material) -> bool:
    return any(device.kernels for device in material.case.devices)


def write(material: Material) -> Html:
    return join([_device(device) for device in material.case.devices if device.kernels])


def _device(device: Device) -> Html:
    ranked = sorted(device.kernels, key=lambda kernel: -kernel.ms)
    return tag("div", subheading(device_name(device.name), device.model), _bars(ranked), _table(ranked), class_="block")


def _bars(ranked: list[Kernel]) -> Html | None:
    """The costliest kernels; those on tensor cores in their own colour."""
    drawn = ranked[:DRAWN]
    if len(drawn) < 2:
        return None
    groups = [(True, "on tensor cores", "@compute"), (False, "elsewhere", "@copy")]
    traces = [
        {
            "type": "bar",
            "orientation": "h",
            "name": name,
            "x": [round(kernel.ms, 4) for kernel in drawn if kernel.tensor_core == tensor],
            "y": [f"{at + 1}" for at, kernel in enumerate(drawn) if kernel.tensor_core == tensor],
            "marker": {"color": colour},
            "customdata": [label(kernel.name, 90) for kernel in drawn if kernel.tensor_core == tensor],
            "hovertemplate": "%{customdata}<br>%{x:.4~g} ms<extra></extra>",
        }
        for tensor, name, colour in groups
        if any(kernel.tensor_core == tensor for kernel in drawn)
    ]
    order = [f"{at + 1}" for at in range(len(drawn))]
    layout = {
        "xaxis": {"title": {"text": "ms in the window"}},
        "yaxis": {
            "type": "category",
            "categoryorder": "array",
            "categoryarray": order[::-1],
            "title": {"text": "rank"},
        },
        "barmode": "overlay",
        "showlegend": True,
    }
    says = f"The {len(drawn)} costliest kernels; the first, {drawn[0].name[:80]}, takes {share(drawn[0].share)}."
    return chart(traces, layout, says, height=60 + 24 * len(drawn))


def _table(ranked: list[Kernel]) -> Html:
    rows = [
        [
            Cell(f"{at}", at),
            Cell(duration(kernel.ms), kernel.ms),
            Cell([share(kernel.share), bar(kernel.share)], kernel.share),
            Cell(number(kernel.count), kernel.count),
            [kernel.name, " ", chip("tensor cores", "good") if kernel.tensor_core else None],
            kernel.precision,
            Cell(share(kernel.occupancy) if kernel.occupancy is not None else "", kernel.occupancy or 0.0),
            kernel.op,
        ]
        for at, kernel in enumerate(ranked, 1)
    ]
    columns = [
        Column("rank", True, minor=True),
        Column("time", True),
        Column("share", True),
        Column("count", True, minor=True),
        Column("kernel", wide=True),
        Column("precision", minor=True),
        Column("occupancy", True, minor=True),
        Column("operation", minor=True),
    ]
    return table(columns, rows, "Kernels by time in the window", find="kernels")
