"""What blocks a thread, and what is done several at a time: for the client, and for the one that must not block its event loop."""

from collections import deque
from collections.abc import Awaitable, Callable, Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")
R = TypeVar("R")


def off_loop(act: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
    """Calls it: nobody else waits for this thread."""
    return act(*args, **kwargs)


async def async_off_loop(act: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
    """Calls it in a thread. When the task is cancelled, the thread is left to end by itself."""
    from anyio.to_thread import run_sync

    return await run_sync(lambda: act(*args, **kwargs), abandon_on_cancel=True)


def do_all(
    act: Callable[[T], R], items: Iterable[T], *, most: int, on_result: Callable[[R], None] | None = None
) -> list[R]:
    """The results in the order of the items; `most` at a time, in threads.

    The items are read as they are needed, at most one ahead. on_result: called with each result in that order, in this thread.
    """
    results: list[R] = []
    under_way: deque[Future[R]] = deque()

    def settle() -> None:
        results.append(under_way.popleft().result())
        if on_result is not None:
            on_result(results[-1])

    with ThreadPoolExecutor(most, thread_name_prefix="tickwheel") as pool:
        try:
            for item in items:
                under_way.append(pool.submit(act, item))
                if len(under_way) > most:
                    settle()
            while under_way:
                settle()
        except BaseException:
            # Ctrl-C above all: what has not been sent is not sent any more.
            pool.shutdown(wait=False, cancel_futures=True)
            raise
    return results


async def async_do_all(
    act: Callable[[T], Awaitable[R]],
    items: Iterable[T],
    *,
    most: int,
    on_result: Callable[[R], None] | None = None,
) -> list[R]:
    """As `do_all`, in tasks: where one raises, or this is cancelled, the others are cancelled."""
    from anyio import Event, create_task_group

    results: list[R] = []
    under_way: deque[tuple[Event, list[R]]] = deque()

    async def run(item: T, is_done: Event, result: list[R]) -> None:
        result.append(await act(item))
        is_done.set()

    async def settle() -> None:
        is_done, result = under_way.popleft()
        await is_done.wait()
        results.extend(result)
        if on_result is not None:
            on_result(results[-1])

    try:
        async with create_task_group() as tasks:
            for item in items:
                under_way.append((Event(), []))
                tasks.start_soon(run, item, *under_way[-1])
                if len(under_way) >= most:
                    await settle()
            while under_way:
                await settle()
    except BaseExceptionGroup as several:
        raise several.exceptions[0] from None
    return results
