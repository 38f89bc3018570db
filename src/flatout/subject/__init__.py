"""The subject: a trained model to be served, with samples and the original's answers, in a directory.

`preparation` turns what the user gave into a subject: `original` opens the model (`keras_models`, `saved_models`, after
`trust` has looked for code in the file), `data` and `records` read samples, `input_matching` assigns them to inputs,
`writer` writes the directory. `graph` gives the subject as a TensorFlow function; `metric` evaluates the user's metric.
"""

from flatout.subject.subject import (
    FEW_ELEMENTS,
    Array,
    Subject,
    Tensor,
    in_batches,
    plain_array,
    write_arrays,
)

__all__ = ["FEW_ELEMENTS", "Array", "Subject", "Tensor", "in_batches", "plain_array", "write_arrays"]
