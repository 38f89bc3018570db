"""A TensorFlow 1 loop. A step is one sess.run of the train op."""

import json
import os
import statistics
import time

import numpy as np
import tensorflow.compat.v1 as tf

tf.disable_v2_behavior()

rng = np.random.default_rng(8)
data = rng.standard_normal((6400, 200)).astype(np.float32)
target = rng.standard_normal((6400, 1)).astype(np.float32)

x = tf.placeholder(tf.float32, [None, 200])
y = tf.placeholder(tf.float32, [None, 1])
w1 = tf.get_variable("w1", [200, 1000])
w2 = tf.get_variable("w2", [1000, 1000])
w3 = tf.get_variable("w3", [1000, 1])
prediction = tf.matmul(tf.nn.relu(tf.matmul(tf.nn.relu(tf.matmul(x, w1)), w2)), w3)
loss = tf.reduce_mean(tf.square(prediction - y))
train_op = tf.train.AdamOptimizer(1e-4).minimize(loss)

times = []
with tf.Session() as sess:
    sess.run(tf.global_variables_initializer())
    for step in range(100):
        start = time.perf_counter()
        rows = slice(step % 50 * 128, (step % 50 + 1) * 128)
        _, value = sess.run([train_op, loss], feed_dict={x: data[rows], y: target[rows]})
        times.append(time.perf_counter() - start)
print("final loss", value)

if os.environ.get("STOPWATCH"):
    with open(os.environ["STOPWATCH"], "w") as out:
        json.dump({"count": len(times), "median_ms": 1000 * statistics.median(times)}, out)
