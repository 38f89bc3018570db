"""Trials that are forked from one process, for real; the programs import no TensorFlow, so nothing slow is needed."""

from __future__ import annotations

import gc
import json
import os
import signal
import socket
import subprocess
import sys
import textwrap
import threading
from pathlib import Path

import pytest

from flatout.process import forking
from flatout.process.fork_server import ForkServer, ServerGone
from flatout.process.forking import Fork
from flatout.process.messages import encode
from flatout.process.watchdog import Watchdog
from flatout.trial import temporary
from flatout.trial.child_process import ChildProcess, Ended, Launch
from flatout.trial.fork_servers import ForkServers, start_server
from flatout.trial.settings import ChildSettings, TrialRequest
from waiting import until

PROGRAM = """
import json, os, sys, tempfile, time
observer = next(finder.observer for finder in sys.meta_path if hasattr(finder, "observer"))
def probe():
    return observer.streams.make("fit", "steps", "sleeps")
stream = probe()
said = [sys.argv, __name__, __file__, sys.path[0], os.environ["TMPDIR"], tempfile.gettempdir(), os.getsid(0)]
print(json.dumps([*said, "fractions" in sys.modules]), flush=True)
how = sys.argv[1] if len(sys.argv) > 1 else "well"
for step in range(1000):
    began = time.perf_counter()
    time.sleep(0.001)  # what a step takes
    if step == 30 and how == "raises":
        raise ValueError("no luck")
    if step == 30 and how == "leaves":
        sys.exit(3)
    if step == 30 and how == "dies":
        left = os.fork()
        if left:
            print(left, flush=True)
            os.kill(os.getpid(), 9)
        time.sleep(600)
    observer.ticks.tick(stream, began, time.perf_counter())
"""


@pytest.fixture
def watchdog():
    made = Watchdog()
    yield made
    made.close()


@pytest.fixture
def fork_servers(tmp_path, watchdog):
    made = ForkServers([sys.executable, str(program_in(tmp_path))], watchdog, tmp_path)
    made.packages = ["fractions"]
    yield made
    made.close()


@pytest.fixture
def program(tmp_path: Path) -> Path:
    return program_in(tmp_path)


def environment_of(server: ForkServer) -> list[bytes]:
    """Its variables, once its interpreter has been started: in the middle of exec the system shows none."""
    return until(Path(f"/proc/{server.process.pid}/environ").read_bytes).split(b"\0")


def program_in(directory: Path) -> Path:
    path = directory / "sleeps.py"
    path.write_text(PROGRAM)
    return path


def child_of(fork_servers, watchdog, program: Path, *words: str, place: str = "trial", sources=()) -> ChildProcess:
    launch = Launch((sys.executable, str(program), *words), sources=tuple(sources))
    child = ChildProcess(launch, program.parent / place, watchdog, fork_servers)
    assert not isinstance(child.process, subprocess.Popen)
    return child


def test_a_forked_trial_is_the_program_as_python_would_run_it(tmp_path, fork_servers, watchdog, program):
    child = child_of(fork_servers, watchdog, program, "well", "--epochs", "3")
    assert child.warm(30).steps > 0
    child.go(5)
    assert child.block(30).steps == 5
    said = json.loads((tmp_path / "trial" / "output.txt").read_text().splitlines()[0])
    own = temporary.link_of(tmp_path / "trial") or str(tmp_path / "trial" / "tmp")
    expected = [[str(program), "well", "--epochs", "3"], "__main__", str(program), str(tmp_path), own, own]
    assert said == [*expected, child.process.pid, True]
    child.end()
    assert child.process.poll() is not None


@pytest.mark.parametrize(("how", "code", "words"), [("raises", 1, "ValueError: no luck"), ("leaves", 3, "")])
def test_how_a_forked_trial_ends_is_known(how, code, words, fork_servers, watchdog, program):
    child = child_of(fork_servers, watchdog, program, how)
    child.warm(30)
    with pytest.raises(Ended, match=words or "the program failed"):  # noqa: PT012
        for _ in range(100):
            child.go(10)
            child.block(30)
    assert child.process.wait(5) == code
    if words:
        traceback = (program.parent / "trial" / "output.txt").read_text()
        assert "fork_server" not in traceback
        assert "patched_main" not in traceback
    child.end()


def test_the_end_of_a_program_is_seen_while_a_process_lives_that_it_has_forked(fork_servers, watchdog, program):
    """It has a copy of the pipe on which the program answers. Nobody would wait for the end of a week (`--prove`)."""
    child = child_of(fork_servers, watchdog, program, "dies")
    child.warm(30)
    with pytest.raises(Ended, match="the program failed"):  # noqa: PT012
        for _ in range(100):
            child.go(10)
            child.block(10)
    left = int((program.parent / "trial" / "output.txt").read_text().splitlines()[1])
    assert _lives(left)
    child.end()
    assert not _lives(left)


def test_changed_sources_run_in_a_forked_trial(tmp_path, fork_servers, watchdog, program):
    changed = tmp_path / "changed.py"
    changed.write_text(PROGRAM.replace("*said, ", '"changed", *said, '))
    child = child_of(fork_servers, watchdog, program, sources=[(str(program), str(changed))])
    child.warm(30)
    assert (tmp_path / "trial" / "output.txt").read_text().startswith('["changed"')
    child.end()


def test_without_a_fork_server_a_trial_is_started_the_long_way(fork_servers, watchdog, program):
    fork_servers.for_variables({}).close()
    launch = Launch((sys.executable, str(program)))
    child = ChildProcess(launch, program.parent / "trial", watchdog, fork_servers)
    assert isinstance(child.process, subprocess.Popen)
    assert child.warm(30).steps > 0
    child.end()


def test_variables_of_levers_have_a_fork_server_of_their_own(fork_servers):
    plain = fork_servers.for_variables({})
    other = fork_servers.for_variables({"TF_ENABLE_ONEDNN_OPTS": "0"})
    assert plain is not other
    assert fork_servers.for_variables({"TF_ENABLE_ONEDNN_OPTS": "0"}) is other
    assert b"TF_ENABLE_ONEDNN_OPTS=0" in environment_of(other)


def test_what_the_program_sets_before_its_import_is_set_before_ours(fork_servers):
    before = fork_servers.for_variables({})
    fork_servers.prepare(["fractions"], {"TF_CPP_MIN_LOG_LEVEL": "3"})
    assert fork_servers.for_variables({}) is before
    fork_servers.prepare(["fractions"], {"TF_DETERMINISTIC_OPS": "1"})
    after = fork_servers.for_variables({})
    assert after is not before
    assert b"TF_DETERMINISTIC_OPS=1" in environment_of(after)


def test_what_an_import_sets_is_set_for_the_program(tmp_path, fork_servers, watchdog, program):
    (tmp_path / "sets_a_variable.py").write_text("import os\nos.environ['SET_BY_IMPORT'] = 'yes'\n")
    fork_servers.packages = ["sets_a_variable"]
    changed = tmp_path / "changed.py"
    changed.write_text(PROGRAM.replace("*said, ", 'os.environ.get("SET_BY_IMPORT"), *said, '))
    child = child_of(fork_servers, watchdog, program, sources=[(str(program), str(changed))])
    child.warm(30)
    assert (tmp_path / "trial" / "output.txt").read_text().startswith('["yes"')
    child.end()


def test_a_server_with_threads_is_not_forked(tmp_path, watchdog, monkeypatch):
    (tmp_path / "starts_threads.py").write_text(
        "import threading, time\n"
        "for _ in range(40): threading.Thread(target=time.sleep, args=(100,), daemon=True).start()\n"
    )
    monkeypatch.chdir(tmp_path)  # beside the program
    server = start_server([sys.executable], "sleeps.py", dict(os.environ), tmp_path, watchdog)
    server.prepare(["starts_threads"])
    with pytest.raises(ServerGone, match="threads"):
        server.start(TrialRequest((), {}, ChildSettings("")), tmp_path, tmp_path / "output.txt", [])
    server.close()


def test_a_forked_trial_does_not_outlive_a_killed_coordinator(tmp_path, program):
    script = textwrap.dedent(f"""
        import signal, sys
        from pathlib import Path
        sys.path[:0] = {[str(Path(__file__).parent), str(Path(__file__).parents[1])]!r}
        from test_trial_fork_servers import *
        watchdog = Watchdog()
        fork_servers = ForkServers([sys.executable, {str(program)!r}], watchdog, Path({str(tmp_path)!r}))
        fork_servers.packages = []
        child = child_of(fork_servers, watchdog, Path({str(program)!r}))
        print(fork_servers.for_variables({{}}).process.pid, child.process.pid, flush=True)
        signal.pause()
    """)
    coordinator = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True)
    assert coordinator.stdout is not None
    pids = [int(word) for word in coordinator.stdout.readline().split()]
    assert len(pids) == 2
    coordinator.kill()
    coordinator.wait()
    until(lambda: not any(map(_lives, pids)), 10)


def test_a_child_whose_server_is_gone_has_ended_where_nobody_asks_for_its_end() -> None:
    """The first process of a container often asks for none: what has ended stays as a zombie."""
    pid = os.fork()
    if pid == 0:
        os._exit(0)
    try:
        os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)
        server = ForkServer.__new__(ForkServer)
        server.gone, server._exit_codes, server._lock = "it has ended", {}, threading.RLock()
        assert server.wait_for(pid, 1.0) == -9
    finally:
        os.waitpid(pid, 0)


def _lives(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def test_a_command_that_is_no_python_has_no_fork_server(tmp_path, watchdog):
    assert ForkServers(["/usr/bin/env", "python", "train.py"], watchdog, tmp_path).for_variables({}) is None


FORKS = """
import os, signal, socket, sys
from flatout.process.forking import serve
serve(socket.socket(fileno=int(sys.argv[1])))
os.kill(os.getpid(), signal.SIGSTOP)
"""


def stats_of(children: Path) -> list[Path]:
    return [Path(f"/proc/{pid}/stat") for pid in children.read_text().split()]


def test_a_stopped_trial_goes_where_nobody_has_heard_that_it_began(tmp_path):
    """Words that are left unread when a socket is closed reset the connection: that is an end like any other."""
    request = tmp_path / "request.json"
    request.write_text("{}")
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    hold, release = os.pipe()
    os.write(release, b".")
    command = [sys.executable, "-c", FORKS, str(theirs.fileno())]
    server = subprocess.Popen(command, pass_fds=(theirs.fileno(),), stderr=subprocess.DEVNULL)
    theirs.close()
    socket.send_fds(ours, [encode(Fork(str(request), str(tmp_path / "output.txt"))).encode()], [hold])
    children = Path(f"/proc/{server.pid}/task/{server.pid}/children")
    trial = until(lambda: next((stat for stat in stats_of(children) if ") T " in stat.read_text()), None))
    ours.close()
    server.wait(timeout=60)
    try:
        until(lambda: not trial.exists())
    finally:
        os.close(hold)
        os.close(release)
        if trial.exists():
            os.kill(int(trial.parent.name), signal.SIGKILL)


def test_packages_are_imported_without_a_look_for_garbage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "large_package.py").write_text("import gc\nCOLLECTED = gc.isenabled()\n")
    monkeypatch.syspath_prepend(tmp_path)
    ours, theirs = socket.socketpair()
    with ours, theirs:
        forking._import(theirs, ["large_package", "no_such_package"])
    assert sys.modules.pop("large_package").COLLECTED is False
    assert gc.isenabled()
