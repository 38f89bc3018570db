"""Gathering: control groups of both versions, nested and hidden; variables by name; text made safe."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from flatout.environment import cgroup, gather, variables
from flatout.model.text import clean, clean_all

V2 = "31 23 0:28 / /sys/fs/cgroup rw,nosuid - cgroup2 cgroup2 rw,nsdelegate\n"
V1 = (
    "32 31 0:29 / /sys/fs/cgroup/cpu,cpuacct rw,relatime - cgroup cgroup rw,cpu,cpuacct\n"
    "35 31 0:32 / /sys/fs/cgroup/memory rw,relatime - cgroup cgroup rw,memory\n"
)


def write(root: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return root


def test_version_2_takes_the_tightest_of_nested_limits(tmp_path: Path) -> None:
    root = write(
        tmp_path,
        {
            "proc/self/cgroup": "0::/user.slice/job/step\n",
            "proc/self/mountinfo": V2,
            "sys/fs/cgroup/user.slice/cpu.max": "250000 100000\n",
            "sys/fs/cgroup/user.slice/job/cpu.max": "800000 100000\n",
            "sys/fs/cgroup/user.slice/job/step/cpu.max": "max 100000\n",
            "sys/fs/cgroup/user.slice/job/cpu.stat": "usage_usec 9\nnr_periods 200\nnr_throttled 50\n",
            "sys/fs/cgroup/user.slice/job/memory.max": "4294967296\n",
            "sys/fs/cgroup/user.slice/job/step/memory.max": "max\n",
            "sys/fs/cgroup/user.slice/job/step/memory.current": "1000000\n",
            "sys/fs/cgroup/user.slice/job/step/memory.stat": "anon 1\ninactive_file 400000\n",
            "proc/meminfo": "MemTotal: 16000000 kB\nMemAvailable: 8000000 kB\n",
        },
    )
    assert cgroup.memory_left(root) == 4294967296 - 600000  # the group has less left than the machine
    assert cgroup.cpu_quota(root) == (2.5, "/sys/fs/cgroup/user.slice/cpu.max")
    assert cgroup.memory_limit(root) == (4294967296.0, "/sys/fs/cgroup/user.slice/job/memory.max")
    assert cgroup.memory_used(root) == 600000
    assert cgroup.throttled(root) == 0.25


def test_inside_a_container_the_mounted_root_is_the_group(tmp_path: Path) -> None:
    root = write(
        tmp_path,
        {
            "proc/self/cgroup": "0::/../../kubepods/pod1/abc\n",
            "proc/self/mountinfo": V2,
            "sys/fs/cgroup/cpu.max": "400000 100000\n",
        },
    )
    assert cgroup.cpu_quota(root) == (4.0, "/sys/fs/cgroup/cpu.max")


def test_version_1(tmp_path: Path) -> None:
    root = write(
        tmp_path,
        {
            "proc/self/cgroup": "4:memory:/docker/abc\n1:cpu,cpuacct:/docker/abc\n0::/\n",
            "proc/self/mountinfo": V1,
            "sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us": "150000\n",
            "sys/fs/cgroup/cpu,cpuacct/cpu.cfs_period_us": "100000\n",
            "sys/fs/cgroup/memory/memory.limit_in_bytes": "9223372036854771712\n",
            "sys/fs/cgroup/memory/memory.usage_in_bytes": "5000\n",
        },
    )
    assert cgroup.cpu_quota(root) == (1.5, "/sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us")
    assert cgroup.memory_limit(root) is None
    assert cgroup.memory_used(root) == 5000


@pytest.mark.parametrize("text", ["-1", "", "max", "junk", "100000"])
def test_no_quota_and_nonsense(tmp_path: Path, text: str) -> None:
    files = {"proc/self/cgroup": "1:cpu:/\n", "proc/self/mountinfo": V1.replace("cpu,cpuacct", "cpu")}
    root = write(tmp_path, {**files, "sys/fs/cgroup/cpu/cpu.cfs_quota_us": text})
    assert cgroup.cpu_quota(root) is None


def test_a_machine_without_any_of_the_files(tmp_path: Path) -> None:
    assert cgroup.cpu_quota(tmp_path) is None
    assert gather.cpu(tmp_path)["flags"] == []
    assert gather.memory(tmp_path)["total"] is None
    assert gather.cores(tmp_path)["quota"] is None


def test_the_cpu_of_a_virtual_machine(tmp_path: Path) -> None:
    root = write(
        tmp_path,
        {
            "proc/cpuinfo": "processor\t: 0\nmodel name\t: Xeon\nflags\t\t: avx avx2 hypervisor\n\nprocessor\t: 1\n",
            "proc/stat": "cpu  100 0 100 700 0 0 0 100 0 0\n",
            "sys/devices/system/node/node0/x": "",
            "sys/devices/system/node/node1/x": "",
        },
    )
    cpu = gather.cpu(root)
    assert (cpu["model"], cpu["hypervisor"], cpu["numa_nodes"]) == ("Xeon", True, 2)
    assert cpu["steal_share"] == pytest.approx(0.1)


def test_the_cpu_of_an_arm_server(tmp_path: Path) -> None:
    lines = "processor\t: 0\nFeatures\t: fp asimd asimddp\nCPU implementer\t: 0x41\nCPU part\t: 0xd0c\n"
    cpu = gather.cpu(write(tmp_path, {"proc/cpuinfo": lines}))
    assert (cpu["model"], cpu["flags"]) == ("Neoverse N1", ["fp", "asimd", "asimddp"])


def test_only_listed_variables_are_kept() -> None:
    given = {
        "TF_TOKEN_app_terraform_io": "secret",
        "TF_NUM_INTRAOP_THREADS": "2",
        "AWS_SECRET_ACCESS_KEY": "secret",
    }
    assert variables.chosen(given) == {"TF_NUM_INTRAOP_THREADS": "2"}


def test_text_from_outside_is_made_safe() -> None:
    assert clean("a\x1b[31mb\x1b]0;title\x07c\r\n\u202ed") == "abc d"
    assert clean("x" * 50, limit=10) == "x" * 9 + "…"
    assert clean_all({"k\n": ["\x00v", 1, None]}) == {"k": ["�v", 1, None]}
    assert clean("\udcff") == "�"


def test_gathering_imports_no_tensorflow() -> None:
    facts = gather.gather(quick=True)
    assert facts["tensorflow"] == {"asked": False}
    assert facts["cores"]["affinity"] >= 1
    said = "from flatout.environment import gather; gather.gather(quick=True)"
    subprocess.run([sys.executable, "-c", f"{said}; import sys; assert 'tensorflow' not in sys.modules"], check=True)
