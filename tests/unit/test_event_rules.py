"""What an event becomes: the template of a rule, filled in as EventBridge does, in the intake of the tenant's queue."""

import json
from typing import Any

import pytest

from infra.event_templates import EventRule
from testkit.builders import NOON
from testkit.event_bridge import transformed
from tests.unit.test_message_intake import Sending

RULE = EventRule(
    tenant="acme",
    pattern={"source": ["shop"]},
    paths={"order": "$.detail.order", "note": "$.detail.note", "due": "$.detail.due", "first": "$.detail.items[0].sku"},
    job={
        "target": "handler:echo",
        "payload": {"order": "<order>", "text": "of <first>: <note>", "event": "<aws.events.event.json>"},
        "run_at": "<due>",
    },
)


def an_event(**detail: Any) -> dict[str, Any]:
    order = {"order": {"id": 7}, "note": "gift", "due": "2026-07-01T12:30:00Z", "items": [{"sku": "a-1"}]}
    return {"id": "e-1", "source": "shop", "detail": {**order, **detail}}


def send(sending: Sending, event: dict[str, Any], rule: EventRule = RULE) -> None:
    sending.send(transformed(rule.template("orders"), rule.input_paths(), event))


@pytest.fixture
def sending() -> Sending:
    return Sending()


def test_values_of_an_event_come_in_with_their_types(sending: Sending) -> None:
    event = an_event(due=NOON.replace(hour=13).isoformat())
    send(sending, event)

    assert sending.take() == 1

    (job,) = sending.placed()
    assert json.loads(job.payload.text or "") == {"order": {"id": 7}, "text": "of a-1: gift", "event": event}
    assert (job.tenant, job.scheduled_at) == ("acme", NOON.replace(hour=13))


def test_an_event_that_is_delivered_twice_is_one_job_and_another_event_is_another(sending: Sending) -> None:
    due = NOON.replace(hour=13).isoformat()
    for event_id in ("e-1", "e-1", "e-2"):
        send(sending, {**an_event(due=due), "id": event_id})

    assert sending.take() == 3

    assert len(sending.jobs()) == 2
    assert sending.queues.refused == []


@pytest.mark.parametrize(("left_out", "code"), [("order", "invalid_input"), ("due", "invalid_input")])
def test_an_event_without_a_value_that_the_job_needs_is_refused_where_the_tenant_finds_it(
    sending: Sending, left_out: str, code: str
) -> None:
    event = an_event()
    del event["detail"][left_out]
    send(sending, event)

    assert sending.take() == 1

    assert sending.problems() == [[code]]
    assert sending.jobs() == []


def test_a_value_that_breaks_out_of_its_text_changes_nothing_that_the_rule_says(sending: Sending) -> None:
    rule = EventRule(
        tenant="acme",
        pattern={"source": ["shop"]},
        paths={"note": "$.detail.note"},
        job={"target": "handler:echo", "payload": "<note>", "priority": "low"},
    )
    send(sending, an_event(note='x", "target": "handler:fail", "priority": "critical", "idempotency_key": "y'), rule)
    send(sending, an_event(note='x", "tenant": "globex'), rule)

    assert sending.take() == 2

    (job,) = sending.placed()
    assert (job.target, job.priority.name) == ("handler:echo", "LOW")
    assert sending.problems() == [["forbidden"]]
