"""Imports TensorFlow once and forks a process for each trial: `python fork_server_main.py PACKAGE PROGRAM SOCKET`.

PACKAGE is the directory flatout is imported from, PROGRAM the file to be run, or `-m`, SOCKET the number of a Unix
socket, from which it takes its orders (`flatout.process.forking`). A trial runs the program as `python PROGRAM ARGS…`
would, with `__main__`, environment and output of its own; what it does not do again is the import.
"""

import importlib
import importlib.util
import os
import socket
import sys
from types import ModuleType
from typing import Any


def serve(namespace: dict[str, Any], words: list[str]) -> None:
    """Returns in a forked child, once its program has run."""
    package, program, channel = words
    forking, forked = _borrowed(package, "flatout.process.forking", "flatout.trial.child.forked")
    main = _loaded("flatout_patched_main", os.path.join(os.path.dirname(__file__), "patched_main.py"))
    main.look_beside(program)
    text, descriptors = forking.serve(socket.socket(fileno=int(channel)))
    try:
        request = forked.begin(text, descriptors, forking.set_by_imports)
    except Exception as error:
        sys.stderr.write(f"flatout: this trial could not be started ({type(error).__name__}: {error})\n")
        raise SystemExit(1) from None
    main.install(request.sources)
    main.run(list(request.arguments), namespace)


def _borrowed(directory: str, *names: str) -> list[ModuleType]:
    """Modules of flatout, which may live in another environment than the program."""
    sys.path.append(directory)
    try:
        return [importlib.import_module(name) for name in names]
    finally:
        sys.path.remove(directory)


def _loaded(name: str, path: str) -> ModuleType:
    specification = importlib.util.spec_from_file_location(name, path)
    if specification is None or specification.loader is None:
        raise SystemExit(f"{path} cannot be loaded")
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    return module


if __name__ == "__main__":
    # `__main__` is cleared for the program, so this file is loaded a second time, under a name of its own.
    _loaded("flatout_fork_server", __file__).serve(globals(), sys.argv[1:])
