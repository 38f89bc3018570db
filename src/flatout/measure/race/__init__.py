"""The race: which of several ways to do the same work is faster, and how sure that is.

    contestant.py   what takes part: a `Contestant` runs a `Block` of its work when asked, and ends with a `Verdict`
    rounds.py       the `Race`: shuffled rounds, one contestant at a time, until decided or out of time
    rules.py        all thresholds, and who leaves a race when
    disturbed.py    what is said where other processes had the processors
    comparison.py   a contestant beside its baselines: the verdict

Every contestant runs one block in each round, in shuffled order, and only one runs at a time: a slow second of the
machine hits all of them, and the ratio of a round is that of blocks which ran within the same seconds.
`flatout.measure.interval` turns the rounds into an interval and says how several baselines count.

`tune` races a program with and without levers, `optimize` ways to serve a model, `data` pipelines, `compress` models.
Each brings its own subclass of `Contestant`; everything that decides is here.
"""

from flatout.measure.race.comparison import compare
from flatout.measure.race.contestant import Block, Contestant, Exit, Status, Verdict
from flatout.measure.race.disturbed import disturbed
from flatout.measure.race.rounds import Race, Row, TimeLimit, View
from flatout.measure.race.rules import WORTH, Rules, status_of

__all__ = [
    "WORTH",
    "Block",
    "Contestant",
    "Exit",
    "Race",
    "Row",
    "Rules",
    "Status",
    "TimeLimit",
    "Verdict",
    "View",
    "compare",
    "disturbed",
    "status_of",
]
