"""What older releases of TensorFlow have elsewhere: names that moved, traces by methods, graphs taken apart."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from flatout.observe import private_names, traced
from flatout.observe.observer import Observer
from flatout.observe.private_names import PRIVATE_NAMES, Missing, PrivateName
from flatout.observe.probes import graphs
from flatout.observe.recorder import Recorder
from flatout.observe.settings import ObserveSettings

# ── names ────────────────────────────────────────────────────────────────────────────────────────────────────────────


def module(monkeypatch: pytest.MonkeyPatch, name: str, **attributes: Any) -> ModuleType:
    made = ModuleType(name)
    vars(made).update(attributes)
    monkeypatch.setitem(sys.modules, name, made)
    return made


def name_with(monkeypatch: pytest.MonkeyPatch, *earlier: tuple[str, str]) -> None:
    monkeypatch.setitem(PRIVATE_NAMES, "toy", PrivateName("toy_new", "call", "toys", "none", earlier=earlier))


def test_a_name_is_looked_for_where_it_was_earlier(monkeypatch: pytest.MonkeyPatch) -> None:
    name_with(monkeypatch, ("toy_gone", "call"), ("toy_old", "Toy.call"))
    toy = type("Toy", (), {"call": lambda self: 1})
    module(monkeypatch, "toy_old", Toy=toy)
    assert private_names.resolve("toy") == (toy, "call", toy.call)


def test_where_it_is_now_comes_first(monkeypatch: pytest.MonkeyPatch) -> None:
    name_with(monkeypatch, ("toy_old", "call"))
    module(monkeypatch, "toy_old", call=min)
    new = module(monkeypatch, "toy_new", call=max)
    assert private_names.resolve("toy") == (new, "call", max)


def test_a_name_that_is_nowhere_is_missing_by_its_name_of_today(monkeypatch: pytest.MonkeyPatch) -> None:
    name_with(monkeypatch, ("toy_gone", "call"))
    with pytest.raises(Missing, match=r"toy_new\.call"):
        private_names.resolve("toy")


# ── traces ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def types(**kinds: str) -> Any:
    return SimpleNamespace(parameters={name: SimpleNamespace(type_constraint=kind) for name, kind in kinds.items()})


class Compiler:
    """As `TracingCompiler` of TensorFlow 2.12 and 2.13."""

    def __init__(self, traces: int = 0) -> None:
        self._python_function = len
        self._name = "step"
        self._function_cache = SimpleNamespace(values=lambda: [None] * traces)
        self._function_spec = SimpleNamespace(
            make_canonicalized_monomorphic_type=lambda given, named: (types(x=f"{given[0]}", flag=named["flag"]), None)
        )


def described(trace: traced.Asked) -> tuple[Any, str, Any, Any, Mapping[str, Any]]:
    return trace.function, trace.name, trace.graph, trace.cache, trace.types()


def test_a_trace_says_the_same_in_both_forms() -> None:
    compiler = Compiler()
    cache = compiler._function_cache
    by_method = traced.asked((compiler, ("float32[2]",), {"flag": "True"}, "graph"))
    options = SimpleNamespace(python_function=len, name="step", function_cache=cache)
    by_function = traced.asked((types(x="float32[2]", flag="True"), "context", "graph", options))
    expected = (len, "step", "graph", cache, {"x": "float32[2]", "flag": "True"})
    assert described(by_method) == described(by_function) == expected


def test_a_function_has_one_cache_or_one_for_each_of_its_compilers() -> None:
    cache = {"one": 1, "two": 2}
    assert traced.caches(SimpleNamespace(_function_cache=cache)) == (cache,)
    first, others = Compiler(1), Compiler(3)
    older = SimpleNamespace(_variable_creation_fn=first, _no_variable_creation_fn=others)
    assert traced.caches(older) == (first._function_cache, others._function_cache)
    assert traced.kept(older) == 4
    assert traced.kept(SimpleNamespace(_function_cache=cache)) == 2
    assert traced.kept(SimpleNamespace(_variable_creation_fn=None, _no_variable_creation_fn=None)) == 0
    assert traced.any_in(older, {id(others._function_cache): "trains"}) == "trains"
    assert traced.any_in(older, {id(cache): "trains"}) is None


# ── graphs ───────────────────────────────────────────────────────────────────────────────────────────────────────────


class Graph:
    """TensorFlow 2.13 crashes where ops are asked for after a graph was taken apart."""

    def __init__(self) -> None:
        self.name = "graph"

    def get_operations(self) -> list[Any]:
        if not vars(self):
            raise SystemExit("crashed")
        return [SimpleNamespace(type="Add", name="add", outputs=[], inputs=[], device="", traceback=None)]


def test_a_graph_that_was_taken_apart_is_left_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(graphs, "patch", lambda key, wrap: None)
    observer = Observer(Recorder(str(tmp_path)), ObserveSettings())
    graphs.on_tensorflow(observer, ModuleType("tensorflow"))
    whole, apart = Graph(), Graph()
    for graph in (apart, whole):
        observer.shared.keep_graph(graph)
    vars(apart).clear()
    observer.hooks.at_end[-1]()
    facts = (tmp_path / "facts.jsonl").read_text()
    assert facts.count('"kind":"graph"') + facts.count('"kind": "graph"') == 1


def test_keras_2_is_looked_for_where_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(private_names, "_home", ["tf_keras.src"])
    assert (private_names.keras_2(), private_names.package_of("legacy-floatx")) == ("tf_keras", "tf_keras")
    for home in ("keras.src", "keras"):  # beside TensorFlow 2.13 to 2.15, beside 2.12
        private_names.keras_2_is_in(home)
        assert (private_names.keras_2(), private_names.package_of("legacy-floatx")) == ("keras", "keras")
    assert private_names.package_of("layer-init") == "keras"
