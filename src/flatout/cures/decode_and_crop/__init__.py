"""A picture that is decoded and then cropped is decoded only where it is cropped.

## What it does
Edits the graph of the map: a slice of what `DecodeJpeg` returns becomes `DecodeAndCropJpeg`, and code that asks for
the shape of the whole picture reads it from the file's header. Only where nothing else uses the whole picture, and
only in maps without state: what is drawn at random cannot be compared.

## When it pays
When decoding JPEG files takes most of the input's time and crops are much smaller than the pictures.

## What it changes
Exact, as compared. A margin around the crop is decoded too, because colours at the edge of a crop are interpolated
from the pixels beside it.

## In the source
```python
picture = tf.io.decode_and_crop_jpeg(contents, [top, left, height, width], channels=3)
```
"""

from __future__ import annotations

from flatout.cures._spec import Cure

CURE = Cure(does="decode pictures only where they are cropped", equivalence="exact", side="input", after=("forward",))
