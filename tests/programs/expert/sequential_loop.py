"""Every time step of a sequence goes through the same dense layers all at once."""

import numpy as np
import tensorflow as tf
from tensorflow import keras

TIME, BATCH = 100, 32


class FrameScorer(tf.Module):
    def __init__(self, width):
        super().__init__()
        self.w1 = tf.Variable(tf.random.normal((width, 64), stddev=0.1))
        self.w2 = tf.Variable(tf.random.normal((64, 1), stddev=0.1))

    def score(self, frame):
        return (tf.nn.relu(frame @ self.w1) @ self.w2)[..., 0]

    def __call__(self, frames):
        return self.score(frames)


@tf.function
def train_step(frames, target):
    with tf.GradientTape() as tape:
        best = tf.reduce_logsumexp(scorer(frames), axis=1)
        loss = tf.reduce_mean(tf.square(best - target))
    gradients = tape.gradient(loss, scorer.trainable_variables)
    optimizer.apply_gradients(zip(gradients, scorer.trainable_variables))
    return loss


if __name__ == "__main__":
    keras.utils.set_random_seed(30)
    scorer = FrameScorer(40)
    optimizer = keras.optimizers.SGD(1e-4)
    rng = np.random.default_rng(30)
    for step in range(200):
        frames = tf.constant(rng.standard_normal((BATCH, TIME, 40)), tf.float32)
        loss = train_step(frames, tf.reduce_max(frames[:, :, 0], axis=1))
        if step % 40 == 0:
            print("step", step, "loss", float(loss))
