"""The environment variables that change how fast TensorFlow runs, by name.

Names are listed one by one and never matched by a prefix: `TF_` is also Terraform's, and its variables hold
passwords, which must not be in a case.
"""

from __future__ import annotations

from collections.abc import Mapping

NAMES = (
    # threads
    "TF_NUM_INTRAOP_THREADS",
    "TF_NUM_INTEROP_THREADS",
    "TF_OVERRIDE_GLOBAL_THREADPOOL",
    "OMP_NUM_THREADS",
    "OMP_PROC_BIND",
    "KMP_AFFINITY",
    "KMP_BLOCKTIME",
    "MKL_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "GOTO_NUM_THREADS",
    # oneDNN
    "TF_ENABLE_ONEDNN_OPTS",
    "TF_SET_ONEDNN_FPMATH_MODE",
    "TF_ONEDNN_USE_SYSTEM_ALLOCATOR",
    "ONEDNN_MAX_CPU_ISA",
    "DNNL_MAX_CPU_ISA",
    "ONEDNN_VERBOSE",
    "DNNL_VERBOSE",
    # the compiler
    "TF_XLA_FLAGS",
    "XLA_FLAGS",
    # the GPU
    "CUDA_VISIBLE_DEVICES",
    "NVIDIA_VISIBLE_DEVICES",
    "CUDA_DEVICE_ORDER",
    "CUDA_LAUNCH_BLOCKING",
    "CUDA_CACHE_DISABLE",
    "CUDA_CACHE_MAXSIZE",
    "CUDA_HOME",
    "NVIDIA_TF32_OVERRIDE",
    "TF_FORCE_GPU_ALLOW_GROWTH",
    "TF_GPU_ALLOCATOR",
    "TF_GPU_THREAD_MODE",
    "TF_GPU_THREAD_COUNT",
    "TF_CUDNN_USE_AUTOTUNE",
    "TF_ENABLE_GPU_GARBAGE_COLLECTION",
    # reproducibility and debugging
    "TF_DETERMINISTIC_OPS",
    "TF_CUDNN_DETERMINISTIC",
    "TF_CPP_MIN_LOG_LEVEL",
    "TF_CPP_MIN_VLOG_LEVEL",
    "TF_CPP_MAX_VLOG_LEVEL",
    "TF_CPP_VMODULE",
    "TF_DUMP_GRAPH_PREFIX",
    "PYTHONDEVMODE",
    "PYTHONMALLOC",
    "PYTHONTRACEMALLOC",
    "PROTOCOL_BUFFERS_PYTHON_IMPLEMENTATION",
    # Keras and tf.data
    "TF_USE_LEGACY_KERAS",
    "KERAS_BACKEND",
    "TF_DATA_EXPERIMENT_OPT_OUT",
    # memory and libraries
    "LD_PRELOAD",
    "LD_LIBRARY_PATH",
    "MALLOC_ARENA_MAX",
    "MALLOC_CHECK_",
    "MALLOC_PERTURB_",
    "MALLOC_TRIM_THRESHOLD_",
    "MALLOC_CONF",
    "GLIBC_TUNABLES",
)


def chosen(environment: Mapping[str, str]) -> dict[str, str]:
    return {name: environment[name] for name in NAMES if name in environment}
