"""The loss is pulled to be logged, but every tenth step only, and all weights every hundredth."""

import numpy as np
import tensorflow as tf

WIDTH, STEPS = 512, 200

tf.keras.utils.set_random_seed(10)
model = tf.keras.Sequential(
    [tf.keras.Input((256,)), tf.keras.layers.Dense(WIDTH, activation="relu"), tf.keras.layers.Dense(WIDTH), tf.keras.layers.Dense(10)]
)
optimizer = tf.keras.optimizers.SGD(0.01)

rng = np.random.default_rng(10)
x = rng.standard_normal((STEPS * 32, 256)).astype("float32")
y = rng.integers(0, 10, STEPS * 32)
dataset = tf.data.Dataset.from_tensor_slices((x, y)).batch(32).prefetch(2)


@tf.function
def train_step(features, labels):
    with tf.GradientTape() as tape:
        logits = model(features, training=True)
        loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels, logits))
    gradients = tape.gradient(loss, model.trainable_variables)
    optimizer.apply_gradients(zip(gradients, model.trainable_variables))
    return loss


for step, (features, labels) in enumerate(dataset):
    loss = train_step(features, labels)
    if step % 10 == 0:
        print(f"step {step} loss {loss.numpy():.4f}")
    if step % 100 == 0:
        print("largest weight", max(float(np.abs(v.numpy()).max()) for v in model.trainable_variables))
