"""`--nsys`: the program under NVIDIA Nsight Systems, which sees what TensorFlow's trace does not (driver, OS, cuDNN).

Nsight is an executable that starts the program, so all there is to do is to put the right command line before it. A GPU
serves one profiler at a time: flatout takes no trace of its own in such a run.
"""

from __future__ import annotations

import shlex
import shutil
from pathlib import Path

from flatout.model.errors import ToolMissing

TRACED = "cuda,nvtx,osrt,cudnn,cublas"


def command(command: list[str], directory: Path) -> list[str]:
    """The command line that runs the program under Nsight Systems, its report in the case's directory."""
    found = shutil.which("nsys")
    if found is None:
        raise ToolMissing(
            "--nsys needs NVIDIA Nsight Systems, and there is no `nsys` on PATH. It comes with the CUDA toolkit and "
            "from https://developer.nvidia.com/nsight-systems. Where it is installed, this is the command:\n"
            f"  {shlex.join(_line('nsys', command, Path('flatout-nsys')))}"
        )
    return _line(found, command, directory / "nsys")


def _line(nsys: str, command: list[str], report: Path) -> list[str]:
    # `profile` leaves with the program's exit code. `--wait=primary`: with it, not with some daemon left behind.
    return [
        nsys,
        "profile",
        f"--trace={TRACED}",
        f"--output={report}",
        "--force-overwrite=true",
        "--wait=primary",
        *command,
    ]
