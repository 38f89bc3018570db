"""The history: a small database of what each program took at each commit, in `.flatout/history.db`.

    origin.py      which program, at which commit, with which changes on top; written down when a case is begun
    database.py    the SQLite file: its schema, many writers at once, a kill at any moment
    records.py     a kept case becomes a row; cases that nobody recorded are taken in
    states.py      the runs of one program, grouped by the state of the source that they ran
    trend.py       the trend, for a terminal and as JSON
    gate.py        is the newest state slower than the baseline; for continuous integration

The rows hold all that a comparison needs, so the history outlives the cases.
"""
