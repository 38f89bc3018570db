"""The directory in which the ranks of one job meet: one folder for each, written by that rank alone.

    DIR/ranks/worker-0/rank.json    who it is, and when it began; once it has ended, the summary of its case
    DIR/ranks/worker-0/alive        touched every few seconds while it runs
    DIR/ranks/worker-0/case.json    its own case, with its recording beside it

No file is written by two ranks, and none is locked: the directory may be on a network file system. What is merged is
written by whoever merges, into `DIR/case.json`, whole and renamed.
"""

from __future__ import annotations

import contextlib
import json
import math
import os
import re
import shutil
import socket
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from flatout.job.place import Place
from flatout.model import codec, json_text
from flatout.model.case import Host
from flatout.model.errors import CaseUnreadable, InvalidOption
from flatout.store import FILE, origin, permissions, write_atomically

REPORTS_EVERY = 5.0
LOST_AFTER = 30.0
"""Seconds without a sign of life after which a rank that has not ended is taken for gone."""
EARLIER = 2.0
"""Seconds by which the clocks of two machines may differ."""


@dataclass(frozen=True)
class Entry:
    """What a rank has written of itself."""

    host: Host
    size: int
    """Ranks that it was told of."""
    expected: tuple[str, ...] = ()
    ended: float | None = None
    """When it had written all, in seconds since 1970; None while it runs."""
    alive: float = 0.0
    """When it was last heard of."""

    @property
    def is_lost(self) -> bool:
        return self.ended is None and time.time() - self.alive > LOST_AFTER


@dataclass
class Member:
    """This process as a rank of a job."""

    place: Place
    directory: Path
    began: float = field(default_factory=time.time)
    _stop: threading.Event = field(default_factory=threading.Event)

    @property
    def folder(self) -> Path:
        return self.directory / "ranks" / folder_name(self.place.name)

    def join(self) -> None:
        """Say that this rank has come. Raises InvalidOption where the directory cannot be written, or has it."""
        try:
            if self.folder.is_dir():
                if _is_running(self.folder):
                    raise self._taken()
                shutil.rmtree(self.folder)  # of an earlier job
            if not self.directory.exists():
                permissions.make_private(self.directory)
            self.folder.mkdir(parents=True, exist_ok=True)
            try:
                (self.folder / "alive").touch(exist_ok=False)
            except FileExistsError:  # the other one has come at this moment
                raise self._taken() from None
            self._write(self._host(), None)
        except OSError as error:
            raise InvalidOption(
                f"The directory of the job, {self.directory}, cannot be written ({error.strerror or error}). "
                "--job takes a directory that all ranks can write to."
            ) from None

    def _taken(self) -> InvalidOption:
        return InvalidOption(
            f"{self.place.name} runs in {self.directory} already. Give each job a directory of its own with --job, and "
            f"each rank of a job a number of its own. One that was killed on another machine counts as running for "
            f"{LOST_AFTER:.0f} s."
        )

    @contextlib.contextmanager
    def reporting(self) -> Iterator[None]:
        """While inside, others can see that this rank is there."""
        thread = threading.Thread(target=self._report, name="flatout-job", daemon=True)
        thread.start()
        try:
            yield
        finally:
            self._stop.set()

    def leave(self, host: Host) -> None:
        """Say that this rank has ended, and how."""
        with contextlib.suppress(OSError):
            self._write(replace(host, began=self.began), time.time())

    def _host(self) -> Host:
        place = self.place
        return Host(
            place.name,
            role=place.role,
            index=place.index,
            machine=socket.gethostname(),
            state="running",
            began=self.began,
        )

    def _write(self, host: Host, ended: float | None) -> None:
        written = {
            "host": codec.to_plain(host),
            "size": self.place.size,
            "expected": list(self.place.expected),
            "ended": ended,
            "process": origin.process(),
        }
        write_atomically(self.folder / "rank.json", json.dumps(written))

    def _report(self) -> None:
        while not self._stop.wait(REPORTS_EVERY):
            self._touch()

    def _touch(self) -> None:
        with contextlib.suppress(OSError):
            (self.folder / "alive").touch()


def folder_name(name: str) -> str:
    return re.sub(r"[^A-Za-z0-9_.]+", "-", name)


def _is_running(folder: Path) -> bool:
    """Whether another process is this rank now: one that lives on this machine, else one that was heard of."""
    path = folder / "rank.json"
    data: dict[str, Any] = {}
    with contextlib.suppress(OSError, ValueError):
        read = json_text.read(path)
        data = read if isinstance(read, dict) else {}
    process, host = data.get("process"), data.get("host")
    if data.get("ended") is not None:
        return False
    if isinstance(process, dict) and isinstance(host, dict) and host.get("machine") == socket.gethostname():
        return process.get("pid") != os.getpid() and origin.alive(process)
    return time.time() - _heard(folder) <= LOST_AFTER


def _heard(folder: Path) -> float:
    """When the rank last wrote something; 0 where it never did."""
    times = [0.0]
    for name in ("rank.json", "alive"):
        with contextlib.suppress(OSError):
            times.append((folder / name).stat().st_mtime)
    return max(times)


def entries(directory: Path) -> Iterator[Entry]:
    """What each rank has written, one after the other; a damaged file is as good as none."""
    for path in sorted((directory / "ranks").glob("*/rank.json")):
        with contextlib.suppress(OSError, ValueError, KeyError, TypeError, CaseUnreadable):
            data = json_text.read(path)
            yield Entry(
                _with_case(codec.read(Host, data["host"]), path.parent),
                int(data["size"]),
                tuple(str(name) for name in data["expected"]),
                None if data["ended"] is None else float(data["ended"]),
                _heard(path.parent),
            )


def _with_case(host: Host, folder: Path) -> Host:
    """The directory may have been moved, or have another path on this machine: then the case is beside the summary."""
    moved = host.case and not Path(host.case, FILE).is_file() and (folder / FILE).is_file()
    return replace(host, case=str(folder.absolute())) if moved else host


def of_latest_job(found: list[Entry]) -> list[Entry]:
    """Without those of an earlier job in the same directory: all of them had ended before the first of these began.

    A rank that dies at once is of this job still, even if another one comes after that: some other rank was there.
    """
    ranked = sorted(found, key=lambda entry: -(entry.ended if entry.ended is not None else entry.alive))
    kept: list[Entry] = []
    first = math.inf
    for entry in ranked:
        if kept and (entry.ended if entry.ended is not None else entry.alive) < first - EARLIER:
            break
        first = min(first, entry.host.began)
        kept.append(entry)
    return kept


def default_directory(place: Place) -> Path | None:
    """Where the ranks meet if nobody says so: below the working directory, by the job's name; None without a name."""
    if os.environ.get("FLATOUT_JOB"):
        return Path(os.environ["FLATOUT_JOB"])
    return Path.cwd() / ".flatout" / "jobs" / place.job if place.job else None
