"""How fast flatout reads and analyses large traces: seconds and peak memory, each in a fresh process.

    python benchmarks/trace_reading.py [--events 1000000]

Three synthetic traces of the given size: a CPU trace (op events, few stats), a GPU trace (kernels with the
dozen stats that real ones have), and a Python trace (nested function calls). "analyse" includes loading.
"""

from __future__ import annotations

import argparse
import gc
import json
import random
import subprocess
import sys
import tempfile
from pathlib import Path

WORKER = """
import json, resource, sys, time
begin = time.perf_counter()
from flatout.trace import analyse, load
imported = time.perf_counter()
if sys.argv[2] == "load":
    events = load(sys.argv[1]).event_count
    print(json.dumps({"load": time.perf_counter() - imported, "events": events}))
else:
    case = analyse(sys.argv[1])
    done = time.perf_counter()
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(json.dumps({"import": imported - begin, "analyse": done - imported, "megabytes": peak,
                      "steps": case.steps.count if case.steps else 0}))
"""


def number(value: int) -> bytes:
    value &= (1 << 64) - 1
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def field(tag: int, value: int | bytes) -> bytes:
    if isinstance(value, int):
        return number(tag << 3) + number(value)
    return number(tag << 3 | 2) + number(len(value)) + value


def event(name: int, start: int, length: int, stats: bytes = b"") -> bytes:
    return field(4, field(1, name) + field(2, start) + field(3, length) + stats)


def stat(key: int, kind: int, value: int) -> bytes:
    return field(4, field(1, key) + field(kind, value))


def plane(title: str, lines: list[bytes], names: list[str], stats: list[str]) -> bytes:
    parts = [field(2, title.encode()), *(field(3, line) for line in lines)]
    for place, text in enumerate(names, 1):
        parts.append(field(4, field(1, place) + field(2, field(1, place) + field(2, text.encode()))))
    for place, text in enumerate(stats, 1):
        parts.append(field(5, field(1, place) + field(2, field(1, place) + field(2, text.encode()))))
    return field(1, b"".join(parts))


def line(key: int, title: str, events: list[bytes]) -> bytes:
    return field(1, key) + field(2, title.encode()) + field(3, 1_000_000) + b"".join(events)


def cpu_trace(count: int) -> bytes:
    """Eight threads of ops in steps of 400, marked by the calls of a tf.function."""
    names = ["train_step", *(f"model/layer_{i}/MatMul:MatMul" for i in range(400))]
    lines, per = [], count // 8
    for thread in range(8):
        events = []
        for i in range(per):
            at = i * 20_000_000
            if thread == 0 and i % 400 == 0:
                events.append(event(1, at, 7_900_000_000, stat(1, 7, 2)))
            else:
                events.append(event(2 + i % 400, at, 15_000_000, stat(3, 4, i)))
        lines.append(line(thread + 1, f"tf_Compute/{thread}", events))
    return plane("/host:CPU", lines, names, ["tf_function_call", "notTraced-nonXla", "id"])


def gpu_trace(count: int) -> bytes:
    """One stream of kernels, 1,000 to the step, with the stats that a real kernel carries."""
    kernels = [f"sm90_xmma_gemm_bf16bf16_bf16f32_f32_tn_n_tilesize128x128x64_kernel_{i}" for i in range(1000)]
    keys = [
        "correlation_id", "scope_range_id", "context_id", "theoretical_occupancy_pct",
        "occupancy_min_grid_size", "occupancy_suggested_block_size", "kernel_details", "tf_op", "name",
        "hlo_op", "unique_hlo_op_id", "hlo_module", "program_id",
    ]  # fmt: skip
    base = len(keys)
    texts = [*(f"fusion.{i}" for i in range(1000)), "jit_train_step", "XlaModule:", "regs:32 grid:10,1,1"]
    events = []
    for i in range(count):
        which = i % 1000
        stats = b"".join((
            stat(1, 4, i), stat(2, 3, 281474976710658 + i), stat(3, 3, 1), stat(4, 3, 50), stat(5, 3, 264),
            stat(6, 3, 1024), stat(7, 7, base + 1003), stat(8, 7, base + 1002), stat(9, 7, base + 1 + which),
            stat(10, 7, base + 1 + which), stat(11, 3, 1610612738000 + which), stat(12, 7, base + 1001),
            stat(13, 3, 20556),
        ))  # fmt: skip
        events.append(event(1 + which, i * 10_000_000 + random.randrange(1000), 9_000_000, stats))
    return plane("/device:GPU:0", [line(14, "Stream #14(Compute)", events)], kernels, keys + texts)


def python_trace(count: int) -> bytes:
    """One thread of nested Python calls, forty deep."""
    names = [f"$module_{i}.py:{i} function_{i}" for i in range(900)]
    events = []
    for i in range(count // 40):
        for depth in range(40):
            events.append(event(1 + (i * 7 + depth) % 900, i * 10**9 + depth * 10**6, 10**9 - depth * 2 * 10**6))
    return plane("/host:CPU", [line(1, "python3", events)], names, ["unused"])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--events", type=int, default=1_000_000)
    count = parser.parse_args().events
    print(f"{'trace':<8}{'events':>11}{'file MB':>9}{'import s':>10}{'load s':>8}{'analyse s':>11}{'peak MB':>9}")
    for name, make in (("cpu", cpu_trace), ("gpu", gpu_trace), ("python", python_trace)):
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "host.xplane.pb"
            path.write_bytes(make(count) + field(4, b"host"))
            gc.collect()
            size = path.stat().st_size / 1e6
            got: dict[str, float] = {}
            for what in ("load", "analyse"):
                command = [sys.executable, "-c", WORKER, str(path), what]
                out = subprocess.run(command, capture_output=True, text=True)
                if out.returncode:
                    sys.exit(out.stderr)
                got |= json.loads(out.stdout)
        print(
            f"{name:<8}{got['events']:>11,}{size:>9.1f}{got['import']:>10.2f}{got['load']:>8.2f}"
            f"{got['analyse']:>11.2f}{got['megabytes']:>9.0f}   {got['steps']} steps"
        )


if __name__ == "__main__":
    main()
