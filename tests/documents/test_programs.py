# SPDX-License-Identifier: Apache-2.0
# Compiles what the pages show, runs whole programs on four ranks, and looks for names that do not exist.
"""The pages show programs that work."""
import argparse
import ast
import importlib
import inspect
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

import fences
import fragments

RANKS = "4"
#: The pages whose fragments of C and C++ are compiled, too. Other pages show parts of sources.
PAGES_OF_USERS = ("README.md", "docs/quickstart.md", "docs/embedding.md", "docs/coming_from.md")
#: The folders whose names pages may use.
FOLDERS = ("include", "api", "cmake", "collectives", "perf", "plugins", "python", "runtime", "tests", "tools",
           "transports")
FLAGS = {
    "c": ["-x", "c", "-std=c99"],
    "cpp": ["-x", "c++", "-std=c++20"],
}
options = argparse.Namespace()


def compile_text(text, language, folder, arguments):
    """What the compiler says; nothing if the text is right. Warnings are errors, except for names that are not used."""
    source = pathlib.Path(folder) / f"source.{language}"
    source.write_text(text, encoding="utf-8")
    compiler = options.cc if language == "c" else options.cxx
    command = [compiler, *FLAGS[language], "-Wall", "-Werror", "-Wno-unused", "-Wno-unused-result"]
    done = subprocess.run([*command, f"-I{options.root}/include", str(source), *arguments], check=False,
                          capture_output=True, text=True)
    return done.stderr if done.returncode != 0 else ""


def blocks_of(page):
    return fences.read_blocks(options.root, pathlib.Path(page))


def all_blocks(language):
    return [block for page in fences.pages(options.root) for block in blocks_of(page) if block.language == language]


def run_ranks(command):
    """What four ranks print, and the problem if they fail."""
    torii_run = [str(options.build / "bin" / "torii-run"), "-n", RANKS, "--timeout", "60", "--"]
    environment = dict(os.environ, PYTHONPATH=str(options.build / "python"), OMP_NUM_THREADS="1")
    if command[0] == "torchrun":
        # PyTorch 1.13's own default of --redirects fails with Python 3.11.
        torii_run = [sys.executable, "-m", "torch.distributed.run", "--redirects", "1", "--tee", "1"]
        command = ["--nproc_per_node", RANKS, *command[1:]]
    done = subprocess.run([*torii_run, *command], check=False, capture_output=True, text=True, env=environment)
    return done.stdout, done.stderr if done.returncode != 0 else ""


class Compiled(unittest.TestCase):
    """C and C++."""

    def test_fragments_compile(self):
        count = 0
        for page in PAGES_OF_USERS:
            blocks = blocks_of(page)
            for language in FLAGS:
                text = fragments.source_of(blocks, language)
                count += text.count("#line")
                with self.subTest(page=page, language=language), tempfile.TemporaryDirectory() as folder:
                    self.assertEqual(compile_text(text, language, folder, ["-fsyntax-only"]), "")
        self.assertGreater(count, 12, "the fragments are not found any more")

    def test_programs_run(self):
        programs = [block for language in FLAGS for block in all_blocks(language) if block.is_program]
        self.assertGreater(len(programs), 2)
        library = options.build / "lib"
        for block in programs:
            with self.subTest(place=block.place), tempfile.TemporaryDirectory() as folder:
                program = str(pathlib.Path(folder) / "program")
                link = ["-o", program, f"-L{library}", "-ltorii", f"-Wl,-rpath,{library}"]
                self.assertEqual(compile_text(block.text, block.language, folder, link), "")
                output, problem = run_ranks([program])
                self.assertEqual(problem, "")
                if block.output is not None:
                    self.assertEqual(output, block.output)

    def test_the_failure_of_the_quick_start(self):
        """The page shows a line to insert, and what the other ranks say then."""
        page = "docs/quickstart.md"
        shown = re.search(r"^mismatch: .*$", (options.root / page).read_text(encoding="utf-8"), re.MULTILINE)
        block = next(one for one in blocks_of(page) if one.language == "cpp" and one.is_program)
        text = block.text.replace("  torii::check", "  if (team.rank() == 2) return 1;\n  torii::check", 1)
        library = options.build / "lib"
        with tempfile.TemporaryDirectory() as folder:
            program = str(pathlib.Path(folder) / "program")
            link = ["-o", program, f"-L{library}", "-ltorii", f"-Wl,-rpath,{library}"]
            self.assertEqual(compile_text(text, "cpp", folder, link), "")
            said = run_ranks([program])[1]
        said = [re.sub(r"on host \S+", "on host HOST", line) for line in said.splitlines()]
        self.assertEqual(said.count(shown[0]), 3, said)

    def test_a_wrong_fragment_is_found(self):
        page = pathlib.Path("page.md")
        for language, text in (("c", "torii_barrier(team, 1);\n"), ("cpp", "torii::check(team.barrier(1));\n")):
            block = fences.Block(page, 7, language, text)
            with tempfile.TemporaryDirectory() as folder:
                source = fragments.source_of([block], language)
                self.assertIn("page.md:7:", compile_text(source, language, folder, ["-fsyntax-only"]))


class Python(unittest.TestCase):
    """Python."""

    def problem_of(self, text):
        """Why a block is wrong: syntax, a name that the package lacks, or arguments that a method does not take."""
        torii = importlib.import_module("torii")
        try:
            tree = compile(text, "block", "exec", ast.PyCF_ONLY_AST | ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
        except SyntaxError as error:
            return str(error)
        owners = {"torii": torii, "team": torii.Team, "context": torii.Context, "leaves": torii.Leaves}
        for node in ast.walk(tree):
            called = node.func if isinstance(node, ast.Call) else node
            if not isinstance(called, ast.Attribute) or not isinstance(called.value, ast.Name):
                continue
            owner = owners.get(called.value.id)
            if owner is None or (owner is torii and called.attr in ("torch", "run")):
                continue
            if owner is torii.Leaves and called.attr in ("first", "count", "all", "team"):
                continue  # attributes of objects
            found = getattr(owner, called.attr, None)
            if found is None:
                return f"{called.value.id}.{called.attr} does not exist"
            if isinstance(node, ast.Call) and inspect.isfunction(found):
                first = [] if owner is torii else [None]
                names = {one.arg: None for one in node.keywords}
                try:
                    inspect.signature(found).bind(*first, *[None for _ in node.args], **names)
                except TypeError as error:
                    return f"{called.value.id}.{called.attr}: {error}"
        return ""

    def test_blocks_are_right(self):
        blocks = all_blocks("python")
        self.assertGreater(len(blocks), 15)
        for block in blocks:
            with self.subTest(place=block.place):
                self.assertEqual(self.problem_of(block.text), "")

    def test_programs_run(self):
        programs = [block for block in all_blocks("python") if block.is_program]
        self.assertGreater(len(programs), 1)
        for block in programs:
            is_torch = "torii.torch" in block.text
            if is_torch and not options.torch:
                continue
            with self.subTest(place=block.place), tempfile.TemporaryDirectory() as folder:
                program = pathlib.Path(folder) / "program.py"
                program.write_text(block.text, encoding="utf-8")
                output, problem = run_ranks(["torchrun" if is_torch else sys.executable, str(program)])
                self.assertEqual(problem, "")
                if block.output is not None:
                    self.assertEqual(output, block.output)

    def test_a_wrong_block_is_found(self):
        self.assertIn("invalid syntax", self.problem_of("team.barrier("[:-1] + " team\n"))
        self.assertIn("does not exist", self.problem_of("team.all_reduce(array)\n"))
        self.assertIn("unexpected keyword", self.problem_of("team.allreduce(array, output=array)\n"))


class Names(unittest.TestCase):
    """Names of the interface in prose and tables."""

    def test_names_exist(self):
        known = set()
        for folder in FOLDERS:
            for path in (options.root / folder).rglob("*"):
                if path.is_file() and path.suffix not in (".md", ".json", ".svg"):
                    known.update(re.findall(r"\btorii_[a-z0-9_]*[a-z0-9]", path.read_text("utf-8", "ignore")))
        for page in fences.pages(options.root):
            used = set(re.findall(r"\btorii_[a-z0-9_]*[a-z0-9]", (options.root / page).read_text(encoding="utf-8")))
            with self.subTest(page=str(page)):
                self.assertEqual(sorted(used - known), [])


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--root", type=pathlib.Path, required=True)
    parser.add_argument("--build", type=pathlib.Path, required=True)
    parser.add_argument("--cc", default="cc")
    parser.add_argument("--cxx", default="c++")
    parser.add_argument("--torch", action="store_true", help="the build has torii.torch")
    parser.parse_args(namespace=options)
    sys.path.insert(0, str(options.build / "python"))
    unittest.main(argv=sys.argv[:1])


if __name__ == "__main__":
    main()
