"""A trial that asks Python for another machine is refused at once, with an error that names `--network`.

The kernel refuses whatever does not ask Python (`process/fence/sockets.py`); this is the clear message, and it comes
without the minutes that resolvers and libraries spend on trying again. Loopback stays.
"""

from __future__ import annotations

import errno
import functools
from types import ModuleType
from typing import Any

from flatout.observe.after_import import after_import
from flatout.trial.refusals import NO_NETWORK

_LOCAL_NAMES = {"", "localhost", "localhost.localdomain", "ip6-localhost", "ip6-loopback"}


def install() -> None:
    after_import("socket", _refuse)


def _refuse(socket: ModuleType) -> None:
    here = {*_LOCAL_NAMES, socket.gethostname()}

    def refused(host: Any) -> bool:
        if host is None:
            return False
        if isinstance(host, (bytes, bytearray)):
            host = bytes(host).decode("ascii", "replace")
        if not isinstance(host, str) or host in here:
            return False
        import ipaddress

        try:
            address = ipaddress.ip_address(host.partition("%")[0])
        except ValueError:
            return True
        return not (address.is_loopback or address.is_unspecified)

    def by_address(original: Any, index: int) -> Any:
        """A method of sockets; the address is its last argument, or has an index."""

        @functools.wraps(original)
        def call(self: Any, *args: Any, **keywords: Any) -> Any:
            address = args[index] if len(args) > max(index, 0) or (index < 0 and args) else None
            if self.family in (socket.AF_INET, socket.AF_INET6) and isinstance(address, tuple) and refused(address[0]):
                raise OSError(errno.ENETUNREACH, f"Network is unreachable: {NO_NETWORK}", str(address[0]))
            return original(self, *args, **keywords)

        return call

    def by_name(original: Any) -> Any:
        @functools.wraps(original)
        def call(host: Any, *args: Any, **keywords: Any) -> Any:
            if refused(host):
                raise socket.gaierror(socket.EAI_AGAIN, f"{host!r} was not looked up: {NO_NETWORK}")
            return original(host, *args, **keywords)

        return call

    changed: Any = socket.socket
    for name, index in (("connect", 0), ("connect_ex", 0), ("sendto", -1), ("sendmsg", 3)):
        setattr(changed, name, by_address(getattr(changed, name), index))
    for name in ("getaddrinfo", "gethostbyname", "gethostbyname_ex"):
        setattr(socket, name, by_name(getattr(socket, name)))
