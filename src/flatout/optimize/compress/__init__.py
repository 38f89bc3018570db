"""Smaller and faster models: one file per technique, every result checked against the model that it came from.

- `prune.py`      channels out of layers, so that the layers really get smaller; `magnitude.py` single weights to zero
- `fold.py`       batch norms into the layers before them, dead branches and identity layers away: exact
- `cluster.py`    few distinct values per layer
- `quantize.py`   int8 with or without training: `fake_quant.py` in training, `litert.py` and `onnx_qdq.py` as a file
- `distill.py`    a small student of a large teacher; `students.py` derives it
- `search.py`     these in sequence, as far down as is still good enough; `stages.py` by name; `command.py` runs either

`graph.py` calls a model again with other layers; `channels.py` with `rules/` follows channels through it; `checks.py`
holds a result against what it must equal; `training.py` is all that trains.
"""
