"""`caller-thread`: the session's configuration gets `inter_op_parallelism_threads=-1`."""

from __future__ import annotations

import libcst as cst

from flatout.cures._session_runs import reason_against
from flatout.model.case import Case
from flatout.source.editing import arrays, calls, imports
from flatout.source.editing.document import Document, read
from flatout.source.editing.sessions import constructions

_SETTING = "inter_op_parallelism_threads=-1"
_CONFIGURATIONS = ("tensorflow.ConfigProto", "tensorflow.compat.v1.ConfigProto")
_POSITION = 2
"""Of `config` among the arguments of a session."""


def edit(source: str, path: str, case: Case, value: str) -> str | None:
    document = read(source) if reason_against(case) is None else None
    if document is None or _sets_its_context(document):
        return None
    changed: set[cst.CSTNode] = set()
    for session in constructions(document):
        if any(arg.star for arg in session.args):
            continue
        given = _configuration(session)
        if given is None:
            calls.add(document, session, f"config={_made(document, session)}")
            continue
        call = given if isinstance(given, cst.Call) else arrays.only_value(document, given)
        if isinstance(call, cst.Call) and call not in changed and _is_free(document, call):
            changed.add(call)
            calls.add(document, call, _SETTING)
    return document.result()


def _configuration(session: cst.Call) -> cst.BaseExpression | None:
    for index, arg in enumerate(session.args):
        if (arg.keyword is None and index == _POSITION) or (arg.keyword is not None and arg.keyword.value == "config"):
            return arg.value
    return None


def _is_free(document: Document, call: cst.Call) -> bool:
    """Whether this makes a configuration that leaves the threads between ops to TensorFlow."""
    if document.dotted(call.func) not in _CONFIGURATIONS or any(arg.star for arg in call.args):
        return False
    return "inter_op" not in document.source and "use_per_session_threads" not in document.source


def _sets_its_context(document: Document) -> bool:
    """Whether the file sets what a session without a configuration takes over, as by `tf.config`."""
    settings = ("tensorflow.config.", "tensorflow.compat.v1.config.")
    return any(document.dotted(call.func).startswith(settings) for call in document.all(cst.Call))


def _made(document: Document, session: cst.Call) -> str:
    """`tf.ConfigProto(…)`, as the file writes `tf.Session`, with what an interactive session sets by itself."""
    written = document.text(session.func)
    package = f"{written.rpartition('.')[0]}." if "." in written else ""

    def spelled(name: str) -> str:
        return package + name if package else imports.spell(document, f"tensorflow.compat.v1.{name}")

    own = f", gpu_options={spelled('GPUOptions')}(allow_growth=True)" if "Interactive" in written else ""
    return f"{spelled('ConfigProto')}({_SETTING}{own})"
