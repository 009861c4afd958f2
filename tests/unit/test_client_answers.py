"""How the client makes values of what the scheduler answered."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Annotated, Any

import pytest

from tickwheel.client.answers import Answer, Wire, read_answer
from tickwheel.errors import Unreachable


@dataclass(frozen=True, kw_only=True)
class Part(Answer):
    count: int


@dataclass(frozen=True, kw_only=True)
class Whole(Answer):
    id: str
    at: datetime
    age: Annotated[timedelta, Wire("age_seconds")]
    first: Annotated[tuple[Part, ...], Wire("parts.first")]
    remedy: Annotated[str, Wire("remedy", or_else="would_change_it")]
    limit: float | str
    by_code: Mapping[str, int] = field(default_factory=dict[str, int])
    ended_at: Annotated[datetime | None, Wire("end.at")] = None
    note: str = "none"
    body: Annotated[Mapping[str, Any], Wire("")]


BODY: dict[str, Any] = {
    "id": "w1",
    "at": "2030-01-31T10:00:00+01:00",
    "age_seconds": 1.5,
    "parts": {"first": [{"count": 2}], "count": 9},
    "would_change_it": "nothing",
    "limit": "unlimited",
}


def test_fields_are_read_by_their_names_and_types_wherever_they_stand() -> None:
    whole = Whole.from_json({**BODY, "by_code": {"too_late": 3}, "end": {"at": "2030-01-31T09:00:01Z"}})

    assert whole.at == datetime(2030, 1, 31, 9, tzinfo=UTC)
    assert whole.age == timedelta(seconds=1.5)
    assert whole.first == (Part(count=2),)
    assert whole.by_code == {"too_late": 3}
    assert whole.ended_at == datetime(2030, 1, 31, 9, 0, 1, tzinfo=UTC)
    assert whole.limit == "unlimited"


def test_what_is_not_there_has_its_default_or_its_former_name_and_what_is_new_is_ignored() -> None:
    body = {**BODY, "colour": "green", "end": None}

    whole = Whole.from_json(body)

    assert (whole.note, whole.by_code, whole.ended_at, whole.remedy) == ("none", {}, None, "nothing")
    assert whole.body == body


@pytest.mark.parametrize(
    "changes",
    [{"id": None}, {"at": "yesterday"}, {"age_seconds": None}, {"parts": {"first": 1}}, {"parts": {"first": [{}]}}],
)
def test_an_answer_that_lacks_a_field_or_has_another_type_is_not_understood(changes: dict[str, Any]) -> None:
    body = {name: value for name, value in {**BODY, **changes}.items() if (name, value) != ("id", None)}

    with pytest.raises(Unreachable, match="not understood"):
        read_answer(Whole.from_json, body)
