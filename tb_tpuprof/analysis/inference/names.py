"""Names of events that mark requests and forward passes, and what they say about them.

    BatchingSessionRun, ServingModelRun, TfrtModelRun      a request to a model server
    predict, serve_request 7, predict_iteration_12         a request that the user annotated
    execute_context_3(410)_generation_5(5)                 a pass of vLLM: 3 prompts (410 tokens), 5 sequences
    step[DECODE bs=32], step[EXTEND bs=2 toks=8]           a pass of SGLang

A pass works on several requests at once: on prompts (prefill), on the next token of sequences (decode), or on
both (mixed).
"""

from __future__ import annotations

import re
from enum import IntEnum
from typing import NamedTuple

from tb_tpuprof.analysis.events.text_cache import text_cache

SERVING_ROOTS = ("BatchingSessionRun", "ServingModelRun", "TfrtModelRun")
SESSION_ROOTS = ("SessionRun", "RunGraph")
BATCHES = ("ProcessBatch", "OrbaxServing::ProcessBatch")
UNKNOWN = -1

_WORDS = "predict|prediction|inference|infer|request|serve|generate|answer|prefill|decode|score|embed"
_REQUEST = re.compile(
    rf"(?P<stem>(?P<word>{_WORDS})(?:_(?:iteration|step|token|batch|request|call|loop|fn|function))?)"
    r"(?:[_ #:]*\d+)?",
    re.IGNORECASE,
)
_TRAINING = re.compile(r"(?:train|training)(?:_(?:step|batch|iteration|loop))?(?:[_ #:]*\d+)?", re.IGNORECASE)
_FUNCTION = re.compile(
    r"(?:(?:EagerLocalExecute: )?__inference_)?"
    r"(?P<stem>(?:one_step_on_data|multi_step_on_data)(?:_distributed)?|predict_(?:function|step)|"
    r"serving_default|signature_wrapper(?:_\w*?)?)(?:_\d+)?"
)
_TOKENS = r"\((?:sq)?(?P<{0}_tokens>\d+)[^)]*\)"
_VLLM = re.compile(
    r"execute_(?:\d+_)?context_(?P<prefill>\d+)"
    + _TOKENS.format("prefill")
    + r"_generation_(?P<decode>\d+)"
    + _TOKENS.format("decode")
)
_VLLM_OLD = re.compile(r"execute_new_(?P<prefill>\d+)_cached_(?P<decode>\d+)")
_SGLANG = re.compile(r"step\[(?P<mode>[A-Z_]+) bs=(?P<n>\d+)(?: toks=(?P<tokens>\d+))?[^\]]*\]")
_PREFILL_MODES = ("EXTEND", "PREFILL")
_MOST = 2**31 - 1  # numbers in names are counts of sequences and tokens
_TRAINS = re.compile(
    r"(?:.*/)?gradients?/.*|(?:Resource)?(?:Apply|SparseApply)[A-Z]\w*|.*:ResourceApply\w+|"
    r".*GradientDescent.*|"
    r"__inference_(?:train|multi_step_on_iterator|one_step_on_iterator)\w*|.*\btrain_(?:step|function)\b.*"
)


class Phase(IntEnum):
    """What a pass works on. NONE: a request, or unknown."""

    NONE = 0
    PREFILL = 1
    DECODE = 2
    MIXED = 3

    @property
    def label(self) -> str:
        """In tables; empty for NONE."""
        return "" if self is Phase.NONE else self.name.capitalize()


class Pass(NamedTuple):
    """A forward pass: how many sequences and tokens it works on, -1 if unknown."""

    phase: Phase
    n_prefill: int
    n_decode: int
    prefill_tokens: int = UNKNOWN
    decode_tokens: int = UNKNOWN


class Annotation(NamedTuple):
    """A request that the user or a framework named. `model`: the name without its number."""

    model: str
    phase: Phase


@text_cache
def pass_of(name: str) -> Pass | None:
    """The pass that an event's name describes; None for other names, and for a pass without sequences."""
    if not name.startswith(("execute_", "step[")):
        return None
    if match := _SGLANG.fullmatch(name):
        return _sglang(match["mode"], match["n"], match["tokens"])
    match = _VLLM.fullmatch(name) or _VLLM_OLD.fullmatch(name)
    if not match:
        return None
    values = match.groupdict()
    prefill, decode = _count(values["prefill"]), _count(values["decode"])
    tokens = [_count(values.get(f"{part}_tokens")) for part in ("prefill", "decode")]
    phase = _phase(prefill, decode)
    return Pass(phase, prefill, decode, *tokens) if phase is not Phase.NONE else None


def _sglang(mode: str, n: str, tokens: str | None) -> Pass | None:
    size = _count(n)
    if size <= 0:
        return None
    if mode in _PREFILL_MODES:
        return Pass(Phase.PREFILL, size, 0, _count(tokens), 0)
    if mode == "MIXED":
        return Pass(Phase.MIXED, UNKNOWN, UNKNOWN)
    return Pass(Phase.DECODE, 0, size, 0, size if mode == "DECODE" else UNKNOWN)


def _phase(n_prefill: int, n_decode: int) -> Phase:
    if n_prefill > 0:
        return Phase.MIXED if n_decode > 0 else Phase.PREFILL
    return Phase.DECODE if n_decode > 0 else Phase.NONE


def _count(digits: str | None) -> int:
    """A count, -1 if there is none or if it is too large to be one."""
    return int(digits) if digits and len(digits) <= 10 and int(digits) <= _MOST else UNKNOWN


@text_cache
def annotation_of(name: str) -> Annotation | None:
    """The request that an annotation's name marks (`predict 7`, `predict_iteration_12`); None for others."""
    match = _REQUEST.fullmatch(name)
    if not match:
        return None
    word = match["word"].lower()
    return Annotation(match["stem"], Phase[word.upper()] if word in ("prefill", "decode") else Phase.NONE)


@text_cache
def predicting_function(name: str) -> str:
    """The function that predicts or serves whose run this is (`one_step_on_data`); empty for others."""
    match = _FUNCTION.fullmatch(name)
    return match["stem"] if match else ""


@text_cache
def may_be_data(name: str) -> bool:
    """Whether an annotation may mark work on a training job's data, such as `decode`."""
    return not name.lower().startswith(("predict", "infer", "generate"))


@text_cache
def is_training_step(name: str) -> bool:
    """Whether an annotation's name marks a step of a training loop (`train 7`, `train_step`)."""
    return _TRAINING.fullmatch(name) is not None


@text_cache
def trains(name: str) -> bool:
    """Whether only a training job has an event of this name: gradients, an optimizer's update."""
    return _TRAINS.fullmatch(name) is not None
