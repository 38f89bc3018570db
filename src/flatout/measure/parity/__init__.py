"""Whether a changed program still computes the same as the unchanged one.

numbers.py      what a run has computed in its first steps, as the child recorded it
distances.py    how far two arrays are apart, whatever is in them
deviations.py   how far two runs are apart, in weights, losses and outputs
pairing.py      losses that are the same thing under two names
verdict.py      what that means: exact, reassociated, precision, failed; the limits and how they were measured
outputs.py      all that a program puts out, by sums
lacking.py      what a run does not do at all: steps, outputs, evaluations
extent.py       how much was compared
whole.py        the same over the whole training, before a claim: each variable by itself, each loss by its step
spread.py       over several seeds, where two runs alone cannot be compared: statistical
"""

from flatout.measure.parity import lacking, spread, whole
from flatout.measure.parity.deviations import shown
from flatout.measure.parity.extent import Extent
from flatout.measure.parity.numbers import Numbers, Weights
from flatout.measure.parity.verdict import Agreement, Parity, compare

__all__ = ["Agreement", "Extent", "Numbers", "Parity", "Weights", "compare", "lacking", "shown", "spread", "whole"]
