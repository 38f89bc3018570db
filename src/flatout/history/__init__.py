"""The history: the step times of each program at each commit, read from `.flatout/history.db`.

    series.py      the runs of one program, grouped by the state of its source
    trend.py       the trend, for a terminal and as JSON
    gate.py        whether the newest state is slower than a baseline, for continuous integration

`flatout.store` writes the database. Its rows hold everything that a comparison needs, so they stay useful when the
cases are deleted.
"""
