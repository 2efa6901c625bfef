# SPDX-License-Identifier: Apache-2.0
# perf/programs: what pairs of times say, the list of programs, wrong command lines, and a run of perf's own programs
# in C in all ways. Times are not judged.
import json
import pathlib
import random
import re
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "perf"))

import paired_ratios  # noqa: E402
import program_list  # noqa: E402
import program_report  # noqa: E402
import program_runs  # noqa: E402

BUILD = pathlib.Path(sys.argv.pop(1))
OWN = {"heat": "64", "key-sort": "1000", "conjugate-gradient": "2500"}


def script(*arguments):
    return subprocess.run([sys.executable, "-B", str(ROOT / "perf/programs"), "--bin", str(BUILD / "bin"),
                           *arguments], capture_output=True, text=True, timeout=100, check=False)


def mpirun(*words):
    return subprocess.run(["mpirun.openmpi", "--allow-run-as-root", "--oversubscribe", *words], capture_output=True,
                          text=True, timeout=60, check=False)


def rows_of(ratios, program="p", ranks=2):
    """JSON rows of turns with these ratios, and of one look at where the time goes."""
    about = {"program": program, "ranks": ranks, "host": "h", "cpus": 2, "commit": "c", "mca": ""}
    rows = [{**about, "what": "time", "way": way, "turn": turn, "seconds": seconds}
            for turn, ratio in enumerate(ratios)
            for way, seconds in (("plain", 2), ("again", 2), ("torii", 2 * ratio), ("delay-0", 2))]
    return rows + [{**about, "what": "calls", "way": "torii", "turn": -1, "seconds": 0.5, "in_calls_s": 0.5,
                    "calls": 12, "taken": 9, "left": {"no team": 3}, "teams": 1, "team_s": 0.25}]


class Intervals(unittest.TestCase):
    def test_are_those_of_the_sign_test(self):
        # The ranks of the 95 % interval of a median, as tables of the sign test have them.
        for n, k in ((6, 1), (8, 1), (9, 2), (11, 2), (12, 3), (15, 4), (20, 6), (25, 8), (31, 10)):
            ratios = list(range(1, n + 1))
            random.Random(n).shuffle(ratios)
            self.assertEqual(paired_ratios.interval(ratios), (k, n + 1 - k), n)

    def test_too_few_ratios_have_none(self):
        self.assertIsNone(paired_ratios.interval([1.0] * 5))
        self.assertIsNone(paired_ratios.interval([]))
        self.assertEqual(paired_ratios.interval([1.0] * 6), (1, 1))
        # 2 x 2^-10 is the first error below 5 % / 20.
        self.assertIsNone(paired_ratios.interval([1.0] * 9, 0.05 / 20))
        self.assertEqual(paired_ratios.interval([1.0] * 10, 0.05 / 20), (1, 1))

    def test_hold_the_median_as_often_as_they_promise(self):
        drawn = random.Random(7)
        held = 0
        for _ in range(2000):
            low, high = paired_ratios.interval([drawn.lognormvariate(0, 1) for _ in range(15)])
            held += low <= 1 <= high
        self.assertGreater(held, 0.95 * 2000)
        self.assertLess(held, 0.985 * 2000)


class Verdicts(unittest.TestCase):
    def test_need_a_corrected_interval_beside_one(self):
        self.assertEqual(paired_ratios.verdict([1.1] * 6, 1), paired_ratios.LOSS)
        self.assertEqual(paired_ratios.verdict([0.9] * 6, 1), paired_ratios.GAIN)
        self.assertEqual(paired_ratios.verdict([1.1] * 6, 2), paired_ratios.EQUAL)
        self.assertEqual(paired_ratios.verdict([1.1] * 7, 2), paired_ratios.LOSS)
        self.assertEqual(paired_ratios.verdict([1.1] * 6 + [1.0], 2), paired_ratios.EQUAL)
        self.assertEqual(paired_ratios.verdict([1.1] * 5, 1), paired_ratios.EQUAL)

    def test_settle_once_nothing_can_change(self):
        self.assertFalse(paired_ratios.is_settled([1.0] * 5, 1))
        self.assertTrue(paired_ratios.is_settled([1.0] * 6, 40))
        # Within 2 %, but too few turns for the verdict of 40 comparisons.
        self.assertFalse(paired_ratios.is_settled([1.1] * 6, 40))
        self.assertFalse(paired_ratios.is_settled([1.1] * 10, 40))
        self.assertTrue(paired_ratios.is_settled([1.1] * 11, 40))
        # No verdict, but not within 2 %.
        self.assertFalse(paired_ratios.is_settled([0.9, 1.1] * 3, 1))
        self.assertFalse(paired_ratios.is_settled([1.0] * 5 + [1.0201], 1))
        self.assertTrue(paired_ratios.is_settled([1.0] * 5 + [1.0199], 1))

    def test_turns_end_when_all_ways_are_settled_or_at_the_most(self):
        wide, narrow = [0.9, 1.1] * 3, [1.0] * 6
        self.assertTrue(paired_ratios.may_stop([narrow, narrow], 4))
        self.assertFalse(paired_ratios.may_stop([narrow, wide], 4))
        self.assertTrue(paired_ratios.may_stop([narrow, wide], 4, most=6))


class Reports(unittest.TestCase):
    def test_count_complete_turns_only(self):
        rows = rows_of([1.5, 1.25])
        self.assertEqual(program_report.times_of(rows)["torii"], [3, 2.5])
        self.assertEqual(program_report.times_of(rows[:6])["torii"], [3])
        self.assertEqual(program_report.cell_line(("p", 2), rows[:3], 2), "")

    def test_name_losses_gains_and_reasons(self):
        with tempfile.TemporaryDirectory() as folder:
            file = pathlib.Path(folder) / "rows"
            rows = rows_of([1.5] * 11) + rows_of([0.5] * 11, "q", 4)
            file.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
            shown = script("--report", str(file))
            self.assertEqual(shown.returncode, 0, shown.stderr)
            self.assertIn("# losses: p on 2 ranks (torii)\n", shown.stdout)
            self.assertIn("# gains: q on 4 ranks (torii)\n", shown.stdout)
            self.assertIn("correction for 4 comparisons", shown.stdout)
            self.assertIn("1.500 [1.500, 1.500] loss", shown.stdout)
            self.assertRegex(shown.stdout, r"p +2 torii +12 +0\.500 +9 +1 +250\.00  3 no team\n")
            file.write_text('{"side": "with"}\n', encoding="utf-8")
            shown = script("--report", str(file))
            self.assertEqual(shown.returncode, 2)
            self.assertIn("a row has no program", shown.stderr)


class List(unittest.TestCase):
    def test_names_are_unique_and_the_asked_ones_grow(self):
        names = [one.name for one in program_list.PROGRAMS]
        self.assertEqual(len(names), len(set(names)))
        sized = {one.name for one in program_list.PROGRAMS if one.sized}
        self.assertEqual(sized, {"scalapack-lu", "scalapack-qr", "scalapack-svd", "examl", "hpcc", "mpi4py-fft",
                                 "lammps-atoms", *OWN})

    def test_own_programs_grow_with_the_work(self):
        for one in program_list.PROGRAMS:
            if one.name in OWN:
                (size, few), (same, many) = one.sized(0.01, 2)[0], one.sized(1, 2)[0]
                self.assertEqual(size, same)
                self.assertLess(int(few), int(many))

    def test_little_work_is_not_the_most(self):
        for one in program_list.PROGRAMS:
            if one.sized and not one.missing(BUILD / "bin"):
                little = program_runs.WORK_BEGIN
                self.assertNotEqual(one.sized(little, 2), one.sized(100 * little, 2), one.name)

    def test_grids_have_all_ranks(self):
        self.assertEqual(program_list.grids_of(4), [(4, 1), (1, 4), (2, 2)])
        self.assertEqual(program_list.grids_of(2), [(2, 1), (1, 2)])
        self.assertEqual(program_list.grids_of(3)[-1][0] * program_list.grids_of(3)[-1][1], 3)

    def test_lists_of_scalapack_grow_to_what_it_reads(self):
        sizes, grids = [1, 2, 3, 4], program_list.grids_of(4)
        self.assertEqual(program_list.lists_of(1, sizes, grids), (sizes, grids))
        self.assertEqual(program_list.lists_of(3, sizes, grids), (sizes * 3, grids))
        self.assertEqual(program_list.lists_of(10, sizes, grids), (sizes * 5, grids * 2))
        self.assertEqual(program_list.lists_of(1000, sizes, grids), (sizes * 5, grids * 6))

    def test_shows_what_is_missing(self):
        shown = script("--list")
        if shown.returncode == 3:
            self.skipTest(shown.stderr)
        self.assertEqual(shown.returncode, 0, shown.stderr)
        for name in OWN:
            self.assertIn(f"\n{name} ", shown.stdout)
        first = program_list.PROGRAMS[0]
        self.assertIn(f"{first.name:18} {first.kind}; only by name\n", shown.stdout)


class Work(unittest.TestCase):
    def test_grows_to_what_takes_so_long(self):
        work, took = program_runs.fitting_work(lambda work: 0.5 + 2 * work, lambda _: False, 3)
        self.assertGreaterEqual(took, 3)
        self.assertLess(took, 1.3 * 3)
        self.assertEqual(took, 0.5 + 2 * work)

    def test_a_slow_run_is_made_again(self):
        times = iter([9, 1, 2, 3.5, 3.25])
        self.assertEqual(program_runs.fitting_work(lambda _: next(times), lambda _: False, 3)[1], 3.25)

    def test_ends_where_it_cannot_grow(self):
        work, took = program_runs.fitting_work(lambda work: min(work, 1), lambda work: work > 2, 3)
        self.assertEqual(took, 1)
        self.assertLess(work, 20)


class Counters(unittest.TestCase):
    def test_are_read_from_the_component(self):
        run = program_runs.Run(
            "[h:1] coll/torii: taken bcast=2 ibcast=1\n[h:1] coll/torii: left bcast=7 reduce=1\n"
            "[h:1] coll/torii: left, before the team: bcast=7\n[h:1] coll/torii: left, type or operation: reduce=1\n"
            "[h:1] coll/torii: set-up: 2 teams in 1500 us, the context in 4000 us\n"
            "[h:2] coll/torii: taken bcast=2\n[h:2] coll/torii: left, before the team: bcast=7\n"
            "[h:2] coll/torii: set-up: 2 teams in 500 us, the context in 5000 us\n", [[1.5], [2.5]])
        program_runs.counters(run)
        self.assertEqual(run.taken, 5)
        self.assertEqual(run.left, {"before the team": 14, "type or operation": 1})
        self.assertEqual((run.teams, run.team_s, run.context_s), (2, 0.0015, 0.005))
        self.assertEqual(run.seconds(), 2.5)


class CommandLines(unittest.TestCase):
    def test_wrong_ones_are_refused_with_the_reason(self):
        for arguments, reason in (
                (["--turns", "0"], "--turns must be at least 1 and --ranks at least 2"),
                (["--ranks", "1"], "--turns must be at least 1 and --ranks at least 2"),
                (["--ranks", "2;4"], "--ranks '2;4' is not a list of numbers such as 2,4"),
                (["--seconds", "0"], "--seconds must be above 0"),
                (["--work", "-1"], "--work not below it"),
                (["--report", "no_such_file"], "cannot read 'no_such_file': No such file or directory")):
            refused = script(*arguments)
            self.assertEqual(refused.returncode, 2, arguments)
            self.assertIn(reason, refused.stderr)
        self.assertIn("Example: perf/programs", script("--help").stdout)

    def test_what_is_not_there_is_said(self):
        with tempfile.TemporaryDirectory() as folder:
            none = script("--bin", folder)
            self.assertEqual(none.returncode, 3)
            self.assertRegex(none.stderr, "no component beside|no mpirun.openmpi")

    def test_unknown_programs_and_files(self):
        if not (BUILD / "lib/torii/openmpi/mca_coll_torii.so").exists():
            self.skipTest("built without the component")
        for arguments, reason in ((["--only", "linpack"], "--only 'linpack' is unknown: use a list of "),
                                  (["--only", "heat", "--json", "none/x"], "cannot write 'none/x'")):
            refused = script(*arguments)
            self.assertEqual(refused.returncode, 2, refused.stderr)
            self.assertIn(reason, refused.stderr)


@unittest.skipUnless((BUILD / "bin/mpi_heat").exists() and (BUILD / "lib/torii/openmpi/mca_coll_torii.so").exists(),
                     "built without Open MPI")
class Runs(unittest.TestCase):
    def test_own_programs_in_all_ways(self):
        with tempfile.TemporaryDirectory() as folder:
            file = pathlib.Path(folder) / "rows"
            done = script("--only", ",".join(OWN), "--ranks", "2", "--turns", "1", "--work", "0.003", "--json",
                          str(file))
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
            rows = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
        for name in OWN:
            own = [row for row in rows if row["program"] == name]
            self.assertEqual([row["way"] for row in own if row["what"] == "time"], list(program_runs.WAYS))
            looks = {row["way"]: row for row in own if row["what"] == "calls"}
            self.assertEqual(set(looks), {"plain", *program_runs.COMPARED})
            for row in looks.values():
                self.assertGreater(row["calls"], 0)
                self.assertGreater(row["in_calls_s"], 0)
            # Every call of the program is one that torii took or left.
            for way in program_runs.COMPARED:
                self.assertEqual(looks[way]["taken"] + sum(looks[way]["left"].values()), looks[way]["calls"], name)
            self.assertEqual(looks["delay-0"]["left"], {})
            self.assertIn("before the team", looks["torii"]["left"])
            self.assertGreater(looks["delay-0"]["teams"], 0)
            self.assertGreater(looks["delay-0"]["team_s"], 0)
            self.assertRegex(done.stdout, rf"\n{name} +2 +1 ")

    def test_a_program_that_fails_is_named(self):
        failed = script("--only", "heat", "--ranks", "2", "--turns", "1", "--work", "0.0001", "--mca",
                        "coll_torii_priority", "-1")
        self.assertEqual(failed.returncode, 1, failed.stdout)
        self.assertIn("# FAILED: heat on 2 ranks: torii: no counters", failed.stdout)

    def test_own_programs_notice_wrong_results(self):
        for name, size in OWN.items():
            program = str(BUILD / "bin" / ("mpi_" + name.replace("-", "_")))
            done = mpirun("-n", "2", "-x", f"LD_PRELOAD={BUILD / 'tests/bin/spoil_calls.so'}", program, size, "2")
            self.assertEqual(done.returncode, 1, done.stdout + done.stderr)
            self.assertIn("WRONG", done.stdout)

    def test_own_programs_are_right_on_three_ranks_and_refuse_wrong_numbers(self):
        for name, size in OWN.items():
            program = str(BUILD / "bin" / ("mpi_" + name.replace("-", "_")))
            done = mpirun("-n", "3", program, size, "2")
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
            self.assertIn(", right", done.stdout)
            for words in (["0"], [size, "0"], [size, "1", "1"]):
                refused = mpirun("-n", "2", program, *words)
                self.assertEqual(refused.returncode, 2, refused.stderr)
                self.assertIn("usage: " + pathlib.Path(program).name, refused.stderr)
            shown = subprocess.run([program, "--help"], capture_output=True, text=True, timeout=20, check=False)
            self.assertEqual(shown.returncode, 0)
            self.assertTrue(re.search(r"Example:\n  mpirun -n 2 mpi_", shown.stdout))


if __name__ == "__main__":
    unittest.main()
