"""ParameterServerStrategy: the chief coordinates, workers compute, variables are on a parameter server."""
import os

import tensorflow as tf

resolver = tf.distribute.cluster_resolver.TFConfigClusterResolver()
if resolver.task_type in ("worker", "ps"):
    server = tf.distribute.Server(resolver.cluster_spec(), resolver.task_type, resolver.task_id, protocol="grpc")
    server.join()

strategy = tf.distribute.ParameterServerStrategy(resolver)
coordinator = tf.distribute.coordinator.ClusterCoordinator(strategy)
with strategy.scope():
    weight = tf.Variable(tf.zeros((64, 1)))


def make():
    x = tf.random.stateless_normal((2048, 64), (1, 2))
    return tf.data.Dataset.from_tensor_slices((x, tf.reduce_sum(x, axis=1, keepdims=True))).repeat().batch(64)


@tf.function
def train_step(iterator):
    x, y = next(iterator)
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean((x @ weight - y) ** 2)
    weight.assign_sub(0.01 * tape.gradient(loss, weight))
    return loss


iterator = iter(coordinator.create_per_worker_dataset(make))
for _ in range(int(os.environ.get("STEPS", "120"))):
    coordinator.schedule(train_step, args=(iterator,))
coordinator.join()
print("trained", float(tf.norm(weight)))
