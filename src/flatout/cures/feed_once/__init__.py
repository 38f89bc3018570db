"""An array that is fed in every step is converted to its placeholder's dtype once, before the loop.

## What it does
`session.run` converts every array that does not have the placeholder's dtype, at every call: NumPy's default is
float64, and placeholders are mostly float32. Where the source shows that neither the array nor its elements are
written in the loop, a converted copy is made before the loop and fed instead. This lever is an edit of the source,
and the trial runs the edited source.

## When it pays
When the array is large compared with the step's own work.

## What it changes
Exact: the session made the same array in every step. The copy takes memory: half of that of a float64 array.

## In the source
```python
features_float32 = np.asarray(features, np.float32)
for step in range(steps):
    session.run(train, feed_dict={x: features_float32})
```
"""

from __future__ import annotations

from flatout.cures import _trial_edit
from flatout.cures._spec import Cure
from flatout.model.case import Case
from flatout.model.evidence.steps import Feed


def skip(case: Case) -> str | None:
    from flatout.cures.feed_once.edit import edit

    if not any(finding.cause == "feed-dict" for finding in case.findings):
        return "no session is fed"
    if not any(item.converted for item in case.evidence_of(Feed)):
        return "the arrays that are fed have their placeholders' dtypes already"
    if _trial_edit.changes_something(edit, case):
        return None
    return "the arrays that are fed are made in each step, or the source does not show that they stay the same"


CURE = Cure(does="convert what is fed once, before the loop", equivalence="exact", side="host", skip=skip)
