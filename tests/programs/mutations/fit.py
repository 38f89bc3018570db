"""Keras `fit`: a schedule set by a callback, batch normalisation, dropout, decay, averages of the weights."""

import keras
import planted
import tensorflow as tf
from planted import on

keras.utils.set_random_seed(1)


class Optimizer(keras.optimizers.AdamW):
    def apply(self, grads, trainable_variables=None):
        return super().apply(planted.gradients(grads, self.iterations.value), trainable_variables)


class Schedule(keras.callbacks.Callback):
    step = 0

    def on_epoch_begin(self, epoch, logs=None):
        planted.begin_epoch(epoch)
        if on("late-dropout-off") and epoch:
            kept.assign(1.0)

    def on_train_batch_begin(self, batch, logs=None):
        self.model.optimizer.learning_rate = planted.stale_rate(self.step) / 10
        self.step += 1
        if on("momentum-lost") and self.step == planted.LATE:
            for variable in self.model.optimizer.variables:
                if "momentum" in variable.path:
                    variable.assign(variable * 0)
        if on("late-weights-perturbed") and self.step == planted.LATE:
            kernel = self.model.trainable_variables[0]
            kernel.assign(kernel * 1.001)


class Accuracy(keras.metrics.SparseCategoricalAccuracy):
    def update_state(self, y_true, y_pred, sample_weight=None):
        if on("metrics-stale"):
            y_pred = y_pred[:4]
            y_true = y_true[:4]
            sample_weight = None
        return super().update_state(y_true, y_pred, sample_weight)


class Loss(keras.losses.Loss):
    def call(self, y_true, y_pred):
        smooth = 0.0 if on("label-smoothing-lost") else 0.1
        labels = tf.one_hot(tf.cast(tf.reshape(y_true, [-1]), tf.int32), 3) * (1 - smooth) + smooth / 3
        return tf.nn.softmax_cross_entropy_with_logits(labels, y_pred)


class Dropout(keras.layers.Layer):
    def call(self, x, training=False):
        if not training or on("dropout-off"):
            return x
        mask = tf.random.stateless_uniform(tf.shape(x), (3, seed_of(model))) < kept
        return tf.where(mask, x / kept, 0.0)


def seed_of(model):
    return tf.constant(5) if on("seed-reuse") else tf.cast(model.optimizer.iterations.value, tf.int32)


kept = tf.Variable(0.8, trainable=False, name="kept")
decay = None if on("regularizer-lost") else keras.regularizers.L2(1e-3)
seed = planted.kernel_seed(3)
model = keras.Sequential(
    [
        keras.Input((8,)),
        keras.layers.Dense(
            24,
            kernel_regularizer=decay,
            kernel_initializer=keras.initializers.GlorotUniform(seed),
        ),
        keras.layers.BatchNormalization(momentum=1.0 if on("batchnorm-stale") else 0.9),
        keras.layers.ReLU(),
        Dropout(),
        keras.layers.Dense(3),
    ]
)
optimizer = Optimizer(
    0.005,
    weight_decay=0.0 if on("weight-decay-lost") else 0.01,
    beta_2=0.99 if on("wrong-beta") else 0.999,
    epsilon=1e-4 if on("wrong-epsilon") else 1e-7,
    use_ema=True,
    ema_momentum=1.0 if on("ema-stale") else 0.99,
)
model.compile(optimizer, Loss(), weighted_metrics=[Accuracy()])
data, held = planted.dataset(planted.points()), planted.points(9)
history = model.fit(
    data,
    epochs=planted.epochs(),
    validation_data=None if on("evaluation-skipped") else (held[0][:64], held[1][:64]),
    class_weight=None if on("class-weight-lost") else {0: 1.0, 1: 1.5, 2: 0.8},
    callbacks=[Schedule()],
    verbose=0,
)
planted.finish(model.variables, optimizer.variables, [history.history[name] for name in sorted(history.history)])
