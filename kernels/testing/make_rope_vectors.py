#!/usr/bin/env python3
"""Prints rope/rope_vectors.inc: rotary tables from 60-digit arithmetic (needs mpmath and numpy).

usage: make_rope_vectors.py > kernels/rope/rope_vectors.inc
"""
import mpmath
import numpy

mpmath.mp.dps = 60


def nearest(x):
    """The float32 nearest to the real number x."""
    guess = numpy.float32(float(x))
    around = [guess, numpy.nextafter(guess, numpy.float32("inf")),
              numpy.nextafter(guess, numpy.float32("-inf"))]
    return min(around, key=lambda f: abs(mpmath.mpf(float(f)) - x))


def inv_freq(base, dim):
    for i in range(dim // 2):
        exponent = numpy.float32(2 * i) / numpy.float32(dim)
        power = nearest(mpmath.power(mpmath.mpf(base), mpmath.mpf(float(exponent))))
        yield numpy.float32(1) / power


def bits(f):
    return f"0x{numpy.float32(f).view(numpy.uint32):08X}"


print("// Made by testing/make_rope_vectors.py; do not edit.")
print("// base, rotary_dim, pair, bits of inv_freq")
print("constexpr InvFreqVector kInvFreqVectors[] = {")
for base, dim in ((100000, 64), (10000, 64), (10000, 80), (500000, 128)):
    for i, f in enumerate(inv_freq(base, dim)):
        if i % 3 == 0 or dim == 64 and base == 100000:
            print(f"    {{{base}.0f, {dim}, {i}, {bits(f)}u}},")
print("};")
print("// base 100000, rotary_dim 64: position, pair, bits of cos, bits of sin")
print("constexpr RopeRowVector kRopeRowVectors[] = {")
table = list(inv_freq(100000, 64))
for position in (0, 1, 2, 3, 7, 100, 511, 2047, 8191, 65535, 131071, 999999):
    for i in (0, 1, 2, 5, 11, 20, 31):
        angle = mpmath.mpf(float(numpy.float32(position) * table[i]))
        cos, sin = nearest(mpmath.cos(angle)), nearest(mpmath.sin(angle))
        print(f"    {{{position}, {i}, {bits(cos)}u, {bits(sin)}u}},")
print("};")
