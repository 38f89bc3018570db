"""The list of public programs (benchmarks/public): its rules, applied to a toy file, and the files themselves."""

from __future__ import annotations

import dataclasses
import json
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "benchmarks"))
import _public_checkout as checkout
import _public_list
import _public_results as results
import notebooks
from _public_list import ListWrong, Rule

TOY = "one\ntwo\nthree\nfour\nfive\n"


def rule(first: int, last: int, text: str | None = None, *substitute: str, over: bool = False) -> Rule:
    return Rule("toy.py", first, last, text, tuple(zip(substitute[::2], substitute[1::2], strict=True)), over)


def test_rules_replace_insert_delete_and_substitute_by_the_numbers_of_the_file_as_committed() -> None:
    rules = [rule(4, 4, None, "four", "FOUR"), rule(1, 0, "zero"), rule(2, 3, "2\n2.5\n3\n"), rule(5, 5, "")]
    assert checkout.rewritten(TOY, rules) == "zero\none\n2\n2.5\n3\nFOUR\n"


def test_a_line_is_added_at_the_end() -> None:
    assert checkout.rewritten(TOY, [rule(6, 5, "six")]) == TOY + "six\n"


@pytest.mark.parametrize(
    ("rules", "said"),
    [
        ([rule(2, 4, "x"), rule(4, 5, "y")], "touch the same lines"),
        ([rule(2, 4, "x"), rule(3, 2, "y")], "touch the same lines"),
        ([rule(6, 6, "x")], "has 5 lines"),
        ([rule(1, 1, None, "two", "2")], "there is no 'two'"),
    ],
    ids=["overlap", "insertion inside", "past the end", "nothing to substitute"],
)
def test_rules_that_do_not_fit_are_refused(rules: list[Rule], said: str) -> None:
    with pytest.raises(ListWrong, match=said):
        checkout.rewritten(TOY, rules)


def test_a_cure_over_an_edit_takes_its_place() -> None:
    edits = (rule(2, 2, "edited"), rule(5, 5, "kept"))
    cures = (rule(1, 3, "cured", over=True),)
    assert checkout.rewritten(TOY, checkout.merged(edits, cures)) == "cured\nfour\nkept\n"


def test_a_cure_over_a_part_of_an_edit_is_refused() -> None:
    with pytest.raises(ListWrong, match="only a part"):
        checkout.merged((rule(2, 3, "edited"),), (rule(3, 4, "cured", over=True),))


def test_a_rule_for_no_lines_makes_a_file(tmp_path: Path) -> None:
    checkout.apply([Rule("data/make.py", 1, 0, "print(1)")], tmp_path)
    assert (tmp_path / "data/make.py").read_text() == "print(1)\n"


def program(**changes: object) -> dict[str, object]:
    expert = {"gain": 2, "why": "traced"}
    given = {"number": 7, "repository": "owner/name", "commit": "a" * 40, "path": "train.py", "pattern": "loop"}
    return {**given, "expert": expert, **changes}


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"commit": "main"}, "40 hexadecimal"),
        ({"nedds": []}, "nedds"),
        ({"needs": ["torch"]}, "torch"),
        ({"expert": {"gain": 2}}, "why is missing"),
        ({"edit": [{"file": "a", "lines": [1, 1]}]}, "either text or substitute"),
        ({"edit": [{"file": "a", "lines": [3, 1], "text": ""}]}, "no range"),
        ({"edit": [{"file": "a", "lines": [1, 1], "text": "x\n" * 26}]}, "more than 25"),
    ],
    ids=["commit", "unknown name", "need", "missing", "no text", "range", "too many lines"],
)
def test_a_file_that_is_wrong_says_what(changes: dict[str, object], said: str) -> None:
    with pytest.raises(ListWrong, match=said):
        _public_list.program_of(program(**changes), "07-toy")


def test_the_list_can_be_read_and_its_rules_fit_each_other() -> None:
    programs = _public_list.load()
    assert programs
    for one in programs:
        rules = checkout.merged(one.edits, one.cures)
        assert checkout.touching(one.edits) is None, one.title
        assert checkout.touching(rules) is None, one.title


def test_causes_that_experts_accept_exist() -> None:
    from flatout.causes import catalogue

    names = {name for one in _public_list.load() for name in one.finding}
    assert names
    assert names <= set(catalogue())


def test_numbers_agree_within_the_spread_of_the_original() -> None:
    original = [(0.50, 10.0), (0.52, 10.0)]
    assert results.agreement(original, [(0.51, 10.0)]) == "agree"
    assert results.agreement(original, [(0.70, 10.0)]).startswith("differ")
    assert results.agreement(original, [(0.51,)]) == "not comparable"


def listed(number: int, gain: float) -> _public_list.Program:
    return _public_list.program_of(program(number=number, expert={"gain": gain, "why": "x"}), f"{number:02d}-toy")


def tuned(number: int, **data: object) -> results.Result:
    given: dict[str, object] = {"verdict": "won", "outcome": "won", "levers": ["function"], "with_tuned": 0}
    given |= {"claimed": [2.0, 1.8, 2.2], "patch": "diff"}
    pairs = {"slow": [4.0, 4.2], "fast": [2.0, 2.0]}
    return results.Result(number, "tune", data={**given, "pairs": pairs, "whole": pairs, "numbers": "agree", **data})


def test_bars_count_what_holds() -> None:
    programs = [listed(1, 2.2), listed(2, 4.0), listed(3, 1.0)]
    made = [
        tuned(1),
        tuned(2, claimed=[3.5, 3.0, 4.0], with_tuned=1, numbers="differ: 1 beside 2"),
        tuned(3, outcome="done", claimed=None, patch="", levers=[], pairs=None, whole=None, with_tuned=None),
    ]
    bars = results.bars(programs, {(one.number, one.kind): one for one in made})
    said = {line[:42].strip(): line[42:].split("bar")[0].split() for line in bars}
    assert said["80 % of an expert's gain, with a patch"] == ["1", "of", "2"]
    assert said["nothing claimed where nothing is"] == ["1", "of", "1"]
    assert said["measured within the claim"] == ["1", "of", "2"]
    assert said["numbers do not differ"] == ["1", "of", "2"]
    assert said["no crash with --with @tuned"] == ["1", "of", "2"]
    assert said["first finding right"] == ["not", "measured"]


def test_a_patch_is_applied_where_its_names_fit(tmp_path: Path) -> None:
    import public

    one = dataclasses.replace(listed(1, 2.0), path="dir/train.py", directory="dir")
    (tmp_path / "dir").mkdir()
    (tmp_path / "dir" / "train.py").write_text("one\ntwo\n")
    patch = tmp_path / "change.diff"
    patch.write_text("--- a/train.py\n+++ b/train.py\n@@ -1,2 +1,2 @@\n one\n-two\n+TWO\n")
    assert public.applied(patch, one, tmp_path) == ""
    assert (tmp_path / "dir" / "train.py").read_text() == "one\nTWO\n"
    assert public.applied(patch, one, tmp_path) != ""


def book(*sources: list[str]) -> str:
    cells = [
        {"cell_type": "code", "metadata": {}, "outputs": [{"text": ["x = 1\n"]}], "source": one} for one in sources
    ]
    return json.dumps({"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 5}, indent=1) + "\n"


def test_the_public_notebooks_can_be_read() -> None:
    listed = notebooks.load()
    assert [one.number for one in listed] == list(range(1, 13))
    assert all(sum(rule.written for rule in one.edits) <= notebooks.EDITED_LINES for one in listed)
    assert len({one.repository for one in listed}) == len(listed)


def test_edits_of_a_notebook_are_by_cell_and_line() -> None:
    rules = [Rule("cell 2", 1, 1, None, (("y", "z"),)), Rule("cell 2", 2, 1, "w = 3")]
    edited = notebooks.edited(book(["x = 1"], ["y = 2\n", "y"]), rules)
    assert [cell["source"] for cell in json.loads(edited)["cells"]] == [["x = 1"], ["z = 2\n", "w = 3\n", "y"]]


def test_what_a_patch_must_not_touch_is_compared_byte_for_byte(tmp_path: Path) -> None:
    before, after = tmp_path / "before.ipynb", tmp_path / "after.ipynb"
    before.write_text(book(["x = 1\n", "y"], ["z = 2"]))
    after.write_text(book(["x = 1\n", "y"], ["z = 3\n", "w"]))
    assert notebooks.kept_of(before, after) == "changed cells: [2]; the rest is byte for byte what it was"
    after.write_text(after.read_text().replace('"nbformat": 4', '"nbformat":  4'))
    assert "IS NOT" in notebooks.kept_of(before, after)
    after.write_text(before.read_text().replace('"text": [', '"text":  ['))
    assert notebooks.kept_of(before, after).startswith("changed cells: []; the rest IS NOT")
