"""The child side of a trial: what runs inside the user's Python.

site/              wakes flatout in the user's interpreter, before any of the user's code
start.py           observes the program: probes, recording, end
setup.py           makes an observed program a trial: shield, seeds, gate
shield.py          no file of the user is written (overlay, python_files, tensorflow_files)
no_network.py      no other machine is reached
gate.py            holds the program between blocks of steps
scouting.py        ends a scouting run once enough was seen
seeds.py           the same random numbers in every trial
values/            what the program computes, written down for parity
pinned/, perturbed.py    the two variants that parity needs where values differ
"""
