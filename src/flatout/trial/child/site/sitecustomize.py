"""Wakes flatout inside the user's Python, then gets out of the way.

The launcher puts this directory first on PYTHONPATH, so the interpreter itself imports this file at start-up and then
runs the program exactly as it would without us: same `__main__`, same `sys.argv`, same tracebacks, same exit code.
It takes its directory out again, so that neither the program nor the processes it starts see a trace of it, and
hands over to the `sitecustomize` that would have been imported in its place.
"""

import os
import sys
import time

_began = time.perf_counter()


def _wake() -> None:
    here = os.path.dirname(os.path.abspath(__file__))
    sys.path[:] = [entry for entry in sys.path if os.path.abspath(entry or ".") != here]
    kept = os.environ.pop("FLATOUT_PYTHONPATH", None)
    if kept is None:
        os.environ.pop("PYTHONPATH", None)
    else:
        os.environ["PYTHONPATH"] = kept
    package = os.environ.pop("FLATOUT_PACKAGE", None)
    settings = os.environ.pop("FLATOUT_OBSERVE", None)
    trial = os.environ.pop("FLATOUT_TRIAL", None)
    if trial and not (settings and package):
        raise RuntimeError("it has no settings")
    if settings and package:
        # flatout may live in another environment than the program: borrow its directory for this import only.
        sys.path.append(package)
        try:
            from flatout.trial.child import start
        finally:
            sys.path.remove(package)
        start.start(settings, _began)


def _hand_over() -> None:
    import importlib.machinery
    import importlib.util

    spec = importlib.machinery.PathFinder.find_spec("sitecustomize", sys.path)
    if spec is not None and spec.loader is not None:
        module = importlib.util.module_from_spec(spec)
        sys.modules["sitecustomize"] = module  # the import machinery gives out what stands here in the end
        spec.loader.exec_module(module)


_is_trial = "FLATOUT_TRIAL" in os.environ
try:
    _wake()
except Exception as error:  # observing may fail; the user's program may not
    if _is_trial:  # nothing that could touch the user's files is run
        sys.stderr.write(f"flatout: this trial could not be started ({type(error).__name__}: {error})\n")
        sys.stderr.flush()
        os._exit(97)
    sys.stderr.write(f"flatout: could not start observing ({type(error).__name__}: {error}); running unobserved\n")
_hand_over()
