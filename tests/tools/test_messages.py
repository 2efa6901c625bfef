# SPDX-License-Identifier: Apache-2.0
# tools/messages/messages on a small tree: what counts as a message, which fit, and what --check refuses.
"""Plants sources and advice in a scratch folder and runs the program over them. Needs only the standard library."""
import pathlib
import subprocess
import sys
import tempfile
import unittest

PROGRAM = pathlib.Path(__file__).resolve().parents[2] / "tools/messages/messages"
SOURCE = '''// "a comment with some words" is no message.
#define TEXT "no directive is read"
static_assert(kOne == 1, "one is one everywhere");
void f() { throw Error(Status::timeout, "rank " + std::to_string(3) + " has not "
                                        "come in time"); }
void g() { log(LogLevel::warn, fmt::format("engine {} of {:4} is closed", 1, 2)); }
const char* h(bool yes) { return yes ? "the cable is cut" : "the cable is whole"; }
extern const Algorithm kRing = {"ring", "a paper with a name", why_not};
const char* key() { return "two words"; }
const char* quoted = "cannot say \\"yes\\" now;{}";
'''
ADVICE = '''## First
in api/
Do something.
- engine => Look at the cable.

## Not messages
No user sees these.
- cannot say
'''
LIST = '''### First
Do something.

- `engine … of … is closed` — Look at the cable.
- `rank … has not come in time` (timeout)
- `the cable is cut / the cable is whole`
'''


class Messages(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name)
        for name, text in (("api/a.cpp", SOURCE), ("advice.txt", ADVICE)):
            self.write(name, text)

    def write(self, name, text):
        (self.root / name).parent.mkdir(exist_ok=True)
        (self.root / name).write_text(text, encoding="utf-8")

    def run_program(self, *action):
        command = [sys.executable, PROGRAM, "--root", self.root, "--advice", self.root / "advice.txt", *action]
        return subprocess.run(command, capture_output=True, encoding="utf-8", timeout=30, check=False)

    def expect_refused(self, *words):
        result = self.run_program("--check")
        self.assertEqual(result.returncode, 1)
        for word in words:
            self.assertIn(word, result.stderr)

    def listed(self, *words):
        result = self.run_program("--list", *words)
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        return result.stdout

    def test_all_messages_with_their_advice(self):
        self.assertEqual(self.listed(), LIST)
        result = self.run_program("--check")
        self.assertEqual((result.returncode, result.stdout, result.stderr), (0, "", ""))

    def test_messages_that_fit(self):
        lines = LIST.splitlines(keepends=True)
        begin, entries = "".join(lines[:3]), lines[3:]
        for words, number in (("not COME", 1), ("[1] torii: rank 3 has not come in time, says rank 0", 1),
                              ("engine 1 of 0x2 is closed", 0), ("the cable is whole", 2)):
            self.assertEqual(self.listed(words), begin + entries[number], words)
        nothing = self.run_program("--list", "rank 3 comes")
        self.assertEqual((nothing.returncode, nothing.stdout), (1, ""))
        self.assertIn("no message fits 'rank 3 comes'", nothing.stderr)

    def test_long_advice_takes_several_lines(self):
        advice = "Look at the cable. " * 6 + "Then at the device."
        self.write("advice.txt", ADVICE.replace("Look at the cable.", advice))
        first = "- `engine … of … is closed` — " + "Look at the cable. " * 4 + "Look at the\n"
        self.assertIn(first + "  cable. Look at the cable. Then", self.listed())

    def test_source_without_group_is_refused(self):
        self.write("runtime/b.hpp", 'inline const char* more = "this one is planted";\n')
        self.expect_refused("runtime/b.hpp: no group of advice.txt has this source: this one is planted")
        self.assertEqual(self.run_program("--list").returncode, 1)

    def test_advice_that_is_missing_or_not_needed_is_refused(self):
        self.write("advice.txt", ADVICE.replace("Do something.\n", ""))
        self.expect_refused("'First' has no advice")
        self.write("advice.txt", ADVICE.replace("=> Look at the cable.", ""))
        self.expect_refused("one of its messages has none")
        self.write("advice.txt", ADVICE.replace("- engine", "- motor"))
        self.expect_refused("no message begins so: motor")
        self.write("advice.txt", ADVICE.replace("- cannot say", "- cannot sing"))
        self.expect_refused("no message begins so: cannot sing")
        self.write("advice.txt", ADVICE.replace("in api/", "in api/ api/gone.cpp"))
        self.expect_refused("no source with messages begins so: api/gone.cpp")
        self.write("advice.txt", ADVICE.replace("Do something.", "Do [this](that.md#now)."))
        self.expect_refused("'First' leads to docs/that.md, which is not there")


if __name__ == "__main__":
    unittest.main()
