"""What blocks a thread, and what is done several at a time: for the client, and for the one that must not block its event loop."""

from collections.abc import Awaitable, Callable, Iterable
from concurrent.futures import ThreadPoolExecutor, as_completed
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
    """The results in the order of the items; `most` at a time, in threads. on_result: called with each as it comes, in this thread."""
    with ThreadPoolExecutor(most, thread_name_prefix="tickwheel") as pool:
        futures = [pool.submit(act, item) for item in items]
        try:
            for future in as_completed(futures):
                if on_result is not None:
                    on_result(future.result())
        except BaseException:
            # Ctrl-C above all: what has not been sent is not sent any more.
            pool.shutdown(wait=False, cancel_futures=True)
            raise
        return [future.result() for future in futures]


async def async_do_all(
    act: Callable[[T], Awaitable[R]],
    items: Iterable[T],
    *,
    most: int,
    on_result: Callable[[R], None] | None = None,
) -> list[R]:
    """As `do_all`, in tasks: where one raises, or this is cancelled, the others are cancelled."""
    from anyio import create_task_group

    results: dict[int, R] = {}
    ahead = iter(enumerate(items))

    async def work() -> None:
        for number, item in ahead:
            results[number] = await act(item)
            if on_result is not None:
                on_result(results[number])

    try:
        async with create_task_group() as tasks:
            for _ in range(most):
                tasks.start_soon(work)
    except BaseExceptionGroup as several:
        raise several.exceptions[0] from None
    return [results[number] for number in sorted(results)]
