"""Which rounding of values belongs to which layer, and in which order a file has its inputs and outputs."""

import pytest

from flatout.optimize.compress import litert, quantize


@pytest.mark.parametrize(
    ("rounder", "layer"),
    [
        ("dense_values", "dense"),
        ("dense_activation_values", "dense"),
        ("dense_1_values", "dense_1"),
        ("dense_10_sigmoid_values", "dense_10"),
        ("dense_2_values", "dense"),  # of a second call
        ("add_values", ""),
        ("denser_values", ""),
    ],
)
def test_a_layer_is_measured_with_its_own_rounding_alone(rounder, layer):
    assert quantize._owner(rounder, ["dense", "dense_1", "dense_10"]) == layer


def test_inputs_keep_their_order_where_there_are_more_than_ten():
    names = [litert.numbered("in", index) for index in range(12)]
    assert sorted(names) == names
