"""`bf16`: the mixed bfloat16 policy of Keras."""

from __future__ import annotations

from flatout.cures.bf16 import POLICY
from flatout.model.case import Case
from flatout.source.editing.global_settings import set_policy


def edit(source: str, path: str, case: Case, value: str) -> str | None:
    return set_policy(source, path, case, POLICY)
