"""Which requests are answered. The server listens on the loopback address only, but any page in the browser can reach
it.

Another site can send requests to 127.0.0.1; it cannot read the answers, as no CORS headers are sent. It can also point
a name of its own to 127.0.0.1 to read them as its own (DNS rebinding). So the `Host` of a request must be this
server's, and a request that names its origin must come from one of these pages.
"""

from __future__ import annotations

from email.message import Message

NAMES = ("127.0.0.1", "localhost", "[::1]")

PAGE_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; style-src-attr 'unsafe-inline'; img-src data:; "
    "connect-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
)
REPORT_POLICY = (
    "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data: blob:; font-src data:; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
"""A report has a policy of its own with the hashes of its scripts; the browser enforces both."""

HEADERS = {
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cache-Control": "no-store",
}


def refusal(headers: Message, port: int) -> str | None:
    """Why a request is refused, or None."""
    allowed = {f"{name}:{port}" for name in NAMES} | (set(NAMES) if port == 80 else set())
    hosts = [host.strip().lower() for host in headers.get_all("Host", [])]
    if len(hosts) != 1 or hosts[0] not in allowed:
        return f"This server answers requests to {NAMES[0]}:{port} and localhost:{port} only."
    origins = {origin.strip().lower() for origin in headers.get_all("Origin", [])}
    if origins - {f"http://{name}" for name in allowed}:
        return "Requests from other sites are refused."
    site, mode = headers.get("Sec-Fetch-Site"), headers.get("Sec-Fetch-Mode")
    if site in ("cross-site", "same-site") and mode != "navigate":
        return "Requests from other sites are refused."  # a link to here may be followed, but nothing may be embedded
    return None
