"""Keeps this process and its children off every other machine, in one of two ways.

In a namespace (`system.unshare`) they have a network of their own with nothing but a loopback (`raise_loopback`): their
processes still talk to each other, and servers of the user's on this machine are out of reach too. Many containers
refuse namespaces. `no_network` works there: a filter of system calls refuses every socket that could lead to another
machine, loopback included.
"""

from __future__ import annotations

import _socket as socket  # what `socket` imports besides takes longer than all the rest here
import ctypes
import errno
import os
import struct

from flatout.process.fence import system

_GET_FLAGS, _SET_FLAGS = 0x8913, 0x8914
_UP = 1


def raise_loopback() -> None:
    """Of a new network namespace. Raises OSError where the kernel refuses."""
    import fcntl

    handle = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    try:
        name = struct.pack("16sH14x", b"lo", 0)
        flags = struct.unpack("16sH14x", fcntl.ioctl(handle.fileno(), _GET_FLAGS, name))[1]
        fcntl.ioctl(handle.fileno(), _SET_FLAGS, struct.pack("16sH14x", b"lo", flags | _UP))
    finally:
        handle.close()


# ── the filter ───────────────────────────────────────────────────────────────────────────────────────────────────────

_MACHINES = {"x86_64": (0xC000003E, 317, 41), "aarch64": (0xC00000B7, 277, 198)}
"""The kernel's number for the architecture, and those of the calls `seccomp` and `socket`."""
_IO_URING_SETUP = 425
_LOAD, _EQUAL, _AT_LEAST, _RETURN = 0x20, 0x15, 0x35, 0x06
_ALLOW, _FAIL = 0x7FFF0000, 0x00050000
_CALL, _ARCHITECTURE, _FAMILY = 0, 4, 16
_X32 = 0x40000000
_OF_THIS_MACHINE = (socket.AF_UNIX, 16, 38)
"""Families that lead to no other machine: files, the kernel itself (netlink), its ciphers. Among all the others are
some that do besides those of the internet: raw packets, TCP by another name (SMC), the host of a virtual machine."""
_SET_FILTER, _ALL_THREADS = 1, 1


class _Program(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("code", ctypes.c_char_p))


def no_network() -> None:
    """Raises OSError where the kernel refuses, or where the architecture is unknown here."""
    machine = os.uname().machine
    if machine not in _MACHINES:
        raise OSError(errno.ENOSYS, f"no filter is known for {machine}")
    architecture, set_filter, make_socket = _MACHINES[machine]
    code = b"".join(
        struct.pack("HBBI", *instruction)
        for instruction in (
            (_LOAD, 0, 0, _ARCHITECTURE),
            (_EQUAL, 0, 9, architecture),  # 32-bit programs have other numbers: refused below
            (_LOAD, 0, 0, _CALL),
            (_AT_LEAST, 7, 0, _X32),
            (_EQUAL, 6, 0, _IO_URING_SETUP),  # it makes sockets without a call
            (_EQUAL, 0, 4, make_socket),
            (_LOAD, 0, 0, _FAMILY),
            (_EQUAL, 2, 0, _OF_THIS_MACHINE[0]),
            (_EQUAL, 1, 0, _OF_THIS_MACHINE[1]),
            (_EQUAL, 0, 2, _OF_THIS_MACHINE[2]),
            (_RETURN, 0, 0, _ALLOW),
            (_RETURN, 0, 0, _FAIL | errno.ENOSYS),
            (_RETURN, 0, 0, _FAIL | errno.ENETUNREACH),
        )
    )
    system.keep_privileges_low()
    program = _Program(len(code) // 8, code)
    if system.call(set_filter, ctypes.c_uint(_SET_FILTER), ctypes.c_uint(_ALL_THREADS), ctypes.byref(program)):
        raise OSError(errno.EBUSY, "a thread has a filter of its own")
