"""A session looks up what a run fetches and feeds once, and not again in every call.

## What it does
`session.run` parses its fetches, finds each of them and each key of `feed_dict` in the graph, and checks and converts
what is fed, in Python and at every call. With this lever the first run of its kind keeps what was found, and later
runs with the same fetches and the same keys go straight to the graph. `make_callable` with a list of feeds does not
do this: it calls `run`.

Runs that need more go the ordinary way: partial runs, sparse tensors, handles of tensors, tuples as keys, and whatever
`run` would refuse, so that its errors stay the same. A graph may grow between the runs.

## When it pays
When the graph computes for less than a millisecond or so: on one machine a step of a regression with one sample
took 570 µs, of which 360 µs was this.

## What it changes
Exact: the same ops run in the same graph with the same values. The patch adds a subclass of the session to the program.
It overrides `_run`, the inner part of `run`, and calls other methods of the session that are no public names: look at
it again when TensorFlow is upgraded. This was tried with TensorFlow 2.21.

## In the source
```python
class PreparedSession(tf.compat.v1.Session):
    def _run(self, handle, fetches, feed_dict, options, run_metadata):
        ...                                        # keeps what the first run of its kind has found


with PreparedSession() as session:
    for a, b in samples:
        session.run(train, feed_dict={x: a, y: b})
```
"""

from __future__ import annotations

from flatout.cures._session_runs import reason_against
from flatout.cures._spec import Cure

CURE = Cure(
    does="look up a session's fetches and feeds once",
    equivalence="exact",
    side="host",
    after=("caller-thread", "feed-once"),
    skip=reason_against,
)
