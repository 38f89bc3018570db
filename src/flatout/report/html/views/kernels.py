"""The kernels of each device by cost, and a roofline if the trace has their operations and bytes."""

from __future__ import annotations

from flatout.model.case import Device, Kernel
from flatout.report.formatting import clean, duration, elide, number, share
from flatout.report.html.attachments.roofline import Roofline
from flatout.report.html.charts import chart, label
from flatout.report.html.components import bar, chip, subheading
from flatout.report.html.context import ReportContext
from flatout.report.html.markup import Html, join, tag
from flatout.report.html.tables import Cell, Column, Row, table
from flatout.report.labels import device_name

TITLE = "Kernels"
DRAWN = 12
LONGEST = 120
"""Letters of a kernel's name."""


def has_data(context: ReportContext) -> bool:
    return any(device.kernels for device in context.case.devices) or bool(context.rooflines)


def write(context: ReportContext) -> Html:
    return join(
        [_device(device) for device in context.case.devices if device.kernels],
        [_roofline(roofline) for roofline in context.rooflines],
    )


def _device(device: Device) -> Html:
    ranked = sorted(device.kernels, key=lambda kernel: -kernel.ms)
    return tag("div", subheading(device_name(device.name), device.model), _bars(ranked), _table(ranked), class_="block")


def _bars(ranked: list[Kernel]) -> Html | None:
    """The most expensive kernels, with those on tensor cores in another colour."""
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
    summary = (
        f"The {len(drawn)} most expensive kernels. The first, {drawn[0].name[:80]}, takes {share(drawn[0].share)}."
    )
    return chart(traces, layout, summary, height=60 + 24 * len(drawn))


def _table(ranked: list[Kernel]) -> Html:
    rows: list[Row] = [
        [
            Cell(f"{at}", at),
            Cell(duration(kernel.ms), kernel.ms),
            Cell([share(kernel.share), bar(kernel.share)], kernel.share),
            Cell(number(kernel.count), kernel.count),
            [_name(kernel.name), " ", chip("tensor cores", "good") if kernel.tensor_core else None],
            kernel.precision,
            Cell(share(kernel.occupancy) if kernel.occupancy is not None else "", kernel.occupancy or 0.0),
            tag("span", elide(clean(kernel.op), 44, middle=True), title=kernel.op),
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
        Column("operation", wide=True, minor=True),
    ]
    return table(columns, rows, "Kernels by time in the window", find="kernels")


def _name(name: str) -> Html:
    """A mangled name of a template is longer than a telephone's screen; all of it is shown when the mouse rests."""
    return tag("span", elide(clean(name, 4000), LONGEST, middle=True), title=name)


def _roofline(roofline: Roofline) -> Html:
    """Ops below the roof could be faster; those left of its edge only by moving fewer bytes."""
    edge = 1000 * roofline.peak / roofline.bandwidth
    reach = [point.intensity for point in roofline.points]
    low, high = min(*reach, edge) / 2, max(*reach, edge) * 2
    roof = {
        "type": "scatter",
        "mode": "lines",
        "name": "limit of the device",
        "x": [low, edge, high],
        "y": [low * roofline.bandwidth / 1000, roofline.peak, roofline.peak],
        "line": {"color": "@text", "width": 1.5},
        "hoverinfo": "skip",
    }
    longest = roofline.points[0].ms
    points = {
        "type": "scatter",
        "mode": "markers",
        "name": "ops",
        "x": [point.intensity for point in roofline.points],
        "y": [point.rate for point in roofline.points],
        "marker": {
            "color": "@accent",
            "opacity": 0.6,
            "size": [6 + 24 * (point.ms / longest) ** 0.5 for point in roofline.points],
        },
        "customdata": [[label(point.name, 90), duration(point.ms)] for point in roofline.points],
        "hovertemplate": "%{customdata[0]}<br>%{y:.3~g} of 10¹² operations a second<br>%{customdata[1]}<extra></extra>",
    }
    layout = {
        "xaxis": {"title": {"text": "operations per byte"}, "type": "log"},
        "yaxis": {"title": {"text": "10¹² operations a second"}, "type": "log"},
        "showlegend": True,
    }
    bound = sum(point.ms for point in roofline.points if point.intensity < edge)
    part = share(bound / sum(point.ms for point in roofline.points))
    summary = f"{part} of the time goes to ops that the memory's bandwidth limits; larger circles take more time."
    heading = subheading(f"Roofline of {device_name(roofline.device)}")
    return tag("div", heading, chart([roof, points], layout, summary, height=380, caption=summary), class_="block")
