# SPDX-License-Identifier: Apache-2.0
# Types of leaves.py.
from collections.abc import Callable, Iterator
from typing import Any

from typing_extensions import Buffer

Rows = Buffer | Callable[[int], Buffer]

class Leaves:
    team: Any
    all: int
    first: int
    count: int
    def __init__(self, team: Any, all: int, first: int | None = None, count: int | None = None) -> None: ...
    def __len__(self) -> int: ...
    def __iter__(self) -> Iterator[int]: ...
    def allreduce(self, array: Rows, op: str | int = "sum", out: Buffer | None = None, *, dtype: Any = None) -> Any: ...
    def reduce(self, array: Rows, op: str | int = "sum", root: int = 0, out: Buffer | None = None, *,
               dtype: Any = None) -> Any: ...
    def reduce_scatter(self, array: Rows, op: str | int = "sum", out: Buffer | None = None, *,
                       dtype: Any = None) -> Any: ...
