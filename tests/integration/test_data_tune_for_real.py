"""Rewritten pipelines against those that were written: the same elements in all epochs, whatever they are made of."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import forked
import pytest
from observed import write

pytestmark = pytest.mark.slow

PROGRAM = """
    import json, os, sys, tempfile, time
    import numpy as np
    import tensorflow as tf
    from flatout.pipeline import copies, stage_costs, recipes
    from flatout.data import contestant, equality, inspection, tuning
    from flatout.observe import stages
    from flatout.cures import rewrites
    from flatout.pipeline.rewriting import Context, Refused

    results = {}
    REST = json.loads(sys.argv[3])
    D = tf.data.Dataset
    rows = np.arange(80, dtype="float32").reshape(40, 2)

    def values(dataset, epochs=3):
        return [[[np.asarray(leaf).tolist() for leaf in tf.nest.flatten(e, expand_composites=True)] for e in dataset]
                for _ in range(epochs)]

    def rewritten(dataset, allow=(), memory=1 << 28, disk=None, without=()):
        '''All rewrites that apply, one upon the other, as if each had won.'''
        recipes.install()
        context = Context(memory, disk, frozenset(allow), count=lambda stage: sum(1 for _ in copies.fresh(stage)))
        names, refused = [], {}
        for name, rewrite in rewrites().items():
            if name in without:
                continue
            try:
                proposal = rewrite(dataset, context)
            except (Refused, recipes.Opaque) as reason:
                refused[name] = str(reason)
                continue
            if proposal is not None:
                assert proposal.dataset.element_spec == dataset.element_spec, name
                dataset = proposal.dataset
                names.append(name)
        return dataset, names, refused

    def check(name, make, epochs=2, **options):
        '''Both are made by the same lines, so that neither has been iterated before.'''
        if name in REST and sys.argv[2] == "some":
            return
        tf.random.set_seed(7)
        before = make()
        tf.random.set_seed(7)
        given = make()
        after, names, refused = rewritten(given, **options)
        results[name] = {"same": values(before, epochs) == values(after, epochs), "rewrites": names,
                         "refused": refused, "kinds": [stages.kind(s) for s, _ in stages.chain(after)][::-1],
                         "untouched": values(given, 1) == values(make_again(make), 1)}

    def make_again(make):
        tf.random.set_seed(7)
        return make()

    source = lambda: D.from_tensor_slices((rows, np.arange(40)))
    double = lambda row, label: (row * 2, label + 1)
    check("seeded", lambda: source().map(double).shuffle(40, seed=3).batch(6))
    check("global seed", lambda: source().map(double).shuffle(10).batch(6))
    check("shuffled once", lambda: source().map(double).shuffle(40, seed=3, reshuffle_each_iteration=False).batch(6))
    check("late batch", lambda: source().map(double).map(lambda row, label: (row - 1, label)).batch(7))
    check("repeat and take", lambda: source().map(double).repeat().shuffle(5, seed=1).batch(4).take(13))
    check("take behind a cache", lambda: source().map(double).cache().take(9).repeat(2).batch(4))
    check("skip and shard", lambda: source().skip(3).shard(3, 1).map(double).batch(4, drop_remainder=True))
    check("dictionaries", lambda: D.from_tensor_slices({"a": rows, "b": {"c": [f"t{i}" for i in range(40)]}})
          .map(lambda e: {"a": e["a"] + 1, "n": (e["b"]["c"] + "!", e["a"][0])}).shuffle(8, seed=2).batch(6))
    check("ragged", lambda: D.from_tensor_slices(tf.ragged.constant([[[1, 2], [3]], [[]], [[4], [5, 6]]] * 5))
          .map(lambda r: r * 2).batch(3))
    check("ragged rows", lambda: D.range(1, 9).map(lambda n: tf.range(n)).ragged_batch(3).map(lambda r: r + 1))
    check("sparse", lambda: D.from_tensor_slices(tf.sparse.from_dense(rows)).map(lambda s: s * 2.0).batch(4))
    check("padded", lambda: D.range(1, 9).map(lambda n: tf.range(n)).padded_batch(3, padding_values=np.int64(-1)))
    check("windows", lambda: D.range(12).map(lambda n: n * 2).window(3, shift=2).flat_map(lambda w: w.batch(3)))
    check("branches", lambda: D.zip((source().map(double), D.range(40))).concatenate(
        D.zip((source().map(double), D.range(40)))).shuffle(9, seed=4).batch(5))
    check("whole batch", lambda: D.from_tensor_slices(rows + 1).map(lambda row: row / tf.reduce_max(row)).batch(8))
    check("condition", lambda: D.range(30).map(lambda n: tf.cond(n % 3 == 0, lambda: n * 2, lambda: n - 1)).batch(4))
    loop = lambda n: tf.while_loop(lambda i: i < n, lambda i: i + 3, [n * 0])[0]
    check("a loop", lambda: D.range(20).map(loop).batch(4))
    check("matrix of a row", lambda: D.from_tensor_slices(rows).map(lambda row: tf.linalg.matvec(
        tf.reshape(tf.range(4.0), (2, 2)), row)).batch(5))
    triple = lambda n: tf.ensure_shape(tf.numpy_function(lambda v: v * 3, [n], tf.int64), [])
    check("python", lambda: D.range(20).map(triple).shuffle(20, seed=5).batch(4), allow=("semantic",))
    check("filter behind a map", lambda: source().map(lambda row, label: (tf.sqrt(row), label))
          .filter(lambda row, label: label % 3 == 0).shuffle(7, seed=1).batch(4))
    check("filter of what is made", lambda: source().map(double).filter(lambda row, label: row[0] > 9).batch(4))
    check("copies", lambda: source().map(lambda row, label: (row, label)).prefetch(1).prefetch(2).batch(3).unbatch()
          .cache().cache().map(double).batch(4))

    def tied(dataset):
        options = tf.data.Options()
        options.autotune.enabled = False
        options.experimental_optimization.apply_default_optimizations = False
        return dataset.with_options(options)
    check("options", lambda: tied(source().map(double).batch(4)))

    def numbers():
        for number in range(200):
            yield {"row": np.full(3, number, np.float32), "name": f"n{number}"}, number
    signature = ({"row": tf.TensorSpec((3,), tf.float32), "name": tf.TensorSpec((), tf.string)},
                 tf.TensorSpec((), tf.int32))
    check("generator", lambda: D.from_generator(numbers, output_signature=signature).shuffle(30, seed=1).batch(16))
    check("generator only", lambda: D.from_generator(numbers, output_signature=signature), without=("cache",))

    noise = np.random.default_rng(0).integers(0, 255, (8, 50, 60, 3), dtype=np.uint8)
    pictures = [tf.io.encode_jpeg(picture).numpy() for picture in noise]
    check("crop", lambda: D.from_tensor_slices(pictures).map(lambda data: tf.image.crop_to_bounding_box(
        tf.io.decode_jpeg(data, channels=3), 7, 9, 20, 24)).batch(4), without=("cache",))

    # a variable and a table are read anew in each epoch, also by the rewritten pipeline
    factor = tf.Variable(2, dtype=tf.int64)
    live, names, _ = rewritten(D.range(5).map(lambda n: n * factor).batch(2))
    before = values(live, 1)
    factor.assign(10)
    results["variable"] = [before, values(live, 1), names]
    table = tf.lookup.StaticHashTable(tf.lookup.KeyValueTensorInitializer([0, 1, 2], [5, 6, 7]), -1)
    looked, names, _ = rewritten(D.range(4).map(lambda n: table.lookup(tf.cast(n, tf.int32))).batch(2))
    results["table"] = [values(looked, 2), names]

    # files: their order is the program's, unless it shuffles
    folder = tempfile.mkdtemp()
    for number in range(4):
        with tf.io.TFRecordWriter(f"{folder}/{number}.tfrecord") as writer:
            for record in range(10):
                example = tf.train.Example()
                example.features.feature["x"].int64_list.value.append(number * 10 + record)
                writer.write(example.SerializeToString())
    files = [f"{folder}/{number}.tfrecord" for number in range(4)]
    parse = lambda record: tf.io.parse_single_example(record, {"x": tf.io.FixedLenFeature([], tf.int64)})["x"]
    check("records in order", lambda: D.from_tensor_slices(files).flat_map(tf.data.TFRecordDataset).map(parse).batch(8))
    shuffled = lambda: tf.data.TFRecordDataset(files).map(parse).shuffle(40).batch(8)
    after, names, _ = rewritten(shuffled(), without=("cache",))
    found = equality.compare(shuffled(), after)
    results["records shuffled"] = [names, found.result, found.whole, found.elements]
    lost = D.from_tensor_slices(files[:3]).flat_map(tf.data.TFRecordDataset).map(parse).shuffle(40).batch(8)
    results["records lost"] = equality.compare(shuffled(), lost).result

    # comparing: what differs is told
    results["differs"] = [equality.compare(D.range(9), other()).note for other in (
        lambda: D.range(8), lambda: D.range(10), lambda: D.range(9).map(lambda n: n * 1 + tf.cast(n == 5, tf.int64)))]
    results["order"] = equality.compare(D.range(9), D.range(9).shuffle(9, seed=1)).result

    # memory and disk
    big = lambda: D.range(64).map(lambda n: tf.fill([1024], n)).shuffle(5, seed=1)
    results["no memory"] = rewritten(big(), memory=1000)[2].get("cache")
    small = D.range(64).map(lambda n: tf.cast(tf.fill([1024], n), tf.uint8))
    grown = small.map(lambda x: tf.cast(x, tf.float32)).map(lambda x: x + tf.random.uniform([]))
    narrow, names, _ = rewritten(grown, memory=100_000)
    results["smaller"] = [names, [stages.kind(stage) for stage, _ in stages.chain(narrow)][::-1]]
    disk = tempfile.mkdtemp()
    check("disk", big, memory=1000, disk=disk)
    results["disk holds"] = sum(len(files) for _, _, files in os.walk(disk)) > 0
    written = lambda: sorted(os.listdir(disk))
    with copies.files_of_copies():
        spare = copies.fresh(rewritten(big(), memory=1000, disk=disk)[0])
        copied = len(values(spare, 2)[1]) == 64 and [n for n in written() if n.startswith("flatout-copy-")] != []
    results["disk copies"] = copied and not [n for n in written() if n.startswith("flatout-copy-")]

    # nobody saw how these stages were made: the calls are read from the stages
    def long():
        line = D.range(60).skip(2).shard(2, 0).map(lambda n: n * 3).map(lambda n: n + 1, num_parallel_calls=2)
        line = line.filter(lambda n: n % 5 > 0)
        line = line.interleave(lambda n: D.range(n % 4), cycle_length=2, num_parallel_calls=2)
        line = line.interleave(lambda n: D.range(n + 1), cycle_length=3, block_length=2)
        line = line.flat_map(lambda n: D.range(n + 1)).concatenate(D.range(5))
        line = line.window(3, shift=2, drop_remainder=True).flat_map(lambda window: window.batch(3))
        line = line.batch(2).unbatch().take(30).cache().repeat(2).shuffle(7, seed=1)
        line = D.zip((line, line)).map(lambda a, b: tf.range(tf.reduce_sum(a) % 4))
        line = line.padded_batch(4, padded_shapes=[4], padding_values=np.int64(-1))
        return tied(line.batch(2, drop_remainder=True, num_parallel_calls=2)).prefetch(2)
    given = long()
    for stage, _ in stages.chain(given):
        stage.__dict__.pop("_flatout_recipe", None)
    copy = copies.fresh(given)
    shared = {id(stage) for stage, _ in stages.chain(given)} & {id(stage) for stage, _ in stages.chain(copy)}
    kept = [stages.kind(stage) for stage, _ in stages.chain(copy) if id(stage) in shared]
    results["remade"] = [values(long(), 2) == values(copy, 2), kept]

    # what stages cost: a long wait behind a short one, a cache, and one fused with the batch
    def waiting(ms):
        def wait(value):
            time.sleep(ms / 1e3)  # what an element costs
            return value
        return lambda n: tf.ensure_shape(tf.numpy_function(wait, [n], tf.int64), [])
    pipelines = {
        "behind": D.range(400).map(waiting(1)).map(waiting(12)).shuffle(8).batch(4),
        "cached": D.range(40).map(waiting(6)).cache().repeat().map(waiting(1)).batch(4),
        "fused": D.range(400).map(waiting(8)).map(lambda n: n * 2 + 1, num_parallel_calls=2).batch(4).prefetch(1),
        "opaque": D.range(20).map(waiting(1)).apply(tf.data.experimental.assert_cardinality(20)).batch(4),
    }
    for name, dataset in pipelines.items():
        if name in ("cached", "opaque") and sys.argv[2] == "some":
            continue
        case = inspection.inspect([dataset], needs=5.0, costs=stage_costs.Costs(stage_costs.Limits(seconds=0.2)))
        pace = case.evidence[0].write_json()["data"]
        results["inspected " + name] = {
            "critical": pace["critical"], "needs": pace["needs_ms"], "verdict": case.verdict,
            "rewritten": case.pipelines[0].rewritten, "stages": [
                [s.op, s.ms, s.detail.cpu_ms, s.detail.per_batch, s.stateful, s.detail.runs_as]
                for s in case.pipelines[0].stages]}

    # the whole way; Python that draws random numbers gives other elements in each epoch and must not be cached
    drawn = D.range(40).map(lambda n: tf.numpy_function(lambda v: v + np.random.randint(1 << 30), [n], tf.int64))
    after, names, _ = rewritten(drawn.batch(8))
    results["drawn"] = [names, equality.compare(drawn.batch(8), after).parity]

    # a generator that shuffles by itself: another order is right, always the same one is not
    def own_order():
        yield from np.random.permutation(40)
    def own_elements():
        yield from np.random.randint(1 << 30, size=40)
    def restarted():
        yield from np.random.RandomState(5).permutation(40)
    whole = tf.TensorSpec([], tf.int64)
    made = {name: D.from_generator(function, output_signature=whole) for name, function in
            [("own order", own_order), ("own elements", own_elements), ("restarted", restarted)]}
    mixed = made["own order"]
    for name, before, after in [
        ("batched later", mixed.map(lambda n: n + 1).batch(8), mixed.batch(8).map(lambda n: n + 1)),
        ("cached", mixed.batch(8), mixed.cache().batch(8)),
        ("cached, then shuffled", mixed.shuffle(40).batch(8), mixed.cache().shuffle(40).batch(8)),
        ("fewer", mixed, mixed.take(39)),
        ("other elements", made["own elements"], made["own elements"].prefetch(1)),
        ("always the same", mixed, made["restarted"]),
    ]:
        compared = equality.compare(before, after)
        results["varies: " + name] = [compared.parity, compared.note]
    contestant.PASS_SECONDS = 0.05
    def wait(value):
        time.sleep(0.002)  # what an element costs
        return value
    slow = D.range(40).map(lambda n: tf.numpy_function(wait, [n], tf.int64))
    tuned = tuning.tune(slow.batch(8), tuning.TuningRequest(seconds=10))
    claim = tuned.trials[-1]
    same = values(tuned.dataset, 2) == values(slow.batch(8), 2)
    results["tuned"] = [list(tuned.case.tuned), claim.status, claim.parity, same, claim.speedup.low, claim.stage]
    with open(sys.argv[1], "w") as out:
        json.dump(results, out, default=str)
"""


SAME = (
    "seeded", "late batch", "repeat and take", "dictionaries", "ragged", "sparse", "filter behind a map", "copies",
    "records in order", "crop", "disk",
)  # fmt: skip
REST = (
    "global seed", "take behind a cache", "whole batch", "shuffled once", "skip and shard", "ragged rows", "padded",
    "windows", "branches", "condition", "a loop", "matrix of a row", "python", "filter of what is made", "options",
    "generator only", "generator",
)  # fmt: skip
"""Left to the exhaustive run."""
REWRITTEN = {
    "seeded": "late-map",
    "late batch": "vectorize-map",
    "dictionaries": "late-map",
    "matrix of a row": "vectorize-map",
    "python": "parallel-map",
    "filter behind a map": "forward",
    "take behind a cache": "forward",
    "copies": "tidy",
    "crop": "decode-and-crop",
    "options": "autotune",
    "generator": "generator-process",
    "generator only": "generator-process",
    "disk": "cache",
}
LEFT = {"filter of what is made": "forward", "records in order": "parallel-reads", "padded": "vectorize-map"}


def ran(directory: Path, how_many: str) -> dict[str, Any]:
    program, target = write(directory, PROGRAM), directory / "results.json"
    code, _, errors = forked.run(program, str(target), how_many, json.dumps(REST), directory=directory)
    assert code == 0, errors[-3000:]
    found: dict[str, Any] = json.loads(target.read_text())
    return found


@pytest.fixture(scope="session")
def results(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    return ran(tmp_path_factory.mktemp("data-tune"), "some")


def holds(name: str, found: dict[str, Any]) -> None:
    assert found["same"], found
    assert found["untouched"], found
    assert REWRITTEN.get(name, "") in ["", *found["rewrites"]], found
    assert LEFT.get(name) not in found["rewrites"], found


@pytest.mark.parametrize("name", SAME)
def test_the_elements_stay_the_same_and_the_given_pipeline_is_as_far_as_before(results, name):
    holds(name, results[name])


@pytest.mark.exhaustive
def test_all_kinds_of_pipelines(tmp_path):
    found = ran(tmp_path, "all")
    for name in (*SAME, *REST):
        holds(name, found[name])
    assert found["inspected cached"]["critical"] == 4, "behind a full cache the rest counts"
    rows = found["inspected opaque"]["stages"]  # a stage that nobody can make again does not stop the others
    assert (rows[-1][0], rows[-1][1] is not None) == ("Batch", True)


def test_copies_are_gone(results):
    kinds = results["copies"]["kinds"]
    assert kinds.count("Prefetch") <= 1
    assert "Unbatch" not in kinds


def test_a_variable_stays_live_and_a_table_is_read(results):
    before, after, names = results["variable"]
    assert before == [[[[0, 2]], [[4, 6]], [[8]]]]
    assert after == [[[[0, 10]], [[20, 30]], [[40]]]]
    assert "cache" not in names
    assert results["table"][0] == [[[[5, 6]], [[7, -1]]]] * 2


def test_files_are_read_several_at_a_time_where_the_program_shuffles(results):
    names, result, whole, elements = results["records shuffled"]
    assert "parallel-reads" in names
    assert (result, whole, elements) == ("multiset", True, 40)
    assert results["records lost"] == "differs"
    assert "no shuffle follows" in results["records in order"]["refused"]["parallel-reads"]


def test_comparing_tells_what_differs(results):
    fewer, more, other = results["differs"]
    assert "fewer" in fewer
    assert "more" in more
    assert other == "element 5 differs"
    assert results["order"] == "differs"


def test_a_cache_keeps_to_its_memory(results):
    assert "of memory are available" in results["no memory"]
    assert results["smaller"] == [["cache"], ["Range", "Map", "Cache", "Map", "Map"]]
    assert results["disk holds"]
    assert results["disk copies"]


def test_a_cache_of_what_differs_each_time_is_refused(results):
    assert results["drawn"] == [["cache"], "failed"]


def test_a_generator_that_shuffles_must_go_on_shuffling(results):
    found = {name.removeprefix("varies: "): row for name, row in results.items() if name.startswith("varies: ")}
    parities = {name: parity for name, (parity, _) in found.items()}
    assert parities == {
        "batched later": "multiset",
        "cached": "failed",
        "cached, then shuffled": "failed",
        "fewer": "failed",
        "other elements": "failed",
        "always the same": "failed",
    }
    assert found["batched later"][1] == "in another order each time, as before"
    assert "now always the same" in found["cached"][1]
    assert "other elements each time" in found["other elements"][1]


def test_the_whole_way(results):
    levers, status, parity, same, low, stage = results["tuned"]
    assert "cache" in levers
    assert (status, parity, same, stage) == ("won", "exact", True, "combination")
    assert low > 1


def test_stages_have_their_costs_and_the_long_one_is_critical(results):
    found = results["inspected behind"]
    names, ms, cpu, counts, states, runs_as = zip(*found["stages"], strict=True)
    assert names == ("Range", "Map", "Map", "Shuffle", "Batch")
    assert counts == (4, 4, 4, 4, 1)
    assert found["critical"] == 2
    assert ms[2] > 3 * ms[1] > 3 * max(ms[0], ms[3])
    assert cpu[2] < 0.5 * ms[2]
    assert states == (None, "python", "python", None, None)
    assert runs_as[1] == "Map"
    assert found["needs"] == 200
    assert "the trainer takes 5 a second" in found["verdict"]


def test_fused_stages_keep_costs_of_their_own(results):
    found = results["inspected fused"]
    by_name = {row[0]: row for row in found["stages"]}
    assert "MapAndBatch" in found["rewritten"]
    assert by_name["ParallelMap"][5] == by_name["Batch"][5] == "MapAndBatch"
    assert found["stages"][found["critical"]][0] == "Map"


def test_a_pipeline_is_made_again_from_its_stages_alone(results):
    same, shared = results["remade"]
    assert same
    assert set(shared) <= {"Range"}
