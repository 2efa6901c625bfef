# SPDX-License-Identifier: Apache-2.0
# The programs of README.md run and print what README.md says. Called with the build folder and a C++ compiler.
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")
BUILD, COMPILER = pathlib.Path(os.environ["TORII_BUILD"]), os.environ["TORII_CXX"]
RANKS = 4


def blocks(language):
    return re.findall(rf"^```{language}\n(.*?)^```", README, re.S | re.M)


def expected():
    """The line that README.md shows below the command which starts the program."""
    return re.search(rf"^torii-run -n {RANKS} -- \./program\n(.*)\n```", README, re.M)[1] + "\n"


class Programs(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def run_ranks(self, *command):
        # A token of its own and no settings of the caller: the program as README.md starts it.
        environment = {name: value for name, value in os.environ.items() if not name.startswith("TORII_")}
        environment["PYTHONPATH"] = str(BUILD / "python")
        result = subprocess.run([BUILD / "bin/torii-run", "-n", str(RANKS), "--", *command], cwd=self.folder,
                                env=environment, capture_output=True, text=True, timeout=50, check=False)
        self.assertEqual(result.returncode, 0, result.stdout + result.stderr)
        return result.stdout

    def test_cpp(self):
        program, = blocks("cpp")
        self.assertEqual(len(program.splitlines()), 12)
        (self.folder / "program.cpp").write_text(program, encoding="utf-8")
        compiled = subprocess.run(
            [COMPILER, "-std=c++20", "-Wall", "-Wextra", "-Werror", "-I", ROOT / "include", "program.cpp",
             "-o", "program", "-L", BUILD / "lib", "-ltorii", f"-Wl,-rpath,{BUILD / 'lib'}"],
            cwd=self.folder, capture_output=True, text=True, timeout=100, check=False)
        self.assertEqual(compiled.returncode, 0, compiled.stderr)
        self.assertEqual(self.run_ranks("./program"), expected())

    def run_python(self, number):
        (self.folder / "program.py").write_text(blocks("python")[number], encoding="utf-8")
        self.assertEqual(self.run_ranks(sys.executable, "-B", "program.py"), expected())

    @unittest.skipUnless(os.environ.get("TORII_PYTHON_PACKAGE") == "1", "this build has no Python package")
    def test_python(self):
        self.run_python(0)

    @unittest.skipUnless(os.environ.get("TORII_TORCH_BACKEND") == "1", "this build has no backend of PyTorch")
    def test_pytorch(self):
        self.run_python(1)


if __name__ == "__main__":
    unittest.main()
