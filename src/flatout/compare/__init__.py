"""Two sides of one or more runs each: what changed in the step and in its parts, and how sure that is.

    sides.py        what a user types → runs
    run.py          a case, cut down to what a comparison needs; the history keeps the same
    steady.py       how well one run knows its own median: steps lean on each other
    between.py      how far two runs of the same thing lie apart: stated, learned from repeats and from the history
    change.py       one quantity, before and after, with its interval
    parts.py        the parts of the step, from the steps of the trace window
    sameness.py     is it the same program; what differs in the environment
    comparison.py   all of it together, and the verdict
    terminal.py, markdown.py   the views

Nothing here imports TensorFlow or starts the program.
"""
