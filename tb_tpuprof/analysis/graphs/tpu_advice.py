"""An operation that a TPU cannot run, and the reason -> the kind of operation, and the change that helps this
kind.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from tb_tpuprof.analysis.graphs.tpu_compatibility import REFERENCE

_OUTSIDE = (
    "`tf.compat.v1.tpu.outside_compilation` runs it on the host, at the cost of a transfer in each step"
)


@dataclass(frozen=True)
class Advice:
    """A kind of operation in a word or two, and the recommended change."""

    kind: str
    text: str


_BY_NAME = tuple(
    (re.compile(pattern), Advice(kind, text))
    for kind, pattern, text in (
        (
            "Python code",
            r"^(Eager)?PyFunc",
            "Move `tf.py_function` and `tf.numpy_function` into the input pipeline (`Dataset.map`), or "
            f"write them with TensorFlow operations. If one must stay, {_OUTSIDE}.",
        ),
        (
            "summary",
            r"Summary|^WriteGraph|^WriteAudio|^WriteImage|^WriteHistogram|^WriteScalar",
            "Return the value from the step and write it outside `strategy.run`, or call "
            "`tf.config.set_soft_device_placement(True)`, which moves summaries to the host automatically.",
        ),
        (
            "printing",
            r"^(Print|PrintV2|StringFormat|LogicalPrint|Timestamp)$",
            "Return the value and print it outside `strategy.run`, or call "
            "`tf.config.set_soft_device_placement(True)`, which moves printing to the host automatically.",
        ),
        (
            "lookup table",
            r"HashTable|LookupTable|InitializeTable|^AnonymousMutable",
            "Look words up in the input pipeline: call `StringLookup`, `TextVectorization` or the table in "
            "`Dataset.map` and feed the ids.",
        ),
        (
            "decoding",
            r"^(Decode|Encode|ParseExample|ParseSingle|ParseSequence|ParseTensor|ExtractJpeg|ExtractGlimpse)",
            "Decode and parse in the input pipeline (`Dataset.map(…, num_parallel_calls=tf.data.AUTOTUNE)`) "
            "and feed numeric tensors.",
        ),
        (
            "file",
            r"^(ReadFile|WriteFile|MatchingFiles|.*RecordReader|FixedLengthRecord|WholeFile|TextLine)",
            "Read files in the input pipeline, and write them outside `strategy.run`.",
        ),
        (
            "string",
            r"^(AsString|StringTo|StringJoin|StringLower|StringUpper|StringSplit|StringStrip|StringLength|StringN|Substr|"
            r"Regex|StaticRegex|Unicode|ReduceJoin|UnsortedSegmentJoin|SentencepieceOp|Base64|Fingerprint)|^(String|Text).*",
            "TPUs do not support strings: process them in the input pipeline (`Dataset.map`) and feed ids or "
            f"bytes as integers. If one must stay, {_OUTSIDE}.",
        ),
        (
            "sparse tensor",
            r"Sparse",
            "Make it dense before it reaches the device: `tf.sparse.to_dense` in the input pipeline; for "
            "embeddings, `tfrs.layers.embedding.TPUEmbedding` or a dense `tf.gather`.",
        ),
        (
            "ragged tensor",
            r"Ragged",
            "Give it a fixed size before it reaches the device: `RaggedTensor.to_tensor(shape=…)` in the "
            "input pipeline, with a mask.",
        ),
        (
            "data-dependent shape",
            r"^(Unique.*|NonMaxSuppression.*|.*BooleanMask|Where.*|ListDiff|SetSize|DenseToDense.*|CombinedNonMax.*|"
            r"Bincount|CandidateSampler|.*CandidateSampler|EditDistance|CTC.*)$",
            "XLA needs sizes known at compile time: pad to a bound and mask, for example with "
            "`tf.image.non_max_suppression_padded` or `tf.where` with three arguments; otherwise do it on "
            "the host.",
        ),
        (
            "image resizing",
            r"^(Resize|CropAndResize|QuantizedResize|ImageProjective|DrawBoundingBoxes|SampleDistorted|RandomCrop|"
            r"ScaleAndTranslate)",
            "`tf.image.resize` has kernels for `bilinear` and `nearest`; do other resizing and cropping in "
            "the input pipeline.",
        ),
        (
            "random numbers",
            r"Random|Multinomial|Stateless.*Binomial|Poisson",
            "Use `tf.random.stateless_uniform` or `stateless_normal`, which have kernels, and transform "
            "them; or draw the numbers in the input pipeline.",
        ),
        (
            "cuDNN",
            r"[Cc]udnn",
            "It runs only on NVIDIA GPUs. Build the layer where no GPU is visible, or pass `use_cudnn=False` "
            "to Keras' `LSTM` and `GRU`: then it consists of operations that every device has.",
        ),
        (
            "queue or staging",
            r"^(Stage|Unstage|MapStage|MapUnstage|OrderedMap|Barrier|PriorityQueue|RandomShuffleQueue|PaddingFIFO|FIFOQueue|"
            r"Accumulator|ConditionalAccumulator)",
            "Feed the job with `tf.data` instead of queues.",
        ),
        (
            "communication",
            r"^(_?Send|_?Recv|_HostSend|_HostRecv|Nccl.*|Collective.*|RemoteCall)$",
            "Leave communication to `tf.distribute.TPUStrategy`; within a step use "
            "`replica_context.all_reduce`.",
        ),
        (
            "linear algebra",
            r"^(Lu|Eig|BatchEig|MatrixExponential|MatrixLogarithm|MatrixSquareRoot|MatrixDeterminant|LogMatrixDeterminant|"
            r"MatrixSolveLs|BandedTriangularSolve|SelfAdjointEig|BatchSvd|BatchCholesky.*|BatchMatrix.*)$",
            "`Cholesky`, `Qr`, `SelfAdjointEigV2`, `MatrixSolve` and `MatrixTriangularSolve` have kernels: "
            "a determinant follows from `Qr` or `Cholesky`. Run other operations on the host.",
        ),
        (
            "variable of TensorFlow 1",
            r"^(Variable|VariableV2|TemporaryVariable|IsVariableInitialized|Assign|AssignAdd|AssignSub|Apply.*|Scatter(Add|"
            r"Sub|Mul|Div|Min|Max|Update|NdAdd|NdSub|NdUpdate)|Ref.*|CountUpTo)$",
            "Use resource variables: `tf.compat.v1.enable_resource_variables()`, or `get_variable(…, "
            "use_resource=True)`, or `tf.Variable` in TensorFlow 2.",
        ),
        (
            "quantized",
            r"^Quantiz|^Requantiz|^Dequantiz",
            "Train and run in bfloat16, or quantize with the `UniformQuantize…` operations, which have "
            "kernels.",
        ),
    )
)
_REFERENCE = next(advice for _, advice in _BY_NAME if advice.kind == "variable of TensorFlow 1")
_STRING = next(advice for _, advice in _BY_NAME if advice.kind == "string")
_RESOURCE = Advice(
    "handle",
    "The object behind the handle is on the host (a table, an iterator, a queue): use it in the input "
    "pipeline.",
)
_OTHER = Advice(
    "other",
    "Write it with operations that have a kernel, or move it into the input pipeline. If it must stay, "
    f"{_OUTSIDE}.",
)


def advice(op: str, reason: str) -> Advice:
    """Advice on an operation that is incompatible for a reason of `tpu_compatibility`."""
    wrong_type = reason.removeprefix("no kernel for ")
    if reason == REFERENCE:
        return _REFERENCE
    for pattern, by_name in _BY_NAME:
        if pattern.search(op) and not (wrong_type == "string" and by_name.kind != "string"):
            return by_name
    if wrong_type == "string":
        return _STRING
    if wrong_type in ("resource", "variant"):
        return _RESOURCE
    if wrong_type not in (reason, "TPUs"):
        target_type = "float32 or bfloat16" if wrong_type.startswith(("float", "complex")) else "int32"
        text = f"Cast to {target_type} before it: TPUs have the operation, but not for {wrong_type}."
        return Advice("type", text)
    return _OTHER
