"""`model.predict` is called in a loop on small inputs, and its set-up is paid each time.

## What it is
`predict` is made for one large data set: it builds a data pipeline, callbacks and a progress bar, splits
the input into batches and collects the results. In a loop over single inputs all of that is done per call.

## Why it costs
The set-up takes milliseconds, the model often less. On one machine a small model took 130,430 µs per
`predict` call in a loop, 3087 µs per direct call `model(x)`, and 597 µs through a `tf.function`.

## How it looks
```python
for request in requests:
    scores = model.predict(request[np.newaxis], verbose=0)[0]
    answer(scores)
```

## The cure
When all inputs are known, one call for all of them:
```python
scores = model.predict(np.stack(requests), batch_size=256)
```
When they come one by one, call the model itself, traced once:
```python
forward = tf.function(lambda values: model(values, training=False))
for request in requests:
    answer(forward(tf.constant(request[np.newaxis]))[0].numpy())
```
`training=False` matters: a bare `model(x)` leaves the choice to the default, and `predict` always uses
False. `model.predict_on_batch` skips most of the set-up as well. For serving, `flatout optimize` compares
more routes.
- An edit of the source: exact or reassociated, as the batch size chooses the kernels.

## When it is not worth it
When the loop runs a few times, or over large arrays: the set-up is then a small part of each call.
"""

GROUP = "graph"
LEVERS = ()
