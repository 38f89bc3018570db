"""TensorFlow 1 style: a regression that runs its session once for each sample, for microseconds of computing."""

import numpy as np
import tensorflow.compat.v1 as tf

tf.disable_v2_behavior()

rng = np.random.default_rng(0)
lengths = rng.uniform(1, 10, 40)
weights = 0.3 * lengths + 0.8 + rng.normal(0, 0.1, 40)

length = tf.placeholder(tf.float32)
weight = tf.placeholder(tf.float32)
slope = tf.Variable(0.1)
offset = tf.Variable(0.2)
loss = tf.square(slope * length + offset - weight) / 2
train = tf.train.GradientDescentOptimizer(0.005).minimize(loss)

with tf.Session() as sess:
    sess.run(tf.global_variables_initializer())
    for epoch in range(80):
        for one, other in zip(lengths, weights):
            sess.run(train, feed_dict={length: one, weight: other})  # fault: step-overhead
        if epoch % 20 == 0:
            print("epoch", epoch, "slope", sess.run(slope), "offset", sess.run(offset))
