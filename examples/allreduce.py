# SPDX-License-Identifier: Apache-2.0
# Sums a vector over all ranks, in Python with ctypes. Run: torii-run -n 4 -- python3 allreduce.py [path of libtorii.so]
import ctypes
import sys

torii = ctypes.CDLL(sys.argv[1] if len(sys.argv) > 1 else "libtorii.so")
torii.torii_last_error.restype = ctypes.c_char_p
F32, SUM = 10, 0  # torii_type and torii_op of torii.h


def check(status):
    if status != 0:
        sys.exit(torii.torii_last_error().decode())


context, team = ctypes.c_void_p(), ctypes.c_void_p()
check(torii.torii_context_create(None, ctypes.byref(context)))
check(torii.torii_team_create(context, None, ctypes.byref(team)))
rank, ranks = torii.torii_team_rank(team), torii.torii_team_ranks(team)
mine = (ctypes.c_float * 1000)(*[rank + 1] * 1000)
total = (ctypes.c_float * 1000)()
check(torii.torii_allreduce(team, mine, total, ctypes.c_size_t(1000), F32, SUM))
if list(total) != [ranks * (ranks + 1) / 2] * 1000:
    sys.exit("wrong sum")
if rank == 0:
    print(f"every element is {total[0]:g} on {ranks} ranks")
check(torii.torii_team_destroy(team))
check(torii.torii_context_destroy(context))
