"""The list of public programs: one TOML file each in benchmarks/public, read and checked.

A rule says which lines of which file are replaced by what. Line numbers are those of the file as committed, so rules
can be read beside the file on GitHub, and their order does not matter.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

LIST = Path(__file__).resolve().parent / "public"
EDITED_LINES = 25
"""The rule of the corpus: a program that needs more of them to run is passed over."""
PACKAGES = frozenset(
    [
        "numpy",
        "scipy",
        "scikit-learn",
        "matplotlib",
        "pandas",
        "pillow",
        "tqdm",
        "absl-py",
        "opencv",
        "h5py",
        "tensorboard",
    ]
)
FIELDS = tuple(
    "number repository commit path paths arguments directory pattern finding needs edit cure expert".split()  # noqa: SIM905
)
STANDINS = frozenset(["gym", "gym-new", "gymnasium", "tensorflow_datasets", "input_data", "full-data"])

Half = Literal["measured", "building"]


class ListWrong(Exception):
    """A file of the list does not say what it must; the message names the file."""


@dataclass(frozen=True)
class Rule:
    """Lines `first` to `last` (1-based, inclusive) become `text`, or have `substitute` applied.

    `last == first - 1` inserts before `first`. `over`: a cure that takes the place of the edits within its lines.
    """

    file: str
    first: int
    last: int
    text: str | None = None
    substitute: tuple[tuple[str, str], ...] = ()
    over: bool = False

    @property
    def inserts(self) -> bool:
        return self.last < self.first

    @property
    def title(self) -> str:
        return f"{self.file}, lines [{self.first}, {self.last}]"

    @property
    def written(self) -> int:
        """How many lines of ours it has."""
        return len(self.substitute) if self.text is None else len(self.text.splitlines())


@dataclass(frozen=True)
class Expert:
    gain: float
    """Of the whole program after its imports; 1 where there is nothing to gain."""
    why: str
    step_gain: float | None = None


@dataclass(frozen=True)
class Program:
    number: int
    name: str
    repository: str
    commit: str
    path: str
    directory: str
    pattern: str
    finding: tuple[str, ...]
    """Causes that an expert accepts as first finding; none: there is nothing worth naming."""
    needs: tuple[str, ...]
    edits: tuple[Rule, ...]
    cures: tuple[Rule, ...]
    expert: Expert
    arguments: tuple[str, ...] = ()
    paths: tuple[str, ...] = ()
    """Files and directories that it needs; none: all. Some repositories hold gigabytes of data."""

    @property
    def half(self) -> Half:
        return "building" if self.number % 2 else "measured"

    @property
    def title(self) -> str:
        return f"{self.number:02d}-{self.name}"


def load(directory: Path = LIST) -> list[Program]:
    """Every program of the list, by number. Raises ListWrong."""
    programs = sorted((read(file) for file in directory.glob("*.toml")), key=lambda program: program.number)
    seen: dict[int, Program] = {}
    for program in programs:
        if program.number in seen:
            raise ListWrong(f"{program.title}.toml has the number of {seen[program.number].title}.toml")
        seen[program.number] = program
    return programs


def read(file: Path) -> Program:
    try:
        data = tomllib.loads(file.read_text(encoding="utf-8"))
    except tomllib.TOMLDecodeError as error:
        raise ListWrong(f"{file.name}: {error}") from error
    try:
        return program_of(data, file.stem)
    except ListWrong as error:
        raise ListWrong(f"{file.name}: {error}") from None


def program_of(data: Mapping[str, Any], stem: str) -> Program:
    known(data, FIELDS, "the program")
    number = value(data, "number", int)
    named = re.fullmatch(r"(\d+)-([a-z0-9-]+)", stem)
    if named is None or int(named[1]) != number:
        raise ListWrong(f"its name must be NN-name.toml with the number {number:02d}, in lower case")
    commit = value(data, "commit", str)
    if not re.fullmatch(r"[0-9a-f]{40}", commit):
        raise ListWrong(f"commit must be 40 hexadecimal digits, not {commit!r}")
    if value(data, "repository", str).count("/") != 1:
        raise ListWrong(f"repository must be owner/name, not {data['repository']!r}")
    needs = texts(data, "needs")
    if strange := sorted(set(needs) - PACKAGES - STANDINS):
        raise ListWrong(f"needs names {', '.join(strange)}; known are {', '.join(sorted(PACKAGES | STANDINS))}")
    edits = rules(data, "edit")
    if (written := sum(rule.written for rule in edits)) > EDITED_LINES:
        raise ListWrong(f"the edits have {written} lines, more than {EDITED_LINES}")
    return Program(
        number=number,
        name=named[2],
        repository=data["repository"],
        commit=commit,
        path=value(data, "path", str),
        directory=value(data, "directory", str, ""),
        pattern=value(data, "pattern", str),
        finding=texts(data, "finding"),
        needs=needs,
        edits=edits,
        cures=rules(data, "cure"),
        expert=expert_of(value(data, "expert", dict)),
        arguments=texts(data, "arguments"),
        paths=texts(data, "paths"),
    )


def expert_of(data: Mapping[str, Any]) -> Expert:
    known(data, ["gain", "step_gain", "why"], "expert")
    step = data.get("step_gain")
    return Expert(
        float(value(data, "gain", (int, float))), value(data, "why", str), None if step is None else float(step)
    )


def rules(data: Mapping[str, Any], name: str) -> tuple[Rule, ...]:
    return tuple(rule_of(one, f"{name} {place}") for place, one in enumerate(data.get(name, []), 1))


def rule_of(data: Mapping[str, Any], title: str) -> Rule:
    known(data, ["file", "lines", "text", "substitute", "over"], title)
    lines = data.get("lines")
    if not isinstance(lines, list) or [type(line) for line in lines] != [int, int]:
        raise ListWrong(f"{title}: lines must be [first, last]")
    first, last = lines
    if first < 1 or last < first - 1:
        raise ListWrong(f"{title}: lines {lines} are no range; [{first}, {first - 1}] inserts before line {first}")
    if ("text" in data) == ("substitute" in data):
        raise ListWrong(f"{title}: give either text or substitute")
    pairs = data.get("substitute", [])
    if len(pairs) % 2 or not all(isinstance(part, str) for part in pairs) or ("substitute" in data and last < first):
        raise ListWrong(f"{title}: substitute is [old, new] (or more such pairs) within one or more lines")
    return Rule(
        file=value(data, "file", str),
        first=first,
        last=last,
        text=data.get("text"),
        substitute=tuple(zip(pairs[::2], pairs[1::2], strict=True)),
        over=bool(data.get("over", False)),
    )


def known(data: Mapping[str, Any], names: Sequence[str], title: str) -> None:
    if strange := sorted(set(data) - set(names)):
        raise ListWrong(f"{title} has {', '.join(strange)}; known are {', '.join(names)}")


def value(data: Mapping[str, Any], name: str, kind: type | tuple[type, ...], default: Any = None) -> Any:
    found = data.get(name, default)
    if found is None:
        raise ListWrong(f"{name} is missing")
    if not isinstance(found, kind) or isinstance(found, bool):
        raise ListWrong(f"{name} must not be {found!r}")
    return found


def texts(data: Mapping[str, Any], name: str) -> tuple[str, ...]:
    found = data.get(name, [])
    if not isinstance(found, list) or not all(isinstance(one, str) for one in found):
        raise ListWrong(f"{name} must be a list of texts")
    return tuple(found)
