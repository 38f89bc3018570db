"""As in slow/, compiled by XLA."""

import os

import keras
import tensorflow as tf
from keras import layers

STEPS = int(os.environ.get("STEPS", "400"))
WIDTH, TOKENS, BATCH, WORDS = 512, 256, 64, 8000

keras.utils.set_random_seed(1)
tokens = x = keras.Input((TOKENS,), dtype="int32")
x = layers.Embedding(WORDS, WIDTH)(x)
for _ in range(4):
    x = layers.LayerNormalization()(x + layers.MultiHeadAttention(8, WIDTH // 8)(x, x))
    x = layers.LayerNormalization()(x + layers.Dense(WIDTH)(layers.Dense(4 * WIDTH, "gelu")(x)))
model = keras.Model(tokens, layers.Dense(WORDS, dtype="float32")(x))
optimizer = keras.optimizers.Adam(1e-4)
loss_of = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
text = tf.random.uniform((8, BATCH, TOKENS), maxval=WORDS, dtype=tf.int32, seed=1)


@tf.function(jit_compile=True)
def train_step(batch):
    with tf.GradientTape() as tape:
        loss = loss_of(batch, model(batch, training=True))
    optimizer.apply_gradients(zip(tape.gradient(loss, model.trainable_variables), model.trainable_variables))
    return loss


for step in range(STEPS):
    loss = train_step(text[step % 8])
    if (step + 1) % (STEPS // 8) == 0:
        print("step", step + 1, "loss", float(loss), flush=True)
