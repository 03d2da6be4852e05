"""JSON body of a request to capture or monitor → the validated request."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tb_tpuprof.capture.continuous import snapshot_options
from tb_tpuprof.capture.options import HOST_NAMES, CaptureOptions, capture_options
from tb_tpuprof.capture.targets import MAX_TARGETS, Target, check_allowed, named_targets, parse_targets
from tb_tpuprof.capture.tpu_names import TpuPlace, resolve_tpus
from tb_tpuprof.errors import BadParameter
from tb_tpuprof.ingest.storage.writing import check_run_name
from tb_tpuprof.serve.logdirs import Logdirs
from tb_tpuprof.serve.rules import CaptureRules

_TEXTS = {
    "targets": MAX_TARGETS * 280,
    "tpu": 8192,
    "tpu_zone": 100,
    "gcp_project": 200,
    "logdir": 500,
    "workers_list": MAX_TARGETS * 280,
}
_OTHERS = ("options", "is_snapshot")


@dataclass(frozen=True)
class CaptureRequest:
    """A validated request. `targets` is empty if TPU names are given: those are resolved later, because the
    lookup is slow.
    """

    targets: tuple[Target, ...]
    tpu: str
    place: TpuPlace
    logdir: str  # its name, as --logdir_spec gives it
    logdir_path: str
    run_name: str
    options: CaptureOptions
    workers: tuple[str, ...]
    rules: CaptureRules

    @property
    def title(self) -> str:
        """What it profiles, as display text."""
        return self.tpu or ", ".join(str(target) for target in self.targets[:4]) + (
            " …" if len(self.targets) > 4 else ""
        )

    def addresses(self) -> tuple[Target, ...]:
        """The targets, with TPU names resolved. Raises what the lookup raises, Forbidden for an address that
        is not allowed, and BadParameter if there is not one host name for each.
        """
        if not self.tpu:
            return self.targets
        targets = parse_targets(",".join(str(target) for target in resolve_tpus(self.tpu, self.place)))
        allowed = check_allowed(targets, self.rules.allowed_targets)
        return named_targets(allowed, self.options.host_names, HOST_NAMES)


def capture_request(body: Mapping[str, Any], rules: CaptureRules, logdirs: Logdirs) -> CaptureRequest:
    """From a request's body. Raises BadParameter, which names the field, and Forbidden for targets that are
    not allowed.
    """
    for name in body:
        if name not in _TEXTS and name not in _OTHERS:
            raise BadParameter(name, body[name], f"none; the fields are {', '.join((*_TEXTS, *_OTHERS))}")
    texts = {name: _text(name, body.get(name, ""), limit) for name, limit in _TEXTS.items()}
    options = body.get("options", {})
    if not isinstance(options, dict):
        raise BadParameter("options", type(options).__name__, "an object")
    is_snapshot = body.get("is_snapshot", False)
    if not isinstance(is_snapshot, bool):
        raise BadParameter("is_snapshot", is_snapshot, "true or false")
    run_name = _text("run_name", options.get("run_name", ""), 200)
    check_run_name(run_name)
    if texts["tpu"] and texts["targets"]:
        raise BadParameter("tpu", texts["tpu"], "names of TPUs or targets, not both")
    targets = check_allowed(() if texts["tpu"] else parse_targets(texts["targets"]), rules.allowed_targets)
    workers = tuple(part.strip() for part in texts["workers_list"].split(",") if part.strip())
    check_allowed(
        parse_targets(texts["workers_list"]) if workers and rules.allowed_targets else (),
        rules.allowed_targets,
    )
    recording = capture_options({name: value for name, value in options.items() if name != "run_name"})
    return CaptureRequest(
        targets if texts["tpu"] else named_targets(targets, recording.host_names, HOST_NAMES),
        texts["tpu"],
        TpuPlace(texts["tpu_zone"], texts["gcp_project"]),
        texts["logdir"],
        _path(texts["logdir"], logdirs),
        run_name,
        snapshot_options(recording) if is_snapshot else recording,
        workers,
        rules,
    )


def _text(name: str, value: object, limit: int) -> str:
    if not isinstance(value, str) or len(value) > limit or any(not c.isprintable() for c in value):
        raise BadParameter(name, value, f"text of at most {limit} characters on one line")
    return value.strip()


def _path(name: str, logdirs: Logdirs) -> str:
    for logdir, path in logdirs.paths:
        if logdir == name:
            return path
    if not name and logdirs.paths:
        return logdirs.paths[0][1]
    names = ", ".join(repr(logdir) for logdir, _ in logdirs.paths)
    raise BadParameter(
        "logdir", name, f"one of {names}" if names else "none: TensorBoard was started without a logdir"
    )
