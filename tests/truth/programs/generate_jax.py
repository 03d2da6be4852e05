"""A small language model in JAX that generates tokens: `python generate_jax.py OUT KIND`.

    nested    each request in an annotation `generate`, its phases `prefill` and `decode` inside it
    ids       two requests at a time, step by step in turn; annotations of phases with a `request_id`
    steps     the same annotations without ids, one request after another

The program writes when each request began and when it had each token, by its own clock, and how many FLOPs
the matrix multiplications of one prefill and one decode take.
"""

import json
import sys
import time

import jax
import jax.numpy as jnp
import numpy as np

WIDTH, LAYERS, MOST = 512, 4, 96
PROMPTS = (17, 64, 40, 90, 25, 64, 80, 33, 51, 72, 20, 60)
N_TOKENS = (5, 9, 3, 12, 7, 4, 11, 6, 8, 3, 10, 5)
_RANDOM = np.random.default_rng(3)
WEIGHTS = [jnp.asarray(_RANDOM.standard_normal((WIDTH, WIDTH)) * 0.04, jnp.float32) for _ in range(LAYERS)]


@jax.jit
def prefill(weights, prompt):
    """States of a padded prompt."""
    for layer in weights:
        prompt = jnp.tanh(prompt @ layer)
    return prompt


@jax.jit
def decode(weights, state, token):
    """The next token by the states so far."""
    for layer in weights:
        token = jnp.tanh(token @ layer + state.mean(axis=0))
    return token


class Request:
    """A request, and its moments by the program's clock."""

    def __init__(self, number):
        self.number, self.tokens = number, []
        self.began = None

    def mark(self, name, kind):
        """The annotation of a phase."""
        stats = {"request_id": f"r{self.number}"} if kind == "ids" else {}
        return jax.profiler.TraceAnnotation(name, **stats)

    def start(self, kind):
        """The first token."""
        self.began = time.perf_counter()
        with self.mark("prefill", kind):
            prompt = np.zeros((MOST, WIDTH), np.float32)
            prompt[: PROMPTS[self.number]] = 0.1 * (self.number + 1)
            self.state = prefill(WEIGHTS, prompt)
            self.token = np.asarray(self.state[:1])
        self.tokens.append(time.perf_counter())

    def step(self, kind):
        """One more token."""
        with self.mark("decode", kind):
            self.token = np.asarray(decode(WEIGHTS, self.state, self.token))
        self.tokens.append(time.perf_counter())

    @property
    def is_done(self):
        """Whether it has all its tokens."""
        return len(self.tokens) == N_TOKENS[self.number]


def one_by_one(kind):
    """Requests, each to its end."""
    requests = [Request(number) for number in range(len(PROMPTS))]
    for request in requests:
        time.sleep(0.003)
        if kind == "nested":
            arrived = time.perf_counter()
            with jax.profiler.TraceAnnotation("generate"):
                time.sleep(0.002)
                run(request, kind)
            request.began = arrived
        else:
            run(request, kind)
    return requests


def run(request, kind):
    """All tokens of a request."""
    request.start(kind)
    while not request.is_done:
        request.step(kind)


def in_turn(kind):
    """Two requests at a time, a token of each in turn."""
    waiting = [Request(number) for number in range(len(PROMPTS))]
    every, active = list(waiting), []
    while waiting or active:
        while waiting and len(active) < 2:
            active.append(waiting.pop(0))
            active[-1].start(kind)
        for request in active:
            if not request.is_done:
                request.step(kind)
        active = [request for request in active if not request.is_done]
    return every


def main():
    out, kind = sys.argv[1], sys.argv[2]
    run(Request(0), kind)
    options = jax.profiler.ProfileOptions()
    options.python_tracer_level = 0
    with jax.profiler.trace(out, profiler_options=options):
        requests = in_turn(kind) if kind == "ids" else one_by_one(kind)
    facts = {
        "began_s": [request.began for request in requests],
        "tokens_s": [request.tokens for request in requests],
        "prefill_flops": 2 * MOST * WIDTH * WIDTH * LAYERS,
        "decode_flops": 2 * WIDTH * WIDTH * LAYERS,
    }
    with open(f"{out}/truth.json", "w", encoding="utf-8") as file:
        json.dump(facts, file)


main()
