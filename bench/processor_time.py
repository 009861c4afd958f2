"""Where the processor time of a local stack goes: to its emulator of AWS, to the functions of the scheduler, and to who asks."""

import os
from dataclasses import dataclass
from pathlib import Path

_EMULATOR = "tickwheel.local.gateway"
_TICKS = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessorTime:
    """Seconds of all cores together."""

    emulator: float
    functions: float
    client: float

    def since(self, before: "ProcessorTime") -> "ProcessorTime":
        """What was used from then on. Functions that have ended meanwhile are missing."""
        return ProcessorTime(
            emulator=self.emulator - before.emulator,
            functions=self.functions - before.functions,
            client=self.client - before.client,
        )


def processor_time() -> ProcessorTime:
    """Until now, of this process, of the local stack that it has started, and of the functions of that."""
    own = os.getpid()
    found = {pid: stat for pid in _processes() if (stat := _stat(pid)) is not None}
    emulators = {pid for pid, (parent, _) in found.items() if parent == own and _EMULATOR in _command(pid)}
    return ProcessorTime(
        emulator=sum(found[pid][1] for pid in emulators),
        functions=sum(seconds for parent, seconds in found.values() if parent in emulators),
        client=found[own][1],
    )


def _processes() -> list[int]:
    return [int(each.name) for each in Path("/proc").iterdir() if each.name.isdecimal()]


def _stat(pid: int) -> tuple[int, float] | None:
    """The parent and the seconds of a process; None of one that has ended."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return None
    return int(fields[1]), (int(fields[11]) + int(fields[12])) / _TICKS


def _command(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().decode(errors="replace")
    except OSError:
        return ""
