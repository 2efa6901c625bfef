# SPDX-License-Identifier: Apache-2.0
# What pairs of times say about the ratio of two ways to run a program, and how many pairs it takes.
"""Each turn runs a program once in each way, so the time of a way over that of plain Open MPI in the same turn is one
ratio. Each ratio is above the true median with the chance of a coin, whatever the distribution is. So the true median
is outside the k-th smallest and k-th largest of n ratios only if fewer than k of n coins show one side (sign test),
which gives an interval of any confidence without an assumption about the times.

Of many comparisons some would be losses by chance. A verdict therefore needs an interval whose error is 5 % divided by
the number of comparisons (Bonferroni): a loss is such an interval wholly above 1.00, a gain one wholly below."""
import math
import statistics

ERROR = 0.05
WITHIN = 0.02
TURNS_LEAST, TURNS_MOST = 5, 31
LOSS, GAIN, EQUAL = "loss", "gain", "-"


def below(k, n):
    """The chance that fewer than k of n coins show heads."""
    return sum(math.comb(n, heads) for heads in range(k)) / 2 ** n


def interval(ratios, error=ERROR):
    """The narrowest pair of order statistics that holds the true median but for `error`; None: too few ratios."""
    n = len(ratios)
    k = 0
    while 2 * (k + 1) <= n and 2 * below(k + 1, n) <= error:
        k += 1
    ordered = sorted(ratios)
    return (ordered[k - 1], ordered[n - k]) if k else None


def verdict(ratios, comparisons):
    """A loss or a gain if that many comparisons leave no doubt."""
    found = interval(ratios, ERROR / comparisons)
    if found and found[0] > 1:
        return LOSS
    return GAIN if found and found[1] < 1 else EQUAL


def is_settled(ratios, comparisons):
    """Whether further pairs would tell nothing that is asked: the interval is within 2 % of the median, and it says
    about loss and gain what it says after the correction."""
    found = interval(ratios)
    if len(ratios) < TURNS_LEAST or found is None:
        return False
    median = statistics.median(ratios)
    if found[1] > (1 + WITHIN) * median or found[0] < (1 - WITHIN) * median:
        return False
    return verdict(ratios, 1) == verdict(ratios, comparisons)


def may_stop(all_ratios, comparisons, most=TURNS_MOST):
    """Whether the turns of a program end; `all_ratios` has a list for each way that is compared."""
    return all(len(ratios) >= most or is_settled(ratios, comparisons) for ratios in all_ratios)
