from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tb_tpuprof.analysis.events.kernel_names import is_half_precision
from tb_tpuprof.analysis.steps.kernel_precision import HALF, UNKNOWN, hlo_precision
from tb_tpuprof.ingest.opening import open_trace
from tests.builders import drawing

DATA = Path(__file__).parents[2] / "data" / "gpu"


@pytest.mark.parametrize(
    ("name", "is_half"),
    [
        ("nvjet_sm90_tst_256x128_64x4_1x2_h_bz_coopA_NNT", True),  # bfloat16
        ("nvjet_hsh_128x256_64x4_2x1_v_bz_coopA_TNN", True),  # fp16
        ("nvjet_sm100_qqtst_128x256_128x6_2x1_v_bz_TNT", True),  # fp8
        ("nvjet_sm90_sss_64x64_32x4_1x1_h_bz_TNN", False),  # fp32
        ("ampere_bf16_s16816gemm_bf16_128x128_ldg8_f2f_stages_32x5_nn", True),
        ("void at::native::vectorized_elementwise_kernel<4, at::native::AddFunctor<c10::BFloat16>>", True),
        ("volta_sgemm_128x64_nn", False),
        ("void at::native::vectorized_elementwise_kernel<4, at::native::AddFunctor<float>>", False),
    ],
)
def test_names_of_kernels_say_their_precision(name: str, is_half: bool) -> None:
    assert is_half_precision(name) == is_half


def test_the_program_says_the_precision_of_its_kernels() -> None:
    """By the program: all products and element-wise work in bfloat16, the loss's reduction and its last
    multiplication in float32.
    """
    trace = open_trace(str(DATA / "jax_sync1.xplane.pb.gz"))
    rows = np.arange(int(trace.line_offsets[1]))
    names = [trace.strings[i] for i in trace.metadata["name"][trace.events["metadata"][rows]].tolist()]
    found = {
        name
        for name, precision in zip(names, hlo_precision(trace, rows).tolist(), strict=True)
        if precision != HALF
    }
    assert found == {"input_reduce_fusion", "input_reduce_fusion_1", "loop_multiply_fusion_4"}


def test_without_a_program_the_precision_is_not_known() -> None:
    trace = drawing("""
        /device:GPU:0:
        stream  [kernel   ]
        """)
    assert hlo_precision(trace, np.arange(trace.n_events)).tolist() == [UNKNOWN]
