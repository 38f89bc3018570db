"""A JPEG is decoded as a whole, and then most of it is cut away.

## What it is
`tf.io.decode_jpeg` followed by a crop of its result.

## Why it costs
Decoding is the most expensive part of most image pipelines. `tf.image.decode_and_crop_jpeg` skips the blocks outside
the window: on one machine 2279 µs instead of 5087 µs per image.

## How it looks
```python
image = tf.io.decode_jpeg(record["image"], channels=3)
image = tf.image.crop_to_bounding_box(image, top, left, height, width)
```

## The cure
```python
window = tf.stack([top, left, height, width])
image = tf.image.decode_and_crop_jpeg(record["image"], window, channels=3)
```
`tf.io.extract_jpeg_shape` gives the size of the image without decoding it, for a window that depends on it.
- An edit of the source: exact.

No lever does this: only the program knows which window it cuts out.

## When it is not worth it
When the window is nearly the whole image, or when the images are not JPEGs.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from flatout.causes._spec import Cause
from flatout.source.analysis import datasets
from flatout.source.analysis.patterns import Match, pattern
from flatout.source.analysis.scopes import Site
from flatout.source.analysis.syntax import argument, constant, last_name

_DECODES = ("tensorflow.io.decode_jpeg", "tensorflow.image.decode_jpeg")
_KEEPS = ("convert_image_dtype", "cast", "to_float", "identity", "squeeze")


@pattern(
    "crop-after-decode",
    calls=("crop_to_bounding_box", "random_crop", "slice", "central_crop", "extract_glimpse"),
    needs=("decode_jpeg",),
    seldom=True,
)
def _crop_after_decode(call: ast.Call, site: Site) -> Iterator[Match]:
    """A crop of what decode_jpeg gave, through names, casts and one function of the file."""
    name = site.dotted(call.func)
    if not name.startswith(("tensorflow.image.", "tensorflow.slice")) or not call.args:
        return
    node, here = call.args[0], site
    for _ in range(8):
        if isinstance(node, ast.Call):
            dotted = here.dotted(node.func)
            if dotted in _DECODES:
                yield Match(
                    call,
                    "The whole JPEG is decoded and then cropped.",
                    "Use tf.image.decode_and_crop_jpeg, which decodes the window alone.",
                    report_at=call.func,
                    confidence="low" if _keeps_most(call) else "high",
                )
                return
            if last_name(node.func) not in _KEEPS or not node.args:
                return
            node = node.args[0]
        elif isinstance(node, ast.Name):
            bound = datasets.value_of(node.id, here)
            if bound is None:
                return
            node, here = bound
        else:
            return


def _keeps_most(call: ast.Call) -> bool:
    """`central_crop(image, 0.8)`: two thirds of the image are needed anyway."""
    part = constant(argument(call, 1, "central_fraction")) if last_name(call.func) == "central_crop" else object
    return isinstance(part, float) and part >= 0.7


CAUSE = Cause(
    group="input",
    patterns=(_crop_after_decode,),
)
