"""How the shop is tested together with the scheduler: in memory, on time that the test moves on."""

from datetime import UTC, datetime, timedelta

from orders import REMIND_AFTER, remind

from tickwheel.client import NewSchedule
from tickwheel.testing import Answer, Call, Scheduler

REMINDERS = "https://shop.example/hooks/remind"


def test_an_owner_is_reminded_once_after_three_days(scheduler: Scheduler) -> None:
    begun = scheduler.now
    remind(scheduler.client, shop="acme", invoice=7)
    remind(scheduler.client, shop="acme", invoice=7)  # the process died and began anew

    (call,) = scheduler.advance(days=30)

    assert call.payload == {"invoice": 7}
    assert call.at - begun == REMIND_AFTER


def test_a_shop_that_is_down_for_a_minute_is_called_again_with_the_same_key(scheduler: Scheduler) -> None:
    up_at = scheduler.now + REMIND_AFTER + timedelta(minutes=1)

    def shop(call: Call) -> Answer:
        assert call.tenant == "acme"
        return Answer(200 if call.at >= up_at else 503)

    scheduler.answer(REMINDERS, shop)
    remind(scheduler.client, shop="acme", invoice=7)

    calls = scheduler.advance(days=4)

    assert len(calls) > 1
    assert len({call.idempotency_key for call in calls}) == 1
    assert scheduler.waiting() == []


def test_a_report_comes_on_the_first_of_each_month() -> None:
    with Scheduler(now=datetime(2030, 2, 15, tzinfo=UTC)) as scheduler:
        scheduler.client.schedules.put(
            NewSchedule(
                "report",
                tenant="acme",
                cron="0 7 1 * *",
                timezone="Europe/Berlin",
                target="https://shop.example/report",
            )
        )

        calls = scheduler.advance(days=60)

    assert [(call.scheduled_at.month, call.scheduled_at.hour) for call in calls] == [
        (3, 6),
        (4, 5),
    ]  # UTC: the clocks went forward
