"""What an edit says, with the line, of a place that it leaves as it is."""

from __future__ import annotations

import importlib
from pathlib import Path

import pytest

from flatout.model.case import Case, Evidence, Program, Where
from flatout.model.evidence.program import KerasCall
from flatout.model.evidence.steps import EagerLine

PREDICT = KerasCall("predict", calls=40, ms=1.0, batches=40, single=40)
TRAIN = KerasCall("train_on_batch", calls=40, ms=1.0, batches=40, single=40, values=1)
ASSIGN = EagerLine(1.0, of="assign", calls=40, per_step=1.0)
MODEL = EagerLine(1.0, of="model", calls=40, per_step=1.0)
SETS = EagerLine(1.0, of="set-weights", calls=40, per_step=1.0)

LEFT = [
    ("direct_predict", PREDICT, "y = model.predict(x, **how)", "line 3 gives predict **how"),
    ("direct_predict", PREDICT, "y = model.predict(x, steps=n)", "line 3 gives predict steps=n"),
    ("direct_predict", PREDICT, "y = model.predict(x, callbacks=[log])", "callbacks=[log]"),
    ("direct_predict", PREDICT, "y = forward(x)  # predict", "by another name"),
    ("direct_batch", TRAIN, "loss = model.train_on_batch(x, y, class_weight=w)", "line 3 gives class_weight=w"),
    ("direct_batch", TRAIN, "loss = model.train_on_batch(**x)", "line 3 gives keywords by **"),
    ("direct_batch", TRAIN, "loss = model.train_on_batch(x)  # run_eagerly", "`run_eagerly` stands in the program"),
    ("mix_weights", SETS, "net.set_weights([w * 2 for w in x])", "line 3 sets weights to something else"),
    ("mix_weights", ASSIGN, "[a.assign(b) for a, b in zip(ours, x)]", "line 3 assigns to or from ours"),
    ("mix_weights", SETS, "net.set_weights(model.get_weights()); x = 1", "beside another statement"),
    ("mix_weights", SETS, "net.set_weights(x.get_weights())  # def get_weights(", "a get_weights of the program's own"),
    ("traced_calls", MODEL, "y = sampler(model(x))", "line 3 makes several calls"),
    ("traced_calls", MODEL, "y = model.call(x)", "line 3 calls a model in a way that is not read"),
]


@pytest.mark.parametrize(("cure", "evidence", "row", "words"), LEFT, ids=[f"{one[0]}-{one[3]}" for one in LEFT])
def test_what_stays_is_told_by_its_line(tmp_path: Path, cure: str, evidence: Evidence, row: str, words: str) -> None:
    path = tmp_path / "train.py"
    path.write_text(f"model, net = make()\nfor x in rows:\n    {row}\n")
    seen = type(evidence)(**{**vars(evidence), "where": Where(str(path), 3, "train")})
    case = Case("run", program=Program(("python", str(path)), str(tmp_path)), evidence=(seen,))
    edit = importlib.import_module(f"flatout.cures.{cure}.edit").edit
    assert edit(path.read_text(), str(path), case, "") is None
    assert words in importlib.import_module(f"flatout.cures.{cure}").CURE.by_hand(case, "")


@pytest.mark.parametrize(
    ("cure", "evidence", "row"),
    [("direct_predict", PREDICT, "y = forward(x)  # predict"), ("traced_calls", MODEL, "y = sampler(model(x))")],
)
def test_a_form_feed_begins_no_line(tmp_path: Path, cure: str, evidence: Evidence, row: str) -> None:
    layer = "class Own(Layer):\n    def call(self, x):\n        return x\n"
    path = tmp_path / "train.py"
    path.write_text(f"\x0c\nfor x in rows:  # a\u2028b\n    {row}\n{layer}", encoding="utf-8")
    seen = type(evidence)(**{**vars(evidence), "where": Where(str(path), 3, "train")})
    case = Case("run", program=Program(("python", str(path)), str(tmp_path)), evidence=(seen,))
    edit = importlib.import_module(f"flatout.cures.{cure}.edit").edit
    assert edit(path.read_text(encoding="utf-8"), str(path), case, "") is None
    assert "line 3" in importlib.import_module(f"flatout.cures.{cure}").CURE.by_hand(case, "")
