"""Audio clips become log spectrograms with tf.signal, a batch at a time, then go through a traced training loop."""

import numpy as np
import tensorflow as tf

CLIPS, SAMPLES, FRAME, HOP, BATCH = 512, 4096, 256, 128, 16

rng = np.random.default_rng(1)
clips = rng.standard_normal((CLIPS, SAMPLES)).astype(np.float32)
labels = rng.integers(0, 8, CLIPS).astype(np.int32)
window = np.hanning(FRAME + 1)[:-1].astype(np.float32)


def prepare(clip, label):
    frames = tf.signal.frame(clip, FRAME, HOP) * window
    return tf.math.log1p(tf.abs(tf.signal.rfft(frames))), label


dataset = tf.data.Dataset.from_tensor_slices((clips, labels)).batch(BATCH)
dataset = dataset.map(prepare, num_parallel_calls=tf.data.AUTOTUNE).prefetch(2)

tf.keras.utils.set_random_seed(0)
model = tf.keras.Sequential(
    [
        tf.keras.Input((31, 129)),
        tf.keras.layers.Conv1D(32, 3, activation="relu"),
        tf.keras.layers.GlobalMaxPooling1D(),
        tf.keras.layers.Dense(8),
    ]
)
optimizer = tf.keras.optimizers.Adam(1e-3)
loss_fn = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)


@tf.function
def train_step(features, label):
    with tf.GradientTape() as tape:
        loss = loss_fn(label, model(features, training=True))
    gradients = tape.gradient(loss, model.trainable_variables)
    optimizer.apply_gradients(zip(gradients, model.trainable_variables))
    return loss


for epoch in range(10):
    for features, label in dataset:
        loss = train_step(features, label)
    print(f"epoch {epoch}: loss {float(loss):.4f}")
