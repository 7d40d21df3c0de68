"""How much work grows with its input: CPU time beside CPU time, so that a slow or busy machine fails no test."""

from collections.abc import Callable
from time import process_time

STEP = 4
"""The longer input is so many times the shorter: linear work takes as many times as long, quadratic sixteen times."""
MOST = 2 * STEP + 2
SLACK_S = 0.1


def assert_linear(work: Callable[[int], object], size: int) -> None:
    """Assert that the work on `STEP` times the size takes no more than about as many times as long.

    What else the machine does can disturb one comparison: the least of three counts.
    """
    tries = []
    for _ in range(3):
        tries.append((_seconds(work, size), _seconds(work, STEP * size)))
        short, long = map(min, zip(*tries, strict=True))
        if long <= MOST * short + SLACK_S:
            return
    raise AssertionError(f"{STEP} times the input took {long:.2f} s and not about {STEP} times {short:.2f} s")


def _seconds(work: Callable[[int], object], size: int) -> float:
    begin = process_time()
    work(size)
    return process_time() - begin
