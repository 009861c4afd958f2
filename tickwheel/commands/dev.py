"""The command `tickwheel dev`: handlers that are being written, on the local cloud."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.markup import escape

from tickwheel.commands.engine_modules import Engine
from tickwheel.commands.registry import commands
from tickwheel.commands.terminal import error_console, failing_politely, usage
from tickwheel.local.folder_watch import FolderWatch
from tickwheel.local.installation import find_home
from tickwheel.local.live_handlers import LiveHandlers, Told
from tickwheel.local.settings import AwsSettings
from tickwheel.local.stack import up
from tickwheel.local.state import Running, read_running

_COLOURS = {"succeeded": "green", "held": "yellow", "failed": "red"}
_SETTLING_SECONDS = 0.05


class Session:
    """A user's folder, as it is built for the local cloud again and again. read, engine: what reads and packs handlers.

    place: where it is built; what is built stays there, for runs that are under way have it open.
    """

    def __init__(
        self, folder: Path, live: LiveHandlers, *, read: Callable[[Path], Any], engine: Any, place: Path
    ) -> None:
        self._folder = folder
        self._live = live
        self._read = read
        self._engine = engine
        self._place = place
        self._version = time.time_ns()
        self._libraries: tuple[bytes, Path] | None = None

    def deploy(self) -> list[str]:
        """Replace what runs; the names of the user's handlers. Raises InvalidHandlers where nothing was replaced."""
        found = self._read(self._folder)
        libraries = self._install(found)
        site = self._fresh()
        self._engine.write_code(found, site, libraries=libraries)
        self._live.replace([site, libraries])
        return sorted(found.modules)

    def _install(self, found: Any) -> Path:
        """What the handlers ask for; only where that has changed."""
        wanted = self._folder / self._engine.USER_REQUIREMENTS
        asked = wanted.read_bytes() if wanted.is_file() else b""
        if self._libraries is None or self._libraries[0] != asked:
            site = self._fresh()
            self._engine.HandlersBundler(found, host=True).install(site)
            self._libraries = asked, site
        return self._libraries[1]

    def _fresh(self) -> Path:
        self._version += 1
        site = self._place / f"v{self._version}"
        site.mkdir(parents=True)
        return site


@commands.add()
def dev(
    *,
    handlers: Annotated[Path, typer.Option(help="Folder of the Python package with your handlers.")],
    poll: Annotated[float, typer.Option(min=0.05, help="Seconds between two looks at the folder.")] = 0.3,
) -> None:
    """Run your handlers on the local cloud, replace them when a file changes, and print their runs. Ctrl-C ends it."""
    console = Console()
    with failing_politely(as_json=False), _session(handlers) as (session, live, invalid):
        watch = FolderWatch(handlers)
        _deploy(session, console, invalid)
        try:
            while True:
                for told in live.told():
                    show(told, console)
                if changed := watch.changed():
                    while more := _changed_since(watch):  # an editor is still writing
                        changed += more
                    console.print(
                        f"[bold]{escape(', '.join(sorted(set(changed))[:3]))} changed[/bold]", highlight=False
                    )
                    _deploy(session, console, invalid)
                time.sleep(poll)
        except KeyboardInterrupt:
            console.print("\nThe local cloud goes on with these handlers. Stop it with `tickwheel local down`.")


@contextmanager
def _session(folder: Path) -> Iterator[tuple[Session, LiveHandlers, type[Exception]]]:
    engine, names = Engine(extra="local", needs_node=True).load("infra.handlers", "infra.handler_names")
    try:
        names.read_handlers(folder)
    except names.InvalidHandlers as error:
        usage(str(error))
    running = _running()
    # With the data of the cloud, and gone with it: its functions look there for as long as it runs.
    place = find_home().folder_of(running.port) / "data" / "handlers"
    place.mkdir(parents=True, exist_ok=True)
    live = LiveHandlers(AwsSettings(f"http://127.0.0.1:{running.port}"), current=place / "current")
    session = Session(folder, live, read=names.read_handlers, engine=engine, place=place)
    yield session, live, names.InvalidHandlers


def _changed_since(watch: FolderWatch) -> list[str]:
    time.sleep(_SETTLING_SECONDS)
    return watch.changed()


def _running() -> Running:
    running = read_running(find_home())
    if running is None or running.api_endpoint is None:
        errors = error_console()
        with errors.status("starting the local cloud") as status:
            running = up(progress=lambda line: status.update(escape(line[: max(20, errors.width - 4)])))
    return running


def _deploy(session: Session, console: Console, invalid: type[Exception]) -> None:
    began_at = time.monotonic()
    try:
        names = session.deploy()
    except invalid as error:
        console.print(f"[red]not replaced:[/red] {escape(str(error))}", soft_wrap=True, highlight=False)
        return
    except OSError as error:  # a file that is being written, or gone already: the next look sees it
        console.print(f"[red]not replaced:[/red] {escape(str(error))}", soft_wrap=True, highlight=False)
        return
    took = time.monotonic() - began_at
    listed = ", ".join(f"handler:{name}" for name in names)
    console.print(f"[bold]running[/bold] {escape(listed)}  (replaced in {took:.1f} s)", soft_wrap=True, highlight=False)


def show(told: Told, console: Console) -> None:
    """One line of a run, as a developer reads it."""
    line = _SHOWN.get(told.what)
    if line is not None:
        at = datetime.fromtimestamp(told.at).strftime("%H:%M:%S")  # noqa: DTZ006  as the developer's clock has it
        console.print(f"[dim]{at}[/dim] {line(told)}", soft_wrap=True, highlight=False)


def _ended(told: Told) -> str:
    outcome = str(told.members.get("outcome"))
    took = f"{told.members.get('took_ms', 0) / 1000:.2f} s"
    shown = f"{_named(told)} [{_COLOURS.get(outcome, 'white')}]{outcome}[/] in {took}"
    if outcome == "failed":
        error = f"{told.members.get('error_class')}: {told.members.get('error')}"
        ending = ", for good" if told.members.get("is_permanent") else ""
        shown += f"{ending}  {escape(error)}"
    return shown


def _named(told: Told) -> str:
    return f"{escape(told.job_id)} {escape(str(told.members.get('target', '')))} attempt {told.attempt}"


_SHOWN: dict[str, Callable[[Told], str]] = {
    "began": _named,
    "said": lambda told: f"  [dim]│[/dim] {escape(told.text)}",
    "not_loaded": lambda told: f"[red]not loaded[/red] {escape(told.text)}",
    "ended": _ended,
}
