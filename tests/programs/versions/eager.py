"""A training loop whose step runs eagerly: what is slow is the same in any TensorFlow from 2.12 on."""

import tensorflow as tf

tf.keras.utils.set_random_seed(0)
layers = tf.keras.layers
model = tf.keras.Sequential([layers.Dense(32, activation="relu") for _ in range(6)] + [layers.Dense(1)])
optimizer = tf.keras.optimizers.SGD(0.01)
x = tf.random.stateless_normal((512, 16), (1, 2))
data = tf.data.Dataset.from_tensor_slices((x, tf.reduce_sum(x, axis=1, keepdims=True))).batch(16).repeat()


def train_step(features, wanted):
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(tf.square(model(features) - wanted))
    gradients = tape.gradient(loss, model.trainable_variables)
    optimizer.apply_gradients(zip(gradients, model.trainable_variables))
    return loss


for number, (features, wanted) in enumerate(data.take(120)):
    loss = train_step(features, wanted)
print(float(loss))
