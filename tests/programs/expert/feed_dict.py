"""TensorFlow 1 style: a full-batch logistic regression that feeds the table once, into variables."""

import numpy as np
import tensorflow.compat.v1 as tf

tf.disable_v2_behavior()
tf.set_random_seed(0)

ROWS, COLUMNS, CLASSES, STEPS = 16000, 400, 5, 80
rng = np.random.RandomState(0)
features = rng.rand(ROWS, COLUMNS)
labels = rng.randint(0, CLASSES, ROWS)

first_x = tf.placeholder(tf.float32, [ROWS, COLUMNS])
first_y = tf.placeholder(tf.int64, [ROWS])
x = tf.Variable(first_x, trainable=False)
y = tf.Variable(first_y, trainable=False)
weights = tf.get_variable("weights", [COLUMNS, CLASSES])
bias = tf.get_variable("bias", [CLASSES], initializer=tf.zeros_initializer())
loss = tf.losses.sparse_softmax_cross_entropy(y, tf.matmul(x, weights) + bias)
train = tf.train.GradientDescentOptimizer(0.01).minimize(loss)

with tf.Session() as sess:
    sess.run(tf.global_variables_initializer(), {first_x: features, first_y: labels})
    for step in range(STEPS):
        _, value = sess.run([train, loss])
        if step % 20 == 0:
            print("step", step, "loss", value)
