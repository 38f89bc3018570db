"""The nodes of a Ray cluster. Ray schedules the races, moves their messages and says which node is gone.

The only module that imports Ray, inside functions: it is an extra.
"""

from __future__ import annotations

import collections
import contextlib
import json
import logging
import os
import signal
import socket
import sys
import threading
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from flatout.model.errors import ClusterUnusable, ToolMissing
from flatout.process.fence.means import Leave
from flatout.trial import launcher
from flatout.tune import identity
from flatout.tune.spread import node
from flatout.tune.spread.spreading import News

LOOK_SECONDS = 150.0
"""For a node to say what it has, with the start of its first process."""
CONNECT_SECONDS = 10.0
OBJECT_STORE_BYTES = 80_000_000
"""Of a cluster that is started here: lines of text are all that it moves."""
OWN_VARIABLES = "RAY_"
"""How the variables begin that each node has its own of, beside those in `node.OF_A_NODE`."""


@dataclass(frozen=True)
class Node:
    id: str
    name: str
    host: str
    cpus: int
    gpus: int


@contextlib.contextmanager
def joined(address: str, command: Sequence[str], leave: Leave) -> Iterator[RayCluster]:
    """The cluster at this address: `HOST:PORT`, `local` for one of this machine alone, empty for the one that is found
    here, else one of this machine. Raises where a node lacks what the program needs."""
    ray = _imported()
    sent = {name: value for name, value in os.environ.items() if not name.startswith(OWN_VARIABLES)}
    had = ray.is_initialized()
    if not had:
        _connect(ray, address)
    try:
        cluster = RayCluster(ray, sent)
        cluster.check(command, leave)
        yield cluster
    finally:
        if not had:
            ray.shutdown()


def _imported() -> Any:
    try:
        import ray
    except ImportError:
        raise ToolMissing("`--on ray` needs Ray, which is an extra: pip install 'flatout[ray]'") from None
    return ray


def _connect(ray: Any, address: str) -> None:
    options = {"log_to_driver": False, "logging_level": logging.ERROR}
    ours = threading.current_thread() is threading.main_thread()  # Python handles signals there only
    before = signal.getsignal(signal.SIGTERM)
    try:
        if not address:
            with contextlib.suppress(ConnectionError):  # there is none
                ray.init(address="auto", **options)
                return
        if address in ("", "local"):
            ray.init(address="local", include_dashboard=False, object_store_memory=OBJECT_STORE_BYTES, **options)
        else:
            host, _, port = address.rpartition(":")
            with socket.create_connection((host, int(port)), CONNECT_SECONDS):
                pass  # Ray itself goes on trying for minutes
            ray.init(address=address, **options)
    except Exception as error:  # of many kinds: ConnectionError, RuntimeError, ValueError, those of gRPC
        where = f" at {address}" if address else ""
        why = " ".join(str(error).split()).rstrip(".")
        raise ClusterUnusable(
            f"No Ray cluster{where} could be joined: {why}. Start it with `ray start`, on this machine too: the "
            "machine that tunes is a node of it."
        ) from None
    finally:
        if ours and before is not None:
            signal.signal(signal.SIGTERM, before)  # Ray sets its own, which ends this process without a verdict


class RayCluster:
    def __init__(self, ray: Any, sent: Mapping[str, str]) -> None:
        self.ray = ray
        self.sent = sent
        """The variables of the program."""
        self.checked = _nodes(ray)
        """Nodes that have what the program needs. What joins the cluster later is not asked."""
        self._names = {one.id: one.name for one in self.checked}
        self._node_of: dict[Hashable, str] = {}

    # ── what is there ────────────────────────────────────────────────────────────────────────────────────────

    def places(self, gpu: bool) -> int:
        cores = self.cores(gpu)
        return sum(_places_of(one, cores, gpu) for one in self._alive())

    def cores(self, gpu: bool) -> int:
        """Those of the smallest node, or those that its GPUs share."""
        shares = [one.cpus // one.gpus if gpu else one.cpus for one in self.checked if one.gpus or not gpu]
        return max(min(shares, default=1), 1)

    def beside(self, gpu: bool) -> int:
        of_a_host: collections.Counter[str] = collections.Counter()
        for one in self.checked:
            of_a_host[one.host] += _places_of(one, self.cores(gpu), gpu)
        return max([1, *of_a_host.values()])

    def _alive(self) -> list[Node]:
        alive = {one["NodeID"] for one in self.ray.nodes() if one["Alive"]}
        return [one for one in self.checked if one.id in alive]

    def check(self, command: Sequence[str], leave: Leave) -> None:
        """Raises `ClusterUnusable` with the first node that lacks something, and what it lacks."""
        from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

        if not self.checked:
            raise ClusterUnusable("No node of the Ray cluster has a processor to give (`ray start --num-cpus`).")
        words = _command("look", f"Leave({leave.unfenced}, {leave.network})")
        look = self._remote(node.lacks, num_cpus=0)
        asked = {
            one: look.options(scheduling_strategy=NodeAffinitySchedulingStrategy(one.id, soft=False)).remote(
                words, os.getcwd(), _files(command), dict(self.sent)
            )
            for one in self.checked
        }
        for one, answer in asked.items():
            try:
                missing, printed = self.ray.get(answer, timeout=LOOK_SECONDS)
            except self.ray.exceptions.RayError as error:
                raise ClusterUnusable(f"The node {one.name} does not answer: {_told(error)}.") from None
            if missing := missing or _differs(printed):
                raise ClusterUnusable(
                    f"The node {one.name} cannot run the program: {missing}. Interpreter, program and data have to be "
                    "at the same paths on all nodes: on a shared file system, or copied."
                )

    # ── races ────────────────────────────────────────────────────────────────────────────────────────────────

    def start(self, assignment: str, cores: int, gpu: bool) -> Hashable:
        raced = node.raced

        def race(*arguments: Any) -> Iterator[str]:
            import ray

            yield str(ray.get_runtime_context().get_node_id())
            yield from raced(*arguments)

        task = self._remote(
            race, num_cpus=cores, num_gpus=int(gpu), num_returns="streaming", scheduling_strategy="SPREAD"
        )
        started: Hashable = task.remote(_command("main"), os.getcwd(), dict(self.sent), assignment)
        return started

    def news(self, races: Sequence[Hashable], seconds: float) -> list[News]:
        ready, _ = self.ray.wait(list(races), num_returns=1, timeout=seconds)
        return [one for race in ready if (one := self._next(race)) is not None]

    def stop(self, race: Hashable) -> None:
        with contextlib.suppress(self.ray.exceptions.RayError):
            self.ray.cancel(race, force=True)

    def _next(self, race: Any) -> News | None:
        """None where it has only said where it is."""
        where = self._node_of.get(race, "")
        try:
            line: str = self.ray.get(next(race))
        except StopIteration:
            return News(race, where)
        except self.ray.exceptions.RayTaskError as error:
            return News(race, where, failed=_told(error))
        except self.ray.exceptions.RayError as error:
            return News(race, where, lost=_how_lost(self.ray, error))
        if not where:
            self._node_of[race] = self._names.get(line, line[:8])
            return None
        return News(race, where, line=line)

    def _remote(self, function: Any, **options: Any) -> Any:
        """The function as a task, sent as it is: a node need not have flatout to say that it has none. Ray does not
        run it again by itself: what a race has told before its node was lost is kept, and only the rest is raced."""
        self.ray.cloudpickle.register_pickle_by_value(node)
        return self.ray.remote(max_retries=0, **options)(function)


def _nodes(ray: Any) -> list[Node]:
    """Those with a processor to give, named by their host, and numbered where several are of one host."""
    rows = [one for one in ray.nodes() if one["Alive"] and one["Resources"].get("CPU", 0) >= 1]
    rows.sort(key=lambda one: str(one["NodeID"]))
    hosts = collections.Counter(str(one["NodeManagerHostname"]) for one in rows)
    numbers: collections.Counter[str] = collections.Counter()
    found = []
    for one in rows:
        host = str(one["NodeManagerHostname"])
        numbers[host] += 1
        name = host if hosts[host] == 1 else f"{host}/{numbers[host]}"
        resources = one["Resources"]
        found.append(Node(str(one["NodeID"]), name, host, int(resources["CPU"]), int(resources.get("GPU", 0))))
    return found


def _places_of(one: Node, cores: int, gpu: bool) -> int:
    places = one.cpus // cores
    return min(places, one.gpus) if gpu else places


def _files(command: Sequence[str]) -> dict[str, str]:
    """What has to be on all nodes: the program's files with their digests, and what else its command line names."""
    named = [word.partition("=")[2] if word.startswith("-") else word for word in command[1:]]
    paths = {os.path.abspath(word): "" for word in named if word and os.path.exists(word)}
    return paths | identity.files_of(command)


def _command(function: str, arguments: str = "") -> list[str]:
    """What runs a function of `remote_race` with this interpreter. The working directory is not searched for modules:
    it is the user's."""
    text = (
        f"import sys; sys.path[:] = [*filter(None, sys.path), {str(launcher.PACKAGE)!r}]; "
        f"from flatout.tune.spread.remote_race import Leave, {function}; {function}({arguments})"
    )
    return [sys.executable, "-c", text]


def _differs(printed: str) -> str:
    """Why trials of this node would be others, or could not be fenced."""
    try:
        told = json.loads(printed.splitlines()[-1])
    except (ValueError, IndexError):
        return "flatout gave no answer there"
    ours = identity.versions()
    for name in sorted({*ours, *told["versions"]}):
        there, here = told["versions"].get(name, "none"), ours.get(name, "none")
        if there != here:
            return f"{name} is {there} there, and {here} here"
    return str(told["refused"]).rstrip(".")


def _how_lost(ray: Any, error: BaseException) -> str:
    """Ray tells of the end of a process first, and of that of its node seconds later."""
    known = {
        ray.exceptions.NodeDiedError: "the node has died",
        ray.exceptions.WorkerCrashedError: "its process or its node has died",
        ray.exceptions.OutOfMemoryError: "the node ran out of memory",
    }
    return next((words for kind, words in known.items() if isinstance(error, kind)), _told(error))


def _told(error: BaseException) -> str:
    """In one line of bounded length."""
    cause = getattr(error, "cause", None) or error
    lines = [line.strip() for line in str(cause).splitlines() if line.strip()]
    return (lines[0] if lines else type(error).__name__)[:300].rstrip(".")
