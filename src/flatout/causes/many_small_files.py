"""Every element is a file of its own, so that opening files costs more than reading them.

## What it is
The data set is a directory of many small files: one image, one record or one array in each.

## Why it costs
Each element pays for a lookup, an open, a short read and a close. On a local disk with a warm page cache
that is little; on a network file system or object store each of these is a round trip of milliseconds, and
the read is too short for read-ahead to help. Shuffled access makes every read a random one.

## How it looks
```python
paths = tf.data.Dataset.list_files("photos/*/*.jpg")     # 400,000 files of 12 KB
dataset = paths.map(lambda path: decode(tf.io.read_file(path))).batch(64)
```

## The cure
Pack the elements into record shards once, and read the shards in parallel (`flatout data` converts):
```python
shards = tf.data.Dataset.list_files("photos-train.tfrecord-*")
dataset = (
    shards.interleave(tf.data.TFRecordDataset, cycle_length=8, num_parallel_calls=tf.data.AUTOTUNE)
    .shuffle(5_000)
    .batch(64)
    .map(lambda records: tf.io.parse_example(records, features))
)
```
At least ten times as many shards as hosts that read them, each at least 10 MB and better 100 to 200 MB.
- The values are the same; the **order** is not, because a shard is shuffled less freely than single files
  are: semantic.
- `cache`: exact for a deterministic prefix; removes the cost from all epochs but the first.
- `threadpool`: exact; keeps more slow reads under way. See `blocking-map`.

## When it is not worth it
When the files lie on a local disk, fit into the page cache, or when decoding dominates anyway. Shards are a
copy that must be kept up to date; for data that change daily the copy may cost more than it saves.
"""

GROUP = "input"
LEVERS = ("cache", "threadpool")
