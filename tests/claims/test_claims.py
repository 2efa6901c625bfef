# SPDX-License-Identifier: Apache-2.0
# Every figure of the documentation that comes from a saved run says what the run says. Needs no build.
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

import claims
import saved_runs

EXCERPTS = claims.read_excerpts(pathlib.Path(__file__).with_name("claims.txt").read_text(encoding="utf-8"))
EXCEPTIONS = claims.read_exceptions(pathlib.Path(__file__).with_name("exceptions.txt"))
GENERATED = ("README.md", "docs/benchmarks.md", "docs/figures/ratios.svg")
# The name of a saved run, and where it may stand.
RUN = re.compile(r"\b(?:\d{4}-\d\d-\d\d-[\w-]+\.(?:json|svg|txt)|instructions\.txt|call-path-8-bytes\.txt)\b")
FOLDERS = ("api", "collectives", "perf", "plugins", "runtime", "tests", "tools", "transports")


def content_of(page):
    return (claims.ROOT / page).read_text(encoding="utf-8")


def benchmarks(*arguments):
    return subprocess.run([sys.executable, "-B", str(claims.ROOT / "perf/benchmarks"), *arguments],
                          capture_output=True, text=True, timeout=60, check=False)


def all_faults(page, content, excerpts=EXCERPTS):
    return [fault for fault in map(claims.fault_of, claims.find_claims(page, content, excerpts)) if fault]


def excerpts_of(text, *figures):
    """As claims.txt has them for the page "page"."""
    return claims.read_excerpts("\n    ".join([f"page\n  {text}", *figures]))


class Pages(unittest.TestCase):
    def test_generated_blocks_are_what_saved_runs_give(self):
        result = benchmarks("--check")
        self.assertEqual(result.returncode, 0, result.stdout + result.stderr)

    def test_claims_hold(self):
        count = 0
        for page in claims.pages():
            count += len(claims.find_claims(page, content_of(page), EXCERPTS))
            self.assertEqual(all_faults(page, content_of(page)), [])
        self.assertGreaterEqual(count, 10)
        self.assertEqual(count, sum(len(excerpt.figures) for excerpt in EXCERPTS), "excerpts of pages that are gone")

    def test_pages_are_for_readers_of_their_text(self):
        """The only comments are the marks around what programs write."""
        for page in claims.pages():
            found = re.findall(r"<!--.*?-->", claims.blanked(content_of(page), r"^```.*?^```"), re.S)
            found = [comment for comment in found if not re.match(r"<!-- (generated: |(begin|end)\b)", comment)]
            self.assertEqual(found, [], f"{page}: claims are in claims.txt")

    def test_figures_with_units_have_claims(self):
        used = set()
        for page in claims.STRICT_PAGES:
            missing, some = claims.unclaimed(page, content_of(page), EXCERPTS, EXCEPTIONS)
            self.assertEqual(missing, [], f"{page}: write a line into claims.txt for each, or into exceptions.txt")
            used |= some
        self.assertEqual(used, set(EXCEPTIONS), "exceptions that nothing needs")

    def test_readme_is_short_and_names_losses(self):
        readme = content_of("README.md")
        self.assertLessEqual(len(readme.splitlines()), 160)
        rows = re.findall(r"^\|.*\|\*\*0\.\d+\*\*\|.*$", readme, re.M)
        self.assertGreaterEqual(len(rows), 2, "the table of results has to show losses")

    def test_saved_runs_are_named(self):
        """A page, a source or a test names each saved run, and its list all of them."""
        listed = content_of("perf/results/README.md")
        names = {path.name for path in saved_runs.RESULTS.iterdir()} - {"README.md"}
        self.assertEqual({name for name in names if name not in listed}, set(), "not in perf/results/README.md")
        self.assertEqual(set(RUN.findall(listed)) - names, set(), "perf/results/README.md names what is gone")
        used = set()
        for place in ("dev", *claims.pages(), *FOLDERS):
            path = claims.ROOT / place
            for file in sorted(path.rglob("*")) if path.is_dir() else [path]:
                if file.is_file() and saved_runs.RESULTS not in file.parents:
                    used.update(RUN.findall(file.read_text(encoding="utf-8", errors="ignore")))
        self.assertEqual(names - used, set(), "nothing names these: remove them")

    def test_the_shortest_algorithm_has_fewer_than_50_lines(self):
        lines = content_of("tests/outside/line.cpp").splitlines()
        self.assertLess(sum(1 for line in lines if line.strip() and not line.strip().startswith("//")), 50)


class ChangedByHand(unittest.TestCase):
    """The tests above fail when somebody changes a figure."""

    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, self.folder)
        for name in GENERATED:
            (self.folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(claims.ROOT / name, self.folder / name)

    def change(self, name, begin, end, text):
        path = self.folder / name
        content = path.read_text(encoding="utf-8")
        path.write_text(content[:begin] + text + content[end:], encoding="utf-8")
        return path.read_text(encoding="utf-8")

    def test_a_copy_is_accepted(self):
        result = benchmarks("--check", "--root", str(self.folder))
        self.assertEqual(result.returncode, 0, result.stdout + result.stderr)

    def test_each_claimed_figure(self):
        for page in claims.pages():
            content = content_of(page)
            for claim in claims.find_claims(page, content, EXCERPTS):
                last = claim.printed[-1]
                changed = claim.printed[:-1] + str((int(last) + 1) % 10)
                self.assertEqual(len(all_faults(page, content[:claim.begin] + changed + content[claim.end:])), 1,
                                 f"{page}: {claim.printed} as {changed}")

    def test_each_sentence_with_a_claim(self):
        for excerpt in EXCERPTS:
            content = content_of(excerpt.page)
            words = max(excerpt.text.split(claims.PLACE), key=len).split()
            self.assertRegex(content, r"\s+".join(map(re.escape, words)))
            changed = re.sub(r"\s+".join(map(re.escape, words)), "other words", content)
            for page in (changed, content + "\n" + excerpt.text.replace(claims.PLACE, "1")):
                with self.assertRaises(saved_runs.BadClaim):
                    claims.find_claims(excerpt.page, page, EXCERPTS)

    def test_each_generated_block(self):
        for page in claims.STRICT_PAGES:
            for block in re.finditer(r"<!-- generated: .*?<!-- end -->", content_of(page), re.S):
                digit = re.search(r"\d(?=[^\d]*$)", block[0])
                self.assertIsNotNone(digit, block[0])
                at = block.start() + digit.start()
                before = (self.folder / page).read_text(encoding="utf-8")
                self.change(page, at, at + 1, str((int(digit[0]) + 1) % 10))
                self.assertEqual(benchmarks("--check", "--root", str(self.folder)).returncode, 1, block[0][:60])
                (self.folder / page).write_text(before, encoding="utf-8")

    def test_the_chart(self):
        content = content_of(GENERATED[2])
        at = content.index("<circle cx=\"") + len("<circle cx=\"")
        self.change(GENERATED[2], at, at + 1, str((int(content[at]) + 1) % 10))
        self.assertEqual(benchmarks("--check", "--root", str(self.folder)).returncode, 1)

    def test_a_figure_without_claim(self):
        for figure in ("It takes 12 us.", "It takes 12\nus.", "It is 3.5 times faster.", "It is 7 % more.",
                       "a ratio of 1.8", "2x as fast"):
            missing, _ = claims.unclaimed("README.md", content_of("README.md") + figure, EXCERPTS, EXCEPTIONS)
            self.assertEqual(len(missing), 1, figure)

    def test_a_figure_whose_claim_is_gone(self):
        for excerpt in (excerpt for excerpt in EXCERPTS if excerpt.page == "README.md"):
            others = [other for other in EXCERPTS if other != excerpt]
            missing, _ = claims.unclaimed("README.md", content_of("README.md"), others, EXCEPTIONS)
            self.assertGreaterEqual(len(missing), 1, excerpt.text)

    def test_a_claim_without_its_run_or_figure(self):
        for figure in ("perf/results/2020-01-01-none.json ratio",
                       "perf/results/2026-11-27-compare.json ratio",
                       "perf/results/2026-11-27-compare.json max nothing",
                       "perf/results/2026-11-26-programs.txt /no such line (.*)/",
                       "perf/results/2026-11-26-programs.txt /no group/",
                       "VERSION /(.*)/"):
            self.assertEqual(len(all_faults("page", "It is 1.5.", excerpts_of("is {}.", figure))), 1, figure)

    def test_an_excerpt_is_there_once(self):
        run = "perf/results/2026-11-27-compare.json ratio"
        excerpts = excerpts_of("is {} times {} of", run, run)
        for content in ("It is 1.5 times 7 of", "It\nis  1.5\n  times 7 of",
                        "```\nis 2 times 3 of\n```\nis 1 times 2 of"):
            self.assertEqual(len(claims.find_claims("page", content, excerpts)), 2, content)
        for content in ("", "is 1.5 time 7 of", "is 1.5times 7 of", "is x times 7 of", "is 1.5x times 7 of",
                        "is 1 times 2 of, is 1 times 2 of", "```\nis 1 times 2 of\n```\n",
                        "<!-- generated: a -->\nis 1 times 2 of\n<!-- end -->"):
            with self.assertRaisesRegex(saved_runs.BadClaim, "is there [02] times"):
                claims.find_claims("page", content, excerpts)
        # A part of a number is no number.
        for text, content, expected in (("{} is", "1.25 is", ["1.25"]), ("1{} is", "1.25 is", []),
                                        ("is {}", "is 1,234", ["1,234"]), ("is {}.5", "is 1.5", [])):
            found = [claim.printed for claim in self.claims_or_none(content, excerpts_of(text, run))]
            self.assertEqual(found, expected, text)
        with self.assertRaisesRegex(saved_runs.BadClaim, "claimed twice"):
            claims.find_claims("page", "It is 1.5 times",
                               excerpts_of("is {} times", run) + excerpts_of("It is {}", run))

    def claims_or_none(self, content, excerpts):
        try:
            return claims.find_claims("page", content, excerpts)
        except saved_runs.BadClaim:
            return []

    def test_a_file_of_claims_that_cannot_be_read(self):
        for text in ("  an excerpt {} of no page\n    a b", "page\n    a b", "page\n  is {}\n    a", "page\n   is {}",
                     "page\n  is {}\nother\n    a b", "page\n  is {}", "page\n  is\n", "page\n  is\n    a b",
                     "page\n  is {}\n    a b\n    a c", "page\n  is {} {}\n    a b"):
            with self.assertRaises(saved_runs.BadClaim, msg=text):
                claims.read_excerpts(text)

    def test_a_saved_run_without_host_or_commit_makes_no_table(self):
        (self.folder / "run.txt").write_text("# command: perf/programs\nblacs 3.6 3.1 0.86\n", encoding="utf-8")
        with self.assertRaisesRegex(saved_runs.BadClaim, "does not say its host and commit"):
            saved_runs.provenance("run.txt", self.folder)

    def test_command_line(self):
        self.assertEqual(benchmarks("--help").returncode, 0)
        self.assertEqual(benchmarks("--nothing").returncode, 2)
        self.assertEqual(benchmarks("--check", "--root", str(self.folder / "docs")).returncode, 2)
        path = self.folder / "README.md"
        path.write_text(path.read_text(encoding="utf-8").replace("generated: results -->", "generated: lies -->"),
                        encoding="utf-8")
        self.assertIn("no block is called 'lies'", benchmarks("--root", str(self.folder)).stderr)


if __name__ == "__main__":
    unittest.main()
