"""How long `flatout tune --on ray` takes to try the same levers on one node and on several, each with one processor.

    python benchmarks/tune_on_ray.py [--program FILE] [--nodes 1,2] [--levers xla,cache] [--budget 6m] [--json FILE]

The nodes are all on this machine, so it needs as many processors as the largest cluster has nodes. `trying` is the time
in which a node raced, from the beginning of its first race to the end of its last, without waiting between them.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
PROGRAM = ROOT / "tests" / "programs" / "slow" / "tiny_fit.py"
SETTINGS = (2, 4, 8, 16, 32, 64)
LEVERS = ",".join(["xla", "direct-fit", *(f"steps-per-execution={one}" for one in SETTINGS)])
STORE_BYTES = 80_000_000
FLATOUT = [sys.executable, "-m", "flatout"]


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    arguments.add_argument("--program", type=Path, default=PROGRAM)
    arguments.add_argument("--nodes", default="1,2")
    arguments.add_argument("--levers", default=LEVERS)
    arguments.add_argument("--budget", default="6m")
    arguments.add_argument("--json")
    given = arguments.parse_args()
    try:
        from ray.cluster_utils import Cluster
    except ImportError:
        print("Ray is not installed: pip install 'flatout[ray]'")
        return
    rows = []
    print(f"{'nodes':>5} {'tune s':>7} {'trying s':>9} {'trials':>6} {'each node s':>16}  verdict")
    for count in map(int, given.nodes.split(",")):
        head = {"num_cpus": 1, "object_store_memory": STORE_BYTES, "include_dashboard": False}
        cluster = Cluster(initialize_head=True, head_node_args=head)
        for _ in range(count - 1):
            cluster.add_node(num_cpus=1, object_store_memory=STORE_BYTES)
        try:
            row = measured(given.program, given.levers.split(","), given.budget, cluster.address)
        finally:
            cluster.shutdown()
        rows.append({"nodes": count, **row})
        taken = "/".join(f"{one:.0f}" for one in row["seconds"])
        numbers = f"{count:>5} {row['tune']:>7.0f} {row['trying']:>9.0f} {row['trials']:>6} {taken:>16}"
        print(f"{numbers}  {row['verdict'][:90]}")
    first, last = rows[0]["trying"], rows[-1]["trying"]
    print(f"{rows[-1]['nodes']} nodes try the levers in {last / first:.2f} of the time of {rows[0]['nodes']}")
    if given.json:
        Path(given.json).write_text(json.dumps(rows, indent=1))


def measured(program: Path, levers: list[str], budget: str, address: str) -> dict[str, Any]:
    words = ["--budget", budget, "--json", "case.json", program.name]
    words = [*(word for lever in levers for word in ("--lever", lever)), *words]
    with tempfile.TemporaryDirectory() as folder:
        shutil.copy(program, folder)
        began = time.monotonic()
        done = subprocess.run(
            [*FLATOUT, "tune", "--on", f"ray:{address}", *words],
            cwd=folder,
            env={**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3"},
            stderr=subprocess.PIPE,
            text=True,
        )
        took = time.monotonic() - began
        if not (Path(folder) / "case.json").exists():
            sys.exit(done.stderr)
        case = json.loads((Path(folder) / "case.json").read_text())
    seconds = [one["data"]["seconds"] for one in case["evidence"] if one["kind"] == "raced-on"]
    trials = sum(one["stage"] == "single" for one in case["trials"])
    told = {"verdict": case["verdict"], "told": done.stderr}
    return {"tune": took, "trying": max(seconds, default=0.0), "seconds": seconds, "trials": trials, **told}


if __name__ == "__main__":
    main()
