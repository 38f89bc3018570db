"""ONNX: what the routes through ONNX Runtime, OpenVINO and TensorRT share.

`convert` makes the ONNX model of a subject with tf2onnx. tf2onnx needs help on both sides: `compiled` and `recurrent`
change the TensorFlow graph before the conversion, `repair` (with `gelu` and `layer_normalization`) the ONNX graph
after it. `quantize` makes 8-bit models, `contents` reads what a file contains and what ONNX Runtime runs.
"""
