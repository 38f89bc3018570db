"""Audio clips become log spectrograms in a tf.py_function, then go through a traced training loop."""

import numpy as np
import tensorflow as tf

CLIPS, SAMPLES, FRAME, HOP, BATCH = 512, 4096, 256, 128, 16

rng = np.random.default_rng(1)
clips = rng.standard_normal((CLIPS, SAMPLES)).astype(np.float32)
labels = rng.integers(0, 8, CLIPS).astype(np.int32)
window = np.hanning(FRAME + 1)[:-1].astype(np.float32)


def spectrogram(clip):
    clip = clip.numpy()
    frames = []
    for start in range(0, SAMPLES - FRAME + 1, HOP):
        piece = clip[start : start + FRAME] * window
        frames.append(np.log1p(np.abs(np.fft.rfft(piece))))
    return np.stack(frames).astype(np.float32)


def prepare(clip, label):
    features = tf.py_function(spectrogram, [clip], tf.float32)
    features.set_shape((31, 129))
    return features, label


dataset = tf.data.Dataset.from_tensor_slices((clips, labels))
dataset = dataset.map(prepare, num_parallel_calls=tf.data.AUTOTUNE)  # fault: python-in-pipeline
dataset = dataset.batch(BATCH).prefetch(2)

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
