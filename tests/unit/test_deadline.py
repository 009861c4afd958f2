import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

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
