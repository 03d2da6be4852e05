"""Names of kernels: their library and whether they run on matrix units. Names as the libraries and compilers
write them.
"""

import pytest

from tb_tpuprof.analysis.events.kernel_names import (
    is_half_precision,
    is_tensor_core_eligible,
    library_of,
    short_name,
    uses_tensor_cores,
)

# What XProf 2.24.2 looks for in a kernel's name.
PEER_PATTERNS = (
    "16816",
    "c1688",
    "conv1x1",
    "conv2d_c1_k1",
    "dgrad_1x1_stride_2x2",
    "direct_group",
    "first_layer_wgrad_kernel",
    "h1688",
    "h884",
    "hmma",
    "i16832",
    "i8816",
    "s884",
    "s1688",
    "xmma_gemm",
    "xmma_implicit_gemm",
    "xmma_sparse_conv",
    "xmma_sparse_gemm",
    "xmma_warp_specialized_implicit_gemm",
)

# (kernel, library, tensor cores)
KERNELS = [
    ("volta_h884gemm_128x64_ldg8_nn", "cuBLAS", True),
    ("turing_fp16_s1688cudnn_fp16_128x128_ldg8_relu_f2f_exp_interior_nhwc_tn_v1", "cuDNN", True),
    ("volta_sgemm_128x64_tn", "cuBLAS", False),
    ("ampere_sgemm_32x128_nn", "cuBLAS", False),
    ("ampere_bf16_s16816gemm_bf16_128x128_ldg8_f2f_stages_32x5_tn", "cuBLAS", True),
    (
        "sm80_xmma_gemm_f16f16_f16f32_f32_tn_n_tilesize128x128x32_stage4_tensor16x8x16_execute_kernel__5x_cublas",
        "cuBLAS",
        True,
    ),
    (
        "sm80_xmma_fprop_implicit_gemm_bf16bf16_bf16f32_f32_nhwckrsc_nhwc_execute_kernel__5x_cudnn",
        "cuDNN",
        True,
    ),
    (
        "void cutlass::Kernel2<cutlass_80_tensorop_bf16_s16816gemm_relu_bf16_256x128_32x3_nn_align8>(Params)",
        "cutlass",
        True,
    ),
    ("void cutlass::Kernel2<cutlass_80_simt_sgemm_128x128_8x4_nn_align1>(Params)", "cutlass", False),
    # Hopper
    ("nvjet_tst_128x256_64x4_2x1_v_bz_coopA_TNN", "cuBLAS", True),
    (
        "sm90_xmma_gemm_bf16bf16_bf16f32_f32_tn_n_tilesize128x128x64_warpgroupsize1x1x1_execute_kernel__5x_cublas",
        "cuBLAS",
        True,
    ),
    (
        "cutlass3x_sm90_tensorop_s64x128x16gemm_bf16_bf16_f32_bf16_bf16_128x128x64_2x1x1_0_ntn_align8",
        "cutlass",
        True,
    ),
    (
        (
            "void cutlass::device_kernel<cutlass::gemm::kernel::GemmUniversal<cute::tuple<int>,"
            " cutlass::gemm::collective::CollectiveMma<cutlass::gemm::MainloopSm90TmaGmmaWarpSpecialized<4> >"
            " > >(Params)"
        ),
        "cutlass",
        True,
    ),
    ("wgmma_m64n256k16_bf16_kernel", "Other", True),
    # Blackwell
    ("nvjet_sm100_tst_128x256_64x6_2x1_2cta_v_bz_TNT", "cuBLAS", True),
    ("cutlass3x_sm100_bstensorop_s256x256x64gemm_block_scaled_ue8m0xf4", "cutlass", True),
    (
        (
            "void cutlass::device_kernel<cutlass::gemm::collective::MainloopSm100TmaUmmaWarpSpecialized<3, 2>"
            " >(Params)"
        ),
        "cutlass",
        True,
    ),
    ("tcgen05_attention_kernel", "Other", True),
    ("sm100_xmma_fprop_implicit_gemm_indexed_bf16bf16_bf16f32_f32", "cuDNN", True),
    # Compilers
    ("gemm_fusion_dot_general_1", "Triton", True),
    ("triton_gemm_dot.12_0", "Triton", True),
    ("triton_tem_fused_addmm_3", "Triton", True),
    ("triton_poi_fused_add_mul_0", "Triton", False),
    ("triton_softmax_7_0", "Triton", False),
    ("loop_add_multiply_fusion", "XLA", False),
    ("wrapped_transpose.kd", "XLA", False),
    ("input_reduce_fusion_12", "XLA", False),
    # AMD
    ("Cijk_Ailk_Bljk_BBS_BH_MT256x128x32_MI16x16x16x1_SN_1LDSB1.kd", "rocBLAS / Tensile", True),
    ("Cijk_Ailk_Bljk_SB_MT64x64x8_SE_K1.kd", "rocBLAS / Tensile", False),
    ("_ZN2ck27kernel_gemm_xdl_cshuffle_v1INS_13GridwiseGemmE", "Composable Kernel", True),
    ("void ck::kernel_batched_gemm_xdlops_v2r3<ck::GridwiseGemm>(float const*)", "Composable Kernel", True),
    ("igemm_fwd_gtcx3_nhwc_fp16_bx0_ex1_bt256x128x32_wt32x32x8_ws1x2", "MIOpen", True),
    ("Im3d2Col.kd", "MIOpen", False),
    ("SubTensorOpWithCastTensor1d", "MIOpen", False),  # an elementwise operation, whatever its name has in it
    ("batched_transpose_16x32_half", "MIOpen", False),
    ("attn_fwd", "Flash attention", True),
    (
        "void ck_tile::kentry<256, 2, ck_tile::GemmKernel<ck_tile::GemmTilePartitioner> >(Args)",
        "Composable Kernel",
        True,
    ),
    # Serving
    ("fused_moe_kernel", "Triton", True),
    ("kernel_unified_attention_2d", "Triton", True),
    ("void deep_gemm::fp8_gemm_kernel<4096u, 7168u, 128u>(__nv_bfloat16*)", "Other", True),
    ("void marlin::Marlin<256, 1, 8, 8, 4>(int4 const*)", "Other", True),
    (
        (
            "void "
            "cutlass::device_kernel<flash::enable_sm90<flash::FlashAttnFwdSm90<"
            "flash::CollectiveMainloopFwdSm90>"
            " > >(Params)"
        ),
        "Flash attention",
        True,
    ),
    (
        "void flash_fwd_splitkv_combine_kernel<Flash_fwd_kernel_traits<128> >(Flash_fwd_params)",
        "Flash attention",
        False,
    ),
    (
        "cudnn_generated_fort_native_sdpa_sm90_flash_fprop_wgmma_f16_knob_6_64x128x128_4x1x1_kernel0_0",
        "cuDNN",
        True,
    ),
    (
        "cudnn_generated_fort_native_sdpa_sm100_flash_fprop_f16_knob_7_128x128x128_4x1x1_cga1x1x1_kernel0_0",
        "cuDNN",
        True,
    ),
    # Others
    (
        "void fft2d_r2c_16x16<float>(float2*, float const*, int, int, int, int, int, int, int, int)",
        "cuDNN",
        False,
    ),
    (
        (
            "void split_embedding_codegen_forward_unweighted_kernel<float, "
            "float>(at::GenericPackedTensorAccessor<float>)"
        ),
        "FBGEMM",
        False,
    ),
    (
        "void multi_tensor_apply_kernel<TensorListMetadata<4>, AdamFunctor<float> >(int)",
        "PyTorch native",
        False,
    ),
    (
        "void (anonymous namespace)::softmax_warp_forward<float, float, float, 10, true>(float*)",
        "PyTorch native",
        False,
    ),
    (
        "void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<float> >(int)",
        "PyTorch native",
        False,
    ),
    (
        (
            "void pytorch_flash::flash_fwd_kernel<pytorch_flash::Flash_fwd_kernel_traits<64, 128> "
            ">(Flash_fwd_params)"
        ),
        "Flash attention",
        True,
    ),
    (
        "fmha_cutlassF_f16_aligned_64x64_rf_sm80(PyTorchMemEffAttention::AttentionKernel)",
        "Flash attention",
        True,
    ),
    ("ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)", "NCCL / RCCL", False),
    ("rccl_main_kernel_0", "NCCL / RCCL", False),
    ("void Eigen::internal::EigenMetaKernel<Eigen::TensorEvaluator<int> >(int)", "TensorFlow / Eigen", False),
    ("void cudnn::bn_fw_tr_1C11_kernel_NCHW<float, float, 512, true, 1>(int)", "cuDNN", False),
    ("void cub::DeviceRadixSortOnesweepKernel<int>(int)", "CUB / Thrust", False),
    ("__amd_rocclr_copyBuffer.kd", "GPU runtime", False),
    ("my_kernel(float*)", "Other", False),
]


@pytest.mark.parametrize(("kernel", "library", "tensor"), KERNELS)
def test_library_and_units(kernel: str, library: str, tensor: bool) -> None:
    assert library_of(kernel) == library
    assert uses_tensor_cores(kernel) == tensor


def test_a_name_is_looked_at_once() -> None:
    """Templates make names of thousands of letters, and a run has the same on hundreds of hosts."""
    name = "void one_of_many<" + "float, " * 1000 + ">(int)"
    for function in (library_of, uses_tensor_cores):
        before = function.n_characters
        for _ in range(100):
            function(name)
        assert function.n_characters == before + len(name)


def test_what_the_peer_knows_of_tensor_cores_is_known() -> None:
    assert all(uses_tensor_cores(f"some_{pattern}_kernel") for pattern in PEER_PATTERNS)


def test_differences_from_the_peer_s_list() -> None:
    def peer(kernel: str) -> bool:
        return any(pattern in kernel for pattern in PEER_PATTERNS)

    more = {kernel for kernel, _, tensor in KERNELS if tensor and not peer(kernel)}
    less = {kernel for kernel, _, tensor in KERNELS if not tensor and peer(kernel)}
    # The peer's list stops at Ampere: of warp groups, tcgen05, nvjet, Triton, AMD's instructions it knows
    # nothing.
    assert {kernel.split("_")[0] for kernel in more} >= {
        "nvjet",
        "tcgen05",
        "wgmma",
        "triton",
        "Cijk",
        "igemm",
    }
    assert not less
    # `ffma` says that the ordinary units multiply, though the name begins like those of the others.
    ordinary = "sm80_xmma_gemm_f32f32_f32f32_f32_tn_n_tilesize32x32x8_stage3_warpsize1x2x1_ffma_aligna4_alignc4_execute_kernel__51_cublas"
    assert peer(ordinary)
    assert not uses_tensor_cores(ordinary)


@pytest.mark.parametrize(
    "name", ["dummy_kernel", "summation_fusion", "gemma_rms_norm", "commit", "loop_summary_fusion"]
)
def test_words_that_only_look_like_instructions(name: str) -> None:
    assert not uses_tensor_cores(name)


def test_an_unknown_kernel_of_a_compiled_program_is_the_compiler_s() -> None:
    assert library_of("frobnicate_12", is_compiled=True) == "XLA"
    assert library_of("frobnicate_12") == "Other"


@pytest.mark.parametrize(
    ("op", "type_", "eligible"),
    [
        ("model/dense/MatMul", "MatMul", True),
        ("model/conv2d/Conv2D", "Conv2D", True),
        ("gradients/Conv2DBackpropFilter", "", True),
        ("x/BatchMatMulV2_3", "", True),
        ("model/Relu", "Relu", False),
        ("jit(f)/jvp(g)/dot_general", "", True),
        ("jit(f)/conv_general_dilated", "", True),
        ("jit(f)/reduce_max", "", False),
        ("aten::addmm", "", True),
        ("aten::add", "", False),
        ("aten::cudnn_convolution_backward_weight", "", True),
        ("aten::cudnn_batch_norm_backward", "", False),
        ("aten::_scaled_dot_product_flash_attention", "", True),
        ("", "", False),
        ("cublas-gemm.12", "", True),
        ("MatMulish/Add", "AddV2", False),
    ],
)
def test_operations_that_tensor_cores_can_do(op: str, type_: str, eligible: bool) -> None:
    assert is_tensor_core_eligible(op, type_) == eligible


@pytest.mark.parametrize(
    ("kernel", "short"),
    [
        ("void at::native::f<int, (char)3>(float*)", "at::native::f"),
        ("(anonymous namespace)::g(int)", "g"),
        ("<lambda>", "<lambda>"),
        ("(x)", "(x)"),
        ("k" * 80, "k" * 80),
        ("k" * 81, "k" * 79 + "…"),
    ],
)
def test_short_names(kernel: str, short: str) -> None:
    assert short_name(kernel) == short


def test_only_the_beginning_of_a_long_name_counts() -> None:
    """Up to 8,192 characters."""
    for n, matches in ((8_188, True), (8_189, False)):
        name = "." * n + "fp16"
        assert is_half_precision(name) == matches
        assert uses_tensor_cores("." * n + "wmma") == matches
        assert (library_of("." * n + "nccl") == "NCCL / RCCL") == matches
    assert not uses_tensor_cores("simt_wmma")
    assert not uses_tensor_cores("wmma" + "." * 8_184 + "simt")
    assert uses_tensor_cores("wmma" + "." * 8_185 + "simt")


def test_names_of_composable_kernel_are_in_small_letters() -> None:
    assert library_of("x::CK::y") == "Other"
    assert library_of("x ck::y") == "Composable Kernel"
    assert library_of("NCCL") == library_of("nccl") == "NCCL / RCCL"
