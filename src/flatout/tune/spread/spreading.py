"""The coordinator's side: levers in groups, a race for each on some node, their trials taken over as they come.

A node that is lost costs the races that it had: what they had not told yet is raced again elsewhere, and on this
machine where that fails as well.
"""

from __future__ import annotations

import functools
import platform
import time
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol

from flatout.environment import gather
from flatout.measure import processors
from flatout.model import codec
from flatout.model.case import Note, Trial, to_plain
from flatout.model.evidence.outcomes import RacedOn
from flatout.model.levers import parse
from flatout.process.messages import decode, encode
from flatout.report import words
from flatout.tune.conclusions import NO_TIME
from flatout.tune.context import Context
from flatout.tune.elsewhere import Wanted
from flatout.tune.scout import imports_of
from flatout.tune.spread.messages import Assignment, Begun, Over, Said, Time, Told, Tried

GROUPS_OF_A_PLACE = 2
"""Races that follow each other where levers are many: one that takes long then holds up less of what is left."""
LEVERS_OF_A_GROUP = 4
"""That such a race has at least: each race begins with a process that imports TensorFlow, and with two baselines."""
MOST_RACES = 3
"""Of the same levers, where nodes are lost."""
LOOK_SECONDS = 0.5
WAIT_SECONDS = 30.0
"""After so long without a place in the cluster, it is said what is waited for."""


@dataclass(frozen=True)
class News:
    """Of a race: what it told, or that it has ended, whatever the reason."""

    race: Hashable
    node: str
    """Its name; empty where it has not begun."""
    line: str = ""
    lost: str = ""
    """Why the node, or its process, is gone."""
    failed: str = ""
    """What went wrong there."""


class Cluster(Protocol):
    """Nodes that run a race at a time for each of their places."""

    def places(self, gpu: bool) -> int:
        """Races that the nodes which are alive have room for."""

    def cores(self, gpu: bool) -> int:
        """Processors of a place: the same for all, so that a lever is raced in the same way everywhere."""

    def beside(self, gpu: bool) -> int:
        """Places that one machine has at most."""

    def start(self, assignment: str, cores: int, gpu: bool) -> Hashable:
        """Begin a race as soon as there is a place for it."""

    def news(self, races: Sequence[Hashable], seconds: float) -> list[News]:
        """What has come of these, after so long at most."""

    def stop(self, race: Hashable) -> None: ...


@dataclass
class Group:
    """Levers that are raced together."""

    levers: list[str]
    """Those that have no trial yet."""
    lost_on: list[str] = field(default_factory=list)
    """Nodes that were lost while they were raced there, and how."""
    node: str = ""
    since: float = field(default_factory=time.monotonic)
    is_told: bool = False
    """Whether the person at the terminal knows that it waits."""


class Spreading:
    """The nodes of a cluster, as a tune has them."""

    def __init__(self, context: Context, cluster: Cluster) -> None:
        self.context = context
        self.cluster = cluster
        self.running: dict[Hashable, Group] = {}
        self.waiting: list[Group] = []
        self.left: list[str] = []
        """Levers of the race that is asked for which no node has raced."""

    def race(self, wanted: Wanted) -> list[str]:
        places = self.cluster.places(self._gpu)
        self.left, self.waiting = [], [Group(levers) for levers in cut(wanted.levers, max(places, 1))]
        until = None if wanted.seconds is None else time.monotonic() + wanted.seconds
        told = "; ".join(words.change_here((text,)) for text in wanted.levers)
        many = min(places, len(self.waiting))
        self.context.progress.phase(f"trying in {many} place{'' if many == 1 else 's'} of the cluster: {told}")
        try:
            while self.waiting or self.running:
                self._start(wanted, until)
                for news in self.cluster.news(list(self.running), LOOK_SECONDS) if self.running else ():
                    self._take(news, wanted)
                self._say_what_is_waited_for()
                self.context.progress.tick()
        finally:  # Ctrl-C, or a fault
            self._stop(list(self.running))
        return self.left

    # ── races ────────────────────────────────────────────────────────────────────────────────────────────────

    def _start(self, wanted: Wanted, until: float | None) -> None:
        """As many as there are places for; none that cannot begin in time."""
        clock = self.context.clock
        left = clock.left_to_explore() if wanted.ahead else clock.left() - clock.for_run
        left = left if until is None else min(left, until - time.monotonic())
        if left <= 0:
            self._give_up(clock.left() <= 0)
        places = self.cluster.places(self._gpu)
        if not places and not any(group.node for group in self.running.values()):
            groups, self.waiting = [*self._stop(list(self.running)), *self.waiting], []
            levers = [text for group in groups for text in group.levers]
            self._leave(levers, "no node of the cluster has a place for it")
        while self.waiting and len(self.running) < places:
            group = self.waiting.pop(0)
            group.since = time.monotonic()
            seconds = None if until is None else until - time.monotonic()
            assignment = self._assignment(replace(wanted, levers=tuple(group.levers), seconds=seconds))
            race = self.cluster.start(encode(assignment), assignment.cores, self._gpu)
            self.running[race] = group

    def _give_up(self, at_once: bool) -> None:
        """For want of time. A race that has begun watches its time itself, and compares numbers after it."""
        late = [race for race, group in self.running.items() if at_once or not group.node]
        groups, self.waiting = [*self._stop(late), *self.waiting], []
        for group in groups:
            self.context.trials.skip(group.levers, f"{NO_TIME}: a larger --budget tries it")

    def _stop(self, races: Sequence[Hashable]) -> list[Group]:
        for race in races:
            self.cluster.stop(race)
        return [self.running.pop(race) for race in races]

    def _say_what_is_waited_for(self) -> None:
        for group in self.running.values():
            if not group.node and not group.is_told and time.monotonic() - group.since > WAIT_SECONDS:
                group.is_told = True
                self.context.progress.say(f"{', '.join(group.levers)}: waiting for a place in the cluster")

    def _take(self, news: News, wanted: Wanted) -> None:
        group = self.running[news.race]
        if news.line:
            self._hear(decode(news.line, Told).about, group, news.node, wanted)
            return
        del self.running[news.race]
        if not group.levers:
            return
        if news.lost:
            self._lost(group, f"{news.node or 'a node'} ({news.lost})")
        else:
            self._leave(group.levers, f"{news.node}: {news.failed or 'the race ended without them'}")

    def _lost(self, group: Group, where: str) -> None:
        self.context.progress.say(f"a race of {', '.join(group.levers)} was lost on {where}")
        lost_on = [*group.lost_on, where]
        if len(lost_on) < MOST_RACES:
            self.waiting.insert(0, Group(group.levers, lost_on))
        else:
            self._leave(group.levers, f"lost on {', '.join(lost_on)}")

    def _leave(self, levers: Sequence[str], why: str) -> None:
        """To this machine."""
        if levers:
            text = f"raced on this machine: {', '.join(levers)} ({why})"
            self.context.progress.say(text)
            self.context.notes.append(Note("warning", f"{text[0].upper()}{text[1:]}."))
            self.left += levers

    # ── what a node tells ────────────────────────────────────────────────────────────────────────────────────

    def _hear(self, about: Begun | Said | Tried | Over, group: Group, node: str, wanted: Wanted) -> None:
        context = self.context
        if isinstance(about, Begun):
            self._begun(about, group, node)
        elif isinstance(about, Said):
            context.progress.say(f"{node}: {about.text}")
        elif isinstance(about, Tried):
            trial = codec.read(Trial, about.trial, "trial")
            context.trials.take_over(trial, about.nominated, about.promising, node)
            group.levers = [text for text in group.levers if (*wanted.base, text) != trial.levers]
            self._note_raced(group, trial.levers[-1])
        else:
            self._over(about, group, node)

    def _begun(self, begun: Begun, group: Group, node: str) -> None:
        group.node, group.since = node, time.monotonic()
        raced_on = self.context.raced_on
        if node not in (one.machine for one in raced_on):
            raced_on.append(RacedOn(node, begun.cpu, begun.cores, begun.gpu, source="race"))
        if group.lost_on:
            names, lost = ", ".join(group.levers), ", ".join(group.lost_on)
            text = f"A race of {names} was lost on {lost}. It ran again on {node}."
            self.context.notes.append(Note("warning", text))

    def _over(self, over: Over, group: Group, node: str) -> None:
        context = self.context
        for name, why in over.skipped.items():
            context.trials.skipped.setdefault(name, why)
        group.levers = [text for text in group.levers if parse(text)[0] not in over.skipped]
        context.taken += over.taken
        context.ended_after = min(filter(None, (context.ended_after, over.ended_after)), default=None)
        self._leave(group.levers, f"{node}: {over.problem or 'the race ended without them'}")
        group.levers = []
        self._note_raced(group)

    def _note_raced(self, group: Group, *levers: str) -> None:
        """On the node of the group, with the time since it was last noted."""
        raced_on, now = self.context.raced_on, time.monotonic()
        for number, one in enumerate(raced_on):
            if one.machine == group.node:
                seconds = round(one.seconds + now - group.since, 1)
                raced_on[number] = replace(one, levers=(*one.levers, *levers), seconds=seconds)
        group.since = now

    # ── what a node has to know ──────────────────────────────────────────────────────────────────────────────

    @functools.cached_property
    def _imports(self) -> tuple[list[str], dict[str, str | None]]:
        return imports_of(self.context.directory / "scout-1")

    @property
    def _gpu(self) -> bool:
        return any(device.kind == "gpu" for device in self.context.case.devices)

    def _assignment(self, wanted: Wanted) -> Assignment:
        context, clock = self.context, self.context.clock
        packages, changed = self._imports
        return Assignment(
            wanted=wanted,
            request=replace(context.request, budget=clock.budget, patch=None, branch=None, apply=False),
            launch=context.launch,
            case=context.case.to_json(),
            whole=context.seen_whole,
            ended_after=context.ended_after,
            found=tuple(to_plain(one) for one in context.trials.found if one.stage == "single"),
            packages=tuple(packages),
            changed=changed,
            time=Time(clock.budget, clock.spent(), clock.reserved, clock.for_run),
            cores=self.cluster.cores(self._gpu),
            beside=self.cluster.beside(self._gpu),
        )


def cut(levers: Sequence[str], places: int) -> list[list[str]]:
    """Groups, one for each place at least, as far as the levers go; more where they are many. They are dealt in turns,
    so that those which findings name do not queue behind each other."""
    count = max(places, min(GROUPS_OF_A_PLACE * places, len(levers) // LEVERS_OF_A_GROUP))
    return [list(levers[first::count]) for first in range(min(count, len(levers)))]


def where_raced(machines: Sequence[RacedOn]) -> list[Note]:
    """For the reader of the case: which machines raced levers, and that the claim is of this one alone."""
    if not machines:
        return []
    nodes = ", ".join(_with_hardware(one.machine, one.gpu or one.cpu, one.cores) for one in machines)
    here = _with_hardware(platform.node(), str(gather.cpu()["model"] or ""), processors.count())
    many = f"{len(machines)} nodes" if len(machines) > 1 else "one node"
    return [Note("info", f"Levers were raced on {many}: {nodes}. What is claimed was raced on this machine: {here}.")]


def _with_hardware(name: str, model: str, cores: int) -> str:
    return f"{name} ({', '.join(filter(None, [model, f'{cores} core' + ('s' if cores != 1 else '')]))})"
