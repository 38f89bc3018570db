"""A session of TensorFlow 1 that saves all variables after every second step."""

import os
import tempfile
import time

import numpy as np
import tensorflow as tf

tf1 = tf.compat.v1
tf1.disable_eager_execution()
data = np.random.default_rng(1).normal(size=(32, 256)).astype("float32")
inputs = tf1.placeholder(tf.float32, (None, 256))
weights = tf1.get_variable("weights", (256, 1024))
more = tf1.get_variable("more", (1024, 2048))
loss = tf.reduce_mean(tf.matmul(tf.nn.relu(tf.matmul(inputs, weights)), more) ** 2)
train = tf1.train.AdamOptimizer(1e-3).minimize(loss)
saver = tf1.train.Saver(max_to_keep=1)
planted = 0.0
with tf1.Session() as session, tempfile.TemporaryDirectory() as directory:
    session.run(tf1.global_variables_initializer())
    for step in range(120):
        session.run(train, {inputs: data})
        if step % 2:
            began = time.perf_counter()
            saver.save(session, os.path.join(directory, "model"), global_step=step)  # fault: checkpoint-bound
            planted += time.perf_counter() - began
print(f"planted {planted:.3f}")
