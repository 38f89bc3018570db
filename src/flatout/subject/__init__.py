"""A trained model to be served: opened, with samples and reference answers, written to a directory."""
