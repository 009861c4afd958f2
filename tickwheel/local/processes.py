"""Processes of ours: to start, to recognise and to end, with everything they started."""

import contextlib
import os
import signal
import subprocess
import time
from abc import ABC, abstractmethod
from pathlib import Path
from types import TracebackType
from typing import Self
from uuid import uuid4

REMOVED = "removed-"
"""How the names of folders begin that are being removed."""

_REMOVE = ("rm", "-rf", "--")


class Started(ABC):
    """Something that a `with` starts, and stops at its end."""

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    @abstractmethod
    def start(self) -> None:
        """Returns when it answers."""

    @abstractmethod
    def stop(self) -> None:
        """No error when it is not running."""


def group_exists(group: int) -> bool:
    """Whether any process of the group is left; a zombie that nobody has collected yet counts as gone."""
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    with contextlib.suppress(ChildProcessError):
        os.waitpid(group, os.WNOHANG)
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return False
    return True


def end_group(group: int, *, grace_seconds: float, kill_seconds: float = 5.0) -> None:
    """Asks every process of the group to end, waits, and kills what is left. No error when it is already gone.

    kill_seconds: how long it waits for what was killed, which a busy machine takes a while to clear away.
    """
    for kind, wait_seconds in ((signal.SIGTERM, grace_seconds), (signal.SIGKILL, kill_seconds)):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(group, kind)
        until = time.monotonic() + wait_seconds
        while group_exists(group):
            if time.monotonic() > until:
                break
            time.sleep(0.05)
        else:
            return


def remove(folder: Path, *, wait_seconds: float) -> None:
    """Takes a folder from its place at once, and removes it: what takes longer is left to a process that goes on by itself.

    No error when it is not there.
    """
    aside = folder if folder.name.startswith(REMOVED) else folder.with_name(f"{REMOVED}{uuid4().hex}")
    try:
        folder.rename(aside)
    except FileNotFoundError:
        return
    process = subprocess.Popen(  # noqa: S603
        [*_REMOVE, str(aside)],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,  # it outlives the command, and a Ctrl-C
    )
    try:
        process.wait(timeout=wait_seconds)
    except subprocess.TimeoutExpired:
        process.returncode = 0  # or Popen warns about the process that is left running on purpose


def command_of(pid: int) -> str:
    """The command line of a process, or an empty string when there is none: a process id may be reused."""
    proc = Path("/proc") / str(pid) / "cmdline"
    if Path("/proc/self").exists():
        try:
            return proc.read_bytes().replace(b"\0", b" ").decode(errors="replace").strip()
        except OSError:
            return ""
    listed = subprocess.run(["ps", "-o", "args=", "-p", str(pid)], capture_output=True, text=True, check=False)  # noqa: S603, S607
    return listed.stdout.strip()
