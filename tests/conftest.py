"""Tests run beside each other, but for those that measure: `pytest.mark.alone` waits for the rest and holds it up.

Two processes take one file after the other. The longest files come first and unit tests last, so that neither process
is left with a long one at the end. Files that measure come in between: until the end both processes have something to
do, and who waits to be alone waits for a short test.

Ids of tests that depend on the machine, the process or the hour end the run: nothing could be compared by them."""

from __future__ import annotations

import contextlib
import faulthandler
import fcntl
import os
import re
import signal
import tempfile
from collections.abc import Generator, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from processor_time import ProcessorTime

LONGEST = (
    "test_run_programs",
    "test_check_pairs",
    "test_cures_keras_for_real",
    "test_tune",
    "test_versions_for_real",
    "test_cures_graph_for_real",
    "test_cures_input_for_real",
    "test_tune_killed",
    "test_cures_direct_epochs_for_real",
    "test_run_faults",
    "test_optimize_compress_train",
    "test_optimize_planted",
    "test_data_tune_for_real",
    "test_trial_parity_for_real",
    "test_tune_prove",
    "test_optimize_compress_int8",
    "test_cures_run_for_real",
    "test_tune_patterns",
)
"""Files that take half a minute or more, the longest first, about."""

TURN_SECONDS = 2500.0
"""The longest that a test waits for its turn: more than any other may take (`faulthandler_timeout`), twice."""

STDERR = pytest.StashKey[int]()
"""The standard error before pytest captures it."""


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--processor-time", action="store_true", help="what each file takes of the processors")


def pytest_configure(config: pytest.Config) -> None:
    """A shell starts background jobs with SIGINT ignored, and all their children inherit that: programs that tests
    interrupt would go on."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    config.stash[STDERR] = os.dup(2)
    os.environ["FLATOUT_CONVERSIONS"] = os.path.join(shared().name, "conversions")  # not the user's own
    if config.getoption("--processor-time"):
        config.pluginmanager.register(ProcessorTime())


@cache
def shared() -> tempfile.TemporaryDirectory[str]:
    """Where the processes of this run take turns."""
    return tempfile.TemporaryDirectory(prefix="flatout-tests-")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """What takes longest comes first, then the rest of what is slow, what measures, and what is short."""
    unstable = [f"{item.nodeid!r}: {why}" for item in items if (why := reason_against(item.nodeid))]
    if unstable:
        raise pytest.UsageError("Test ids that another run would not have:\n  " + "\n  ".join(unstable))
    measuring = {item.path for item in items if _alone(item)}
    items.sort(key=lambda item: (_place(item), _turn(item, measuring), _alone(item)))


ADDRESS = re.compile(r"0x[0-9a-fA-F]{6,}|<\w+ object|<function ")


@cache
def of_this_machine() -> tuple[str, ...]:
    directories = (tempfile.gettempdir(), os.path.expanduser("~"), str(Path(__file__).resolve().parents[1]))
    return tuple(directory for directory in directories if len(directory) > 1)


def reason_against(identity: str) -> str:
    """Why a test id would be another one in another process or on another machine; nothing where it would not."""
    if not identity.isprintable():
        return "has characters that cannot be printed"
    if found := ADDRESS.search(identity):
        return f"shows an object by its address ({found[0]})"
    for directory in of_this_machine():
        if f"{directory}/" in f"{identity}/":
            return f"names a directory of this machine ({directory})"
    return ""


def _place(item: pytest.Item) -> int:
    return LONGEST.index(item.path.stem) if item.path.stem in LONGEST else len(LONGEST)


def _turn(item: pytest.Item, measuring: set[Path]) -> int:
    return 1 if item.path in measuring else 2 if item.path.parent.name == "unit" else 0


def _alone(item: pytest.Item) -> bool:
    return item.get_closest_marker("alone") is not None


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    """Called for each process that is going to run tests."""
    node.workerinput["turns"] = shared().name


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any, error: object) -> None:
    """How a process has ended too soon; pytest-xdist reports the test that it was at as failed."""
    terminal = node.config.pluginmanager.getplugin("terminalreporter")
    if error and terminal is not None:
        with contextlib.suppress(Exception):  # there is no public way to its process
            code = node.gateway._io.popen.wait(timeout=10)
            how = f"exit code {code}" if code >= 0 else f"killed by {signal.Signals(-code).name}"
            terminal.write_line(f"[{node.gateway.id}] {how}")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, Any, Any]:
    """A test with its fixtures, when it is its turn."""
    place = getattr(item.config, "workerinput", {}).get("turns")
    if place is None:  # one process, one test at a time
        return (yield)
    # The locks of `lockf` are this process's own: a child of it that outlives it would go on holding those of `flock`.
    with open(f"{place}/gate", "a+") as gate, open(f"{place}/room", "a+") as room:
        with ends_within(item.config, TURN_SECONDS):
            fcntl.lockf(gate, fcntl.LOCK_EX)  # who waits to be alone is not overtaken
            fcntl.lockf(room, fcntl.LOCK_EX if _alone(item) else fcntl.LOCK_SH)
            fcntl.lockf(gate, fcntl.LOCK_UN)
        return (yield)


@contextlib.contextmanager
def ends_within(config: pytest.Config, seconds: float) -> Iterator[None]:
    """As pytest's `faulthandler_timeout`, which begins with the test itself."""
    faulthandler.dump_traceback_later(seconds, exit=True, file=config.stash[STDERR])
    try:
        yield
    finally:
        faulthandler.cancel_dump_traceback_later()
