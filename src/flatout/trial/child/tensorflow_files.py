"""Redirects TensorFlow's file functions to the overlay: `tf.io.gfile`, records, checkpoints, summaries, ops.

C++ opens these files, so the path must be changed before it gets there. Most paths are known when the op is made. One
that is computed inside a graph (`ds.map(tf.io.read_file)`) is changed there, by replacing its beginning: for reading,
where the program has written something itself before; for writing, always, to a directory of its own.
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
from collections.abc import Callable, Iterable
from typing import Any

from flatout.observe.private_names import Missing, Wrap, replace, resolve
from flatout.trial.child.overlay import Overlay, path_text
from flatout.trial.child.python_files import how, move_by_copying, moved, replace_everywhere, source

Redirect = Callable[[Any], Any]

READING_OPS = [
    "read_file",
    "restore",
    "restore_slice",
    "restore_v2",
    "tf_record_dataset",
    "tf_record_dataset_v2",
    "text_line_dataset",
    "fixed_length_record_dataset",
    "fixed_length_record_dataset_v2",
    "csv_dataset",
    "csv_dataset_v2",
    "lmdb_dataset",
    "load_dataset",
    "matching_files_dataset",
]
WRITING_OPS = ["write_file", "save", "save_slices", "save_v2"]
SECOND_ARGUMENT_OPS = [
    "cache_dataset",
    "cache_dataset_v2",
    "save_dataset",
    "save_dataset_v2",
    "snapshot_dataset",
    "snapshot_dataset_v2",
    "dataset_to_tf_record",
    "create_summary_file_writer",
]
TABLE_OPS = ["initialize_table_from_text_file", "initialize_table_from_text_file_v2"]


def install(overlay: Overlay, note: Callable[[str], None]) -> None:
    redirects = _Redirects(overlay, note)
    _redirect_files(redirects)
    _redirect_libraries(redirects)
    _redirect_ops(redirects)
    replace_everywhere(redirects.wrappers)


class _Redirects:
    """Puts functions in place of TensorFlow's own that redirect their paths to the overlay."""

    def __init__(self, overlay: Overlay, note: Callable[[str], None]) -> None:
        self.overlay = overlay
        self.note = note
        self.wrappers: dict[Any, Any] = {}
        """Functions of modules: other modules may have imported them by name."""

    def put(self, key: str, wrap: Wrap) -> None:
        try:
            holder, attribute, original = resolve(key)
        except Missing as missing:
            self.note(f"the shield goes without {missing}")  # the kernel, or a failing program, takes its place
            return
        wrapper = wrap(original)
        replace(holder, attribute, wrapper)
        if not isinstance(holder, type):
            self.wrappers[original] = wrapper

    def redirect(self, key: str, *changes: Redirect | None) -> None:
        """Change the first arguments of a function; None leaves one as it is."""
        self.put(key, lambda original: _redirected(self.overlay, original, changes))

    def write(self, path: Any) -> Any:
        return self.overlay.write(path)

    def write_tree(self, path: Any) -> Any:
        return self.overlay.write(path, keep=True, tree=True)


def _redirect_files(to: _Redirects) -> None:
    """`tf.io.gfile`."""
    overlay = to.overlay
    for name in ("FileExists", "IsDirectory", "Stat", "ReadFileToString", "GetChildren", "BufferedInputStream"):
        to.redirect(f"file-{name}", overlay.read)
    to.redirect("file-CreateDir", lambda path: overlay.write(path, keep=True))
    to.redirect("file-RecursivelyCreateDir", to.write_tree)
    to.redirect("file-WriteStringToFile", to.write)
    to.put("file-WritableFile", lambda original: _writable_file(overlay, original))
    to.put("file-DeleteFile", lambda original: _delete(overlay, original, tree=False))
    to.put("file-DeleteRecursively", lambda original: _delete(overlay, original, tree=True))
    to.put("file-RenameFile", lambda original: _rename(overlay, original))
    to.put("file-CopyFile", lambda original: _copy(overlay, original))
    to.put("file-GetMatchingFiles", lambda original: _matching(overlay, original))


def _redirect_libraries(to: _Redirects) -> None:
    """Records, checkpoints, summaries, saved models."""
    overlay = to.overlay
    to.redirect("records-write", None, to.write)
    to.redirect("records-iterate", overlay.read)
    to.redirect("records-random", overlay.read)
    to.redirect("checkpoint-reader", overlay.read)
    to.redirect("events-writer", to.write)
    to.redirect("saved-model-save", to.write_tree)
    to.redirect("profiler-start", to.write_tree)
    for name in ("create", "read", "of-model", "of-print"):
        to.redirect(f"fingerprint-{name}", overlay.read)
    for key in ("saver-v1-save", "saver-v1-restore"):
        to.put(key, lambda original: _saver(overlay, original))


def _redirect_ops(to: _Redirects) -> None:
    """Ops that take paths as tensors."""
    overlay = to.overlay
    reads = _tensors(overlay, overlay.read, _read_in_graph)
    writes = _tensors(overlay, to.write, _write_in_graph)
    writes_tree = _tensors(overlay, to.write_tree, _write_in_graph)
    to.redirect("checkpoint-save", None, writes)
    for name in READING_OPS:
        to.redirect(f"op-{name}", reads)
    for name in WRITING_OPS:
        to.redirect(f"op-{name}", writes if overlay.moves or name != "save_v2" else _beside(writes))
    for name in SECOND_ARGUMENT_OPS:
        to.redirect(f"op-{name}", None, writes_tree)
    for name in TABLE_OPS:
        to.redirect(f"op-{name}", None, reads)
    to.redirect("op-merge_v2_checkpoints", writes if overlay.moves else _beside(writes), writes)
    to.put("op-matching_files", lambda original: _matching_op(overlay, original))


def _named_arguments(original: Any) -> list[str]:
    code = getattr(original, "__code__", None)
    return list(code.co_varnames[: code.co_argcount]) if code is not None else []


def _redirected(overlay: Overlay, original: Any, changes: tuple[Redirect | None, ...]) -> Any:
    names = _named_arguments(getattr(original, "__wrapped__", original))

    def call(*args: Any, **keywords: Any) -> Any:
        given = list(args)
        with overlay.unguarded():
            for index, change in enumerate(changes):
                if change is None:
                    continue
                if index < len(given):
                    given[index] = change(given[index])
                elif index < len(names) and names[index] in keywords:
                    keywords[names[index]] = change(keywords[names[index]])
        return original(*given, **keywords)

    return _as(original, call)


def _as(original: Any, wrapper: Any) -> Any:
    for name in ("__name__", "__qualname__", "__doc__", "__module__"):
        with contextlib.suppress(AttributeError, TypeError):
            setattr(wrapper, name, getattr(original, name))
    wrapper.__wrapped__ = original
    wrapper.__dict__.update({k: v for k, v in getattr(original, "__dict__", {}).items() if k != "__wrapped__"})
    return wrapper


# tf.io.gfile


def _writable_file(overlay: Overlay, original: Any) -> Any:
    def writable_file(path: Any, mode: Any, *token: Any) -> Any:
        with overlay.unguarded():
            path = overlay.write(path, **how(os.fsdecode(mode)))
        return original(path, mode, *token)

    return _as(original, writable_file)


def _delete(overlay: Overlay, original: Any, tree: bool) -> Any:
    def delete(path: Any, *token: Any) -> Any:
        with overlay.unguarded():
            found = overlay.delete(path)
            if found is None:
                return original(path, *token)
            target, real = found
            if os.path.islink(target) and (tree or not os.path.isdir(target)):
                os.unlink(target)
            elif tree and os.path.isdir(target):
                shutil.rmtree(target)  # TensorFlow's own would follow the links in it, to the real files
            else:
                original(target, *token)
            overlay.deleted.add(real)
        return None

    return _as(original, delete)


def _rename(overlay: Overlay, original: Any) -> Any:
    def rename(src: Any, target: Any, overwrite: bool, *token: Any) -> Any:
        with overlay.unguarded():
            before, after = source(overlay, src), overlay.write(target, keep=not overwrite)
            if not overlay.moves and os.path.dirname(os.fsdecode(before)) != os.path.dirname(os.fsdecode(after)):
                if os.path.exists(after) and not overwrite:
                    original(before, after, overwrite, *token)  # it raises as TensorFlow does
                move_by_copying(before, after)
                result = None
            else:
                result = original(before, after, overwrite, *token)
            moved(overlay, before, after)
        return result

    return _as(original, rename)


def _copy(overlay: Overlay, original: Any) -> Any:
    def copy(src: Any, target: Any, overwrite: bool, *token: Any) -> Any:
        with overlay.unguarded():
            src, target = overlay.read(src), overlay.write(target, keep=not overwrite)
        return original(src, target, overwrite, *token)

    return _as(original, copy)


def _matching(overlay: Overlay, original: Any) -> Any:
    """Real files that are not deleted, and those of the copy under the names by which the program knows them."""

    def matching(pattern: Any, *token: Any) -> Any:
        text = path_text(pattern)
        if not overlay.roots or text is None:
            return original(pattern, *token)
        with overlay.unguarded():
            fixed = re.split(r"[*?\[\\{]", text, maxsplit=1)[0].rpartition("/")
            real = overlay.locate(fixed[0] + fixed[1] or ".") or ""
            found = [os.fsdecode(one) for one in original(pattern, *token)]
            if overlay.direct(real):
                return found
            kept = {one for one in found if os.path.lexists(overlay.read(one))}
            copy = overlay.files + real.rstrip("/")
            if os.path.isdir(copy):
                rest = text[len(fixed[0] + fixed[1]) :]
                start = fixed[0] + fixed[1]
                kept.update(start + os.fsdecode(one)[len(copy) + 1 :] for one in original(f"{copy}/{rest}", *token))
            return sorted(kept)

    return _as(original, matching)


def _matching_op(overlay: Overlay, original: Any) -> Any:
    def matching_files(pattern: Any, name: Any = None) -> Any:
        if not overlay.roots:
            return original(pattern, name)
        patterns = _plain_values(pattern)
        if patterns is None:
            with overlay.unguarded():
                return original(_read_in_graph(overlay, pattern), name)
        from tensorflow.python.framework import constant_op, dtypes

        _, _, search = resolve("file-GetMatchingFiles")
        found = sorted({os.fsencode(one) for each in patterns.flat for one in search(each)})
        return constant_op.constant(found, dtypes.string, shape=[len(found)])

    return _as(original, matching_files)


def _saver(overlay: Overlay, original: Any) -> Any:
    """TF1: the path is fed to the graph, and comes back as the name of the checkpoint."""
    saves = original.__name__ == "save"

    def call(self: Any, sess: Any, save_path: Any, *args: Any, **keywords: Any) -> Any:
        with overlay.unguarded():
            target = overlay.write(save_path) if saves else overlay.read(save_path)
        result = original(self, sess, target, *args, **keywords)
        if isinstance(result, str) and isinstance(target, str) and isinstance(save_path, str):
            return result.replace(target, save_path, 1)
        return result

    return _as(original, call)


# paths in tensors


def _tensors(overlay: Overlay, change: Redirect, in_graph: Callable[[Overlay, Any], Any]) -> Redirect:
    """The same for one path or many, given as text, as an array or as a tensor."""

    def lead_all(value: Any) -> Any:
        if isinstance(value, (str, bytes, os.PathLike)):
            return change(value)
        if isinstance(value, (list, tuple)):
            return [lead_all(one) for one in value]
        values = _plain_values(value)
        if values is None:
            return in_graph(overlay, value)
        before = [os.fsdecode(one) for one in values.flat]
        after = [os.fsdecode(change(one)) if path_text(one) is not None else one for one in before]
        if after == before:
            return value
        from tensorflow.python.framework import constant_op, dtypes

        return constant_op.constant([os.fsencode(one) for one in after], dtypes.string, shape=values.shape)

    return lead_all


def _plain_values(value: Any) -> Any:
    """An array of the paths; None where a graph computes them."""
    import numpy as np

    if isinstance(value, (str, bytes, os.PathLike)):
        return np.array([os.fspath(value)], dtype=object)
    if isinstance(value, (list, tuple)):
        parts = [_plain_values(one) for one in value]
        return None if any(part is None for part in parts) else np.concatenate(parts) if parts else np.array([])
    if hasattr(value, "_numpy"):
        return np.asarray(value._numpy(), dtype=object)
    if isinstance(value, np.ndarray):
        return value.astype(object)
    from tensorflow.python.framework import tensor_util

    with contextlib.suppress(Exception):
        constant = tensor_util.constant_value(value)
        return None if constant is None else np.asarray(constant, dtype=object)
    return None


def _beside(writes: Redirect) -> Redirect:
    """TensorFlow writes the parts of a checkpoint to a directory of their own and moves them up. Where the kernel
    forbids that, they are written beside the checkpoint."""

    def change(value: Any) -> Any:
        return _replaced(writes(value), [("_temp/part", ".part")])

    return change


_MARK = "\x01"
"""Stands before a path that is settled, until all replacements are done."""


def _read_in_graph(overlay: Overlay, value: Any) -> Any:
    if not overlay.roots:
        return value
    here = overlay.shown(os.getcwd())
    steps = list(_settled(overlay))
    for root in overlay.roots:
        if (here + "/").startswith(root):
            steps.append((r"^(?:\./)*([^/:\x01][^:]*)$", f"{_MARK}{_plain(overlay.files + here)}/\\1"))
        elif root.startswith(here + "/"):
            inside = re.escape(root[len(here) + 1 :])
            steps.append((rf"^(?:\./)*({inside}.*)$", f"{_MARK}{_plain(overlay.files + here)}/\\1"))
        steps.append((f"^({re.escape(root)}.*)$", f"{_MARK}{_plain(overlay.files)}\\1"))
    return _replaced(value, steps)


def _write_in_graph(overlay: Overlay, value: Any) -> Any:
    apart = overlay.files + "-of-graphs"
    here = overlay.shown(os.getcwd())
    os.makedirs(apart + here, exist_ok=True)
    steps = [*_settled(overlay), (r"^()$", _MARK)]
    steps.append((r"^([^/\x01][^:]*)$", f"{_MARK}{_plain(apart + here)}/\\1"))
    steps.append((r"^(/.*)$", f"{_MARK}{_plain(apart)}\\1"))
    return _replaced(value, steps)


def _settled(overlay: Overlay) -> Iterable[tuple[str, str]]:
    for prefix, direct in overlay.rules:
        if direct:
            yield f"^({re.escape(prefix)}.*)$", f"{_MARK}\\1"


def _plain(path: str) -> str:
    return path.replace("\\", "\\\\")


def _replaced(value: Any, steps: Iterable[tuple[str, str]]) -> Any:
    from tensorflow.python.framework import dtypes, ops
    from tensorflow.python.ops import gen_string_ops

    value = ops.convert_to_tensor(value, dtypes.string)
    for pattern, rewrite in [*steps, ("^\x01", "")]:
        value = gen_string_ops.static_regex_replace(value, pattern, rewrite, replace_global=False)
    return value
