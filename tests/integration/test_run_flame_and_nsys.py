"""`--flame` with the real py-spy, `--nsys` with an executable that stands where Nsight Systems would."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from observed import case_in, environment, observed, write

from flatout.observe.observer import Observer
from flatout.observe.probes import nvtx_ranges
from flatout.observe.recorder import Recorder
from flatout.observe.settings import ObserveSettings
from flatout.run import flame
from flatout.store import HOME
from flatout.trial import launcher

BUSY = """
import sys, time
def work_that_takes_long():
    until = time.time() + 1.5
    while time.time() < until:
        sum(range(1000))
work_that_takes_long()
print("done")
sys.exit(3)
"""


def _py_spy() -> str | None:
    return shutil.which("py-spy", path=os.path.dirname(sys.executable)) or shutil.which("py-spy")


@pytest.mark.skipif(_py_spy() is None, reason="py-spy is not installed")
def test_a_flame_graph_of_the_program(tmp_path: Path) -> None:
    write(tmp_path, BUSY)
    ended = observed(tmp_path, "--flame", "program.py")
    assert (ended.returncode, ended.stdout) == (3, b"done\n")
    picture = next((tmp_path / HOME / "cases").rglob("flame.svg"))
    assert f"flame graph in {picture}" in ended.stderr
    assert "work_that_takes_long" in picture.read_text()
    assert {path.name for path in tmp_path.iterdir()} == {"program.py", HOME}


def test_py_spy_missing_is_told_before_the_program_starts(tmp_path: Path) -> None:
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "python").symlink_to(os.path.realpath(sys.executable))
    write(tmp_path, "print('ran')")
    source = (
        "import sys; sys.executable = '%s/bin/python'; sys.argv[0] = 'flatout'; import flatout.cli; flatout.cli.main()"
    )
    ended = subprocess.run(
        [sys.executable, "-c", source % tmp_path, "run", "--flame", "program.py"],
        cwd=tmp_path, env=environment(PATH=str(tmp_path / "bin")), capture_output=True, text=True,
    )  # fmt: skip
    assert (ended.returncode, ended.stdout) == (3, "")
    assert 'pip install "flatout[flame]"' in ended.stderr


@pytest.mark.parametrize(
    ("script", "word"),
    [
        ("echo 'Permission Denied: Try running again with elevated permissions' >&2; exit 1", "SYS_PTRACE"),
        ("echo 'Error: something else' >&2; exit 1", "py-spy said: Error: something else"),
        ("exec sleep 60", "did not finish"),
    ],
)
def test_the_program_runs_to_its_end_whatever_becomes_of_py_spy(
    script: str, word: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    tool = write(tmp_path, f"#!/bin/sh\n{script}\n", "py-spy")
    tool.chmod(0o755)
    monkeypatch.setattr(flame, "_find", lambda: str(tool))
    monkeypatch.setattr(flame, "PATIENCE", 0.3)
    monkeypatch.setattr(flame, "START", 0.1)
    program = write(tmp_path, "import time; time.sleep(0.3); raise SystemExit(5)")
    ended = launcher.run([sys.executable, str(program)], dict(os.environ), flame.prepare(tmp_path))
    assert ended.returncode == 5
    assert word in capfd.readouterr().err


NSYS = """\
#!/bin/sh
# Takes its own options away and becomes the program, as Nsight Systems does.
echo "$@" > "$NSYS_LOG"
shift
while [ "${1#--}" != "$1" ]; do shift; done
exec "$@"
"""


def test_the_program_runs_under_nsight_systems(tmp_path: Path) -> None:
    (tmp_path / "bin").mkdir()
    write(tmp_path / "bin", NSYS, "nsys").chmod(0o755)
    write(tmp_path, "import sys; print(sys.argv); sys.exit(6)")
    log = tmp_path / "log"
    env = environment(PATH=f"{tmp_path}/bin:{os.environ['PATH']}", NSYS_LOG=str(log))
    ended = observed(tmp_path, "--nsys", "program.py", "--trace", "x", env=env)
    assert (ended.returncode, ended.stdout) == (6, b"['program.py', '--trace', 'x']\n")
    words = log.read_text().split()
    assert words[0] == "profile"
    assert "--trace=cuda,nvtx,osrt,cudnn,cublas" in words
    assert "--force-overwrite=true" in words
    assert any(word.startswith("--output=") and HOME in word for word in words)
    assert words[-4:] == [sys.executable, "program.py", "--trace", "x"]
    assert case_in(tmp_path).program.command == (sys.executable, "program.py", "--trace", "x")


def test_without_nsight_systems_the_command_is_told(tmp_path: Path) -> None:
    write(tmp_path, "print('ran')")
    ended = observed(tmp_path, "--nsys", "program.py", "a b", env=environment(PATH=str(tmp_path)))
    assert (ended.returncode, ended.stdout) == (3, b"")
    assert "nsys profile --trace=cuda,nvtx,osrt,cudnn,cublas" in ended.stderr
    assert "program.py 'a b'" in ended.stderr


def _observer(tmp_path: Path, nvtx: bool) -> Observer:
    return Observer(Recorder(str(tmp_path)), ObserveSettings(nvtx=nvtx, trace=False))


def test_each_step_is_an_nvtx_range(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    nvtx = pytest.importorskip("nvtx")
    seen: list[str] = []
    push, pop = nvtx.push_range, nvtx.pop_range
    monkeypatch.setattr(nvtx, "push_range", lambda text, **more: (seen.append(f"push {text}"), push(text, **more)))
    monkeypatch.setattr(nvtx, "pop_range", lambda **more: (seen.append("pop"), pop(**more)))
    observer = _observer(tmp_path, nvtx=True)
    nvtx_ranges.on_tensorflow(observer, sys)
    inner, outer = observer.streams.make("function", 1, "inner"), observer.streams.make("fit", 2, "fit")
    for step in range(2):
        observer.ticks.tick(inner, step, step + 0.5)
        observer.ticks.tick(outer, step, step + 1.0)
    observer.finish()
    assert seen == ["push step 1", "pop", "push step 1", "pop", "push step 2", "pop"]
    assert outer.count == 2


def test_without_nsys_the_hot_path_is_untouched(tmp_path: Path) -> None:
    observer = _observer(tmp_path, nvtx=False)
    nvtx_ranges.on_tensorflow(observer, sys)
    assert "tick" not in vars(observer)


def test_neither_nvtx_nor_its_library_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nvtx_ranges, "_package", lambda: None)
    monkeypatch.setattr(nvtx_ranges, "_library", lambda: None)
    nvtx_ranges.on_tensorflow(_observer(tmp_path, nvtx=True), sys)
    assert "pip install nvtx" in (tmp_path / "facts.jsonl").read_text()
