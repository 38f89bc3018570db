"""Part of the step computes in float64, although the model's own numbers are float32.

## What it is
NumPy's default is float64. An array that enters TensorFlow as it is (`tf.constant(array)`,
`from_tensor_slices(array)`) stays float64, and so does everything computed from it until something casts
it.

## Why it costs
Twice the memory and traffic, half the numbers per vector instruction. GPUs made for games or inference have
few float64 units, often one for every 32 or 64 float32 units, and no tensor core path for most layers.
Keras layers cast their inputs to the layer's own type, so that the surplus is often spent in the pipeline,
the loss or custom code.

## How it looks
```python
table = np.random.rand(100_000, 256)                         # float64
dataset = tf.data.Dataset.from_tensor_slices(table).batch(512)

@tf.function
def step(rows):
    return tf.reduce_sum(tf.matmul(rows, rows, transpose_b=True))   # all of it in float64
```

## The cure
Convert once, where the data enter:
```python
table = np.random.rand(100_000, 256).astype(np.float32)
dataset = tf.data.Dataset.from_tensor_slices(table).batch(512)
```
- An edit of the source: **precision**. Values lose about nine decimal digits; the losses must still agree
  within the tolerance of the task. No lever does this: only the program knows which numbers need float64.

## When it is not worth it
When the digits are needed: solving ill-conditioned systems, physics, long sums, finite differences, time
stamps. Integer and boolean data are another matter; small float64 scalars (a learning rate, a metric) cost
nothing.
"""

GROUP = "numerics"
LEVERS = ()
