"""The nouns of flatout: the Case, its evidence, errors, units and text. Imports neither flatout nor TensorFlow."""
