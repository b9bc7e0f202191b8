#!/usr/bin/env python3
"""Fails when a folder includes a header that lies above it (README.md, "Layers").

usage: layers_test.py ROOT
"""
import pathlib
import re
import sys
import unittest

# folder -> folders whose headers it may include, itself always. The longest matching prefix decides.
ALLOWED = {
    "proto": [],
    "kernels": [],
    "common/base": [],
    "common/kv": ["common/base"],
    "common/http": ["common/base"],
    "common/rpc": ["common/base", "common/kv", "pagoda"],
    "common/model": ["common/base"],
    "common/text": ["common/base", "common/model"],
    "common/placement": ["common/base", "common/kv"],
    "services/kvstore": ["common", "pagoda"],
    "services/router": ["common", "pagoda"],
    "services/worker": ["common", "kernels", "pagoda"],
    "services/ctl": ["common", "pagoda"],
    "tests": ["common", "kernels", "services", "pagoda"],
}
# Core folders whose headers and sources stay free of transport.
FORBIDDEN = {
    "kernels": re.compile(r"^(grpc|google/protobuf|absl|boost|prometheus)"),
    "common/base": re.compile(r"^(grpc|google/protobuf)"),
    "common/kv": re.compile(r"^(grpc|google/protobuf)"),
    "common/model": re.compile(r"^(grpc|google/protobuf)"),
    "common/text": re.compile(r"^(grpc|google/protobuf)"),
    "common/placement": re.compile(r"^(grpc|google/protobuf|boost|prometheus)"),
}
INCLUDE = re.compile(r'^\s*#\s*include\s+([<"])([^">]+)[">]')
SOURCES = {".h", ".cc", ".cu", ".cuh", ".inc"}


def owner(path):
    """The longest key of ALLOWED that contains `path`, or None."""
    keys = [k for k in ALLOWED if path == k or path.startswith(k + "/")]
    return max(keys, key=len) if keys else None


def violations(root):
    root = pathlib.Path(root)
    for top in ("proto", "services", "common", "kernels", "tests"):
        for file in sorted((root / top).rglob("*")):
            if file.suffix not in SOURCES:
                continue
            name = file.relative_to(root).as_posix()
            home = owner(name)
            if home is None:
                yield f"{name}: its folder is in no layer"
                continue
            for number, line in enumerate(file.read_text(encoding="utf-8").splitlines(), 1):
                match = INCLUDE.match(line)
                if match is None:
                    continue
                style, header = match.groups()
                yield from check(name, number, home, style, header)


def check(name, number, home, style, header):
    if style == "<":
        forbidden = FORBIDDEN.get(home)
        if forbidden and forbidden.search(header):
            yield f"{name}:{number}: {home} must not include <{header}>"
        return
    may = [home] + ALLOWED[home]
    inside = header.split("/", 1)[0] in ("proto", "services", "common", "kernels", "tests", "pagoda")
    if not inside:
        forbidden = FORBIDDEN.get(home)
        if forbidden and forbidden.search(header):
            yield f'{name}:{number}: {home} must not include "{header}"'
    elif not any(header.startswith(m + "/") for m in may):
        yield f'{name}:{number}: {home} must not include "{header}"'
    elif "/testing/" in header and not (name.endswith("_test.cc") or "/testing/" in name or home == "tests"):
        yield f'{name}:{number}: only tests may include "{header}"'


class LayersTest(unittest.TestCase):
    def test_no_folder_includes_a_header_above_it(self):
        self.assertEqual(list(violations(ROOT)), [])

    def test_an_upward_include_is_found(self):
        self.assertTrue(list(check("common/kv/x.h", 1, "common/kv", '"', "services/worker/engine.h")))
        self.assertTrue(list(check("services/router/x.h", 1, "services/router", '"', "services/worker/e.h")))
        self.assertTrue(list(check("kernels/x.cc", 1, "kernels", '"', "absl/status/status.h")))
        self.assertTrue(list(check("common/kv/x.cc", 1, "common/kv", '"', "common/kv/testing/fake.h")))
        self.assertFalse(list(check("services/worker/x.h", 1, "services/worker", '"', "kernels/ops.h")))


if __name__ == "__main__":
    ROOT = sys.argv.pop(1)
    unittest.main()
