"""Captures the runs of this folder: programs of tests/truth/programs, with what each measured of itself.

    cd /tmp/corpus && python PATH/capture.py --ml PYTHON --torch PYTHON [RUN…]

Needs interpreters that have JAX with TensorFlow, and PyTorch. Run it from a folder that says nothing of the
machine: paths of Python files get into profiles. Writes `<run>.xplane.pb.gz` or `<run>.pt.trace.json.gz`, and
`truth.json` with the measurements of all runs, beside this script. Machine names become `worker-0`.
"""

import argparse
import gzip
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
PROGRAMS = HERE.parents[1] / "truth" / "programs"
FOUR_DEVICES = "--xla_force_host_platform_device_count=4"
RUNS = {
    "jax_matmul": ("jax_cpu.py", ["matmul", "0"], ""),
    "jax_conv": ("jax_cpu.py", ["conv", "0"], ""),
    "jax_scan": ("jax_cpu.py", ["scan", "0"], ""),
    "jax_loop_python": ("jax_cpu.py", ["loop", "1"], ""),
    "jax_cholesky_python": ("jax_cpu.py", ["cholesky", "1"], ""),
    "jax_four_devices": ("jax_cpu.py", ["psum", "0"], FOUR_DEVICES),
    "jax_four_devices_python": ("jax_cpu.py", ["psum", "1"], FOUR_DEVICES),
    "jax_memory": ("memory_jax.py", [], ""),
    "jax_generator": ("input_jax.py", ["generator", "1"], ""),
    "jax_async": ("input_jax.py", ["async", "1"], ""),
    "tf_functions": ("ops_tf.py", ["function"], ""),
    "tf_eager": ("ops_tf.py", ["eager"], ""),
    "tf_slow_input": ("input_tf.py", ["matloop", "slow"], ""),
    "tf_ready_input": ("input_tf.py", ["matloop", "ready"], ""),
    "tf_custom_loop": ("input_tf.py", ["custom", "slow"], ""),
    "tf_graph": ("input_tf.py", ["graph", "slow"], ""),
    "tf_keras_slow": ("input_tf.py", ["keras", "slow"], ""),
    "tf_shuffle": ("input_tf.py", ["trace", "shuffle"], ""),
    "torch_loader": ("torch_cpu.py", [], ""),
}
# The programs' hosts as they are named in files; the messages are those of TensorFlow's own package.
RENAME = """
import sys
from tensorflow.tsl.profiler.protobuf import xplane_pb2
space = xplane_pb2.XSpace.FromString(open(sys.argv[1], "rb").read())
del space.hostnames[:]
space.hostnames.append("worker-0")
open(sys.argv[1], "wb").write(space.SerializeToString(deterministic=True))
"""


def captured(run, python, ml):
    """The bytes of one run's file, its suffix, and what the program measured."""
    program, arguments, flags = RUNS[run]
    shutil.copy(PROGRAMS / program, program)
    environ = {
        **os.environ,
        "JAX_PLATFORMS": "cpu",
        "CUDA_VISIBLE_DEVICES": "",
        "TF_CPP_MIN_LOG_LEVEL": "2",
        "XLA_FLAGS": flags,
    }
    out = Path("out")
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir()
    subprocess.run([*python, program, str(out), *arguments], env=environ, check=True)
    truth = json.loads((out / "truth.json").read_text("utf-8"))
    (file,) = [path for pattern in ("*.xplane.pb", "*.pt.trace.json") for path in out.rglob(pattern)]
    if file.name.endswith(".xplane.pb"):
        subprocess.run([*ml, "-c", RENAME, str(file)], env=environ, check=True)
        return file.read_bytes(), ".xplane.pb", truth
    return file.read_bytes().replace(os.uname().nodename.encode(), b"worker-0"), ".pt.trace.json", truth


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--ml", default=sys.executable, help="an interpreter that has JAX and TensorFlow")
    parser.add_argument("--torch", default=sys.executable, help="an interpreter that has PyTorch")
    parser.add_argument("runs", nargs="*", default=[], choices=[*RUNS, []])
    options = parser.parse_args()
    path = HERE / "truth.json"
    facts = json.loads(path.read_text("utf-8")) if path.exists() else {}
    for run in options.runs or RUNS:
        python = [options.torch] if run.startswith("torch") else [options.ml]
        data, suffix, truth = captured(run, python, [options.ml])
        packed = gzip.compress(data, 9, mtime=0)
        (HERE / f"{run}{suffix}.gz").write_bytes(packed)
        program, arguments, flags = RUNS[run]
        facts[run] = {"program": program, "arguments": arguments, "xla_flags": flags, "measured": truth}
        print(f"{run}: {len(data):,} bytes, {len(packed):,} packed", flush=True)
        path.write_text(json.dumps(facts, indent=1, sort_keys=True) + "\n", "utf-8")


main()
