"""A step with `@tf.function`: a schedule object, batch normalisation, dropout of Keras, metrics, averages."""

import keras
import planted
import tensorflow as tf
from planted import on

keras.utils.set_random_seed(1)


class Schedule(keras.optimizers.schedules.LearningRateSchedule):
    def __call__(self, step):
        step = tf.cast(step, tf.float32)
        if on("frozen-schedule"):
            step = tf.minimum(step, 3.0)
        if on("late-frozen-schedule"):
            step = tf.minimum(step, float(planted.LATE))
        warm = 1.0 if on("warmup-skipped") else tf.minimum(1.0, (step + 1) / 30)
        scale = 1.01 if on("rate-1-percent-higher") else 1.0
        return scale * 5e-3 * warm * 0.5 ** (step / 50)

    def get_config(self):
        return {}


class Normalisation(keras.layers.BatchNormalization):
    def call(self, inputs, training=None, mask=None):
        return super().call(inputs, training=False if on("batchnorm-inference") else training, mask=mask)


seed = planted.kernel_seed(3)
dropout = keras.layers.Dropout(0.0 if on("dropout-off") else 0.25, seed=4)
model = keras.Sequential(
    [
        keras.Input((8,)),
        keras.layers.Dense(24, use_bias=False, kernel_initializer=keras.initializers.GlorotUniform(seed)),
        Normalisation(momentum=1.0 if on("batchnorm-stale") else 0.9),
        keras.layers.ReLU(),
        dropout,
        keras.layers.Dense(3),
    ]
)
optimizer = keras.optimizers.Adam(
    Schedule(), beta_1=0.88 if on("wrong-beta") else 0.9, epsilon=1e-4 if on("wrong-epsilon") else 1e-7
)
optimizer.build(model.trainable_variables)
average = [tf.Variable(one.value, trainable=False, name="average") for one in model.trainable_variables]
mean = keras.metrics.Mean()
balance = tf.constant([1.0, 1.5, 0.8]) if not on("class-weight-lost") else tf.ones(3)


@tf.function
def train_step(x, y):
    step = optimizer.iterations.value
    late = tf.cast(step >= planted.LATE, tf.float32)
    if on("half-precision"):
        x = tf.cast(tf.cast(x, tf.bfloat16), tf.float32)
    with tf.GradientTape() as tape:
        logits = model(x, training=True)
        losses = tf.nn.sparse_softmax_cross_entropy_with_logits(y, logits)
        loss = tf.reduce_mean(losses * tf.gather(balance, y))
        extra = 1e-3 * tf.add_n([tf.nn.l2_loss(one) for one in model.trainable_variables])
        if on("late-loss-term-dropped"):
            extra = extra * (1 - late)
        if not on("loss-term-dropped"):
            loss += extra
    found = tape.gradient(loss, model.trainable_variables)
    if on("seed-reuse"):
        dropout.seed_generator.state.assign(tf.constant([4, 0], tf.uint32))
    optimizer.apply_gradients(zip(planted.gradients(found, step), model.trainable_variables, strict=True))
    if not on("metrics-stale"):
        mean.update_state(loss)
    for one, other in zip(average, model.trainable_variables, strict=True):
        keep = 0.99
        if on("ema-stale"):
            keep = 1.0
        if on("late-ema-stale"):
            keep = 0.99 + 0.01 * late
        one.assign(keep * one + (1 - keep) * other.value)
    return loss


data = planted.dataset(planted.points())
made = 0
for epoch in range(planted.epochs()):
    planted.begin_epoch(epoch)
    planted.note(mean.result())
    mean.reset_state()
    for x, y in data:
        planted.note(train_step(x, y))
        made += 1
        if on("momentum-lost") and made == planted.LATE:
            for one in optimizer.variables:
                if "momentum" in one.path:
                    one.assign(one * 0)
        if on("late-weights-perturbed") and made == planted.LATE:
            model.trainable_variables[0].assign(model.trainable_variables[0] * 1.001)
        if on("late-batchnorm-reset") and made == planted.LATE:
            model.non_trainable_variables[0].assign(model.non_trainable_variables[0] * 0)
planted.finish(model.variables, optimizer.variables, average, mean.variables)
