"""A training loop that copies every weight and gradient to numpy at every twentieth step, to log how far the weights moved."""

import numpy as np
import tensorflow as tf

WIDTH, STEPS = 1024, 200

tf.keras.utils.set_random_seed(10)
model = tf.keras.Sequential(
    [
        tf.keras.Input((256,)),
        tf.keras.layers.Dense(WIDTH, activation="relu"),
        tf.keras.layers.Dense(WIDTH, activation="relu"),
        tf.keras.layers.Dense(WIDTH, activation="relu"),
        tf.keras.layers.Dense(10),
    ]
)
optimizer = tf.keras.optimizers.SGD(0.01)

rng = np.random.default_rng(10)
x = rng.standard_normal((STEPS * 8, 256)).astype("float32")
y = rng.integers(0, 10, STEPS * 8)
dataset = tf.data.Dataset.from_tensor_slices((x, y)).batch(8).prefetch(2)


@tf.function
def train_step(features, labels):
    with tf.GradientTape() as tape:
        logits = model(features, training=True)
        loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels, logits))
    gradients = tape.gradient(loss, model.trainable_variables)
    optimizer.apply_gradients(zip(gradients, model.trainable_variables))
    return loss, gradients


journal = []
previous = [v.numpy() for v in model.trainable_variables]
for step, (features, labels) in enumerate(dataset):
    loss, gradients = train_step(features, labels)
    if step % 20 == 0:
        weights = [v.numpy() for v in model.trainable_variables]
        moved = [float(np.abs(now - then).mean()) for now, then in zip(weights, previous)]
        steep = [float(np.linalg.norm(g.numpy())) for g in gradients]
        journal.append((float(loss), moved, steep))
        previous = weights
        print(f"step {step} loss {journal[-1][0]:.4f} moved {max(moved):.2e} gradient {max(steep):.3f}")
