"""TensorFlow 1 style: a full-batch logistic regression that feeds the whole table at every step."""

import numpy as np
import tensorflow.compat.v1 as tf

tf.disable_v2_behavior()
tf.set_random_seed(0)

ROWS, COLUMNS, CLASSES, STEPS = 16000, 400, 5, 80
rng = np.random.RandomState(0)
features = rng.rand(ROWS, COLUMNS)
labels = rng.randint(0, CLASSES, ROWS)

x = tf.placeholder(tf.float32, [None, COLUMNS])
y = tf.placeholder(tf.int64, [None])
weights = tf.get_variable("weights", [COLUMNS, CLASSES])
bias = tf.get_variable("bias", [CLASSES], initializer=tf.zeros_initializer())
loss = tf.losses.sparse_softmax_cross_entropy(y, tf.matmul(x, weights) + bias)
train = tf.train.GradientDescentOptimizer(0.01).minimize(loss)

with tf.Session() as sess:
    sess.run(tf.global_variables_initializer())
    for step in range(STEPS):
        _, value = sess.run([train, loss], feed_dict={x: features, y: labels})  # fault: feed-dict
        if step % 20 == 0:
            print("step", step, "loss", value)
