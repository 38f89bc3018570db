"""Processes in which models are opened, converted and run, so that none of it can take flatout along.

process.py   the parent's side: start, ask, wait with a limit on time and memory, end
child.py     the child's side: reads a task, does it, answers
tasks.py     what can be asked
"""
