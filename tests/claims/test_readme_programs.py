# SPDX-License-Identifier: Apache-2.0
# The programs of README.md run and print what README.md says. Called with the build folder and a C++ compiler.
import os
import pathlib
import re
import socket
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

    def environment(self):
        # No settings of the caller: the program as README.md starts it.
        environment = {name: value for name, value in os.environ.items() if not name.startswith("TORII_")}
        return {**environment, "PYTHONPATH": str(BUILD / "python")}

    def run_ranks(self, *command):
        result = subprocess.run([BUILD / "bin/torii-run", "-n", str(RANKS), "--", *command], cwd=self.folder,
                                env=self.environment(), capture_output=True, text=True, timeout=50, check=False)
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

    def write_python(self, number):
        (self.folder / "program.py").write_text(blocks("python")[number], encoding="utf-8")

    @unittest.skipUnless(os.environ.get("TORII_PYTHON_PACKAGE") == "1", "this build has no Python package")
    def test_python(self):
        self.write_python(0)
        self.assertEqual(self.run_ranks(sys.executable, "-B", "program.py"), expected())

    @unittest.skipUnless(os.environ.get("TORII_TORCH_BACKEND") == "1", "this build has no backend of PyTorch")
    def test_pytorch(self):
        # What torchrun would set. Debian 12's torchrun ends by itself under Python 3.11.
        self.write_python(1)
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        ranks = [subprocess.Popen([sys.executable, "-B", "program.py"], cwd=self.folder, text=True,
                                  env={**self.environment(), "RANK": str(rank), "WORLD_SIZE": str(RANKS),
                                       "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)},
                                  stdout=subprocess.PIPE, stderr=subprocess.PIPE) for rank in range(RANKS)]
        for rank in ranks:
            self.addCleanup(rank.wait)
            self.addCleanup(rank.kill)
        output = [rank.communicate(timeout=50) for rank in ranks]
        self.assertEqual([rank.returncode for rank in ranks], [0] * RANKS, output)
        self.assertEqual("".join(out for out, _ in output), expected())


if __name__ == "__main__":
    unittest.main()
