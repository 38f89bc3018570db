"""Ways out of a trial, each as a small program: none changes a file of the user's, none reaches another machine, and
no process of a trial outlives it."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import sqlite3
import subprocess
import sys
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from flatout.model.errors import CannotFence
from flatout.process.fence.means import NOTHING, Fence, Leave, Means, decide, means
from flatout.process.launch import start
from flatout.process.watchdog import Tree, Watchdog, marked
from flatout.trial import loggers, refusals, temporary, whole_run
from flatout.trial.child_process import ChildProcess, Launch
from flatout.trial.fork_servers import ForkServers
from waiting import until

pytestmark = pytest.mark.skipif(not means().landlock, reason="this kernel has no Landlock")

ELSEWHERE = "192.0.2.1"
"""An address that no machine has (RFC 5737)."""

SHELL = {
    "redirection": "echo lost > notes.txt",
    "appending": "echo more >> notes.txt",
    "rm": "rm -rf data notes.txt",
    "mv": "mv notes.txt gone.txt; mv data/a.txt data/deep/a.txt",
    "cp": "cp notes.txt data/a.txt",
    "sed-in-place": "sed -i s/real/lost/ notes.txt",
    "dd": "dd if=/dev/zero of=notes.txt count=1",
    "truncate": "truncate -s 0 notes.txt",
    "tee": "echo lost | tee notes.txt",
    "touch": "touch new.txt; touch ../outside/new.txt",
    "mkdir": "mkdir -p runs/one",
    "hard-link": 'ln notes.txt "$TMPDIR/same" && echo lost > "$TMPDIR/same"; ln notes.txt another.txt',
    "symbolic-link": 'ln -s "$PWD/notes.txt" "$TMPDIR/link"; echo lost > "$TMPDIR/link"; ln -s notes.txt link.txt',
    "fifo": "mkfifo pipe",
    "tar": 'tar cf "$TMPDIR/x.tar" notes.txt; echo x > "$TMPDIR/notes.txt"; tar xf "$TMPDIR/x.tar" --overwrite -C data',
    "find-delete": "find . -name '*.txt' -delete",
    "background": "(sleep 0.1; echo lost > notes.txt) & wait",
    "setsid": "setsid sh -c 'echo lost > notes.txt'",
    "isolated-python": "{python} -I -c \"open('notes.txt', 'w').write('lost')\"",
    "python-without-site": "{python} -S -c \"open('notes.txt', 'w').write('lost')\"",
    "python-without-environment": "env -i {python} -c \"open('notes.txt', 'w').write('lost')\"",
    "second-python": "{python} -c pass; {python} -c \"open('notes.txt', 'w').write('lost')\"",
    "python-in-the-home": "cd; {python} -c \"open('.config', 'w').write('lost')\"; echo lost > .config",
    "working-directory-elsewhere": "cd /; echo lost > {project}/notes.txt",
    "at-exit": "trap 'echo lost > notes.txt' EXIT TERM; exit 3",
}
METADATA = {
    "chmod": "chmod 600 notes.txt",
    "times": "touch -d 2001-01-01 notes.txt",
    "attributes": "{python} -I -c \"import os; os.setxattr('notes.txt', 'user.x', b'1')\"",
}
"""What Landlock has no say about: held where there are namespaces."""

PYTHON = {
    "open": "open('notes.txt', 'w').write('lost')",
    "file-io": "io.FileIO('notes.txt', 'w').write(b'lost')",
    "posix": "import posix; posix.close(posix.open('notes.txt', os.O_WRONLY | os.O_TRUNC))",
    "ctypes-open": "c = ctypes.CDLL(None); f = c.open(b'notes.txt', 1 | 512); c.write(f, b'lost', 4)",
    "ctypes-unlink": "c = ctypes.CDLL(None); c.unlink(b'notes.txt'); c.rename(b'data/a.txt', b'data/z.txt')",
    "ctypes-truncate": "ctypes.CDLL(None).truncate(b'notes.txt', ctypes.c_long(0))",
    "mmap": "f = open('notes.txt', 'r+b'); m = mmap.mmap(f.fileno(), 0); m[:4] = b'lost'; m.flush(); m.close()",
    "mmap-of-a-descriptor": "f = os.open('notes.txt', os.O_RDWR); m = mmap.mmap(f, 0); m[:4] = b'lost'",
    "sqlite": "c = sqlite3.connect('base.db'); c.execute('insert into t values (2)'); c.commit()",
    "sqlite-uri": "c = sqlite3.connect('file:base.db', uri=True); c.execute('insert into t values (2)'); c.commit()",
    "rename-across-directories": "os.rename('notes.txt', 'data/moved.txt'); os.rename('data', '../outside/data')",
    "replace": "open('new.txt', 'w').write('lost'); os.replace('new.txt', 'notes.txt')",
    "shutil-move": "shutil.move('data', 'elsewhere'); shutil.copy('notes.txt', 'elsewhere/a.txt')",
    "rmtree": "shutil.rmtree('data'); shutil.rmtree('../outside')",
    "link-and-write": "os.link('notes.txt', 'same.txt'); open('same.txt', 'w').write('lost')",
    "symlink-out": "os.symlink(os.path.abspath('notes.txt'), 'link'); open('link', 'w').write('lost')",
    "directory-descriptor": "d = os.open('data', os.O_RDONLY); os.unlink('a.txt', dir_fd=d)",
    "os-system": "os.system('echo lost > notes.txt')",
    "subprocess": "subprocess.run(['cp', '/dev/null', 'notes.txt'])",
    "thread": "t = threading.Thread(target=lambda: open('notes.txt', 'w').write('lost')); t.start(); t.join()",
    "signal-handler": "signal.signal(10, lambda *_: io.FileIO('notes.txt', 'w')); os.kill(os.getpid(), 10)",
    "at-exit": "atexit.register(lambda: io.FileIO('notes.txt', 'w'))",
    "fork": "os.waitpid(os.fork() or (io.FileIO('notes.txt', 'w') and os._exit(0)), 0)",
    "double-fork": "os.fork() and os.wait() or (os.setsid(), os.fork(), os.system('echo lost > notes.txt'))",
    "spawn": "multiprocessing.get_context('spawn').Process(target=os.remove, args=('notes.txt',)).start()",
    "forkserver": "multiprocessing.get_context('forkserver').Process(target=os.remove, args=('notes.txt',)).start()",
    "logging": "logging.basicConfig(filename='notes.txt', filemode='w'); logging.error('lost')",
    "temporary-file-beside": "tempfile.NamedTemporaryFile(dir='.', delete=False).write(b'lost')",
    "chmod": "os.chmod('notes.txt', 0o600); os.utime('notes.txt', (1, 1))",
    "cache-of-the-user": "os.makedirs(os.path.expanduser('~/.cache/new')); open(os.path.expanduser('~/.config'), 'w')",
}
ALL_OF_PYTHON = """
import atexit, ctypes, io, json, logging, mmap, multiprocessing, os, shutil, signal, sqlite3, subprocess, sys, tempfile
import threading
if __name__ == "__main__":
    for way, code in json.loads(os.environ["WAYS"]).items():
        if os.fork() == 0:
            os.chdir(os.path.join(os.environ["PLACES"], way, "project"))
            os.environ["HOME"] = os.path.join(os.environ["PLACES"], way, "home")
            exec(code)
            sys.exit()
        os.wait()
"""


@pytest.fixture
def user(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    made = place(tmp_path / "user")
    monkeypatch.chdir(made / "project")
    monkeypatch.setenv("HOME", str(made / "home"))
    return made


def place(directory: Path) -> Path:
    """All that is the user's: a project, which is the working directory, a home, and a directory elsewhere."""
    for name, text in {
        "project/notes.txt": "real",
        "project/data/a.txt": "a",
        "project/data/deep/b.txt": "b",
        "home/.config": "real",
        "home/.cache/kept": "real",
        "outside/c.txt": "c",
    }.items():
        path = directory / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    with contextlib.closing(sqlite3.connect(directory / "project" / "base.db")) as base:
        base.execute("create table t (x)")
    return directory


@dataclass(frozen=True)
class Ways:
    """Ways out, each with a place of its own to harm, and one command that tries them all."""

    names: tuple[str, ...]
    places: Path
    words: tuple[str, ...]

    def states(self) -> dict[str, object]:
        return {name: state(self.places / name) for name in self.names}

    def harmed_by(self, before: dict[str, object]) -> list[str]:
        after = self.states()
        return [name for name in self.names if after[name] != before[name]]


def ways_of_shell(tmp_path: Path, ways: Mapping[str, str]) -> Ways:
    places, master = tmp_path / "places", tmp_path / "all.sh"
    lines = ["#!/bin/sh"]
    for name, text in ways.items():
        here = place(places / name)
        script(here, text)
        lines.append(f"(cd {here}/project && HOME={here}/home ./train.sh)")
    master.write_text("\n".join(lines) + "\n")
    master.chmod(0o755)
    return Ways(tuple(ways), places, (str(master),))


@pytest.fixture
def ways_of_python(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Ways:
    places = tmp_path / "places"
    for name in PYTHON:
        place(places / name)
    monkeypatch.setenv("WAYS", json.dumps(PYTHON))
    monkeypatch.setenv("PLACES", str(places))
    master = tmp_path / "all.py"
    master.write_text(ALL_OF_PYTHON)
    return Ways(tuple(PYTHON), places, (sys.executable, str(master)))


@pytest.fixture
def watchdog():
    made = Watchdog()
    yield made
    made.close()


def state(directory: Path) -> dict[str, tuple[object, ...]]:
    """Contents, modes, owners, times and links of everything below."""
    found = {}
    for path in sorted([directory, *directory.rglob("*")]):
        facts = path.lstat()
        content = os.readlink(path) if path.is_symlink() else path.read_bytes() if path.is_file() else b""
        attributes = () if path.is_symlink() else tuple(os.listxattr(path))
        found[str(path)] = (facts.st_mode, facts.st_uid, facts.st_nlink, facts.st_mtime_ns, content, attributes)
    return found


def attempt(tmp_path: Path, watchdog: Watchdog, words: Sequence[str], leave: Leave = NOTHING) -> whole_run.Run:
    return whole_run.run(Launch(tuple(words), leave=leave), tmp_path / "trial", watchdog, 120)


def script(user: Path, text: str) -> list[str]:
    """A shell script of the user's, as a command."""
    path = user / "project" / "train.sh"
    path.write_text("#!/bin/sh\n: ${TMPDIR:?}\n" + text.format(python=sys.executable, project=user / "project") + "\n")
    path.chmod(0o755)
    return [str(path)]


def program(user: Path, text: str, name: str = "train.py") -> list[str]:
    path = user / "project" / name
    path.write_text(text)
    return [sys.executable, str(path)]


HELD = {**SHELL, **METADATA} if means().mounts else SHELL


@pytest.mark.parametrize("where", ["in-its-directory", "elsewhere"])
def test_a_command_changes_no_file(
    where: str, tmp_path: Path, watchdog: Watchdog, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It writes to a copy of its working directory where the kernel offers that; elsewhere it is refused."""
    ways = ways_of_shell(tmp_path, HELD)
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(ways.places if where == "in-its-directory" else tmp_path / "elsewhere")
    before = ways.states()
    assert attempt(tmp_path, watchdog, ways.words).ended
    assert ways.harmed_by(before) == []


def test_a_program_changes_no_file(ways_of_python: Ways, tmp_path: Path, watchdog: Watchdog) -> None:
    before = ways_of_python.states()
    assert attempt(tmp_path, watchdog, ways_of_python.words).ended
    assert ways_of_python.harmed_by(before) == []


def test_a_forked_trial_changes_no_file(ways_of_python: Ways, tmp_path: Path, watchdog: Watchdog) -> None:
    servers = ForkServers(ways_of_python.words, watchdog, tmp_path / "tune")
    servers.packages = ("json",)
    before = ways_of_python.states()
    try:
        child = ChildProcess(Launch(ways_of_python.words), tmp_path / "tune" / "trial", watchdog, servers)
        assert not isinstance(child.process, subprocess.Popen), "it was not forked"
        child.process.wait(timeout=200)
        child.end()
    finally:
        servers.close()
    assert ways_of_python.harmed_by(before) == []


def test_without_a_fence(ways_of_python: Ways, tmp_path: Path) -> None:
    """The tests above are able to fail: each of them is a way out where there is no fence. Nothing outside of the
    test's own directory is written: each way names its place or `TMPDIR`, and a script without that variable ends. The
    names are short because the path of a socket is."""
    temporary = tmp_path / "t"
    temporary.mkdir()
    environment = {**os.environ, "TMPDIR": str(temporary)}
    of_shell = ways_of_shell(tmp_path / "shell", {**SHELL, **METADATA})
    for ways in (of_shell, ways_of_python):
        before = ways.states()
        subprocess.run(ways.words, env=environment, timeout=200, check=False, capture_output=True)
        until(lambda ways=ways, before=before: ways.harmed_by(before) == list(ways.names), 10)


# ── it fails closed ──────────────────────────────────────────────────────────────────────────────────────────────────


def test_nothing_runs_where_the_fence_cannot_be_put_up(user: Path, tmp_path: Path) -> None:
    broken = Fence((str(tmp_path),), landlock=means().landlock, network="no-such-thing")  # type: ignore[arg-type]
    before = state(user)
    with pytest.raises(subprocess.CalledProcessError) as raised:
        subprocess.run(
            broken.command(["sh", "-c", "echo lost > notes.txt"]), check=True, capture_output=True, text=True
        )
    assert raised.value.returncode == 97
    assert "the program was not run" in raised.value.stderr
    assert state(user) == before


@pytest.mark.parametrize("settings", ["{", '{"type": "Nothing"}', ""])
def test_nothing_runs_where_the_shield_cannot_start(settings: str, user: Path, tmp_path: Path) -> None:
    from flatout.trial.child_process import prepared
    from flatout.trial.settings import WholeSettings

    (tmp_path / "trial" / "tmp").mkdir(parents=True)
    command = prepared(
        Launch(tuple(program(user, "open('notes.txt', 'w')"))), tmp_path / "trial", WholeSettings(None, ())
    )
    before = state(user)
    done = subprocess.run(
        command.words, env={**command.environment, "FLATOUT_OBSERVE": settings}, capture_output=True, text=True
    )
    assert done.returncode == 97
    assert "could not be started" in done.stderr
    assert state(user) == before


def test_a_kernel_that_cannot_fence_is_an_error_that_says_what_to_do() -> None:
    with pytest.raises(CannotFence, match="--unfenced"):
        decide(NOTHING, Means(filter=True))
    with pytest.raises(CannotFence, match="--network"):
        decide(NOTHING, Means(landlock=4))
    assert decide(Leave(unfenced=True), Means()) == Fence()
    assert decide(Leave(network=True), Means(landlock=4)) == Fence(landlock=4)
    assert decide(NOTHING, Means(landlock=4, filter=True)) == Fence(landlock=4, network="filter")
    first = decide(NOTHING, Means(landlock=1, mounts=True, namespace=True, filter=True))
    assert (first.held, first.moves, first.network) == (True, True, "namespace")
    assert not decide(NOTHING, Means(landlock=1, filter=True)).moves


def test_a_refused_write_says_so(user: Path, tmp_path: Path, watchdog: Watchdog) -> None:
    done = attempt(tmp_path, watchdog, script(user, "set -e; echo lost > ../outside/c.txt; echo not reached"))
    assert done.failed
    assert "--unfenced" in done.last_line
    done = whole_run.run(
        Launch(tuple(script(user, "echo lost > notes.txt")), leave=Leave(unfenced=True)),
        tmp_path / "unfenced",
        watchdog,
        60,
    )
    assert not done.failed
    assert (user / "project" / "notes.txt").read_text() == "lost\n"


@pytest.mark.skipif(not means().copies, reason="this kernel offers no copies of directories")
def test_a_script_works_with_what_it_and_its_pythons_write(user: Path, tmp_path: Path, watchdog: Watchdog) -> None:
    """Programs of every kind see the same copy, and the user's files stay."""
    text = """
        set -e
        mkdir -p runs/one
        {python} -c "open('runs/one/a.txt', 'w').write('1'); import os; os.rename('notes.txt', 'runs/notes.txt')"
        test "$(cat runs/one/a.txt)" = 1
        {python} -I -c "open('runs/one/a.txt', 'a').write('2')"
        mv runs/one/a.txt data/moved.txt
        {python} -c "assert open('data/moved.txt').read() == '12'; assert open('runs/notes.txt').read() == 'real'"
        rm -rf data
        test ! -e data -a ! -e notes.txt
    """
    words = script(user, textwrap.dedent(text))
    before = state(user)
    done = attempt(tmp_path, watchdog, words)
    assert done.exit_code == 0, (tmp_path / "trial" / "output.txt").read_text()
    assert state(user) == before


# ── the network ──────────────────────────────────────────────────────────────────────────────────────────────────────

LOGGERS = {
    "http": f"import urllib.request; urllib.request.urlopen('http://{ELSEWHERE}/runs', timeout=5)",
    "http-by-name": "import urllib.request; urllib.request.urlopen('https://api.wandb.ai/graphql', timeout=5)",
    "tcp": f"import socket; socket.create_connection(('{ELSEWHERE}', 5432), timeout=5)",
    "udp": f"import socket; socket.socket(type=socket.SOCK_DGRAM).sendto(b'metric:1', ('{ELSEWHERE}', 8125))",
    "asyncio": f"import asyncio; asyncio.run(asyncio.open_connection('{ELSEWHERE}', 443))",
    "below-python": "import _socket; s = _socket.socket(); s.settimeout(5); s.connect(('192.0.2.1', 80))",
    "other-program": f"""
import subprocess, sys
code = "import socket; s = socket.socket(); s.settimeout(5); s.connect(('{ELSEWHERE}', 80))"
subprocess.run([sys.executable, "-I", "-c", code], check=True)
""",
}


@pytest.mark.parametrize("way", LOGGERS)
@pytest.mark.parametrize("by", ["namespace", "filter"])
def test_no_other_machine_is_reached(
    way: str, by: str, user: Path, tmp_path: Path, watchdog: Watchdog, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Refused at once, by an error that names the option, and not by a timeout: no packet was sent."""
    found = means()
    if not getattr(found, by):
        pytest.skip("this kernel does not offer it")
    only = Means(landlock=found.landlock, **{by: True})
    monkeypatch.setattr("flatout.trial.child_process.decide", lambda leave: decide(leave, only))
    done = attempt(tmp_path, watchdog, program(user, LOGGERS[way]))
    output = (tmp_path / "trial" / "output.txt").read_text()
    assert done.failed
    assert "--network" in done.last_line, output
    assert "timed out" not in output.lower()


@pytest.mark.skipif(not means().filter, reason="this kernel does not offer it")
def test_the_filter_leaves_no_family_that_leads_to_another_machine() -> None:
    """Raw packets, virtual machines' hosts and TCP by the name of SMC are none of the internet's families."""
    source = """
        import errno, socket
        from flatout.process.fence.main import put_up
        put_up((), 0, False, "filter", 0)
        refused = []
        for family in range(1, 46):
            try: socket.socket(family, socket.SOCK_DGRAM if family in (1, 16) else socket.SOCK_STREAM).close()
            except OSError as error: refused += [family] if error.errno == errno.ENETUNREACH else []
        assert set(range(1, 46)) - set(refused) == {socket.AF_UNIX, socket.AF_NETLINK, 38}, refused
        socket.socket(socket.AF_UNIX).close()
        socket.socketpair()
        socket.if_nameindex()
    """
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(source)], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr


@pytest.mark.skipif(not means().namespace, reason="this kernel allows no namespaces here")
def test_loopback_stays_but_servers_of_the_users_are_out_of_reach(
    user: Path, tmp_path: Path, watchdog: Watchdog
) -> None:
    talks = """
        import socket, sys
        with socket.create_server(("127.0.0.1", 0)) as server:
            with socket.create_connection(server.getsockname()): pass
        try: socket.create_connection(("127.0.0.1", int(sys.argv[1])))
        except ConnectionRefusedError: raise SystemExit(0)
        raise SystemExit("a server of the user's was reached")
    """
    words = program(user, textwrap.dedent(talks))
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.setblocking(False)
        port = str(server.getsockname()[1])
        assert attempt(tmp_path, watchdog, [*words, port]).exit_code == 0
        with pytest.raises(BlockingIOError):
            server.accept()
        done = whole_run.run(Launch((*words, port), leave=Leave(network=True)), tmp_path / "with-network", watchdog, 60)
        assert done.failed
        server.accept()[0].close()


def test_known_loggers_stay_local(user: Path, tmp_path: Path, watchdog: Watchdog) -> None:
    words = program(user, "import json, os; json.dump(dict(os.environ), open(os.environ['TMPDIR'] + '/../seen', 'w'))")
    attempt(tmp_path, watchdog, words, Leave(network=True))
    seen = json.loads((tmp_path / "trial" / "seen").read_text())
    expected = loggers.kept_local(tmp_path / "trial" / "tmp")
    assert {name: seen[name] for name in expected} == expected
    assert seen["WANDB_MODE"] == seen["NEPTUNE_MODE"] == "offline"


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("cp: cannot create regular file 'x': Permission denied", "--unfenced"),
        ("OSError: [Errno 30] Read-only file system: 'x'", "--unfenced"),
        ("curl: (6) Could not resolve host: example.org", "--network"),
        ("socket.gaierror: [Errno -3] Temporary failure in name resolution", "--network"),
        ("ValueError: shapes do not match", ""),
    ],
)
def test_what_a_failure_has_to_do_with_the_fence(text: str, hint: str) -> None:
    assert hint in refusals.hint_in(text)
    assert bool(refusals.hint_in(text)) == bool(hint)


# ── processes ────────────────────────────────────────────────────────────────────────────────────────────────────────

DAEMON = """
import os, sys, time
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        os.execve("/bin/sleep", ["sleep", "1000"], {})
    os._exit(0)
os.wait()
open(os.environ["TMPDIR"] + "/ready", "w").close()
"""


def test_no_process_outlives_a_trial_that_ends(user: Path, tmp_path: Path, watchdog: Watchdog) -> None:
    from flatout.trial.child_process import prepared
    from flatout.trial.settings import WholeSettings

    (tmp_path / "trial" / "tmp").mkdir(parents=True)
    command = prepared(Launch(tuple(program(user, DAEMON))), tmp_path / "trial", WholeSettings(None, ()))
    process = start(command.words, command.environment, tmp_path / "trial" / "output.txt")
    assert process.wait(timeout=60) == 0
    tree = Tree(process.pid, command.mark)
    strays = tree.strays()
    assert len(strays) == 1, "the daemon lives on, in a session of its own and without its environment"
    tree.signal(signal.SIGSTOP)
    until(lambda: _state(strays[0]) == "T")
    tree.signal(signal.SIGCONT)
    until(lambda: _state(strays[0]) != "T")
    tree.kill()
    assert marked(command.mark) == [] or _state(strays[0]) in "ZX"


@pytest.mark.skipif(means().landlock < 6, reason="this kernel does not hold signals")
def test_processes_of_others_are_not_killed(user: Path, tmp_path: Path, watchdog: Watchdog) -> None:
    with subprocess.Popen(["sleep", "1000"]) as other:
        words = script(user, f"sleep 1000 & kill $! && kill -9 {other.pid}")
        assert attempt(tmp_path, watchdog, words).failed
        assert "not permitted" in (tmp_path / "trial" / "output.txt").read_text()
        assert other.poll() is None
        other.kill()


def test_the_watchdog_kills_what_has_left_the_group(user: Path, tmp_path: Path) -> None:
    mark = 987_654_321
    fence = Fence(mark=mark)
    watchdog = Watchdog()
    process = subprocess.Popen(
        fence.command([*program(user, DAEMON + "time.sleep(1000)")]),
        env={**os.environ, "TMPDIR": str(tmp_path)},
        start_new_session=True,
    )
    watchdog.watch(process.pid, mark)
    until(lambda: (tmp_path / "ready").exists())
    assert len(marked(mark)) == 2
    watchdog.close()
    assert process.wait(timeout=30) == -signal.SIGKILL
    until(lambda: all(_state(pid) in "ZX" for pid in marked(mark)))


def _state(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2][0]
    except OSError:
        return "X"


# ── the temporary directory ──────────────────────────────────────────────────────────────────────────────────────────

SOCKETS = """
import multiprocessing, os, socket, sys, tempfile
if __name__ == "__main__":
    with multiprocessing.Manager() as manager:
        manager.list([1]).append(2)
    worker = multiprocessing.get_context("forkserver").Process(target=os.getpid)
    worker.start()
    worker.join()
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(os.path.join(tempfile.mkdtemp(), "socket"))
    open(os.path.join(tempfile.gettempdir(), "..", "place"), "w").write(tempfile.gettempdir())
    sys.exit(worker.exitcode)
"""


@pytest.mark.parametrize("forked", [False, True])
def test_a_trial_in_a_deep_directory_makes_sockets(
    forked: bool, user: Path, tmp_path: Path, watchdog: Watchdog
) -> None:
    """Its temporary directory has a short name, which is gone with it."""
    words, deep = program(user, SOCKETS), tmp_path / ("d" * 100)
    directory = deep / "trial"
    servers = ForkServers(words, watchdog, deep)
    servers.packages = ("json",)
    try:
        if forked:
            child = ChildProcess(Launch(tuple(words)), directory, watchdog, servers)
            assert not isinstance(child.process, subprocess.Popen), "it was not forked"
            code = child.process.wait(timeout=120)
            child.end()
        else:
            code = whole_run.run(Launch(tuple(words)), directory, watchdog, 120).exit_code
    finally:
        servers.close()
    assert code == 0, (directory / "output.txt").read_text()
    place = (directory / "place").read_text()
    assert len(place) <= temporary.LONGEST
    assert not os.path.lexists(place)


def test_the_short_name_is_gone_where_flatout_is_killed(tmp_path: Path) -> None:
    watchdog, link = Watchdog(), tmp_path / "link"
    link.symlink_to(tmp_path / "tmp")
    child = subprocess.Popen(["sleep", "600"], start_new_session=True)
    watchdog.watch(child.pid, 0, str(link))
    watchdog.close()  # as where this process is gone
    assert child.wait(timeout=10) == -signal.SIGKILL
    assert not link.is_symlink()


def test_a_short_name_of_somebody_else_is_not_used(tmp_path: Path) -> None:
    deep = tmp_path / ("d" * 100)
    link = temporary.link_of(deep)
    os.symlink(tmp_path, link)
    try:
        assert temporary.make(deep) == str(deep / "tmp")
        temporary.remove_link(deep)
        assert os.path.lexists(link)
    finally:
        os.unlink(link)
    assert temporary.link_of(Path("/short")) == ""


# ── loggers ──────────────────────────────────────────────────────────────────────────────────────────────────────────

LOGGERS_PYTHON = os.environ.get("FLATOUT_LOGGERS_PYTHON", sys.executable)
"""An interpreter that has the loggers of experiments, where this one lacks them."""

EACH_KIND = """
import contextlib, json, sqlite3, sys, urllib.request
for step in range(3):
    row = json.dumps({"step": step, "loss": 1 / (step + 1)})
    with contextlib.suppress(OSError):
        urllib.request.urlopen(f"http://127.0.0.1:{sys.argv[1]}/runs", row.encode(), timeout=5)
    with sqlite3.connect("base.db") as base:
        base.execute("insert into t values (?)", (row,))
    with open("metrics.jsonl", "a") as log:
        log.write(row)
assert len(open("metrics.jsonl").read()) > 50, "the trial does not read what it has written"
with sqlite3.connect("base.db") as base:
    assert base.execute("select count(*) from t").fetchone() == (3,)
"""

WANDB = """
import wandb
run = wandb.init(project="flatout-test", entity="nobody", settings=wandb.Settings(init_timeout=60))
for step in range(3):
    run.log({"loss": 1 / (step + 1)})
run.finish()
assert run.settings.mode == "offline" or run.settings._offline, run.settings
"""

MLFLOW = """
import mlflow, os
with mlflow.start_run():
    for step in range(3):
        mlflow.log_metric("loss", 1 / (step + 1), step)
assert mlflow.get_tracking_uri() == os.environ["MLFLOW_TRACKING_URI"]
"""

MLFLOW_SERVER = """
import mlflow, sys
mlflow.set_tracking_uri(f"http://127.0.0.1:{sys.argv[1]}")
try:
    with mlflow.start_run():
        mlflow.log_metric("loss", 1.0)
except mlflow.exceptions.MlflowException:
    sys.exit(0)
sys.exit("the server was reached")
"""


def has_module(name: str) -> bool:
    found = subprocess.run([LOGGERS_PYTHON, "-c", f"import {name}"], capture_output=True, timeout=120)
    return found.returncode == 0


@pytest.mark.parametrize("kind", ["each kind", "wandb", "mlflow", "mlflow with a server"])
def test_a_logger_sees_nothing(kind: str, user: Path, tmp_path: Path, watchdog: Watchdog) -> None:
    """A server of the user's on this machine, a database, files; and loggers themselves, where they are installed."""
    text = {"each kind": EACH_KIND, "wandb": WANDB, "mlflow": MLFLOW, "mlflow with a server": MLFLOW_SERVER}[kind]
    if kind != "each kind" and not has_module(kind.split()[0]):
        pytest.skip("it is not installed; FLATOUT_LOGGERS_PYTHON may name an interpreter that has it")
    path = program(user, text)[1]
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.setblocking(False)
        before = state(user)
        words = (LOGGERS_PYTHON if kind != "each kind" else sys.executable, path, str(server.getsockname()[1]))
        done = attempt(tmp_path, watchdog, words)
        assert done.exit_code == 0, (tmp_path / "trial" / "output.txt").read_text()
        with pytest.raises(BlockingIOError):
            server.accept()
    assert state(user) == before
