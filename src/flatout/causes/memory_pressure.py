"""The program works at the edge of its memory: it swaps, retries, or must use too small a batch.

## What it is
The peak of the device's or the process's memory comes close to the limit. flatout shows which operations
hold the memory at that moment.

## Why it costs
On the host, swapping makes everything slower by orders of magnitude. On a device, an allocation that finds
no room waits and is tried again, convolutions fall back to algorithms with less working space, and at last
the run fails. Choosing a smaller batch to survive leaves the device partly unused.

## How it looks
```python
activations = []
for images, labels in dataset:
    activations.append(model(images))      # every batch's result is kept
    train_step(images, labels)
```

## The cure
Keep nothing that is not needed, then spread the peak:
```python
optimizer = keras.optimizers.Adam(1e-3, gradient_accumulation_steps=4)
dataset = dataset.unbatch().batch(16)      # 4 × 16 instead of 64 at once
```
- `accumulate`: reassociated at the same effective batch; **semantic** with batch normalization, which sees
  the small batches.
- `bf16`, `fp16`: precision, and about half of the activations. `batch-size`: semantic.
- `allocator`: exact; on the host another malloc (tcmalloc, jemalloc) often fragments less.
- Recomputing activations (`tf.recompute_grad`): reassociated, less memory for more arithmetic.

## When it is not worth it
A high peak alone is no fault: memory that is there may be used. Accumulation and recomputing make each
update slower; they pay only where they allow what would not fit otherwise.
"""

GROUP = "hardware"
LEVERS = ("accumulate", "bf16", "fp16", "batch-size", "allocator")
