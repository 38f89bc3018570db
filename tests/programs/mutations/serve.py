"""No training: an eager function calls a model on each batch and looks for what it is least sure of."""

import keras
import planted
import scoring
import tensorflow as tf

keras.utils.set_random_seed(1)
model = scoring.Scorer()
number = 0


def score(rows, number):
    found = model([rows, tf.fill([tf.shape(rows)[0]], number)])
    return found, tf.reduce_min(tf.reduce_max(found, axis=1))


for epoch in range(planted.epochs()):
    model.begin(epoch)
    for rows in scoring.batches(planted.points()):
        planted.note(score(rows, tf.constant(number)))
        number += 1
planted.finish(model.variables)
