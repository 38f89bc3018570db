"""`--layout`: the artefact once more, in the directories and with the configuration that a model server expects.

_layout.py                 what a layout is; names, copies of model files
tensorflow_serving.py      one file for each server
triton.py
openvino_model_server.py
handover.py                writes the winner, and has it tried before it is handed over
trial.py                   opens what was written by the names in it, as the server would (in a child process)

Only routes that the server runs as they were raced are tried: a server that would run another runtime, or the same one
in another precision, would serve something that was not measured.
"""

from __future__ import annotations

from collections.abc import Mapping

from flatout.optimize.layouts._layout import Layout
from flatout.optimize.layouts.openvino_model_server import OpenVinoModelServer
from flatout.optimize.layouts.tensorflow_serving import TensorFlowServing
from flatout.optimize.layouts.triton import Triton

__all__ = ["LAYOUTS", "Layout"]

LAYOUTS: Mapping[str, Layout] = {one.name: one for one in (TensorFlowServing(), Triton(), OpenVinoModelServer())}
