"""A healthy session of TensorFlow 1."""

import numpy as np
import tensorflow as tf

tf1 = tf.compat.v1
tf1.disable_eager_execution()
rows = np.random.default_rng(1).normal(size=(256, 512)).astype("float32")
inputs = tf1.placeholder(tf.float32, (None, 512))
weights = tf1.get_variable("weights", (512, 1024))
loss = tf.reduce_mean(tf.matmul(inputs, weights) ** 2)
train = tf1.train.GradientDescentOptimizer(1e-3).minimize(loss)
with tf1.Session() as session:
    session.run(tf1.global_variables_initializer())
    for _ in range(400):
        session.run(train, {inputs: rows})
