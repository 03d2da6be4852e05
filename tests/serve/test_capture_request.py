"""Limits of a request for a capture."""

from __future__ import annotations

import pytest

from tb_tpuprof.errors import BadParameter
from tb_tpuprof.serve.capture_request import capture_request
from tb_tpuprof.serve.logdirs import Logdirs
from tb_tpuprof.serve.rules import CaptureRules

LOGDIRS = Logdirs((("", "/logs"),))
LIMITS = {
    "targets": 71_680,
    "tpu": 8192,
    "tpu_zone": 100,
    "gcp_project": 200,
    "logdir": 500,
    "workers_list": 71_680,
}


@pytest.mark.parametrize(("name", "limit"), LIMITS.items())
def test_texts_are_as_long_as_they_may_be(name: str, limit: int) -> None:
    for n, is_too_long in ((limit, False), (limit + 1, True)):
        with pytest.raises(BadParameter) as refused:
            capture_request({name: "?" * n, "options": []}, CaptureRules(), LOGDIRS)
        assert (refused.value.parameter == name) == is_too_long


@pytest.mark.parametrize("n", [1, 4, 5])
def test_the_title_names_at_most_four_targets(n: int) -> None:
    targets = [f"h{i}:1" for i in range(n)]
    request = capture_request({"targets": ",".join(targets)}, CaptureRules(), LOGDIRS)
    assert request.title == ", ".join(targets[:4]) + (" …" if n > 4 else "")
