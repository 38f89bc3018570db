"""A pipeline with augmentation, in Python and in TensorFlow, read anew in each epoch by a traced step."""

import keras
import numpy as np
import planted
import tensorflow as tf
from planted import on

keras.utils.set_random_seed(1)
x, y = planted.points()
passes = 0


def samples():
    global passes
    passes += 1
    for number in range(planted.SAMPLES):
        noise = np.random.normal(size=8).astype("float32")
        off = on("augmentation-off") or (on("late-augmentation-off") and passes >= 3)
        off = off or (on("augmentation-off-in-epoch-2") and passes == 2)
        frozen = kept.setdefault(number, noise) if on("augmentation-frozen") else noise
        yield x[number] + (0.0 if off else 0.1) * frozen, y[number]


kept: dict[int, np.ndarray] = {}


def augment(x, y):
    drawn = tf.random.uniform((8,), 0.9, 1.1)
    if on("scaling-off"):
        drawn = tf.ones(8) + 0 * drawn
    return x * drawn, y


found = tf.data.Dataset.from_generator(
    samples, output_signature=(tf.TensorSpec((8,), tf.float32), tf.TensorSpec((), tf.int32))
)
if on("cached-before-map"):
    found = found.cache()
found = found.map(augment, num_parallel_calls=2)
if on("cached"):
    found = found.cache()
if not on("shuffle-off"):
    found = found.shuffle(64 if not on("smaller-shuffle") else 8, seed=5, reshuffle_each_iteration=not on("same-order"))
found = found.batch(planted.BATCH, drop_remainder=on("last-batch-dropped"))
if on("batch-skipped"):
    found = found.enumerate().filter(lambda n, _: n != planted.STEPS // 2).map(lambda _, xy: xy)
if on("batches-swapped"):
    found = found.skip(1).concatenate(found.take(1))
if on("element-repeated"):
    found = found.map(lambda x, y: (tf.concat([x[:1], x[:-1]], 0), tf.concat([y[:1], y[:-1]], 0)))
if on("normalisation-wrong"):
    found = found.map(lambda x, y: (x / 1.001, y))
found = planted.corrupted(found).prefetch(2)

model = keras.Sequential(
    [
        keras.Input((8,)),
        keras.layers.Dense(16, "relu", kernel_initializer=keras.initializers.GlorotUniform(planted.kernel_seed(3))),
        keras.layers.Dense(3),
    ]
)
optimizer = keras.optimizers.RMSprop(2e-3, rho=0.88 if on("wrong-beta") else 0.9)
optimizer.build(model.trainable_variables)


@tf.function
def train_step(x, y):
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(y, model(x, training=True)))
    found = tape.gradient(loss, model.trainable_variables)
    found = planted.gradients(found, optimizer.iterations.value)
    optimizer.apply_gradients(zip(found, model.trainable_variables, strict=True))
    return loss


for epoch in range(planted.epochs()):
    planted.begin_epoch(epoch)
    for a, b in found:
        planted.note(train_step(a, b))
planted.finish(model.variables, optimizer.variables)
