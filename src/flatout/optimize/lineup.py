"""Which routes are tried, in what order, and why the others are not."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from flatout.model.errors import InvalidOption
from flatout.optimize.checks import Checked
from flatout.routes import find
from flatout.routes._route import Contents, Route, Setting
from flatout.subject.subject import Subject

BASELINE = "tf-function"
FORMATS = ("LiteRT", "ONNX")
"""What files are given in."""


@dataclass
class Candidate:
    """A route on its way: converted, looked into, checked; or why not."""

    route: Route
    directory: Path
    over: str = ""
    """failed, timeout or needless where it takes no further part."""
    note: str = ""
    title: str = ""
    inside: Contents | None = None
    size_bytes: int = 0
    convert_ms: float | None = None
    checked: Checked | None = None
    settings: Sequence[Setting] = field(default_factory=lambda: ({},))
    given: Path | None = None
    """A file of the user's that stands in for the conversion."""
    ours: bool = False
    """It is a compressed form of the subject, made by `compress/`: it may be handed over."""

    @property
    def name(self) -> str:
        return self.title or self.route.name

    def drop(self, over: str, note: str) -> None:
        self.over, self.note = over, note


@dataclass(frozen=True)
class Skipped:
    name: str
    why: str


def line_up(
    routes: Mapping[str, Route],
    subject: Subject,
    directory: Path,
    *,
    only: Sequence[str] = (),
    without: Sequence[str] = (),
    exhaustive: bool = False,
    cores: int = 1,
) -> tuple[list[Candidate], list[Skipped]]:
    """In the order of their turns. A name given by the user stands for all routes that begin with it: `litert`."""
    candidates, skipped = [], []
    for route in sorted(routes.values(), key=lambda route: route.order):
        if route.name != BASELINE and not _asked(route, only, without):
            continue
        why = _obstacle(route, subject, exhaustive)
        if why:
            skipped.append(Skipped(route.name, why))
            continue
        settings = route.settings(subject, cores) or ({},)
        candidates.append(Candidate(route, directory / route.name, settings=settings))
    return candidates, skipped


def check_names(routes: Mapping[str, Route], names: Sequence[str]) -> None:
    for name in names:
        if not any(_meant(route, [name]) for route in routes):
            find(name)  # says which there are


def _asked(route: Route, only: Sequence[str], without: Sequence[str]) -> bool:
    return (not only or _meant(route.name, only)) and not _meant(route.name, without)


def _meant(route: str, names: Sequence[str]) -> bool:
    return any(route == name or route.startswith(f"{name}-") for name in names)


def _obstacle(route: Route, subject: Subject, exhaustive: bool) -> str | None:
    package = route.missing_package()
    if package is not None:
        return f'needs the package {package}: pip install "flatout[{route.extra}]"'
    if route.needs_data and not subject.calibrated:
        return "has to see real samples to calibrate: give --data"
    return None if exhaustive else route.skip_reason(subject)


def given(path: Path, routes: Mapping[str, Route], directory: Path, subject: Subject, cores: int) -> Candidate:
    """A file that is there already, to compare with: run by the route whose format it is."""
    native = next((route for route in _takers(path, routes) if route.format in FORMATS), None)
    if not path.is_file() or native is None:
        raise InvalidOption(f"--compare takes a .tflite or .onnx file that exists, not {path}.")
    if (package := native.missing_package()) is not None:
        raise InvalidOption(f'{path} needs the package {package}: pip install "flatout[{native.extra}]"')
    return _given(path, native, directory, subject, cores)


def ours(
    path: Path,
    routes: Mapping[str, Route],
    directory: Path,
    subject: Subject,
    *,
    only: Sequence[str] = (),
    without: Sequence[str] = (),
    cores: int = 1,
) -> list[Candidate]:
    """A compressed form of the subject: run by whatever takes it and is asked for, and handed over if it wins."""
    return [
        _given(path, route, directory, subject, cores, ours=True)
        for route in _takers(path, routes)
        if _asked(route, only, without) and not route.missing_package()
    ]


def _takers(path: Path, routes: Mapping[str, Route]) -> list[Route]:
    return [one for one in routes.values() if one.accepts and one.accepts == path.suffix and one.precision == "float32"]


def _given(path: Path, route: Route, directory: Path, subject: Subject, cores: int, *, ours: bool = False) -> Candidate:
    title = path.name if route.format in FORMATS else f"{path.name} ({route.family})"
    settings = route.settings(subject, cores) or ({},)
    place = directory / f"{route.name}-{path.name}"
    return Candidate(route, place, title=title, settings=settings, given=path, ours=ours)
