"""Candidates: which routes are tried, in which order, and why the others are not."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from flatout.model.case import Equivalence
from flatout.model.errors import InvalidOption
from flatout.optimize.checks import CheckResult
from flatout.optimize.foreign import Orders
from flatout.optimize.layouts import Layout
from flatout.routes import find
from flatout.routes._route import Contents, Route, Setting
from flatout.routes._split import split
from flatout.subject import Subject

BASELINE = "tf-function"
NATIVE_FORMATS = ("LiteRT", "ONNX")
"""Formats of the files that users bring."""


@dataclass
class Candidate:
    """A route on its way into the race: converted, inspected, checked; or the reason why it dropped out."""

    route: Route
    directory: Path
    over: str = ""
    """`failed`, `timeout` or `needless`, once it has dropped out."""
    note: str = ""
    title: str = ""
    contents: Contents | None = None
    size_bytes: int = 0
    convert_ms: float | None = None
    reused: bool = False
    """Whether an earlier call has converted it; `convert_ms` is what that took."""
    checked: CheckResult | None = None
    settings: Sequence[Setting] = field(default_factory=lambda: ({},))
    fixed_batch: str = ""
    """Which numbers of samples at once it refuses, and why, as a sentence; empty: it takes any."""
    sizes: tuple[int, ...] = ()
    """The numbers of samples at once that its loader takes; empty: any that the runtime takes."""
    any_length: bool = False
    """Whether its loader answers samples of other lengths, where the model leaves some open."""
    integers: str = ""
    """What becomes of integers out of range, where the original does something else."""
    finite_only: bool = False
    """Whether its loader refuses NaN and infinity, because the runtime makes something else of them."""
    given: Path | None = None
    """A file to use in place of a conversion."""
    orders: Orders = field(default_factory=Orders)
    """Of a file made elsewhere: where the model's inputs and outputs are in it."""
    ours: bool = False
    """Whether that file is a compressed form of the subject, made by `compress/`: then it may be handed over."""

    @property
    def name(self) -> str:
        return self.title or self.route.name

    @property
    def is_model_itself(self) -> bool:
        """Whether it is the model as it was given, to which all others are compared."""
        return self.route.name == BASELINE and self.given is None

    @property
    def equivalence(self) -> Equivalence | Literal[""]:
        """What it promises of the numbers: of a file made elsewhere nothing is known, and a compressed form is another
        model."""
        if self.given is None:
            return self.route.equivalence
        return "semantic" if self.ours else ""

    def drop(self, over: str, note: str) -> None:
        self.over, self.note = over, note


@dataclass(frozen=True)
class Skipped:
    name: str
    why: str
    unserved: bool = False
    """Left out because of --layout alone."""


@dataclass(frozen=True)
class RouteChoice:
    """The routes that the user wants. A name means all routes that begin with it: `litert`."""

    only: Sequence[str] = ()
    without: Sequence[str] = ()
    exhaustive: bool = False
    layout: Layout | None = None
    """For a server: what it does not run as it was raced is not tried."""

    def includes(self, route: Route) -> bool:
        return (not self.only or _matches(route.name, self.only)) and not _matches(route.name, self.without)

    def check_names(self, routes: Mapping[str, Route]) -> None:
        """Fail on a name that no route has."""
        for name in (*self.only, *self.without):
            if not any(_matches(route, [name]) for route in routes):
                find(name)  # raises, with the known names


def _matches(route: str, names: Sequence[str]) -> bool:
    return any(route == name or route.startswith(f"{name}-") for name in names)


class CandidateList:
    """Makes candidates for one subject, each with a directory of its own for the artefact."""

    def __init__(self, routes: Mapping[str, Route], subject: Subject, directory: Path, cores: int = 1) -> None:
        self.routes = routes
        self.subject = subject
        self.directory = directory
        self.cores = cores

    def from_routes(self, choice: RouteChoice) -> tuple[list[Candidate], list[Skipped]]:
        """The chosen routes in their order, the baseline always among them; and those that are skipped."""
        candidates, skipped = [], []
        for route in sorted(self.routes.values(), key=lambda route: route.order):
            if route.name != BASELINE and not choice.includes(route):
                continue
            if self.subject.split and route.takes_core:
                route = split(route)
            why = self._obstacle(route, choice.exhaustive)
            if why:
                skipped.append(Skipped(route.name, why))
                continue
            if choice.layout is not None and route.deployable and route.name != BASELINE:
                why = choice.layout.refuses(route)
            if why:
                skipped.append(Skipped(route.name, why, unserved=True))
                continue
            candidates.append(Candidate(route, self.directory / route.name, settings=self._settings(route)))
        return candidates, skipped

    def from_comparison_file(self, path: Path) -> Candidate:
        """A file that exists already, to compare with: served by the route of its own format."""
        native = next((route for route in self._accepting(path) if route.format in NATIVE_FORMATS), None)
        if not path.is_file() or native is None:
            raise InvalidOption(f"--compare takes a .tflite or .onnx file that exists, not {path}.")
        if (package := native.missing_package()) is not None:
            raise InvalidOption(f'{path} needs the package {package}: pip install "flatout[{native.extra}]"')
        return self._from_file(path, native)

    def from_compressed_file(self, path: Path, choice: RouteChoice) -> list[Candidate]:
        """A compressed form of the subject, on each chosen route that accepts it; handed over if it wins."""
        return [
            self._from_file(path, route, ours=True)
            for route in self._accepting(path)
            if choice.includes(route)
            and not route.missing_package()
            and not (choice.layout is not None and choice.layout.refuses(route))
        ]

    def _obstacle(self, route: Route, exhaustive: bool) -> str | None:
        package = route.missing_package()
        if package is not None:
            return f'needs the package {package}: pip install "flatout[{route.extra}]"'
        if route.needs_data and not self.subject.has_calibration_data:
            return "needs real samples for calibration: give --data"
        return None if exhaustive else route.skip_reason(self.subject)

    def _settings(self, route: Route) -> Sequence[Setting]:
        return route.settings(self.subject, self.cores) or ({},)

    def _accepting(self, path: Path) -> list[Route]:
        return [
            route
            for route in self.routes.values()
            if route.accepts and route.accepts == path.suffix and route.precision == "float32"
        ]

    def _from_file(self, path: Path, route: Route, *, ours: bool = False) -> Candidate:
        title = path.name if route.format in NATIVE_FORMATS else f"{path.name} ({route.family})"
        directory = self.directory / f"{route.name}-{path.name}"
        return Candidate(route, directory, title=title, settings=self._settings(route), given=path, ours=ours)
