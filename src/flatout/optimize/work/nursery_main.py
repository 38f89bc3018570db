"""Imports TensorFlow once and forks a worker for each request: `python -m flatout.optimize.work.nursery_main SOCKET`.

Messages are those of `observe/site/nursery_main.py`: `{"import": [names]}`, or `{"request": file}` together with the
descriptors of the worker.
"""

from __future__ import annotations

import json
import os
import select
import socket
import sys
import warnings

from flatout.observe.site.nursery_main import _import, _say
from flatout.optimize.work import child
from flatout.optimize.work.memory import inherit_memory


def serve(channel: socket.socket) -> list[int]:
    """Answers until the other end closes. Returns in a forked child, with the descriptors to be asked over."""
    poll = select.poll()
    poll.register(channel, select.POLLIN)
    alive: dict[int, int] = {}
    while True:
        for descriptor, _ in poll.poll():
            if descriptor != channel.fileno():
                poll.unregister(descriptor)
                pid, status = os.waitpid(alive.pop(descriptor), 0)
                os.close(descriptor)
                _say(channel, {"ended": pid, "code": os.waitstatus_to_exitcode(status)})
                continue
            text, descriptors, _, _ = socket.recv_fds(channel, 1 << 16, 8)
            if not text:
                os._exit(0)
            message = json.loads(text)
            if "import" in message:
                _import(channel, message["import"])
                continue
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # Python 3.12 warns of any fork in a process that ever had threads
                pid = os.fork()
            if pid == 0:
                for other in alive:
                    os.close(other)
                return _become(message["request"], descriptors, channel)
            for received in descriptors:
                os.close(received)
            handle = os.pidfd_open(pid)
            alive[handle] = pid
            poll.register(handle, select.POLLIN)


def _become(request: str, descriptors: list[int], channel: socket.socket) -> list[int]:
    os.setsid()
    inherit_memory()
    _say(channel, {"started": os.getpid()})
    channel.close()
    hold, *passed = descriptors
    if not os.read(hold, 1):  # whoever asked is gone, and nobody would ever stop this process
        os._exit(1)
    os.close(hold)
    with open(request, encoding="utf-8") as stream:
        output = os.open(json.load(stream)["output"], os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    for target in (1, 2):
        os.dup2(output, target)
    os.close(output)
    return passed


if __name__ == "__main__":
    child.main(*serve(socket.socket(fileno=int(sys.argv[1]))))
