"""The Case: what is written can be read again, by this version and by later ones."""

from __future__ import annotations

import json
from dataclasses import replace

from sample_case import sample_case

from flatout.model.case import Case, Steps


def test_a_full_case_survives_the_trip_through_json() -> None:
    case = sample_case()
    again = Case.from_json(json.loads(json.dumps(case.to_json(), allow_nan=False)))
    assert again == case


def test_the_sample_fills_every_field() -> None:
    """Otherwise the round trip above proves less than it says."""
    empty = [name for name, value in sample_case().to_json().items() if value in (None, "", [], {})]
    assert empty == []


def test_an_empty_case_survives_too() -> None:
    case = Case(kind="env")
    assert Case.from_json(json.loads(json.dumps(case.to_json()))) == case


def test_names_of_a_later_version_are_passed_over() -> None:
    data = sample_case().to_json()
    data["a_later_field"] = {"deep": [1, 2]}
    data["steps"]["another"] = "text"
    data["findings"][0]["evidence"][0]["third"] = 3
    data["pipelines"][0]["stages"][0]["fourth"] = None
    assert Case.from_json(data) == sample_case()


def test_fields_that_an_earlier_version_lacked_get_their_defaults() -> None:
    data = {"kind": "run", "schema": 1, "findings": [{"cause": "float64", "summary": "s"}]}
    case = Case.from_json(data)
    assert case.findings[0].confidence == "medium"
    assert case.steps is None


def test_the_names_that_others_rely_on() -> None:
    data = sample_case().to_json()
    assert data["steps"]["ms"].keys() >= {"median", "p10", "p90"}
    assert data["steps"]["split_ms"].keys() == {"input", "trace", "python", "compute", "copy", "idle"}
    assert data["functions"][0].keys() >= {"name", "where", "traces", "trace_ms", "why"}
    assert data["memory"].keys() >= {"peak_bytes", "by_op"}
    finding = data["findings"][0]
    assert finding.keys() >= {"cause", "where", "cost_ms", "cost_share", "evidence", "fixes"}
    assert finding["where"].keys() >= {"file", "line"}
    assert data["trials"][0]["speedup"].keys() == {"ratio", "low", "high"}
    assert data["trials"][0].keys() >= {"levers", "speedup", "parity", "status"}


def test_tuples_come_back_as_tuples() -> None:
    steps = Case.from_json(json.loads(json.dumps(sample_case().to_json()))).steps
    assert isinstance(steps, Steps)
    assert steps.window == (40, 59)
    assert isinstance(steps.times_ms, tuple)


def test_numpy_scalars_become_plain_numbers() -> None:
    numpy = __import__("numpy")
    case = sample_case()
    assert case.memory is not None
    case = replace(case, memory=replace(case.memory, peak_bytes=numpy.int64(7)))
    assert json.loads(json.dumps(case.to_json()))["memory"]["peak_bytes"] == 7
