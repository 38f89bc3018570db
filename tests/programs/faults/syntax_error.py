"""Cannot be compiled."""

import tensorflow as tf

def train(model, data:
    return model.fit(data)
