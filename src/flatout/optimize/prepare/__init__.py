"""From what the user gave to the subject, in a child process (or in the user's own, for a model in memory).

preparing.py      the story: open, gather data, settle shapes, write the subject, answer with the original
trust.py          what a model file would run when it is opened; refused unless it is trusted
original.py       the model as a function of tensors; which file or factory it comes from
keras_models.py   Keras 3 and tf_keras: files and objects
saved_models.py   SavedModels, by signature
data.py           arrays, record files and functions as samples
columns.py        which array belongs to which input
judging.py        the user's metric
"""
