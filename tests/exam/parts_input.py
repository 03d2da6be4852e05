"""Inputs that are slow: generators, queues filled by threads, tf.data, and Keras's own ways."""

from __future__ import annotations

from dataclasses import replace

from tests.exam.parts import COMPUTE, SLEEP, Part, put, timed

_NOISE = "bytes(np.random.default_rng(3).integers(0, 60, 60000, dtype=np.uint8))"
_IN_MEMORY = f"import zlib\n\nBLOB = zlib.compress({_NOISE})"
_IN_FILE = put(
    """
    import tempfile
    import zlib

    PLACE = tempfile.mkdtemp() + '/$p'
    with open(PLACE, 'wb') as io:
        io.write(zlib.compress(@noise))
    """.replace("@noise", _NOISE)
)
_UNPACK = put("""
    for i in range(int($amount)):
        zlib.decompress(BLOB)
    """)
_READ = put("""
    with open(PLACE, 'rb') as io:
        z = io.read()
    for i in range(int($amount)):
        zlib.decompress(z)
    """)


def generator(name: str, work: str, amount: float, imports: str = "") -> Part:
    """A generator that the main thread reads."""
    side = put(
        """
        def $f(v):
            while True:
                if $on:
                    @work
                yield v
        """,
        work=timed(work),
    )
    return Part(
        name,
        "input",
        imports=imports,
        side=side,
        main="R = None",
        make="global R\nR = $f(X)",
        fetch="next(R)",
        amount=amount,
        needs_python=True,
        is_direct=True,
    )


def queue(name: str, work: str, amount: float, imports: str = "") -> Part:
    """A thread that fills a queue more slowly than the loop drains it."""
    side = put(
        """
        def $f(v):
            if $on:
                @work
            return v


        def $g(q, v, turn):
            while P.turn == turn:
                q.put($f(v))
        """,
        work=timed(work),
    )
    make = put("""
        global R
        while R is not None and not R.empty():
            R.get()
        R = queue.Queue(2)
        threading.Thread(target=$g, args=(R, X, P.turn), daemon=True).start()
        """)
    return Part(
        name,
        "input",
        imports=imports,
        side=side,
        main="import queue\nimport threading\n\nR = None",
        make=make,
        fetch="R.get()",
        culprits=("f", "g"),
        amount=amount,
        needs_python=True,
    )


_AS_WRITTEN = put("""
    o = tf.data.Options()
    o.experimental_optimization.apply_default_optimizations = False
    o.experimental_optimization.inject_prefetch = False
    """)
_FROM_MAP = (
    "tf.data.Dataset.from_tensors(X).repeat().map(lambda y: tf.ensure_shape(tf.numpy_function($f, "
    "[y], tf.float32), X.shape))"
)
_FROM_ROWS = "tf.data.Dataset.from_generator($f, output_signature=tf.TensorSpec(X.shape, tf.float32))"
_OF_PAIRS = (
    "tf.data.Dataset.from_tensors((X, Y)).repeat().map(lambda x, y: "
    "(tf.ensure_shape(tf.numpy_function($f, [x], tf.float32), X.shape), y))"
)
_MAP_NAMES = ("Map", "ParallelMap", "ParallelMapV2", "MapDataset", "ParallelMapDatasetV2")
_ROWS_NAMES = ("Generator", "FromGenerator", "GeneratorDataset", "FlatMap")


def mapped(work: str) -> str:
    """The Python function of a map."""
    return put(
        """
        def $f(y):
            if $on:
                @work
            return y
        """,
        work=timed(work),
    )


_ROWS = put(
    """
    def $f():
        v = np.ones((P.size, P.size), np.float32)
        while True:
            if $on:
                @work
            yield v
    """,
    work=timed(SLEEP),
)


def tf_data(
    name: str, framework: str, pieces: tuple[str, str, tuple[str, ...]], amount: float, is_tuned: bool = False
) -> Part:
    """A tf.data pipeline with a slow stage, read in a loop: as written, or as TensorFlow tunes it."""
    side, dataset, names = pieces
    make = (
        f"global R\nR = iter({dataset})"
        if is_tuned
        else f"global R\n{_AS_WRITTEN}\nR = iter({dataset}.with_options(o))"
    )
    return Part(
        name,
        "input",
        (framework,),
        main="import tensorflow as tf\n\nR = None" if framework == "jax" else "R = None",
        side=side,
        make=make,
        fetch="next(R).numpy()" if framework == "jax" else "next(R)",
        names=names,
        seen="always",
        amount=amount,
        is_wide=False,
        is_direct=not is_tuned,
    )


_SLOW_MAP, _BUSY_MAP = (mapped(SLEEP), _FROM_MAP, _MAP_NAMES), (mapped(COMPUTE), _FROM_MAP, _MAP_NAMES)
_SLOW_ROWS = (_ROWS, _FROM_ROWS, _ROWS_NAMES)


def keras_rows(work: str) -> str:
    """A generator of pairs for `fit`."""
    return put(
        """
        def $f(v, u):
            while True:
                if $on:
                    @work
                yield v, u
        """,
        work=timed(work),
    )


_ITEMS = put(
    """
    class $f(keras.utils.PyDataset):
        def __init__(self, v, u):
            super().__init__(workers=1)
            self.pair = v, u

        def __len__(self):
            return 100000

        def __getitem__(self, i):
            if $on:
                @work
            return self.pair
    """,
    work=timed(SLEEP),
)


def for_keras(name: str, side: str, fetch: str, names: tuple[str, ...], amount: float) -> Part:
    """The input of `fit`."""
    return Part(name, "input", ("keras",), side=side, fetch=fetch, names=names, seen="always", amount=amount)


INPUT = (
    generator("generator sleeps", SLEEP, 0.004),
    generator("generator computes", COMPUTE, 40000),
    generator("generator unpacks a file", _READ, 8, _IN_FILE),
    queue("queue, producer sleeps", SLEEP, 0.02),
    queue("queue, producer unpacks", _UNPACK, 20, _IN_MEMORY),
    queue("queue, producer computes", COMPUTE, 150000),
    tf_data("tf.data map", "jax", _SLOW_MAP, 0.004),
    tf_data("tf.data generator", "jax", _SLOW_ROWS, 0.004),
    tf_data("tf.data map, tuned", "jax", _SLOW_MAP, 0.02, True),
    tf_data("tf.data map", "tensorflow", _SLOW_MAP, 0.004),
    tf_data("tf.data map computes", "tensorflow", _BUSY_MAP, 40000),
    tf_data("tf.data generator", "tensorflow", _SLOW_ROWS, 0.004),
    for_keras("keras generator", keras_rows(SLEEP), "$f(X, Y)", _ROWS_NAMES, 0.02),
    for_keras("keras generator computes", keras_rows(COMPUTE), "$f(X, Y)", _ROWS_NAMES, 100000),
    for_keras("keras PyDataset", _ITEMS, "$f(X, Y)", ("__getitem__", *_ROWS_NAMES), 0.02),
    for_keras("keras tf.data map", mapped(SLEEP), _OF_PAIRS, _MAP_NAMES, 0.02),
)
_READY = (
    generator("a generator that is ready", "v = v", 0.0),
    queue("a queue that is ahead", "time.sleep(0.008)", 0.0),
    tf_data("tf.data ahead", "jax", (mapped("y = y"), f"{_FROM_MAP}.prefetch(4)", ()), 0.0, True),
    tf_data("tf.data ahead", "tensorflow", (mapped("y = y"), f"{_FROM_MAP}.prefetch(4)", ()), 0.0, True),
    for_keras("keras generator that is ready", keras_rows("v = v"), "$f(X, Y)", (), 0.0),
    for_keras("keras tf.data ahead", mapped("y = y"), f"{_OF_PAIRS}.prefetch(4)", (), 0.0),
)
HEALTHY_INPUT = tuple(replace(part, cause="", needs_python=False) for part in _READY)
