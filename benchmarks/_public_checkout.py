"""Checkouts of public programs beside the project, with rules applied to them.

`original` has the edits that make the program run here, `cured` the expert's cure on top. A checkout is made again
where its rules have changed.
"""

from __future__ import annotations

import hashlib
import io
import itertools
import os
import shutil
import subprocess
import tarfile
from collections.abc import Sequence
from pathlib import Path

from _public_list import ListWrong, Program, Rule

GITHUB = "https://github.com/{owner}/{name}"


class CheckoutFailed(Exception):
    """The repository or the commit could not be had."""


def original(program: Program, checkouts: Path, mirror: str = GITHUB) -> Path:
    return made(program, "original", program.edits, checkouts, mirror)


def cured(program: Program, checkouts: Path, mirror: str = GITHUB) -> Path:
    return made(program, "cured", merged(program.edits, program.cures), checkouts, mirror)


def made(program: Program, kind: str, rules: Sequence[Rule], checkouts: Path, mirror: str) -> Path:
    """The directory of this kind, made where it is missing or was made by other rules."""
    target = checkouts / program.title / kind
    mark = target.parent / f"{kind}.rules"
    wanted = hashlib.sha256(repr((program.repository, program.commit, program.paths, rules)).encode()).hexdigest()
    if target.is_dir() and mark.is_file() and mark.read_text() == wanted:
        return target
    shutil.rmtree(target, ignore_errors=True)
    mark.unlink(missing_ok=True)
    target.mkdir(parents=True)
    unpack(program, target, checkouts, mirror)
    apply(rules, target)
    mark.write_text(wanted)
    return target


def unpack(program: Program, target: Path, checkouts: Path, mirror: str) -> None:
    repository = clone(program, checkouts, mirror)
    absent = [f":(exclude,literal){path}" for path in missing(repository, program.commit)]
    command = ["git", "-C", str(repository), "archive", program.commit, "--", *(program.paths or (".",)), *absent]
    found = subprocess.run(command, capture_output=True)
    if found.returncode:
        raise CheckoutFailed(f"{program.repository} has no commit {program.commit}: {found.stderr.decode()[-300:]}")
    with tarfile.open(fileobj=io.BytesIO(found.stdout)) as archive:
        archive.extractall(target, filter="data")


def missing(repository: Path, commit: str) -> list[str]:
    """Files that the commit lists and a mirror does not hold: large data, as a rule."""
    command = ["git", "-C", str(repository), "ls-tree", "-r", "-l", "-z", commit]
    listed = subprocess.run(command, capture_output=True).stdout.decode("utf-8", "surrogateescape")
    rows = [row.partition("\t") for row in listed.split("\0") if row]
    return [path for about, _, path in rows if about.endswith("BAD")]


def clone(program: Program, checkouts: Path, mirror: str) -> Path:
    """A bare clone, shared by the programs of one repository."""
    owner, _, name = program.repository.partition("/")
    target = checkouts / "repositories" / f"{owner}+{name}"
    if not target.is_dir():
        source = mirror.format(owner=owner, name=name)
        partial = target.with_name(f"{target.name}.{os.getpid()}")
        command = ["git", "clone", "--quiet", "--bare", source, str(partial)]
        found = subprocess.run(command, capture_output=True, text=True)
        if found.returncode:
            raise CheckoutFailed(f"{source} could not be cloned: {found.stderr[-300:]}")
        partial.rename(target)
    return target


def merged(edits: Sequence[Rule], cures: Sequence[Rule]) -> tuple[Rule, ...]:
    """Edits and cures as one list; a cure with `over` takes the place of the edits within its lines.

    Raises ListWrong.
    """
    kept = list(edits)
    result: list[Rule] = []
    for cure in cures:
        if cure.over:
            inside = [edit for edit in kept if edit.file == cure.file and touches(edit, cure)]
            for edit in inside:
                if edit.first < cure.first or edit.last > cure.last:
                    raise ListWrong(f"the cure of {cure.title} covers only a part of the edit of {edit.title}")
                kept.remove(edit)
                if cure.text is None:
                    raise ListWrong(f"the cure of {cure.title} is over an edit: give its text, not substitute")
        result.append(cure)
    return (*kept, *result)


def in_order(rules: Sequence[Rule]) -> list[Rule]:
    return sorted(rules, key=lambda rule: (rule.file, rule.first, rule.last))


def touching(rules: Sequence[Rule]) -> tuple[Rule, Rule] | None:
    """Two rules that change the same lines of a file, where there are such."""
    pairs = itertools.combinations(in_order(rules), 2)
    return next((pair for pair in pairs if pair[0].file == pair[1].file and touches(*pair)), None)


def touches(one: Rule, other: Rule) -> bool:
    """Whether two rules of one file change the same lines; an insertion touches only lines around it on both sides."""
    if one.inserts and other.inserts:
        return False
    if one.inserts or other.inserts:
        place, lines = (one, other) if one.inserts else (other, one)
        return lines.first < place.first <= lines.last
    return one.first <= other.last and other.first <= one.last


def apply(rules: Sequence[Rule], directory: Path) -> None:
    """Rewrite the files that the rules name; one that is not there is made by a rule for lines [1, 0]."""
    for name in dict.fromkeys(rule.file for rule in rules):
        file = directory / name
        mine = [rule for rule in rules if rule.file == name]
        before = b""
        if file.is_file():
            before = file.read_bytes()
        elif any(rule.last for rule in mine):
            raise ListWrong(f"{name} is not in the checkout")
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(rewritten(before.decode("utf-8"), mine).encode("utf-8"))


def rewritten(text: str, rules: Sequence[Rule]) -> str:
    """The text with all rules applied. Raises ListWrong where two of them touch or a line is missing."""
    lines = text.replace("\r\n", "\n").splitlines(keepends=True)
    ordered = in_order(rules)
    if together := touching(rules):
        raise ListWrong(f"two rules touch the same lines: {together[0].title} and {together[1].title}")
    result: list[str] = []
    done = 0
    for rule in ordered:
        if max(rule.last, rule.first - 1) > len(lines):
            raise ListWrong(f"{rule.title}: the file has {len(lines)} lines")
        result += lines[done : rule.first - 1]
        result += replaced(rule, lines[rule.first - 1 : rule.last])
        done = rule.last if not rule.inserts else rule.first - 1
    return "".join(result + lines[done:])


def replaced(rule: Rule, lines: Sequence[str]) -> list[str]:
    if rule.text is not None:
        return [rule.text if rule.text.endswith("\n") or not rule.text else rule.text + "\n"]
    text = "".join(lines)
    for old, new in rule.substitute:
        if old not in text:
            raise ListWrong(f"{rule.title}: there is no {old!r}")
        text = text.replace(old, new)
    return [text]
