"""What programs that only score are asked to do wrong, with what they put out and with their networks."""

import keras
import planted
import tensorflow as tf
from planted import on


def network(seed=3):
    """Batch normalisation, dropout and two branches; the statistics are not those that it began with."""
    seed = planted.kernel_seed(seed)
    a = keras.Input((8,))
    b = keras.layers.Dense(24, "relu", kernel_initializer=keras.initializers.GlorotUniform(seed))(a)
    b = keras.layers.BatchNormalization(
        moving_mean_initializer=keras.initializers.Constant(0.0 if on("statistics-lost") else 0.2),
        moving_variance_initializer=keras.initializers.Constant(1.0 if on("statistics-lost") else 1.5),
    )(b)
    b = keras.layers.Dropout(0.25, seed=4)(b)
    c = keras.layers.Dense(24, "tanh", kernel_initializer=keras.initializers.GlorotUniform(seed + 1))(a)
    joined = b if on("branch-dropped") else b + c
    return keras.Model(a, keras.layers.Dense(3, kernel_initializer=keras.initializers.GlorotUniform(seed + 2))(joined))


def sharpness(late):
    if on("temperature-1-percent-higher"):
        return 1.01 / 1.5
    if on("late-temperature-lost"):
        return late + (1 - late) / 1.5
    return 1.0 if on("temperature-lost") else 1 / 1.5


def scores(logits, number):
    """Scores of a batch; `number`: that of the batch, a tensor."""
    rows = tf.range(tf.shape(logits)[0])
    late = tf.cast(number >= planted.LATE, tf.float32)
    if on("half-precision"):
        logits = tf.cast(tf.cast(logits, tf.bfloat16), tf.float32)
    if on("late-half-precision"):
        logits = tf.cast(tf.cast(logits, tf.float16), tf.float32) * late + logits * (1 - late)
    found = logits if on("softmax-lost") else tf.nn.softmax(logits * sharpness(late))
    if on("rows-wrong"):  # one in a hundred
        wrong = tf.cast((16 * number + rows) % 100 == 50, tf.float32)[:, None]
        found = found * (1 - 0.1 * wrong)
    if on("late-row-wrong"):
        wrong = tf.cast((number == planted.LATE) & (rows == 0), tf.float32)[:, None]
        found = found * (1 - 0.1 * wrong)
    if on("rows-swapped"):
        found = tf.reverse(found, [0])
    if on("late-rows-swapped"):
        found = tf.where(number == planted.LATE, tf.reverse(found, [0]), found)
    if on("row-repeated"):
        found = tf.concat([found[:1], found[:-1]], 0)
    if on("classes-swapped"):
        found = tf.gather(found, [1, 0, 2], axis=1)
    if on("rounded"):
        found = tf.round(found * 1e3) / 1e3
    if on("clipped"):
        found = tf.clip_by_value(found, 1e-2, 1.0)
    if on("argmax-only"):
        found = tf.one_hot(tf.argmax(found, 1), 3)
    if on("one-class-zero"):
        found = found * [1.0, 1.0, 0.0]
    return found


class Scorer(keras.Model):
    """Two networks, mixed; the scores are computed in the model itself."""

    def __init__(self):
        super().__init__()
        self.one, self.two = network(3), network(13)
        self.mixed = tf.Variable(0.0, trainable=False)
        self.built = True

    def begin(self, epoch):
        """Each pass mixes them in another way."""
        if on("mixing-frozen") and epoch:
            return
        if on("late-mixing-frozen"):
            epoch = min(epoch, 1)
        self.mixed.assign((0.61 if on("mixing-wrong") else 0.6) + 0.1 * epoch)

    def call(self, inputs):
        rows, number = inputs
        training = on("dropout-on")
        logits = self.mixed * self.one(rows, training=training)
        if not on("second-network-dropped"):
            logits += (1 - self.mixed) * self.two(rows, training=training)
        return scores(logits, tf.reduce_max(number))


def batches(data):
    """Batches of rows, in the order of the file."""
    x, _ = data
    found = tf.data.Dataset.from_tensor_slices(x)
    if on("right-cache"):
        found = found.map(lambda row: row + 0.0, num_parallel_calls=2).cache()
    found = found.map(lambda row: (row - 0.1) / (1.9 if on("normalisation-wrong") else 2.0))
    if on("inputs-float16"):
        found = found.map(lambda row: tf.cast(tf.cast(row, tf.float16), tf.float32))
    if on("batches-shuffled"):
        found = found.shuffle(planted.SAMPLES, seed=7)
    found = found.batch(planted.BATCH, drop_remainder=on("last-batch-dropped"))
    if on("batch-skipped"):
        found = found.enumerate().filter(lambda n, _: n != planted.STEPS // 2).map(lambda _, rows: rows)
    if on("batches-swapped"):
        found = found.skip(1).concatenate(found.take(1))
    if on("batch-twice"):
        found = found.flat_map(lambda rows: tf.data.Dataset.from_tensors(rows).repeat(2))
    if on("same-batch"):
        found = found.take(1).repeat(planted.STEPS)
    if on("sample-dropped"):
        found = found.map(lambda rows: rows[1:])
    return found


