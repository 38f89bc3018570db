"""A variational autoencoder in the style of TensorFlow 1: placeholders, a session, a batch fed at every step."""

import numpy as np
import tensorflow.compat.v1 as tf

tf.disable_v2_behavior()
tf.set_random_seed(5)
rng = np.random.RandomState(5)

learning_rate, num_steps, batch_size = 0.001, 600, 64
image_dim, hidden_dim, latent_dim = 784, 512, 2
images = rng.uniform(size=(4096, image_dim)).astype("float32")


def glorot_init(shape):
    return tf.random_normal(shape=shape, stddev=1.0 / tf.sqrt(shape[0] / 2.0))


weights = {
    "encoder_h1": tf.Variable(glorot_init([image_dim, hidden_dim])),
    "z_mean": tf.Variable(glorot_init([hidden_dim, latent_dim])),
    "z_std": tf.Variable(glorot_init([hidden_dim, latent_dim])),
    "decoder_h1": tf.Variable(glorot_init([latent_dim, hidden_dim])),
    "decoder_out": tf.Variable(glorot_init([hidden_dim, image_dim])),
}
biases = {
    "encoder_b1": tf.Variable(glorot_init([hidden_dim])),
    "z_mean": tf.Variable(glorot_init([latent_dim])),
    "z_std": tf.Variable(glorot_init([latent_dim])),
    "decoder_b1": tf.Variable(glorot_init([hidden_dim])),
    "decoder_out": tf.Variable(glorot_init([image_dim])),
}

input_image = tf.placeholder(tf.float32, shape=[None, image_dim])
encoder = tf.nn.tanh(tf.matmul(input_image, weights["encoder_h1"]) + biases["encoder_b1"])
z_mean = tf.matmul(encoder, weights["z_mean"]) + biases["z_mean"]
z_std = tf.matmul(encoder, weights["z_std"]) + biases["z_std"]
noise = tf.random_normal(tf.shape(z_std), dtype=tf.float32, mean=0.0, stddev=1.0)
z = z_mean + tf.exp(z_std / 2) * noise
decoder = tf.nn.tanh(tf.matmul(z, weights["decoder_h1"]) + biases["decoder_b1"])
decoder = tf.nn.sigmoid(tf.matmul(decoder, weights["decoder_out"]) + biases["decoder_out"])


def vae_loss(made, true):
    rebuilt = -tf.reduce_sum(true * tf.log(1e-10 + made) + (1 - true) * tf.log(1e-10 + 1 - made), 1)
    divergence = -0.5 * tf.reduce_sum(1 + z_std - tf.square(z_mean) - tf.exp(z_std), 1)
    return tf.reduce_mean(rebuilt + divergence)


loss_op = vae_loss(decoder, input_image)
train_op = tf.train.RMSPropOptimizer(learning_rate).minimize(loss_op)
init = tf.global_variables_initializer()

with tf.Session() as sess:
    sess.run(init)
    for i in range(1, num_steps + 1):
        batch_x = images[rng.randint(0, len(images), batch_size)]
        _, loss = sess.run([train_op, loss_op], feed_dict={input_image: batch_x})
        if i % 200 == 0 or i == 1:
            print("Step %i, Loss: %f" % (i, loss))
    picture = sess.run(decoder, feed_dict={z: np.zeros((1, latent_dim), "float32")})
    print("mean ink", picture.mean())
