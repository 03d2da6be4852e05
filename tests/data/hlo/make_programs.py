"""Compile small programs with JAX and write what XLA itself says of them: serialized HLO, its text, its cost
analysis.

    python tests/data/hlo/make_programs.py [OUTPUT]     (needs JAX; without OUTPUT writes programs.json.gz
    beside this file)

Programs are compiled by XLA:CPU for four devices. `opcodes.txt` adds one module for each opcode, from text.
Where XLA gives up on a custom call it says -1.
"""

from __future__ import annotations

import base64
import gzip
import json
import os
import sys
from pathlib import Path

os.environ["JAX_PLATFORMS"] = "cpu"
os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=4"

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.sharding import Mesh
from jax.sharding import PartitionSpec as P
from jaxlib import _hlo, _jax

FOUND = {}
PROGRAMS = {}


def array(*dims, dtype=jnp.float32):
    return jax.ShapeDtypeStruct(dims, dtype)


def prog(name, kind, *shapes):
    def keep(function):
        PROGRAMS[name] = (kind, function, shapes)
        return function

    return keep


def varint(data, at):
    value = shift = 0
    while True:
        byte = data[at]
        value |= (byte & 127) << shift
        at, shift = at + 1, shift + 7
        if byte < 128:
            return value, at


def encoded(value):
    out = b""
    while value > 127:
        out += bytes([value & 127 | 128])
        value >>= 7
    return out + bytes([value])


def changed(data, changes):
    """The message with fields of some numbers made anew from their bytes."""
    at, out = 0, b""
    while at < len(data):
        tag, after = varint(data, at)
        value, after = varint(data, after)
        end = after + (value if tag & 7 == 2 else 0)
        part = data[at:end]
        if tag >> 3 in changes:
            inner = changes[tag >> 3](data[after:end])
            part = encoded(tag) + encoded(len(inner)) + inner
        out += part
        at = end
    return out


def without_folders(module):
    """The module with names of source files in place of paths on the machine that compiled it."""
    return changed(module, {17: lambda index: changed(index, {1: lambda path: path.rpartition(b"/")[2]})})


def keep(name, kind, proto, costs):
    """Round trip through the serialized form, so that text and bytes tell the same."""
    data = without_folders(proto)
    module = _hlo.HloModule.from_serialized_hlo_module_proto(data)
    large = _hlo.HloPrintOptions()
    large.print_large_constants = True
    FOUND[name] = {
        "kind": kind, "proto": base64.b64encode(data).decode(), "flops": costs.get("flops", 0.0),
        "transcendentals": costs.get("transcendentals", 0.0), "bytes": costs.get("bytes accessed", 0.0),
        "long": module.to_string(large), "short": module.to_string(_hlo.HloPrintOptions.short_parsable()),
    }  # fmt: skip


def compile_all():
    for name, (kind, function, shapes) in PROGRAMS.items():
        compiled = function(*shapes) if name in SHARDED else jax.jit(function)
        compiled = compiled.lower(*shapes).compile()
        keep(
            name,
            kind,
            compiled.runtime_executable().hlo_modules()[0].as_serialized_hlo_module_proto(),
            compiled.cost_analysis(),
        )
    client = jax.devices()[0].client
    blocks = Path(__file__).with_name("opcodes.txt").read_text().split("=== ")[1:]
    for name, text in (block.split("\n", 1) for block in blocks):
        module = _hlo.hlo_module_from_text(text)
        costs = _jax.hlo_module_cost_analysis(client, module)
        keep(f"op {name}", "op", module.as_serialized_hlo_module_proto(), costs)


prog("matmul", "matmul", array(128, 256), array(256, 512))(lambda a, b: a @ b)
prog("matmul_bf16", "matmul", array(128, 256, dtype=jnp.bfloat16), array(256, 512, dtype=jnp.bfloat16))(
    lambda a, b: a @ b
)
prog("batched_matmul", "matmul", array(8, 64, 32), array(8, 32, 48))(
    lambda a, b: jnp.einsum("bij,bjk->bik", a, b)
)
prog("einsum_4d", "matmul", array(4, 32, 8, 16), array(4, 32, 8, 16))(
    lambda a, b: jnp.einsum("bqhd,bkhd->bhqk", a, b)
)
prog("int8_matmul", "matmul", array(64, 128, dtype=jnp.int8), array(128, 64, dtype=jnp.int8))(
    lambda a, b: lax.dot(a, b, preferred_element_type=jnp.int32)
)
prog("mlp", "matmul", array(64, 128), array(128, 512), array(512, 128))(
    lambda x, a, b: jax.nn.gelu(x @ a) @ b
)
prog("mlp_grad", "matmul", array(64, 128), array(128, 512), array(512, 128))(
    jax.grad(lambda x, a, b: (jax.nn.relu(x @ a) @ b).sum(), argnums=(1, 2))
)


def attn(q, k, v):
    s = jnp.einsum("bqhd,bkhd->bhqk", q, k) / 8.0
    p = jax.nn.softmax(s, -1)
    return jnp.einsum("bhqk,bkhd->bqhd", p, v)


prog("attention", "matmul", array(2, 128, 4, 64), array(2, 128, 4, 64), array(2, 128, 4, 64))(attn)
prog("attention_grad", "matmul", array(2, 64, 4, 32), array(2, 64, 4, 32), array(2, 64, 4, 32))(
    jax.grad(lambda q, k, v: attn(q, k, v).sum(), argnums=(0, 1, 2))
)
cdn = ("NHWC", "HWIO", "NHWC")


def conv(**k):
    return lambda x, w: lax.conv_general_dilated(
        x,
        w,
        k.get("s", (1, 1)),
        k.get("p", "SAME"),
        lhs_dilation=k.get("ld"),
        rhs_dilation=k.get("rd"),
        dimension_numbers=cdn,
        feature_group_count=k.get("g", 1),
        batch_group_count=k.get("bg", 1),
    )


prog("conv_same", "conv", array(4, 32, 32, 16), array(3, 3, 16, 32))(conv())
prog("conv_valid", "conv", array(4, 32, 32, 16), array(3, 3, 16, 32))(conv(p="VALID"))
prog("conv_stride", "conv", array(4, 33, 33, 16), array(5, 5, 16, 32))(conv(s=(2, 2)))
prog("conv_dilated", "conv", array(4, 32, 32, 16), array(3, 3, 16, 32))(conv(rd=(2, 3)))
prog("conv_transposed", "conv", array(4, 16, 16, 16), array(4, 4, 16, 32))(
    conv(ld=(2, 2), p=((2, 2), (1, 3)))
)
prog("conv_grouped", "conv", array(4, 32, 32, 16), array(3, 3, 4, 32))(conv(g=4))
prog("conv_depthwise", "conv", array(4, 32, 32, 16), array(3, 3, 1, 16))(conv(g=16))
prog("conv_batch_group", "conv", array(8, 16, 16, 4), array(3, 3, 4, 8))(conv(bg=4))
prog("conv_negative_pad", "conv", array(2, 16, 16, 4), array(3, 3, 4, 8))(conv(p=((-1, 2), (3, -2))))
prog("conv_1d", "conv", array(4, 128, 8), array(5, 8, 16))(
    lambda x, w: lax.conv_general_dilated(x, w, (1,), "SAME", dimension_numbers=("NWC", "WIO", "NWC"))
)
prog("conv_3d", "conv", array(2, 8, 16, 16, 4), array(3, 3, 3, 4, 8))(
    lambda x, w: lax.conv_general_dilated(
        x, w, (1, 2, 1), "SAME", dimension_numbers=("NDHWC", "DHWIO", "NDHWC")
    )
)
prog("conv_grad", "conv", array(4, 16, 16, 8), array(3, 3, 8, 16))(
    jax.grad(lambda x, w: (conv(s=(2, 2))(x, w) ** 2).sum(), argnums=(0, 1))
)
prog("resnet_block", "conv", array(2, 16, 16, 16), array(3, 3, 16, 16), array(3, 3, 16, 16))(
    lambda x, a, b: jax.nn.relu(x + conv()(jax.nn.relu(conv()(x, a)), b))
)
prog("softmax", "other", array(128, 512))(lambda x: jax.nn.softmax(x, -1))
prog("layer_norm", "other", array(64, 512), array(512), array(512))(
    lambda x, g, b: (x - x.mean(-1, keepdims=True)) * lax.rsqrt(x.var(-1, keepdims=True) + 1e-5) * g + b
)
prog("gelu", "other", array(256, 256))(jax.nn.gelu)
prog("elementwise_chain", "other", array(256, 256), array(256, 256))(
    lambda a, b: jnp.exp(a) * b + jnp.tanh(a) - jnp.sqrt(jnp.abs(b))
)
prog("reduce_sum", "other", array(128, 64, 32))(lambda x: x.sum((0, 2)))
prog("reduce_max_arg", "other", array(128, 256))(lambda x: (x.max(-1), x.argmax(-1)))
prog("cumsum", "other", array(64, 128))(lambda x: jnp.cumsum(x, 1))
prog("max_pool", "other", array(4, 32, 32, 8))(
    lambda x: lax.reduce_window(x, -jnp.inf, lax.max, (1, 3, 3, 1), (1, 2, 2, 1), "SAME")
)
prog("avg_pool_grad", "other", array(4, 32, 32, 8))(
    jax.grad(lambda x: lax.reduce_window(x, 0.0, lax.add, (1, 2, 2, 1), (1, 2, 2, 1), "VALID").sum())
)
prog("max_pool_grad", "other", array(2, 16, 16, 4))(
    jax.grad(lambda x: lax.reduce_window(x, -jnp.inf, lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID").sum())
)
prog("gather", "other", array(1000, 64), array(128, dtype=jnp.int32))(lambda t, i: t[i])
prog("scatter_add", "other", array(1000, 64), array(128, dtype=jnp.int32), array(128, 64))(
    lambda t, i, u: t.at[i].add(u)
)
prog("embedding_grad", "other", array(500, 32), array(64, dtype=jnp.int32))(
    jax.grad(lambda t, i: (t[i] ** 2).sum())
)
prog("dynamic_slice", "other", array(256, 64), array(dtype=jnp.int32))(
    lambda x, i: lax.dynamic_slice(x, (i, 0), (16, 64)) * 2.0
)
prog("dynamic_update", "other", array(256, 64), array(16, 64), array(dtype=jnp.int32))(
    lambda x, u, i: lax.dynamic_update_slice(x, u, (i, 0))
)
prog("slice_concat", "other", array(64, 64), array(64, 64))(
    lambda a, b: jnp.concatenate([a[:32], b[16:]], 0) + 1
)
prog("pad_reverse", "other", array(64, 64))(lambda x: jnp.flip(jnp.pad(x, ((1, 2), (3, 4)))))
prog("transpose", "other", array(64, 128, 32))(lambda x: x.transpose(2, 0, 1) * 1.5)
prog("sort", "other", array(64, 256))(lambda x: jnp.sort(x, -1))
prog("top_k", "other", array(64, 256))(lambda x: lax.top_k(x, 8))
prog("fft", "other", array(16, 256, dtype=jnp.complex64))(jnp.fft.fft)
prog("rfft2", "other", array(8, 64, 64))(jnp.fft.rfft2)
prog("irfft", "other", array(8, 129, dtype=jnp.complex64))(lambda x: jnp.fft.irfft(x, 256))
prog("random_normal", "other", array(2, dtype=jnp.uint32))(lambda k: jax.random.normal(k, (64, 64)))
prog("random_bits", "other", array(2, dtype=jnp.uint32))(lambda k: jax.random.bits(k, (256,)))
prog("cond", "other", array(64, 64), array(dtype=jnp.bool_))(
    lambda x, p: lax.cond(p, lambda y: jnp.sin(y) @ y, lambda y: y * 2, x)
)
prog("while_known", "matmul", array(64, 64))(lambda x: lax.fori_loop(0, 10, lambda i, y: y @ x, x))
prog("scan_rnn", "matmul", array(32, 64), array(64, 64), array(16, 32, 64))(
    lambda h, w, xs: lax.scan(lambda c, x: (jnp.tanh(c @ w + x), c.sum()), h, xs)
)
prog("while_unknown", "other", array(64, 64))(
    lambda x: lax.while_loop(lambda y: y.sum() > 1.0, lambda y: y * 0.5, x)
)
prog("triangular_solve", "other", array(32, 32), array(32, 16))(
    lambda a, b: lax.linalg.triangular_solve(a, b, left_side=True, lower=True)
)
prog("cholesky", "other", array(4, 32, 32))(jnp.linalg.cholesky)
prog("int4", "other", array(128, 128, dtype=jnp.int4))(lambda a: a.astype(jnp.float32) * 2)
prog("fp8", "other", array(128, 128, dtype=jnp.float8_e4m3fn))(lambda a: a.astype(jnp.float32) + 1)
prog("select_clamp", "other", array(128, 128), array(128, 128))(
    lambda a, b: jnp.where(a > b, jnp.clip(a, 0, 1), b)
)
prog("adam", "other", array(256, 256), array(256, 256), array(256, 256), array(256, 256))(
    lambda p, g, m, v: (
        p - 1e-3 * (0.9 * m + 0.1 * g) / (jnp.sqrt(0.99 * v + 0.01 * g * g) + 1e-8),
        0.9 * m + 0.1 * g,
        0.99 * v + 0.01 * g * g,
    )
)
prog("batch_norm", "other", array(16, 8, 8, 32))(
    lambda x: (x - x.mean((0, 1, 2))) / jnp.sqrt(x.var((0, 1, 2)) + 1e-5)
)
prog("cross_entropy", "other", array(64, 1000), array(64, dtype=jnp.int32))(
    lambda x, y: -jnp.take_along_axis(jax.nn.log_softmax(x), y[:, None], 1).mean()
)
prog("complex", "other", array(64, 64, dtype=jnp.complex64))(lambda x: (x * x.conj()).real)
prog("erf_power", "other", array(64, 64))(lambda x: lax.erf(x) ** 1.7 + jnp.log1p(jnp.expm1(x)))


def sharded(name, function, into, out):
    """A program on four devices with a collective in it."""

    def compiled(*_shapes):
        mesh = Mesh(np.array(jax.devices()[:4]), ("x",))
        return jax.jit(jax.shard_map(function, mesh=mesh, in_specs=into, out_specs=out, check_vma=False))

    PROGRAMS[name] = ("other", compiled, (array(64, 32),))


sharded("all_reduce", lambda x: lax.psum(x * 2, "x"), P("x"), P())
sharded("all_gather", lambda x: lax.all_gather(x, "x"), P("x"), P())
sharded("reduce_scatter", lambda x: lax.psum_scatter(x, "x", tiled=True), P(), P("x"))
sharded("all_to_all", lambda x: lax.all_to_all(x, "x", 0, 0, tiled=True), P("x"), P("x"))
sharded("permute", lambda x: lax.ppermute(x, "x", [(0, 1), (1, 2), (2, 3), (3, 0)]), P("x"), P("x"))
SHARDED = ("all_reduce", "all_gather", "reduce_scatter", "all_to_all", "permute")

if __name__ == "__main__":
    compile_all()
    target = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).with_name("programs.json.gz")
    target.write_bytes(gzip.compress(json.dumps(FOUND).encode(), mtime=0))
    print(f"{len(FOUND)} programs, {target.stat().st_size} bytes")
