"""Several scenarios, on as many processes as are asked for."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, wait
from multiprocessing import get_context
from multiprocessing.queues import SimpleQueue
from typing import Any

from simulation.catalogue import SCENARIOS
from simulation.outcome import Result
from simulation.run import simulate

Advance = Callable[[str, float], None]
"""Told of a scenario by name which share of it is done."""

LONGEST_FIRST = ("scheduler_down", "dependency_down", "retry_storm", "executions")
"""Begun first, so that no process has nothing to do in the end."""

_LOOK = 0.2
_updates: SimpleQueue[tuple[str, float]] | None = None


def run_one(name: str, *, is_full: bool, seed: int, advance: Callable[[float], None] = lambda _: None) -> Result:
    """Run a scenario by its name."""
    return simulate(SCENARIOS[name](is_full=is_full), seed=seed, advance=advance)


def run_all(names: Sequence[str], *, is_full: bool, seed: int, advance: Advance) -> list[Result]:
    """Run scenarios, and answer in the order of their names: a result does not depend on the others."""
    processes = min(os.cpu_count() or 1, len(names))
    if processes == 1:
        return [run_one(name, is_full=is_full, seed=seed, advance=_for(name, advance)) for name in names]
    # Forked, a process would inherit whatever threads and locks its parent has.
    context = get_context("spawn")
    updates: SimpleQueue[tuple[str, float]] = context.SimpleQueue()
    with ProcessPoolExecutor(processes, mp_context=context, initializer=_listen, initargs=(updates,)) as pool:
        begun = sorted(names, key=lambda name: name not in LONGEST_FIRST)
        futures = {name: pool.submit(_run_telling, name, is_full, seed) for name in begun}
        try:
            _follow(futures, updates, advance)
        except BaseException:
            pool.shutdown(cancel_futures=True)
            raise
        return [futures[name].result() for name in names]


def _follow(futures: Mapping[str, Future[Any]], updates: SimpleQueue[tuple[str, float]], advance: Advance) -> None:
    waiting = set(futures.values())
    while waiting:
        done, waiting = wait(waiting, timeout=_LOOK)
        while not updates.empty():
            advance(*updates.get())
        for future in done:
            future.result()


def _listen(updates: SimpleQueue[tuple[str, float]]) -> None:
    global _updates  # noqa: PLW0603  a process has one, which is set once
    _updates = updates


def _run_telling(name: str, is_full: bool, seed: int) -> Result:
    assert _updates is not None  # by the initializer
    updates = _updates
    return run_one(name, is_full=is_full, seed=seed, advance=lambda share: updates.put((name, share)))


def _for(name: str, advance: Advance) -> Callable[[float], None]:
    return lambda share: advance(name, share)
