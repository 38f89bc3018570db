"""Places of random numbers: the same in an edited copy, another for another call."""

from __future__ import annotations

import linecache
import random
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from flatout.trial.child.pinned import counters, places, streams

PROGRAM = """
def step(ask):
    noise = ask.normal(
        [3],
    )
    other = ask.uniform(2), 1
    return noise, other

def policy(ask):
    if ask.rand() < 0.5:
        return ask.choice([1, 2])
"""
EDITED = """
import math

def train(x, ask):
    loss = 0
    noise = ask.normal([3])
    return loss, noise
"""


class Asked:
    """Stands for a library that draws: its calls are asked for their place."""

    def __getattr__(self, name: str) -> object:
        return lambda *args: places._place(sys._getframe(1)) or ""


def loaded(tmp_path: Path, text: str, name: str) -> dict[str, object]:
    path = tmp_path / name
    path.write_text(text)
    linecache.checkcache(str(path))
    namespace: dict[str, object] = {"__name__": "__main__"}
    exec(compile(text, str(path), "exec"), namespace)
    return namespace


def test_a_place_is_the_text_of_the_calls_that_draw(tmp_path: Path) -> None:
    names = loaded(tmp_path, PROGRAM, "program.py")
    assert names["step"](Asked())[0] == "ask.normal([3])"  # type: ignore[operator]
    assert places._text(str(tmp_path / "program.py"), 6) == "ask.uniform(2)"
    assert places._text(str(tmp_path / "program.py"), 10) == "ask.rand()"
    assert places._text(str(tmp_path / "program.py"), 11) == "ask.choice([1, 2])"


def test_it_survives_an_edit_that_moves_the_statement_into_another_function(tmp_path: Path) -> None:
    before = loaded(tmp_path, PROGRAM, "program.py")["step"](Asked())[0]  # type: ignore[operator]
    after = loaded(tmp_path, EDITED, "edited.py")["train"](0, Asked())[1]  # type: ignore[operator]
    assert before == after


def test_a_call_in_a_chain_stays_the_same_where_others_come_in(tmp_path: Path) -> None:
    (tmp_path / "plain.py").write_text("ds = tf.data.Dataset.range(9).map(f).shuffle(100, seed=None).batch(8)\n")
    (tmp_path / "edited.py").write_text(
        "ds = (tf.data.Dataset.range(9).map(f, 4).cache()\n.shuffle(100, seed=None).batch(8)\n.prefetch(2))\n"
    )
    assert places._text(str(tmp_path / "plain.py"), 1) == "shuffle(100, seed=None)"
    assert places._text(str(tmp_path / "edited.py"), 2) == "shuffle(100, seed=None)"


def test_a_model_that_is_called_in_another_way_draws_in_the_same_place(tmp_path: Path) -> None:
    (tmp_path / "plain.py").write_text("a = np.random.choice(n, p=self.actor.predict(s[None], verbose=0)[0].ravel())\n")
    (tmp_path / "edited.py").write_text("a = np.random.choice(n, p=_traced_actor(s[None])[0].numpy().ravel())\n")
    (tmp_path / "other.py").write_text("a = np.random.choice(m, p=self.actor.predict(s[None], verbose=0)[0].ravel())\n")
    one, two, other = (places._text(str(tmp_path / name), 1) for name in ("plain.py", "edited.py", "other.py"))
    assert one == two == "np.random.choice(n, p=_(s[None])[0])"
    assert other != one


def test_a_source_that_is_not_there_or_not_python_has_a_place_all_the_same(tmp_path: Path) -> None:
    assert places._text(str(tmp_path / "none.py"), 3) == ""
    (tmp_path / "broken.py").write_text("def (:\n")
    assert places._text(str(tmp_path / "broken.py"), 1) == ""


def test_each_place_has_a_stream_of_its_own() -> None:
    one, two = streams.Streams(0, random.Random), streams.Streams(0, random.Random)
    ours = [one.at("a").random(), one.at("a").random()]
    for _ in range(5):
        two.at("b").random()  # another place draws in between
    assert [two.at("a").random(), two.at("a").random()] == ours
    assert ours[0] != ours[1]
    assert one.at("b").random() != ours[0]


@pytest.mark.parametrize("seed", [0, 1])
def test_a_seed_of_the_program_begins_anew(seed: int) -> None:
    found = streams.Streams(0, random.Random)
    found.begin(repr(seed))
    first = found.at("a").random()
    found.at("a").random()
    found.begin(repr(seed))
    assert found.at("a").random() == first
    found.begin("other")
    assert found.at("a").random() != first


def test_each_graph_counts_its_own_seeds(monkeypatch: pytest.MonkeyPatch) -> None:
    class Graph:
        pass

    graphs: list[Graph] = []
    eager = SimpleNamespace(context=SimpleNamespace(executing_eagerly=lambda: not graphs))
    framework = SimpleNamespace(ops=SimpleNamespace(get_default_graph=lambda: graphs[-1]))
    monkeypatch.setitem(sys.modules, "tensorflow.python.eager", eager)
    monkeypatch.setitem(sys.modules, "tensorflow.python.framework", framework)

    def first_two() -> tuple[object, object]:
        graphs[:] = [Graph()]  # often where the one before it was
        return counters.op_seed("shuffle()"), counters.op_seed("shuffle()")

    found = [first_two() for _ in range(20)]
    assert len(set(found)) == 1
    assert found[0][0] != found[0][1]
    graphs.clear()
    assert counters.op_seed("shuffle()") == found[0][0]
    assert counters.op_seed("shuffle()") == found[0][1]
