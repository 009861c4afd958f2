"""`tickwheel.handlers`: what users register, as a worker calls it."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, fields
from datetime import date
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel, Field
from typing_extensions import TypedDict

from functions.adapters.targets import handlers as adapter
from functions.domain.targets.handler_names import BUILT_IN
from functions.ports import targets as port
from functions.ports.targets import Failed, Pending, Succeeded
from functions.runtime.handler_files import HandlerFiles
from functions.worker.user_handlers import RegisteredHandlers, as_registered
from tests.unit.calling import INVOCATION, NO_ANSWER, SHORT, a_caller, call, failure_of
from tickwheel import handlers as users
from tickwheel.handlers import HANDLERS, InvalidPayload, Invocation, PermanentFailure, handler


@pytest.fixture(autouse=True)
def registered(monkeypatch: pytest.MonkeyPatch) -> Mapping[str, users.Handler]:
    """What a test registers is gone afterwards."""
    empty: dict[str, users.Handler] = {}
    monkeypatch.setattr(users, "_handlers", empty)
    return empty


class Line(BaseModel):
    sku: str
    count: int = Field(gt=0)


class Order(BaseModel):
    number: int
    due: date
    lines: list[Line] = []


class Reminder(TypedDict):
    to: str
    times: int


@dataclass
class Point:
    x: int
    y: int


def run(registered: Mapping[str, users.Handler], payload: Any = None, **options: Any) -> port.Outcome:
    """The one handler that is registered, called as a worker calls it."""
    ((name, made),) = registered.items()
    text = None if payload is None else json.dumps(payload)
    return call(f"handler:{name}", text, handlers={name: as_registered(made, Invocation)}, **options)


def test_a_function_is_registered_under_the_name_that_it_is_given_or_else_its_own(
    registered: Mapping[str, users.Handler],
):
    @handler("invoice.send")
    def one(payload: Any, invocation: Invocation) -> Any: ...

    @handler
    def two(payload: Any) -> Any: ...

    @handler()
    def three() -> Any: ...

    assert list(registered) == ["invoice.send", "two", "three"]
    assert registered["two"].function is two
    assert two(1) is None, "a function stays as it is, to be called in tests"


def test_a_handler_is_given_as_much_as_it_takes(registered: Mapping[str, users.Handler]):
    seen: list[tuple[Any, ...]] = []

    @handler
    def both(payload: Any, invocation: Invocation) -> None:
        seen.append((payload, invocation))

    @handler
    def payload_alone(payload: Any) -> None:
        seen.append((payload,))

    @handler
    def neither() -> None:
        seen.append(())

    @handler
    def any_number(*given: Any) -> None:
        seen.append(given)

    for name, made in registered.items():
        call(f"handler:{name}", "7", handlers={name: as_registered(made, Invocation)})

    invocation = seen[0][1]
    assert [given[:1] for given in seen] == [(7,), (7,), (), (7,)]
    assert isinstance(invocation, Invocation)
    assert seen[3][1] == invocation
    assert {each.name: getattr(invocation, each.name) for each in fields(Invocation)} == {
        each.name: getattr(INVOCATION, each.name) for each in fields(port.Invocation)
    }


def test_a_function_that_needs_more_than_a_payload_and_an_invocation_is_refused_with_what_it_needs():
    with pytest.raises(TypeError, match=r"handler 'mail' needs server, port: it is called with"):

        @handler("mail")
        def mail(payload: Any, invocation: Invocation, server: str, *, port: int) -> None: ...


@pytest.mark.parametrize("name", ["", "with space", "ü", "a" * 65, "a/b"])
def test_what_no_target_can_name_is_no_name_of_a_handler(name: str):
    with pytest.raises(ValueError, match="a handler cannot be called"):
        handler(name)(lambda payload: payload)


def test_two_functions_of_one_name_are_refused_and_a_module_that_is_loaded_again_is_not(
    registered: Mapping[str, users.Handler],
):
    def define(answer: int) -> Callable[..., Any]:
        def once(payload: Any) -> int:
            return answer

        return handler("once")(once)

    define(1)
    define(2)
    assert run(registered) == Succeeded("2")

    with pytest.raises(ValueError, match=r"two handlers called 'once': .*\.once and .*\.other"):

        @handler("once")
        def other(payload: Any) -> None: ...


def test_a_payload_is_read_as_the_model_that_its_handler_takes(registered: Mapping[str, users.Handler]):
    @handler
    def bill(order: Order) -> Any:
        return {"due": order.due.isoformat(), "count": sum(line.count for line in order.lines)}

    outcome = run(registered, {"number": 7, "due": "2027-01-31", "lines": [{"sku": "a", "count": 2}]})

    assert outcome == Succeeded('{"due": "2027-01-31", "count": 2}')


def test_a_payload_that_is_not_of_that_type_fails_for_good_and_names_the_fields_without_their_values(
    registered: Mapping[str, users.Handler],
):
    called: list[Any] = []

    @handler
    def bill(order: Order) -> None:
        called.append(order)

    outcome = failure_of(
        run(registered, {"due": "2027-01-31", "number": "secret-7", "lines": [{"sku": "a", "count": 0}]})
    )

    assert (outcome.error_class, outcome.is_permanent, outcome.is_its_own) == ("invalid_payload", True, True)
    assert outcome.error.startswith("InvalidPayload: number: Input should be a valid integer")
    assert "lines.0.count: Input should be greater than 0" in outcome.error
    assert "secret-7" not in outcome.error
    assert called == []


def test_of_many_wrong_fields_some_are_named(registered: Mapping[str, users.Handler]):
    @handler
    def many(payload: list[int]) -> None: ...

    error = failure_of(run(registered, ["x"] * 500)).error

    assert error.endswith("…: 490 more")
    assert len(error) < 1_500


@pytest.mark.parametrize(
    ("annotation", "good", "bad", "field"),
    [
        (Reminder, {"to": "a", "times": 1}, {"to": "a"}, "times"),
        (Point, {"x": 1, "y": 2}, {"x": 1, "y": "z"}, "y"),
        (list[Line], [{"sku": "a", "count": 1}], [{"sku": "a"}], "0.count"),
        (dict[str, int], {"a": 1}, {"a": "z"}, "a"),
        (int, 3, "three", "payload"),
        (Order | None, None, {"number": 1}, "due"),
    ],
)
def test_any_type_that_pydantic_knows_is_checked(
    annotation: Any, good: Any, bad: Any, field: str, registered: Mapping[str, users.Handler]
):
    def typed(payload: Any) -> str:
        return type(payload).__name__

    typed.__annotations__["payload"] = annotation
    handler(typed)

    assert isinstance(run(registered, good), Succeeded)
    assert f"InvalidPayload: {field}: " in failure_of(run(registered, bad)).error


@pytest.mark.parametrize("annotation", [Any, object])
def test_a_payload_of_no_type_in_particular_is_handed_on_as_it_is(
    annotation: Any, registered: Mapping[str, users.Handler]
):
    def plain(payload: Any) -> Any:
        return payload

    plain.__annotations__["payload"] = annotation
    handler(plain)

    assert run(registered, {"a": ["7", None]}) == Succeeded('{"a": ["7", null]}')


def test_a_model_that_a_handler_returns_is_its_result(registered: Mapping[str, users.Handler]):
    @handler
    def bill() -> Order:
        return Order(number=1, due=date(2027, 1, 31))

    assert run(registered) == Succeeded('{"number": 1, "due": "2027-01-31", "lines": []}')


def test_a_coroutine_runs_on_an_event_loop_of_its_own(registered: Mapping[str, users.Handler]):
    loops: list[Any] = []

    @handler
    async def gathered(order: Order, invocation: Invocation) -> Any:
        loops.append(asyncio.get_running_loop())
        first, second = await asyncio.gather(asyncio.sleep(0.01, 1), asyncio.to_thread(lambda: 2))
        return {"sum": first + second, "key": invocation.idempotency_key}

    payload = {"number": 7, "due": "2027-01-31"}
    expected = Succeeded(json.dumps({"sum": 3, "key": INVOCATION.idempotency_key}))
    assert run(registered, payload) == run(registered, payload) == expected
    assert loops[0] is not loops[1]
    assert loops[0].is_closed()
    assert failure_of(run(registered, {"number": 7})).error_class == "invalid_payload"


def test_a_coroutine_that_raises_has_failed_with_what_it_raised(registered: Mapping[str, users.Handler]):
    @handler
    async def failing() -> None:
        await asyncio.sleep(0)
        raise LookupError("no such invoice")

    assert run(registered) == Failed("LookupError: no such invoice", error_class="handler_error")


def test_a_coroutine_may_be_completed_later(registered: Mapping[str, users.Handler]):
    @handler
    async def later() -> Any:
        return {"statusCode": 202}

    assert run(registered) == Pending()


def test_a_coroutine_that_overruns_its_timeout_has_failed_and_is_cancelled(registered: Mapping[str, users.Handler]):
    cancelled = threading.Event()

    @handler
    async def slow() -> None:
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            cancelled.set()
            raise

    assert run(registered, timeout=SHORT) == NO_ANSWER
    assert cancelled.wait(10)


def test_a_coroutine_that_never_waits_is_left_at_its_timeout_all_the_same(registered: Mapping[str, users.Handler]):
    release = threading.Event()

    @handler
    async def blocking() -> None:
        release.wait(60)

    began_at = time.monotonic()
    outcome = run(registered, timeout=SHORT)
    took = time.monotonic() - began_at
    release.set()

    assert outcome == NO_ANSWER
    assert took < 30


def test_a_permanent_failure_is_not_retried_and_may_have_a_class_of_its_own(
    registered: Mapping[str, users.Handler],
):
    class CardExpired(PermanentFailure):
        tickwheel_error_class = "card_expired"

    @handler
    def charge(kind: str) -> None:
        raise CardExpired("03/26") if kind == "own" else PermanentFailure("no such account")

    assert run(registered, "plain") == Failed(
        "PermanentFailure: no such account", error_class="handler_refused", is_permanent=True, is_its_own=True
    )
    assert failure_of(run(registered, "own")).error_class == "card_expired"


def test_a_class_of_error_that_is_no_word_is_none(registered: Mapping[str, users.Handler]):
    class OddError(PermanentFailure):
        tickwheel_error_class = "x" * 5_000

    @handler
    def odd() -> None:
        raise OddError

    outcome = failure_of(run(registered))
    assert (outcome.error_class, outcome.is_permanent) == ("handler_error", False)


def test_the_worker_and_the_module_of_the_users_mean_the_same_by_what_they_share():
    assert hasattr(PermanentFailure, adapter.ERROR_CLASS)
    assert hasattr(adapter.RefusedError, adapter.ERROR_CLASS)
    assert InvalidPayload({}).tickwheel_error_class == "invalid_payload"
    assert {each.name for each in fields(Invocation)} == {each.name for each in fields(port.Invocation)}


MODULES = {
    "good": 'from tickwheel.handlers import handler\n\n\n@handler("good")\ndef good(payload):\n    return payload\n',
    "broken": 'from tickwheel.handlers import handler\nimport no_such_library\n\n\n@handler("broken")\ndef broken(): ...\n',
    "ending": "import sys\nsys.exit(3)\n",
}


@pytest.fixture
def path(monkeypatch: pytest.MonkeyPatch, registered: dict[str, users.Handler]) -> Iterator[None]:
    """What a worker loads is gone afterwards; the module that it registers by is the one of this process."""
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.setattr(users, "HANDLERS", registered)
    yield
    for name in [name for name in sys.modules if name.partition(".")[0] == "layered_jobs"]:
        del sys.modules[name]


def fill(site: Path, modules: Mapping[str, str]) -> None:
    """As `infra/handlers.py` does."""
    package = site / "layered_jobs"
    package.mkdir(parents=True)
    for name, source in modules.items():
        (package / f"{name}.py").write_text(source)
    names = {name: f"layered_jobs.{name}" for name in modules}
    names |= {"absent": "layered_jobs.good", "echo": "functions.worker.handlers.echo"}
    (site / "handlers.json").write_text(json.dumps(names))


@pytest.mark.usefixtures("path")
def test_a_worker_loads_the_modules_of_its_layer_and_one_that_is_broken_fails_for_itself_alone(tmp_path: Path):
    layer = tmp_path / "python" / "tickwheel_handlers"
    fill(layer, MODULES)
    notes: dict[str, BaseException] = {}

    files = HandlerFiles([str(tmp_path / "python")])
    loaded = RegisteredHandlers({"own": lambda *_: "own"}, files, note=notes.__setitem__)

    assert set(loaded) == {"own", "good", "broken", "ending"}
    assert len(loaded) == 4
    caller = a_caller(loaded)
    assert call("handler:own", caller=caller) == Succeeded('"own"')
    assert call("handler:good", "1", caller=caller) == Succeeded("1")
    broken = failure_of(call("handler:broken", "1", caller=caller))
    assert broken.error.startswith(
        "NotLoadedError: its module layered_jobs.broken could not be imported: ModuleNotFound"
    )
    assert (broken.error_class, broken.is_permanent) == ("handler_error", False), "the next deployment may load it"
    assert failure_of(call("handler:ending", "1", caller=caller)).error.endswith("SystemExit: 3")
    assert failure_of(call("handler:absent", "1", caller=caller)).error_class == "handler_missing"
    assert {module: type(error) for module, error in notes.items()} == {
        "layered_jobs.broken": ModuleNotFoundError,
        "layered_jobs.ending": SystemExit,
    }
    assert sys.path[-1] == str(layer), "nothing of it takes the place of what the functions import"
    names = files.names()
    assert all(name in names for name in ("broken", *BUILT_IN))
    assert "goo" not in names


def test_without_a_layer_there_are_the_handlers_of_every_stage():
    files = HandlerFiles(["/nowhere"])

    assert not files.is_live
    assert all(name in files.names() for name in BUILT_IN)
    assert "own" in RegisteredHandlers({"own": print}, files, note=lambda *_: pytest.fail("nothing is to be noted"))


@pytest.mark.usefixtures("path")
def test_a_live_worker_has_new_code_at_its_next_look_and_what_is_under_way_goes_on_with_the_old(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """The layer of `tickwheel dev`: the handlers are elsewhere, and change."""
    layer, current = tmp_path / "python" / "tickwheel_handlers", tmp_path / "current"
    layer.mkdir(parents=True)
    (layer / "live").write_text(str(current))
    files = HandlerFiles([str(tmp_path / "python")])
    assert files.is_live
    handlers = RegisteredHandlers({}, files, note=lambda *_: pytest.fail("all can be imported"))
    assert (list(handlers), "good" in files.names()) == ([], False), "nothing is there yet"

    def give(version: int, modules: Mapping[str, str]) -> Path:
        site = tmp_path / f"v{version}"
        fill(site, modules)
        (site / "tickwheel").mkdir()
        (site / "tickwheel" / "__init__.py").touch()
        (site / "tickwheel" / "handlers.py").write_text(Path(users.__file__).read_text())
        current.write_text(f"{site}\n")
        handlers.refresh()
        return site

    source = 'from tickwheel.handlers import handler\n\n\n@handler("good")\ndef good(payload):\n    return {}\n'
    first = give(1, {"good": source.format(1)})
    assert "good" in files.names()
    before = handlers["good"]
    monkeypatch.delitem(sys.modules, "tickwheel.handlers")
    give(2, {"good": source.format(2).replace('"good"', '"moved"'), "moved": ""})

    caller = a_caller(handlers)
    assert before(None, INVOCATION) == 1
    assert set(handlers) == {"moved"}
    assert str(first) not in sys.path
    give(3, {"good": source.format(3)})
    assert call("handler:good", caller=caller) == Succeeded("3")
    current.unlink()
    handlers.refresh()
    assert list(handlers) == []


def test_the_module_of_the_users_imports_nothing_but_the_standard_library(tmp_path: Path):
    """In Lambda nothing else of `tickwheel` is there."""
    (tmp_path / "tickwheel").mkdir()
    (tmp_path / "tickwheel" / "__init__.py").touch()
    (tmp_path / "tickwheel" / "handlers.py").write_text(Path(users.__file__).read_text())
    program = (
        f"import sys; sys.path.insert(0, {str(tmp_path)!r}); import tickwheel.handlers as h; "
        "print(h.HANDLERS, [m for m in sys.modules if m in ('pydantic', 'httpx', 'typer', 'rich', 'botocore')])"
    )

    said = subprocess.run([sys.executable, "-I", "-c", program], capture_output=True, text=True, check=True)

    assert said.stdout.strip() == "{} []"


def test_a_registered_function_is_seen_by_all_who_look(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.undo()
    before = set(HANDLERS)

    @handler("seen-by-all")
    def seen() -> None: ...

    assert set(HANDLERS) - before == {"seen-by-all"}
    users._handlers.pop("seen-by-all")
