from __future__ import annotations

import pytest

from flatout.trace.kernels import classify, copied_bytes


@pytest.mark.parametrize(
    ("name", "tensor_core", "precision"),
    [
        ("sm90_xmma_fprop_implicit_gemm_f32f32_tf32f32_f32_nhwckrsc_nhwc_tilesize64x64x32_g1", True, "TF32"),
        ("sm80_xmma_wgrad_implicit_gemm_indexed_bf16bf16_bf16f32_f32_nhwckrsc_nhwc_g1", True, "bf16"),
        (
            "sm80_xmma_gemm_f16f16_f16f32_f32_tn_n_tilesize128x128x32_stage4_tensor16x8x16_kernel",
            True,
            "fp16",
        ),
        ("sm80_xmma_gemm_f32f32_f32f32_f32_nn_n_tilesize64x64x8_stage3_ffma_aligna4_kernel", False, "fp32"),
        ("nvjet_sm90_tst_256x128_64x4_1x2_h_bz_coopA_bias_TNT", True, "bf16"),
        ("nvjet_hsh_128x256_64x4_1x2_h_bz_coopA_NTN", True, "fp16"),
        ("void cutlass::Kernel2<cutlass_80_tensorop_s1688gemm_128x128_32x5_nt_align4>", True, "TF32"),
        ("void cutlass::Kernel<cutlass_80_tensorop_bf16_s16816gemm_relu_bf16_256x64_32x4_tn>", True, "bf16"),
        ("void cutlass::Kernel<cutlass_80_simt_sgemm_128x64_8x5_nn_align1>", False, "fp32"),
        ("ampere_fp16_s16816gemm_fp16_128x64_ldg8_f2f_stages_32x6_nn", True, "fp16"),
        ("turing_h1688gemm_128x128_ldg8_stages_32x1_tn", True, "fp16"),
        ("volta_h884gemm_64x64_ldg8_nt", True, "fp16"),
        ("ampere_sgemm_128x64_tn", False, "fp32"),
        ("volta_scudnn_128x64_relu_small_nn_v1", False, "fp32"),
        ("cudnn_generated_fort_native_sdpa_sm90_flash_fprop_wgmma_f16_knob_7_64x128x128", True, "fp16"),
        ("void cask_plugin__5x_cudnn::xmma__5x_cudnn::init_device_workspace_kernel<xmma>", False, ""),
        ("void cublasLt::splitKreduce_kernel<32, 16, int, float>", False, "fp32"),
        ("input_multiply_reduce_fusion_16", False, ""),
        ("loop_add_fusion", False, ""),
        ("MemcpyH2D", False, ""),
    ],
)
def test_names_tell_tensor_cores_and_precision(name: str, tensor_core: bool, precision: str) -> None:
    kind = classify(name)
    assert (kind.tensor_core, kind.precision) == (tensor_core, precision)


def test_helpers_do_not_speak_for_the_precision_of_the_arithmetic() -> None:
    assert not classify("void cudnn::engines_precompiled::convertTensor_kernel<float, float, float>").matrix
    assert not classify("void nhwcAddPaddingKernel<float, float, float, true>").matrix
    assert classify("ampere_sgemm_128x64_tn").matrix


def test_copies_and_collectives_are_told_apart() -> None:
    assert classify("MemcpyH2D").copy == "host-to-device"
    assert classify("MemcpyP2P").copy == "device-to-peer"
    assert classify("Memset 3").copy == "memset"
    assert classify("ncclDevKernel_AllReduce_Sum_bf16_RING_LL").collective
    assert copied_bytes("kind_src:pinned kind_dst:device size:12582912 dest:0 async:1") == 12582912
    assert copied_bytes("nothing") == 0
