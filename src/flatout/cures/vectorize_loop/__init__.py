"""A loop over the samples of a batch whose iterations are independent becomes one `tf.vectorized_map`.

## What it does
Makes a function of the loop's body and passes it to `tf.vectorized_map`, which turns the operations of one sample
into operations on all of them: a matrix-vector product becomes a product of two matrices. `batch[i]` becomes
`tf.gather(batch, i)`, which it can vectorize. Sums over the iterations are computed afterwards. This lever is an edit
of the source, and the trial runs the edited source.

## When it pays
Where the loop is in a traced step and each iteration does little: a few large operations replace thousands of small
ones.

## What it changes
Reassociated: the same terms, added in another order. Loops in which an iteration reads what another has written, or
which draw random numbers, change variables, print, or leave values behind are left as they are.

## In the source
```python
def for_one_sample(i):
    scores = tf.linalg.matvec(keys, tf.gather(queries, i))
    return tf.reduce_logsumexp(scores) - tf.gather(scores, i)

loss += tf.reduce_sum(tf.vectorized_map(for_one_sample, tf.range(size)), axis=0)
```
"""

from __future__ import annotations

from flatout.cures import _trial_edit
from flatout.cures._spec import Cure
from flatout.model.case import Case
from flatout.model.evidence.graphs import GraphLoop, RepeatedOps

SAMPLES = "per-sample-loop"
CAUSES = (SAMPLES, "unrolled-loop", "sequential-loop")
"""Loops of the last two may go over a list of anything, unless they count."""


def skip(case: Case) -> str | None:
    from flatout.cures.vectorize_loop.edit import edit

    if not any(finding.cause in CAUSES for finding in case.findings):
        return "no loop goes through the samples of a batch"
    if not case.evidence_of(GraphLoop) and not case.evidence_of(RepeatedOps):
        return "no loop is in a graph"
    if _trial_edit.changes_something(edit, case):
        return None
    return "the iterations of the loop depend on each other, or have side effects"


CURE = Cure(
    does="replace the loop over samples with tf.vectorized_map",
    equivalence="reassociated",
    side="compute",
    conflicts=("whole-batch",),
    # A loop that whole-batch removes needs no vectorizing.
    after=("whole-batch",),
    skip=skip,
)
