"""Edits of the user's source. Each pair `x.in.py`, `x.out.py` below tests/fixtures/edits is a test; without an
`x.out.py` the edit must leave the text alone. `x.json` says what the observed run found, with a piece of the line's
text in place of its number."""

from __future__ import annotations

import ast
import importlib
import json
from pathlib import Path
from typing import Any

import pytest

from flatout.model import codec
from flatout.model.case import (
    Case,
    Evidence,
    Finding,
    Function,
    Pipeline,
    Program,
    Retrace,
    Split,
    Stage,
    StageDetail,
    Steps,
    Where,
    to_plain,
)
from flatout.model.case import Distribution as Times
from flatout.model.evidence.kinds import class_of

FIXTURES = Path(__file__).parent.parent / "fixtures" / "edits"
PAIRS = sorted(FIXTURES.glob("*/*.in.py"))


def evidence(kind: str, value: object, where: Where, data: dict[str, Any]) -> Evidence:
    """As it would be read from a saved case."""
    unit = (class_of(kind) or Evidence).UNIT
    form = {"kind": kind, "value": value, "unit": unit, "where": to_plain(where), "data": data}
    return codec.read(Evidence, form)


def case_from(hints: dict[str, Any], text: str, path: str) -> Case:
    rows = text.splitlines()

    def line(piece: str) -> int:
        return next(number for number, row in enumerate(rows, 1) if piece in row)

    def where(piece: str) -> Where:
        return Where(path, line(piece), code=rows[line(piece) - 1].strip())

    step = hints.get("step")
    stack = {"stack": [[path, line(step["at"]), "<module>", 1]], **step} if step else {}
    return Case(
        kind="run",
        program=Program(("python", hints.get("program", path)), str(Path(path).parent)),
        steps=Steps(10, "", Times(1, 1, 1), where=where(step["at"])) if step else None,
        evidence=(
            *((evidence("step-stack", step["of"], where(step["at"]), stack),) if step else ()),
            *(
                evidence(kind, data.pop("value", 1), where(piece), data)
                for kind, piece, data in hints.get("evidence", [])
            ),
        ),
        findings=tuple(Finding(cause, "", where(piece)) for cause, piece in hints.get("findings", [])),
        functions=tuple(
            Function(
                item["name"],
                where(item["at"]),
                9,
                1.0,
                why=tuple(Retrace(name, a, b, 8, where(at)) for name, a, b, at in item.get("why", [])),
            )
            for item in hints.get("functions", [])
        ),
        pipelines=(
            Pipeline(
                "pipeline",
                None,
                tuple(
                    Stage(op, op, where(piece), *extra[:1], stateful=(extra[1:] or [None])[0])
                    for op, piece, *extra in hints["stages"]
                ),
            ),
        )
        if "stages" in hints
        else (),
    )


def value_from(hints: dict[str, Any], text: str, path: str) -> str:
    value = str(hints.get("value", ""))
    if value.startswith("at:"):
        piece = value.removeprefix("at:")
        return f"{path}:{next(number for number, row in enumerate(text.splitlines(), 1) if piece in row)}"
    return value


@pytest.mark.parametrize("given", PAIRS, ids=lambda path: f"{path.parent.name}/{path.name.removesuffix('.in.py')}")
def test_edit(given: Path) -> None:
    name = given.name.removesuffix(".in.py")
    wanted, described = given.with_name(f"{name}.out.py"), given.with_name(f"{name}.json")
    hints = json.loads(described.read_text()) if described.exists() else {}
    text, path = given.read_text(), str(given)
    edit = importlib.import_module(f"flatout.cures.{given.parent.name.replace('-', '_')}.edit").edit
    case, value = case_from(hints, text, path), value_from(hints, text, path)
    new = edit(text, path, case, value)
    if not wanted.exists():
        assert new is None
        return
    assert new == wanted.read_text()
    ast.parse(new)
    from flatout.source.editing.line_tracking import LineMap, follow

    moved = follow(case, path, LineMap(text, new))
    again = edit(new, path, moved, value_from(hints, text, path) if "at:" not in str(hints.get("value")) else value)
    assert again is None, "an edit of its own result changes nothing"


def test_every_edit_has_a_pair_that_changes_and_one_that_does_not() -> None:
    package = Path(importlib.import_module("flatout.cures").__file__ or "").parent
    edits = {file.parent.name.replace("_", "-") for file in package.glob("*/edit.py")}
    assert edits
    for name in sorted(edits):
        pairs = list((FIXTURES / name).glob("*.in.py"))
        changing = [pair for pair in pairs if pair.with_name(pair.name.replace(".in.py", ".out.py")).exists()]
        assert changing, f"tests/fixtures/edits/{name}/ lacks an x.in.py with its x.out.py"
        assert len(changing) < len(pairs), f"tests/fixtures/edits/{name}/ lacks an x.in.py that is to be left alone"


def test_vectorize_map_changes_the_pipeline_that_costs_most() -> None:
    text = "train = ds.map(scale).batch(32)\nother = ds.map(shift).batch(32)\n"

    def pipeline(line: int, ms: float) -> Pipeline:
        where = Where("train.py", line)
        maps = Stage("Map", "Map", where, ms=ms, detail=StageDetail(ms_per_batch=ms))
        return Pipeline(f"pipeline {line}", None, (maps, Stage("Batch", "Batch", where)))

    def edited(first: float, second: float) -> str:
        steps = Steps(10, "", Times(10.0, 9.0, 11.0, 10.0), Split(input=5.0, compute=5.0))
        case = Case(kind="run", steps=steps, pipelines=(pipeline(1, first), pipeline(2, second)))
        edit = importlib.import_module("flatout.cures.vectorize_map.edit").edit
        return str(edit(text, "train.py", case, "direct"))

    assert edited(4.0, 1.0) == text.replace(".map(scale).batch(32)", ".batch(32).map(scale)")
    assert edited(1.0, 4.0) == text.replace(".map(shift).batch(32)", ".batch(32).map(shift)")
