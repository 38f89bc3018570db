"""Compares two sides of one or more runs each: how the step and its parts changed, and how certain that is.

    case_selection.py   what a user types → runs
    run_spread.py       how far repeated runs of the same program lie apart
    machine_speed.py    how the speed of the machine differed between the sides
    pairing.py          runs of both sides that alternated, compared in pairs
    part_errors.py      how precisely each part of the step is known, from the trace
    change.py           one quantity before and after, with its interval
    differences.py      what differs in the program and in the environment
    comparison.py       all of it together, and the verdict
    formatting.py       numbers and sentences that all views share

`flatout.store.run_summary` holds what a comparison needs of a case. Nothing here imports TensorFlow or starts the
program.
"""
