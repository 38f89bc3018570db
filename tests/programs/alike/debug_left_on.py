"""The first batch is looked at with functions run eagerly and numerics checked; both are off again before the training."""

import numpy as np
import tensorflow as tf

tf.keras.utils.set_random_seed(0)
model = tf.keras.Sequential(
    [tf.keras.Input((64,)), tf.keras.layers.Dense(256, activation="relu"), tf.keras.layers.Dense(6)]
)
optimizer = tf.keras.optimizers.SGD(0.01)


@tf.function
def train_step(x, y):
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(y, model(x, training=True)))
    optimizer.apply_gradients(zip(tape.gradient(loss, model.trainable_variables), model.trainable_variables))
    return loss


rng = np.random.default_rng(0)
x = tf.constant(rng.standard_normal((64, 64)), tf.float32)
y = tf.constant(rng.integers(0, 6, 64))

tf.config.run_functions_eagerly(True)
tf.debugging.enable_check_numerics()
print("first loss", float(train_step(x, y)))
tf.debugging.disable_check_numerics()
tf.config.run_functions_eagerly(False)

for number in range(300):
    loss = train_step(x, y)
print("last loss", float(loss))
