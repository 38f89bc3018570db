"""Whatever becomes of the program: its own exit code and output, a clear word, and what was seen until then."""

from __future__ import annotations

import os
import pty
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from observed import FLATOUT, bare, case_in, environment, execute, observed, said, write

from flatout.run import session
from flatout.store import HOME, load
from flatout.trial import launcher

NO_TENSORFLOW = "did not import TensorFlow"

SAME = {
    "raises": ("def f():\n    raise ValueError('no data')\nf()", "The program failed: ValueError: no data"),
    "exits with 3": ("import sys; print('out'); sys.exit(3)", "exit code 3"),
    "exits with a text": ("import sys; sys.exit('bad arguments')", "exit code 1"),
    "exits past Python": ("import os; print('out', flush=True); os._exit(5)", "exit code 5"),
    "aborts": ("import os; os.abort()", "SIGABRT"),
    "is killed": ("import os; print('out', flush=True); os.kill(os.getpid(), 9)", "for want of memory"),
    "terminates itself": ("import os; os.kill(os.getpid(), 15)", "SIGTERM"),
    "has a syntax error": ("def f(:\n    pass", "The program failed: SyntaxError"),
    "prints bytes": ("import sys; sys.stdout.buffer.write(bytes(range(256)) * 300)", NO_TENSORFLOW),
    "reads stdin": ("import sys; print(sys.stdin.buffer.read())", NO_TENSORFLOW),
    "changes directory": ("import os; os.chdir('/'); print(os.getcwd(), __file__)", NO_TENSORFLOW),
    "replaces stdout and excepthook": (
        "import io, sys\nsys.excepthook = lambda *e: print('mine', e[0], file=sys.__stdout__)\n"
        "sys.stdout = io.StringIO(); sys.stderr = None\nprint('lost'); raise KeyError('k')",
        "The program failed: KeyError",
    ),
    "forks": (
        "import os, sys\nprint('parent', flush=True)\npid = os.fork()\nif not pid: sys.exit(4)\n"
        "print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])); sys.exit(6)",
        "forked 1 times",
    ),
    "uses multiprocessing": (
        "import multiprocessing, sys\ndef f(x):\n    return x * x, 'flatout' in sys.modules\n"
        "if __name__ == '__main__':\n    for how in ('fork', 'spawn'):\n"
        "        with multiprocessing.get_context(how).Pool(2) as pool:\n"
        "            print([x for x, _ in pool.map(f, range(5))])",
        "forked 2 times",
    ),
    "starts Python": (
        "import os, subprocess, sys\nprint({k: v for k, v in os.environ.items() if 'FLATOUT' in k or 'PYTHONP' in k})\n"
        "print(sys.path, sys.argv, __name__, open(os.devnull).fileno(), flush=True)\n"
        "subprocess.run([sys.executable, '-c', 'import sys; print(sys.path, \"flatout\" in sys.modules)'])",
        NO_TENSORFLOW,
    ),
    "closes all descriptors": (
        "import os\nos.closerange(3, 4096)\nf = open('mine', 'w')\nfor i in range(600): os.dup(f.fileno())\n"
        "f.write('all mine')",
        NO_TENSORFLOW,
    ),
    "leaves a daemon thread": (
        "import threading, time\nthreading.Thread(target=time.sleep, args=(60,), daemon=True).start(); print('end')",
        NO_TENSORFLOW,
    ),
    "runs out of memory": (
        "import resource\nresource.setrlimit(resource.RLIMIT_AS, (2**29, 2**29))\nx = bytearray(2**31)",
        "The program failed: MemoryError",
    ),
    "has no TensorFlow": (
        "import sys\nclass Without:\n    def find_spec(self, name, path=None, target=None):\n"
        "        if name == 'tensorflow': raise ModuleNotFoundError(f'No module named {name!r}', name=name)\n"
        "sys.meta_path.insert(0, Without())\nimport tensorflow",
        "TensorFlow is not installed for this Python",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", SAME)
def test_the_program_ends_as_it_would_have(name: str, tmp_path: Path) -> None:
    source, word = SAME[name]
    program = write(tmp_path, source)
    expected = bare(tmp_path, program.name, "--epochs", "3", "-q", input=b"\xff\x00line\n")
    left = _files(tmp_path)
    ended = observed(tmp_path, program.name, "--epochs", "3", "-q", input=b"\xff\x00line\n")
    assert (ended.returncode, ended.stdout) == (expected.returncode, expected.stdout)
    assert word in " ".join([*ended.stderr.split(), said(case_in(tmp_path))]), ended.stderr
    assert expected.stderr in ended.stderr
    assert _files(tmp_path) == left
    told = case_in(tmp_path).program
    assert (told.exit_code if told.signal is None else -signal.Signals[told.signal]) == expected.returncode


@pytest.mark.parametrize(("command", "code"), [("run", 1), ("tune", 3)])
def test_what_failed_before_tensorflow_came_is_what_is_told(command: str, code: int, tmp_path: Path) -> None:
    write(tmp_path, "import tensorflow as tf\n\ndef train(model, data:\n    return model.fit(data)\n")
    ended = execute([*FLATOUT, command, "program.py"], tmp_path)
    case = case_in(tmp_path)
    assert ended.returncode == code
    assert "SyntaxError" in case.verdict, "the verdict comes first"
    assert "line 3" in (case.program.error or "")
    assert "failed before it imported TensorFlow: SyntaxError" in said(case)
    assert NO_TENSORFLOW not in ended.stderr


def _files(directory: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in directory.iterdir() if path.name != HOME}


def test_arguments_are_the_programs_own(tmp_path: Path) -> None:
    program = write(
        tmp_path,
        """
        import argparse
        parser = argparse.ArgumentParser()
        parser.add_argument("--json"); parser.add_argument("-m", type=int); parser.add_argument("rest", nargs="*")
        print(parser.parse_args())
        """,
    )
    no_text = os.fsdecode(b"\xff")
    for arguments in (["--json", "x", "-m", "3", "a", "--", "--b"], ["--help"], ["-m", "no"], [no_text]):
        expected = bare(tmp_path, program.name, *arguments)
        ended = observed(tmp_path, program.name, *arguments)
        assert (ended.returncode, ended.stdout) == (expected.returncode, expected.stdout)
        assert "Traceback" not in ended.stderr
        assert case_in(tmp_path).program.command[1:] == (program.name, *arguments)


def test_modules_scripts_and_directories(tmp_path: Path) -> None:
    (tmp_path / "package").mkdir()
    write(tmp_path / "package", "import sys; print(__name__, __package__, sys.argv[1:]); sys.exit(9)", "__main__.py")
    script = write(tmp_path, f"#!{sys.executable}\nimport sys; print('script', sys.argv[1:]); sys.exit(8)", "tool")
    script.chmod(0o755)
    path = environment(PATH=f"{tmp_path}:{os.environ['PATH']}")
    assert observed(tmp_path, "-m", "package", "-v").stdout == bare(tmp_path, "-m", "package", "-v").stdout
    assert observed(tmp_path, "package").returncode == 9
    ended = observed(tmp_path, "tool", "x", env=path)
    assert (ended.returncode, ended.stdout) == (8, b"script ['x']\n")


def test_a_shell_script_with_several_pythons_is_observed_once(tmp_path: Path) -> None:
    package = tmp_path / "old" / "tensorflow"
    package.mkdir(parents=True)
    write(package, "__version__ = '2.16.0'", "__init__.py")
    script = write(
        tmp_path,
        f"""\
        #!/bin/sh
        {sys.executable} -c 'print(1)'
        PYTHONPATH=$PYTHONPATH:{tmp_path}/old {sys.executable} -c 'import tensorflow; print(2)'
        {sys.executable} -c 'print(3)'
        exit 5
        """,
        "train.sh",
    )
    script.chmod(0o755)
    ended = observed(tmp_path, "./train.sh")
    assert (ended.returncode, ended.stdout) == (5, b"1\n2\n3\n")
    assert "more than one Python ran" in said(case_in(tmp_path))
    assert case_in(tmp_path).environment["tensorflow_version"] == "2.16.0"


@pytest.mark.parametrize(
    ("program", "word"),
    [("gone.py", "no program at 'gone.py'"), ("no-such-command", "nor a command on PATH"),
     ("empty", "without a __main__.py"), ("./broken", "cannot be started")],
)  # fmt: skip
def test_a_program_that_cannot_be_started(program: str, word: str, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    write(tmp_path, "no first line that names an interpreter", "broken").chmod(0o755)
    ended = observed(tmp_path, program)
    assert ended.returncode == 127
    assert word in ended.stderr
    assert "Traceback" not in ended.stderr


def test_what_cannot_work_is_said_before_the_program_runs(tmp_path: Path) -> None:
    write(tmp_path, "print('ran')")
    for options in (["--view", "nonsense"], ["--json", "no/such/directory.json"], ["--flame", "--nsys"]):
        ended = observed(tmp_path, *options, "program.py")
        assert (ended.returncode, ended.stdout) == (2, b"")
        assert ended.stderr.startswith("flatout: ")


def test_the_users_own_sitecustomize_and_pythonpath_are_kept(tmp_path: Path) -> None:
    own = tmp_path / "own"
    own.mkdir()
    write(own, "import builtins; builtins.mine = 'mine'", "sitecustomize.py")
    write(tmp_path, "import os, sys, sitecustomize; print(mine, os.environ['PYTHONPATH'], sys.path, sitecustomize)")
    env = environment(PYTHONPATH=f"{own}:/nowhere")
    assert observed(tmp_path, "program.py", env=env).stdout == bare(tmp_path, "program.py", env=env).stdout


def test_descriptors_of_the_shell_reach_the_program(tmp_path: Path) -> None:
    write(tmp_path, "import os, sys; print(open(sys.argv[1]).read()); os.write(7, b'seven')")
    line = f"exec {' '.join(FLATOUT)} run program.py <(echo hello) 7>seven"
    ended = execute(["bash", "-c", line], tmp_path)
    assert (ended.returncode, ended.stdout) == (0, b"hello\n\n")
    assert (tmp_path / "seven").read_bytes() == b"seven"


# ── another or an old TensorFlow ─────────────────────────────────────────────────────────────────────────────


def test_an_old_tensorflow(tmp_path: Path) -> None:
    package = tmp_path / "old" / "tensorflow"
    package.mkdir(parents=True)
    write(package, "__version__ = '2.10.0'", "__init__.py")
    write(tmp_path, "import tensorflow as tf; print(tf.__version__)")
    ended = observed(tmp_path, "program.py", env=environment(PYTHONPATH=str(tmp_path / "old")))
    assert (ended.returncode, ended.stdout) == (0, b"2.10.0\n")
    assert "TensorFlow 2.10.0 is older than flatout was made for" in said(case_in(tmp_path))
    assert "No step was seen" in ended.stderr
    assert "views are lost (conversions, functions, " in said(case_in(tmp_path))


def test_a_tensorflow_that_does_not_come_up(tmp_path: Path) -> None:
    package = tmp_path / "broken" / "tensorflow"
    package.mkdir(parents=True)
    write(package, "raise ImportError('libcudart.so.99: cannot open shared object file')", "__init__.py")
    write(tmp_path, "import tensorflow")
    ended = observed(tmp_path, "program.py", env=environment(PYTHONPATH=str(tmp_path / "broken")))
    assert ended.returncode == 1
    assert "could not be imported: ImportError: libcudart.so.99" in said(case_in(tmp_path))


def test_a_python_without_tensorflow(tmp_path: Path) -> None:
    other = next((p for p in ("/usr/bin/python3", "/usr/local/bin/python3") if os.access(p, os.X_OK)), None)
    if other is None or execute([other, "-c", "import tensorflow"], tmp_path).returncode == 0:
        pytest.skip("no other Python without TensorFlow here")
    write(tmp_path, "import sys; print(sys.executable, flush=True); import tensorflow")
    ended = observed(tmp_path, other, "program.py")
    assert (ended.returncode, ended.stdout) == (1, f"{other}\n".encode())
    assert "TensorFlow is not installed for this Python" in said(case_in(tmp_path))


# ── signals ──────────────────────────────────────────────────────────────────────────────────────────────────

PATIENT = """
import signal, sys, time
told = []
def stop(number, frame):
    print("told", number, flush=True)
    told.append(number)
if "term" in sys.argv:
    signal.signal(signal.SIGTERM, stop)
try:
    print("ready", flush=True)
    while not told:
        time.sleep(0.01)
except KeyboardInterrupt:
    print("interrupted", flush=True)
    try:
        time.sleep(0.8)  # long enough for the same signal to come a second time
    except KeyboardInterrupt:
        print("interrupted twice", flush=True)
    raise
time.sleep(0.8)  # as above
sys.exit(7)
"""


@pytest.mark.parametrize("to", ["group", "flatout", "terminal"])
def test_ctrl_c_reaches_the_program_once(to: str, tmp_path: Path) -> None:
    program = write(tmp_path, PATIENT)
    if to == "terminal":
        text, status = _in_terminal([*FLATOUT, "run", program.name], tmp_path)
        assert text.count("interrupted") == 1
        assert "KeyboardInterrupt" in text
        assert os.waitstatus_to_exitcode(status) == -signal.SIGINT
    else:
        code, out, err = _signalled(["run", program.name], tmp_path, signal.SIGINT, to)
        assert (code, out) == (-signal.SIGINT, "interrupted\n")
        assert "The program failed: KeyboardInterrupt" in err
    assert case_in(tmp_path).program.signal == "SIGINT"


@pytest.mark.parametrize("to", ["group", "flatout"])
def test_sigterm_reaches_the_program_once(to: str, tmp_path: Path) -> None:
    program = write(tmp_path, PATIENT)
    code, out, _ = _signalled(["run", program.name, "term"], tmp_path, signal.SIGTERM, to)
    assert (code, out) == (7, "told 15\n")


def _signalled(arguments: list[str], cwd: Path, number: int, to: str) -> tuple[int, str, str]:
    process = subprocess.Popen(
        [*FLATOUT, *arguments], cwd=cwd, env=environment(), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
        stderr=subprocess.PIPE, text=True, start_new_session=True,
    )  # fmt: skip
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    os.killpg(process.pid, number) if to == "group" else process.send_signal(number)
    out, err = process.communicate(timeout=400)
    return process.returncode, out, err


def _in_terminal(command: list[str], cwd: Path) -> tuple[str, int]:
    pid, terminal = pty.fork()
    if pid == 0:
        os.chdir(cwd)
        os.execve(command[0], command, environment())
    text, pressed = b"", False
    while True:
        try:
            text += os.read(terminal, 4096)
        except OSError:
            break
        if b"ready" in text and not pressed:
            pressed = True
            os.write(terminal, b"\x03")
    os.close(terminal)
    return text.decode(errors="replace"), os.waitpid(pid, 0)[1]


# ── nowhere to write ─────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("where", ["/proc", "file"])
def test_a_directory_that_cannot_be_written(where: str, tmp_path: Path) -> None:
    program = write(tmp_path, "print('out')")
    if where == "file":
        (tmp_path / HOME).write_text("in the way")
    cwd = Path("/proc") if where == "/proc" else tmp_path
    ended = observed(cwd, program, env=environment(TMPDIR=str(tmp_path)))
    assert (ended.returncode, ended.stdout) == (0, b"out\n")
    assert "The case cannot be kept in" in ended.stderr
    assert list(tmp_path.glob("flatout-*/case.json"))


def test_nowhere_at_all_to_write(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    def full(*args: object, **kwargs: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(session.store, "new_directory", full)
    monkeypatch.setattr(session.tempfile, "mkdtemp", full)
    ended = session.run(session.RunRequest(str(write(tmp_path, "import sys; print('out'); sys.exit(4)"))))
    assert ended.returncode == 4
    told = capfd.readouterr()
    assert told.out == "out\n"
    assert "Running unobserved" in told.err


def test_a_file_size_limit(tmp_path: Path) -> None:
    """The recording hits a limit at once (EFBIG stands for every failing write)."""
    write(tmp_path, "print('out')")
    line = f"ulimit -f 0; exec {' '.join(FLATOUT)} run program.py"
    ended = execute(["bash", "-c", line], tmp_path)
    assert (ended.returncode, ended.stdout) == (0, b"out\n")
    assert "File too large" in ended.stderr


def on_a_small_disk(kilobytes: int, directory: Path, *arguments: str) -> list[str]:
    """A command that runs flatout in a full little file system of its own, away from everybody else's mounts."""
    disk = directory / "disk"
    disk.mkdir()
    run = " ".join([*FLATOUT, "run", *arguments])
    line = f"mount -t tmpfs -o size={kilobytes}k none {disk} && cd {disk} && exec {run}"
    if subprocess.run(["unshare", "-m", "mount", "-t", "tmpfs", "none", str(disk)], capture_output=True).returncode:
        pytest.skip("mounting is not permitted here")
    return ["unshare", "-m", "sh", "-c", line]


def test_a_disk_that_is_full_from_the_start(tmp_path: Path) -> None:
    program = write(tmp_path, "print('out')")
    ended = execute(on_a_small_disk(4, tmp_path, str(program)), tmp_path)
    assert (ended.returncode, ended.stdout) == (0, b"out\n")
    assert "No space left on device" in ended.stderr
    assert "Traceback" not in ended.stderr


# ── with TensorFlow ──────────────────────────────────────────────────────────────────────────────────────────

TRAINS = """
import multiprocessing, os, sys, threading, time
import tensorflow as tf
weight = tf.Variable(tf.ones((64, 64)))
@tf.function
def step(x):
    weight.assign(tf.tanh(weight @ x))
    return tf.reduce_sum(weight)
def talk():
    for number in range(100000):
        os.write(2, b"line %d\\n" % number)
        time.sleep(0.002)  # so that it talks throughout
        if done: break
    os.write(2, b"lines %d\\n" % number)
done = []
thread = threading.Thread(target=talk)
thread.start() if "talk" in sys.argv else None
x = tf.ones((64, 64))
steps, began = 0, time.time()
while time.time() - began < float(sys.argv[1]):
    step(x)
    steps += 1
    print("step", steps, time.time(), flush=True)
    time.sleep(0.002)  # what a step takes
done.append(1)
if "kill" in sys.argv: os.kill(os.getpid(), 9)
if "talk" in sys.argv:
    thread.join()
    child = multiprocessing.get_context("fork").Process(target=sys.exit, args=(3,))
    child.start(); child.join(); print(child.exitcode)
"""


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("trained")
    program = write(directory, TRAINS)
    ended = observed(directory, "--window", "5:1000000", program.name, "2.5", "talk")
    (directory / "stderr").write_text(ended.stderr)
    (directory / "stdout").write_bytes(ended.stdout)
    assert ended.returncode == 0, ended.stderr
    return directory


@pytest.mark.slow
def test_a_program_that_ends_while_it_is_traced(trained: Path) -> None:
    case = case_in(trained)
    lines = (trained / "stdout").read_text().split("\n")
    assert case.steps is not None
    assert case.steps.count == sum(line.startswith("step ") for line in lines)
    assert case.steps.split_from.startswith("trace of")
    assert lines[-2] == "3"  # the forked child's own exit code
    assert "forked 1 times" in said(case)


@pytest.mark.slow
def test_no_line_of_the_programs_stderr_is_lost(trained: Path) -> None:
    lines = (trained / "stderr").read_text().splitlines()
    count = next(int(line.split()[1]) for line in lines if line.startswith("lines "))
    assert [line for line in lines if line.startswith("line ")] == [f"line {number}" for number in range(count + 1)]
    assert "profiler_session.cc" not in "\n".join(lines)


@pytest.mark.slow
@pytest.mark.parametrize("damage", ["truncated", "empty", "text", "gone"])
def test_a_damaged_trace_loses_the_trace_only(damage: str, trained: Path, tmp_path: Path) -> None:
    directory = tmp_path / "case"
    shutil.copytree(trained / HOME / "latest", directory)
    trace = next((directory / "trace").rglob("*.xplane.pb"))
    data = trace.read_bytes()
    {
        "truncated": lambda: trace.write_bytes(data[: len(data) // 2]),
        "empty": lambda: trace.write_bytes(b""),
        "text": lambda: trace.write_text("not a trace\n" * 1000),
        "gone": trace.unlink,
    }[damage]()
    case = session.conclude(directory, case_in(trained).program, quiet=True)
    assert case.steps is not None
    assert case.steps.count == case_in(trained).steps.count  # type: ignore[union-attr]
    assert "trace" in said(case)
    assert case.verdict


@pytest.mark.slow
def test_a_kill_while_tracing_keeps_the_steps_until_then(tmp_path: Path) -> None:
    program = write(tmp_path, TRAINS)
    ended = observed(tmp_path, "--window", "100:1000000", program.name, "2.5", "kill")
    assert ended.returncode == -signal.SIGKILL
    times = [float(line.split()[2]) for line in ended.stdout.decode().splitlines()]
    case = case_in(tmp_path)
    assert case.program.signal == "SIGKILL"
    assert case.steps is not None
    assert sum(at < times[-1] - 0.35 for at in times) <= case.steps.count <= len(times)
    assert case.functions
    assert "ended abruptly" in said(case)
    assert case.run is not None
    assert not case.run.complete
    assert case.run.seconds_of("steps") > 0
    assert sum(part.seconds for part in case.run.parts) == pytest.approx(case.run.seconds)


@pytest.mark.slow
@pytest.mark.exhaustive  # of the signals in training the one that leaves no time stays
def test_ctrl_c_in_training(tmp_path: Path) -> None:
    each_step = 'print("step", steps, time.time(), flush=True)'
    program = write(tmp_path, TRAINS.replace(each_step, 'steps == 200 and print("ready", flush=True)'))
    code, _, err = _signalled(["run", program.name, "60"], tmp_path, signal.SIGINT, "group")
    assert code == -signal.SIGINT
    assert "KeyboardInterrupt" in err
    case = case_in(tmp_path)
    assert case.steps is not None
    assert case.steps.count >= 200
    assert case.program.error is not None
    assert case.program.error.startswith("KeyboardInterrupt")
    assert str(program) in case.program.error
    assert case.run is not None
    assert case.run.complete
    assert case.run.seconds_of("steps") > 0


@pytest.mark.slow
@pytest.mark.exhaustive  # the disk that is full from the start stays
def test_a_disk_that_fills_up_in_training(tmp_path: Path) -> None:
    program = write(tmp_path, TRAINS)
    kept = tmp_path / "case.json"
    command = on_a_small_disk(60, tmp_path, "--json", str(kept), str(program), "2.5")
    ended = execute(command, tmp_path)
    assert ended.returncode == 0
    assert ended.stdout.startswith(b"step 1 ")
    assert "No space left on device" in ended.stderr
    assert "Traceback" not in ended.stderr
    case = load(kept)
    assert case.steps is not None
    assert case.steps.count >= 20


def test_ctrl_c_while_analysing_keeps_the_programs_exit_code(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    def interrupted(*args: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(session, "conclude", interrupted)
    assert session.run(session.RunRequest(str(write(tmp_path, "raise SystemExit(4)")))).returncode == 4
    assert "interrupted while analysing; the recording is in" in capfd.readouterr().err


def test_no_process_left_for_a_witness(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def no_more() -> int:
        raise BlockingIOError(11, "Resource temporarily unavailable")

    monkeypatch.setattr(os, "fork", no_more)
    program = write(tmp_path, "raise SystemExit(4)")
    assert launcher.run([sys.executable, str(program)], environment()).returncode == 4


def test_leaving_by_a_signal_that_has_no_name() -> None:
    assert launcher.Ended(-63, 1.0).signal_name == "signal 63"
