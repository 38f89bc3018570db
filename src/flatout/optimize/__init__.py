"""Make a trained model fast and small to serve, within an accuracy budget, and prove it.

    subject.py     the model as everything here sees it, on disk: made once by a child process from whatever was given
    route.py       what a way of running a model has to offer
    backends/      the ways, one file each, found by their file
    graph.py       the subject as a TensorFlow function, frozen or not; only in child processes

The parent of a command imports no TensorFlow and no converter: those run in processes of their own, so that one which
crashes, hangs or takes all memory is a row of the table and not the end.
"""
