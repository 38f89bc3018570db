"""Processes in which models are opened, converted and run, so that a crash in one of them does not end flatout.

workers.py        starts them (`process.worker` is how they are asked)
tasks.py          what they can be asked
sample_files.py   the samples that they are asked for
"""
