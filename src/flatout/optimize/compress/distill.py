"""Distillation: a student learns from a teacher's answers, not only from labels. Uses Keras' learner Distiller.

Where a model ends in a softmax, its logarithm is used as logits (it differs from them by a constant per sample, which
does not change a softmax). The teacher is not changed: the flags that Keras' Distiller sets on it are restored.
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

    `student` is a Keras model with the same inputs and outputs. None derives it from the teacher, with this share of
    its `width` and `depth`, and with its weights. `labels` is the weight of the true labels against the teacher (0 to
    1). `features` maps layers of the teacher to layers of the student whose outputs should agree too. `train` is a
    function that trains the model it is given, or the arguments of `fit`.
    """
    graph.functional(teacher)
    learner = derive(teacher, width=width, depth=depth) if student is None else student
    compiled = next((one for one in (learner, teacher) if one.compiled), None)
    if compiled is None and not callable(train):
        raise CompressionRefused(
            "Neither teacher nor student is compiled, so the loss for the labels is unknown. Compile one of them."
        )
    with learning_from(
        teacher, learner, temperature=temperature, labels=labels, features=features, like=compiled
    ) as distiller:
        shapes = [tuple(weight.shape) for weight in learner.weights]  # a fresh student has other values each time
        journal = training.Journal(checkpoint, teacher, ["distill", shapes, temperature, labels, features, seed], train)

        def train_once(backup: Any) -> None:
            training.run(train, distiller, task="distilling", seed=seed, backup=backup)

        journal.train("distill", learner, train_once)
    if compiled is not None:
        graph.compile_like(learner, compiled)
    after = Size(*cost.of(learner)) if graph.is_model(learner) else Size(learner.count_params())
    return Compressed(learner, "distilled", Size(*cost.of(teacher)), after)


@contextmanager
def learning_from(
    teacher: Any,
    student: Any,
    *,
    temperature: float = 4.0,
    labels: float = 0.1,
    features: Mapping[str, str] | None = None,
    like: Any = None,
) -> Iterator[Any]:
    """A model to train instead of the student, so that it learns from the teacher too; compiled as `like` is."""
    import keras

    if not hasattr(keras, "distillation"):
        raise ToolMissing(f"Keras {keras.__version__} has no Distiller: install keras>=3.12.")
    losses = [_answer_loss(teacher, temperature)]
    losses += [
        keras.distillation.FeatureDistillation(loss="mse", teacher_layer_name=one, student_layer_name=other)
        for one, other in (features or {}).items()
    ]
    flags = [(layer, layer.trainable) for layer in [teacher, *teacher._flatten_layers(include_self=False)]]
    try:
        for layer, _ in flags:  # each one: a model that is already frozen does not pass the flag on
            layer.trainable = False
        distiller = keras.distillation.Distiller(teacher, student, losses, student_loss_weight=labels)
        distiller(graph.functional(teacher)._inputs_struct)  # build it, which a checkpoint inside `fit` needs
        if like is not None and like.compiled:
            _compile(distiller, like)
        yield distiller
    finally:
        for layer, flag in flags:  # models before their layers, because a model sets the flags of its layers
            layer.trainable = flag


def _answer_loss(teacher: Any, temperature: float) -> Any:
    import keras
    from keras import ops, tree

    wiring = graph.wiring(teacher)
    makers = [wiring.maker(tensor) for tensor in wiring.outputs]
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
    # An instance, not its name: for the name, Keras would apply the plain function to logits.
    losses = tree.map_structure(lambda _: keras.losses.KLDivergence(), graph.functional(teacher)._outputs_struct)
    if any(
        (maker is not None and len(shape) < 2) or shape[-1] == 1 for maker in makers if maker for shape in maker.shapes
    ):
        losses = tree.map_structure(
            lambda _: keras.losses.MeanSquaredError(), losses
        )  # a single number is not a distribution
        return keras.distillation.LogitsDistillation(temperature=1.0, loss=losses)
    return kind(temperature=temperature, loss=losses)


def _compile(distiller: Any, like: Any) -> None:
    import keras

    config = like.get_compile_config() or {}
    settings = keras.saving.deserialize_keras_object(config)
    optimizer = (
        keras.optimizers.deserialize(config["optimizer"]) if isinstance(config.get("optimizer"), dict) else "adam"
    )
    metrics = settings.get("metrics")
    distiller.compile(
        optimizer=optimizer,
        loss=settings.get("loss"),
        metrics=metrics if isinstance(metrics, list | tuple) else None,
        jit_compile=like.jit_compile,
    )
