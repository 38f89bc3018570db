"""Ends with an AttributeError about a Session, but of a class of its own: no call of TensorFlow is gone."""

import tensorflow as tf


class Recorder:
    """Meant to hold one session for each experiment; the method was renamed and one caller was forgotten."""

    def session(self):
        return []


weights = tf.Variable(tf.random.normal((64, 64)))


@tf.function
def step(x):
    weights.assign(tf.tanh(weights @ x))
    return tf.reduce_sum(weights)


for number in range(50):
    step(tf.ones((64, 64)))
Recorder().Session()
