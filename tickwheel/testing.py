"""A scheduler in memory for tests of your own code: the extra `testing` of the package.

    with Scheduler() as scheduler:
        scheduler.client.submit("https://shop.example/remind", tenant="acme", delay=timedelta(days=30))
        (call,) = scheduler.advance(days=31)

With pytest, the fixture `scheduler` is one for each test.
"""

try:  # in the wheel `make dist` writes `tickwheel_engine.` before it
    from testkit.in_memory import Answer, Call, Scheduler, Waiting
except ModuleNotFoundError as error:
    raise ModuleNotFoundError(
        f"{error.name} is not installed: install tickwheel with its extra `testing`", name=error.name
    ) from None

__all__ = ["Answer", "Call", "Scheduler", "Waiting"]
