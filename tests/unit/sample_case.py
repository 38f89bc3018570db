"""A Case in which every field is filled, for the tests of views, of JSON and of the store."""

from __future__ import annotations

import math
import random

from flatout.model.case import (
    Case,
    Conclusion,
    Copy,
    Device,
    DeviceDetail,
    Distribution,
    Finding,
    Fix,
    Function,
    Host,
    Interval,
    Kernel,
    Latency,
    Measurement,
    Memory,
    MemoryUse,
    Note,
    Op,
    Pipeline,
    PipelineOptions,
    Placement,
    Program,
    Proof,
    Retrace,
    RunPart,
    RunTree,
    Serving,
    Split,
    Stage,
    Steps,
    Trial,
    Where,
    WholeRun,
)
from flatout.model.run_tree import Stretch

TRAIN = "/home/ada/flowers/train.py"


def run() -> RunTree:
    gallery = Where("train.py", 17, "on_epoch_end", "def on_epoch_end(self, epoch, logs=None):")
    predict = RunPart("prediction", "predict", 1.0, 3, Where("train.py", 18))
    line = RunPart("line", "matplotlib", 6.0, where=Where("train.py", 19), via=(Where("train.py", 40),))
    return RunTree(
        15.0,
        (
            RunPart("callback", "Gallery.on_epoch_end", 7.2, 3, gallery, (predict, line)),
            RunPart("import", "tensorflow", 4.5, where=Where("train.py", 2)),
            RunPart("steps", "fit", 1.4, 300, Where("train.py", 40)),
            RunPart("before", "", 1.0, parts=(RunPart("line", "", 1.0, where=Where("train.py", 9)),)),
            RunPart("exit", "", 0.5),
            RunPart("unattributed", "", 0.4),
        ),
        epochs=3,
        first_step=5.6,
        looks=700,
        strip=(
            Stretch(0.0, 5.6, "import", "tensorflow", Where("train.py", 2, code="import tensorflow as tf")),
            Stretch(5.6, 1.9, "steps", "fit", Where("train.py", 40)),
            Stretch(7.5, 7.0, "callback", "Gallery.on_epoch_end", Where("train.py", 19)),
            Stretch(14.5, 0.5, "exit"),
        ),
        epoch_starts=(5.6, 8.7, 11.6),
    )


def line(number: int, code: str, function: str = "main") -> Where:
    return Where(TRAIN, number, function, code)


def step_times(count: int) -> tuple[float, ...]:
    """A slow wave with noise, and an outlier every 97 steps."""
    noise = random.Random(7)
    times = (118 + 9 * math.sin(i / 40) + noise.gauss(0, 4) for i in range(count))
    return tuple(time * (3.4 if i % 97 == 96 else 1.0) for i, time in enumerate(times))


def steps(count: int = 400) -> Steps:
    return Steps(
        count=count,
        found_by="the batches of Keras fit",
        ms=Distribution(median=118.2, p10=110.4, p90=131.9, mean=121.0, low=104.0, high=402.1),
        split_ms=Split(input=72.1, trace=4.2, python=6.3, compute=33.0, copy=2.1, idle=0.5),
        split_from="waits in the iterator and the trace window",
        warmup=3,
        warmup_ms=8211.0,
        trend=0.07,
        outliers=4,
        window=(40, 59),
        where=line(61, "model.fit(dataset, epochs=4, callbacks=[board])"),
        times_ms=step_times(count),
    )


def pipeline() -> Pipeline:
    return Pipeline(
        name="dataset 1",
        where=line(30, "dataset = tf.data.Dataset.from_tensor_slices((paths, labels))"),
        stages=(
            Stage("from_tensor_slices", "TensorSliceDataset", line(30, "..."), None, 0.002, 0.001, 25600, 96),
            Stage("shuffle", "ShuffleDataset", line(31, "..."), None, 0.004, 0.001, 25600, 96, None, "10000"),
            Stage(
                "map",
                "MapDataset",
                line(32, "..."),
                "load",
                2.21,
                0.962,
                25600,
                602112,
                "1",
                None,
                None,
                "random op",
            ),
            Stage("batch", "BatchDataset", line(33, "..."), None, 1.4, 0.031, 400, 38535168, None, None, True),
            Stage(
                "prefetch",
                "PrefetchDataset",
                line(34, "..."),
                None,
                0.01,
                0.0002,
                400,
                None,
                None,
                "autotune",
            ),
        ),
        rewritten=("TensorSlice", "Shuffle", "Map", "Batch", "Prefetch"),
        wait_ms=72.1,
        elements=400,
        options=PipelineOptions({"autotune.enabled": True, "deterministic": None}),
    )


def functions() -> tuple[Function, ...]:
    why = Retrace("rate", "Literal[0.1]", "Literal[0.099]", 11, line(58, "train_step(batch, rate * 0.99 ** epoch)"))
    shape = Retrace("batch[0]", "Tensor(64, 224, 224, 3)", "Tensor(10, 224, 224, 3)", 1, line(58, "train_step(...)"))
    return (
        Function("train_step", line(44, "@tf.function"), 13, 5240.0, 400, 17211.0, (why, shape), 1, None, 2113),
        Function("forward", line(71, "forward = tf.function(model)"), 40, 1210.0, 40, 1300.2, (), 40, False, 310),
    )


def findings() -> tuple[Finding, ...]:
    return (
        Finding(
            "input-bound",
            "The step waits 72.1 ms for its input, because the map at line 32 runs serially.",
            line(32, "dataset = dataset.map(load)"),
            (
                Measurement("wait per step", 72.1, "ms", source="iterator"),
                Measurement("hot stage", "map"),
                Measurement("share of stage", 0.962, "share"),
                Measurement("bytes per element", 38535168, "bytes"),
            ),
            72.1,
            0.61,
            "high",
            (
                Fix(
                    "Move the random flip behind the batch and cache the decoded images.",
                    "cache",
                    None,
                    "exact",
                ),
            ),
            "measured wait; a cure cannot save more than that",
        ),
        Finding(
            "retracing",
            "train_step was traced 13 times, because `rate` is a new Python number in each epoch.",
            line(58, "train_step(batch, rate * 0.99 ** epoch)"),
            (Measurement("traces", 13, ""), Measurement("tracing", 5240.0, "ms")),
            4.2,
            0.036,
            "medium",
            (Fix("Pass `tf.constant(rate)`.", None, None, "reassociated"),),
        ),
        Finding("float64", "The table enters as float64.", None, (), None, None, "low"),
    )


def sample_case(count: int = 400) -> Case:
    ops = tuple(
        Op(
            f"model/block{i}/conv2d/Conv2D",
            "Conv2D",
            "/job:localhost/replica:0/task:0/device:GPU:0",
            line(12 + i, "x = Conv2D(64, 3)(x)"),
            9.0 / (i + 1),
            0.27 / (i + 1),
            2,
            "float32",
            "64x56x56x64",
        )
        for i in range(40)
    )
    cast = Op("Cast_3", "Cast", "/device:CPU:0", line(29, "tf.cast(table, tf.float32)"), 0.4, 0.01, 3, "float64")
    kernels = (
        Kernel(
            "sm90_xmma_fprop_implicit_gemm_tf32f32_tf32f32_f32_nhwckrsc_nhwc_tilesize128x128x32_stage4",
            480,
            211.2,
            0.41,
            True,
            "model/block0/conv2d/Conv2D",
            "tf32",
            0.31,
        ),
        Kernel("void tensorflow::functor::ShuffleInTensor3Simple<float, 2, 1, 0, false>", 960, 70.2, 0.14),
    )
    device = Device(
        "/device:GPU:0",
        "gpu",
        "node-3",
        2400.0,
        741.0,
        0.309,
        kernels,
        (Copy("host-to-device", 40, 1541406720, 82.0), Copy("device-to-host", 400, 1600, 1.4)),
        0.62,
        "float32 (TF32)",
        "NVIDIA H200",
        DeviceDetail(facts={"compute_capability": "9.0", "cores": 132}),
    )
    return Case(
        kind="run",
        program=Program(("train.py", "--epochs", "4"), "/home/ada/flowers", "2026-02-03 14:05:11", 63.2, 0),
        environment={
            "python": "3.11.9",
            "packages": {"tensorflow": "2.21.0", "keras": "3.15.1"},
            "cores": 16,
        },
        run=run(),
        steps=steps(count),
        functions=functions(),
        pipelines=(pipeline(),),
        ops=(*ops, cast),
        memory=Memory(
            6_412_001_280,
            tuple(
                MemoryUse(f"model/block{i}/Relu", 822_083_584 // (i + 1), line(14, "x"), "64x112x112x64", "float32")
                for i in range(9)
            ),
            "GPU_0_bfc",
            tuple((i * 4.8, int(3.2e9 + 3.2e9 * abs(math.sin(i / 30)))) for i in range(500)),
            9_912_001_280,
            85_899_345_920,
        ),
        devices=(device,),
        hosts=(
            Host("node-3", 20, 118.0),
            Host("node-4", 20, 161.0, True, "36 % slower than the median host"),
        ),
        placement=Placement(
            ("/device:CPU:0", "/device:GPU:0"),
            {"/device:GPU:0": 412, "/device:CPU:0": 31},
            (
                Measurement(
                    "fallback",
                    12,
                    "operations",
                    where=line(52, "tf.strings.split(x)"),
                    source="trace",
                    note="StringSplitV2",
                ),
            ),
        ),
        evidence=(
            Measurement(
                "float64-input", 2, "tensors", where=line(29, "table = np.load('t.npy')"), source="probe", note="table"
            ),
        ),
        findings=findings(),
        trials=(
            Trial(("cache", "prefetch"), "won", Interval(2.31, 2.1, 2.6), "losses agree to 1e-6", stage="combination"),
            Trial(("xla",), "failed", None, "", "compilation failed"),
            Trial(
                ("litert-int8",),
                "won",
                Interval(9.5, 8.8, 10.1),
                step_ms=0.21,
                stage="route",
                rounds=9,
                serving=Serving(
                    "litert-int8",
                    "LiteRT",
                    "LiteRT",
                    "int8",
                    {"threads": 2},
                    (Latency(1, 0.2, 0.3, 0.4, 900, 4800.0),),
                    metric=0.981,
                    drop=0.002,
                    agreement=0.997,
                    samples=1500,
                    size_bytes=913_000,
                    memory_bytes=48_000_000,
                    load_ms=12.0,
                    on_front=True,
                    artefact="artefact",
                ),
            ),
        ),
        tuned=("cache", "prefetch"),
        proof=Proof(
            ("cache", "prefetch"),
            "differs",
            "failed",
            "losses of 320 steps over 2 epochs and all 54 variables do not agree: tape target differs by 0.1",
            losses=320,
            steps=320,
            epochs=2,
            variables=54,
            of_variables=54,
            outputs=1000,
            whole=True,
            interrupted=True,
            seconds=12.5,
            first_step=161,
            first_thing="tape target",
            by=0.1,
            notes=("cache: a cache behind map at train.py:32",),
        ),
        patch="--- a/train.py\n+++ b/train.py\n@@ -1 +1 @@\n-    ds = ds.map(f)\n+    ds = ds.map(f).cache()\n",
        verdict="The step waits for its input 61 % of the time: cure the map at train.py:32 first.",
        conclusion=Conclusion(
            "won",
            "2.00 times as fast.",
            "flatout tune --resume train.py",
            ("prefetch is not in the patch: it has no edit. By hand: train.py:32: end with .prefetch().",),
        ),
        whole_run=WholeRun(
            Interval(1.5, 1.3, 1.7),
            Interval(1.6, 1.4, 1.8),
            30.0,
            20.0,
            pairs=2,
            complete=True,
            steps=100,
            patched=True,
        ),
        notes=(Note("warning", "The trace window was cut short by the end of the program.", "Run more steps."),),
        logdir="logs",
        flatout="0.1.0",
    )
