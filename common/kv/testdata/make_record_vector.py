#!/usr/bin/env python3
"""Prints one stored record in hex, made from the tables of common/kv/README.md alone (see record_test.cc)."""
import struct


def crc32c(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
    return struct.pack("<I", crc ^ 0xFFFFFFFF)


PAYLOAD = b"payload"
header = (b"PGDB" + struct.pack("<HH", 1, 200) + b"\x01" * 32 + b"\x02" * 32
          + struct.pack("<II", 35, 32) + b"\x03" * 32 + b"\x04" * 32
          + struct.pack("<QQq", len(PAYLOAD), 0xF1F2F3F4F5F6F7F8, 1_700_000_000_123_456_789)
          + b"0.1.0".ljust(16, b"\0") + bytes(8) + crc32c(PAYLOAD))
header += crc32c(header)
meta = (b"PGDM" + struct.pack("<HHIiQqq", 1, 4, 3, -2, 2**40 + 5, 1_800_000_000_000, 1_700_000_000_000)
        + b"acme")
meta += crc32c(meta)
assert len(header) == 200 and len(meta) == 44 + 4
for part in (header, meta, PAYLOAD):
    print(part.hex())
