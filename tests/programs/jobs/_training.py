"""What the jobs share: a network of some layers, and a training step under a strategy."""
import json
import os

import tensorflow as tf

RANK = json.loads(os.environ["TF_CONFIG"])["task"]["index"]
STEPS = int(os.environ.get("STEPS", "80"))


class Training:
    def __init__(self, strategy, per_replica=64, width=128, layers=2, options=None):
        self.strategy = strategy
        self.options = options
        self.batch = per_replica * strategy.num_replicas_in_sync
        sizes = [64] + [width] * layers + [1]
        with strategy.scope():
            self.weights = [
                tf.Variable(tf.random.stateless_normal((a, b), (3, i)) / a**0.5)
                for i, (a, b) in enumerate(zip(sizes, sizes[1:]))
            ]

    def forward(self, x):
        for weight in self.weights[:-1]:
            x = tf.nn.relu(x @ weight)
        return x @ self.weights[-1]

    def replica(self, batch):
        x, y = batch
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum((self.forward(x) - y) ** 2) / self.batch
        gradients = tape.gradient(loss, self.weights)
        gradients = tf.distribute.get_replica_context().all_reduce("sum", gradients, self.options)
        for weight, gradient in zip(self.weights, gradients):
            weight.assign_sub(0.001 * gradient)
        return loss

    @tf.function
    def step(self, batch):
        return self.strategy.run(self.replica, args=(batch,))


def examples(count=20000):
    x = tf.random.stateless_normal((count, 64), (1, 2))
    return tf.data.Dataset.from_tensor_slices((x, tf.reduce_sum(x, axis=1, keepdims=True)))
