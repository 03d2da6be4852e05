"""Which captures the owner of a server allows, and what a request for one may say."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from tb_tpuprof.errors import BadParameter, Forbidden
from tb_tpuprof.serve.capture_request import capture_request
from tb_tpuprof.serve.logdirs import Logdirs
from tb_tpuprof.serve.rules import CaptureRules

LOGDIRS = Logdirs((("a", "/x"), ("b", "/y")))
TARGETS = {"targets": "localhost:1"}


@pytest.mark.parametrize("word", ["on", "ON", " true ", "1", "yes", ""])
def test_capturing_is_on(word: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TPUPROF_CAPTURE", raising=False)
    rules = CaptureRules.of(SimpleNamespace(tpuprof_capture=word))
    assert rules.reason == ""
    rules.check_on()


@pytest.mark.parametrize("word", ["off", "False", "0", "no"])
def test_capturing_is_off(word: str) -> None:
    rules = CaptureRules.of(SimpleNamespace(tpuprof_capture=word))
    assert "has switched capturing off" in rules.reason
    with pytest.raises(Forbidden):
        rules.check_on()


def test_a_value_that_cannot_be_parsed_switches_off_and_is_shown_in_part() -> None:
    rules = CaptureRules.of(SimpleNamespace(tpuprof_capture="x" * 21))
    assert rules.reason == f"Capturing is off: --tpuprof_capture must be on or off, not {'x' * 20!r}."


def test_flags_that_are_no_texts_are_not_given(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TPUPROF_CAPTURE_TARGETS", " A:1 ,, b:* ")
    flags = SimpleNamespace(tpuprof_capture=None, tpuprof_capture_targets=0, master_tpu_unsecure_channel=None)
    assert CaptureRules.of(flags) == CaptureRules("", ("a:1", "b:*"), "")


@pytest.mark.parametrize(("name", "path"), [("a", "/x"), ("b", "/y"), ("", "/x")])
def test_the_folder_of_a_capture(name: str, path: str) -> None:
    request = capture_request({**TARGETS, "logdir": name}, CaptureRules(), LOGDIRS)
    assert (request.logdir, request.logdir_path) == (name, path)


def test_other_folders_are_refused() -> None:
    for logdirs, said in ((LOGDIRS, "one of 'a', 'b'"), (Logdirs(()), "started without a logdir")):
        with pytest.raises(BadParameter) as refused:
            capture_request({**TARGETS, "logdir": "c"}, CaptureRules(), logdirs)
        assert refused.value.parameter == "logdir"
        assert said in refused.value.remedy
    with pytest.raises(BadParameter):
        capture_request(TARGETS, CaptureRules(), Logdirs(()))


def test_either_targets_or_tpus() -> None:
    request = capture_request({"tpu": "t1"}, CaptureRules(), LOGDIRS)
    assert (request.tpu, request.targets, request.title) == ("t1", (), "t1")
    for body in ({**TARGETS, "tpu": "t1"}, {"targets": ""}):
        with pytest.raises(BadParameter):
            capture_request(body, CaptureRules(), LOGDIRS)


def test_workers_are_listed_and_held_to_the_owners_rules() -> None:
    body = {**TARGETS, "workers_list": " localhost:2 ,, localhost:3"}
    assert capture_request(body, CaptureRules(), LOGDIRS).workers == ("localhost:2", "localhost:3")
    allowed = CaptureRules("", ("localhost:1", "localhost:2"))
    with pytest.raises(Forbidden):
        capture_request(body, allowed, LOGDIRS)
    fewer = {**TARGETS, "workers_list": "localhost:2"}
    assert capture_request(fewer, allowed, LOGDIRS).workers == ("localhost:2",)
    assert capture_request(TARGETS, allowed, LOGDIRS).workers == ()
    with pytest.raises(Forbidden):
        capture_request({"targets": "localhost:3"}, allowed, LOGDIRS)


def test_fields_and_options() -> None:
    for body, parameter in (
        ({**TARGETS, "target": "x"}, "target"),
        ({**TARGETS, "options": []}, "options"),
        ({**TARGETS, "tpu_zone": "a\nb"}, "tpu_zone"),
        ({**TARGETS, "gcp_project": 1}, "gcp_project"),
        ({**TARGETS, "options": {"run_name": "r" * 201}}, "run_name"),
    ):
        with pytest.raises(BadParameter) as refused:
            capture_request(body, CaptureRules(), LOGDIRS)
        assert refused.value.parameter == parameter
    named = capture_request({**TARGETS, "options": {"run_name": " run-1 "}}, CaptureRules(), LOGDIRS)
    assert named.run_name == "run-1"
    place = capture_request({"tpu": "t", "tpu_zone": "z", "gcp_project": "p"}, CaptureRules(), LOGDIRS).place
    assert (place.zone, place.project) == ("z", "p")
