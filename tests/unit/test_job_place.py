"""Which rank of which job a process is, from what its launcher has set."""

from __future__ import annotations

import json

import pytest

from flatout.job.place import find


def tf_config(role: str, index: int, **cluster: int) -> str:
    addresses = {name: [f"host{number}:2222" for number in range(count)] for name, count in cluster.items()}
    return json.dumps({"cluster": addresses, "task": {"type": role, "index": index}})


def test_tf_config_says_role_index_and_who_else_there_is() -> None:
    place = find({"TF_CONFIG": tf_config("worker", 1, ps=1, worker=2, chief=1)})
    assert place is not None
    assert (place.name, place.size, place.by) == ("worker 1", 4, "TF_CONFIG")
    assert place.expected == ("chief", "worker 0", "worker 1", "ps 0")


def test_an_evaluator_is_no_member_of_its_cluster_but_a_rank() -> None:
    place = find({"TF_CONFIG": tf_config("evaluator", 0, worker=2)})
    assert place is not None
    assert place.size == 3
    assert place.name in place.expected


@pytest.mark.parametrize(
    ("variables", "name", "job"),
    [
        (
            {"SLURM_PROCID": "3", "SLURM_NTASKS": "8", "SLURM_JOB_ID": "71"},
            "worker 3",
            "slurm-71",
        ),
        (
            {"OMPI_COMM_WORLD_RANK": "1", "OMPI_COMM_WORLD_SIZE": "2", "PMIX_NAMESPACE": "a/b"},
            "worker 1",
            "mpi-a-b",
        ),
        ({"PMI_RANK": "0", "PMI_SIZE": "2"}, "worker 0", ""),
        ({"RANK": "1", "WORLD_SIZE": "4", "RAY_JOB_ID": "02000000"}, "worker 1", "ray-02000000"),
    ],
    ids=["slurm", "openmpi", "mpich", "ray"],
)
def test_schedulers(variables: dict[str, str], name: str, job: str) -> None:
    place = find(variables)
    assert place is not None
    assert (place.name, place.job) == (name, job)


def test_slurm_names_the_job_and_tf_config_the_rank() -> None:
    place = find({"TF_CONFIG": tf_config("chief", 0, chief=1, worker=1), "SLURM_PROCID": "0", "SLURM_NTASKS": "2",
                  "SLURM_JOB_ID": "9"})  # fmt: skip
    assert place is not None
    assert (place.name, place.job) == ("chief", "slurm-9")


@pytest.mark.parametrize(
    "variables",
    [
        {},
        {"TF_CONFIG": "not json"},
        {"TF_CONFIG": "{}"},
        {"TF_CONFIG": '{"cluster": [], "task": 3}'},
        {"TF_CONFIG": tf_config("worker", 0, worker=1)},
        {"SLURM_PROCID": "0", "SLURM_NTASKS": "1", "SLURM_JOB_ID": "9"},
        {"RANK": "0", "WORLD_SIZE": "2"},  # another framework's, without Ray
        {"SLURM_PROCID": "x", "SLURM_NTASKS": "2", "SLURM_JOB_ID": "1"},
    ],
    ids=["nothing", "damaged", "empty", "odd", "one-worker", "one-task", "no-ray", "no-number"],
)
def test_a_program_of_one_process_is_no_job(variables: dict[str, str]) -> None:
    assert find(variables) is None
