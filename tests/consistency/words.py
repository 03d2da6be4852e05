"""Words that belong to one framework: which of them a sentence uses, beside the framework that the overview
names.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from tb_tpuprof.tools.payload import Payload

JAX, TENSORFLOW, PYTORCH = "JAX", "TensorFlow", "PyTorch"
_WORDS = {
    JAX: re.compile(r"\bJAX\b|\bjax\.\w+|block_until_ready|\bpjit\b|lax\.scan|donate_argnums|\bGrain\b"),
    PYTORCH: re.compile(
        r"\btorch\.\w+|\bPyTorch\b|DataLoader|\.item\(\)|pin_memory|\bnum_workers\b|prof\.step\(\)|record_function"
    ),
    TENSORFLOW: re.compile(
        r"\bTensorFlow\b|tf\.function|jit_compile|\bKeras\b|\btf\.profiler|steps_per_execution"
    ),
}
_TF_DATA = re.compile(r"\btf\.data\b")


def told_framework(pages: Mapping[str, Payload]) -> str:
    """What the overview's environment says, such as `JAX, with tf.data`; empty where it knows none."""
    overview = pages.get("overview_page")
    if overview is None:
        return ""
    names, values = overview.tables["environment"].columns[:2]
    told = {
        (names.strings or ())[a]: (values.strings or ())[b]
        for a, b in zip(names.values.tolist(), values.values.tolist(), strict=True)
    }
    framework = told.get("Framework", "")
    return "" if framework.startswith("unknown") else framework


def foreign_words(text: str, framework: str) -> list[str]:
    """Words of other frameworks than the run's in a sentence. tf.data is TensorFlow's, and others' where they
    use it.
    """
    found = [
        match[0]
        for name, pattern in _WORDS.items()
        if not framework.startswith(name)
        for match in pattern.finditer(text)
    ]
    may_use_tf_data = framework.startswith(TENSORFLOW) or "tf.data" in framework
    return found + ([] if may_use_tf_data else [match[0] for match in _TF_DATA.finditer(text)])
