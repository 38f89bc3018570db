"""TensorFlow 1 style: a regression that goes through its samples inside of the graph, with one run of the session for each epoch."""

import numpy as np
import tensorflow.compat.v1 as tf

tf.disable_eager_execution()

rng = np.random.default_rng(0)
lengths = rng.uniform(1, 10, 40)
weights = 0.3 * lengths + 0.8 + rng.normal(0, 0.1, 40)

slope = tf.Variable(0.1, use_resource=True)
offset = tf.Variable(0.2, use_resource=True)
optimizer = tf.train.GradientDescentOptimizer(0.005)
rows = tf.constant(np.stack([lengths, weights], axis=1), tf.float32)


def one_sample(number):
    length, weight = tf.unstack(rows[number])
    with tf.GradientTape() as tape:
        loss = tf.square(slope * length + offset - weight) / 2
    variables = [slope, offset]
    with tf.control_dependencies([optimizer.apply_gradients(zip(tape.gradient(loss, variables), variables))]):
        return number + 1


epoch_of_training = tf.while_loop(lambda number: number < 40, one_sample, [0])

with tf.Session() as sess:
    sess.run(tf.global_variables_initializer())
    for epoch in range(80):
        sess.run(epoch_of_training)
        if epoch % 20 == 0:
            print("epoch", epoch, "slope", sess.run(slope), "offset", sess.run(offset))
