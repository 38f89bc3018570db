"""Does the log directory of a case open in XProf and in TensorBoard, with the steps found?

Their real servers are started on the directory and asked what their pages ask: the runs, the hosts, the overview. XProf
is the package that `scripts/bench` installs (`XPROF_PYTHON` names another interpreter that has it); TensorBoard is
asked where it is installed beside it. Bar: every step of the trace window is found, but for the cut ones at its edges.

    python benchmarks/log_directory.py [CASE …]     cases that are kept, or else two programs are run
"""

from __future__ import annotations

import gzip
import json
import os
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.parse
import urllib.request
from pathlib import Path
from typing import Any

from _programs import PROGRAMS

from flatout import store

PYTHON = os.environ.get("XPROF_PYTHON", sys.executable)
VIEWERS = {
    "XProf": "import sys; from xprof.server import main; sys.exit(main())",
    "TensorBoard": "import sys; from tensorboard.main import run_main; run_main()",
}
OBSERVED = ("good/keras_conv_cached.py", "slow/eager_step.py")


def main() -> None:
    failed = False
    print(f"{'case':40s} {'viewer':12s} {'in the window':>13s} {'found':>6s} {'average':>9s}")
    with tempfile.TemporaryDirectory() as directory:
        kept = [store.locate(name) for name in sys.argv[1:]] or [
            observe(PROGRAMS / name, directory) for name in OBSERVED
        ]
        for path in kept:
            case = store.load(path)
            if case.steps is None or case.steps.window is None or case.logdir is None:
                sys.exit(f"{path} has no trace window.")
            wanted = case.steps.window[1] - case.steps.window[0]
            for viewer, start in VIEWERS.items():
                told = ask(start, path.resolve().parent / case.logdir)
                if told is None:
                    print(f"{path.parent.name:40s} {viewer:12s} not installed for {PYTHON}")
                    continue
                found, average = told
                failed |= found < wanted - 2
                print(f"{path.parent.name:40s} {viewer:12s} {wanted:13d} {found:6d} {average:6.1f} ms", flush=True)
    sys.exit(failed)


def observe(program: Path, directory: str) -> Path:
    command = [sys.executable, "-m", "flatout", "run", "-q", str(program)]
    subprocess.run(command, cwd=directory, check=True, capture_output=True)
    return (Path(directory) / store.HOME / "latest" / store.FILE).resolve()


def ask(start: str, logs: Path) -> tuple[int, float] | None:
    """Steps that the viewer's overview tells of a log directory, and their average; None where it is not installed."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [PYTHON, "-c", start, "--logdir", str(logs), "--port", str(port)]
    with tempfile.TemporaryFile() as said:
        server = subprocess.Popen(command, stdout=said, stderr=said)
        try:
            run = next(iter(wait_for(server, f"http://localhost:{port}/data/plugin/profile/runs")), None)
            if run is None:
                return None
            query = {"run": run, "tag": "overview_page"}
            hosts = get(f"http://localhost:{port}/data/plugin/profile/hosts?{urllib.parse.urlencode(query)}")
            query["host"] = hosts[0]["hostname"]
            overview = get(f"http://localhost:{port}/data/plugin/profile/data?{urllib.parse.urlencode(query)}")
        finally:
            server.kill()
            server.wait()
    table = next(part for part in overview if "steptime_ms_average" in part.get("p", {}))
    return len(table.get("rows", [])), float(table["p"]["steptime_ms_average"])


def wait_for(server: subprocess.Popen[bytes], address: str) -> list[Any]:
    """The runs that the viewer lists, once it answers; none where it has left at once."""
    for _ in range(240):
        if server.poll() is not None:
            return []
        try:
            found: list[Any] = get(address)
        except (urllib.error.URLError, ConnectionError, json.JSONDecodeError):
            found = []  # it is not up yet, or has not read the directory yet
        if found:
            return found
        time.sleep(0.25)
    raise TimeoutError(f"{address} did not list a run within a minute")


def get(address: str) -> Any:
    with urllib.request.urlopen(address, timeout=30) as answer:
        data = answer.read()
    return json.loads(gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data)


if __name__ == "__main__":
    main()
