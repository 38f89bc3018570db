"""The training step runs eagerly: Python dispatches every operation of it, one by one, in every step.

## What it is
A custom loop that computes the loss, the gradients and the update outside any `tf.function`.

## Why it costs
An eager operation costs some tens of microseconds of Python and dispatch before it computes anything, and a
step has hundreds or thousands of them. TensorFlow sees one operation at a time and can neither fuse nor
reorder them. On one machine the step of a tiny model took 9363 µs eagerly and 502 µs as a `tf.function`; a
whole script with a small convolutional model became 1.55 times as fast.

## How it looks
```python
for images, labels in dataset:
    with tf.GradientTape() as tape:
        loss = loss_function(labels, model(images, training=True))
    gradients = tape.gradient(loss, model.trainable_variables)
    optimizer.apply_gradients(zip(gradients, model.trainable_variables))
```

## The cure
```python
@tf.function
def step(images, labels):
    with tf.GradientTape() as tape:
        loss = loss_function(labels, model(images, training=True))
    gradients = tape.gradient(loss, model.trainable_variables)
    optimizer.apply_gradients(zip(gradients, model.trainable_variables))
    return loss

for images, labels in dataset:
    loss = step(images, labels)
```
- `function`: reassociated. The same operations may be fused or reordered, so losses agree to rounding (4e-7
  seen). Python side effects in the step (prints, lists, counters) happen only while tracing: move them out.
- `xla` on top may fuse more. Measure it: on a small CPU script it made things several times slower.

## When it is not worth it
When a step runs few, large operations, dispatch hides behind the arithmetic. A step whose Python control
flow changes from call to call would be traced again and again: see `retracing`.
"""

GROUP = "graph"
LEVERS = ("function", "xla")
