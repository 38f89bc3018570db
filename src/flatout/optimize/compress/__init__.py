"""Makes Keras models smaller and faster: one module per technique, every result checked against its original.

- `prune.py`      removes channels, so that layers get smaller; `magnitude.py` sets single weights to zero
- `fold.py`       folds batch norms into the layers before them, removes dead branches and identity layers: exact
- `cluster.py`    few distinct values per layer
- `quantize.py`   int8 with or without training (`int8/`); `litert.py` and `onnx_qdq.py` write the file
- `distill.py`    trains a small student on a large teacher's answers; `students.py` derives the student
- `search.py`     combines these as far as the result is good enough; `stages.py` runs them by name, `command.py` both

`structure/` follows channels through a model and rebuilds it; `checks.py` compares a result with what it must equal;
`training.py` does all training.
"""
