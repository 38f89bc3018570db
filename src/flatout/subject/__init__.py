"""The subject: a trained model to be served, with samples and the original's answers, in a directory.

`preparation` turns what the user gave into a subject: `opening` opens the model (`keras_models`, `saved_models`,
`graph_models` for TensorFlow 1, after `trust` has looked for code in the file), `data` and `records` read samples,
`input_matching` assigns them to inputs, `writer` writes the directory, and `split_writer` splits preprocessing off the
numeric core, where there is some. `graph` gives the subject as a TensorFlow function; `metric` evaluates the user's
metric.
"""

from flatout.subject.subject import (
    FEW_ELEMENTS,
    Array,
    Subject,
    Tensor,
    for_size,
    in_batches,
    plain_array,
    write_arrays,
    written_arrays,
)

__all__ = [
    "FEW_ELEMENTS",
    "Array",
    "Subject",
    "Tensor",
    "for_size",
    "in_batches",
    "plain_array",
    "write_arrays",
    "written_arrays",
]
