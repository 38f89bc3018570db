"""XPlane traces → columns → steps, ops, memory, copies, idle time. Nothing here imports TensorFlow."""
