# SPDX-License-Identifier: Apache-2.0
# The package as its readers see it: help, names, stubs; and without NumPy.
"""The surface of the Python package."""
import ast
import inspect
import pathlib
import pydoc
import subprocess

import ranks
import torii
from torii import _torii

FOLDER = pathlib.Path(torii.__file__).parent


def test_help_reads_well():
    text = pydoc.render_doc(torii, renderer=pydoc.plaintext)
    for part in ("collectives between the ranks of a job",
                 "allreduce(self, array, op='sum', out=None, *, dtype=None, factor=None)",
                 "Starts allreduce(), with the same arguments", "alltoall_list(self, arrays, outs, *, dtype=None)",
                 "recv(self, out, source=-1, tag=-1, *, dtype=None)", "with team.group():", "class Received"):
        assert part in text


def test_all_public_names_have_docstrings():
    for name in torii.__all__:
        thing = getattr(torii, name)
        if not inspect.isclass(thing) and not callable(thing):
            continue
        assert inspect.getdoc(thing), name
        if not inspect.isclass(thing) or thing.__module__ == "torii._torii":
            continue
        for method, function in vars(thing).items():
            if not method.startswith("_") and callable(function):
                assert inspect.getdoc(function), f"{name}.{method}"


def test_every_collective_has_three_forms():
    lists = ["all_gather_list", "alltoall_list", "scatter_list", "gather_list"]
    for name in torii.collectives() + lists:
        blocking = inspect.signature(getattr(torii.Team, name))
        for how in ("start", "prepare"):
            form = getattr(torii.Team, f"{how}_{name}")
            assert inspect.signature(form) == blocking and form.__name__ == f"{how}_{name}"


def test_constants_are_the_library_s():
    assert [op.name.lower() for op in torii.Op] == torii.ops()
    assert [_torii.status_name(status) for status in torii.Status] == [status.name.lower() for status in torii.Status]
    assert torii.types()[:2] == ["i8", "u8"] and "bf16" in torii.types()
    assert {"ring", "node", "trinaryx3"} <= set(torii.algorithms())
    assert torii.SUM is torii.Op.SUM and (torii.AVG, torii.PREMUL_SUM) == (13, 14) and torii.__version__.count(".") == 2


def stub_names(name):
    """Names of classes with their members, and of functions, in a stub file."""
    tree = ast.parse((FOLDER / name).read_text(encoding="utf-8"))
    functions = {one.name for one in tree.body if isinstance(one, ast.FunctionDef)}
    classes = {}
    for one in tree.body:
        if isinstance(one, ast.ClassDef):
            classes[one.name] = {member.name for member in one.body if isinstance(member, ast.FunctionDef)}
    return functions, classes


def test_stub_of_the_extension():
    functions, classes = stub_names("_torii.pyi")
    there = {name for name in vars(_torii) if not name.startswith("__") and callable(getattr(_torii, name))}
    assert functions | set(classes) == there
    for name, members in classes.items():
        ours = {one for one in vars(getattr(_torii, name)) if not one.startswith("__") or one in members}
        assert members == ours, name


def test_stub_of_teams_has_the_parameters():
    tree = ast.parse((FOLDER / "team.pyi").read_text(encoding="utf-8"))
    team = next(one for one in tree.body if isinstance(one, ast.ClassDef) and one.name == "Team")
    for method in team.body:
        given = [(one.arg, default) for one, default in zip(reversed(method.args.args), reversed(method.args.defaults))]
        given += list(zip(method.args.kwonlyargs, method.args.kw_defaults))
        stub = {getattr(name, "arg", name): ast.literal_eval(value) for name, value in given if value is not None}
        signature = inspect.signature(getattr(torii.Team, method.name)).parameters.values()
        ours = {one.name: one.default for one in signature if one.default is not inspect.Parameter.empty}
        assert stub == ours, method.name
        names = [one.arg for one in method.args.args + method.args.kwonlyargs]
        assert names == [one.name for one in signature if one.kind != inspect.Parameter.VAR_KEYWORD], method.name


def test_stub_of_teams():
    _, classes = stub_names("team.pyi")
    for name, function in vars(torii.Team).items():
        if callable(function) and (not name.startswith("_") or name in ("__enter__", "__exit__")):
            assert name in classes["Team"], name
    assert (FOLDER / "py.typed").exists()


def test_questions():
    team = torii.world()
    context = team.context
    assert (team.rank, team.ranks, team.most_in_flight) == (0, 1, 0)
    assert (context.rank, context.ranks, context.nodes, context.node(0)) == (0, 1, 1, 0)
    assert (context.local_rank, context.local_ranks) == (0, 1) and context.host(0)
    assert len(context.engine_bytes) == 4 and not context.closed and not team.closed
    assert team.choose("allreduce", 100, "bf16", "max").transport


def test_without_numpy():
    program = """
import sys
sys.modules["numpy"] = None
import array, torii
team = torii.world()
assert team.allreduce(array.array("d", [1.5])) == array.array("d", [1.5])
assert team.all_gather(b"abc") == bytearray(b"abc")
assert team.start_allreduce(bytearray(4)).wait() == bytearray(4)
memory = team.context.allocate_bytes(8)
team.broadcast(memoryview(memory))
print("good")
"""
    code, out, errors = ranks.start("-c", program)
    assert (code, out) == (0, "good\n"), errors


def test_extension_uses_the_stable_interface_only():
    """Names that begin with _Py are private, but for those of the stable ABI that its macros bring in."""
    library = FOLDER / "_torii.abi3.so"
    symbols = subprocess.run(["nm", "--dynamic", "--undefined-only", "--format=posix", library], check=True,
                             capture_output=True, text=True).stdout.split()
    assert "PyBuffer_Release" in symbols
    private = {one for one in symbols if one.startswith("_Py") and not one.endswith("_SizeT")}
    assert private <= {"_Py_NoneStruct", "_Py_TrueStruct", "_Py_FalseStruct", "_Py_Dealloc"}
    defined = subprocess.run(["nm", "--dynamic", "--defined-only", "--format=posix", library], check=True,
                             capture_output=True, text=True).stdout
    assert [line.split()[0] for line in defined.splitlines()] == ["PyInit__torii"]
