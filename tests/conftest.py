"""Tests run beside each other, but for those that measure: `pytest.mark.alone` waits for the rest and holds it up."""

from __future__ import annotations

import fcntl
import tempfile
from collections.abc import Generator
from functools import cache
from typing import Any

import pytest


@cache
def shared() -> tempfile.TemporaryDirectory[str]:
    """Where the processes of this run take turns."""
    return tempfile.TemporaryDirectory(prefix="flatout-tests-")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """What measures comes last: until then both processes have something to do."""
    items.sort(key=_alone)


def _alone(item: pytest.Item) -> bool:
    return item.get_closest_marker("alone") is not None


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    """Called for each process that is going to run tests."""
    node.workerinput["turns"] = shared().name


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, Any, Any]:
    """A test with its fixtures, when it is its turn."""
    place = getattr(item.config, "workerinput", {}).get("turns")
    if place is None:  # one process, one test at a time
        return (yield)
    with open(f"{place}/gate", "w") as gate, open(f"{place}/room", "w") as room:
        fcntl.flock(gate, fcntl.LOCK_EX)  # who waits to be alone is not overtaken
        fcntl.flock(room, fcntl.LOCK_EX if _alone(item) else fcntl.LOCK_SH)
        fcntl.flock(gate, fcntl.LOCK_UN)
        try:
            return (yield)
        finally:
            fcntl.flock(room, fcntl.LOCK_UN)
