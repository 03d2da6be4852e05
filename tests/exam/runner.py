"""Runs a job under an interpreter with its framework, and keeps its profile and its truth.

FOLDER/<job>/plugins/profile/<time>/<host>.xplane.pb    the job as planted
FOLDER/removed/<job>/plugins/profile/…                  without its cause
FOLDER/<job>/truth.json                                 the planted causes and measurements
"""

from __future__ import annotations

import json
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from tests.exam.jobs import Job
from tests.exam.parts import Part
from tests.exam.programs import Source
from tests.integration.jobs import environment, python_with

HARNESS = Path(__file__).with_name("harness.py")
LIMIT_S = 240
PATIENCE_S = 10.0
HOSTS = ("n1", "n2")
_STARTING_WORK = {"chain": 3, "loop": 6, "scan": 6, "gradient": 2, "dense": 64}
# Captures from outside record Python frames of TensorFlow programs; their own profiles have none.
_CAPTURE = [
    sys.executable,
    "-c",
    "import sys; from tb_tpuprof.cli import main; sys.exit(main())",
    "capture",
    "--python_tracer_level",
    "1",
    "--host_tracer_level",
    "2",
]
_PACKAGE = {"jax": "jax", "tensorflow": "tensorflow", "keras": "tensorflow"}


def run(job: Job, folder: Path, removed: bool, patience_s: float = PATIENCE_S) -> dict[str, Any]:
    """Run a job and return its truth. Existing results are reused. `patience_s`: how long it waits for a
    quiet machine.
    """
    home, other = folder / job.name, folder / "removed" / job.name
    done = _read(home / "truth.json")
    if done and done["label"] != job.label:
        raise ValueError(
            f"{home} holds {done['label']}: another seed, or jobs of before; name another folder"
        )
    needed = ["with"] * (not done) + ["without"] * (
        removed and bool(job.cause) and "without" not in done.get("measured", {})
    )
    if not needed:
        return done
    (home / "src").mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as space:
        more = {"parts": needed, "numbers": done.get("numbers"), "patience_s": patience_s}
        measured = _ran(job, home / "src", Path(space), more)
        for part, target in (("with", home), ("without", other)):
            if part in needed:
                shutil.rmtree(target / "plugins", ignore_errors=True)
                _keep(job, Path(space), part, target)
    truth = _truth(job, measured, done)
    _see(truth, b"".join(path.read_bytes() for path in (home / "plugins").rglob("*.xplane.pb")))
    (home / "truth.json").write_text(json.dumps(truth, indent=1), "utf-8")
    return truth


def _read(path: Path) -> dict[str, Any]:
    content: dict[str, Any] = json.loads(path.read_text("utf-8")) if path.exists() else {}
    return content


def _ran(job: Job, source: Path, space: Path, more: dict[str, Any]) -> list[dict[str, Any]]:
    """Measurements of each host's process."""
    written = Source(job)
    for name, text in written.files.items():
        (source / name).write_text(text, "utf-8")
    (source / f"{job.names['rig']}.py").write_text(HARNESS.read_text("utf-8"), "utf-8")
    python, port = python_with(_PACKAGE[job.framework]), _free_port()
    processes = []
    for host in range(job.n_hosts):
        out = space / HOSTS[host]
        out.mkdir()
        capture = [*_CAPTURE, "--service_addr", f"localhost:{port}"]
        spec = out / "spec.json"
        spec.write_text(
            json.dumps(
                {**_spec(job), **more, "host": host, "port": port, "capture": capture, "shared": str(space)}
            )
        )
        output = (out / "output.txt").open("wb")
        command = [python, written.main, str(out), str(spec)]
        streams = {"stdin": subprocess.DEVNULL, "stdout": output, "stderr": subprocess.STDOUT}
        processes.append(subprocess.Popen(command, cwd=source, env=_environment(job), **streams))
    try:
        codes = [process.wait(LIMIT_S) for process in processes]
    except subprocess.TimeoutExpired as problem:
        raise RuntimeError(f"{job.label}: not done after {LIMIT_S} s") from problem
    finally:
        for process in processes:
            process.kill()
    texts = [
        (space / HOSTS[host] / "output.txt").read_text("utf-8", "replace") for host in range(job.n_hosts)
    ]
    if any(codes):
        raise RuntimeError(f"{job.label}: " + "\n".join(text[-3000:] for text in texts))
    return [_read(space / HOSTS[host] / "truth.json") for host in range(job.n_hosts)]


def _spec(job: Job) -> dict[str, Any]:
    first, second = (*job.parts, None, None)[:2]
    return {
        "framework": job.framework,
        "share": job.share,
        "second_share": job.second_share,
        "target_s": job.target_s,
        "tracer": job.tracer,
        "lead": job.lead,
        "is_direct": [is_direct(job, place) for place in range(len(job.parts))],
        "is_steady": job.end != "none" and all(part.lap == 1 and part.tune != "cold" for part in job.parts),
        "tune": first.tune if first and first.cause else "none",
        "amount": first.amount if first else 0.0,
        "more": second.amount if second else 0.0,
        "work": _STARTING_WORK[job.model],
        "n": job.n_steps,
        "lap": max([part.lap for part in job.parts], default=2),
        "hosts": job.n_hosts,
    }


def _environment(job: Job) -> dict[str, str]:
    flags = [f"--xla_force_host_platform_device_count={job.n_devices}"] * (job.n_devices > 1)
    if job.n_hosts > 1:
        flags.append("--xla_cpu_multi_thread_eigen=false")
    return {
        **environment(),
        "TF_CPP_MIN_LOG_LEVEL": "3",
        "PYTHONDONTWRITEBYTECODE": "1",
        "XLA_FLAGS": " ".join(flags),
    }


def _keep(job: Job, space: Path, part: str, target: Path) -> None:
    """The hosts' files in one run folder, each under its host's name."""
    folders = [(space / HOSTS[host] / part, HOSTS[host]) for host in range(job.n_hosts)]
    (first,) = folders[0][0].glob("plugins/profile/*")
    run_dir = target / "plugins" / "profile" / first.name
    run_dir.mkdir(parents=True)
    for folder, host in folders:
        (file,) = folder.rglob("*.xplane.pb")
        shutil.copyfile(file, run_dir / f"{host if job.n_hosts > 1 else 'n1'}.xplane.pb")


def _truth(job: Job, measured: list[dict[str, Any]], done: dict[str, Any]) -> dict[str, Any]:
    """The planted causes, the measurements of each way, and the gain."""
    lead = {
        **done.get("measured", {}),
        **{key: value for key, value in measured[job.lead].items() if key != "numbers"},
    }
    source = Source(job)
    step = lead["with"]["step_s"]
    truth = {
        "name": job.name,
        "label": job.label,
        "framework": job.framework,
        "cause": job.cause,
        "second": job.second,
        "accepted": [[part.cause, *part.accepted] for part in job.parts],
        "mechanisms": [part.name for part in job.parts],
        "target": [job.share, job.second_share],
        "tracer": job.tracer,
        "annotated": job.is_annotated,
        "devices": job.n_devices,
        "hosts": job.n_hosts,
        "host": HOSTS[job.lead] if job.n_hosts > 1 else "",
        "hidden": [is_hidden(job, part) for part in job.parts],
        "culprits": [source.culprit(place) for place in range(len(job.parts))],
        "step_s": step,
        "outside_cores": lead["with"]["outside_cores"],
        "numbers": measured[job.lead]["numbers"],
        "measured": lead,
        "others": [one.get("with", {}).get("step_s") for i, one in enumerate(measured) if i != job.lead],
    }
    if job.parts and is_direct(job, 0):
        truth["share"] = lead["with"]["spent_s"] / step
    if "without" in lead:
        truth["gain_s"], truth["gain_noise_s"] = _gain(lead, "without")
        truth.setdefault("share", truth["gain_s"] / step)
    if job.second and "repeats" in lead:
        truth["second_gain_s"], _ = _gain(lead, "without_second")
        truth["second_share"] = (
            lead["with"]["extra_s"] / step if is_direct(job, 1) else truth["second_gain_s"] / step
        )
    return truth


def _see(truth: dict[str, Any], profile: bytes) -> None:
    """Restricts visible culprits to those in the profile: a callback's thread, for example, is not always
    traced.
    """
    for place, culprit in enumerate(truth["culprits"]):
        culprit["visible"] &= any(name.encode() in profile for name in culprit["names"])
        truth["hidden"][place] &= not (truth["tracer"] and culprit["visible"])
        # JAX's profiler does not record TensorFlow's events, even in the same process.
        truth["hidden"][place] |= (
            "tf.data" in truth["mechanisms"][place] and not truth["tracer"] and b"Iterator::" not in profile
        )


def is_hidden(job: Job, part: Part) -> bool:
    """Whether a trace without the Python tracer cannot show the cause. Without steps, a wait cannot be
    located in mid-step.
    """
    return part.needs_python or (part.is_async and not job.is_annotated and not job.tracer)


def is_direct(job: Job, place: int) -> bool:
    """Whether the seconds that a part spent are its cost: the loop waits for each step, and nothing
    overlaps.
    """
    part = job.parts[place]
    return part.is_direct and (part.is_async or job.end != "none")


def _gain(lead: dict[str, Any], way: str) -> tuple[float, float]:
    """Gain per step without the cause, and its noise: half the range of a way's means, or for a single one
    its distance from the median.
    """
    measurements: dict[str, list[dict[str, float]]] = {"with": [], way: []}
    for one, measured in measurements.items():
        measured += [some[one] for some in (lead, *lead.get("repeats", ())) if one in some]
    times = {one: [some["usual_s"] for some in measured] for one, measured in measurements.items()}
    noise = [(max(some) - min(some)) / 2 for some in times.values()]
    noise += [abs(some[0]["step_s"] - some[0]["usual_s"]) for some in measurements.values() if len(some) == 1]
    return statistics.median(times["with"]) - statistics.median(times[way]), max(noise)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("localhost", 0))
        return int(probe.getsockname()[1])
