"""int8 in training: layers that round as int8 does, where they are inserted, and whether training with them helped.

`rounding_layers` holds the Keras layers, `insertion` puts them into a model, `norms` keeps batch norms separate while
the model is trained, `benefit` compares the trained weights with the calibrated ones.
"""
