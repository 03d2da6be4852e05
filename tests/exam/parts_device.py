"""What a step does to its device: compilation, waiting, many small calls, copies; and what takes the
processors from it.
"""

from __future__ import annotations

from tests.exam.parts import Part, put, timed

_IDS = ("jit_$f", "jit($f)")
_ROW = "A = np.linspace(0, 1, 4096, dtype=np.float32)"
_ENDLESS = "U, K = None, 8"


def recompiled(name: str, framework: str, side: str, make: str, before: str) -> Part:
    """A small function that recompiles in each step."""
    return Part(
        name,
        "compilation",
        (framework,),
        side=side,
        main=f"{_ROW}\n{_ENDLESS}",
        make=f"global U, K\nK = 8\n{make}",
        before=before,
        names=_IDS,
        seen="always",
        tune="work",
        is_wide=False,
        is_direct=True,
    )


def _grows(call: str) -> str:
    return f"if $on:\n    K += 1\n{timed(call)}"


_NEWLY = f"if $on:\n    U = tf.function($f)\n{timed('U(A)')}"
_TF_SMALL = put("""
    def $f(v):
        for _ in range(6):
            v = tf.tanh(v) + 1.0
        return tf.reduce_sum(v)
    """)
_TF_TIMES = put("""
    def $f(v, k):
        for _ in range(6):
            v = tf.tanh(v * k) + 1.0
        return tf.reduce_sum(v)
    """)
_NEW = put("""
    def $g(k):
        def $f(v):
            return jnp.tanh(v * k).sum()

        return jax.jit($f)
    """)
COMPILATION = (
    recompiled(
        "new shape in each step",
        "jax",
        "def $f(v):\n    return (jnp.tanh(v) * v).sum()",
        "U = jax.jit($f)",
        _grows("U(A[:K])"),
    ),
    recompiled(
        "new static argument in each step",
        "jax",
        "def $f(v, k):\n    return jnp.tanh(v * k).sum()",
        "U = jax.jit($f, static_argnums=1)",
        _grows("U(A, K)"),
    ),
    recompiled(
        "new function in each step",
        "jax",
        _NEW,
        "U = $g(K)",
        f"if $on:\n    K += 1\n    U = $g(K)\n{timed('U(A)')}",
    ),
    recompiled(
        "Python number as an argument", "tensorflow", _TF_TIMES, "U = tf.function($f)", _grows("U(A, K)")
    ),
    recompiled("new shape in each step", "tensorflow", _TF_SMALL, "U = tf.function($f)", _grows("U(A[:K])")),
    recompiled("new function in each step", "tensorflow", _TF_SMALL, "U = tf.function($f)", _NEWLY),
)

_WAITS = {
    "float": "float(o)",
    "item": "o.item()",
    "asarray": "np.asarray(o)",
    "block_until_ready": "o.block_until_ready()",
}
_WAIT_NAMES = ("float", "item", "asarray", "block_until_ready", "__array__", "__float__", "_value")
_GAINS = (0.1, 0.3, 0.45)  # more than half is never won by doing two things at once
_BITS = put("""
    def $g(s):
        time.sleep(s / 3)


    def $h(s):
        threading.Event().wait(s / 3)


    def $p(s):
        for _ in range(4):
            time.sleep(s / 12)
    """)


def waits(call: str, has_function: bool) -> Part:
    """Waits for the device three times in a step, each time before a bit of the host's work that does not
    need it.

    Three bits, so that no single one of them costs what the waiting does.
    """
    wait = "$f(o)" if has_function else _WAITS[call]
    bit = put("W, o = $step(W, x)\nif $on:\n    @wait\n@bit", wait=wait, bit=timed("$bit($amount)"))
    side = put(f"def $f(o):\n    return {_WAITS[call]}\n\n\n@bits", bits=_BITS) if has_function else _BITS
    return Part(
        f"{call} in {'a function' if has_function else 'the loop'}",
        "synchronization",
        ("jax",),
        imports="import threading",
        side=side,
        call="\n".join(bit.replace("$bit", role) for role in ("$g", "$h", "$p")),
        culprits=("f" if has_function else "walk",),
        names=_WAIT_NAMES,
        shares=_GAINS,
        is_async=True,
        is_wide=False,
        is_direct=True,
    )


SYNCHRONIZATION = (
    *(waits(call, True) for call in _WAITS),
    *(waits(call, False) for call in ("float", "asarray")),
)

_JAX_SMALL = put("""
    def $f(v, m):
        for _ in range(m):
            v = jnp.sin(v) * 1.5 + 0.1
        return v


    def $h(v, m):
        return jax.lax.fori_loop(0, m, lambda i, v: jnp.sin(v) * 1.5 + 0.1, v)
    """)
_JAX_TINY = put("""
    def $g(v):
        return jnp.tanh(v) + 0.1


    def $h(v, m):
        return jax.lax.fori_loop(0, m, lambda i, v: jnp.tanh(v) + 0.1, v)


    def $f(u, v, m):
        for _ in range(m):
            v = u(v)
        return v
    """)
_TF_EAGER = put("""
    def $f(v, m):
        for _ in range(m):
            v = tf.sin(v) * 1.5 + 0.1
        return v


    def $h(v, m):
        for _ in tf.range(m):
            v = tf.sin(v) * 1.5 + 0.1
        return v
    """)
_SMALL = put(
    "if $on:\n    @call\nelse:\n    U(S, int($amount) // 3 + 1)", call=timed("$f(S, int($amount) // 3 + 1)")
)
DISPATCH = (
    Part(
        "small operations one by one",
        "dispatch",
        ("jax",),
        side=_JAX_SMALL,
        main="U = None",
        make="global U\nU = jax.jit($h)",
        before=_SMALL,
        names=("sin", "multiply", "add"),
        amount=60,
        is_direct=True,
    ),
    Part(
        "many tiny programs",
        "dispatch",
        ("jax",),
        side=_JAX_TINY,
        main="U = V = None",
        make="global U, V\nU, V = jax.jit($g), jax.jit($h)",
        before=put(
            "if $on:\n    @call\nelse:\n    V(S, int($amount) + 1)", call=timed("$f(U, S, int($amount) + 1)")
        ),
        culprits=("f", "g"),
        names=("jit_$g", "jit($g)"),
        seen="always",
        amount=100,
        is_direct=True,
    ),
    Part(
        "eager operations",
        "dispatch",
        ("tensorflow",),
        side=_TF_EAGER,
        main="U = None",
        make="global U\nU = tf.function($h)",
        before=_SMALL,
        names=("Sin", "Mul", "AddV2"),
        amount=60,
        is_direct=True,
    ),
    Part("keras run_eagerly", "dispatch", ("keras",), call="run_eagerly", culprits=(), tune="work"),
)

_LARGE = "A = np.ones((60000, 1024), np.float32)"
TRANSFERS = (
    Part(
        "device_put of a large array",
        "transfers",
        ("jax",),
        imports=_LARGE,
        side="def $f(m):\n    return jax.device_put(A[:m])",
        before="if $on:\n    $f(int($amount))",
        names=("device_put",),
        amount=1000,
        is_wide=False,
    ),
    Part(
        "large numpy argument",
        "transfers",
        ("jax",),
        side="def $f(v):\n    return v[0, 0] + v[-1, -1]",
        main=f"{_LARGE}\nU = None",
        make="global U\nU = jax.jit($f)",
        before="if $on:\n    U(A[:int($amount) + 2])",
        names=(*_IDS, "device_put"),
        seen="always",
        amount=1000,
        is_wide=False,
    ),
)

_SPIN = put("""
    def $f(m):
        n = 0
        for i in range(m):
            n = (n * 31 + i) % 1000003
        return n


    def $g(s, turn):
        while P.turn == turn:
            u = clock() + 0.02 * s
            while clock() < u:
                $f(5000)
            time.sleep(0.02 * (1 - s))
    """)
_MULTIPLY = put("""
    def $f(a, s):
        u = clock() + 0.02 * s
        while clock() < u:
            a @ a
        time.sleep(0.02 * (1 - s))


    def $g(s, turn):
        a = np.ones((200, 200), np.float32)
        while P.turn == turn:
            $f(a, s)
    """)
_MANY = put("""
    if $on:
        for s in [1.0] * int($amount) + [$amount % 1]:
            threading.Thread(target=$g, args=(s, P.turn), daemon=True).start()
    """)
_OUTSIDE = put(r"""
    CODE = '''
    import os, sys, time
    s = float(sys.argv[1])
    while os.getppid() == int(sys.argv[2]):
        u = time.perf_counter() + 0.02 * s
        while time.perf_counter() < u:
            pass
        time.sleep(0.02 * (1 - s))
    '''


    def $f(m):
        return [subprocess.Popen([sys.executable, '-c', CODE, str(s), str(os.getpid())]) for s in [1.0] * int(m) + [m % 1]]
    """)
CONTENTION = (
    *(
        Part(
            name,
            "contention",
            main="import threading",
            side=side,
            make=_MANY,
            culprits=("f", "g"),
            amount=1.0,
            is_wide=False,
            needs_python=True,
        )
        for name, side in (("threads spin", _SPIN), ("threads multiply", _MULTIPLY))
    ),
    Part(
        "other processes",
        "contention",
        imports="import os\nimport subprocess\nimport sys",
        side=_OUTSIDE,
        main="O = []",
        make="global O\nfor p in O:\n    p.kill()\nO = $f($amount) if $on else []",
        culprits=(),
        amount=1.0,
        is_wide=False,
        seen="never",
        needs_python=True,
    ),
)
WARM_UP = (
    Part(
        "the first step compiles",
        "warm_up",
        ("jax", "tensorflow", "keras"),
        culprits=(),
        tune="cold",
        seen="never",
    ),
)
