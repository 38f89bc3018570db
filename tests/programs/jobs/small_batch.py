"""Four examples for each worker and step: the exchange of gradients takes longer than computing them."""
import tensorflow as tf

strategy = tf.distribute.MultiWorkerMirroredStrategy()
from _training import STEPS, Training, examples

training = Training(strategy, per_replica=4, width=64, layers=2)


def make(context):
    data = examples().shard(context.num_input_pipelines, context.input_pipeline_id)
    return data.repeat().batch(4).prefetch(2)  # fault: small-global-batch


iterator = iter(strategy.distribute_datasets_from_function(make))
for _ in range(3 * STEPS):
    training.step(next(iterator))
