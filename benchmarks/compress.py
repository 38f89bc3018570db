"""What compression gives on Fashion-MNIST: accuracy on pictures never looked at before, latency beside `tf.function`.

    python benchmarks/compress.py train     trains all models into --work; any Keras backend will do
    python benchmarks/compress.py measure   accuracy on the test pictures, files, latencies; TensorFlow and the runtimes
    python benchmarks/compress.py           both
    python benchmarks/compress.py time      the latencies once more, from the files that `measure` has kept

Nothing is chosen by the test pictures: `measure` alone reads them. `train` prints accuracies on 10,000 pictures kept
aside. Latencies come from interleaved rounds, each ratio with its interval: beside `tf.function` of the float model,
and of what stays in float beside the float model in the same runtime. Sizes are those of the LiteRT file, as it is and
packed by xz.
"""

from __future__ import annotations

import argparse
import json
import lzma
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from _compress_setting import KINDS, Data, trainer

import flatout
from flatout.measure.interval import paired_ratio
from flatout.optimize.compress import float_files, latency
from flatout.optimize.compress.students import derive

SHARES = (0.5, 0.3, 0.18)
"""Of FLOPs, that channels are pruned down to."""
STUDENTS = {"residual": {"width": 0.5, "depth": 0.5}, "mobile": {"width": 0.5, "depth": 0.25}}
"""What is left of the teacher's channels and residual blocks."""
EPOCHS, RATE = 20, 2e-3
STUDENT_EPOCHS = 40
"""With a teacher and without alike. A student alone gains 0.1 points or none beyond 20, a taught one 0.2."""
FRESH_BATCH = 256
"""Of all that starts from fresh weights: with 1,024 float models are 0.2 and 0.6 points worse."""

BEARABLE = 0.1
"""Seconds for eight pictures; the float model takes 0.03."""


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("phase", nargs="?", choices=("train", "measure", "all", "time"), default="all")
    arguments.add_argument("--data", help="directory of the four files of Fashion-MNIST")
    arguments.add_argument("--work", default=".flatout/benchmark-compress", help="where models are kept")
    arguments.add_argument("--kind", choices=tuple(KINDS), nargs="*", default=list(KINDS))
    arguments.add_argument("--part", choices=("all", "float", "pruned", "others"), default="all")
    arguments.add_argument("--samples", type=int, default=50000, help="fewer than all pictures, to try the script")
    given = arguments.parse_args()
    data = Data(given.data, given.samples)
    for kind in given.kind:
        work = Path(given.work) / kind
        work.mkdir(parents=True, exist_ok=True)
        if given.phase in ("train", "all"):
            Training(kind, data, work).all(given.part)
        if given.phase in ("measure", "all"):
            Measuring(kind, data, work).all()
        if given.phase == "time":
            Measuring(kind, data, work).again()


class Training:
    def __init__(self, kind: str, data: Data, work: Path) -> None:
        self.kind, self.data, self.work = kind, data, work

    def all(self, part: str = "all") -> None:
        import keras

        teacher = self.model("float", lambda: self.fresh(KINDS[self.kind](), EPOCHS))
        if part in ("all", "pruned"):
            smallest = teacher
            for share in SHARES:
                smallest = self.model(f"pruned-{share}", lambda s=share, m=smallest: self.pruned(teacher, m, s))
            for share in SHARES[1:]:
                small = keras.saving.load_model(self.work / f"pruned-{share}.keras")
                taught = self.model(
                    f"pruned-{share}-distilled",
                    lambda m=small: self.distilled(teacher, m, trainer(self.data, EPOCHS // 2, RATE / 2)),
                )
                self.int8(f"pruned-{share}-int8", teacher, taught)
        if part in ("all", "others"):
            self.int8("int8", teacher, teacher)
            self.model("sparse", lambda: self.sparse(teacher))
            sizes = STUDENTS[self.kind]
            self.model("student-alone", lambda: self.fresh(derive(teacher, **sizes, inherit=False), STUDENT_EPOCHS))
            student = derive(teacher, **sizes, inherit=False)
            train = trainer(self.data, STUDENT_EPOCHS, RATE, FRESH_BATCH)
            self.model("student-distilled", lambda: self.distilled(teacher, student, train))

    def model(self, name: str, make: Callable[[], Any]) -> Any:
        """Made, or taken from an earlier start of this script."""
        import keras

        from flatout.optimize.compress.int8 import rounding_layers

        rounding_layers.register()

        file = self.work / f"{name}.keras"
        begun = time.monotonic()
        if not file.exists():
            keras.utils.set_random_seed(1)
            model = make()
            model.compile("sgd", "sparse_categorical_crossentropy", metrics=["accuracy"])  # Adam triples the file
            model.save(self.work / f"{name}.unfinished.keras")
            (self.work / f"{name}.unfinished.keras").rename(file)
        else:
            model = keras.saving.load_model(file)
        right = model.evaluate(*self.data.validation, batch_size=500, verbose=0, return_dict=True)["accuracy"]
        size = model.count_params()
        print(
            f"{self.kind} {name:30s} validation {right:.4f}  {size:9,d} weights  {time.monotonic() - begun:5.0f} s",
            flush=True,
        )
        return model

    def fresh(self, model: Any, epochs: int) -> Any:
        trainer(self.data, epochs, RATE, FRESH_BATCH)(model)
        return model

    def pruned(self, teacher: Any, larger: Any, share: float) -> Any:
        """From the model pruned before, so that channels go in steps with training in between."""
        from flatout.optimize.compress.structure import cost

        left = share * cost.of(teacher)[1] / cost.of(larger)[1]
        return flatout.prune(larger, flops=left, train=trainer(self.data, 5, RATE / 2), multiple=8).model

    def distilled(self, teacher: Any, student: Any, train: Callable[..., None]) -> Any:
        return flatout.distill(teacher, student, train=train).model

    def sparse(self, teacher: Any) -> Any:
        return flatout.prune(teacher, sparsity=0.8, train=trainer(self.data, 4, RATE / 2), rounds=4).model

    def int8(self, name: str, teacher: Any, model: Any) -> None:
        """Both in one place: where training does not pay, the same weights come out."""
        some = self.data.x[:1024]
        self.model(f"{name}-calibrated", lambda: flatout.quantize(model, some).model)
        self.model(f"{name}-trained", lambda: self.trained(teacher, model, some))

    def trained(self, teacher: Any, model: Any, some: Any) -> Any:
        train = trainer(self.data, EPOCHS // 2, RATE / 2)
        made = flatout.quantize(model, some, train=train, teacher=teacher, validation=self.data.validation)
        print(f"{self.kind} training under rounding: {made.details['training']}", flush=True)
        return made.model


class Measuring:
    def __init__(self, kind: str, data: Data, work: Path) -> None:
        self.kind, self.data, self.work = kind, data, work
        self.calls: dict[int, dict[str, Callable[[], Any]]] = {1: {}, 64: {}}
        self.rows: dict[str, dict[str, Any]] = {}

    def all(self) -> None:
        import keras

        from flatout.optimize.compress.int8 import rounding_layers

        rounding_layers.register()

        models = {path.stem: keras.saving.load_model(path, compile=False) for path in sorted(self.work.glob("*.keras"))}
        for name, model in models.items():
            if "int8" in name:
                self.files(name, model)
            else:
                self.keras(name, model)
        self.finish()

    def again(self) -> None:
        import keras

        self.rows = json.loads((self.work / "numbers.json").read_text())
        for path in sorted(self.work.glob("*.keras")):
            if "int8" not in path.stem:
                self.timed(path.stem, keras.saving.load_model(path, compile=False))
        for path in sorted(self.work.glob("*.tflite")):
            self.timed_files(path.stem)
        self.finish()

    def finish(self) -> None:
        self.race()
        (self.work / "numbers.json").write_text(json.dumps(self.rows, indent=1))
        self.show()

    def keras(self, name: str, model: Any) -> None:
        answers = model.predict(self.data.test[0], batch_size=500, verbose=0)
        self.rows[name] = {"accuracy": self.right(answers)}
        self.timed(name, model)
        probe, flat = [self.data.validation[0][:512]], self.work / f"{name}.tflite"
        float_files.write_litert(model, flat, probe)  # held against the model, as is the next
        float_files.write_onnx(model, self.work / f"{name}.onnx", probe)
        self.rows[f"{name} LiteRT"] = sizes(flat)
        self.timed_files(name)

    def timed(self, name: str, model: Any) -> None:
        for batch, calls in self.calls.items():
            calls[name] = latency.compiled(model, batch)

    def files(self, name: str, model: Any) -> None:
        """The int8 model on each runtime; its accuracy is that of the file."""
        from flatout.optimize.compress import litert, onnx_qdq

        probe, (pictures, _) = [self.data.validation[0][:512]], self.data.test
        self.rows[name] = {"accuracy": self.right(model.predict(pictures, batch_size=500, verbose=0))}
        flat, onnx = self.work / f"{name}.tflite", self.work / f"{name}.onnx"
        written = litert.write(model, flat, probe)
        padded = np.concatenate([pictures, pictures[:48]])  # whole batches of 64
        self.rows[f"{name} LiteRT"] = {
            "accuracy": self.right(litert.run_file(flat, [padded])[0][0][:10000]),
            **sizes(flat),
            "apart": written.apart,
        }
        onnx_qdq.write(model, onnx, probe)
        for runtime, run in self.timed_files(name).items():
            answers = np.concatenate([run([part])[0] for part in np.split(pictures, 20)])
            self.rows[f"{name} {runtime}"] = {"accuracy": self.right(answers)}

    def timed_files(self, name: str) -> dict[str, Callable[[list[Any]], list[Any]]]:
        from flatout.optimize.compress import litert, onnx_qdq

        onnx = self.work / f"{name}.onnx"
        runtimes = {"ONNX Runtime": onnx_qdq.open_with_onnxruntime(onnx), "OpenVINO": onnx_qdq.open_with_openvino(onnx)}
        runtimes = {runtime: run for runtime, run in runtimes.items() if self.bearable(f"{name} {runtime}", run)}
        for batch, calls in self.calls.items():
            calls[f"{name} LiteRT"] = litert.caller(self.work / f"{name}.tflite", batch)
            for runtime, run in runtimes.items():
                calls[f"{name} {runtime}"] = lambda run=run, given=self.data.test[0][:batch]: run([given])
        return runtimes

    def bearable(self, name: str, run: Callable[[list[Any]], list[Any]]) -> bool:
        """OpenVINO has no fast kernels for some int8 layers on ARM: thousands of pictures would take an hour."""
        few = [self.data.test[0][:8]]
        run(few)
        began = time.monotonic()
        run(few)
        seconds = time.monotonic() - began
        if seconds > BEARABLE:
            print(f"{self.kind} {name}: left out, {seconds:.1f} s for eight pictures", flush=True)
        return seconds <= BEARABLE

    def right(self, answers: Any) -> float:
        return float((np.asarray(answers).argmax(-1) == self.data.test[1]).mean())

    def race(self) -> None:
        """Each runtime beside the float model, all its contestants in each round. Runtimes apart: the threads of some
        keep turning after a call and would take the time of the next."""
        for batch, calls in self.calls.items():
            for runtime in ("", " LiteRT", " ONNX Runtime", " OpenVINO"):
                mine = [name for name in calls if name != "float" and _runtime(name) == runtime]
                first, *rounds = latency.rounds_of([calls[name] for name in ("float", *mine)], 21)
                self.rows["float"].setdefault(f"ms at {batch}", float(np.median(first)))
                beside = dict(zip(mine, rounds, strict=True)).get(f"float{runtime}", first)
                for name, times in zip(mine, rounds, strict=True):
                    row = self.rows.setdefault(name, {})
                    row[f"ms at {batch}"] = float(np.median(times))
                    row[f"speedup at {batch}"] = told(paired_ratio(first, times))
                    if "int8" not in name:
                        row[f"in its runtime at {batch}"] = told(paired_ratio(beside, times))

    def show(self) -> None:
        base = self.rows["float"]["accuracy"]
        print(f"\n{self.kind}: test accuracy {base:.4f} in float; speedups beside tf.function of the float model,")
        print("in parentheses beside the float model in the same runtime")
        for name, row in sorted(self.rows.items(), key=lambda item: -item[1].get("speedup at 1", [0])[0]):
            cells = [f"{row['accuracy']:.4f} {100 * (row['accuracy'] - base):+.2f}" if "accuracy" in row else " " * 12]
            for batch in self.calls:
                if f"speedup at {batch}" in row:
                    ratio, low, high = row[f"speedup at {batch}"]
                    cell = f"b{batch} {row[f'ms at {batch}']:7.3f} ms {ratio:5.2f}× [{low:.2f}, {high:.2f}]"
                    own = row.get(f"in its runtime at {batch}")
                    cells.append(cell + (f" ({own[0]:.2f}× [{own[1]:.2f}, {own[2]:.2f}])" if own else ""))
            size = f"{row['bytes']:,d} B, xz {row['xz']:,d} B" if "xz" in row else ""
            print(f"  {name:42s} {'   '.join(cells)}   {size}")


def sizes(file: Path) -> dict[str, int]:
    raw = file.read_bytes()
    return {"bytes": len(raw), "xz": len(lzma.compress(raw))}


def told(ratio: Any) -> list[float]:
    return [ratio.ratio, ratio.low, ratio.high]


def _runtime(name: str) -> str:
    return next((one for one in (" LiteRT", " ONNX Runtime", " OpenVINO") if name.endswith(one)), "")


if __name__ == "__main__":
    sys.exit(main())
