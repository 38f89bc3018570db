"""Who may ask. The server listens on the loopback address only, yet every page in the user's browser can reach it.

A foreign site can send requests to 127.0.0.1 (and see nothing of the answers without CORS headers, which are never
sent), and it can point a name of its own at 127.0.0.1 to make the answers its own (DNS rebinding). So the `Host` that
was asked for must be ours, and a request that says where it comes from must come from our own pages.
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
"""A report names the hashes of its two scripts in its own policy; both policies hold at once."""

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
        return f"This server answers for {NAMES[0]}:{port} and localhost:{port} only."
    origins = {origin.strip().lower() for origin in headers.get_all("Origin", [])}
    if origins - {f"http://{name}" for name in allowed}:
        return "Requests of other sites are not answered."
    site, mode = headers.get("Sec-Fetch-Site"), headers.get("Sec-Fetch-Mode")
    if site in ("cross-site", "same-site") and mode != "navigate":
        return "Requests of other sites are not answered."  # a link to here may be followed, nothing may be embedded
    return None
