"""How close the ops of a device come to its limits: operations per byte against operations per second.

Only some profilers record the operations and bytes of an op, and the limits of the device: that of TPUs does, NVIDIA's
does not. Nothing is estimated: without these numbers there is no roofline.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from flatout.trace.device import device_lines
from flatout.trace.model import Plane, Trace

PEAK = "peak_teraflops_per_second"
BANDWIDTH = "peak_hbm_bw_gigabytes_per_second"
MOST = 200


@dataclass(frozen=True)
class Point:
    name: str
    intensity: float
    """Operations per byte."""
    rate: float
    """Operations per second, in units of 10¹²."""
    ms: float


@dataclass(frozen=True)
class Roofline:
    device: str
    peak: float
    """10¹² operations per second."""
    bandwidth: float
    """10⁹ bytes per second."""
    points: tuple[Point, ...]


def read_rooflines(traces: Iterable[tuple[Trace, int]]) -> tuple[Roofline, ...]:
    found = (_of(plane) for trace, _ in traces for plane in trace.planes_like("/device:"))
    return tuple(roofline for roofline in found if roofline is not None)


def _of(plane: Plane) -> Roofline | None:
    peak, bandwidth = _number(plane.stats.get(PEAK)), _number(plane.stats.get(BANDWIDTH))
    if not peak or not bandwidth:
        return None
    points = []
    for line in device_lines(plane):
        ids, inverse = np.unique(line.name_id, return_inverse=True)
        seconds = np.bincount(inverse, weights=line.duration_ps, minlength=ids.size) / 1e12
        counts = np.bincount(inverse, minlength=ids.size)
        for key, time, count in zip(ids.tolist(), seconds.tolist(), counts.tolist(), strict=True):
            shared = plane.metadata_stats(key)
            work, moved = _number(shared.get("flops")), _number(shared.get("bytes_accessed"))
            if work and moved and time > 0:
                points.append(Point(plane.name_of(key), work / moved, work * count / time / 1e12, 1e3 * time))
    points.sort(key=lambda point: -point.ms)
    return Roofline(plane.name, peak, bandwidth, tuple(points[:MOST])) if points else None


def _number(value: object) -> float:
    return float(value) if isinstance(value, (int, float)) else 0.0
