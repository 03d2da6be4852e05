"""Two TensorFlow workers, captured together over gRPC -> a logdir with one profile of two hosts.

    python capture_two_workers.py OUTPUT_DIR

Each worker is a process with a custom training loop and a profiler server; the parent asks both servers for
one profile. worker-1's input takes several times as long as worker-0's, so the hosts differ.
"""

from __future__ import annotations

import argparse
import shutil
import socket
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import tensorflow as tf
from tidy import keep_profile, print_versions

BATCH_SIZE = 256
N_FEATURES = 128
N_CLASSES = 10
INPUT_DELAY_S = (0.008, 0.032)
CAPTURE_MS = 2000
READY = "training"


def batches(worker: int) -> tf.data.Dataset:
    """An endless stream of batches; each waits INPUT_DELAY_S of its worker.

    tf.data would hide the wait by mapping in parallel and prefetching of its own accord: both are turned off.
    """
    rng = np.random.default_rng(worker)

    def load(_: np.int64) -> tuple[np.ndarray, np.ndarray]:
        time.sleep(INPUT_DELAY_S[worker])
        features = rng.normal(size=(BATCH_SIZE, N_FEATURES)).astype(np.float32)
        return features, rng.integers(N_CLASSES, size=BATCH_SIZE)

    dataset = tf.data.Dataset.counter()
    dataset = dataset.map(
        lambda index: tf.numpy_function(load, [index], (tf.float32, tf.int64)), name="load_batch"
    )
    dataset = dataset.map(lambda x, y: (tf.ensure_shape(x, (None, N_FEATURES)), tf.ensure_shape(y, (None,))))
    options = tf.data.Options()
    options.experimental_optimization.map_parallelization = False
    options.experimental_optimization.inject_prefetch = False
    return dataset.with_options(options)


def run_worker(worker: int, port: int) -> None:
    """Serve profiles on `port` and train until the parent ends this process."""
    tf.profiler.experimental.server.start(port)
    tf.config.threading.set_intra_op_parallelism_threads(1)
    model = tf.keras.Sequential(
        [
            tf.keras.layers.Input((N_FEATURES,)),
            tf.keras.layers.Dense(512, "relu"),
            tf.keras.layers.Dense(N_CLASSES),
        ]
    )
    weights = [variable.value for variable in model.trainable_variables]

    @tf.function
    def train_step(features: tf.Tensor, labels: tf.Tensor) -> tf.Tensor:
        with tf.GradientTape() as tape:
            logits = model(features, training=True)
            loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels, logits))
        for weight, gradient in zip(weights, tape.gradient(loss, weights), strict=True):
            weight.assign_sub(0.01 * gradient)
        return loss

    stream = iter(batches(worker))
    for step in range(10**9):
        with tf.profiler.experimental.Trace("train", step_num=step, _r=1):
            loss = train_step(*next(stream))
        if step == 20:
            print(READY, f"{float(loss):.3f}", flush=True)


def free_ports(n_ports: int) -> list[int]:
    """Ports that nobody listens on just now."""
    sockets = [socket.socket() for _ in range(n_ports)]
    for sock in sockets:
        sock.bind(("localhost", 0))
    ports: list[int] = [sock.getsockname()[1] for sock in sockets]
    for sock in sockets:
        sock.close()
    return ports


def capture(logdir: Path) -> None:
    """Start both workers, wait until they train, take one profile of both."""
    ports = free_ports(len(INPUT_DELAY_S))
    command = [sys.executable, sys.argv[0], "--worker"]
    workers = [
        subprocess.Popen([*command, str(worker), str(port), str(logdir)], stdout=subprocess.PIPE, text=True)
        for worker, port in enumerate(ports)
    ]
    try:
        for process in workers:
            if process.stdout is None or not process.stdout.readline().startswith(READY):
                raise SystemExit("a worker ended before it trained")
        addresses = ",".join(f"grpc://localhost:{port}" for port in ports)
        tf.profiler.experimental.client.trace(addresses, str(logdir), CAPTURE_MS)
    finally:
        for process in workers:
            process.terminate()
            process.wait()
    keep_profile(logdir, "two_workers", {f"localhost_{port}": f"worker-{n}" for n, port in enumerate(ports)})
    print_versions("tensorflow-cpu", "keras", "numpy")


def main() -> None:
    """Be the parent, or with --worker N PORT one of the workers."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--worker", nargs=2, type=int, metavar=("N", "PORT"), help=argparse.SUPPRESS)
    parser.add_argument("output_dir", type=Path)
    arguments = parser.parse_args()
    if arguments.worker:
        run_worker(*arguments.worker)
        return
    shutil.rmtree(arguments.output_dir, ignore_errors=True)
    capture(arguments.output_dir)


if __name__ == "__main__":
    main()
