#!/usr/bin/env python3
"""Checks clang's thread-safety annotations in every file that a build compiles.

usage: thread_safety.py BUILD_DIR [--jobs N]

Reads BUILD_DIR/compile_commands.json and runs `clang++-14 -Wthread-safety -Werror` with the same includes and
definitions, behind ccache if there is one: so it compiles, as only objects are cached. Exit status 1 when a
file fails.
"""
import argparse
import concurrent.futures
import json
import os
import pathlib
import shlex
import shutil
import subprocess
import sys
import tempfile

CHECKS = ["-c", "-O0", "-Wthread-safety", "-Werror", "-Wno-unknown-warning-option"]
LAUNCHER = ["ccache"] if shutil.which("ccache") else []
# As CMakeLists.txt has it: a clone in another folder hits the same cache.
ENVIRONMENT = {**os.environ, "CCACHE_BASEDIR": str(pathlib.Path(__file__).resolve().parent.parent),
               "CCACHE_NOHASHDIR": "1"}


def clang_command(entry, output):
    """The compile command of `entry` as a check by clang: another output, no optimisation, no g++ warnings."""
    words = shlex.split(entry["command"])
    compiler = next(i for i, word in enumerate(words) if word.endswith(("/c++", "/g++", "/cc", "/gcc")))
    kept, skip = [], False
    for word in words[compiler + 1:]:
        if skip:
            skip = False
        elif word in ("-o", "-MF", "-MT"):
            skip = True
        elif word not in ("-c", "-MD") and not word.startswith(("-W", "-O")):
            kept.append(word)
    return [*LAUNCHER, "clang++-14", *CHECKS, *kept, "-o", output]


def check(entry):
    with tempfile.NamedTemporaryFile(suffix=".o") as output:
        run = subprocess.run(clang_command(entry, output.name), cwd=entry["directory"], env=ENVIRONMENT,
                             capture_output=True, text=True)
    return entry["file"], run.returncode, run.stderr


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("build_dir", type=pathlib.Path)
    parser.add_argument("--jobs", type=int, default=2)
    options = parser.parse_args()
    entries = json.loads((options.build_dir / "compile_commands.json").read_text())
    ours = [e for e in entries if not e["file"].endswith(".pb.cc") and "/build/" not in e["file"]]
    failed = 0
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        for file, code, output in pool.map(check, ours):
            if code != 0:
                failed += 1
                print(f"FAILED {file}\n{output}")
    print(f"thread safety: {len(ours)} files checked, {failed} failed")
    return 1 if failed or not ours else 0


if __name__ == "__main__":
    sys.exit(main())
