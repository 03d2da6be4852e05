"""Python that runs in a step: a user's own work, callbacks, and periodic work."""

from __future__ import annotations

from typing import Any

from tests.exam.parts import COMPUTE, SLEEP, Part, put, timed


def python(
    name: str, side: str, call: str, amount: float, culprits: tuple[str, ...] = ("f",), imports: str = ""
) -> Part:
    """A user's function on the main thread, in the step."""
    before = put("if $on:\n    @call", call=timed(call))
    return Part(
        name,
        "python",
        imports=imports,
        side=side,
        before=before,
        culprits=culprits,
        amount=amount,
        needs_python=True,
        is_direct=True,
    )


_LOOP = put("""
    def $f(m):
        n = 0
        for i in range(m):
            n = (n * 31 + i) % 1000003
        return n
    """)
_NESTED = put("""
    def $g(m, k):
        return sum([(i * k) % 7 for i in range(m)])


    def $f(m):
        return [$g(300, k) for k in range(m // 300)]
    """)
_KEYED = put("""
    def $f(i):
        return (i * 7919) % 1009


    def $g(m):
        return sorted(range(m), key=$f)[:3]
    """)
_FOLDED = put("""
    def $f(n, i):
        return (n * 31 + i) % 1000003


    def $g(m):
        return functools.reduce($f, range(m), 1)
    """)
_WORDS = put("""
    def $f(m):
        d = {}
        for i in range(m):
            s = f'{i % 977}'
            d[s] = d.get(s, 0) + i
        return d
    """)
PYTHON = (
    python("python loop", _LOOP, "$f(int($amount))", 40000),
    python("python calls", _NESTED, "$f(int($amount))", 30000, ("f", "g")),
    python("sorted by a key", _KEYED, "$g(int($amount))", 10000, ("f", "g")),
    python("functools.reduce", _FOLDED, "$g(int($amount))", 20000, ("f", "g"), "import functools"),
    python("a dict of words", _WORDS, "$f(int($amount))", 15000),
    python("python sleeps", "def $f(s):\n    time.sleep(s)", "$f($amount)", 0.004),
)


def called(name: str, framework: str, cell: str, work: str, amount: float) -> Part:
    """A Python function that the compiled step calls."""
    side = put(
        """
        def $f(v):
            if $on:
                @work
            return v
        """,
        work=timed(work),
    )
    return Part(
        name, "callbacks", (framework,), side=side, cell=cell, amount=amount, is_wide=False, is_direct=True
    )


_PURE = "w = w + 0 * jax.pure_callback($f, jax.ShapeDtypeStruct((), jnp.float32), w[0, 0])"
_IO = "w = w + 0 * jax.experimental.io_callback($f, jax.ShapeDtypeStruct((), jnp.float32), w[0, 0])"
_DEBUG = "jax.debug.callback($f, w[0, 0])"
_TF = "w = w + 0 * tf.{}($f, [w[0, 0]], tf.float32)"
_PRINTS = put("""
    for i in range(int($amount) if $on else 0):
        jax.debug.print('{v} {u}', v=w[0, 0], u=w[1])
    """)


def at_batch(name: str, when: str, work: str, amount: float) -> Part:
    """A Keras callback that is slow at every batch."""
    side = put(
        f"""
        class $f(keras.callbacks.Callback):
            def on_train_batch_{when}(self, i, logs=None):
                if $on:
                    @work
        """,
        work=timed(work),
    )
    return Part(
        name,
        "callbacks",
        ("keras",),
        side=side,
        after="$f()",
        names=(f"on_train_batch_{when}",),
        amount=amount,
        needs_python=True,
        is_direct=True,
    )


CALLBACKS = (
    called("pure_callback sleeps", "jax", _PURE, SLEEP, 0.004),
    called("pure_callback computes", "jax", _PURE, COMPUTE, 40000),
    called("io_callback sleeps", "jax", _IO, SLEEP, 0.004),
    called("debug.callback computes", "jax", _DEBUG, COMPUTE, 40000),
    Part(
        "debug.print",
        "callbacks",
        ("jax",),
        cell=_PRINTS,
        culprits=(),
        amount=8,
        shares=(0.1, 0.3),
        is_wide=False,
    ),
    called("py_function computes", "tensorflow", _TF.format("py_function"), COMPUTE, 40000),
    called("numpy_function sleeps", "tensorflow", _TF.format("numpy_function"), SLEEP, 0.004),
    at_batch("keras on_train_batch_end sleeps", "end", SLEEP, 0.004),
    at_batch("keras on_train_batch_end computes", "end", COMPUTE, 40000),
    at_batch("keras on_train_batch_begin computes", "begin", COMPUTE, 40000),
)

_PLACE = "import tempfile\n\nPLACE = tempfile.mkdtemp() + '/$p'"
_SQUEEZE = put("""
    def $f(m):
        np.savez_compressed(PLACE, a=A[:m])
    """)
_ROWS = f"{_PLACE}\nA = np.random.default_rng(5).standard_normal((200000, 16)).astype(np.float32)"
_PICKLE = put("""
    def $f(m):
        with open(PLACE, 'wb') as io:
            pickle.dump([{'n': i, 'v': float(i) * 1.5, 's': str(i)} for i in range(m)], io)
    """)
_WRITE = put("""
    def $f(m):
        with open(PLACE, 'w') as io:
            for i in range(m):
                io.write('%d %.6f %s ' % (i, i / 7, i * 31))
    """)
_HEAP = put("""
    def $g(m):
        return [[i] for i in range(m)]


    def $f():
        return gc.collect()
    """)
_ASIDE = put("""
    def $g(v, x):
        return @library.abs(@library.tanh(v @ x)).mean()


    def $f(u, m):
        return [float(u(A, A)) for i in range(m)]
    """)
_ASIDE_JAX = _ASIDE.replace("@library", "jnp")
_ASIDE_TF = _ASIDE.replace(
    "@library.abs(@library.tanh(v @ x)).mean()", "tf.reduce_mean(tf.abs(tf.tanh(v @ x)))"
)
_SQUARE = "A = np.random.default_rng(5).standard_normal((160, 160)).astype(np.float32)"
_IDS = ("jit_$g", "jit($g)")


def every(name: str, pieces: tuple[str, str, str], amount: float, lap: int, **more: Any) -> Part:
    """Work in every `lap`-th step; `pieces`: functions, the call, their imports."""
    side, call, imports = pieces
    after = put(f"if $on and k % {lap} == {lap - 1}:\n    @call", call=timed(call))
    more = {"needs_python": True, "is_direct": True, **more}
    return Part(name, "periodic", imports=imports, side=side, after=after, amount=amount, lap=lap, **more)


def every_batch(name: str, pieces: tuple[str, str, str], amount: float, lap: int) -> Part:
    """The same in a Keras callback."""
    side, call, imports = pieces
    hook = put(
        f"""
        @side


        class $h(keras.callbacks.Callback):
            def on_train_batch_end(self, i, logs=None):
                if $on and i % {lap} == {lap - 1}:
                    @call
        """,
        side=side, call=timed(call),
    )  # fmt: skip
    return Part(
        name, "periodic", ("keras",), imports=imports, side=hook, after="$h()", culprits=("f", "h"),
        names=("on_train_batch_end",), amount=amount, lap=lap, accepted=("callbacks",), needs_python=True,
        is_direct=True,
    )  # fmt: skip


_SAVES, _PICKLES = (
    (_SQUEEZE, "$f(int($amount))", _ROWS),
    (_PICKLE, "$f(int($amount))", f"import pickle\n{_PLACE}"),
)
_COUNTS = "$f(E, int($amount) + 1)"
PERIODIC = (
    every("savez every 4th step", _SAVES, 2000, 4),
    every("pickle every 5th step", _PICKLES, 20000, 5),
    every("text every 5th step", (_WRITE, "$f(int($amount))", _PLACE), 20000, 5),
    every(
        "gc every 4th step",
        (_HEAP, "$f()", "import gc"),
        100000,
        4,
        make="global H\nH = $g(int($amount)) if $on else None",
        main="H = None",
        names=("collect", "gc.collect"),
        shares=(0.1, 0.3),
    ),
    every(
        "evaluation every 4th step",
        (_ASIDE_JAX, _COUNTS, _SQUARE),
        20,
        4,
        make="global E\nE = jax.jit($g)",
        main="E = None",
        frameworks=("jax",),
        culprits=("f", "g"),
        names=_IDS,
        seen="always",
        needs_python=False,
    ),
    every(
        "evaluation every 5th step",
        (_ASIDE_TF, _COUNTS, _SQUARE),
        20,
        5,
        make="global E\nE = tf.function($g)",
        main="E = None",
        frameworks=("tensorflow",),
        culprits=("f", "g"),
        seen="always",
        needs_python=False,
    ),
    every_batch("keras savez every 4th", _SAVES, 2000, 4),
    every_batch("keras pickle every 5th", _PICKLES, 20000, 5),
)

_LINE = put("""
    def $f(k, v):
        with open(PLACE, 'a') as io:
            io.write('%d %.4f ' % (k, v))
    """)
_COUNT = put("""
    class $f(keras.callbacks.Callback):
        def on_train_batch_end(self, i, logs=None):
            self.n = i
    """)
HEALTHY_HOST = (
    Part(
        "a line every 5th step",
        "",
        imports=_PLACE,
        side=_LINE,
        after="if k % 5 == 4:\n    $f(k, float(o))",
        lap=5,
    ),
    Part("keras callback that counts", "", ("keras",), side=_COUNT, after="$f()"),
)
