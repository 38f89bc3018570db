"""Images are transposed between channels-first and channels-last again and again.

## What it is
`Transpose` operations around convolutions and poolings, written in the program or inserted because a layer
asks for a layout that its kernel does not have.

## Why it costs
A transpose moves the whole tensor through memory and computes nothing. With `data_format="channels_first"`
Keras 3 on TensorFlow wraps every pooling in two of them, as TensorFlow's pooling takes channels-last there.
On a GPU TensorFlow's layout optimizer picks a layout for the whole graph and cancels pairs, but not across
operations that it does not know, nor in eager code.

## How it looks
```python
images = tf.transpose(images, (0, 3, 1, 2))
for _ in range(4):
    images = keras.layers.Conv2D(64, 3, data_format="channels_first")(images)
    images = keras.layers.MaxPooling2D(data_format="channels_first")(images)   # two transposes each
```

## The cure
Stay with channels-last throughout; it is the default, the layout of decoded images, and what tensor cores
want in half precision:
```python
for _ in range(4):
    images = keras.layers.Conv2D(64, 3)(images)
    images = keras.layers.MaxPooling2D()(images)
```
- An edit of the source: reassociated. Saved weights of `Dense` layers after a `Flatten` see another order
  of inputs and must be permuted.
- `xla` assigns layouts for the whole program: reassociated. On CPUs some convolutions are much slower under
  XLA.

## When it is not worth it
A single transpose at the entrance. float32 convolutions on a GPU may be faster channels-first, and
TensorFlow's own optimizer arranges that in graphs by itself.
"""

GROUP = "numerics"
LEVERS = ("xla",)
