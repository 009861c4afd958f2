"""The formal models of `specs/`, checked by Spin: all that can happen within small bounds, and that each mutant is found.

`python -m scripts.model` checks all of them, `python -m scripts.model ledger` those whose names begin so, `--list` names
them. Exit code 0 when each model holds and each mutant is found, and where Spin or a C compiler is missing, which is said.
"""

from __future__ import annotations

import re
import resource
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

SPECS = Path(__file__).resolve().parent.parent / "specs"

_COMPILER = ("-O1", "-w", "-DSAFETY", "-DCOLLAPSE", "-DMEMLIM=3000", "-DVECTORSZ=2048")
"""Of the checker that Spin writes: safety alone, states kept compressed but whole, at most 3 GB of them."""

_DEPTH = "-m500000"
_NOT_INSTALLED = "to check the models, install them (Debian: apt-get install spin gcc)"


@dataclass(frozen=True, slots=True)
class Check:
    """One exploration of one model. defines: its bounds, and the mutant that is put in; finds: what is violated then."""

    spec: str
    defines: tuple[str, ...] = ()
    mutant: str = ""
    finds: str = ""

    @property
    def name(self) -> str:
        """As it is printed and selected."""
        return " ".join((self.spec, *self.defines, *([self.mutant] if self.mutant else [])))


@dataclass(frozen=True, slots=True)
class Found:
    """What Spin has found. violation: the text of the assertion, empty where there is none; is_whole: every state was seen; seconds: of processor time."""

    states: int
    depth: int
    seconds: float = 0.0
    violation: str = ""
    is_whole: bool = True
    output: str = field(default="", repr=False)


LEDGER = {
    "BUG_BURY_WITHOUT_LOOKING": ("TROUBLES=1", ""),
    "BUG_CANCEL_OVER_RUNNING": ("TROUBLES=0", "confirmed"),
    "BUG_CLAIM_ANY_ATTEMPT": ("TROUBLES=1", "last_failed"),
    "BUG_CLAIM_WITHOUT_CONDITION": ("TROUBLES=1", ""),
    "BUG_DEAD_LETTERS_DROP_LEASED": ("TROUBLES=2", "accepted"),
    "BUG_DEFER_BY_ACKNOWLEDGING": ("TROUBLES=1", "accepted"),
    "BUG_LEASE_WITHOUT_SKEW": ("TROUBLES=1", "call_left"),
    "BUG_LETTER_FIRST": ("TROUBLES=1", "letters"),
    "BUG_LOWER_ATTEMPT_RESCUES": ("TROUBLES=1", "last_called"),
    "BUG_NO_OWNER_TOKEN": ("TROUBLES=1", "owner"),
    "BUG_PARK_AFTER_CLAIM": ("TROUBLES=1", "accepted"),
    "BUG_RELEASE_AFTER_CALL": ("TROUBLES=1", "worked"),
    "BUG_RESCUE_IGNORES_CANCEL": ("TROUBLES=1", "after"),
    "BUG_RESCUE_KEEPS_FENCE": ("TROUBLES=1", "last_fence"),
    "BUG_RETRY_IGNORES_CANCEL": ("TROUBLES=1", "after"),
    "BUG_ROW_EXPIRES_BEFORE_MESSAGES": ("TROUBLES=1", ""),
    "BUG_SETTLE_BEFORE_PLACE": ("TROUBLES=1", "accepted"),
    "BUG_SETTLE_WITHOUT_FENCE": ("TROUBLES=1", ""),
}
"""Of each mutant: the bounds that are enough to find it, and what the violated assertion is about; empty where several may be
the first."""

BATCH_ENDS = {
    "BUG_ACKNOWLEDGE_BEFORE_COMMIT": ("TROUBLES=1", "visible"),
    "BUG_ALONE_WITHOUT_FENCE": ("TROUBLES=1", ""),
    "BUG_BATCH_ROW_EXPIRES_FIRST": ("TROUBLES=0", "won"),
    "BUG_CANCEL_IGNORES_POINTER": ("TROUBLES=0", "was"),
    "BUG_EXPIRED_ROW_IS_READ": ("TROUBLES=0", ""),
    "BUG_GROUP_WITHOUT_CONDITION": ("TROUBLES=1", ""),
    "BUG_OTHERS_END_WITHOUT_SEAL": ("TROUBLES=0", ""),
    "BUG_READER_IGNORES_POINTER": ("TROUBLES=0", "was"),
    "BUG_REFUSED_GROUP_IS_DONE": ("TROUBLES=1", "visible"),
    "BUG_RELEASE_AFTER_UNKNOWN": ("TROUBLES=1", ""),
    "BUG_SETTLE_AFTER_UNKNOWN": ("TROUBLES=1", ""),
    "BUG_TAKE_BEFORE_SEAL": ("TROUBLES=1", ""),
    "BUG_TAKE_WITHOUT_SEAL": ("TROUBLES=1", ""),
}
"""As of `LEDGER`."""

FAR_RING = {
    "BUG_CHECKPOINT_BEFORE_SEND": ("TROUBLES=1", "sent"),
    "BUG_CHECKPOINT_WITHOUT_EPOCH": ("TROUBLES=0", "back"),
    "BUG_FIRST_TICK_BEGINS_NOW": ("TROUBLES=0", "sent"),
    "BUG_GUARD_WITHOUT_SKEW": ("TROUBLES=0", "sent"),
    "BUG_NO_LOOK_BACK": ("TROUBLES=1", "sent"),
}
"""As of `LEDGER`."""

SCHEDULE_CHAIN = {
    "BUG_ADVANCE_WITHOUT_LINK": (("TROUBLES=0", "CHANGES=0"), "carried"),
    "BUG_ADVANCE_WITHOUT_VERSION": (("TROUBLES=0", "CHANGES=1"), ""),
    "BUG_ANY_ALARM_CONTINUES": (("TROUBLES=0", "CHANGES=0"), "carried"),
    "BUG_CHANGE_BEFORE_CAUGHT_UP": (("TROUBLES=0", "CHANGES=1"), "ledger"),
    "BUG_FORGET_CUTS": (("TROUBLES=0", "CHANGES=1"), "ledger"),
    "BUG_ID_HAS_VERSION": (("TROUBLES=0", "CHANGES=1"), "runs"),
    "BUG_LATE_ALARM_IS_SAFE": (("TROUBLES=0", "CHANGES=0"), "troubles"),
    "BUG_LOSER_DROPS": (("TROUBLES=1", "CHANGES=0"), "troubles"),
    "BUG_NEAR_SUCCESSOR_ENDS": (("TROUBLES=0", "CHANGES=0"), "is_lost"),
    "BUG_NO_SWEEP": (("TROUBLES=1", "CHANGES=0"), "cursor"),
    "BUG_RECORD_BEFORE_ALARM": (("TROUBLES=0", "CHANGES=0"), "is_lost"),
    "BUG_RECORD_BEFORE_PLACE": (("TROUBLES=1", "CHANGES=0"), "troubles"),
    "BUG_RUN_WHATEVER_COMES": (("TROUBLES=0", "CHANGES=1"), "acknowledged"),
    "BUG_RUN_WHAT_IS_STALE": (("TROUBLES=0", "CHANGES=1"), ""),
    "BUG_STALE_FIRE_IS_SETTLED": (("TROUBLES=0", "CHANGES=1"), "ledger"),
    "BUG_SWEEP_KNOWS_ALARMS_ONLY": (("TROUBLES=1", "CHANGES=0"), "cursor"),
    "BUG_TRUST_OLD_DEFINITION": (("TROUBLES=0", "CHANGES=1"), "troubles"),
    "BUG_VERSION_NOT_IN_KEY": (("TROUBLES=0", "CHANGES=1"), ""),
    "BUG_VERSION_STAYS": (("TROUBLES=0", "CHANGES=1"), ""),
}
"""As of `LEDGER`, with all bounds of each."""

CHECKS: Sequence[Check] = (
    Check("ledger", ("TROUBLES=2",)),
    *(Check("ledger", (bounds,), mutant, finds) for mutant, (bounds, finds) in LEDGER.items()),
    Check("batch_ends", ("TROUBLES=1",)),
    *(Check("batch_ends", (bounds,), mutant, finds) for mutant, (bounds, finds) in BATCH_ENDS.items()),
    Check("far_ring", ("TROUBLES=2",)),
    *(Check("far_ring", (bounds,), mutant, finds) for mutant, (bounds, finds) in FAR_RING.items()),
    Check("schedule_chain", ("TROUBLES=0", "CHANGES=1")),
    Check("schedule_chain", ("TROUBLES=1", "CHANGES=0")),
    *(Check("schedule_chain", bounds, mutant, finds) for mutant, (bounds, finds) in SCHEDULE_CHAIN.items()),
)


def missing() -> str:
    """What is not installed here that the models need; empty where all is."""
    return " and ".join(tool for tool in ("spin", "gcc") if shutil.which(tool) is None)


def explore(check: Check) -> Found:
    """Explore a model. Raises RuntimeError where Spin or the compiler refuses it."""
    defines = [f"-D{each}" for each in (*check.defines, *([check.mutant] if check.mutant else []))]
    with tempfile.TemporaryDirectory(prefix="tickwheel-model-") as folder:
        _run(["spin", "-a", *defines, str(SPECS / f"{check.spec}.pml")], folder)
        _run(["gcc", *_COMPILER, "-o", "pan", "pan.c"], folder)
        # -E: processes that wait for ever are no fault; each model judges by itself what may be left when nothing moves.
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        output = subprocess.run(["./pan", _DEPTH, "-E"], cwd=folder, capture_output=True, text=True, check=False).stdout
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return replace(read(output), seconds=after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)


def read(output: str) -> Found:
    """What a checker has printed. Raises RuntimeError for what is no result of one."""
    states = re.search(r"^\s*([\d.e+]+) states, stored", output, re.MULTILINE)
    depth = re.search(r"depth reached (\d+), errors: (\d+)", output)
    if states is None or depth is None:
        raise RuntimeError(f"Spin has come to no result:\n{output}")
    violated = re.search(r"assertion violated (.*) \(at depth", output)
    is_whole = all(
        sign not in output for sign in ("max search depth too small", "Search not completed", "out of memory")
    )
    return Found(
        states=int(float(states[1])),
        depth=int(depth[1]),
        violation=violated[1].strip() if violated else ("an error" if depth[2] != "0" else ""),
        is_whole=is_whole or violated is not None,
        output=output,
    )


def fault_of(check: Check, found: Found) -> str:
    """Why a result is not the one that is expected; empty where it is."""
    if check.mutant:
        if not found.violation:
            return "this mutant was not found"
        return "" if check.finds in found.violation else f"found by another rule than the one about {check.finds}"
    if found.violation:
        return f"violated: {found.violation}"
    return "" if found.is_whole else "not all states were seen"


def main(arguments: Sequence[str]) -> int:
    """Check the models whose names begin with one of the arguments, or all."""
    chosen = [check for check in CHECKS if not arguments or any(check.name.startswith(each) for each in arguments)]
    if "--list" in arguments:
        print("\n".join(check.name for check in CHECKS))
        return 0
    if tools := missing():
        print(f"THE MODELS WERE NOT CHECKED: {tools} is not installed; {_NOT_INSTALLED}")
        return 0
    faults = 0
    for check in chosen:
        found = explore(check)
        fault = fault_of(check, found)
        faults += bool(fault)
        verdict = fault.upper() if fault else (f"found: {found.violation}" if check.mutant else "holds")
        print(
            f"{check.name}: {found.states:,} states, depth {found.depth:,}, {found.seconds:.1f} s: {verdict}",
            flush=True,
        )
    return 1 if faults else 0


def _run(command: Sequence[str], folder: str) -> None:
    answer = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    if answer.returncode:
        raise RuntimeError(f"{command[0]}: {answer.stdout}{answer.stderr}")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
