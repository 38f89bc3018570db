"""FarmHash's 64-bit fingerprint of bytes, by which TensorFlow's hashing layers choose a bucket, in plain Python.

Loaders of artefacts that need it contain a copy of this module, from its first constant on.
"""

from __future__ import annotations

MASK = (1 << 64) - 1
K0, K1, K2 = 0xC3A5C85C97CB3127, 0xB492B66FBE98F273, 0x9AE16A3B2F90404F


def rotated(value: int, by: int) -> int:
    value &= MASK
    return (value >> by | value << 64 - by) & MASK


def mixed(value: int) -> int:
    value &= MASK
    return value ^ value >> 47


def joined(u: int, v: int, factor: int) -> int:
    a = mixed((u ^ v) * factor)
    return mixed((v ^ a) * factor) * factor & MASK


def word(text: bytes, place: int) -> int:
    return int.from_bytes(text[place : place + 8], "little")


def fingerprint(text: bytes) -> int:
    size = len(text)
    factor = K2 + 2 * size
    if size > 64:
        return fingerprint_of_long(text)
    if size > 16:
        return fingerprint_of_medium(text, factor)
    if size >= 8:
        a, b = word(text, 0) + K2 & MASK, word(text, size - 8)
        return joined(rotated(b, 37) * factor + a & MASK, (rotated(a, 25) + b) * factor & MASK, factor)
    if size >= 4:
        first, last = (int.from_bytes(text[place : place + 4], "little") for place in (0, size - 4))
        return joined(size + (first << 3), last, factor)
    if size:
        y, z = text[0] + (text[size >> 1] << 8), size + (text[-1] << 2)
        return mixed(y * K2 ^ z * K0) * K2 & MASK
    return K2


def fingerprint_of_medium(text: bytes, factor: int) -> int:
    size = len(text)
    a = word(text, 0) * (K1 if size <= 32 else K2) & MASK
    b, c, d = word(text, 8), word(text, size - 8) * factor & MASK, word(text, size - 16) * K2
    y, x = rotated(a + b, 43) + rotated(c, 30) + d & MASK, a + rotated(b + K2, 18) + c & MASK
    z = joined(y, x, factor)
    if size <= 32:
        return z
    e, f = word(text, 16) * factor & MASK, word(text, 24)
    g, h = (y + word(text, size - 32)) * factor & MASK, (z + word(text, size - 24)) * factor & MASK
    return joined(rotated(e + f, 43) + rotated(g, 30) + h & MASK, e + rotated(f + a, 18) + g & MASK, factor)


def weak(text: bytes, place: int, a: int, b: int) -> tuple[int, int]:
    w, x, y, z = (word(text, place + 8 * i) for i in range(4))
    a = a + w & MASK
    b = rotated(b + a + z, 21)
    c, a = a, a + x + y & MASK
    return a + z & MASK, b + rotated(a, 44) + c & MASK


def fingerprint_of_long(text: bytes) -> int:
    x, y = 81 * K2 + word(text, 0) & MASK, 81 * K1 + 113 & MASK
    z = mixed(y * K2 + 113) * K2 & MASK
    v, w = (0, 0), (0, 0)
    end, rest = (len(text) - 1) // 64 * 64, len(text) - 1 & 63
    for s in range(0, end, 64):
        x = rotated(x + y + v[0] + word(text, s + 8), 37) * K1 ^ w[1]
        y = rotated(y + v[1] + word(text, s + 48), 42) * K1 + v[0] + word(text, s + 40)
        z = rotated(z + w[0], 33) * K1
        v = weak(text, s, v[1] * K1, x + w[0])
        w = weak(text, s + 32, z + w[1], y + word(text, s + 16))
        z, x = x & MASK, z & MASK
    factor, s = K1 + ((z & 0xFF) << 1), end + rest - 63
    w = (w[0] + rest, w[1])
    v = (v[0] + w[0], v[1])
    w = (w[0] + v[0], w[1])
    x = rotated(x + y + v[0] + word(text, s + 8), 37) * factor ^ w[1] * 9
    y = rotated(y + v[1] + word(text, s + 48), 42) * factor + v[0] * 9 + word(text, s + 40)
    z = rotated(z + w[0], 33) * factor
    v = weak(text, s, v[1] * factor, x + w[0])
    w = weak(text, s + 32, z + w[1], y + word(text, s + 16))
    z, x = x & MASK, z & MASK
    left = joined(v[0], w[0], factor) + mixed(y) * K0 + z & MASK
    return joined(left, joined(v[1], w[1], factor) + x & MASK, factor)
