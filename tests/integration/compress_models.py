"""Small models of the shapes that compression has to follow."""

import numpy as np


def residual(classes=10, width=16, blocks=2, size=16, channels=1):
    import keras
    from keras import layers

    def norm(name=None):
        return layers.BatchNormalization(momentum=0.8, name=name)  # few steps are trained

    inputs = keras.Input((size, size, channels), name="picture")
    x = layers.Conv2D(width, 3, padding="same", use_bias=False, name="stem")(inputs)
    x = norm("stem_norm")(x)
    x = layers.ReLU()(x)
    for stage in range(2):
        filters = width * (stage + 1)
        for block in range(blocks):
            stride = 2 if stage and block == 0 else 1
            y = layers.Conv2D(filters, 3, strides=stride, padding="same", use_bias=False)(x)
            y = norm()(y)
            y = layers.ReLU()(y)
            y = layers.Conv2D(filters, 3, padding="same", use_bias=False)(y)
            y = norm()(y)
            if x.shape[-1] != filters or stride > 1:
                x = layers.Conv2D(filters, 1, strides=stride, use_bias=False)(x)
                x = norm()(x)
            x = layers.ReLU()(layers.Add()([x, y]))
    x = layers.GlobalAveragePooling2D()(x)
    x = layers.Dropout(0.1)(x)
    return keras.Model(inputs, layers.Dense(classes, activation="softmax", name="answer")(x), name="residual")


def mobile(classes=10, size=16, channels=1):
    """Inverted bottlenecks with squeeze and excite, and an activation that is not cut at zero."""
    import keras
    from keras import layers

    inputs = keras.Input((size, size, channels))
    x = layers.Conv2D(16, 3, strides=2, padding="same", use_bias=False)(layers.Rescaling(1 / 2)(inputs))
    x = layers.Activation("silu")(layers.BatchNormalization()(x))
    for filters, stride in ((16, 1), (24, 2), (24, 1)):
        y = layers.Conv2D(48, 1, use_bias=False)(x)
        y = layers.Activation("silu")(layers.BatchNormalization()(y))
        y = layers.ZeroPadding2D(1)(y)
        y = layers.DepthwiseConv2D(3, strides=stride, use_bias=False)(y)
        y = layers.Activation("relu6")(layers.BatchNormalization()(y))
        gate = layers.Reshape((1, 1, 48))(layers.GlobalAveragePooling2D()(y))
        gate = layers.Conv2D(12, 1, activation="silu")(gate)
        gate = layers.Conv2D(48, 1, activation="sigmoid")(gate)
        y = layers.Multiply()([y, gate])
        y = layers.BatchNormalization()(layers.Conv2D(filters, 1, use_bias=False)(y))
        x = layers.Add()([x, y]) if stride == 1 and x.shape[-1] == filters else y
    x = layers.GlobalAveragePooling2D()(layers.Conv2D(64, 1, activation="relu6")(x))
    return keras.Model(inputs, layers.Dense(classes)(x), name="mobile")


def dense_net():
    import keras
    from keras import layers

    inputs = keras.Input((12, 12, 3))
    x = layers.Conv2D(12, 3, padding="same")(inputs)
    for _ in range(3):
        y = layers.ReLU()(layers.BatchNormalization()(x))
        y = layers.Conv2D(8, 3, padding="same")(y)
        x = layers.Concatenate()([x, y])
    x = layers.AveragePooling2D(2)(layers.Conv2D(16, 1)(layers.ReLU()(layers.BatchNormalization()(x))))
    x = layers.Dense(20, activation="relu")(layers.Flatten()(x))
    return keras.Model(inputs, layers.Dense(3)(x), name="dense_net")


def unet():
    import keras
    from keras import layers

    inputs = keras.Input((16, 16, 2))
    a = layers.Conv2D(12, 3, padding="same", activation="relu")(inputs)
    b = layers.Conv2D(16, 3, padding="same", activation="relu")(layers.MaxPooling2D()(a))
    c = layers.SeparableConv2D(24, 3, padding="same", activation="relu", depth_multiplier=2)(layers.MaxPooling2D()(b))
    up = layers.Conv2DTranspose(16, 2, strides=2)(c)
    up = layers.Conv2D(16, 3, padding="same", activation="relu")(layers.Concatenate()([up, b]))
    up = layers.UpSampling2D()(up)
    up = layers.Conv2D(12, 3, padding="same", activation="relu")(layers.Concatenate()([up, a]))
    return keras.Model(inputs, layers.Conv2D(1, 1, activation="sigmoid")(up), name="unet")


def transformer(length=12, vocabulary=50, width=16):
    import keras
    from keras import layers

    inputs = keras.Input((length,), dtype="int32")
    x = layers.Embedding(vocabulary, width)(inputs)
    for _ in range(2):
        y = layers.LayerNormalization()(x)
        y = layers.MultiHeadAttention(4, 8)(y, y)
        x = layers.Add()([x, y])
        y = layers.Dense(32, activation="gelu")(layers.LayerNormalization()(x))
        x = layers.Add()([x, layers.Dense(width)(layers.Dropout(0.1)(y))])
    return keras.Model(inputs, layers.Dense(4)(layers.GlobalAveragePooling1D()(x)), name="transformer")


def two_inputs():
    """Pictures and numbers, a shared tower, grouped convolution, group norm, a nested model, ops without a layer."""
    import keras
    from keras import layers

    left, right = keras.Input((8, 8, 3), name="left"), keras.Input((8, 8, 3), name="right")
    facts = keras.Input((5,), name="facts")
    tower_in = keras.Input((8, 8, 3))
    t = layers.Conv2D(16, 3, padding="same")(tower_in)
    t = layers.ReLU()(layers.GroupNormalization(4)(t))
    t = layers.Conv2D(24, 3, groups=4, padding="same")(t)
    tower = keras.Model(tower_in, layers.PReLU(shared_axes=[1, 2])(t), name="tower")
    shared = layers.Conv2D(10, 1, name="shared")
    a, b = shared(tower(left)), shared(tower(right))
    x = layers.Concatenate()([keras.ops.relu(a + b), layers.Subtract()([a, b])])
    x = keras.ops.mean(x, axis=(1, 2))
    x = layers.Concatenate()([x, layers.Dense(8, activation="tanh")(facts)])
    return keras.Model([left, right, facts], [layers.Dense(2, name="one")(x), layers.Dense(1, name="two")(x)])


def decoder():
    """A dense layer reshaped into pictures; channels in front in the middle of a sequence model."""
    import keras
    from keras import layers

    return keras.Sequential(
        [
            keras.Input((6,)),
            layers.Dense(4 * 4 * 12, activation="relu"),
            layers.Reshape((4, 4, 12)),
            layers.Conv2DTranspose(8, 3, strides=2, padding="same", activation="relu"),
            layers.Reshape((64, 8)),
            layers.LSTM(10, return_sequences=True),
            layers.GRU(6),
            layers.RepeatVector(3),
            layers.Permute((2, 1)),
            layers.Flatten(),
            layers.Dense(2),
        ]
    )


EVERY = (residual, mobile, dense_net, unet, transformer, two_inputs, decoder)


def shaken(model, seed=0):
    """Give all weights values of their own: fresh batch norms and zero biases would hide what is wired wrongly."""
    generator = np.random.default_rng(seed)
    for variable in model.variables:
        if "seed" in variable.path:
            continue
        noise = generator.normal(0, 0.1, variable.shape)
        positive = "variance" in variable.path or "gamma" in variable.path
        variable.assign(np.abs(1 + noise) if positive else variable.numpy() + noise)
    for layer in model.layers:
        if hasattr(layer, "finalize_state"):
            layer.finalize_state()
    return model


def pictures(count=1800, size=8, classes=10, seed=1):
    """Ten drawings, shifted, scaled and with noise on top: (train, test), each (pictures, labels)."""
    generator = np.random.default_rng(seed)
    drawings = generator.normal(size=(classes, size, size))
    drawings = (drawings + np.roll(drawings, 1, 1) + np.roll(drawings, 1, 2)) / 3
    labels = generator.integers(0, classes, count)
    shown = np.stack([np.roll(drawings[label], tuple(generator.integers(-1, 2, 2)), (0, 1)) for label in labels])
    shown = shown * generator.uniform(0.7, 1.3, (count, 1, 1)) + generator.normal(0, 0.25, shown.shape)
    shown = shown[..., None].astype("float32")
    cut = count * 3 // 4
    return (shown[:cut], labels[:cut]), (shown[cut:], labels[cut:])
