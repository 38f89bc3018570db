"""Processes in which models are opened, converted and run, so that none of it can take flatout along.

process.py   the parent's side: start, ask, wait with a limit on time and memory, end
child.py     the child's side: reads a task, does it, answers
tasks.py     what can be asked
    nursery.py   workers forked from a process that has imported TensorFlow already; nursery_main.py is that process
"""
