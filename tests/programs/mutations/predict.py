"""No training: `Model.predict` on one small batch after the other."""

import keras
import planted
import scoring
import tensorflow as tf

keras.utils.set_random_seed(1)
model = scoring.Scorer()
number = 0
for epoch in range(planted.epochs()):
    model.begin(epoch)
    for rows in scoring.batches(planted.points()):
        planted.note(model.predict([rows, tf.fill([tf.shape(rows)[0]], number)], verbose=0))
        number += 1
planted.finish(model.variables)
