"""Snapshots of memory written by hand: pprof as bytes of fields, PyTorch's as the dicts that it pickles."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from tests.synthetic import field, varint

Frame = tuple[str, str, int]  # function, file, line
LIBRARY: Frame = ("apply", "/venv/site-packages/jax/_src/pjit.py", 900)
STEP: Frame = ("train_step", "/app/train.py", 41)
MAIN: Frame = ("main", "/app/train.py", 80)
LOAD: Frame = ("load", "/app/data.py", 7)


class Sample(NamedTuple):
    """Blocks of one stack, innermost frame first."""

    stack: Sequence[Frame]
    n_blocks: int
    size_bytes: int
    kind: str = "buffer"
    device: str = "TFRT_CPU_0"


def pprof(
    samples: Sequence[Sample],
    types: Sequence[tuple[str, str]] = (("allocations", "count"), ("space", "bytes")),
) -> bytes:
    """A profile as JAX writes it: values in the order of `types`, by unit."""
    texts: dict[str, int] = {"": 0}

    def number(text: str) -> int:
        return texts.setdefault(text, len(texts))

    body = b"".join(field(1, field(1, number(name)) + field(2, number(unit))) for name, unit in types)
    frames = list(dict.fromkeys(frame for sample in samples for frame in sample.stack))
    for sample in samples:
        value_of = {"count": sample.n_blocks, "bytes": sample.size_bytes}
        ids = b"".join(varint(frames.index(frame) + 1) for frame in sample.stack)
        values = b"".join(varint(value_of.get(unit, 0)) for _, unit in types)
        labels = {"kind": sample.kind, "device": sample.device}
        label = b"".join(
            field(3, field(1, number(key)) + field(2, number(text))) for key, text in labels.items() if text
        )
        body += field(2, (field(1, ids) if ids else b"") + field(2, values) + label)
    for i, (function, file, line) in enumerate(frames, 1):
        body += field(4, field(1, i) + field(4, field(1, i) + field(2, line)))
        body += field(5, field(1, i) + field(2, number(function)) + field(4, number(file)))
    return body + b"".join(field(6, text.encode()) for text in texts)


# Three unlike places: 3 + 2 blocks of 700 bytes in all, 1 of 5000, and 4 without a stack of 300 bytes.
SAMPLES = (
    Sample((LIBRARY, STEP, MAIN), 3, 600),
    Sample((STEP, MAIN), 2, 100, "executable"),
    Sample((LOAD, MAIN), 1, 5000, device="TFRT_CPU_1"),
    Sample((), 4, 300),
)


def torch_frames(*frames: Frame) -> list[dict[str, Any]]:
    """Frames as PyTorch's snapshots have them."""
    return [{"name": function, "filename": file, "line": line} for function, file, line in frames]


def torch_snapshot() -> dict[str, Any]:
    """Two devices: blocks in use of 512, 1024 and 2048 bytes (one of them freed, but in use by a stream), and
    free ones of 512 and 4096.
    """
    step = torch_frames(
        ("empty", "??", 0), ("forward", "/venv/site-packages/torch/nn/modules/linear.py", 5), STEP, MAIN
    )
    load = torch_frames(LOAD, MAIN)

    def block(size: int, requested: int, state: str, frames: list[dict[str, Any]]) -> dict[str, Any]:
        return {"address": 1, "size": size, "requested_size": requested, "state": state, "frames": frames}

    return {
        "segments": [
            {
                "device": 0,
                "address": 140_000_000_000_000,
                "total_size": 2048,
                "stream": 0,
                "blocks": [
                    block(512, 500, "active_allocated", step),
                    block(1024, 1000, "active_allocated", step),
                    block(512, 0, "inactive", []),
                ],
            },
            {
                "device": 1,
                "total_size": 6144,
                "blocks": [
                    block(2048, 2047, "active_pending_free", load),
                    block(4096, 0, "inactive", []),
                ],
            },
        ],
        "device_traces": [[], []],
        "allocator_settings": {"PYTORCH_CUDA_ALLOC_CONF": "", "garbage_collection_threshold": 0.0},
    }
