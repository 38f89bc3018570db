"""`fp16` in a running program."""

from __future__ import annotations

from flatout.cures import _dtype_policy
from flatout.cures.fp16 import POLICY

HOOKS = _dtype_policy.hooks(POLICY)
