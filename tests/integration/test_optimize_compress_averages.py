"""The weights that a training ends with: means of its last steps and of its start, where nothing speaks against it."""

import numpy as np
import pytest

from flatout.optimize.compress import training
from flatout.optimize.compress.averages import LONGEST, SHARE

pytestmark = pytest.mark.slow

SAMPLES = np.random.default_rng(0).normal(size=(96, 3)).astype("float32")
ANSWERS = np.random.default_rng(1).normal(size=(96, 1)).astype("float32")


def line(**how):
    """One layer whose weights never settle: the rate is large and the answers are noise."""
    import keras

    keras.utils.set_random_seed(0)
    model = keras.Sequential([keras.Input((3,)), keras.layers.Dense(1, **how)])
    model.compile(keras.optimizers.SGD(0.2, momentum=0.5), "mse", jit_compile=False)
    return model


def fit(**more):
    return {"x": SAMPLES, "y": ANSWERS, "batch_size": 8, "epochs": 2, "shuffle": False, **more}


def watched():
    import keras

    class Watched(keras.callbacks.Callback):
        def __init__(self):
            super().__init__()
            self.kernels = []

        def on_train_batch_end(self, batch, logs=None):
            self.kernels.append(self.model.layers[-1].kernel.numpy())

    return Watched()


def mean_of(kernels):
    mean = kernels[0]
    for steps, kernel in enumerate(kernels[1:], 1):
        momentum = min(LONGEST, steps / (steps + SHARE))
        mean = momentum * mean + (1 - momentum) * kernel
    return mean


def kernel_of(model):
    return model.layers[-1].kernel.numpy()


def test_a_fit_ends_with_the_mean_of_its_last_steps():
    model, seen = line(), watched()
    kind = type(model.optimizer)
    training.run(fit(callbacks=[seen]), model, task="averaging")
    assert len(seen.kernels) == 24
    assert np.allclose(kernel_of(model), mean_of(seen.kernels), atol=1e-5)
    assert np.abs(kernel_of(model) - seen.kernels[-1]).max() > 1e-3
    assert type(model.optimizer) is kind


def test_so_does_a_function_that_fits():
    model, seen = line(), watched()
    training.run(lambda given: given.fit(**fit(callbacks=[seen], verbose=0)), model, task="averaging")
    assert np.allclose(kernel_of(model), mean_of(seen.kernels), atol=1e-5)


def test_a_loop_that_compiles_anew_keeps_its_own_weights():
    model, seen = line(), watched()

    def train(given):
        given.compile("sgd", "mse")
        given.fit(**fit(callbacks=[seen], verbose=0))

    training.run(train, model, task="averaging")
    assert np.array_equal(kernel_of(model), seen.kernels[-1])


def test_a_constraint_is_not_averaged_away():
    import keras

    model, seen = line(kernel_constraint=keras.constraints.UnitNorm(axis=0)), watched()
    training.run(fit(callbacks=[seen]), model, task="averaging")
    assert np.allclose(np.linalg.norm(kernel_of(model)), 1, atol=1e-5)
    assert np.array_equal(kernel_of(model), seen.kernels[-1])


def test_the_best_epoch_is_restored_as_it_was():
    import keras

    model, seen = line(), watched()
    stop = keras.callbacks.EarlyStopping("loss", patience=5, min_delta=1e9, restore_best_weights=True)
    training.run(fit(epochs=3, callbacks=[seen, stop]), model, task="averaging")
    assert np.array_equal(kernel_of(model), seen.kernels[11]), "of the first epoch, by this measure"


def test_an_interrupted_fit_goes_on_with_its_averages(tmp_path):
    import keras

    class Interrupted(keras.callbacks.Callback):
        def on_epoch_begin(self, epoch, logs=None):
            if epoch == 1:
                raise KeyboardInterrupt

    whole = line()
    training.run(fit(), whole, task="averaging", backup=tmp_path / "one")
    with pytest.raises(KeyboardInterrupt):
        training.run(fit(callbacks=[Interrupted()]), line(), task="averaging", backup=tmp_path / "two")
    second = line()
    training.run(fit(), second, task="averaging", backup=tmp_path / "two")
    assert np.allclose(kernel_of(second), kernel_of(whole), atol=1e-6)


@pytest.mark.filterwarnings("ignore:Skipping variable loading for optimizer")
def test_a_checkpoint_that_is_written_meanwhile_can_be_loaded(tmp_path):
    import keras

    model, file = line(), tmp_path / "meanwhile.keras"
    training.run(fit(callbacks=[keras.callbacks.ModelCheckpoint(file)]), model, task="averaging")
    assert type(keras.saving.load_model(file).optimizer) is keras.optimizers.SGD


def test_scaled_losses_and_accumulated_gradients_too():
    import keras

    for optimizer in (
        keras.optimizers.LossScaleOptimizer(keras.optimizers.SGD(0.05)),
        keras.optimizers.SGD(0.05, gradient_accumulation_steps=2),
    ):
        model, seen = line(), watched()
        model.compile(optimizer, "mse", jit_compile=False)
        training.run(fit(callbacks=[seen]), model, task="averaging")
        assert np.isfinite(kernel_of(model)).all()
        late = np.stack(seen.kernels[8:])
        assert ((late.min(0) <= kernel_of(model)) & (kernel_of(model) <= late.max(0))).all()


def moved(model, by):
    """A `train` that moves one kernel by so much of its size, and nothing else."""

    def train(given):
        layer = given.layers[-2].layer
        layer.kernel.assign(layer.kernel.numpy() * (1 + by))

    return train


def rounded(by, **how):
    """How far the kernel has moved after a training under rounding, as a share of it."""
    import flatout

    model = line()
    compressed = flatout.quantize(model, SAMPLES, train=moved(model, by), **how)
    before, after = kernel_of(model), compressed.model.layers[-2].layer.kernel.numpy()
    return float(np.mean(after / before)) - 1


def test_rounded_weights_keep_a_share_of_what_they_were():
    assert rounded(0.1) == pytest.approx(0.07, abs=1e-5)
    assert rounded(0.1, keep=0.5) == pytest.approx(0.05, abs=1e-5)
    assert rounded(0.1, keep=0) == pytest.approx(0.1, abs=1e-5)


def test_they_keep_nothing_where_the_model_has_become_another():
    assert rounded(-0.5) == pytest.approx(-0.5, abs=1e-5)
    assert rounded(-2.0) == pytest.approx(-2.0, abs=1e-5)


def test_what_was_not_trained_stays_bit_by_bit():
    import flatout

    model = line()
    compressed = flatout.quantize(model, SAMPLES, train=lambda given: None)
    assert np.array_equal(compressed.model.layers[-2].layer.kernel.numpy(), kernel_of(model))


def test_a_model_of_one_batch_size_is_judged_in_batches_of_it():
    import keras

    import flatout

    model = keras.Sequential([keras.Input(batch_shape=(48, 3)), keras.layers.Dense(1)])
    model.compile("sgd", "mse")
    compressed = flatout.quantize(model, SAMPLES, train=moved(model, 0.1), batch_size=48)
    ratio = compressed.model.layers[-2].layer.kernel.numpy() / kernel_of(model)
    assert np.allclose(ratio, 1.07, atol=1e-5)


def test_a_share_that_is_none_is_refused():
    import flatout

    for share in (-0.1, 1, 2.5):
        with pytest.raises(flatout.model.errors.CompressionRefused, match="keep is a share"):
            flatout.quantize(line(), SAMPLES, train=lambda model: None, keep=share)
