"""The corruptions that several of these programs can have: in their batches, their gradients, their schedule.

`on(NAME)` says whether a corruption is planted (by the lever `mutation=NAME`). A corruption draws no random numbers: a
wrong cure would not either, and the numbers that are drawn stay the same. Names that begin with `right-` are changes
that no result may show but for rounding.

`finish` prints a checksum of all that the program has come to, by its own count. A corruption that leaves it as it is
has changed nothing (labels that a program does not use), and is none.
"""

import builtins
import os
import zlib

import numpy as np
import tensorflow as tf

EPOCHS, STEPS, BATCH = 3, int(os.environ.get("MUTATIONS_STEPS", "50")), 16
SAMPLES = STEPS * BATCH - 8
LATE = 2 * STEPS + 10
"""The step from which on a corruption that begins late is at work."""
epoch_now: list[tf.Variable] = []
"""For corruptions of a pipeline that begin with a later epoch."""
checksum = 0


def on(*names):
    return getattr(builtins, "flatout_planted", "") in names


def note(*values):
    """Something that the program has computed."""
    global checksum
    for value in tf.nest.flatten(values):
        checksum = zlib.crc32(np.asarray(value).tobytes(), checksum)


def finish(*values):
    """At the end of the program: its variables and whatever else it has come to."""
    note(*values)
    print(f"checksum {checksum}", flush=True)


def begin_epoch(epoch):
    if epoch_now:
        epoch_now[0].assign(epoch)


def points(seed=0):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(SAMPLES, 8)).astype("float32")
    y = (x.sum(1) > 0).astype("int32") + (x[:, 0] > 0.7).astype("int32")
    return x, y


def rate(step, highest=0.05):
    """Warms up over 30 steps, then falls to a tenth, one step after the other."""
    if on("frozen-schedule"):
        step = min(step, 3)
    if on("late-frozen-schedule"):
        step = min(step, LATE)
    warm = 1.0 if on("warmup-skipped") else min(1.0, (step + 1) / 30)
    scale = 1.01 if on("rate-1-percent-higher") else 1.0
    return scale * highest * warm * (1 - 0.9 * step / (EPOCHS * STEPS))


def stale_rate(step):
    """As `rate`, kept from the step before, once in twenty."""
    return rate(step - 1 if on("schedule-lags") and step % 20 == 0 else step)


def dataset(data):
    """Batches of (x, y)."""
    x, y = data
    found = tf.data.Dataset.from_tensor_slices((x, y))
    if on("right-cache"):
        found = found.map(lambda x, y: (x + 0.0, y), num_parallel_calls=2).cache()
    if not on("shuffle-off"):
        found = found.shuffle(SAMPLES, seed=7, reshuffle_each_iteration=not on("same-order"))
    return corrupted(found.batch(BATCH, drop_remainder=on("last-batch-dropped")))


def corrupted(found):
    if on("labels-shifted"):
        found = found.map(_shift_labels)
    if on("late-labels-shifted"):
        epoch_now.append(tf.Variable(0, trainable=False))
        found = found.map(lambda x, y: _shift_labels(x, y, epoch_now[0] >= 2))
    if on("inputs-shifted"):
        found = found.map(lambda x, y: (x + 1e-3, y))
    if on("inputs-float16"):
        found = found.map(lambda x, y: (tf.cast(tf.cast(x, tf.float16), tf.float32), y))
    if on("sample-dropped"):
        found = found.map(lambda x, y: (x[1:], y[1:]))
    if on("half-batch"):
        found = found.map(lambda x, y: (x[:8], y[:8]))
    if on("batch-twice"):
        found = found.flat_map(lambda x, y: tf.data.Dataset.from_tensors((x, y)).repeat(2))
    if on("stale-batch"):
        found = found.scan(
            (tf.zeros((BATCH, 8)), tf.zeros(BATCH, tf.int32), np.int64(0)), lambda kept, new: _stale(kept, new)
        )
    return found


def _shift_labels(x, y, wanted=True):
    """Of about one sample in a hundred."""
    chosen = (tf.cast(tf.abs(x[:, 0]) * 1e4, tf.int32) % 100 == 0) & wanted
    return x, tf.where(chosen, (y + 1) % 3, y)


def _stale(kept, new):
    """Every tenth batch is the one before."""
    (x, y, number), (new_x, new_y) = kept, new
    stale = (number % 10 == 9) & (tf.shape(new_x)[0] == BATCH)
    out = tf.cond(stale, lambda: (x, y), lambda: (new_x, new_y))
    keeps = tf.shape(new_x)[0] == BATCH
    x, y = tf.cond(keeps, lambda: (new_x, new_y), lambda: (x, y))
    return (tf.ensure_shape(x, (BATCH, 8)), tf.ensure_shape(y, (BATCH,)), number + 1), out


def gradients(found, step, clip=0.7):
    """What the optimizer gets; `step`: the updates made so far, a number or a tensor."""
    found = [tf.convert_to_tensor(one) for one in found]
    if on("right-other-order-of-sums"):
        norm = tf.sqrt(tf.add_n([tf.reduce_sum(tf.sort(tf.reshape(one, [-1])) ** 2) for one in found[::-1]]))
        return [one * clip / tf.maximum(norm, clip) for one in found]
    late = tf.cast(tf.cast(step, tf.int64) >= LATE, tf.float32)
    if on("layer-gradient-zero"):
        found[0] = found[0] * 0
    small = min(range(len(found)), key=lambda i: int(np.prod(found[i].shape)))
    if on("bias-gradient-zero"):
        found[small] = found[small] * 0
    if on("late-bias-gradient-zero"):
        found[small] = found[small] * (1 - late)
    if on("gradient-float16"):
        found = [tf.cast(tf.cast(one, tf.float16), tf.float32) for one in found]
    if on("clipping-lost"):
        pass
    elif on("late-clipping-lost"):
        clipped, _ = tf.clip_by_global_norm(found, clip)
        found = [late * one + (1 - late) * other for one, other in zip(found, clipped, strict=True)]
    else:
        found, _ = tf.clip_by_global_norm(found, clip)
    if on("gradient-scaled"):
        found = [one * 1.02 for one in found]
    if on("late-gradient-scaled"):
        found = [one * (1 + 0.02 * late) for one in found]
    if on("gradient-counted-twice"):
        twice = tf.cast(tf.equal(tf.cast(step, tf.int64) % 25, 24), tf.float32)
        found = [one * (1 + twice) for one in found]
    if on("update-skipped"):
        found = [one * tf.cast(tf.not_equal(tf.cast(step, tf.int64), LATE), tf.float32) for one in found]
    return found


def kernel_seed(seed):
    return seed + 1 if on("other-weights") else seed


def epochs():
    return EPOCHS - 1 if on("last-epoch-missing") else EPOCHS
