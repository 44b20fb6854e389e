"""The WSGI environ of an ASGI request."""

from __future__ import annotations

import sys
from typing import IO, Any
from urllib.parse import unquote_to_bytes

from lcmsite.server.bodies import Scope
from lcmsite.server.disconnected import DISCONNECTED


def environ_of(scope: Scope, body: IO[bytes]) -> dict[str, Any]:
    """PEP 3333: texts hold bytes as Latin-1. Headers with an underscore are dropped, as they could pose as others."""
    host, port = scope.get("server") or ("localhost", 80)
    address, client_port = scope.get("client") or ("", 0)
    environ: dict[str, Any] = {
        "REQUEST_METHOD": scope["method"],
        "SCRIPT_NAME": "",
        "PATH_INFO": unquote_to_bytes(scope["raw_path"]).decode("latin-1"),
        "QUERY_STRING": scope["query_string"].decode("latin-1"),
        "SERVER_NAME": host,
        "SERVER_PORT": str(port or 0),
        "SERVER_PROTOCOL": f"HTTP/{scope['http_version']}",
        "REMOTE_ADDR": address,
        "REMOTE_PORT": str(client_port),
        "wsgi.version": (1, 0),
        "wsgi.url_scheme": scope["scheme"],
        "wsgi.input": body,
        "wsgi.errors": sys.stderr,
        "wsgi.multithread": True,
        "wsgi.multiprocess": True,
        "wsgi.run_once": False,
        DISCONNECTED: scope[DISCONNECTED],
    }
    for sent_name, sent_value in scope["headers"]:
        if b"_" in sent_name:
            continue
        name = sent_name.decode("latin-1").upper().replace("-", "_")
        if name not in ("CONTENT_TYPE", "CONTENT_LENGTH"):
            name = f"HTTP_{name}"
        value = sent_value.decode("latin-1")
        if name in environ:
            separator = "; " if name == "HTTP_COOKIE" else ","
            value = f"{environ[name]}{separator}{value}"
        environ[name] = value
    return environ
