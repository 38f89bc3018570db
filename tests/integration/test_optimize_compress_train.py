"""Techniques that train: on small pictures, seconds each."""

import json

import numpy as np
import pytest
from compress_models import pictures, residual

import flatout
from flatout.model.errors import CompressionFailed, CompressionRefused
from flatout.optimize.compress import checks, fold, magnitude, training
from flatout.optimize.compress.magnitude import Masks, compressed_size
from flatout.optimize.compress.structure import graph

pytestmark = pytest.mark.slow


def compiled(model, rate=2e-3):
    import keras

    model.compile(
        keras.optimizers.Adam(rate), "sparse_categorical_crossentropy", metrics=["accuracy"], jit_compile=False
    )
    return model


def accuracy(model, data):
    return model.evaluate(*data, verbose=0, return_dict=True)["accuracy"]


@pytest.fixture(scope="module")
def data():
    return pictures(size=8)


@pytest.fixture(scope="module")
def trained(data):
    import keras

    keras.utils.set_random_seed(0)
    model = compiled(small())
    model.fit(*data[0], epochs=8, batch_size=64, verbose=0)
    assert accuracy(model, data[1]) > 0.8
    return model


def small():
    """One residual block: what is traced is what takes the time of these tests."""
    import keras
    from keras import layers

    inputs = keras.Input((8, 8, 1))
    x = layers.Conv2D(16, 3, padding="same", use_bias=False, name="stem")(inputs)
    x = layers.ReLU()(layers.BatchNormalization(momentum=0.8)(x))
    y = layers.Conv2D(16, 3, padding="same", activation="relu")(x)
    y = layers.BatchNormalization(momentum=0.8)(layers.Conv2D(16, 3, padding="same", name="branch")(y))
    x = layers.MaxPooling2D()(layers.ReLU()(layers.Add()([x, y])))
    x = layers.Dropout(0.1)(layers.Flatten()(x))
    return keras.Model(inputs, layers.Dense(10, activation="softmax", name="answer")(x))


def fit(data, epochs=2, **more):
    return {"x": data[0][0], "y": data[0][1], "epochs": epochs, "batch_size": 64, **more}


@pytest.mark.exhaustive
def test_prune_in_steps_with_training(trained, data):
    result = flatout.prune(
        trained, flops=0.5, steps=2, train=fit(data), multiple=1, data=data[1], importance="sensitivity"
    )
    assert result.after.flops <= 0.5 * result.before.flops
    assert len(result.checks) == 2
    assert accuracy(result.model, data[1]) > 0.6


def test_an_interrupted_pruning_goes_on(trained, data, tmp_path):
    import keras

    calls = []

    def train(model):
        calls.append(model.count_params())
        if len(calls) == 2:
            raise KeyboardInterrupt
        model.fit(*data[0], epochs=1, verbose=0)

    wish = {"parameters": 0.4, "steps": 2, "train": train, "multiple": 1, "checkpoint": tmp_path / "kept"}
    with pytest.raises(KeyboardInterrupt):
        flatout.prune(trained, **wish)
    trained.save(tmp_path / "same.keras")
    result = flatout.prune(keras.saving.load_model(tmp_path / "same.keras"), **wish)
    assert len(calls) == 3, "the first step was not trained again"
    assert result.after.parameters <= 0.4 * result.before.parameters
    with pytest.raises(CompressionRefused, match="another model or of other settings"):
        flatout.prune(trained, **{**wish, "parameters": 0.5})


def test_masks_hold_and_the_sparsity_is_what_was_asked_for(trained, data):
    for train in (fit(data), lambda model: model.fit(*data[0], epochs=1, verbose=0)):
        result = flatout.prune(trained, sparsity=0.8, train=train)
        assert result.details["sparsity"] >= 0.8
        for layer in graph.layers(result.model):
            for kernel in magnitude.kernels(layer):
                assert (kernel.numpy() == 0).mean() >= 0.8 - 1e-3
                assert kernel.constraint is None
        assert compressed_size(result.model) < compressed_size(trained) / 2
    assert accuracy(result.model, data[1]) > 0.6


def test_n_of_m_and_global(trained):
    result = flatout.prune(trained, sparsity=0.5, pattern=(2, 4))
    kernel = next(layer for layer in result.model.layers if layer.name == "answer").kernel.numpy()
    blocks = np.count_nonzero(kernel.T.reshape(kernel.shape[1], -1, 4), axis=-1)
    assert blocks.max() == 2
    spread = flatout.prune(trained, sparsity=0.7, scope="global")
    shares = [(k.numpy() == 0).mean() for layer in graph.layers(spread.model) for k in magnitude.kernels(layer)]
    assert max(shares) - min(shares) > 0.01
    assert spread.details["sparsity"] >= 0.7


def test_a_dropped_mask_is_caught(trained):
    masks = Masks(graph.duplicate(trained), 0.8)
    masks.raise_to(1.0)
    assert masks.verify() >= 0.8
    victim = masks.targets[0].variable
    victim.assign(victim.numpy() + 0.01)
    with pytest.raises(CompressionFailed, match="not zero any more"):
        masks.verify()


def test_fold_is_exact(trained, data):
    result = flatout.fold(trained)
    assert not [layer for layer in graph.layers(result.model) if "BatchNorm" in type(layer).__name__]
    assert not [layer for layer in graph.layers(result.model) if "Dropout" in type(layer).__name__]
    assert result.checks[0].deviation < 1e-5
    assert abs(accuracy(result.model, data[1]) - accuracy(trained, data[1])) < 1e-6


def test_an_unfolded_batch_norm_is_caught(trained, monkeypatch):
    right = fold.with_norm

    def wrong(layer, norm):
        weights = right(layer, norm)
        return [layer.kernel.numpy(), *weights[1:]] if layer.name == "stem" else weights

    monkeypatch.setattr(fold, "with_norm", wrong)
    with pytest.raises(CompressionFailed, match="folded"):
        flatout.fold(trained)


def test_dead_branches_and_unread_channels_go(trained):
    model = graph.duplicate(trained)
    wiring = graph.wiring(model)
    add = next(step for step in wiring.steps if type(step.operation).__name__ == "Add")
    norm = wiring.maker(add.inputs[1]).operation  # the branch ends in a batch norm
    norm.gamma.assign(np.zeros(norm.gamma.shape))
    norm.beta.assign(np.zeros(norm.beta.shape))
    result = flatout.fold(model)
    before, after = len(graph.layers(model)), len(graph.layers(result.model))
    adds = [layer for layer in graph.layers(result.model) if type(layer).__name__ == "Add"]
    assert not adds
    assert after < before


def test_clusters_hold(trained, data):
    result = flatout.cluster(trained, 8, train=fit(data, epochs=1))
    for layer in graph.layers(result.model):
        for kernel in magnitude.kernels(layer):
            assert len(np.unique(kernel.numpy())) <= 8
    assert compressed_size(result.model) < compressed_size(trained) / 2
    assert accuracy(result.model, data[1]) > 0.6


def test_distillation_makes_a_student(trained, data):
    flags = [layer.trainable for layer in trained.layers]
    result = flatout.distill(trained, width=0.5, train=fit(data, epochs=3))
    assert result.after.parameters < 0.5 * result.before.parameters
    assert accuracy(result.model, data[1]) > 0.6
    assert [layer.trainable for layer in trained.layers] == flags
    assert all(layer.trainable for layer in result.model.layers)


@pytest.mark.exhaustive  # an interrupted pruning goes on in the ordinary run
def test_an_interrupted_distillation_goes_on_inside_fit(trained, data, tmp_path):
    import keras

    begun = []

    class Interrupted(keras.callbacks.Callback):
        def on_epoch_begin(self, epoch, logs=None):
            begun.append(epoch)
            if begun == [0, 1]:
                raise KeyboardInterrupt

    before = training.fingerprint(trained, [])
    wish = {"width": 0.5, "train": fit(data, epochs=3, callbacks=[Interrupted()]), "checkpoint": tmp_path}
    with pytest.raises(KeyboardInterrupt):
        flatout.distill(trained, **wish)
    flatout.distill(trained, **wish)
    assert begun == [0, 1, 1, 2]
    assert trained.trainable, "or the next teacher learns as well"
    assert training.fingerprint(trained, []) == before
    with pytest.raises(CompressionRefused, match="another model"):
        flatout.distill(trained, small(), train=wish["train"], checkpoint=tmp_path)


@pytest.mark.exhaustive
def test_under_rounding_a_teacher_outweighs_labels_that_are_wrong(trained, data, tmp_path):
    flags = [layer.trainable for layer in trained.layers]
    (x, y), held_out = data
    wrong = {"x": x, "y": (y + 1) % 10, "epochs": 2, "batch_size": 64}
    taught = flatout.quantize(trained, x[:64], train=wrong, teacher=trained, checkpoint=tmp_path).model
    alone = flatout.quantize(trained, x[:64], train=wrong).model
    assert accuracy(taught, held_out) > accuracy(alone, held_out) + 0.2
    assert [layer.trainable for layer in trained.layers] == flags
    with pytest.raises(CompressionRefused, match="another model"):
        flatout.quantize(trained, x[:64], train=wrong, teacher=small(), checkpoint=tmp_path)


def test_students_without_some_blocks():
    from flatout.optimize.compress.students import derive, shortcuts

    teacher = residual(width=8, blocks=3, size=8)
    assert len(shortcuts(graph.wiring(teacher))) == 5, "the block that changes the width has no plain shortcut"
    student = derive(teacher, depth=0.5)
    assert len(shortcuts(graph.wiring(student))) == 3
    fresh = derive(teacher, width=0.5, inherit=False)
    assert fresh.count_params() < teacher.count_params() / 2


def test_a_loss_that_is_not_a_number_is_told(trained, data):
    def breaks(model):
        model.trainable_variables[0].assign(np.full(model.trainable_variables[0].shape, np.nan))

    with pytest.raises(CompressionFailed, match="became NaN"):
        flatout.prune(trained, parameters=0.8, train=breaks)
    assert np.isfinite(accuracy(trained, data[1]))


@pytest.mark.exhaustive
def test_early_stopping_is_honoured(trained, data):
    import keras

    stop = keras.callbacks.EarlyStopping("loss", patience=0, min_delta=1e9)
    flatout.prune(trained, sparsity=0.5, train=fit(data, epochs=50, callbacks=[stop]))
    assert 0 < stop.stopped_epoch < 5


def test_results_are_told_in_words(trained):
    text = str(flatout.fold(trained))
    assert "parameters" in text
    assert "check folded" in text
    json.dumps(checks.Check("x", 0.1, 0.2).passed)


@pytest.mark.exhaustive
def test_a_training_under_rounding_that_does_not_pay_is_left(trained, data):
    """One that harms leaves the calibrated model; one of a model that has not learned yet is taken."""
    calibration = data[0][0][:128]
    calibrated = flatout.quantize(trained, calibration, batch_size=16).model

    def harm(model):
        for kernel in (v for v in model.trainable_variables if v.name == "kernel"):
            kernel.assign(-kernel.numpy())

    result = flatout.quantize(trained, calibration, train=harm, validation=data[1], batch_size=16)
    assert not result.details["training"].training_helped
    assert result.details["training"].won.mean < -0.2
    for one, other in zip(*(checks.outputs(m, [calibration]) for m in (calibrated, result.model)), strict=True):
        np.testing.assert_array_equal(one, other)

    fresh = compiled(small())
    result = flatout.quantize(fresh, calibration, train=fit(data, epochs=4, validation_data=data[1]), batch_size=16)
    assert result.details["training"].training_helped
    assert accuracy(result.model, data[1]) > 0.5
    with pytest.raises(CompressionRefused, match="not compiled"):
        flatout.quantize(small(), calibration, train=harm, validation=data[1])
    with pytest.raises(CompressionRefused, match="fewer than 8 batches of 64"):
        flatout.quantize(trained, calibration, train=harm, validation=data[1])
