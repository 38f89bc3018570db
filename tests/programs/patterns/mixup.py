"""Trains on pairs of pictures that are mixed (two shuffled datasets, zipped), then once more without mixing."""

import keras
import numpy as np
import tensorflow as tf
from keras import layers

keras.utils.set_random_seed(8)
BATCH, EPOCHS, CLASSES = 64, 2, 10

rng = np.random.default_rng(8)
pictures = rng.uniform(size=(1536, 28, 28, 1)).astype("float32")
labels = tf.one_hot(rng.integers(0, CLASSES, 1536), CLASSES)
x_train, y_train, x_val, y_val = pictures[:1280], labels[:1280], pictures[1280:], labels[1280:]

train_ds_one = tf.data.Dataset.from_tensor_slices((x_train, y_train)).shuffle(BATCH * 100).batch(BATCH)
train_ds_two = tf.data.Dataset.from_tensor_slices((x_train, y_train)).shuffle(BATCH * 100).batch(BATCH)
train_ds = tf.data.Dataset.zip((train_ds_one, train_ds_two))
val_ds = tf.data.Dataset.from_tensor_slices((x_val, y_val)).batch(BATCH)


def sample_beta(size, concentration):
    gamma_one = tf.random.gamma(shape=[size], alpha=concentration)
    gamma_two = tf.random.gamma(shape=[size], alpha=concentration)
    return gamma_one / (gamma_one + gamma_two)


def mix_up(one, two, alpha=0.2):
    images_one, labels_one = one
    images_two, labels_two = two
    share = sample_beta(tf.shape(images_one)[0], alpha)
    of_images = tf.reshape(share, (-1, 1, 1, 1))
    of_labels = tf.reshape(share, (-1, 1))
    images = images_one * of_images + images_two * (1 - of_images)
    return images, labels_one * of_labels + labels_two * (1 - of_labels)


train_ds_mu = train_ds.map(lambda one, two: mix_up(one, two, alpha=0.2), num_parallel_calls=tf.data.AUTOTUNE)


def get_model():
    model = keras.Sequential([keras.Input((28, 28, 1))])
    for size in (24, 32):
        model.add(layers.Conv2D(size, 5, padding="same", activation="relu"))
        model.add(layers.MaxPooling2D(2))
    model.add(layers.Flatten())
    model.add(layers.Dense(64, activation="relu"))
    model.add(layers.Dense(CLASSES, activation="softmax"))
    return model


initial = get_model().get_weights()
for name, dataset in (("mixed", train_ds_mu), ("plain", train_ds_one)):
    model = get_model()
    model.set_weights(initial)
    model.compile(loss="categorical_crossentropy", optimizer="adam", metrics=["accuracy"])
    model.fit(dataset, validation_data=val_ds, epochs=EPOCHS, verbose=2)
    print(name, "accuracy", model.evaluate(val_ds, verbose=0)[1])
