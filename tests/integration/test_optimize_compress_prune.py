"""Channels out of models of many shapes: what is removed was silent, what is left runs, trains and saves."""

import numpy as np
import pytest
from compress_models import EVERY, decoder, residual, shaken, transformer, two_inputs, unet

import flatout
from flatout.model.errors import CompressionFailed, CompressionRefused
from flatout.optimize.compress import checks
from flatout.optimize.compress.prune import remove
from flatout.optimize.compress.structure import graph, shrink
from flatout.optimize.compress.structure.channels import follow

pytestmark = pytest.mark.slow


def some_units(known, share=0.4, seed=0):
    generator = np.random.default_rng(seed)
    removed = set()
    for group in known.groups:
        removed.update(generator.permutation(group.units)[: int(share * len(group.units))].tolist())
    return frozenset(removed)


@pytest.mark.parametrize("build", EVERY, ids=lambda build: build.__name__)
def test_removing_silent_channels_changes_no_output(build, tmp_path):
    import keras

    model = shaken(build())
    known = follow(model)
    smaller, check = remove(known, some_units(known))
    assert check.deviation < 2e-5
    assert smaller.count_params() < 0.9 * model.count_params()
    smaller.save(tmp_path / "smaller.keras")
    again = keras.saving.load_model(tmp_path / "smaller.keras")
    inputs = checks.samples(model)
    for one, other in zip(checks.outputs(smaller, inputs), checks.outputs(again, inputs), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-6)


def test_nothing_removed_is_the_same_model():
    model = shaken(two_inputs())
    known = follow(model)
    smaller, check = remove(known, frozenset())
    assert check.deviation < 1e-6
    assert smaller.count_params() == model.count_params()


def test_targets_are_met_and_the_original_is_untouched():
    model = shaken(residual())
    before = [value.copy() for value in model.get_weights()]
    for target in ("parameters", "flops"):
        result = flatout.prune(model, **{target: 0.5}, multiple=1)
        share = getattr(result.after, target) / getattr(result.before, target)
        assert 0.4 < share <= 0.5
        assert result.after.parameters == result.model.count_params()
    for one, other in zip(before, model.get_weights(), strict=True):
        np.testing.assert_array_equal(one, other)


def test_what_was_adapted_to_data_is_not_lost():
    import keras
    from keras import layers

    pictures = np.random.default_rng(0).normal(3, 5, (64, 8, 8, 2)).astype("float32")
    adapted = layers.Normalization()
    adapted.adapt(pictures)
    x = layers.Conv2D(16, 3, activation="relu")(adapted(inputs := keras.Input((8, 8, 2))))
    model = shaken(keras.Model(inputs, layers.Dense(3)(layers.Flatten()(x))))
    expected = checks.outputs(model, [pictures[:4]])[0]
    for copy in (flatout.fold(model).model, graph.duplicate(model), remove(follow(model), frozenset())[0]):
        np.testing.assert_allclose(checks.outputs(copy, [pictures[:4]])[0], expected, rtol=1e-4, atol=1e-4)


def test_a_layer_that_a_copy_differs_from_is_refused():
    import keras
    from keras import layers

    class Shifted(layers.Layer):
        """Keeps what it learned where neither its variables nor its config tell of it."""

        shift = 0.0

        def call(self, inputs):
            return inputs + self.shift

    inputs = keras.Input((8, 8, 2))
    shifted = Shifted()
    x = layers.Conv2D(16, 3, activation="relu")(shifted(inputs))
    model = keras.Model(inputs, layers.Dense(3)(layers.Flatten()(layers.Conv2D(16, 3)(x))))
    shifted.shift = 2.0
    with pytest.raises(CompressionFailed, match="copied"):
        flatout.prune(model, parameters=0.6)


def test_whole_heads_leave_an_attention_layer():
    model = shaken(transformer())
    known = follow(model)
    heads = next(group for group in known.groups if group.name.startswith("multi_head_attention"))
    assert len(heads.units) == 4
    smaller, _ = remove(known, frozenset(heads.units[:2]))
    assert [layer.num_heads for layer in smaller.layers if hasattr(layer, "num_heads")] == [2, 4]
    assert "statistics" in str(known.held), "layer norms hold the width of the residual stream"


def test_frozen_layers_stay_frozen_and_precision_is_kept():
    import keras

    with (
        keras.dtype_policies.dtype_policy("mixed_bfloat16")
        if hasattr(keras.dtype_policies, "dtype_policy")
        else _policy("mixed_bfloat16")
    ):
        model = shaken(residual())
    model.get_layer("stem").trainable = False
    result = flatout.prune(model, parameters=0.6)
    assert not result.model.get_layer("stem").trainable
    assert result.model.get_layer("stem").compute_dtype == "bfloat16"
    assert len(result.model.trainable_variables) == len(model.trainable_variables)


class _policy:  # noqa: N801  # a context manager of two lines
    def __init__(self, name):
        import keras

        self.before, self.name = keras.config.dtype_policy(), name

    def __enter__(self):
        import keras

        keras.config.set_dtype_policy(self.name)

    def __exit__(self, *_):
        import keras

        keras.config.set_dtype_policy(self.before)


def test_a_sequential_model_stays_one():
    import keras

    result = flatout.prune(shaken(decoder()), parameters=0.7, multiple=1)
    assert isinstance(result.model, keras.Sequential)


def test_a_layer_that_is_not_known_keeps_its_channels():
    import keras
    from keras import layers

    class Odd(layers.Layer):
        def build(self, shape):
            self.mix = self.add_weight(shape=(shape[-1], shape[-1]), name="mix")

        def call(self, x):
            return x @ self.mix

    inputs = keras.Input((8, 8, 3))
    x = layers.Conv2D(16, 3)(inputs)
    x = layers.Conv2D(16, 3, name="before")(x)
    x = layers.Dense(16)(Odd(name="odd")(x))
    model = shaken(keras.Model(inputs, layers.Dense(2)(x)))
    result = flatout.prune(model, parameters=0.8, multiple=1)
    assert "odd" in result.held["before"]
    assert result.model.get_layer("before").filters == 16


def test_what_cannot_be_followed_is_refused_by_name():
    import keras
    from keras import layers

    class Own(keras.Model):
        def call(self, x):
            return x

    with pytest.raises(CompressionRefused, match="subclassed"):
        flatout.prune(Own(name="mine"), flops=0.5)
    with pytest.raises(CompressionRefused, match="input shape"):
        flatout.prune(keras.Sequential([layers.Dense(3)]), flops=0.5)
    alone = keras.Sequential([keras.Input((4,)), layers.Dense(3, name="only")])
    with pytest.raises(CompressionRefused, match="only: an output of the model"):
        flatout.prune(alone, flops=0.5)
    with pytest.raises(CompressionRefused, match="one of"):
        flatout.prune(alone, flops=0.5, parameters=0.5)
    with pytest.raises(CompressionRefused, match="share"):
        flatout.prune(alone, flops=30)
    with pytest.raises(CompressionRefused, match="cannot be reached"):
        flatout.prune(residual(), flops=0.0001)


def test_a_residual_that_is_wired_wrongly_is_caught(monkeypatch):
    """Planted: one convolution of the residual path keeps other channels than the add expects."""
    model = shaken(residual())
    known = follow(model)
    removed = some_units(known)
    kept = known.ledger.kept
    victim = next(cut for cut in known.ledger.cuts.values() if cut.produces and cut.layer.name == "stem")

    def wrong(units, gone):
        right = kept(units, gone)
        return (right + 1) % len(units) if units is victim.units and gone else right

    monkeypatch.setattr(known.ledger, "kept", wrong, raising=False)
    smaller = shrink.remove_units(known, removed)
    monkeypatch.undo()
    monkeypatch.setattr(shrink, "remove_units", lambda *_: smaller)
    with pytest.raises(CompressionFailed, match="outputs differ"):
        remove(known, removed)


@pytest.mark.exhaustive
def test_latency_as_a_target_removes_channels():
    result = flatout.prune(shaken(unet()), latency=0.95, multiple=1)
    assert result.after.flops < result.before.flops
    assert "at batch 1" in result.details["speedup"]


def test_models_inside_models_become_one():
    model = shaken(two_inputs())
    result = flatout.prune(model, parameters=0.6, multiple=1)
    assert not any(graph.is_model(layer) for layer in result.model.layers)
    assert {tensor.name for tensor in result.model.inputs} == {"left", "right", "facts"}
