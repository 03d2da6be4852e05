"""Requests of real servers and predicting loops: latency, its parts and throughput against what each program
measured of itself.
"""

from __future__ import annotations

import numpy as np
import pytest

from tb_tpuprof.analysis.inference.record import HostInference, host_inference
from tb_tpuprof.analysis.inference.work import Part
from tb_tpuprof.tools import get_tool
from tests.payload_columns import table
from tests.truth.runner import Truth, profiled

pytestmark = pytest.mark.slow
PS = 1e12
LATE_S = 0.0005  # between the program's clock and the annotation inside of it


def found_in(truth: Truth) -> HostInference:
    session = truth.session()
    (host,) = session.hosts
    return session.get(host_inference, host)


def check_latency(truth: Truth, found: HostInference) -> None:
    """Each request lasts as long as by the program's clock, which starts a little earlier and ends later."""
    began, ended = (np.array(truth.facts[key]) for key in ("began_s", "ended_s"))
    order = np.argsort(began, kind="stable")
    began, ended = began[order], ended[order]
    assert len(found) == len(began)
    assert found.size.tolist() == np.array(truth.facts["size"])[order].tolist()
    longer = (ended - began) - found.latency_ps / PS
    # A thread may be put aside between its clock and its annotation: few are.
    assert longer.min() >= -5e-5  # on a quiet machine TensorFlow's pool records its end 10 µs after the call
    assert np.quantile(longer, 0.9) <= LATE_S
    assert (found.part_ps.sum(axis=1) == found.latency_ps).all()
    gaps = np.diff(began) - np.diff(found.start_ps) / PS
    assert np.median(np.abs(gaps)) <= LATE_S


@pytest.mark.parametrize("n_threads", ["1", "2"])
def test_a_jax_server(n_threads: str) -> None:
    truth = profiled("serve_jax.py", n_threads)
    found = found_in(truth)
    check_latency(truth, found)
    facts = {key: np.array(values) for key, values in truth.facts.items()}
    order = np.argsort(facts["began_s"], kind="stable")
    decode = (facts["decoded_s"] - facts["began_s"])[order]
    waited = (facts["done_s"] - facts["decoded_s"])[order]
    encode = (facts["ended_s"] - facts["done_s"])[order]
    part = found.part_ps / PS
    # What is decoded before the call, and encoded after it, is the host's.
    assert np.median(np.abs(part[:, Part.HOST_BEFORE] - decode)) <= 0.1 * np.median(decode) + LATE_S
    assert np.median(np.abs(part[:, Part.HOST_AFTER] - encode)) <= 0.1 * np.median(encode) + LATE_S
    rest = part[:, [Part.WAIT, Part.QUEUE, Part.HOST_RUNTIME, Part.TO_DEVICE, Part.TO_HOST, Part.DEVICE]]
    assert np.median(np.abs(rest.sum(axis=1) - waited)) <= 0.1 * np.median(waited) + LATE_S
    # Between call and result, the model runs most of the time.
    assert np.median(part[:, Part.DEVICE] / waited) >= 0.6
    payload = get_tool("inference_profile").run(truth.session(), None, {})
    span = facts["ended_s"].max() - facts["began_s"].min()
    assert payload.scalars["requests_per_s"].value == pytest.approx(len(found) / span, rel=0.02)
    in_progress = (facts["ended_s"] - facts["began_s"]).sum() / span
    assert payload.scalars["mean_in_progress"].value == pytest.approx(in_progress, rel=0.05)
    at = sorted(facts["ended_s"] - facts["began_s"])[(len(found) + 1) // 2 - 1]
    assert float(payload.scalars["latency_p50_ps"].value or 0) / PS == pytest.approx(at, rel=0.05)


def test_annotated_calls_of_tensorflow() -> None:
    truth = profiled("predict_tf.py", "annotated", packages=("tensorflow",))
    check_latency(truth, found_in(truth))


def test_calls_of_a_function_that_serves() -> None:
    truth = profiled("predict_tf.py", "function", packages=("tensorflow",))
    found = found_in(truth)
    whole = np.array(truth.facts["ended_s"]) - np.array(truth.facts["began_s"])
    assert len(found) == len(whole)
    # The function's event excludes making its input and reading its result.
    assert (found.latency_ps / PS <= whole + 1e-5).all()
    assert np.median(found.latency_ps / PS / whole) >= 0.7
    assert found.models == ("serve",)


def test_batches_of_keras() -> None:
    truth = profiled("predict_tf.py", "keras", packages=("keras", "tensorflow"))
    found = found_in(truth)
    whole = np.array(truth.facts["ended_s"]) - np.array(truth.facts["began_s"])
    assert len(found) == len(whole)
    assert (found.latency_ps / PS <= whole + 1e-5).all()
    assert found.models == ("one_step_on_data_distributed",)
    assert float(found.part_ps[:, Part.DEVICE].sum()) / float(found.latency_ps.sum()) >= 0.3


def test_the_last_batch_of_keras_is_smaller() -> None:
    truth = profiled("predict_tf.py", "uneven", packages=("keras", "tensorflow"))
    found = found_in(truth)
    whole = np.array(truth.facts["ended_s"]) - np.array(truth.facts["began_s"])
    assert truth.facts["size"] == [7] * 14 + [2]
    assert len(found) == 15
    assert (found.latency_ps / PS <= whole + 1e-5).all()
    payload = get_tool("inference_profile").run(truth.session(), None, {})
    # The clock of the first batch starts long before its function does.
    span = truth.facts["ended_s"][-1] - truth.facts["ended_s"][0] + found.latency_ps[0] / PS
    assert float(payload.scalars["requests_per_s"].value or 0) == pytest.approx(15 / span, rel=0.05)
    # 15 batches are too few to judge.
    assert payload.verdict is not None
    assert payload.verdict.text.startswith("Too few requests to say what limits them: the trace has 15")


def test_batches_of_a_queueing_server() -> None:
    truth = profiled("serve_batches_jax.py", "batches")
    batches = sorted(truth.facts["batches"])
    began, ended = (np.array([batch[i] for batch in batches]) for i in (0, 1))
    payload = get_tool("inference_profile").run(truth.session(), None, {})
    found = found_in(truth)
    assert len(found) == len(batches)
    assert found.size.tolist() == [batch[3] for batch in batches]
    assert [found.models[i] for i in found.model.tolist()] == [batch[2] for batch in batches]
    longer = (ended - began) - found.latency_ps / PS
    assert longer.min() >= -5e-5
    assert np.quantile(longer, 0.9) <= LATE_S
    span = ended.max() - began.min()
    assert payload.scalars["requests_per_s"].value == pytest.approx(len(batches) / span, rel=0.02)
    models, by_size = table(payload, "models"), table(payload, "sizes")
    rows = dict(zip(models["model"], models["n_requests"], strict=True))
    assert rows == {model: sum(batch[2] == model for batch in batches) for model in ("small", "large")}
    sizes = dict(zip(by_size["size"], by_size["n"], strict=True))
    assert sizes == {n: sum(batch[3] == n for batch in batches) for n in {batch[3] for batch in batches}}


def test_requests_of_a_queueing_server() -> None:
    truth = profiled("serve_batches_jax.py", "requests")
    requests = sorted(truth.facts["requests"])
    began, ended = (np.array([request[i] for request in requests]) for i in (0, 1))
    found = found_in(truth)
    assert len(found) == len(requests)
    assert [found.models[i] for i in found.model.tolist()] == [request[2] for request in requests]
    longer = (ended - began) - found.latency_ps / PS
    assert longer.min() >= -5e-5
    assert np.quantile(longer, 0.9) <= 2 * LATE_S  # clients start in bursts, more than there are processors
    payload = get_tool("inference_profile").run(truth.session(), None, {})
    span = ended.max() - began.min()
    assert payload.scalars["requests_per_s"].value == pytest.approx(len(requests) / span, rel=0.02)
    in_progress = (ended - began).sum() / span
    assert payload.scalars["mean_in_progress"].value == pytest.approx(in_progress, rel=0.1)
    at = sorted(ended - began)[(len(found) + 1) // 2 - 1]
    assert float(payload.scalars["latency_p50_ps"].value or 0) / PS == pytest.approx(at, rel=0.1)
    # Clients only wait, and the worker annotates none of their requests.
    assert payload.verdict is not None
    assert payload.verdict.text.startswith("Limited by waiting: nothing traced happens")
    assert "of the device's work belongs to no request" in payload.diagnostics[-1].message
