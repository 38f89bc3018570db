"""TensorFlow 1 training whose data comes from an iterator in the graph: nothing is fed."""

import numpy as np
import tensorflow.compat.v1 as tf

tf.disable_v2_behavior()
tf.set_random_seed(8)

rng = np.random.RandomState(8)
features = rng.randn(256 * 20, 400).astype("float32")
targets = rng.randn(256 * 20, 1).astype("float32")
dataset = tf.data.Dataset.from_tensor_slices((features, targets)).shuffle(6000, seed=8).repeat().batch(256).prefetch(2)
x, y = tf.data.make_one_shot_iterator(dataset).get_next()

w1 = tf.get_variable("w1", [400, 1024])
w2 = tf.get_variable("w2", [1024, 1024])
w3 = tf.get_variable("w3", [1024, 1])
hidden = tf.nn.relu(tf.matmul(tf.nn.relu(tf.matmul(x, w1)), w2))
loss = tf.reduce_mean(tf.square(tf.matmul(hidden, w3) - y))
train = tf.train.GradientDescentOptimizer(0.001).minimize(loss)

with tf.Session() as sess:
    sess.run(tf.global_variables_initializer())
    for step in range(80):
        if step % 20 == 0:
            print("step", step, "loss", sess.run([train, loss])[1])
        else:
            sess.run(train)
