"""Distillation: a student learns from what a teacher answers, not from labels alone. On Keras' own Distiller.

Where a model ends in a softmax, its logarithm stands for the logits (it differs from them by a constant per sample,
which a softmax does not see). The teacher is only read: the flags that Keras' Distiller changes on it are put back.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from flatout.model.errors import CompressionRefused, ToolMissing
from flatout.optimize.compress import training
from flatout.optimize.compress.results import Compressed, Size
from flatout.optimize.compress.structure import cost, graph
from flatout.optimize.compress.structure.graph import activation_name
from flatout.optimize.compress.students import derive


def distill(
    teacher: Any,
    student: Any = None,
    *,
    train: training.Train,
    width: float = 0.5,
    depth: float = 1.0,
    temperature: float = 4.0,
    labels: float = 0.1,
    features: Mapping[str, str] | None = None,
    seed: int | None = 0,
    checkpoint: str | os.PathLike[str] | None = None,
) -> Compressed:
    """Train a student on the teacher's answers.

    `student` is a Keras model with the same inputs and outputs, or None: then it is derived from the teacher with
    this share of its `width` and `depth`, and with its weights. `labels` is the weight of the true labels against the
    teacher (0 to 1). `features` maps layers of the teacher to layers of the student whose outputs shall agree,
    besides the final ones. `train` is a function that trains the model it is given, or the arguments of `fit`.
    """
    graph.functional(teacher)
    own = derive(teacher, width=width, depth=depth) if student is None else student
    known = next((one for one in (own, teacher) if one.compiled), None)
    if known is None and not callable(train):
        raise CompressionRefused("Neither teacher nor student is compiled: the loss for the labels is not known.")
    with taught(teacher, own, temperature=temperature, labels=labels, features=features, like=known) as pupil:
        shapes = [tuple(weight.shape) for weight in own.weights]  # a fresh student has other values each time
        journal = training.Journal(checkpoint, teacher, ["distill", shapes, temperature, labels, features, seed])

        def once(backup: Any) -> None:
            training.run(train, pupil, task="distilling", seed=seed, backup=backup)

        journal.trained("distill", own, once)
    if known is not None:
        graph.compile_like(own, known)
    after = Size(*cost.of(own)) if graph.is_model(own) else Size(own.count_params())
    return Compressed(own, "distilled", Size(*cost.of(teacher)), after)


@contextmanager
def taught(
    teacher: Any,
    student: Any,
    *,
    temperature: float = 4.0,
    labels: float = 0.1,
    features: Mapping[str, str] | None = None,
    like: Any = None,
) -> Iterator[Any]:
    """What is trained in the student's place, so that it learns from the teacher, too; compiled as `like` is."""
    import keras

    if not hasattr(keras, "distillation"):
        raise ToolMissing(f"Keras {keras.__version__} has no Distiller: install keras>=3.12.")
    losses = [_answers(teacher, temperature)]
    losses += [
        keras.distillation.FeatureDistillation(loss="mse", teacher_layer_name=one, student_layer_name=other)
        for one, other in (features or {}).items()
    ]
    flags = [(layer, layer.trainable) for layer in [teacher, *teacher._flatten_layers(include_self=False)]]
    try:
        for layer, _ in flags:  # each by itself: a model that is frozen already passes nothing on
            layer.trainable = False
        pupil = keras.distillation.Distiller(teacher, student, losses, student_loss_weight=labels)
        pupil(graph.functional(teacher)._inputs_struct)  # built, as a checkpoint inside `fit` wants it
        if like is not None and like.compiled:
            _compile(pupil, like)
        yield pupil
    finally:
        for layer, flag in flags:  # models before their layers, to which they pass theirs on
            layer.trainable = flag


def _answers(teacher: Any, temperature: float) -> Any:
    import keras
    from keras import ops, tree

    last = graph.wiring(teacher)
    makers = [last.maker(tensor) for tensor in last.outputs]
    if all(maker is not None and activation_name(maker.operation) == "softmax" for maker in makers):

        class Logarithms(keras.distillation.LogitsDistillation):  # type: ignore[misc]
            def compute_loss(self, teacher_outputs: Any, student_outputs: Any, **keywords: Any) -> Any:
                def logits(values: Any) -> Any:
                    return ops.log(ops.clip(values, 1e-7, 1.0))

                return super().compute_loss(
                    tree.map_structure(logits, teacher_outputs), tree.map_structure(logits, student_outputs), **keywords
                )

        kind = Logarithms
    else:
        kind = keras.distillation.LogitsDistillation
    # An instance, not its name: for the name Keras takes the plain function and applies it to logits.
    every = tree.map_structure(lambda _: keras.losses.KLDivergence(), graph.functional(teacher)._outputs_struct)
    if any(
        (maker is not None and len(shape) < 2) or shape[-1] == 1 for maker in makers if maker for shape in maker.shapes
    ):
        every = tree.map_structure(
            lambda _: keras.losses.MeanSquaredError(), every
        )  # single numbers have no distribution
        return keras.distillation.LogitsDistillation(temperature=1.0, loss=every)
    return kind(temperature=temperature, loss=every)


def _compile(pupil: Any, like: Any) -> None:
    import keras

    config = like.get_compile_config() or {}
    settings = keras.saving.deserialize_keras_object(config)
    optimizer = (
        keras.optimizers.deserialize(config["optimizer"]) if isinstance(config.get("optimizer"), dict) else "adam"
    )
    metrics = settings.get("metrics")
    pupil.compile(
        optimizer=optimizer,
        loss=settings.get("loss"),
        metrics=metrics if isinstance(metrics, list | tuple) else None,
        jit_compile=like.jit_compile,
    )
