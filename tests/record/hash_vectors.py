#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Computes the test vectors of docs/design/hash.md from its text alone: a second implementation that
# shares no code with record/hash.c. Only XXH3 comes from the shared library of xxHash. Not run by
# the tests; it needs Python and libxxhash0.
import ctypes
import math
import struct

MASK = (1 << 64) - 1
GOLDEN = 0x9E3779B97F4A7C15

xxhash = ctypes.CDLL("libxxhash.so.0")
xxhash.XXH3_64bits.restype = ctypes.c_uint64
xxhash.XXH3_64bits.argtypes = [ctypes.c_char_p, ctypes.c_size_t]


def integer(value):
    x = (value + GOLDEN) & MASK
    x = ((x ^ (x >> 30)) * 0xBF58476D1CE4E5B9) & MASK
    x = ((x ^ (x >> 27)) * 0x94D049BB133111EB) & MASK
    return x ^ (x >> 31)


def combine(first, following):
    return integer((first * GOLDEN + following) & MASK)


def real(value):
    if math.isnan(value):
        return integer(0x7FF8000000000000)
    if value == 0:
        value = 0.0
    return integer(struct.unpack(">Q", struct.pack(">d", value))[0])


def text(data):
    return xxhash.XXH3_64bits(data, len(data))


def tag(name):
    return int.from_bytes(name.encode(), "big")


ABSENT = tag("leat.nil")


def sequence(hashes):
    result = hashes[0]
    for following in hashes[1:]:
        result = combine(result, following)
    return result


def many(hashes):
    return sequence([tag("leat.lst")] + hashes)


def mapping(pairs):
    total = sum(combine(key, value) for key, value in pairs) & MASK
    return combine(combine(tag("leat.map"), len(pairs)), total)


def group(hash64, max_parallelism):
    m32 = (1 << 32) - 1

    def rotate(value, bits):
        return ((value << bits) | (value >> (32 - bits))) & m32

    h = (hash64 & m32) ^ (hash64 >> 32)
    h = rotate(h * 0xCC9E2D51 & m32, 15) * 0x1B873593 & m32
    h = (rotate(h, 13) * 5 + 0xE6546B64) & m32
    h ^= 4
    h = (h ^ (h >> 16)) * 0x85EBCA6B & m32
    h = (h ^ (h >> 13)) * 0xC2B2AE35 & m32
    h ^= h >> 16
    signed = h - (1 << 32) if h >> 31 else h
    signed = 0 if signed == -(1 << 31) else abs(signed)
    return signed % max_parallelism


ROWS = [
    ("integer 0, false", integer(0)),
    ("integer 1, true", integer(1)),
    ("integer -1", integer(-1 & MASK)),
    ("integer 42", integer(42)),
    ("integer 9223372036854775807", integer((1 << 63) - 1)),
    ("integer -9223372036854775808", integer(1 << 63)),
    ("real 0.0, -0.0", real(-0.0)),
    ("real 1.0", real(1.0)),
    ("real -2.5", real(-2.5)),
    ("real 0.1", real(0.1)),
    ("real NaN", real(math.nan)),
    ("real infinity", real(math.inf)),
    ('string ""', text(b"")),
    ('string "a"', text(b"a")),
    ('string "word count"', text(b"word count")),
    ("string of 300 times x", text(b"x" * 300)),
    ("absent optional", ABSENT),
    ("list []", many([])),
    ("list [0]", many([integer(0)])),
    ("list [1, 2]", many([integer(1), integer(2)])),
    ("list [2, 1]", many([integer(2), integer(1)])),
    ("map {}", mapping([])),
    ('map {"a": 1, "b": 2}', mapping([(text(b"a"), integer(1)), (text(b"b"), integer(2))])),
    ('struct {"a", 1}', sequence([text(b"a"), integer(1)])),
    ("struct {1, 2, 3}", sequence([integer(1), integer(2), integer(3)])),
    ("struct {1, {2, 3}}", sequence([integer(1), sequence([integer(2), integer(3)])])),
    ("struct {absent, 1}", sequence([ABSENT, integer(1)])),
]

if __name__ == "__main__":
    print("| value | hash | group of 128 | group of 1000 |")
    print("| --- | --- | --- | --- |")
    for name, value in ROWS:
        print(f"| {name} | `{value:016x}` | {group(value, 128)} | {group(value, 1000)} |")
