"""A job's source files, assembled from parts with neutral names, and the places of the planted functions."""

from __future__ import annotations

import ast
import re
from string import Template
from typing import Any

from tests.exam.jobs import Job
from tests.exam.parts import Part, put

_HEAD = """
import time

@library
import numpy as np
from $rig import P, clock, go
@imports
@main

"""
_LOOP = """
def $walk(n):
    global W@globals
    for k in range(n):
        t = clock()
        @body
        P.rows.append((t, clock()))
    @last
    P.end = clock()


go(make, $walk)
"""
_JAX = """
@start
P.size = @size
X = np.random.default_rng(@seed).standard_normal((@size, @size)).astype(np.float32)
S = jnp.linspace(0.0, 1.0, 4096)


@side


@model


def make():
    global $step, W
    jax.clear_caches()
    $step = @compiled
    W = @weights
    @make


"""
_TENSORFLOW = """
P.size = @size
X = tf.constant(np.random.default_rng(@seed).standard_normal((@size, @size)).astype(np.float32))
S = tf.linspace(0.0, 1.0, 4096)
W = tf.Variable(tf.ones((@size, @size)))


@side


@model


def make():
    global $step
    $step = tf.function($cell)
    @make


"""
_KERAS = """
X = Y = M = D = None


@side


class $cell(keras.callbacks.Callback):
    def on_train_batch_begin(self, i, logs=None):
        P.rows.append((clock(), 0.0))
        @enter

    def on_train_batch_end(self, i, logs=None):
        @leave

    def on_epoch_end(self, i, logs=None):
        P.end = clock()


def make():
    global M, X, Y, D
    keras.utils.clear_session()
    X = np.random.default_rng(@seed).standard_normal((P.work, @size)).astype(np.float32)
    Y = np.ones((P.work, 1), np.float32)
    M = keras.Sequential([keras.Input((@size,)), @layers, keras.layers.Dense(1)])
    M.compile(@compiled)
    D = @fetch
    @make


def $walk(n):
    M.fit(D, steps_per_epoch=n, epochs=1, verbose=0, callbacks=[@hooks])


go(make, $walk)
"""
_LIBRARIES = {
    "jax": "import jax\nimport jax.numpy as jnp",
    "tensorflow": "import tensorflow as tf",
    "keras": "import keras\nimport tensorflow as tf",
}
# The compute of a step: `w` are weights, `x` is the input; the last value is the loss.
_MODELS = {
    ("jax", "chain"): """
        def $cell(w, x):
            for _ in range(P.work):
                w = jnp.tanh(w @ x) * 0.01
            @cell
            return w, jnp.mean(w)
        """,
    ("jax", "loop"): """
        def $cell(w, x):
            w = jax.lax.fori_loop(0, P.work, lambda i, w: jnp.tanh(w @ x) * 0.01, w)
            @cell
            return w, jnp.mean(w)
        """,
    ("jax", "scan"): """
        def $cell(w, x):
            w, _ = jax.lax.scan(lambda w, i: (jnp.tanh(w @ x) * 0.01 + i, None), w, jnp.zeros(P.work))
            @cell
            return w, jnp.mean(w)
        """,
    ("jax", "gradient"): """
        def $cost(w, x):
            y = x
            for _ in range(P.work):
                y = jnp.tanh(y @ w) * 0.01
            return jnp.mean(y * y)


        def $cell(w, x):
            o, d = jax.value_and_grad($cost)(w, x)
            w = w - 0.01 * d
            @cell
            return w, o
        """,
    ("tensorflow", "chain"): """
        def $cell(x):
            w = x
            for _ in range(P.work):
                w = tf.tanh(w @ W) * 0.01
            @cell
            W.assign_add(w * 1e-6)
            return tf.reduce_mean(w)
        """,
    ("tensorflow", "loop"): """
        def $cell(x):
            w = x
            for _ in tf.range(P.work):
                w = tf.tanh(w @ W) * 0.01
            @cell
            W.assign_add(w * 1e-6)
            return tf.reduce_mean(w)
        """,
    ("tensorflow", "gradient"): """
        def $cell(x):
            with tf.GradientTape() as tape:
                w = x
                for _ in range(P.work):
                    w = tf.tanh(w @ W) * 0.01
                @cell
                o = tf.reduce_mean(w * w)
            W.assign_sub(0.01 * tape.gradient(o, W))
            return o
        """,
}
_ENDS = {"wait": "o.block_until_ready()", "float": "float(o)", "none": ""}
_MESH = """
MESH = jax.sharding.Mesh(np.array(jax.devices()), ('a',))
ROWS = jax.sharding.NamedSharding(MESH, jax.sharding.PartitionSpec('a'))
ALL = jax.sharding.NamedSharding(MESH, jax.sharding.PartitionSpec())
"""
_JOINED = """
jax.config.update('jax_cpu_collectives_implementation', 'gloo')
jax.distributed.initialize(P.meet, P.n_hosts, P.host)
"""


def filled(text: str, part: Part, job: Job, place: int) -> str:
    """A part's text with the names and numbers of its place: 0 is the first cause, 1 the second."""
    numbers = {"on": ("P.on", "P.also"), "amount": ("P.amount", "P.more"), "spent": ("P.spent", "P.extra")}
    return Template(text).safe_substitute(
        job.roles[place], **{key: pair[place] for key, pair in numbers.items()}
    )


class Source:
    """The source of one job."""

    def __init__(self, job: Job) -> None:
        self.job = job
        self.files = self._written()

    @property
    def main(self) -> str:
        """The file that is run."""
        return f"{self.job.names['file']}.py"

    def culprit(self, place: int) -> dict[str, Any]:
        """Places of a part's planted function, and other names that an answer may give."""
        part, roles = self.job.parts[place], {**self.job.names, **self.job.roles[place]}
        names = [
            *(roles[role] for role in part.culprits),
            *(filled(name, part, self.job, place) for name in part.names),
        ]
        places = [one for role in part.culprits for one in self._places(roles[role])]
        is_seen = part.seen == "always" or (part.seen == "python" and self.job.tracer > 0)
        return {
            "function": names[0] if names else "",
            "names": names,
            "places": places,
            "visible": bool(names) and is_seen,
        }

    def _places(self, name: str) -> list[dict[str, Any]]:
        """Files and lines of a function or class."""
        places = []
        for file, text in self.files.items():
            for node in ast.walk(ast.parse(text)):
                if isinstance(node, ast.FunctionDef | ast.ClassDef) and node.name == name:
                    places.append(
                        {"name": name, "file": file, "line": node.lineno, "last_line": node.end_lineno}
                    )
        return places

    def _all(self, field: str) -> list[str]:
        return [
            filled(text, part, self.job, place)
            for place, part in enumerate(self.job.parts)
            if (text := getattr(part, field))
        ]

    def _step(self) -> str:
        """The lines of one step, in its annotation or without."""
        job = self.job
        fetch = "x = " + (self._all("fetch") or ["X"])[0]
        call = self._all("call") or ["W, o = $step(W, x)" if job.framework == "jax" else "o = $step(x)"]
        end = _ENDS[job.end] if job.framework == "jax" else "float(o)"
        inner = [*self._all("before"), *call, *self._all("after"), end]
        outer = [fetch] if job.is_fetch_outside else []
        text = "\n".join(line for line in [*([] if outer else [fetch]), *inner] if line)
        if job.is_annotated:
            kind = "jax.profiler.StepTraceAnnotation({}, step_num=P.first + k)"
            if job.framework == "tensorflow":
                kind = "tf.profiler.experimental.Trace({}, step_num=P.first + k, _r=1)"
            text = put(
                "@header\n    @lines", header=f"with {kind.format(repr(job.names['label']))}:", lines=text
            )
        return "\n".join([*outer, text])

    def _spread(self) -> dict[str, str]:
        """Blocks that spread the step over devices: rows of the weights, or of the input for a gradient."""
        job, ones = self.job, f"jnp.ones(({self.job.size}, {self.job.size}))"
        if job.spread == 1:
            return {"start": "", "compiled": "jax.jit($cell)", "weights": ones}
        weights, fed = ("ALL", "ROWS") if job.model == "gradient" else ("ROWS", "ALL")
        return {
            "start": _JOINED * (job.n_hosts > 1) + _MESH,
            "weights": f"jax.jit(lambda: {ones}, out_shardings={weights})()",
            "compiled": f"jax.jit($cell, in_shardings=({weights}, {fed}), out_shardings=({weights}, ALL))",
        }

    def _of_loop(self) -> dict[str, str]:
        job, body = self.job, self._step()
        assigned = re.findall(r"^ *((?:[A-Z], )*[A-Z])(?:, o)? \+?= ", body, re.MULTILINE)
        changed = sorted({name for names in assigned for name in names.split(", ")} - {"W"})
        return {
            "model": put(_MODELS[job.framework, job.model], cell="\n".join(self._all("cell"))),
            "body": body,
            "globals": "".join(f", {name}" for name in changed),
            "last": "jax.block_until_ready((W, o))" if job.framework == "jax" else "",
            **(self._spread() if job.framework == "jax" else {}),
        }

    def _of_fit(self) -> dict[str, str]:
        job = self.job
        name = job.names["label"]
        enter = (
            f"self.open = tf.profiler.experimental.Trace('{name}', step_num=P.first + i, "
            "_r=1)\nself.open.__enter__()"
        )
        return {
            "hooks": ", ".join([f"{job.names['cell']}()", *self._all("after")]),
            "enter": enter if job.is_annotated else "",
            "leave": "self.open.__exit__(None, None, None)" if job.is_annotated else "pass",
            "compiled": "'sgd', 'mse', run_eagerly=P.on"
            if "run_eagerly" in self._all("call")
            else "'sgd', 'mse'",
            "layers": ", ".join(["keras.layers.Dense(512, activation='relu')"] * job.layers),
            "fetch": (self._all("fetch") or ["tf.data.Dataset.from_tensors((X, Y)).repeat()"])[0],
        }

    def _written(self) -> dict[str, str]:
        job, library = self.job, _LIBRARIES[self.job.framework]
        side, imports, files = "\n\n\n".join(self._all("side")), "\n".join(self._all("imports")), {}
        if job.has_side and side:
            defined = [
                node.name for node in ast.parse(side).body if isinstance(node, ast.FunctionDef | ast.ClassDef)
            ]
            head = put(_HEAD, library=library, imports=imports, main="").replace(", go", "")
            files[f"{job.names['side']}.py"] = f"{head}\n\n\n{side}"
            side, imports = "", f"from {job.names['side']} import {', '.join(defined)}"
        pieces = self._of_fit() if job.framework == "keras" else self._of_loop()
        pieces |= {
            "side": side,
            "imports": imports,
            "main": "\n".join(self._all("main")),
            "make": "\n".join(self._all("make")),
        }
        pieces |= {"library": library, "size": str(job.size), "seed": str(job.number)}
        text = {
            "jax": _HEAD + _JAX + _LOOP,
            "tensorflow": _HEAD + _TENSORFLOW + _LOOP,
            "keras": _HEAD + _KERAS,
        }[job.framework]
        files[self.main] = re.sub(r"@(\w+)", lambda word: pieces[word[1]], put(text, **pieces))
        return {name: _tidy(Template(source).safe_substitute(job.names)) for name, source in files.items()}


def _tidy(text: str) -> str:
    """At most two empty lines in a row, and none with blanks."""
    lines = "\n".join(line.rstrip() for line in text.splitlines())
    return re.sub(r"\n{4,}", "\n\n\n", lines).strip() + "\n"
