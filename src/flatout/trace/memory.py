"""Memory from the allocation events of a trace: the peak, what held it, and the course over time.

The events carry the allocator's own count of bytes in use, so the peak is exact even where the trace began in
the middle of a run; what was allocated before it began appears as one entry of its own.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from flatout.model.case import Memory, MemoryUse
from flatout.trace.model import Line

POINTS = 2000
TOP = 30
BEFORE = "(allocated before the trace began)"
UNKNOWN = "(no op recorded)"

Columns = dict[str, NDArray[np.int64]]

ALLOCATION, DEALLOCATION = "MemoryAllocation", "MemoryDeallocation"

DTYPES = {
    "0": "", "1": "float32", "2": "float64", "3": "int32", "4": "uint8", "5": "int16", "6": "int8", "7": "string",
    "8": "complex64", "9": "int64", "10": "bool", "14": "bfloat16", "19": "float16", "20": "resource", "21": "variant",
    "22": "uint32", "23": "uint64",
}  # fmt: skip
"""TensorFlow writes its DataType as a number."""


def memory_of(lines: list[Line], origin_ps: int) -> tuple[Memory, ...]:
    """One entry per allocator, the one with the highest peak first."""
    strings: dict[str, int] = {"": 0}
    tables = [table for table in (_read(line, strings) for line in lines) if table is not None]
    if not tables:
        return ()
    columns = {key: np.concatenate([table[key] for table in tables]) for key in tables[0]}
    order = np.argsort(columns["time"], kind="stable")
    columns = {key: column[order] for key, column in columns.items()}
    texts = list(strings)
    found = []
    for allocator in np.unique(columns["allocator"]):
        mine = columns["allocator"] == allocator
        found.append(_one(texts, {key: column[mine] for key, column in columns.items()}, origin_ps))
    return tuple(sorted(found, key=lambda memory: (-memory.peak_bytes, memory.allocator)))


def _read(line: Line, strings: dict[str, int]) -> Columns | None:
    """Allocation events of one thread as integers; texts are indices into `strings`."""
    rows = line.where(lambda name: name in (ALLOCATION, DEALLOCATION))
    if not rows.size:
        return None
    freed = line.plane.ids_where(lambda name: name == DEALLOCATION)

    def text(name: str) -> NDArray[np.int64]:
        codes, values = line.stat_strings(name)
        table = np.array([*(strings.setdefault(value, len(strings)) for value in values), 0], np.int64)
        return table[codes[rows]]

    def number(name: str) -> NDArray[np.int64]:
        return line.stat_integers(name, missing=0)[rows]

    return {
        "time": line.start_ps[rows],
        "freed": np.isin(line.name_id[rows], freed).astype(np.int64),
        "allocator": text("allocator_name"),
        "in_use": number("bytes_allocated"),
        "size": number("allocation_bytes"),
        "address": number("addr"),
        "lifetime_peak": number("peak_bytes_in_use"),
        "available": number("bytes_available"),
        "op": text("tf_op"),
        "shape": text("tensor_shapes" if line.has_stat("tensor_shapes") else "shape"),
        "dtype": text("data_type"),
    }


def _one(texts: list[str], columns: Columns, origin_ps: int) -> Memory:
    in_use = columns["in_use"]
    times = (columns["time"] - origin_ps) / 1e9
    top = int(in_use.argmax())
    live: dict[int, int] = {}
    pairs = zip(columns["address"][: top + 1].tolist(), columns["freed"][: top + 1].tolist(), strict=True)
    for row, (address, freed) in enumerate(pairs):
        if freed:
            live.pop(address, None)
        else:
            live[address] = row
    held: dict[tuple[str, str, str], int] = {}
    for row in live.values():
        op, shape, dtype = (texts[int(columns[key][row])] for key in ("op", "shape", "dtype"))
        key = (op or UNKNOWN, shape, DTYPES.get(dtype, dtype))
        held[key] = held.get(key, 0) + int(columns["size"][row])
    rest = int(in_use[top]) - sum(held.values())
    uses = [MemoryUse(op, size, shape=shape, dtype=dtype) for (op, shape, dtype), size in held.items()]
    if rest > 0:
        uses.append(MemoryUse(BEFORE, rest))
    uses.sort(key=lambda use: -use.bytes)
    available = int(columns["available"][top])
    return Memory(
        peak_bytes=int(in_use[top]),
        by_op=tuple(uses[:TOP]),
        allocator=texts[int(columns["allocator"][0])],
        timeline=_thin(times, in_use),
        process_peak_bytes=int(columns["lifetime_peak"].max()),
        limit_bytes=int(in_use[top]) + available if available > 0 else 0,
    )


def _thin(times: NDArray[np.float64], in_use: NDArray[np.int64]) -> tuple[tuple[float, int], ...]:
    """At most POINTS points; of each bucket the highest one stays, so that no peak is lost."""
    if times.size > POINTS:
        edges = np.linspace(0, times.size, POINTS + 1).astype(np.int64)
        chosen = np.array([low + int(in_use[low:high].argmax()) for low, high in pairwise(edges.tolist())])
        times, in_use = times[chosen], in_use[chosen]
    return tuple((round(float(time), 6), int(size)) for time, size in zip(times, in_use, strict=True))
