"""TPU names → worker addresses, against a double of the Cloud TPU API: what it may answer, and what we then
say.
"""

from __future__ import annotations

import builtins
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tb_tpuprof.capture import tpu_api, tpu_names
from tb_tpuprof.capture.targets import Target
from tb_tpuprof.capture.tpu_names import Login, TpuPlace, resolve_tpus
from tb_tpuprof.errors import BadParameter, TpuLookupFailed
from tests.capture.tpu_api import OLD_NODE, PROJECT, TOKEN, ZONE, TpuApi, node, refusal, serving


@pytest.fixture
def api() -> Iterator[TpuApi]:
    with serving(TpuApi()) as double:
        yield double


def resolve(api: TpuApi, text: str, token: str = TOKEN, **place: str) -> tuple[str, ...]:
    where = {"zone": ZONE, "project": PROJECT} | place
    return tuple(map(str, resolve_tpus(text, TpuPlace(api_url=api.url, **where), lambda: Login(token))))


def failure(api: TpuApi, text: str = "my-tpu", **arguments: str) -> TpuLookupFailed:
    with pytest.raises(TpuLookupFailed) as caught:
        resolve(api, text, **arguments)
    assert caught.value.remedy
    return caught.value


def test_one_worker(api: TpuApi) -> None:
    api.nodes["v2"]["my-tpu"] = node("my-tpu")
    assert resolve(api, "my-tpu") == ("10.130.0.2:8466",)
    assert resolve(api, "my-tpu:9012") == ("10.130.0.2:9012",)
    assert api.requests[0] == f"/v2/projects/{PROJECT}/locations/{ZONE}/nodes/my-tpu"


def test_a_slice_of_32_workers_keeps_its_order(api: TpuApi) -> None:
    api.nodes["v2"]["pod"] = node("pod", 32)
    found = resolve(api, "pod")
    assert len(found) == 32
    assert (found[0], found[31]) == ("10.130.0.2:8466", "10.130.0.33:8466")


def test_several_names_and_full_names(api: TpuApi) -> None:
    api.nodes["v2"] |= {"a": node("a"), "b": node("b", 2)}
    full = f"projects/{PROJECT}/locations/{ZONE}/nodes/b:9001"
    assert resolve(api, f"a, {full}, a") == ("10.130.0.2:8466", "10.130.0.2:9001", "10.130.0.3:9001")
    assert resolve(api, full, zone="europe-west4-a", project="other") == (
        "10.130.0.2:9001",
        "10.130.0.3:9001",
    )


def test_a_node_of_the_first_kind(api: TpuApi) -> None:
    api.nodes["v1"]["old"] = OLD_NODE
    assert resolve(api, "old") == ("10.240.1.2:8466",)
    api.nodes["v1"]["old"] = OLD_NODE | {"port": "9470"}
    assert resolve(api, "old") == ("10.240.1.2:9470",)


def test_addresses_of_the_sixth_version(api: TpuApi) -> None:
    api.nodes["v2"]["six"] = node("six") | {"networkEndpoints": [{"ipAddress": "2600:1900::2"}]}
    assert resolve(api, "six") == ("[2600:1900::2]:8466",)


def test_not_found(api: TpuApi) -> None:
    error = failure(api)
    assert error.message == f"There is no TPU my-tpu in {ZONE} (project {PROJECT})."
    assert "tpu-vm list" in error.remedy
    assert error.http_status == 409


def test_no_permission_names_the_role(api: TpuApi) -> None:
    api.nodes["v2"]["my-tpu"] = (
        403,
        refusal(
            403,
            "PERMISSION_DENIED",
            "Permission 'tpu.nodes.get' denied\x1b[31m on resource",
            "IAM_PERMISSION_DENIED",
        ),
    )
    error = failure(api)
    assert "do not permit access to the TPU my-tpu" in error.message
    assert "Permission 'tpu.nodes.get' denied" in error.message
    assert "\x1b" not in error.message
    assert "roles/tpu.viewer" in error.remedy


def test_api_switched_off(api: TpuApi) -> None:
    api.nodes["v2"]["my-tpu"] = (
        403,
        refusal(403, "PERMISSION_DENIED", "Cloud TPU API has not been used …", "SERVICE_DISABLED"),
    )
    assert failure(api).remedy == f"Run: gcloud services enable tpu.googleapis.com --project={PROJECT}"


def test_expired_token(api: TpuApi) -> None:
    error = failure(api, token="old-token")
    assert "expired or revoked" in error.message
    assert "gcloud auth application-default login" in error.remedy


@pytest.mark.parametrize(
    ("state", "remedy"),
    [("CREATING", "Wait"), ("STOPPED", "Start it"), ("PREEMPTED", "Recreate it"), ("NEW_STATE", "describe")],
)
def test_not_ready_names_the_state(api: TpuApi, state: str, remedy: str) -> None:
    api.nodes["v2"]["my-tpu"] = node("my-tpu", state=state)
    error = failure(api)
    assert f"its state is {state}" in error.message
    assert remedy in error.remedy


@pytest.mark.parametrize(
    "content",
    [
        b"<html>captive portal</html>",
        b"[1, 2]",
        b"[" * 100_000,
        {"state": "READY"},
        {"state": "READY", "networkEndpoints": {"a": 1}},
        {"state": "READY", "networkEndpoints": ["10.0.0.1"]},
        {"state": "READY", "networkEndpoints": [{"ipAddress": "evil.example.com"}]},
        {"state": "READY", "networkEndpoints": [{"ipAddress": "10.0.0.1", "port": 99999}]},
        {"state": "READY", "networkEndpoints": [{"ipAddress": "10.0.0.1", "port": "x"}]},
        {"state": "READY", "networkEndpoints": [{"ipAddress": "10.0.0.1"}] * 8193},
    ],
)
def test_hostile_answers(api: TpuApi, content: Any) -> None:
    api.nodes["v2"]["my-tpu"] = 200, content
    error = failure(api)
    assert "reply" in error.message


def test_an_answer_too_large_is_not_read_to_its_end(api: TpuApi, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tpu_api, "MAX_BYTES", 2**20)
    api.nodes["v2"]["my-tpu"] = 200, b" " * (8 * 2**20)
    assert "larger than 1 MiB" in failure(api).message


def test_redirects_are_not_followed(api: TpuApi) -> None:
    with serving(TpuApi()) as other:
        api.nodes["v2"]["my-tpu"] = 302, f"{other.url}/stolen".encode()
        assert "status 302" in failure(api).message
        assert not other.requests


def test_a_slow_api(api: TpuApi, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tpu_names, "_TIMEOUT_S", 0.2)
    api.delay_s = 1.0
    assert "did not answer within 0.2 s" in failure(api).message


def test_no_api() -> None:
    with pytest.raises(TpuLookupFailed, match="cannot be reached"):
        resolve_tpus("t", TpuPlace(ZONE, PROJECT, "http://127.0.0.1:1"), lambda: Login(TOKEN))


def test_an_overloaded_api(api: TpuApi) -> None:
    api.nodes["v2"]["my-tpu"] = 503, refusal(503, "UNAVAILABLE", "The service is currently unavailable.")
    error = failure(api)
    assert "status 503" in error.message
    assert "currently unavailable" in error.message


@pytest.mark.parametrize("url", ["http://tpu.example.com", "ftp://127.0.0.1", "tpu.googleapis.com", ""])
def test_the_token_goes_only_over_tls_or_within_the_machine(url: str) -> None:
    if url:
        with pytest.raises(BadParameter, match="tpu_api"):
            resolve_tpus("t", TpuPlace(ZONE, PROJECT, url), lambda: Login(TOKEN))
    else:
        assert tpu_names.API_URL.startswith("https://")


@pytest.mark.parametrize(
    "name",
    ["10.0.0.1:8466:1", "a b", "", ",", "../../x", "t:0", "t:70000", "n" * 200, "projects/p/nodes/x", "é"],
)
def test_names_that_are_none(name: str) -> None:
    with pytest.raises(BadParameter, match="tpu"):
        resolve_tpus(name, TpuPlace(ZONE, PROJECT), lambda: Login(TOKEN))


@pytest.mark.parametrize(
    "place",
    [TpuPlace("../x", PROJECT), TpuPlace(ZONE, "p/../../q"), TpuPlace("a b", PROJECT), TpuPlace(ZONE, "é")],
)
def test_zones_and_projects_that_are_none(place: TpuPlace) -> None:
    with pytest.raises(BadParameter, match=r"tpu_zone|gcp_project"):
        resolve_tpus("t", place, lambda: Login(TOKEN))


def test_zone_and_project_are_found_out(api: TpuApi, monkeypatch: pytest.MonkeyPatch) -> None:
    api.nodes["v2"]["my-tpu"] = node("my-tpu")
    monkeypatch.setenv("GCE_METADATA_HOST", api.url.removeprefix("http://"))
    monkeypatch.setenv("TPUPROF_TPU_API", api.url)
    assert resolve_tpus("my-tpu", login=lambda: Login(TOKEN, PROJECT)) == (Target("10.130.0.2", 8466),)
    api.zone = "<html>"
    with pytest.raises(TpuLookupFailed, match="zone was not given") as caught:
        resolve_tpus("my-tpu", login=lambda: Login(TOKEN, PROJECT))
    assert "--tpu_zone" in caught.value.remedy
    with pytest.raises(TpuLookupFailed, match="needs a project") as caught:
        resolve_tpus("my-tpu", TpuPlace(ZONE), lambda: Login(TOKEN))
    assert "--gcp_project" in caught.value.remedy


def test_without_google_auth(monkeypatch: pytest.MonkeyPatch) -> None:
    real = builtins.__import__

    def missing(name: str, *args: Any, **named: Any) -> Any:
        if name.startswith("google.auth"):
            raise ImportError(name)
        return real(name, *args, **named)

    monkeypatch.setattr(builtins, "__import__", missing)
    with pytest.raises(TpuLookupFailed, match="not installed") as caught:
        tpu_names.default_login()
    assert "pip install 'tb-tpuprof[tpu]'" in caught.value.remedy


@pytest.fixture
def key_file(api: TpuApi, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Default credentials of a service account whose tokens the double gives out."""
    pytest.importorskip("google.auth", reason="google-auth is not installed")
    pytest.importorskip("requests", reason="google-auth's transport is not installed")
    pytest.importorskip("cryptography", reason="no key can be made without cryptography")
    from cryptography.hazmat.primitives import serialization
    from cryptography.hazmat.primitives.asymmetric import rsa

    key = rsa.generate_private_key(65537, 2048)
    form = serialization.PrivateFormat.PKCS8
    pem = key.private_bytes(serialization.Encoding.PEM, form, serialization.NoEncryption()).decode()
    account = {
        "type": "service_account",
        "project_id": PROJECT,
        "private_key_id": "1",
        "private_key": pem,
        "client_id": "1",
        "client_email": "profiler@example.com",
        "token_uri": f"{api.url}/token",
    }
    path = tmp_path / "key.json"
    path.write_text(json.dumps(account))
    monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", str(path))
    return path


def test_default_credentials(api: TpuApi, key_file: Path) -> None:
    api.nodes["v2"]["my-tpu"] = node("my-tpu")
    assert resolve_tpus("my-tpu", TpuPlace(zone=ZONE, api_url=api.url)) == (Target("10.130.0.2", 8466),)


def test_expired_credentials(api: TpuApi, key_file: Path) -> None:
    api.token_answer = (
        400,
        {"error": "invalid_grant", "error_description": "Token has been expired or revoked."},
    )
    with pytest.raises(TpuLookupFailed, match="expired or revoked") as caught:
        tpu_names.default_login()
    assert "gcloud auth application-default login" in caught.value.remedy


def test_no_credentials(key_file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    key_file.write_text("{}")
    with pytest.raises(TpuLookupFailed, match="no Google Cloud credentials") as caught:
        tpu_names.default_login()
    assert "gcloud auth application-default login" in caught.value.remedy
