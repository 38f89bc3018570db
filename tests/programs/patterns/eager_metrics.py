"""A traced step, and a loss and an accuracy that the loop updates eagerly behind it."""
import tensorflow as tf

tf.random.set_seed(0)
layers = [tf.keras.layers.Dense(32, activation="relu"), tf.keras.layers.Dense(4)]
model = tf.keras.Sequential([tf.keras.Input((16,)), *layers])
loss_fn = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)
optimizer = tf.keras.optimizers.SGD(0.01)
train_loss = tf.keras.metrics.Mean()
train_accuracy = tf.keras.metrics.SparseCategoricalAccuracy()
x = tf.random.normal((3200, 16))
y = tf.cast(tf.reduce_sum(x[:, :4], 1) > 0, tf.int64)
data = tf.data.Dataset.from_tensor_slices((x, y)).batch(32)


@tf.function
def train_step(images, labels):
    with tf.GradientTape() as tape:
        logits = model(images, training=True)
        loss = loss_fn(labels, logits)
    grads = tape.gradient(loss, model.trainable_variables)
    optimizer.apply_gradients(zip(grads, model.trainable_variables))
    return loss, logits


for epoch in range(8):
    for images, labels in data:
        loss, logits = train_step(images, labels)
        train_loss(loss)
        train_accuracy.update_state(labels, logits)
    print(epoch, float(train_loss.result()), float(train_accuracy.result()))
    train_loss.reset_state()
    train_accuracy.reset_state()
