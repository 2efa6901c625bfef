# SPDX-License-Identifier: Apache-2.0
# A planted fault: CallSpec gets a field that nobody handles. The key of call classes, the signature and the text of a
# call must then not compile.
"""Usage: test_new_field.py ROOT COMPILER. Exit code 0 if just those files do not compile, for that reason."""
import os
import pathlib
import subprocess
import sys
import tempfile

FIELD = "  std::uint64_t content = 0;"
MUST_HANDLE_IT = {"plan_maker.cpp": "key_of", "plan_filling.cpp": "signature_of", "call_description.cpp": "call_text"}
NEED_NOT = ["call_lengths.cpp"]


def main():
    root, compiler = pathlib.Path(sys.argv[1]), sys.argv[2]
    spec = (root / "api/calls/call_spec.hpp").read_text(encoding="utf-8")
    planted = spec.replace(FIELD, FIELD + "\n  std::uint64_t planted = 0;").replace("sizeof(CallSpec) == 32",
                                                                                    "sizeof(CallSpec) == 40")
    if planted.count("planted") != 1 or "== 40" not in planted:
        sys.exit("call_spec.hpp has changed: tell this test where its last field and its size are")
    with tempfile.TemporaryDirectory() as folder:
        header = pathlib.Path(folder, "api/calls/call_spec.hpp")
        header.parent.mkdir(parents=True)
        header.write_text(planted, encoding="utf-8")
        compiling = {
            name: subprocess.Popen([compiler, "-std=c++20", "-fsyntax-only", f"-I{folder}", f"-I{root}",
                                    f"-I{root}/include", str(root / "api/calls" / name)], stderr=subprocess.PIPE,
                                   encoding="utf-8", env={**os.environ, "LC_ALL": "C"})
            for name in [*MUST_HANDLE_IT, *NEED_NOT]}
        faults = []
        for name, one in compiling.items():
            _, errors = one.communicate()
            if name in NEED_NOT:
                if one.returncode != 0:
                    faults.append(f"{name} does not compile although it need not know the field:\n{errors}")
            elif one.returncode == 0:
                faults.append(f"{name} compiles: {MUST_HANDLE_IT[name]}() no longer names all fields of CallSpec")
            elif "names" not in errors and "decomposes" not in errors:
                faults.append(f"{name} fails for another reason than the new field:\n{errors}")
    sys.exit("\n".join(faults) or 0)


main()
