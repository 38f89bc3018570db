"""Trains as it is, then with cures of the run, and is killed in the middle of a checkpoint.

Prints one JSON object before that: values in the files and losses of both, and what the levers have noted.
"""

import json
import os
import signal
import sys

import keras
import numpy as np
import tensorflow as tf

from flatout.cures.background_checkpoint.inject import HOOKS as BACKGROUND
from flatout.cures.fewer_summaries.inject import HOOKS as FEWER_SUMMARIES
from flatout.cures.one_iterator.inject import HOOKS as ONE_ITERATOR
from flatout.cures.validation_batch.inject import HOOKS as VALIDATION_BATCH
from flatout.cures.validation_freq.inject import HOOKS as VALIDATION_FREQ

SAVED = []


@keras.saving.register_keras_serializable()
class Doubled(keras.layers.Dense):
    def save_own_variables(self, store):
        super().save_own_variables(store)
        SAVED.append(self.name)
        if len(SAVED) == LAST[0]:
            os.kill(os.getpid(), signal.SIGKILL)


class Injection:
    notes = []
    value = ""

    def changed(self, what):
        self.notes.append(what)

    note = changed


LAST = [0]
x = np.random.default_rng(1).normal(size=(320, 8)).astype("float32")
y = x[:, :1] * 2


def train(directory):
    os.makedirs(directory)
    keras.utils.set_random_seed(1)
    model = keras.Sequential([keras.Input((8,)), Doubled(16, activation="relu"), keras.layers.Dense(1)])
    model.compile("adam", "mse")
    model.fit(x, y, batch_size=32, epochs=2, verbose=0, callbacks=[
        keras.callbacks.ModelCheckpoint(directory + "/at-{epoch}-{batch}.keras", save_freq=4),
        keras.callbacks.ModelCheckpoint(directory + "/last.weights.h5", save_weights_only=True),
        keras.callbacks.ModelCheckpoint(directory + "/best.keras", monitor="loss", save_best_only=True),
    ])  # fmt: skip


def over_epochs():
    """A dataset with a last batch that is not full, and validation in between."""
    keras.utils.set_random_seed(2)
    data = tf.data.Dataset.from_tensor_slices((x[:100], y[:100])).batch(16)
    model = keras.Sequential([keras.Input((8,)), keras.layers.Dense(1)])
    model.compile("sgd", "mse")
    check = tf.data.Dataset.from_tensor_slices((x[100:], y[100:])).batch(64)
    history = model.fit(data, epochs=4, verbose=0, validation_data=check).history
    return [history["loss"], history["val_loss"], *(w.ravel().tolist() for w in model.get_weights())]


def validated():
    """Arrays given as validation data, a part that is split off, and what is to stay as it is."""
    keras.utils.set_random_seed(3)
    model = keras.Sequential([keras.Input((8,)), keras.layers.Dense(4, "tanh"), keras.layers.Dense(1)])
    model.compile("sgd", "mse", metrics=["mae", keras.metrics.RootMeanSquaredError()])
    check = x[100:203], y[100:203]
    found = []
    for more in (
        {"validation_data": check, "validation_batch_size": 1},
        {"validation_split": 0.3},
        {"validation_data": check, "validation_steps": 2},
        {"validation_data": tf.data.Dataset.from_tensor_slices(check).batch(5)},
    ):
        history = model.fit(x[:100], y[:100], batch_size=10, epochs=2, verbose=0, **more).history
        found.append({name: history[name] for name in sorted(history)})
    return found, [w.ravel().tolist() for w in model.get_weights()]


def with_fewer_results():
    """Validation after each epoch, then with a callback that looks at each; and a TensorBoard that is given its model:
    to write anything it needs a package that is not there."""
    keras.utils.set_random_seed(4)
    model = keras.Sequential([keras.Input((8,)), keras.layers.Dense(1)])
    model.compile("sgd", "mse")
    often = {"histogram_freq": 1, "write_images": True, "write_graph": False, "update_freq": "batch"}
    board = keras.callbacks.TensorBoard(f"{here}/logs", **often)
    board.set_model(model)
    found = [[board.histogram_freq, board.write_images, board.update_freq]]
    for callbacks in ([], [keras.callbacks.EarlyStopping(patience=3)]):
        given = {"validation_data": (x[100:150], y[100:150]), "callbacks": callbacks}
        history = model.fit(x[:100], y[:100], batch_size=50, epochs=7, verbose=0, **given).history
        found.append({name: history[name] for name in sorted(history)})
    return found, [w.ravel().tolist() for w in model.get_weights()]


def values(directory):
    found = {}
    for name in sorted(os.listdir(directory)):
        if name.endswith(".weights.h5"):
            model = keras.Sequential([keras.Input((8,)), Doubled(16), keras.layers.Dense(1)])
            model.load_weights(os.path.join(directory, name))
            variables = model.variables
        else:
            model = keras.models.load_model(os.path.join(directory, name))
            variables = [*model.variables, *model.optimizer.variables]
        found[name] = [np.asarray(variable).astype("float64").ravel().tolist() for variable in variables]
    return found


here = sys.argv[1]
train(f"{here}/plain")
losses = [over_epochs()]
ONE_ITERATOR.keras(Injection(), keras)
losses.append(over_epochs())
validations = [validated()]
VALIDATION_BATCH.keras(Injection(), keras)
validations.append(validated())
fewer = [with_fewer_results()]
VALIDATION_FREQ.keras(Injection(), keras)
FEWER_SUMMARIES.keras(Injection(), keras)
fewer.append(with_fewer_results())
BACKGROUND.keras(Injection(), keras)
train(f"{here}/background")
print(json.dumps({"losses": losses, "validations": validations, "fewer": fewer, "plain": values(f"{here}/plain"), "background": values(f"{here}/background"), "notes": Injection.notes}))
sys.stdout.flush()
LAST[0] = len(SAVED) + 4
train(f"{here}/killed")
