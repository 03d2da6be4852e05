"""Captures over TLS from a server with a certificate of an authority made for the test."""

from __future__ import annotations

import datetime
import ipaddress
from pathlib import Path

import grpc
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from tb_tpuprof.capture.client import profile_once
from tb_tpuprof.capture.messages import PROFILE
from tb_tpuprof.capture.options import CaptureOptions
from tb_tpuprof.capture.targets import Target, parse_targets
from tb_tpuprof.capture.tls import CERTIFICATE, KEY, ROOTS
from tb_tpuprof.errors import BadParameter, CaptureFailed
from tests.capture.double import Double, good, listening_with, serving
from tests.ingest.xspaces import small_xspace

OPTIONS = CaptureOptions(duration_ms=50, timeout_s=10)
Pair = tuple[x509.Certificate, ec.EllipticCurvePrivateKey]


def certificate(name: str, issuer: Pair | None = None, host: str = "127.0.0.1") -> Pair:
    """A certificate for a host, signed by an issuer; without one, of an authority."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    today = datetime.datetime.now(datetime.timezone.utc)
    builder = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer[0].subject if issuer else subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(today - datetime.timedelta(days=1))
        .not_valid_after(today + datetime.timedelta(days=2))
        .add_extension(x509.BasicConstraints(ca=issuer is None, path_length=None), critical=True)
    )
    if issuer:
        names = x509.SubjectAlternativeName(
            [x509.IPAddress(ipaddress.ip_address(host)), x509.DNSName("localhost")]
        )
        builder = builder.add_extension(names, critical=False)
    return builder.sign(issuer[1] if issuer else key, hashes.SHA256()), key


def pem(part: x509.Certificate | ec.EllipticCurvePrivateKey) -> bytes:
    if isinstance(part, x509.Certificate):
        return part.public_bytes(serialization.Encoding.PEM)
    return part.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )


@pytest.fixture(scope="module")
def authority() -> Pair:
    return certificate("an authority")


def server_credentials(pair: Pair, clients: Pair | None = None) -> grpc.ServerCredentials:
    return grpc.ssl_server_credentials(
        [(pem(pair[1]), pem(pair[0]))], pem(clients[0]) if clients else None, clients is not None
    )


def written(folder: Path, monkeypatch: pytest.MonkeyPatch, **files: bytes) -> None:
    """Files that the environment variables of these names point to."""
    for variable, content in files.items():
        (folder / variable).write_bytes(content)
        monkeypatch.setenv(variable, str(folder / variable))


@pytest.fixture(autouse=True)
def no_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    for variable in (ROOTS, CERTIFICATE, KEY):
        monkeypatch.delenv(variable, raising=False)


def test_a_profile_over_tls(authority: Pair, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    written(tmp_path, monkeypatch, **{ROOTS: pem(authority[0])})
    taken: list[int] = []
    stages: list[str] = []
    double = Double({PROFILE: [good()]})
    with listening_with(double, server_credentials(certificate("server", authority))) as target:
        reply = profile_once(
            target, OPTIONS, stage=lambda name, *_: stages.append(name), take=lambda n: taken.append(n)
        )
    assert b"".join(bytes(part) for part in reply.pieces) == small_xspace()
    assert len(taken) == 1
    assert taken[0] > len(small_xspace())
    assert stages == ["profiling", "receiving"]


def test_the_certificate_names_the_host_that_was_typed_not_the_address(
    authority: Pair, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    written(tmp_path, monkeypatch, **{ROOTS: pem(authority[0])})
    double = Double({PROFILE: [good(), good()]})
    with listening_with(double, server_credentials(certificate("server", authority))) as target:
        named = Target("localhost", target.port, "127.0.0.1", is_secure=True)
        assert profile_once(named, OPTIONS).pieces
        with pytest.raises(CaptureFailed, match="over TLS") as failed:
            profile_once(Target("other.invalid", target.port, "127.0.0.1", is_secure=True), OPTIONS)
    assert failed.value.reason == "tls"


def test_a_client_certificate(authority: Pair, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    own = certificate("client", authority)
    double = Double({PROFILE: [good()]})
    credentials = server_credentials(certificate("server", authority), clients=authority)
    with listening_with(double, credentials) as target:
        written(tmp_path, monkeypatch, **{ROOTS: pem(authority[0])})
        with pytest.raises(CaptureFailed):
            profile_once(target, OPTIONS)
        written(tmp_path, monkeypatch, **{CERTIFICATE: pem(own[0])})
        with pytest.raises(CaptureFailed, match=f"{CERTIFICATE} and {KEY} are needed together"):
            profile_once(target, OPTIONS)
        written(tmp_path, monkeypatch, **{KEY: pem(own[1])})
        assert profile_once(target, OPTIONS).pieces


def test_an_unknown_authority_is_refused_with_the_remedy(authority: Pair) -> None:
    with (
        listening_with(Double({}), server_credentials(certificate("server", authority))) as target,
        pytest.raises(CaptureFailed, match="over TLS") as failed,
    ):
        profile_once(target, OPTIONS)
    assert ROOTS in failed.value.remedy


def test_a_missing_file_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(ROOTS, "/nowhere/roots.pem")
    with pytest.raises(CaptureFailed, match=r"TPUPROF_TLS_ROOTS=/nowhere/roots\.pem: No such file"):
        profile_once(Target("127.0.0.1", 1, is_secure=True), OPTIONS)


def test_plain_and_secure_do_not_meet(
    authority: Pair, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    written(tmp_path, monkeypatch, **{ROOTS: pem(authority[0])})
    with serving(good()) as (target, _), pytest.raises(CaptureFailed) as failed:
        profile_once(Target(target.host, target.port, is_secure=True), OPTIONS)
    assert failed.value.reason in ("tls", "unreachable")
    double = Double({PROFILE: [good()]})
    with (
        listening_with(double, server_credentials(certificate("server", authority))) as secure,
        pytest.raises(CaptureFailed),
    ):
        profile_once(Target(secure.host, secure.port), OPTIONS)


def test_the_scheme_is_part_of_the_target() -> None:
    (target,) = parse_targets("GRPCS://w0.internal:443/")
    assert (str(target), target.uri, target.is_secure) == (
        "grpcs://w0.internal:443",
        "dns:///w0.internal:443",
        True,
    )
    assert str(parse_targets("grpcs://[::1]:443")[0]) == "grpcs://[::1]:443"
    assert parse_targets(str(target)) == (target,)
    with pytest.raises(BadParameter, match="'a:1'"):
        parse_targets("grpcs://a:1, a:1")
