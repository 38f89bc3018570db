"""Levers of the host, of computing and of the runtime: what is read from source and case, without TensorFlow."""

from __future__ import annotations

import inspect
import textwrap
from collections.abc import Callable
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from flatout.cures import catalogue
from flatout.cures._free_variables import FreeVariables, in_order
from flatout.cures._function_replacement import copy_of, replace
from flatout.cures._scalars import Scalars
from flatout.cures._tracing import Unfit
from flatout.cures.accumulate import inject as accumulate
from flatout.model.case import Case, Distribution, Evidence, Function, Op, Steps
from flatout.model.evidence.program import Switch
from flatout.model.evidence.steps import EagerTape, StepStack, Stream
from flatout.model.levers import parse
from flatout.model.location import Frame, stack_of
from flatout.observe.injection import Injection
from flatout.source import side_effects


def reason(directory: Path, body: str, before: str = "") -> str | None:
    path = directory / f"module_{abs(hash((body, before)))}.py"
    head = f"import logging\nimport numpy as np\nimport tensorflow as tf\n{before}\n"
    path.write_text(head + "def step(self, x, log):\n" + textwrap.indent(textwrap.dedent(body), "    "))
    return side_effects.reason_against(str(path), head.count("\n") + 1)


@pytest.mark.parametrize(
    ("body", "word"),
    [
        ("print(x)", "print"),
        ("log.append(x)", "log.append"),
        ("self.count += 1", "self.count"),
        ("log['loss'] = x", "log['loss']"),
        ("global total\ntotal = x", "total"),
        ("logging.info(x)", "logging.info"),
        ("return x + np.random.rand()", "np.random.rand"),
        ("for i in range(3):\n    yield x", "generator"),
        ("try:\n    return x\nexcept ValueError:\n    return 0", "catches"),
        ("self.bar.set_postfix(loss=x)", "set_postfix"),
    ],
)
def test_what_a_trace_would_do_only_once_is_seen(tmp_path: Path, body: str, word: str) -> None:
    assert word in (reason(tmp_path, body) or "")


@pytest.mark.parametrize(
    "body",
    [
        "losses = []\nlosses.append(x)\nreturn tf.add_n(losses)",
        "self.metric.update_state(x)\nself.optimizer.learning_rate.assign(0.1)",
        "parts = {}\nparts['a'] = x\nreturn parts",
        "return tf.math.add(x, np.pi)",
        "tf.print(x)\nassert x is not None",
    ],
)
def test_what_a_graph_can_hold_speaks_against_nothing(tmp_path: Path, body: str) -> None:
    assert reason(tmp_path, body) is None


def test_a_function_without_source_is_left_alone(tmp_path: Path) -> None:
    assert side_effects.reason_against(str(tmp_path / "gone.py"), 3)


# ── the exchange of a function's code ────────────────────────────────────────────────────────────────────────────


def handed_over(function: Any) -> list[tuple[Any, ...]]:
    calls: list[tuple[Any, ...]] = []
    run = copy_of(function)

    def call(*args: Any, **kwargs: Any) -> Any:
        calls.append((args, kwargs))
        return run(*args, **kwargs)

    replace(function, call)
    return calls


def test_whoever_holds_the_function_calls_its_replacement() -> None:
    def step(x: int, *, scale: int = 2) -> int:
        return x * scale

    held = [step]
    signature = inspect.signature(step)
    calls = handed_over(step)
    assert held[0](3) == 6
    assert step(3, scale=5) == 15
    assert calls == [((3,), {}), ((3,), {"scale": 5})]
    assert inspect.signature(step) == signature
    with pytest.raises(TypeError):
        step()  # type: ignore[call-arg]


def test_closures_keep_their_variables() -> None:
    def make(a: int, b: int) -> Callable[[int], int]:
        def step(x: int) -> int:
            return x + a * 10 + b * 100

        return step

    first, second = make(1, 2), make(3, 4)
    calls = handed_over(first)
    assert (first(5), second(5)) == (215, 435)
    assert len(calls) == 1, "the other function has the same code and is another function"


def test_methods_keep_their_object_and_their_class() -> None:
    class Base:
        def step(self, x: int) -> int:
            return x

    class Trainer(Base):
        def step(self, x: int) -> int:
            return super().step(x) + 1

    trainer = Trainer()
    bound = trainer.step
    calls = handed_over(Trainer.step)
    assert (bound(1), trainer.step(2)) == (2, 3)
    assert calls == [((trainer, 1), {}), ((trainer, 2), {})]


# ── what a function reads from around it ─────────────────────────────────────────────────────────────────────────

SOURCE = """
import random
rate, table, generator = 0.1, {"a": 1}, random.Random(0)
class Holder: pass
holder = Holder(); holder.inner = Holder(); holder.inner.weight = 1.0

def helper(x):
    return x * rate

class Trainer:
    def __init__(self): self.weight, self.bias = 1.0, 0.0
    def step(self, x): return self.scaled(helper(x)) * self.weight + holder.inner.weight + table["a"]
    def scaled(self, x): return x + self.bias

def draws(x):
    return x + generator.random()
"""


def test_changes_around_a_function_are_noticed(tmp_path: Path) -> None:
    path = tmp_path / "around.py"
    path.write_text(SOURCE)
    scope: dict[str, Any] = {}
    exec(compile(SOURCE, str(path), "exec"), scope)
    trainer = scope["Trainer"]()
    around = FreeVariables(scope["Trainer"].step, (trainer, 1.0))

    def now() -> tuple[Any, ...]:
        return around.now((trainer, 1.0))

    seen = [now()]
    assert now() == seen[0]
    for change in (
        lambda: setattr(trainer, "weight", 2.0),
        lambda: setattr(trainer, "bias", 1.0),  # read by a method that the step calls
        lambda: scope.update(rate=0.2),  # read by a function that the step calls
        lambda: scope["table"].update(a=2),
        lambda: setattr(scope["holder"].inner, "weight", 3.0),
    ):
        change()
        assert now() not in seen
        seen.append(now())
    with pytest.raises(Unfit, match="random"):
        FreeVariables(scope["draws"], ())


CLASSES = """
class Model:
    def _flatten_layers(self): return []

class Odd:
    def _flatten_layers(self): raise RuntimeError("not now")

odd = Odd()

def annotated(model: Model, x: "Model") -> Model:
    assert isinstance(model, Model)
    return x

def of_an_object(x):
    return x + odd
"""


def test_classes_and_odd_objects_around_a_function_do_no_harm(tmp_path: Path) -> None:
    """A class that is named in an annotation has the methods of a model, but no layers."""
    path = tmp_path / "classes.py"
    path.write_text(CLASSES)
    scope: dict[str, Any] = {}
    exec(compile(CLASSES, str(path), "exec"), scope)
    model = scope["Model"]()
    around = FreeVariables(scope["annotated"], (model, 1.0))
    assert around.now((model, 1.0)) == around.now((model, 1.0))
    with pytest.raises(Unfit, match="not now"):
        FreeVariables(scope["of_an_object"], (1.0,))


HIDDEN = """
import types
import numpy as np

class Schedule:
    limit = 1.0
    def __init__(self): self.n = 0
    def value(self): return self.n * self.limit

class Slots:
    __slots__ = ("rate",)
    def __init__(self): self.rate = 0.1

class Settings: beta = 0.0

class Part:
    def __init__(self): self.scale = 1.0
    def __call__(self, x): return x * self.scale

space = types.SimpleNamespace(gamma=1.0)
table = {f"k{i}": i for i in range(50)}
nested = {"rates": [0.1, 0.2]}
weights = np.ones(4)
large = np.ones((100, 100))
aliased = Schedule()

def on(settings, x): return settings.limit * x

class Trainer:
    def __init__(self):
        self.schedule, self.slots, self.parts = Schedule(), Slots(), [Part(), Part()]
        self.weight, self.epoch, self.count, self.hook = (lambda x: x * self.epoch), 0, 0, None

    @property
    def beta(self): return self.epoch / 10

    def step(self, x):
        held = aliased
        y = self.schedule.value() * self.slots.rate * Settings.beta * self.beta * self.weight(x) * space.gamma
        y = y + table["k49"] + nested["rates"][1] + weights + large[0, 0] + getattr(self, "count")
        y = y + on(self.schedule, x)
        for part in self.parts:
            y = part(y)
        return y * held.n + (0 if self.hook is None else 1)

def change(name):
    trainer = made[0]
    if name == "method of another object": trainer.schedule.n += 1
    elif name == "class attribute through an object": Schedule.limit = 2.0
    elif name == "class attribute": Settings.beta = 0.5
    elif name == "slot": trainer.slots.rate = 0.2
    elif name == "property and lambda": trainer.epoch += 1
    elif name == "another lambda": trainer.weight = lambda x: x
    elif name == "namespace": space.gamma = 2.0
    elif name == "long dictionary": table["k49"] = -1
    elif name == "dictionary with a list": nested["rates"][1] = 0.5
    elif name == "array in place": weights[2] = 7
    elif name == "large array in place": large.__imul__(2)
    elif name == "setattr": setattr(trainer, "count", trainer.count + 1)
    elif name == "object in a list": trainer.parts[1].scale = 3.0
    elif name == "object under another name": aliased.n = 4
    elif name == "none": trainer.hook = 1
    else: raise KeyError(name)

made = [Trainer()]
"""

WAYS = [
    *("method of another object", "class attribute through an object", "class attribute", "slot"),
    *("property and lambda", "another lambda", "namespace", "long dictionary", "dictionary with a list"),
    *("array in place", "large array in place", "setattr", "object in a list", "object under another name", "none"),
]


def hidden(directory: Path) -> tuple[dict[str, Any], Any]:
    path = directory / "hidden.py"
    path.write_text(HIDDEN)
    scope: dict[str, Any] = {"__name__": "hidden"}
    exec(compile(HIDDEN, str(path), "exec"), scope)
    return scope, scope["made"][0]


@pytest.mark.parametrize("way", WAYS)
def test_changes_are_noticed_wherever_they_are(tmp_path: Path, way: str) -> None:
    scope, trainer = hidden(tmp_path)
    around = FreeVariables(scope["Trainer"].step, (trainer, 1.0))
    before = around.now((trainer, 1.0))
    assert around.now((trainer, 1.0)) == before
    assert around.now((trainer, 2.0)) == before, "data goes into the graph"
    scope["change"](way)
    after = around.now((trainer, 1.0))
    assert after != before
    assert f"{tmp_path / 'hidden.py'}:" in around.differing(before, after)


def test_arguments_by_name_are_looked_into(tmp_path: Path) -> None:
    scope, trainer = hidden(tmp_path)
    given = in_order(scope["on"], (), {"x": 1.0, "settings": trainer.schedule})
    around = FreeVariables(scope["on"], given)
    before = around.now(given)
    trainer.schedule.limit = 5.0
    assert around.now(given) != before


def test_what_the_function_does_not_read_may_change(tmp_path: Path) -> None:
    scope, trainer = hidden(tmp_path)
    around = FreeVariables(scope["Trainer"].step, (trainer, 1.0))
    before = around.now((trainer, 1.0))
    trainer.losses = [1.0]
    trainer.schedule.history = 3
    scope["made"].append(None)
    assert around.now((trainer, 1.0)) == before


def test_a_number_counts_as_changing_at_its_second_change() -> None:
    scalars = Scalars()
    assert [scalars._changes(0, value) for value in (1, 1, 2, 2, 3, 3)] == [False] * 4 + [True] * 2
    assert not scalars._changes("big", 2**40)
    assert not any(scalars._changes("big", 2**40 + n) for n in range(4)), "no int32 holds it"


# ── from the case ────────────────────────────────────────────────────────────────────────────────────────────────


def case(kind: Any, *evidence: Evidence, ms: float = 5.0, count: int = 500, **facts: Any) -> Case:
    steps = Steps(count=count, found_by=kind, ms=Distribution(median=ms, p10=ms, p90=ms, mean=ms))
    return Case(kind="run", steps=steps, evidence=(StepStack(kind, **facts), *evidence))


LOOP = """
def gradients(model, x):
    return model(x)

def step(model, x):
    return gradients(model, x)

def logged(model, x):
    print(step(model, x))

def train(model, data):
    for x in data:
        logged(model, x)

train(None, [])
"""


def test_the_outermost_function_below_the_loop_is_tried_first(tmp_path: Path) -> None:
    path = tmp_path / "train.py"
    path.write_text(LOOP)
    file = str(path)
    stack = stack_of([[file, 6, "step", 5], [file, 9, "logged", 8], [file, 13, "train", 11], [file, 15, "<module>", 1]])
    tape = EagerTape(1.0, (Frame(file, 3, "gradients", 2), *stack))
    lever = catalogue()["function"]
    found = lever.spec.values(case("apply", tape, stack=stack))
    assert list(found) == [f"{file}:5", f"{file}:2", "parts"], "`logged` prints, `train` holds the loop"
    module = Frame(file, 15, "<module>", 1)
    in_module = lever.spec.values(case("apply", stack=(module,)))
    assert list(in_module) == ["parts"]
    plays, rarely = (Stream("model", "", count, (Frame(file, 3, "gradients", 2), module)) for count in (5000, 50))
    elsewhere = lever.spec.values(case("apply", plays, stack=(module,)))
    assert list(elsewhere) == [f"{file}:2", "parts"], "an agent that plays before it learns"
    assert list(lever.spec.values(case("apply", rarely, stack=(module,)))) == ["parts"]
    assert all(parse(f"function={value}") == ("function", value) for value in found)


AGENT = """
import numpy as np

class Agent:
    def learn(self):
        states, wanted = self.memory.sample()
        self.teach_critic(states, wanted)
        self.teach_actor(states)

    def teach_critic(self, states, wanted):
        return self.critic(states) - wanted

    def teach_actor(self, states):
        return self.actor(states)

    def act(self, state):
        return self.actor(np.reshape(state, [1, 3]))

    def judge(self, state):
        return self.critic(state)
"""


def test_each_step_of_its_own_is_a_value_and_what_draws_is_none(tmp_path):
    (tmp_path / "agent.py").write_text(AGENT)
    file = str(tmp_path / "agent.py")
    learn = (Frame(file, 7, "learn", 5), Frame(file, 30, "<module>", 1))
    critic, actor = Frame(file, 11, "teach_critic", 10), Frame(file, 14, "teach_actor", 13)
    calls = [
        Stream("model", "", 5000, (Frame(file, line + 1, name, line), Frame(file, 30, "<module>", 1)))
        for line, name in ((16, "act"), (19, "judge"))
    ]
    found = catalogue()["function"].spec.values(
        case("apply", EagerTape(1.0, (actor, *learn)), *calls, stack=(critic, *learn))
    )
    wanted = [f"{file}:10", f"{file}:13", f"{file}:19", "parts"]
    assert list(found) == wanted, "a trace of `learn` would freeze its sample, one of `act` fails"


@pytest.mark.parametrize(
    ("lever", "given", "word"),
    [
        ("function", case("fit"), "Keras"),
        ("function", case("train-function"), "already"),
        ("no-run-eagerly", case("fit", run_eagerly=False), "run_eagerly"),
        ("no-run-eagerly", case("apply"), "Keras"),
        ("no-debug", case("fit"), "no debugging switch"),
        ("steps-per-execution", case("fit", steps_per_execution=16), "16 steps"),
        ("steps-per-execution", case("apply"), "Keras fit"),
        ("steps-per-execution", case("fit", ms=900.0), "900 ms"),
        ("direct-predict", case("fit"), "predict"),
        ("xla", case("apply"), "eagerly"),
        ("no-xla", case("fit", jit_compile=False), "XLA compiles no part"),
        ("bf16", case("fit", policy="mixed_bfloat16"), "mixed_bfloat16"),
        ("fp16", case("fit"), "no GPU"),
        ("float32", case("fit"), "double precision"),
        ("memory-growth", case("fit"), "no GPU"),
        ("accumulate", case("train-function"), "Keras fit"),
        ("free-compute", case("apply"), "traced"),
        ("relax-shapes", case("fit"), "traced again"),
        ("reuse-functions", case("fit"), "more than a few"),
    ],
)
def test_a_lever_that_cannot_help_says_why(lever: str, given: Case, word: str) -> None:
    assert word in (catalogue()[lever].spec.skip(given) or "")


def test_levers_that_may_help_are_not_skipped() -> None:
    levers = catalogue()
    switch = Switch("tf.debugging.enable_check_numerics")
    double = Switch("keras.config.set_floatx", ("float64",))
    remade = Function("step", None, traces=40, trace_ms=1.0, instances=40)
    assert levers["function"].spec.skip(case("apply")) is None
    assert levers["no-run-eagerly"].spec.skip(case("fit", run_eagerly=True)) is None
    assert levers["no-debug"].spec.skip(case("fit", switch)) is None
    assert levers["float32"].spec.skip(case("fit", double)) is None
    assert levers["xla"].spec.skip(case("fit", jit_compile=False)) is None
    assert levers["no-xla"].spec.skip(case("fit", jit_compile=True)) is None
    jitted = Function("step", None, traces=1, trace_ms=1.0, jit_compile=True)
    assert levers["no-xla"].spec.skip(Case(kind="run", functions=(jitted,))) is None
    assert levers["direct-predict"].spec.skip(case("predict")) is None
    assert levers["reuse-functions"].spec.skip(Case(kind="run", functions=(remade,))) is None
    assert list(levers["steps-per-execution"].spec.values(case("fit", ms=2.0, count=1000))) == ["8", "64"]
    assert list(levers["steps-per-execution"].spec.values(case("fit", ms=100.0, count=1000))) == ["4"]
    assert list(levers["xla"].spec.values(case("function"))) == ["all"]


def test_depthwise_convolutions_keep_xla_away_from_a_cpu() -> None:
    with_op = Case(
        kind="run",
        evidence=(StepStack("fit", jit_compile=False),),
        ops=(Op("conv", "DepthwiseConv2dNative"),),
    )
    assert "depthwise" in (catalogue()["xla"].spec.skip(with_op) or "")


@pytest.mark.parametrize(("machine", "wanted"), [("x86_64", "0"), ("aarch64", "1"), ("ppc64le", None)])
def test_onednn_is_tried_the_other_way_than_tensorflow_has_it(
    monkeypatch: pytest.MonkeyPatch, machine: str, wanted: str | None
) -> None:
    monkeypatch.setattr("platform.machine", lambda: machine)
    monkeypatch.delenv("TF_ENABLE_ONEDNN_OPTS", raising=False)
    lever, case = catalogue()["onednn"], Case(kind="run")
    assert (lever.spec.skip(case) is None) is (wanted is not None)
    if wanted is not None:
        (value,) = lever.spec.values(case)
        assert lever.spec.environment(value) == {"TF_ENABLE_ONEDNN_OPTS": wanted}
        monkeypatch.setenv("TF_ENABLE_ONEDNN_OPTS", wanted)
        assert "already set" in (lever.spec.skip(case) or "")


def test_variables_of_the_runtime() -> None:
    levers = catalogue()
    assert levers["threads"].spec.environment("3")["TF_NUM_INTRAOP_THREADS"] == "3"
    assert levers["onednn"].spec.environment("") == {"TF_ENABLE_ONEDNN_OPTS": "0"}
    assert levers["onednn"].spec.environment("1") == {"TF_ENABLE_ONEDNN_OPTS": "1"}
    assert "glibc.malloc.mmap_max=0" in levers["allocator"].spec.environment("glibc-keep")["GLIBC_TUNABLES"]
    assert levers["allocator"].spec.environment("nonsense") == {}


@pytest.mark.parametrize(("built", "accumulates", "part"), [(False, 4, 8), (True, None, None)])
def test_batches_are_split_only_where_the_optimizer_accumulates(
    monkeypatch: pytest.MonkeyPatch, built: bool, accumulates: int | None, part: int | None
) -> None:
    """With smaller batches alone, each update would see a part of the samples: a step of less work looks faster."""
    wraps: dict[str, Any] = {}
    monkeypatch.setattr(accumulate, "patch", wraps.__setitem__)
    monkeypatch.setattr(accumulate._batch_size, "resize_arrays", lambda made, key, resize: wraps.update(resize=resize))
    injection = Injection(SimpleNamespace(), "accumulate", "4")  # type: ignore[arg-type]
    accumulate.on_keras(injection, ModuleType("keras"))
    optimizer = SimpleNamespace(gradient_accumulation_steps=None, built=built)
    wraps["compile"](lambda model: None)(SimpleNamespace(optimizer=optimizer))
    assert optimizer.gradient_accumulation_steps == accumulates
    assert wraps["resize"](32) == part
    assert bool(injection.failed) == built
