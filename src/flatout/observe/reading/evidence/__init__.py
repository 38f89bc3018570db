"""Facts of the recording as evidence: each with its location and its cost per step."""

from __future__ import annotations

from flatout.model.case import Evidence
from flatout.observe.reading.evidence import graph, host, program
from flatout.observe.reading.graphs import Graphs
from flatout.observe.reading.recording import Recording
from flatout.observe.reading.steps import Measured
from flatout.trace.host_steps import StepSplit


def read(
    recording: Recording,
    measured: Measured | None,
    split: StepSplit | None,
    graphs: Graphs,
) -> tuple[Evidence, ...]:
    count = measured.count if measured is not None else 0
    found: list[Evidence] = []
    found += program.levers(recording)
    found += program.switches(recording)
    found += program.keras(recording, measured)
    found += program.resources(recording, measured)
    found += program.undisturbed(recording, measured)
    found += program.yardstick(recording, measured)
    if measured is not None and count:
        found += host.streams(recording)
        found += host.epoch_starts(recording, measured)
        found += graph.float64(graphs)
        found += graph.norms(graphs)
        found += host.pulls(recording, measured)
        found += host.conversions(recording, count)
        found += host.eager_lines(recording, measured)
        found += host.feeds(recording, measured)
        found += host.graph_growth(recording)
        found += host.tracing(measured)
        found += host.made_functions(recording, count)
        found += host.step_location(recording, measured)
        found += host.samples(recording, measured)
        found += graph.repeated_ops(graphs)
        found += graph.loops(graphs, split)
        found += graph.pipeline_ops(split)
        found += graph.executor(split)
        found += graph.contended(split)
        found += graph.compiles(split)
    return tuple(found)
