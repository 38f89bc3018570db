"""Writes down what the program computes in its first steps, so that a trial can be compared with the baseline.

Nothing is added to a graph and nothing is pulled while the program runs, but for a few snapshots of the weights: values
that pass by are kept as they are and read when the file is written. `measure.parity` reads the file.

- weights: every trainable variable in the order of creation, after 1, 2, 4 … 128 steps: a checksum of all its bytes
  and a sample of its elements (`weights.py`)
- series: scalars by call, with the steps that were made before it: the loss in the logs of `fit`, what a training
  function returns, the target of an eager tape, what `Session.run` fetches
- in a run that is only compared, the targets of all gradients by ops in the program's graphs (`targets.py`), all losses
  to the end of the run, what evaluations give, and all variables, trained or not: statistics, averages, the slots of
  optimizers, metrics; as each epoch begins, now and then in between, and at the end
- outputs: all elements of the first results of `predict`, of models and of functions, one after the other, however they
  are batched

`hooks.py` sees the values pass by, `kept.py` holds them, `file.py` writes them.
"""

from flatout.trial.child.values.kept import Values

__all__ = ["Values"]
