"""Names of GPU kernels and of the operations that launch them: which library a kernel comes from, and whether
it runs on matrix units.

Each distinct name is parsed once for all hosts. The patterns match names that NVIDIA's and AMD's libraries
and the compilers give their kernels; nothing else in a trace shows which units a kernel ran on.
"""

from __future__ import annotations

import re

from tb_tpuprof.analysis.events.text_cache import text_cache

XLA = "XLA"
OTHER = "Other"

# First match wins: the library that built a kernel comes before those that it was built with (cub, cutlass).
_LIBRARIES: tuple[tuple[str, str], ...] = (
    ("NCCL / RCCL", r"nccl|rccl|msccl|nvshmem"),
    (
        "FBGEMM",
        r"fbgemm|split_embedding_|permute_pooled_embs|bounds_check_indices_kernel|linearize_index_kernel|recat_copy_async",
    ),
    (
        "Flash attention",
        r"flash_?(fwd|bwd|attn|attention)|fmha|\bAttentionKernel|sm90_.*attention|aiter::|flashinfer::|"
        r"^(attn_fwd|bwd_kernel_(dk_dv|dq|fuse))",
    ),
    ("rocBLAS / Tensile", r"^Cijk_|^Custom_Cijk_|tensile|rocblas|hipblaslt"),
    ("Composable Kernel", r"\bck(_tile)?::|_ZN2ck|xdlops|gridwise_|^kernel_(batched_)?gemm_.*xdl"),
    (
        "MIOpen",
        r"miopen|Im[23]d2Col|Col2Im[23]d|igemm_(fwd|bwd|wrw)_|Sp3AsmConv|naive_conv_|BatchNormFwd|BatchNormBwd|^gfx9\w*conv|"
        r"SubTensorOpWith|^batched_transpose_\d+x\d+",
    ),
    (
        "PyTorch native",
        r"\bat::(native|cuda|\()|\bat_cuda_detail|\bc10::|\btorch::|vectorized_elementwise_kernel|\bmulti_tensor_apply|"
        r"\bsoftmax_warp_(forward|backward)|\bcunn_|\bvoid at::",
    ),
    ("TensorFlow / Eigen", r"tensorflow::|Eigen::"),
    (
        "Triton",
        r"triton|gemm_fusion_|_0d1(d\d)*|^matmul_kernel|^_(attn_fwd|attn_bwd|layer_norm|fwd_kernel|bwd_kernel|"
        r"fwd_grouped_kernel)_?|^(fused_moe_kernel|kernel_unified_attention|kernel_paged_attention)",
    ),
    (
        "cuDNN",
        r"cudnn|xmma_(sparse_)?(conv|fprop|dgrad|wgrad|implicit|warp_specialized_implicit)|implicit_convolve|convolve_|"
        r"_(fprop|dgrad|wgrad)_|winograd|^bn_(fw|bw)_|conv2d_c1_k1|\bfft[123]d_(r2c|c2r)_\d|\bflip_filter|"
        r"pointwise_mult_and_sum_complex|RNN_blockPersist|LSTM_elementWise|nchwToNhwc|nhwcToNchw",
    ),
    ("cutlass", r"cutlass|cute::"),
    (
        "cuBLAS",
        r"cublas|nvjet|xmma_(sparse_)?gemm|^(maxwell|pascal|volta|turing|ampere|hopper|sm\d+)_.*(gemm|16816|1688|884)|gemv|gemmSN|"
        r"gemmk1|sgemm_largek|splitKreduce|splitK_|\bgemm_kernel|^dot_kernel|^reduce_1Block|trsm|^void gemm",
    ),
    ("cuFFT / rocFFT", r"cufft|_fft|^fft|rocfft|\bregular_fft|vector_fft"),
    ("CUB / Thrust", r"\bcub::|thrust::|rocprim::|hipcub"),
    ("GPU runtime", r"__amd_rocclr_|^Memset|^Memcpy|hipMem"),
    (
        XLA,
        r"fusion|^wrapped_|^(input|loop|concatenate|transpose|copy|scatter|reduce|sort|iota|broadcast|convert)(_[\w.]*)?(\.kd)?$|\bxla::|"
        r"redzone_checker|RepeatBufferKernel",
    ),
)
_PATTERNS = tuple(
    (name, re.compile(pattern, re.IGNORECASE if name != "Composable Kernel" else 0))
    for name, pattern in _LIBRARIES
)

# Instructions and tiles in the names of kernels for matrix units, by generation.
_TENSOR_CORE = re.compile(
    "|".join(
        (
            # Volta, Turing, Ampere, Ada (m×n×k of one instruction), cuDNN's convolutions
            r"h884|s884|c1688|h1688|s1688|16816|i8816|i16832|i16864|s161616|[hibdq]mma(?!p)|wmma|tensorop(?!with)|tf32|conv1x1|conv2d_c1_k1",
            r"dgrad_1x1_stride_2x2|direct_group|first_layer_wgrad_kernel|xmma_(gemm|fprop|dgrad|wgrad|implicit_gemm|sparse_(conv|gemm))",
            r"xmma_warp_specialized_implicit_gemm|flash_?(fwd|bwd|attn)|fmha|\bmarlin::|\bdeep_gemm::|flashinfer::\w*prefill",
            # Hopper: warp groups; cuBLAS calls its kernels nvjet
            r"gmma|nvjet|warpgroup(?!_reg)|mainloopsm90|cutlass3x_sm90|sm90a?_.*gemm",
            # Blackwell: fifth generation, tensor memory
            r"tcgen05|utc[a-z]?mma|(?<![a-z])umma|mainloopsm1[0-9]{2}|cutlass3x_sm1[0-9]{2}|sm1[0-2][0-9][af]?_.*(gemm|fprop|dgrad|wgrad|xmma)",
            # Triton's dot, where it is the kernel's purpose
            r"gemm_fusion_|triton_(gemm|mm|bmm|tem)_|triton_.*_(mm|bmm|addmm)_|^_?matmul_kernel|^_?attn_(fwd|bwd)|"
            r"^bwd_kernel_(dk_dv|dq|fuse)|^fused_moe_kernel|^kernel_unified_attention",
            # AMD: matrix instructions in Tensile's names (MI16x16x16x1), Composable Kernel's and MIOpen's
            r"_mi\d+x\d+x\d+(x\d+)?_|mfma|xdl|_gtcx|ck_tile::.*gemm",
        )
    ),
    re.IGNORECASE,
)
# Kernels whose name says that they multiply on the ordinary units.
_ORDINARY = re.compile(
    r"_ffma_|simt|_sgemm_(?!.*tf32)|_dgemm_(?!.*dmma)|flash_\w*(combine|dot_do_o|convert_dq)", re.IGNORECASE
)

# Operations (the last part of the name, without number) that matrix units can run.
_ELIGIBLE = re.compile(
    r"(Conv[23]D|Conv2DBackprop(Filter|Input)|Conv3DBackprop(Filter|Input)(V2)?|DepthwiseConv2dNative(Backprop(Filter|Input))?"
    r"|BatchMatMul(V\d)?|MatMul|FusedMatMul|Einsum|Xla(Dot|DotV2)|XlaConv(V2)?|CudnnRNN\w*)$"
    r"|^(dot_general|dot|convolution|conv_general_dilated|ragged_dot|custom_linear_solve_dot|dot_product_attention)$"
    r"|^(aten::)?(mm|addmm|bmm|baddbmm|matmul|linear|_?(cudnn_|miopen_)?convolution\w*|conv(_transpose)?[123]d"
    r"|_scaled_mm|_scaled_dot_product_\w+attention\w*|_flash_attention\w*|einsum)$"
    r"|^(cublas|cudnn-conv|custom-call-gemm|triton_gemm|gemm_fusion_dot)"
)
# Types in the names of kernels. cuBLAS calls its kernels nvjet_<operands, accumulator, result>: t is
# bfloat16, h is fp16, q is fp8.
_HALF = re.compile(r"half|fp16|bf16|bfloat16|nvjet_(sm\d+_)?[thq]|fp8|float8|e4m3|e5m2", re.IGNORECASE)
_LINE = 80
_LONGEST = 8_192  # longer names (template arguments) are matched up to this character
_NUMBER = re.compile(r"([._]\d+)+$")


@text_cache
def library_of(kernel: str, is_compiled: bool = False) -> str:
    """The library of a kernel. `is_compiled`: the trace links the kernel to an HLO instruction, so an unknown
    name is XLA's own.
    """
    for name, pattern in _PATTERNS:
        if pattern.search(kernel, 0, _LONGEST):
            return name
    return XLA if is_compiled else OTHER


@text_cache
def uses_tensor_cores(kernel: str) -> bool:
    """Whether a kernel's name indicates tensor cores (NVIDIA) or matrix cores (AMD)."""
    return (
        _TENSOR_CORE.search(kernel, 0, _LONGEST) is not None and _ORDINARY.search(kernel, 0, _LONGEST) is None
    )


def is_half_precision(text: str) -> bool:
    """Whether a kernel's name, or the text of a tensor's shape, indicates 16 bits or fewer."""
    return _HALF.search(text, 0, _LONGEST) is not None


def is_tensor_core_eligible(op: str, type_: str = "") -> bool:
    """Whether an operation multiplies matrices or convolves, so that tensor cores could run it."""
    leaf = op.rpartition("/")[2].rpartition("::")[2]
    return any(_ELIGIBLE.search(_NUMBER.sub("", word)) is not None for word in (leaf, type_) if word)


@text_cache
def short_name(kernel: str) -> str:
    """A kernel's name without template and function parameters, cut to 80 characters."""
    name = kernel.removeprefix("void ").replace("(anonymous namespace)::", "")
    base = name.partition("<")[0].partition("(")[0].strip() or name
    return base if len(base) <= _LINE else f"{base[: _LINE - 1]}…"
