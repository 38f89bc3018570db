"""An eager loop with a tape: momentum, averages of the weights, a second network that follows now and then."""

import keras
import planted
import tensorflow as tf
from planted import on

keras.utils.set_random_seed(1)


def network(seed):
    return keras.Sequential(
        [
            keras.Input((8,)),
            keras.layers.Dense(16, "tanh", kernel_initializer=keras.initializers.GlorotUniform(seed)),
            keras.layers.Dense(3, kernel_initializer=keras.initializers.GlorotUniform(seed + 1)),
        ]
    )


model, target = network(planted.kernel_seed(3)), network(11)
averages = [tf.Variable(one.value, trainable=False, name="average") for one in model.trainable_variables]
optimizer = keras.optimizers.SGD(0.05, momentum=0.85 if on("wrong-momentum") else 0.9)
optimizer.build(model.trainable_variables)
mean, accuracy = keras.metrics.Mean(), keras.metrics.SparseCategoricalAccuracy()
made = 0


def train_step(x, y):
    step = optimizer.iterations.value
    late = tf.cast(step >= planted.LATE, tf.float32)
    noise = 0.1 * tf.random.normal(tf.shape(x))
    if on("noise-off"):
        noise = noise * 0
    if on("late-noise-off"):
        noise = noise * (1 - late)
    with tf.GradientTape() as tape:
        logits = model(x + noise, training=True)
        loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(y, logits))
        follow = tf.reduce_mean((tf.nn.softmax(logits) - tf.nn.softmax(target(x))) ** 2)
        if on("late-loss-term-dropped"):
            follow = follow * (1 - late)
        if not on("loss-term-dropped"):
            loss += 0.5 * follow
        loss += (0.0 if on("weight-decay-lost") else 1e-3) * sum(tf.reduce_sum(one**2) for one in model.weights)
    found = tape.gradient(loss, model.trainable_variables)
    optimizer.apply_gradients(zip(planted.gradients(found, step), model.trainable_variables, strict=True))
    mean.update_state(loss)
    if not on("metrics-stale") and not (on("late-metrics-stale") and step >= planted.LATE):
        accuracy.update_state(y, logits)
    return loss


data = planted.dataset(planted.points())
for epoch in range(planted.epochs()):
    planted.begin_epoch(epoch)
    planted.note(mean.result(), accuracy.result())
    mean.reset_state()
    accuracy.reset_state()
    for x, y in data:
        optimizer.learning_rate.assign(planted.stale_rate(made))
        planted.note(train_step(x, y))
        made += 1
        if not (on("ema-stale") or (on("late-ema-stale") and made >= planted.LATE)):
            for average, one in zip(averages, model.trainable_variables, strict=True):
                average.assign(0.99 * average + 0.01 * one.value)
        if made % 25 == 0 and not on("target-never-synced") and not (on("late-target-never-synced") and made > planted.LATE):
            target.set_weights(model.get_weights())
        if on("momentum-lost") and made == planted.LATE:
            for one in optimizer.variables:
                if "momentum" in one.path:
                    one.assign(one * 0)
        if on("late-weights-perturbed") and made == planted.LATE:
            model.trainable_variables[0].assign(model.trainable_variables[0] * 1.001)
planted.finish(model.variables, target.variables, averages, optimizer.variables, mean.variables, accuracy.variables)
