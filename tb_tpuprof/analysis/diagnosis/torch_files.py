"""The origin of a frame of PyTorch's tracer, by its folder in `site-packages`:
`torch/nn/modules/linear.py(124): forward`.
"""

from __future__ import annotations

import re

_PLACE = re.compile(r"(?:.*(?:site|dist)-packages/)?(?P<package>\w+)(?:/[^():]*)?/[^/():]+\.pyx?\(\d+\): .+")
_FRAMEWORK = frozenset(("torch", "functorch"))
_LIBRARY = frozenset(
    [
        "PIL",
        "accelerate",
        "aiter",
        "albumentations",
        "apex",
        "bitsandbytes",
        "cv2",
        "datasets",
        "deepspeed",
        "diffusers",
        "einops",
        "fairscale",
        "fairseq",
        "fastai",
        "flash_attn",
        "fsspec",
        "huggingface_hub",
        "ignite",
        "importlib",
        "kornia",
        "lightning",
        "lightning_fabric",
        "megatron",
        "mmcv",
        "mmengine",
        "multiprocessing",
        "numba",
        "numpy",
        "pandas",
        "peft",
        "pytorch_lightning",
        "ray",
        "safetensors",
        "scipy",
        "sglang",
        "sklearn",
        "spacy",
        "streaming",
        "timm",
        "tokenizers",
        "torchaudio",
        "torchdata",
        "torchmetrics",
        "torchrec",
        "torchtext",
        "torchtune",
        "torchvision",
        "tqdm",
        "transformer_engine",
        "transformers",
        "triton",
        "trl",
        "vllm",
        "wandb",
        "webdataset",
        "xformers",
    ]
)


def is_framework(name: str) -> bool:
    """Whether a frame belongs to PyTorch."""
    return package_of(name) in _FRAMEWORK


def is_library(name: str) -> bool:
    """Whether a frame belongs to a package that jobs commonly install."""
    return package_of(name) in _LIBRARY


def package_of(name: str) -> str:
    """The installed package that a frame belongs to; empty if its folder names none."""
    if name.startswith("nn.Module: "):
        return ""
    match = _PLACE.fullmatch(name)
    return match["package"] if match else ""
