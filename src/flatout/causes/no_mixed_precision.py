"""The hardware has fast units for half precision, and the model computes in float32.

## What it is
Tensor cores (GPUs since 2017), TPUs and CPUs with AMX or AVX-512 BF16 multiply 16-bit matrices several
times faster than 32-bit ones. The Keras policy is `float32` unless the program says otherwise.

## Why it costs
Matrix products and convolutions use the slow path, and activations take twice the memory and bandwidth.
Recent GPUs already round float32 products to TF32 by default, which is part of the gain.

## How it looks
```python
model = build_transformer()                          # policy float32
model.compile(optimizer="adam", loss=loss)
```

## The cure
```python
keras.config.set_dtype_policy("mixed_bfloat16")      # before the layers are built
model = build_transformer()
model.compile(optimizer="adam", loss=loss)
```
Weights stay in float32. The last softmax and the loss are better in float32: give that layer
`dtype="float32"`.
- `bf16`: **precision**. The range of float32 with fewer digits; no loss scaling. Losses deviated by 0.04 to
  0.17 in trials.
- `fp16`: **precision**. More digits, a small range: it needs loss scaling, which Keras' `compile` adds by
  itself and custom loops do through `keras.optimizers.LossScaleOptimizer`.

## When it is not worth it
On hardware without such units, and for small or memory-light models, where the casts cost more than they
save: on one CPU with AMX, bf16 made graph training 1.1 to 1.35 times as fast, but an eager loop slower
(0.68), and fp16 took 98 s to start. Sizes that are not multiples of eight may miss the fast kernels. Always
compare the losses.
"""

GROUP = "hardware"
LEVERS = ("bf16", "fp16")
