"""What the name of a GPU kernel shows: use of tensor cores, precision, communication, copies.

The profiler does not record which unit a kernel used, but libraries encode it in the names of their kernels:
`sm90_xmma_fprop_implicit_gemm_f32f32_tf32f32_f32…` is a cuDNN convolution of fp32 tensors in TF32 on tensor
cores.
Names that do not show it (a Triton fusion) count as "not on tensor cores", so the share is a lower bound.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

from flatout.model.vocabulary import CopyKind

TENSOR_CORE = re.compile(
    r"xmma_(?!cudnn)\w*gemm|xmma_\w*(?:fprop|dgrad|wgrad)|xmma_sparse|wgmma|hmma|imma|gmma|nvjet_|tensorop"
    r"|MmaTensorOp|OpClassTensorOp|tensor(?:16x8|8x8)"
    r"|[shicd](?:16816|1688|16832|16864|8816|884)(?:gemm|cudnn|fprop|dgrad|wgrad|tf32|bf16|f16|_|$)"
    r"|flash_(?:fwd|bwd|fprop|bprop|attention)|fmha_|sdpa_sm\d+_flash"
)
NOT_TENSOR_CORE = re.compile(r"ffma|simt|init_device|splitKreduce|computeOffsets|[sd]fma|convertTensor")

MATRIX = re.compile(
    r"gemm|gemv|xmma|nvjet|cutlass|cudnn|conv|fprop|dgrad|wgrad|winograd|fmha|flash|matmul|dot_",
    re.IGNORECASE,
)
"""Kernels whose precision represents the program: matrix products and convolutions, not element-wise work."""

PRECISIONS = (
    ("fp8", re.compile(r"e4m3|e5m2|fp8|nvjet_(?:sm\d+_)?q")),
    ("TF32", re.compile(r"tf32|tfloat32|tensorop_s1688gemm_(?!f16|bf16)|nvjet_(?:sm\d+_)?s[a-z]{2}_")),
    ("bf16", re.compile(r"bf16|bfloat16|nvjet_(?:sm\d+_)?t[a-z]{2}_")),
    (
        "fp16",
        re.compile(r"fp16|(?<![a-z])f16f16|_f16_|h884|h1688|h16816|half|nvjet_(?:sm\d+_)?h[a-z]{2}_|s884|hgemm"),
    ),
    ("int8", re.compile(r"i8i8|int8|i8816|i16832|s8_")),
    ("fp64", re.compile(r"f64|double|d884|dgemm|nvjet_(?:sm\d+_)?d[a-z]{2}_")),
    ("fp32", re.compile(r"sgemm|scudnn|f32f32_f32|ffma|fp32|simt_s|float")),
)

COLLECTIVE = re.compile(
    r"nccl|all-?_?reduce|all-?_?gather|reduce-?_?scatter|all-?_?to-?_?all|collective", re.IGNORECASE
)

FUSED = re.compile(r"(?:^|_)fusion|^triton_", re.IGNORECASE)

COPIES: dict[str, CopyKind] = {
    "MemcpyH2D": "host-to-device",
    "MemcpyD2H": "device-to-host",
    "MemcpyD2D": "device-to-device",
    "MemcpyP2P": "device-to-peer",
    "MemcpyH2H": "host-to-host",
}


@dataclass(frozen=True)
class KernelKind:
    tensor_core: bool
    precision: str
    matrix: bool
    collective: bool
    fused: bool
    """Made by XLA: several ops in one kernel."""
    copy: CopyKind | Literal["", "memset"]
    """Direction of a copy, "memset", or empty for a kernel."""


def classify(name: str) -> KernelKind:
    copy = next((kind for prefix, kind in COPIES.items() if name.startswith(prefix)), None)
    if copy is not None:
        return KernelKind(False, "", False, False, False, copy)
    if re.match(r"memset\b|Memset", name):
        return KernelKind(False, "", False, False, False, "memset")
    tensor_core = bool(TENSOR_CORE.search(name)) and not NOT_TENSOR_CORE.search(name)
    matrix = tensor_core or (bool(MATRIX.search(name)) and not NOT_MATRIX.search(name))
    precision = next((label for label, pattern in PRECISIONS if pattern.search(name)), "")
    return KernelKind(tensor_core, precision, matrix, bool(COLLECTIVE.search(name)), bool(FUSED.search(name)), "")


NOT_MATRIX = re.compile(
    r"init_device|splitKreduce|computeOffsets|convertTensor|ToNhwc|ToNchw|transpose|convert|batch_?norm|bn_|"
    r"Padding|ReduceSplitK|pooling|softmax|fusion|nccl",
    re.IGNORECASE,
)
"""Helpers around matrix products (layout changes, reductions): their data type is not that of the arithmetic."""


def copied_bytes(details: str) -> int:
    """Bytes of a copy from its details: "kind_src:pinned kind_dst:device size:12582912 dest:0 async:1"."""
    match = re.search(r"\b(?:size|num_bytes):(\d+)", details)
    return int(match.group(1)) if match else 0
