"""Child processes: how they are started, forked, watched, limited and talked to. Nothing here knows what they run.

messages.py      typed messages as JSON text
launch.py        starts a child in a group of its own
signals.py       waits for a program and passes signals on to it
watchdog.py      kills what is left when the parent is gone
fence/           what the kernel lets a trial and its processes do
fork_server.py   a process that has done the slow imports and is forked for each child; forking.py is its own side
worker.py        a child asked one thing at a time, with limits on time and memory; worker_main.py is its own side
memory.py        how much memory a process holds
output.py        the last line that a program printed
"""
