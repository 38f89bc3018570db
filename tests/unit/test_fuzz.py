"""Whatever a file holds, its reader gives a result or one error of its own: no traceback, no hang.

`FLATOUT_FUZZ=5000 pytest tests/unit/test_fuzz.py` takes a longer look.
"""

from __future__ import annotations

import gzip
import json
import shutil
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path

import numpy as np
from fuzzing import mutations, time_limit
from sample_case import sample_case
from shards_made import blobs, converted
from trace_bytes import plane, space

from flatout import store
from flatout.check import cache
from flatout.check import settings as check_settings
from flatout.check.checker import Checker
from flatout.check.selection import select
from flatout.data.shards import example, extract, schema, tfrecord
from flatout.data.shards.sources.folder import Folder
from flatout.model.case import Program
from flatout.model.errors import FlatoutError, InvalidMessage
from flatout.observe.reading import assemble
from flatout.observe.reading.recording import load as load_recording
from flatout.optimize import verification
from flatout.process.messages import decode, encode
from flatout.report import html, terminal
from flatout.serve import progress
from flatout.source.notebooks import text as notebooks
from flatout.store import database, origin, run_summary
from flatout.subject import data as subject_data
from flatout.subject import trust
from flatout.trace import analyse
from flatout.trace.wire import WireError
from flatout.trial import messages, settings
from flatout.tune import journal

FIXTURES = Path(__file__).resolve().parents[1] / "fixtures"
CASES = sorted((FIXTURES / "cases").rglob("*.json"), key=lambda path: (path.stat().st_size, str(path)))[:16]


def expect_no_traceback(name: str, seeds: list[bytes], read: Callable[[bytes], object], *own: type[Exception]) -> None:
    """Every input is read, or refused with an error of flatout (or one of `own`, which the caller handles)."""
    assert seeds
    refused = done = 0
    for number, content in enumerate(mutations(seeds, name)):
        try:
            with time_limit():
                read(content)
            done += 1
        except (FlatoutError, *own):
            refused += 1
        except Exception as error:
            kept = Path(f"/tmp/flatout-fuzz-{name}-{number}")
            kept.write_bytes(content)
            raise AssertionError(f"{type(error).__name__}: {error}: {kept}") from error
    assert done + refused


def test_cases(tmp_path: Path) -> None:
    path = tmp_path / "case.json"
    seeds = [one.read_bytes() for one in CASES] + [json.dumps(sample_case(20).to_json()).encode()]

    def read(content: bytes) -> None:
        path.write_bytes(content)
        case = store.load(path)
        for view in terminal.VIEWS:
            terminal.render(case, view)
        html.render(case)
        json.dumps(case.to_json())

    expect_no_traceback("cases", seeds, read)


def test_traces(tmp_path: Path) -> None:
    path = tmp_path / "host.xplane.pb"
    events = [("work", 0.5, 1.25, {"small": 8, "text": "x"}), ("rest", 10, 0, {})]
    made = space(plane("/host:CPU", {"main": events}, {"cores": 4}), plane("/device:GPU:0", {"Stream #1": events}))
    packed = (FIXTURES / "traces" / "cpu-marked.xplane.pb.gz").read_bytes()

    def read(content: bytes) -> None:
        path.write_bytes(content)
        analyse([path], progress=lambda text: None)

    expect_no_traceback("traces", [made, made, gzip.decompress(packed), packed], read)


def test_journals(tmp_path: Path) -> None:
    directory = tmp_path / ".flatout" / "cases" / "tune-x"
    directory.mkdir(parents=True)
    made = journal.Journal(directory)
    made.begin(["python", "train.py"], str(tmp_path))
    made.keep_scouted(sample_case(), {"versions": {"flatout": "1"}, "files": {"train.py": "0"}})
    for trial in sample_case().trials:
        made.keep(trial)
    seed, path = made.path.read_bytes(), made.path

    def read(content: bytes) -> None:
        path.write_bytes(content)
        journal.unfinished(["python", "train.py"], tmp_path / ".flatout")
        journal.changes_since(directory)
        journal.Journal(directory)

    expect_no_traceback("journals", [seed], read)
    expect_no_traceback("begun", [json.dumps({"pid": 1, "born": "2", "at": 1.0}).encode()], begun_reader(tmp_path))


def begun_reader(directory: Path) -> Callable[[bytes], object]:
    def read(content: bytes) -> None:
        (directory / origin.FILE).write_bytes(content)
        facts = origin.read(directory)
        origin.alive(facts)
        origin.source_of(facts, None)

    return read


def test_shards(tmp_path: Path) -> None:
    source = blobs(tmp_path / "b", 6)
    whole = tmp_path / "whole"
    converted(Folder.open(source), whole, name="b", shard_size=3000, processes=1)
    description = schema.find(whole)
    shard = next(whole.glob("*.tfrecord"))
    seed, place = description.read_bytes(), tmp_path / "schema.json"

    def read_schema(content: bytes) -> None:
        place.write_bytes(content)
        found = schema.load(place)
        shutil.rmtree(tmp_path / "out", ignore_errors=True)
        extract.extract(found, whole, tmp_path / "out", processes=1, quiet=True)

    def read_shard(content: bytes) -> None:
        path = tmp_path / "x.tfrecord"
        path.write_bytes(content)
        for compression in ("", "gzip"):
            try:
                for record in tfrecord.read(path, compression):
                    example.decode(record)
            except tfrecord.Damaged:
                continue

    expect_no_traceback("schemas", [seed], read_schema)
    expect_no_traceback("shards", [shard.read_bytes(), gzip.compress(shard.read_bytes())], read_shard, WireError)
    record = next(iter(tfrecord.read(shard)))
    expect_no_traceback("records", [record], example.decode, WireError)


def test_notebooks_and_source() -> None:
    cells = [{"cell_type": "code", "source": ["import tensorflow as tf\n", "x = tf.constant(1)"], "metadata": {}}]
    book = json.dumps({"cells": cells, "metadata": {"kernelspec": {"language": "python"}}, "nbformat": 4}).encode()
    source = (FIXTURES / "check" / "host-sync" / "bad.py").read_bytes()
    checker = Checker(select(["all"]))

    def read(content: bytes) -> None:
        found = notebooks.read(content)
        checker.check(found.text, "book.ipynb")

    expect_no_traceback("notebooks", [book], read, notebooks.NotANotebook)
    expect_no_traceback("source", [source], lambda content: checker.check(content.decode("utf-8", "replace"), "x.py"))


def test_recordings(tmp_path: Path) -> None:
    """Lines and rows that a kill, a full disk or a bad copy has damaged; JSON that is whole is as it was written."""
    for file in ("facts.jsonl", "counters.jsonl", "ticks.bin"):
        shutil.copy(FIXTURES / "report" / "retrace_scalar" / file, tmp_path / file)
    facts, ticks = (tmp_path / "facts.jsonl").read_bytes(), (tmp_path / "ticks.bin").read_bytes()

    def read_facts(content: bytes) -> None:
        (tmp_path / "facts.jsonl").write_bytes(content)
        load_recording(tmp_path)

    def read_ticks(content: bytes) -> None:
        (tmp_path / "ticks.bin").write_bytes(content)
        (tmp_path / "facts.jsonl").write_bytes(facts)
        assemble(tmp_path, Program(("python", "train.py"), str(tmp_path)), lambda facts: {})

    def read_cut(content: bytes) -> None:
        (tmp_path / "ticks.bin").write_bytes(ticks)
        (tmp_path / "facts.jsonl").write_bytes(facts[: len(content) * len(facts) // (2 * len(facts) + 1)])
        assemble(tmp_path, Program(("python", "train.py"), str(tmp_path)), lambda facts: {})

    expect_no_traceback("facts", [facts], read_facts)
    expect_no_traceback("ticks", [ticks], read_ticks)
    expect_no_traceback("cut", [facts], read_cut)


def test_messages() -> None:
    sent = (
        messages.Go(3),
        messages.Warm(3, 0.5),
        messages.BlockDone((0.1, 0.2), (1, 1), 2, 0.1, 0, ()),
        messages.ProgramEnded(4),
        settings.TrialSettings(settings.ScoutSettings()),
    )
    kinds = (messages.Warm, messages.BlockDone, messages.ProgramEnded)
    seeds = [encode(one).encode() for one in sent]
    expect_no_traceback("messages", seeds, lambda content: decode(content, *kinds), InvalidMessage)
    expect_no_traceback("settings", seeds, lambda content: decode(content, settings.TrialSettings), InvalidMessage)


def test_manifests(tmp_path: Path) -> None:
    manifest = {
        "schema": 1, "route": "tensorflow", "setting": {}, "batch": 1, "files": {"model.pb": "0"}, "serving": {},
        "inputs": [{"name": "x"}], "outputs": [{"name": "y"}],
    }  # fmt: skip

    def read(content: bytes) -> None:
        (tmp_path / verification.artefact.MANIFEST).write_bytes(content)
        verification._check_files(tmp_path, verification.read_manifest(tmp_path))

    expect_no_traceback("manifests", [json.dumps(manifest).encode()], read)


def test_models_and_samples(tmp_path: Path) -> None:
    config = {"class_name": "Sequential", "module": "keras", "config": {"layers": [{"class_name": "Dense"}]}}
    np.savez(tmp_path / "x.npz", x=np.ones((3, 2)), y=np.ones(3))
    np.save(tmp_path / "x.npy", np.ones((3, 2)))
    np.savez_compressed(tmp_path / "z.npz", x=np.ones((3, 2)))
    seeds = [(tmp_path / name).read_bytes() for name in ("x.npz", "x.npy", "z.npz")]

    def read_samples(content: bytes) -> None:
        (tmp_path / "s.npz").write_bytes(content)
        subject_data.read_samples(str(tmp_path / "s.npz"), None, None, 10)

    def read_config(content: bytes) -> None:
        try:
            found = json.loads(content)
        except (ValueError, RecursionError):
            return
        if isinstance(found, dict):
            trust.check_layers(found, tmp_path, trusted=False)

    expect_no_traceback("samples", seeds, read_samples)
    expect_no_traceback("configs", [json.dumps(config).encode()], read_config)


def test_histories(tmp_path: Path) -> None:
    path = tmp_path / "history.db"
    with database.History(path) as history:
        history.add(run_summary.run_of(sample_case(), "x"), "key", "x", 1.0)
        history._connection.execute("PRAGMA journal_mode = DELETE")
    seed = path.read_bytes()

    def read(content: bytes) -> None:
        for file in tmp_path.glob("history.db*"):
            file.unlink()
        path.write_bytes(content)
        with database.History(path) as history:
            history.entries()
            history.keys()

    expect_no_traceback("histories", [seed], read)


def test_caches_settings_and_progress(tmp_path: Path) -> None:
    made = cache.Cache(tmp_path, "mark")
    made.put("x.py", Checker(select(["all"])).check("import tensorflow as tf\ntf.Session()\n", "x.py"))
    made.save()
    file = tmp_path / cache.DIRECTORY / "cache.json"
    kept = file.read_bytes()
    project = b'[tool.flatout.check]\nselect = ["host-sync"]\nignore = []\nper-file-ignores = {"x.py" = ["all"]}\n'
    directory = tmp_path / "tune-x"
    directory.mkdir()
    rows = b'{"begin": {"command": []}}\n{"scouted": true}\n{"trial": {"levers": ["xla"], "status": "won"}}\n'

    def read_cache(content: bytes) -> None:
        file.write_bytes(content)
        cache.Cache(tmp_path, "mark").get("x.py")

    def read_settings(content: bytes) -> None:
        (tmp_path / "pyproject.toml").write_bytes(content)
        check_settings.load(tmp_path)

    def read_progress(content: bytes) -> None:
        (directory / journal.FILE).write_bytes(content)
        progress._of_tune(directory)

    expect_no_traceback("caches", [kept], read_cache)
    expect_no_traceback("projects", [project], read_settings)
    expect_no_traceback("progress", [rows], read_progress)


def test_the_same_seed_gives_the_same_inputs() -> None:
    assert list(mutations([b'{"a": 1}'], "x", 20)) == list(mutations([b'{"a": 1}'], "x", 20))
    assert asdict(messages.Go(1)) == {"steps": 1, "calls": 3}
