"""The model is called for one sample at a time where it could take the whole batch.

## What it is
A Python or TensorFlow loop over the samples of a batch, with a call of the model, the loss or an
augmentation in each round.

## Why it costs
Kernels are built for batches: a matrix product of one row leaves most of a core's vector units, and nearly
all of an accelerator, without work. Each call also pays the dispatch again. Inside a `tf.function` a Python
loop multiplies the graph as well (`unrolled-loop`).

## How it looks
```python
losses = []
for image, label in zip(images, labels):
    prediction = model(image[tf.newaxis])
    losses.append(loss_function(label[tf.newaxis], prediction))
loss = tf.reduce_mean(losses)
```

## The cure
```python
predictions = model(images)
loss = loss_function(labels, predictions)
```
Where the function takes a single sample only, `tf.vectorized_map(function, elements)` turns it into a
batched one for most operations; samples of different lengths can be padded and masked, or put into ragged
tensors.
- An edit of the source: reassociated for layers that treat samples independently. **Semantic** for layers
  that look across the batch: batch normalization sees other statistics.
- `function` around the step keeps the loop but takes Python out of it: reassociated. It is a part of the
  cure.

## When it is not worth it
When samples depend on each other (the next call needs the last result), when they truly have different
shapes and padding would waste more than it saves, or when a batch does not fit in memory.
"""

GROUP = "graph"
LEVERS = ("function",)
