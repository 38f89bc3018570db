"""The loaders of runtimes that have room for one call at a time. The runtimes are planted: a few lines of Python."""

from __future__ import annotations

import sys
import threading
import weakref
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any, ClassVar

import numpy as np
import pytest

from flatout.routes import litert, openvino, tensorflow, tensorrt
from flatout.routes._route import run_loader

MOMENT = 0.1
"""As long as a call is given to slip in between another's inputs and its answers."""
Run = Callable[[Any], Any]


class Intruder:
    """Calls the loaded function from another thread while a first call is being computed."""

    def __init__(self) -> None:
        self.run: Run | None = None
        self.thread: threading.Thread | None = None
        self.given: list[Any] = []

    def comes(self) -> None:
        if self.run is not None and self.thread is None:
            run = self.run
            self.thread = threading.Thread(target=lambda: self.given.extend(run([np.full((2, 3), 7, "float32")])))
            self.thread.start()
            self.thread.join(MOMENT)


INTRUDER = Intruder()


class Interpreter:
    """As LiteRT's: for one batch, which a file may be for."""

    alive: ClassVar[weakref.WeakSet[Interpreter]] = weakref.WeakSet()

    def __init__(self, model_path: str, num_threads: int) -> None:
        self.alive.add(self)
        stem = Path(model_path).stem
        self.shape = [int(stem.removeprefix("model-b")) if "-b" in stem else 1, 3]
        self.values: Any = None

    def get_input_details(self) -> list[dict[str, Any]]:
        return [{"index": 0, "shape": self.shape}]

    def get_output_details(self) -> list[dict[str, Any]]:
        return [{"index": 1}]

    def resize_tensor_input(self, index: int, shape: list[int]) -> None:
        self.shape = shape

    def allocate_tensors(self) -> None:
        pass

    def set_tensor(self, index: int, array: Any) -> None:
        if list(array.shape) != list(self.shape):
            raise ValueError(f"Dimension mismatch: {array.shape}")
        self.values = array.copy()

    def invoke(self) -> None:
        INTRUDER.comes()

    def get_tensor(self, index: int) -> Any:
        return self.values * 2


class Request:
    """As an inference request of OpenVINO."""

    def infer(self, inputs: Any, share_inputs: bool) -> None:
        self.values = inputs[0].copy()
        INTRUDER.comes()

    start_async = infer

    def wait(self) -> None:
        pass

    def get_output_tensor(self, i: int) -> Any:
        return SimpleNamespace(data=self.values * 2)


@pytest.fixture
def planted(monkeypatch: pytest.MonkeyPatch) -> Intruder:
    monkeypatch.setitem(sys.modules, "ai_edge_litert.interpreter", SimpleNamespace(Interpreter=Interpreter))
    compiled = SimpleNamespace(create_infer_request=Request)
    model = SimpleNamespace(inputs=[], outputs=[None], reshape=lambda shapes: None)
    core = SimpleNamespace(read_model=lambda path: model, compile_model=lambda *arguments: compiled)
    monkeypatch.setitem(sys.modules, "openvino", SimpleNamespace(Core=lambda: core))
    intruder = Intruder()
    monkeypatch.setitem(globals(), "INTRUDER", intruder)
    return intruder


@pytest.mark.parametrize(
    "source",
    [
        litert.loader_source({"threads": 1}, 2),
        openvino.loader_source({"threads": 1, "rest": "f32"}, 2),
        openvino.loader_source({"threads": 2, "rest": "f32", "streams": 2}, 2),
    ],
    ids=["litert", "openvino", "openvino-streams"],
)
def test_two_threads_get_their_own_answers(planted: Intruder, tmp_path: Path, source: str) -> None:
    planted.run = run_loader(source, tmp_path)
    (mine,) = planted.run([np.ones((2, 3), "float32")])
    assert planted.thread is not None
    planted.thread.join()
    assert mine.tolist() == [[2, 2, 2]] * 2
    assert planted.given[0].tolist() == [[14, 14, 14]] * 2


@pytest.mark.parametrize("file", ["model.tflite", "model-b2.tflite"])
def test_no_samples_have_answers_of_the_same_form(planted: Intruder, tmp_path: Path, file: str) -> None:
    (tmp_path / file).touch()
    run = run_loader(litert.loader_source({"threads": 1}, 2), tmp_path)
    for count in (0, 1, 3, 5):
        (answers,) = run([np.ones((count, 3), "float32")])
        assert answers.shape == (count, 3)
        assert (answers == 2).all()


def test_the_interpreters_for_other_numbers_of_samples_are_limited(planted: Intruder, tmp_path: Path) -> None:
    run = run_loader(litert.loader_source({"threads": 1}, 2), tmp_path)
    before = len(Interpreter.alive)
    for count in (*range(3, 40), 4, 3):
        (answers,) = run([np.ones((count, 3), "float32")])
        assert answers.shape == (count, 3)
        assert len(Interpreter.alive) <= before + litert.LARGEST_OPEN


@pytest.mark.parametrize(
    "source",
    [litert.loader_source({"threads": 1}, 2), openvino.loader_source({"threads": 2, "rest": "f32", "streams": 2}, 4)],
    ids=["litert", "openvino-streams"],
)
def test_inputs_of_different_numbers_of_samples_are_refused(planted: Intruder, tmp_path: Path, source: str) -> None:
    """They are answered in pieces, and of the longer input the end would not be read."""
    (tmp_path / "model-b2.tflite").touch()
    run = run_loader(source, tmp_path)
    with pytest.raises(ValueError, match="samples"):
        run([np.ones((4, 3), "float32"), np.ones((5, 3), "float32")])


def test_an_engine_refuses_what_it_was_not_built_for(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """TensorRT says so by what `set_input_shape` gives back, and computes with the shape of the call before."""
    (tmp_path / "model.engine").write_bytes(b"")
    success = SimpleNamespace(cudaSuccess=0)
    runtime = SimpleNamespace(cudaError_t=success, cudaStreamCreate=lambda: (0, 1))
    context = SimpleNamespace(set_input_shape=lambda name, shape: False)
    engine = SimpleNamespace(
        create_execution_context=lambda: context,
        num_io_tensors=1,
        get_tensor_name=lambda i: "x",
        get_tensor_mode=lambda name: 0,
    )
    trt = SimpleNamespace(
        Logger=type("Logger", (), {"ERROR": 0, "__init__": lambda self, level: None}),
        Runtime=lambda logger: SimpleNamespace(deserialize_cuda_engine=lambda content: engine),
        TensorIOMode=SimpleNamespace(INPUT=0, OUTPUT=1),
    )
    monkeypatch.setitem(sys.modules, "tensorrt", trt)
    monkeypatch.setitem(sys.modules, "cuda", SimpleNamespace(bindings=None))
    monkeypatch.setitem(sys.modules, "cuda.bindings", SimpleNamespace(runtime=runtime))
    monkeypatch.setitem(sys.modules, "cuda.bindings.runtime", runtime)
    run = run_loader(tensorrt.LOADER, tmp_path)
    with pytest.raises(ValueError, match=r"not built for x of \(1000, 3\)"):
        run([np.zeros((1000, 3), "float32")])


class Settings:
    """As TensorFlow's options of a call: a string made of a configuration."""

    def __init__(self, config_proto: Any) -> None:
        options = config_proto.graph_options.rewrite_options
        self.config_proto_serialized = f"bfloat16={options.auto_mixed_precision_onednn_bfloat16}"


def test_a_model_in_bfloat16_leaves_the_precision_of_others_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def config(text: str) -> Any:
        options = SimpleNamespace(auto_mixed_precision_onednn_bfloat16=int(text.partition("=")[2]))
        return SimpleNamespace(graph_options=SimpleNamespace(rewrite_options=options))

    def serve(array: Any) -> Any:
        seen.append(eager.function_call_options.config_proto_serialized)
        if array is None:
            raise ValueError("no such shape")
        return [SimpleNamespace(numpy=lambda: array)]

    seen: list[str] = []
    eager = SimpleNamespace(function_call_options=Settings(config("bfloat16=0")))
    context = SimpleNamespace(context=lambda: eager, FunctionCallOptions=Settings)
    planted = SimpleNamespace(
        function=lambda function, **options: function,
        constant=lambda array: array,
        saved_model=SimpleNamespace(load=lambda directory: SimpleNamespace(serve=serve)),
        compat=SimpleNamespace(v1=SimpleNamespace(ConfigProto=SimpleNamespace(FromString=config))),
        config=SimpleNamespace(optimizer=SimpleNamespace(set_experimental_options=lambda options: seen.append("all"))),
    )
    for name, module in {"": planted, ".python": planted, ".python.eager": SimpleNamespace(context=context)}.items():
        monkeypatch.setitem(sys.modules, f"tensorflow{name}", module)
    run = run_loader(tensorflow.Bfloat16().loader({}, 1), tmp_path)
    assert run([3]) == [3]
    with pytest.raises(ValueError, match="no such shape"):
        run([None])
    assert seen == ["bfloat16=1", "bfloat16=1"]
    assert eager.function_call_options.config_proto_serialized == "bfloat16=0"
