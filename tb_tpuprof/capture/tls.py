"""TLS for targets written as `grpcs://host:port`; environment variables name the files of certificates."""

from __future__ import annotations

import os

import grpc

from tb_tpuprof.capture.failures import failure
from tb_tpuprof.capture.targets import Target

ROOTS, CERTIFICATE, KEY = "TPUPROF_TLS_ROOTS", "TPUPROF_TLS_CERTIFICATE", "TPUPROF_TLS_KEY"
_MOST_BYTES = 4 * 2**20


def credentials(target: Target) -> grpc.ChannelCredentials:
    """The authorities to trust (gRPC's own without `TPUPROF_TLS_ROOTS`), and the client's certificate if one
    is named. Raises CaptureFailed if a file cannot be read.
    """
    certificate, key = _content(target, CERTIFICATE), _content(target, KEY)
    if (certificate is None) != (key is None):
        raise failure(target, "tls", server_text=f": {CERTIFICATE} and {KEY} are needed together")
    return grpc.ssl_channel_credentials(_content(target, ROOTS), key, certificate)


def _content(target: Target, variable: str) -> bytes | None:
    """The PEM file that a variable names; None if it names none."""
    path = os.environ.get(variable)
    if not path:
        return None
    try:
        with open(path, "rb") as file:
            return file.read(_MOST_BYTES)
    except OSError as error:
        raise failure(target, "tls", server_text=f": {variable}={path}: {error.strerror or error}") from None
