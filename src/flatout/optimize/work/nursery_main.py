"""Imports TensorFlow once and forks a worker for each request: `python -m flatout.optimize.work.nursery_main SOCKET`.

Messages are those of `observe/site/nursery_main.py`, which forks trials in the same way.
"""

from __future__ import annotations

import socket
import sys

from flatout.optimize.work import child
from flatout.optimize.work.memory import inherit_memory
from flatout.trial.site.nursery_main import forked

if __name__ == "__main__":
    _, passed = forked(socket.socket(fileno=int(sys.argv[1])))
    inherit_memory()
    child.main(*passed)
