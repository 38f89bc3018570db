"""Which rank of which job a process is, as its launcher has told it: TF_CONFIG, Slurm, MPI, Ray, `flatout launch`."""

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

DIRECTORY = "FLATOUT_JOB"
"""Where `flatout launch` tells the ranks to meet."""
LAUNCHED = "FLATOUT_LAUNCHED"
"""Set by `flatout launch`, which merges the cases itself once all ranks have ended."""
ROLES = ("chief", "worker", "ps", "evaluator")

_SCHEDULERS = (
    # (who, rank, size, the variables that identify the job)
    ("Slurm", "SLURM_PROCID", "SLURM_NTASKS", ("SLURM_JOB_ID", "SLURM_STEP_ID")),
    ("MPI", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", ("OMPI_MCA_ess_base_jobid", "PMIX_NAMESPACE")),
    ("MPI", "PMI_RANK", "PMI_SIZE", ("PMI_JOBID", "HYDI_CONTROL_FD")),
    ("Ray", "RANK", "WORLD_SIZE", ("RAY_JOB_ID",)),
)


@dataclass(frozen=True)
class Place:
    """A rank of a job."""

    role: str
    index: int
    size: int
    """Ranks that the job should have; of all roles."""
    by: str
    """What it was told by: `TF_CONFIG`, `Slurm`, `MPI`, `Ray`."""
    job: str = ""
    """What the launcher calls this job, where it says so; fit for the name of a directory."""
    expected: tuple[str, ...] = ()
    """The names of all ranks, where they are known."""

    @property
    def name(self) -> str:
        return "chief" if self.role == "chief" else f"{self.role} {self.index}"


def find(environment: Mapping[str, str]) -> Place | None:
    """The place of this process; None where it is no rank of a job of several.

    Who leads (role and index) is said by TF_CONFIG where it is set, as TensorFlow goes by that; the number of the job
    is said by the scheduler.
    """
    scheduled = _of_scheduler(environment)
    place = _of_tf_config(environment.get("TF_CONFIG", "")) or scheduled
    if place is None or place.size < 2:
        return None
    if scheduled is not None and not place.job:
        place = Place(place.role, place.index, place.size, place.by, scheduled.job, place.expected)
    return place


def _of_tf_config(text: str) -> Place | None:
    """Nothing where it is not what TensorFlow takes: then TensorFlow will say so itself."""
    with contextlib.suppress(ValueError, TypeError, KeyError, AttributeError):
        config: Any = json.loads(text) if text else {}
        cluster, task = config["cluster"], config["task"]
        counts = {str(role): len(addresses) for role, addresses in cluster.items()}
        role, index = str(task["type"]), int(task["index"])
        if role == "master":
            role = "chief"
        names = tuple(
            "chief" if one in ("chief", "master") else f"{one} {number}"
            for one, count in sorted(counts.items(), key=_order)
            for number in range(count)
        )
        outside = role not in counts and role == "evaluator"  # it is no member of the cluster it evaluates for
        expected = (*names, f"evaluator {index}") if outside else names
        return Place(role, index, len(expected), "TF_CONFIG", expected=expected)
    return None


def _order(item: tuple[str, int]) -> tuple[int, str]:
    role = "chief" if item[0] == "master" else item[0]
    return (ROLES.index(role) if role in ROLES else len(ROLES), role)


def _of_scheduler(environment: Mapping[str, str]) -> Place | None:
    for by, rank, size, names in _SCHEDULERS:
        found = [environment[name] for name in names if environment.get(name)]
        with contextlib.suppress(KeyError, ValueError):
            index, count = int(environment[rank]), int(environment[size])
            if 0 <= index < count and (found or by == "MPI"):
                expected = tuple(f"worker {number}" for number in range(count))
                return Place("worker", index, count, by, _identity(by, found), expected)
    return None


def _identity(by: str, found: list[str]) -> str:
    words = "-".join(re.sub(r"[^A-Za-z0-9_.]+", "-", text)[:60] for text in found)
    return f"{by.lower()}-{words}" if words else ""
