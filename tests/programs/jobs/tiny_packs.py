"""Gradients of sixty small layers are reduced one by one: each all-reduce waits for the network."""
import tensorflow as tf

strategy = tf.distribute.MultiWorkerMirroredStrategy()
from _training import STEPS, Training, examples

options = tf.distribute.experimental.CommunicationOptions(bytes_per_pack=1)  # fault: allreduce-bound
training = Training(strategy, per_replica=64, width=64, layers=60, options=options)


def make(context):
    data = examples().shard(context.num_input_pipelines, context.input_pipeline_id)
    return data.repeat().batch(64).prefetch(2)


iterator = iter(strategy.distribute_datasets_from_function(make))
for _ in range(STEPS):
    training.step(next(iterator))
