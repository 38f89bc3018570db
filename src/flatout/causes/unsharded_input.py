"""Each rank reads all of the data and throws away what belongs to the others.

## What it is
`experimental_distribute_dataset` and `fit` divide a dataset between the workers. By files, where there are as many of
them as workers: then each worker reads its own. With fewer files TensorFlow asks for another policy. With the policy
DATA each worker reads, decodes and maps everything, and keeps one element of n. With the policy OFF, or in
`distribute_datasets_from_function` without a `shard`, nothing is divided at all.

## Why it costs
With n workers the pipelines do n times the work for each batch. Where nothing is divided, all ranks train on the same
examples: an epoch takes n times as many steps as the data needs.

## How it looks
```python
options = tf.data.Options()
options.experimental_distribute.auto_shard_policy = tf.data.experimental.AutoShardPolicy.DATA     # after the work
dataset = tf.data.TFRecordDataset("all.tfrecord").map(decode).batch(256).with_options(options)
dataset = strategy.experimental_distribute_dataset(dataset)
```

## The cure
```python
def make(context):
    files = tf.data.Dataset.list_files("part-*.tfrecord", shuffle=False)
    files = files.shard(context.num_input_pipelines, context.input_pipeline_id)
    return files.interleave(tf.data.TFRecordDataset).map(decode).batch(context.get_per_replica_batch_size(256))


dataset = strategy.distribute_datasets_from_function(make)
```
Store the data as at least as many files as there are workers (`flatout data convert`), or shard before the work. Which
examples are in which batch changes with it.

## When it is not worth it
When reading is cheap and nothing waits for it: an array in memory, a cache after the first epoch.
"""

from __future__ import annotations

from collections.abc import Iterator

from flatout.causes._ranks import own
from flatout.causes._spec import Cause
from flatout.model import queries, ranks
from flatout.model.case import Case, Finding, Fix, Host
from flatout.model.evidence.job import RankInput


def in_run(case: Case) -> Iterator[Finding]:
    hosts = ranks.stepping(case)
    found = [(host, item) for host in hosts for item in host.inputs if item.sharded is False]
    if not found:
        return
    first = found[0][1]
    mine = [(host, item) for host, item in found if item.where == first.where]
    if first.from_function or first.policy == "off":
        yield from _undivided(hosts, mine, first)
    else:
        yield from _divided_late(case, [host for host, _ in mine], first)


def _divided_late(case: Case, hosts: list[Host], item: RankInput) -> Iterator[Finding]:
    """Elements are divided after the work: of n that are made, n - 1 are thrown away."""
    waits = max(own(host, "input") for host in hosts)
    count = item.pipelines
    yield from queries.finding(
        "unsharded-input",
        case,
        f"{count} workers each read and decode everything and drop {count - 1} of {count} elements: the policy DATA "
        "divides the data after the work.",
        cost_ms=waits * (count - 1) / count,
        where=item.where,
        evidence=[queries.number("input-wait", waits, "ms", "of a step, on the rank that waits longest", "trace")],
        fixes=[
            Fix(
                "Shard before the work: as many files as workers, or `shard` next to the source.",
                equivalence="semantic",
            )
        ],
        confidence="medium",
        estimate="the wait for input that remains if each rank does its own part of the work only",
    )


def _undivided(hosts: tuple[Host, ...], mine: list[tuple[Host, RankInput]], item: RankInput) -> Iterator[Finding]:
    """The same files on several ranks, and no shard on one of them."""
    sources = [one.source_id for host in hosts for one in host.inputs if one.where == item.where]
    if not item.source_id or sources.count(item.source_id) < 2:
        return
    names = ranks.named([host.name for host, _ in mine])
    yield Finding(
        "unsharded-input",
        f"{names[:1].upper()}{names[1:]} read{'s' if len(mine) == 1 else ''} all {item.files or 'the'} files: nothing "
        f"divides them between the {item.pipelines} workers, so ranks train on the same examples.",
        where=item.where,
        evidence=(queries.number("files", item.files or 0, "files", "that each of these ranks reads", "hook"),),
        fixes=(
            Fix(
                "Shard the files: `.shard(context.num_input_pipelines, context.input_pipeline_id)` next to the source.",
                equivalence="semantic",
            ),
        ),
        confidence="medium",
        estimate="unknown: it takes no time of a step, but steps are made again that another rank has made",
    )


CAUSE = Cause(group="job", in_run=in_run, replaces=("input-bound",))
