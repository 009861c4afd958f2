"""A thread that is awake only while somebody gives it steps and waits for it."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Protocol


class Crash(BaseException):
    """The process is dead. Not an Exception: no code may survive it."""


class Whole(Protocol):
    """The process that a lane is a part of."""

    is_dead: bool
    awake: Lane | None


@dataclass
class Lane:
    """One thread of a process. call: the name of the call that it is held at."""

    whole: Whole
    body: Callable[[], None]
    call: str = ""
    is_done: bool = False
    waits_for: Sequence[Lane] = ()
    steps: int = 0
    fault: Exception | None = None
    _thread: threading.Thread | None = None
    _turn: threading.Lock = field(default_factory=threading.Lock)
    _answer: threading.Lock = field(default_factory=threading.Lock)

    @property
    def is_ready(self) -> bool:
        return not self.is_done and all(lane.is_done for lane in self.waits_for)

    def go(self, steps: int) -> None:
        """Let it make so many calls; it is then held at the next one, or done."""
        if self.is_done:
            return
        self.steps = steps
        self.whole.awake = self
        if self._thread is None:
            self._turn.acquire()
            self._answer.acquire()
            self._thread = threading.Thread(target=self._run, daemon=True)
            self._thread.start()
        else:
            self._turn.release()
        self._answer.acquire()
        self.whole.awake = None
        if self.is_done:
            self._thread.join()

    def hold(self, call: str) -> None:
        """Called on its own thread: wait here until there are steps to go."""
        self.call = call
        while (self.steps <= 0 or not self.is_ready) and not self.whole.is_dead:
            self._answer.release()
            self._turn.acquire()
        self.steps -= 1
        self.call = ""

    def forget(self) -> None:
        """A thread that was never started has nothing to unwind."""
        if self._thread is None:
            self.is_done = True

    def _run(self) -> None:
        try:
            self.body()
        except Crash:
            self.whole.is_dead = True
        except Exception as error:  # noqa: BLE001  handed to the thread that waits for this one
            self.fault = error
        finally:
            self.is_done = True
            self._answer.release()
