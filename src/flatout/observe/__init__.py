"""Run a program in a child process and watch it.

The parent (`launcher`, `recording`, `assemble`) never imports TensorFlow. The child is the user's own Python running
the user's own program; `site/sitecustomize.py` wakes `child`, which installs the probes when TensorFlow is imported.
A probe only observes; it never changes what the program computes.
"""
