"""Reading and changing the user's source without running it.

users_code.py     which files are the user's, and the user's frame behind a call
context.py        what is around a line: its text, its loops, its function
side_effects.py   what a function does besides computing
api_names.py      names of TensorFlow and Keras that mean the same
repairs.py        the repairs of `check`, as data
analysis/         files as scopes, for the detectors of `check` (Python's `ast`)
editing/          changes of the text, for repairs and for the edits of cures (libcst)
"""
