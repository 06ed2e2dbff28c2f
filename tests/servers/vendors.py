"""The vendors' own addresses, answered on this machine.

    with vendors({"api.anthropic.com": server}, folder) as there:
        subprocess.run(["claude", …], env={**there.environment, …})
        there.asked                  what was asked of which host, model calls or not

A program that has no base URL asks its vendor by name, over TLS. Here it is given a proxy for
HTTPS, which has a certificate for every name, and the authority that signed it. Requests to a
host with a `tests.servers.Provider` get its answers; any other host has nothing (404). So a
program is seen as its maker lets it run, and the same program behind ullage, which then asks
the same names by the same way.
"""

import http.client
import socket
import ssl
import threading
from contextlib import contextmanager, suppress
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import urlsplit

from msgspec import Struct

_CERTIFICATES = (
    "SSL_CERT_FILE",
    "NODE_EXTRA_CA_CERTS",
    "REQUESTS_CA_BUNDLE",
    "CODEX_CA_CERTIFICATE",
)
_PROXIES = ("HTTPS_PROXY", "https_proxy", "HTTP_PROXY", "http_proxy")


class Asked(Struct, frozen=True):
    """A request to a host of the world: its name, the method and the path without its query."""

    host: str
    method: str
    path: str


class Vendors:
    """What stands for the hosts of the world.

    Attributes:
        environment: variables that lead a program here.
        asked: every request, in the order it came in.
    """

    def __init__(self, servers, authority, environment):
        self.environment, self.asked = environment, []
        self._servers, self._authority = servers, authority
        self._contexts, self._lock, self._open = {}, threading.Lock(), set()

    def tls_for(self, host):
        """The TLS settings with a certificate for this host."""
        with self._lock:
            if host not in self._contexts:
                self._contexts[host] = self._authority.context_for(host)
            return self._contexts[host]

    def took(self, connection):
        """Remember a connection until it is over."""
        with self._lock:
            self._open.add(connection)

    def is_over(self, connection):
        """Forget a connection."""
        with self._lock:
            self._open.discard(connection)
        connection.close()

    def hang_up(self):
        """End the connections that programs have left open."""
        with self._lock:
            for connection in self._open:
                with suppress(OSError):
                    connection.shutdown(socket.SHUT_RDWR)

    def provider_of(self, host):
        """The provider that answers for a host, if there is one."""
        return self._servers.get(host)


@contextmanager
def vendors(servers, folder):
    """Hosts of the world on this machine, for as long as the block lasts.

    Args:
        servers: the `tests.servers.Provider` of each host that has one.
        folder: where certificates are written.
    """
    authority = _Authority(folder)
    with ThreadingHTTPServer(("127.0.0.1", 0), _Tunnel) as tunnel:
        tunnel.daemon_threads = False  # so that they are waited for
        url = f"http://127.0.0.1:{tunnel.server_address[1]}"
        environment = dict.fromkeys(_PROXIES, url) | dict.fromkeys(
            _CERTIFICATES, str(authority.path)
        )
        tunnel.vendors = there = Vendors(servers, authority, environment)
        thread = threading.Thread(
            target=tunnel.serve_forever, kwargs={"poll_interval": 0.02}
        )
        thread.start()
        try:
            yield there
        finally:
            tunnel.shutdown()
            thread.join()
            there.hang_up()


class _Tunnel(BaseHTTPRequestHandler):
    """A proxy for HTTPS that ends the tunnel itself."""

    protocol_version = "HTTP/1.1"

    def setup(self):
        super().setup()
        self.server.vendors.took(self.connection)

    def finish(self):
        with suppress(OSError):
            super().finish()
        self.server.vendors.is_over(self.connection)

    def do_CONNECT(self):
        self.host = self.path.rpartition(":")[0]
        self.send_response(200)
        self.end_headers()
        try:
            context = self.server.vendors.tls_for(self.host)
            plain, there = self.connection, self.server.vendors
            self.connection = context.wrap_socket(plain, server_side=True)
        except OSError:
            self.close_connection = True
            return
        there.is_over(plain)
        there.took(self.connection)
        self.rfile = self.connection.makefile("rb", self.rbufsize)
        self.wfile = self.connection.makefile("wb", 0)
        self.close_connection = False

    def do_POST(self):
        there = self.server.vendors
        url = urlsplit(self.path)
        host = getattr(self, "host", url.hostname or "")
        path = url.path + (f"?{url.query}" if url.query else "")
        length = int(self.headers.get("content-length") or 0)
        body = self.rfile.read(length) if length else self._chunked()
        there.asked.append(Asked(host, self.command, url.path))
        provider = there.provider_of(host)
        if provider is None or "upgrade" in self.headers:
            self._say(404, {"content-type": "application/json"}, b"{}")
            return
        connection = http.client.HTTPConnection(
            urlsplit(provider.url).netloc, timeout=30
        )
        headers = {
            name: value
            for name, value in self.headers.items()
            if name.lower()
            not in ("transfer-encoding", "content-length", "connection")
        }
        connection.request(self.command, path, body, headers)
        reply = connection.getresponse()
        kept = {
            name: value
            for name, value in reply.getheaders()
            if name.lower() not in _OF_A_HOP
        }
        self._say(reply.status, kept, reply.read())
        connection.close()

    do_GET = do_HEAD = do_PUT = do_DELETE = do_PATCH = do_OPTIONS = do_POST

    def _chunked(self):
        if self.headers.get("transfer-encoding", "").lower() != "chunked":
            return b""
        pieces = []
        while size := int(self.rfile.readline().split(b";")[0], 16):
            pieces.append(self.rfile.read(size))
            self.rfile.readline()
        self.rfile.readline()
        return b"".join(pieces)

    def _say(self, status, headers, body):
        try:
            self.send_response(status)
            for name, value in headers.items():
                self.send_header(name, value)
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(body)
        except OSError:
            self.close_connection = True

    def log_message(self, *arguments):
        pass


_OF_A_HOP = frozenset(
    ("content-length", "connection", "transfer-encoding", "date", "server")
)


class _Authority:
    """A certificate authority of this test alone."""

    def __init__(self, folder):
        from cryptography import x509
        from cryptography.hazmat.primitives.asymmetric import ec

        self._x509, self._folder = x509, folder
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = x509.Name(
            [
                x509.NameAttribute(
                    x509.NameOID.COMMON_NAME, "an authority of a test"
                )
            ]
        )
        self.path = folder / "authority.pem"
        own = x509.BasicConstraints(ca=True, path_length=0)
        self._certificate = self._signed(self._name, own)
        self.path.write_bytes(self._pem(self._certificate))

    def context_for(self, host):
        """TLS settings with a certificate for a host."""
        name = self._x509.Name(
            [self._x509.NameAttribute(self._x509.NameOID.COMMON_NAME, host)]
        )
        names = self._x509.SubjectAlternativeName([self._x509.DNSName(host)])
        file = self._folder / f"{host}.pem"
        file.write_bytes(
            self._pem(self._signed(name, names)) + self._private()
        )
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(file)
        context.set_alpn_protocols(["http/1.1"])
        return context

    def _signed(self, name, extension):
        from cryptography.hazmat.primitives import hashes

        now = datetime.now(UTC)
        builder = (
            self._x509.CertificateBuilder()
            .subject_name(name)
            .issuer_name(self._name)
        )
        builder = builder.public_key(self._key.public_key())
        builder = builder.serial_number(self._x509.random_serial_number())
        builder = builder.not_valid_before(now - timedelta(days=1))
        builder = builder.not_valid_after(now + timedelta(days=30))
        return builder.add_extension(extension, critical=True).sign(
            self._key, hashes.SHA256()
        )

    def _pem(self, certificate):
        from cryptography.hazmat.primitives.serialization import Encoding

        return certificate.public_bytes(Encoding.PEM)

    def _private(self):
        from cryptography.hazmat.primitives.serialization import (
            Encoding,
            NoEncryption,
            PrivateFormat,
        )

        return self._key.private_bytes(
            Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()
        )
