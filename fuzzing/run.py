"""Feeds inputs to parsers, and notes what none of them may do: raise something else than its refusal, or take long."""

from __future__ import annotations

import faulthandler
import signal
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from itertools import repeat
from math import inf
from typing import Any

from fuzzing.inputs import Inputs
from fuzzing.parsers import PARSERS, Parser

HANG_S = 5
"""No input may take so long, whatever else the machine does."""

MOST_CPU_S = 0.2
"""Nor so much of a processor: what a request of 10 KB may take."""

STUCK_S = 60
"""A hang in C code, which no signal ends: the process is ended with its stack."""

MOST_SHOWN = 3
"""Inputs that are kept of a parser with the same fault."""


@dataclass(frozen=True, slots=True)
class Finding:
    """What a parser did with an input."""

    parser: str
    what: str
    given: Any


@dataclass(slots=True)
class Report:
    """What came of a run. refusals: by parser and kind of error. slowest: seconds, parser, and how long its input was."""

    seconds: float = 0
    inputs: int = 0
    taken: int = 0
    refusals: Counter[tuple[str, str]] = field(default_factory=Counter)
    slowest: tuple[float, str, int] = (0, "", 0)
    findings: list[Finding] = field(default_factory=list)

    def add(self, other: Report) -> None:
        """Take another's figures in."""
        self.inputs += other.inputs
        self.taken += other.taken
        self.refusals += other.refusals
        self.slowest = max(self.slowest, other.slowest)
        self.findings += other.findings

    def told(self) -> str:
        """The figures in a line."""
        seconds, parser, size = self.slowest
        return (
            f"{self.inputs:,} inputs in {self.seconds:.0f} s, {self.inputs / max(self.seconds, 0.001):,.0f} a second: "
            f"{self.taken:,} taken, {sum(self.refusals.values()):,} refused, {len(self.refusals)} distinct errors, "
            f"{len(self.findings)} crashes or hangs; slowest {1_000 * seconds:.0f} ms ({parser}, {size:,} characters)"
        )


class HangError(BaseException):
    """An input takes too long. Not an Exception: no parser may survive it."""


def run(inputs: int, *, seed: int, only: str = "", tell: Callable[[str], None]) -> Report:
    """Give each parser its share of the inputs, a process for each core. Raises BrokenProcessPool when one hangs in C."""
    chosen = [parser for parser in PARSERS if only in parser.name]
    report, started = Report(), time.perf_counter()
    with ProcessPoolExecutor() as pool:
        shares = pool.map(
            feed_named, (parser.name for parser in chosen), repeat(inputs // len(chosen) + 1), repeat(seed)
        )
        for number, share in enumerate(shares):
            report.add(share)
            report.seconds = time.perf_counter() - started
            tell(
                f"{number + 1}/{len(chosen)} {chosen[number].name}: {report.inputs:,} inputs after {report.seconds:.0f} s, "
                f"{len(report.findings)} found"
            )
    return report


def feed_named(name: str, count: int, seed: int) -> Report:
    """Feed the parser of that name."""
    (parser,) = (parser for parser in PARSERS if parser.name == name)
    return feed(parser, count, seed, most_cpu_s=MOST_CPU_S)


def feed(parser: Parser, count: int, seed: int, *, most_cpu_s: float = inf) -> Report:
    """Feed one parser, in the main thread of a process: a hang is ended by a signal. most_cpu_s: that an input may take."""
    report = Report()
    for seed_input in parser.seeds:
        # What is imported when it is first needed, such as every country's holidays, is no hang.
        with suppress(Exception):
            parser.read(seed_input)
    with _watched():
        _feed(parser, count, Inputs(f"{parser.name} {seed}"), report, most_cpu_s)
    return report


def _feed(parser: Parser, count: int, inputs: Inputs, report: Report, most_cpu_s: float) -> None:
    seen: Counter[str] = Counter()
    for _ in range(count):
        given = inputs.text(parser.seeds) if parser.is_of_text else inputs.value(parser.seeds)
        began = time.process_time()
        fault = _outcome(parser, given, report)
        if not fault and time.process_time() - began > most_cpu_s:
            fault = _dear(parser, given, most_cpu_s)
        if fault and (seen.update([fault]) or seen[fault] <= MOST_SHOWN):
            report.findings.append(Finding(parser.name, fault, given))


def _dear(parser: Parser, given: Any, most_cpu_s: float) -> str:
    """What is wrong with an input that has taken long; nothing, where it does not again: memory was tidied up meanwhile."""
    began = time.process_time()
    with suppress(*parser.refusals):
        parser.read(given)
    used = time.process_time() - began
    return f"takes more than {most_cpu_s:g} s of CPU" if used > most_cpu_s else ""


def _outcome(parser: Parser, given: Any, report: Report) -> str:
    """What is wrong with what the parser does; empty where nothing is."""
    report.inputs += 1
    started = time.perf_counter()
    try:
        signal.setitimer(signal.ITIMER_REAL, HANG_S)
        parser.read(given)
        report.taken += 1
    except parser.refusals as error:
        report.refusals[parser.name, type(error).__name__] += 1
    except HangError:
        return f"takes more than {HANG_S} s"
    except Exception as error:  # noqa: BLE001  this is what is looked for
        return f"raises {type(error).__name__}: {str(error)[:200]}"
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        seconds = time.perf_counter() - started
        if seconds > report.slowest[0]:
            report.slowest = (seconds, parser.name, len(str(given)))
    return ""


@contextmanager
def _watched() -> Iterator[None]:
    def end(*_: object) -> None:
        faulthandler.dump_traceback_later(STUCK_S, exit=True)
        raise HangError

    before = signal.signal(signal.SIGALRM, end)
    try:
        yield
    finally:
        signal.signal(signal.SIGALRM, before)
        faulthandler.cancel_dump_traceback_later()
