"""How the demo reports its progress: a live line on a terminal, elsewhere a line now and then."""

import threading
import time
from collections.abc import Iterable
from types import TracebackType
from typing import Self

from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TaskID, TextColumn, TimeElapsedColumn
from rich.table import Column
from rich.text import Text

_BEAT_SECONDS = 12.0
_TITLE_WIDTH = 21
_INDENT = Text("    ")


class Narrator:
    """Tells of one step after the other; a context manager, which marks the step that an error ends.

    Where nobody can watch a line change (a file, CI), a step that takes long says every `beat_seconds` where it is.
    """

    def __init__(self, console: Console, *, beat_seconds: float = _BEAT_SECONDS) -> None:
        self._console = console
        self._beat_seconds = beat_seconds
        self._step: _Step | None = None
        self._ended = threading.Event()

    def __enter__(self) -> Self:
        if not self._console.is_terminal:
            threading.Thread(target=self._beat, name="narrator", daemon=True).start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._ended.set()
        if kind is not None:
            self._close("[red]✘[/red]", "interrupted" if issubclass(kind, KeyboardInterrupt) else "failed")

    @property
    def width(self) -> int:
        """How long a line of what is shown may be."""
        return self._console.width - len(_INDENT)

    def begin(self, title: str, *, total: int | None = None) -> None:
        """A step begins, and with it the one before has ended well. total: what `tell` counts up to."""
        self.end()
        self._step = _Step(self._console, title, total=total)

    def tell(self, detail: str, *, done: int | None = None) -> None:
        """Where the step is now."""
        if self._step is not None:
            self._step.tell(detail, done=done)

    def end(self, result: str = "") -> None:
        """The step has ended well; no error when there is none."""
        self._close("[green]✔[/green]", result)

    def show(self, lines: Iterable[Text]) -> None:
        """Lines to look at, best no longer than `width`; the step before has ended well."""
        self.end()
        for line in lines:
            self._console.print(_INDENT + line, highlight=False, soft_wrap=True)

    def _close(self, mark: str, result: str) -> None:
        step, self._step = self._step, None
        if step is not None:
            step.close(mark, result)

    def _beat(self) -> None:
        while not self._ended.wait(self._beat_seconds):
            if (step := self._step) is not None:
                step.beat(at_least_seconds=self._beat_seconds / 2)


class _Step:
    """One step on the console."""

    def __init__(self, console: Console, title: str, *, total: int | None) -> None:
        self._console = console
        self._title = title
        self._total = total
        self._done = 0
        self._detail = ""
        self._began = time.monotonic()
        self._progress: Progress | None = None
        self._task = TaskID(0)
        if console.is_terminal:
            count = MofNCompleteColumn(table_column=Column(no_wrap=True))
            self._progress = Progress(
                SpinnerColumn(),
                TextColumn("{task.description}", table_column=Column(no_wrap=True)),
                *((BarColumn(bar_width=24), count) if total is not None else ()),  # the bar gives way to the words
                TextColumn("{task.fields[detail]}", style="dim", table_column=Column(no_wrap=True)),
                TimeElapsedColumn(table_column=Column(no_wrap=True)),
                console=console,
                transient=True,
            )
            self._task = self._progress.add_task(self._padded, total=total, detail="")
            self._progress.start()

    def tell(self, detail: str, *, done: int | None) -> None:
        self._detail = detail
        self._done = self._done if done is None else done
        if self._progress is not None:
            self._progress.update(self._task, detail=escape(detail), completed=self._done)

    def beat(self, *, at_least_seconds: float) -> None:
        if self._seconds >= at_least_seconds:
            count = f"{self._done:,} of {self._total:,}" if self._total is not None else ""
            said = ", ".join(filter(None, (count, self._detail)))
            self._print(f"  {self._padded}  {self._seconds:5.1f} s  {escape(said)}")

    def close(self, mark: str, result: str) -> None:
        if self._progress is not None:
            self._progress.stop()
        self._print(f"{mark} {self._padded}  [dim]{self._seconds:5.1f} s[/dim]  {escape(result)}")

    @property
    def _padded(self) -> str:
        return self._title.ljust(_TITLE_WIDTH)

    @property
    def _seconds(self) -> float:
        return time.monotonic() - self._began

    def _print(self, text: str) -> None:
        self._console.print(text.rstrip(), highlight=False, soft_wrap=True)
