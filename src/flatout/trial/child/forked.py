"""The first thing that a forked trial does: take on the environment and the settings of its request."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace

from flatout.process.fence.main import put_up
from flatout.process.messages import decode
from flatout.trial.child import start
from flatout.trial.settings import GateSettings, TrialRequest


def begin(text: str, descriptors: Sequence[int], set_by_imports: Mapping[str, str]) -> TrialRequest:
    """`descriptors`: the two pipes of the gate, under the numbers that they have in this process."""
    request = decode(text, TrialRequest)
    put_up(**asdict(request.fence))
    os.environ.clear()
    os.environ.update({**request.environment, **set_by_imports})
    tempfile.tempdir = None  # it goes by the variables of before
    settings = request.settings
    if settings.trial is not None and isinstance(settings.trial.role, GateSettings):
        read, write = descriptors
        role = replace(settings.trial.role, read=read, write=write)
        settings = replace(settings, trial=replace(settings.trial, role=role))
        for descriptor in descriptors:
            os.set_inheritable(descriptor, True)
    start.observe_this_process(settings)
    return request
