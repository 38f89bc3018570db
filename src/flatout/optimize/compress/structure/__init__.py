"""The structure of Keras models: the graph of calls, channels followed through it, and models rebuilt without some.

`graph` calls a model again with other layers. `channels`, with `units` and `rules/`, follows every channel from the
layer that makes it to all layers that read it. `importance` scores channels, `plan` chooses which to remove, `shrink`
removes them, `cost` counts parameters and FLOPs.
"""
