import gc
import signal
import time
import weakref
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from queue import SimpleQueue
from typing import Any

import pytest

from functions.runtime.deadline import OutOfTime, within


def test_what_takes_too_long_is_ended_wherever_it_is():
    with pytest.raises(OutOfTime), within(0.01):
        time.sleep(60)


def test_it_is_ended_though_it_goes_on_after_every_exception():
    with pytest.raises(OutOfTime), within(0.01), suppress(Exception):
        time.sleep(60)


def test_no_time_is_no_time():
    with pytest.raises(OutOfTime), within(-5):
        time.sleep(60)


def test_what_is_done_in_time_is_not_ended_later():
    with within(0.01):
        pass
    time.sleep(0.02)


def test_a_limit_around_a_limit_goes_on():
    def work() -> None:
        with within(30):
            pass
        time.sleep(60)

    with pytest.raises(OutOfTime), within(0.05):
        work()


def test_a_limit_inside_of_one_that_is_shorter_ends_with_it():
    def work() -> None:
        with suppress(OutOfTime), within(0.02):
            time.sleep(60)
        time.sleep(60)

    with pytest.raises(OutOfTime), within(0.01):
        work()


def test_another_thread_has_no_limit():
    def work() -> str:
        with within(0):
            return "done"

    with ThreadPoolExecutor(1) as pool:
        assert pool.submit(work).result() == "done"


def test_a_finaliser_is_not_ended_and_what_follows_it_is():
    class Held:
        def __del__(self) -> None:
            time.sleep(0.05)
            finalised.append(self)

    def work() -> None:
        Held()
        time.sleep(60)

    finalised: list[object] = []
    with pytest.raises(OutOfTime), within(0.01):
        work()
    assert len(finalised) == 1


def test_a_callback_of_the_collector_is_not_ended_and_what_follows_it_is():
    def slow(*_: object) -> None:
        time.sleep(0.03)
        seen.append(True)

    def work() -> None:
        gc.collect()
        time.sleep(60)

    seen: list[bool] = []
    gc.collect()  # what other tests have left has finalisers, too
    gc.callbacks.append(slow)
    try:
        with pytest.raises(OutOfTime), within(0.01):
            work()
    finally:
        gc.callbacks.remove(slow)
    assert seen == [True, True]  # as it starts, and as it stops


def test_the_end_of_a_forgotten_pool_is_not_ended_and_what_follows_it_is():
    class Slow(SimpleQueue[Any]):
        def put(self, item: Any, block: bool = True, timeout: float | None = None) -> None:
            if item is None:
                time.sleep(0.05)
                woken.append(True)
            super().put(item)

    def work() -> None:
        pools.pop()
        time.sleep(60)

    woken: list[bool] = []
    pools = [ThreadPoolExecutor(1)]
    pools[0]._work_queue = Slow()
    pools[0].submit(time.sleep, 0).result()
    gc.collect()
    with pytest.raises(OutOfTime), within(0.01):
        work()
    assert woken == [True, True]  # the pool wakes its thread, which wakes the next


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_what_python_drops_does_not_take_the_limit_along():
    class Held:
        pass

    def slow(_: object) -> None:
        time.sleep(0.05)

    def work() -> None:
        held = Held()
        watched.append(weakref.ref(held, slow))
        del held
        time.sleep(60)

    watched: list[weakref.ref[Held]] = []
    with pytest.raises(OutOfTime), within(0.01):
        work()
    assert watched[0]() is None


def test_no_timer_is_left_however_the_end_of_the_time_meets_the_end_of_the_work():
    for turn in range(300):
        with suppress(OutOfTime), within(0.001 + turn * 1e-6):
            until = time.monotonic() + 0.001
            while time.monotonic() < until:
                pass
        assert signal.getitimer(signal.ITIMER_REAL)[1] == 0  # one of the test run itself rings once
