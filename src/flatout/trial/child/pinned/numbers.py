"""From random bits to numbers, by formulas that TensorFlow and XLA compute alike but for rounding.

Philox gives the same bits in both. What each makes of them (`tf.random.stateless_normal`) has nothing in common.
All functions take a key and a counter (uint64[1], uint64[2]).
"""

from __future__ import annotations

import math
from typing import Any

_PHILOX = 1
_MANTISSA = {"float64": 52, "float32": 23, "float16": 10, "bfloat16": 7}


def bits(shape: Any, key: Any, counter: Any, dtype: Any) -> Any:
    from tensorflow.python.ops import gen_stateless_random_ops_v2 as stateless

    return stateless.stateless_random_uniform_full_int_v2(shape, key, counter, _PHILOX, dtype=dtype)


def uniform(shape: Any, key: Any, counter: Any, dtype: Any) -> Any:
    """In [0, 1), on the grid of the type: no value is rounded up to 1."""
    from tensorflow.python.framework import dtypes
    from tensorflow.python.ops import bitwise_ops, math_ops

    dtype = dtypes.as_dtype(dtype)
    kept = _MANTISSA[dtype.name]
    whole, wide = (dtypes.uint64, dtypes.float64) if dtype == dtypes.float64 else (dtypes.uint32, dtypes.float32)
    found = bits(shape, key, counter, whole)
    found = bitwise_ops.right_shift(found, math_ops.cast(whole.size * 8 - kept, whole))
    signed = dtypes.int64 if whole == dtypes.uint64 else dtypes.int32
    return math_ops.cast(math_ops.cast(math_ops.cast(found, signed), wide) * 2.0**-kept, dtype)


def normal(shape: Any, key: Any, counter: Any, dtype: Any) -> Any:
    """Box and Muller."""
    from tensorflow.python.framework import dtypes
    from tensorflow.python.ops import array_ops, math_ops

    dtype = dtypes.as_dtype(dtype)
    wide = dtypes.float64 if dtype == dtypes.float64 else dtypes.float32
    pair = uniform(array_ops.concat([[2], _shape(shape)], 0), key, counter, wide)
    radius = math_ops.sqrt(-2.0 * math_ops.log(1.0 - pair[0]))
    return math_ops.cast(radius * math_ops.cos(2.0 * math.pi * pair[1]), dtype)


def truncated_normal(shape: Any, key: Any, counter: Any, dtype: Any) -> Any:
    """Within two standard deviations, by the inverse of the distribution."""
    from tensorflow.python.framework import dtypes
    from tensorflow.python.ops import math_ops

    dtype = dtypes.as_dtype(dtype)
    wide = dtypes.float64 if dtype == dtypes.float64 else dtypes.float32
    centred = 2.0 * uniform(shape, key, counter, wide) - 1.0
    return math_ops.cast(math.sqrt(2.0) * math_ops.erfinv(centred * math.erf(math.sqrt(2.0))), dtype)


def integers(shape: Any, key: Any, counter: Any, minval: Any, maxval: Any) -> Any:
    from tensorflow.python.framework import dtypes, ops
    from tensorflow.python.ops import math_ops

    minval = ops.convert_to_tensor(minval)
    maxval = ops.convert_to_tensor(maxval, minval.dtype)
    whole = math_ops.cast(
        bits(shape, key, counter, dtypes.uint64 if minval.dtype.size == 8 else dtypes.uint32), dtypes.int64
    )
    extent = math_ops.cast(maxval, dtypes.int64) - math_ops.cast(minval, dtypes.int64)
    return minval + math_ops.cast(math_ops.floormod(whole, extent), minval.dtype)


def order(count: Any, key: Any, counter: Any) -> Any:
    """A permutation of so many."""
    from tensorflow.python.framework import dtypes
    from tensorflow.python.ops import array_ops, math_ops, sort_ops

    drawn = bits(array_ops.reshape(count, [1]), key, counter, dtypes.uint32)
    return sort_ops.argsort(math_ops.cast(drawn, dtypes.int64), stable=True)


def shuffled(value: Any, key: Any, counter: Any) -> Any:
    from tensorflow.python.framework import ops
    from tensorflow.python.ops import array_ops

    value = ops.convert_to_tensor(value)
    return array_ops.gather(value, order(array_ops.shape(value)[0], key, counter))


def categories(logits: Any, count: Any, key: Any, counter: Any, dtype: Any) -> Any:
    """By Gumbel's way: [rows, count] numbers of classes."""
    import tensorflow as tf
    from tensorflow.python.framework import dtypes, ops
    from tensorflow.python.ops import array_ops, math_ops

    logits = math_ops.cast(ops.convert_to_tensor(logits), dtypes.float32)
    shape = array_ops.shape(logits)
    drawn = uniform(tf.stack([shape[0], count, shape[1]]), key, counter, dtypes.float32)
    gumbel = -math_ops.log(-math_ops.log(drawn + 1e-20) + 1e-20)
    return math_ops.argmax(logits[:, None, :] + gumbel, axis=2, output_type=dtype)


def _shape(shape: Any) -> Any:
    from tensorflow.python.framework import dtypes, ops
    from tensorflow.python.ops import math_ops

    shape = ops.convert_to_tensor(shape, dtypes.int32) if not hasattr(shape, "dtype") else ops.convert_to_tensor(shape)
    return math_ops.cast(shape, dtypes.int32)
