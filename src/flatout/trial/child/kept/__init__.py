"""Cells of a notebook that a tune runs once, in its scouting run: what they make is kept, and restored in its trials.

cells.py      the program piece by piece: a kept cell is watched, or restored in its place
watch.py      what a cell does, and whether a trial may leave it out
state.py      what a cell may change beside its names: settings, files, TensorFlow
reach.py      the values that a cell's code can come to, and whether it has changed them
plain.py      whether what it makes is plain data
content.py    the files with that
"""
