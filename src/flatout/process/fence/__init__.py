"""What a trial and everything that it starts may do: write to its own directories, and use no network.

The kernel holds it, and it is put up before the program begins, so it makes no difference which program writes, or how.

means.py       decides what holds on this machine; the one place that knows
main.py        puts it up: as a program that becomes the trial's (`python main.py FENCE COMMAND…`), or in a forked child
landlock.py    files, by Landlock
mounts.py      files, by file systems that are mounted read-only
sockets.py     the network, by a namespace of its own or by a filter of system calls
system.py      the system calls that Python does not offer
"""
