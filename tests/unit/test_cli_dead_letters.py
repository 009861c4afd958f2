"""The commands about dead letters against a real server: what they send, what they print and how they exit."""

import json
from datetime import UTC, datetime, timedelta
from functools import partial

import pytest

from tests import command_line
from tests.api_server import Answer, ApiServer
from tests.unit.test_client_dead_letters import ID, PATH, dead_letter_json, page_json, part_json
from tickwheel.commands.dead_letters import parse_past

ACME = ["--tenant", "acme"]
NOON = datetime(2027, 3, 1, 12, tzinfo=UTC)
REPLAYED = Answer(
    202, {"id": ID, "job_id": "j1~x", "outcome": "replayed", "attempt": 4, "due_at": "2027-03-01T12:00:00.000Z"}
)
PURGED = Answer(200, {"id": ID, "outcome": "purged"})
GONE = Answer(
    404, {"status": 404, "code": "dead_letter_not_found", "title": "no", "detail": "there is no dead letter x"}
)
MANY_PURGED = Answer(
    200, {"matched": 2, "purged": 2, "failed": [], "examined_until": "2027-03-01T00:00:00Z", "next": None}
)
COUNTED = Answer(200, {**page_json(dead_letter_json()), "matched": 2})


run = partial(command_line.run, "dead-letters", columns=250)


def test_dead_letters_are_listed_with_every_option_of_the_filter() -> None:
    with ApiServer(Answer(200, page_json(dead_letter_json(schedule_id="nightly")))) as server:
        result = run(
            *["list", *ACME, "--since", "2027-03-01T00:00:00Z", "--until", "2027-03-02T00:00:00+01:00"],
            *["--target", "https://example.com", "--error-class", "timeout", "--schedule", "nightly", "--tag", "eu"],
            *["--limit", "7"],
            server=server,
        )

    assert result.exit_code == 0, result.output
    assert server.requests[0].path == (
        "/v1/dead-letters?tenant=acme&since=2027-03-01T00%3A00%3A00Z&until=2027-03-01T23%3A00%3A00Z"
        "&target=https%3A%2F%2Fexample.com&error_class=timeout&schedule=nightly&tag=eu&limit=7"
    )
    for text in ("2027-03-01 12:00:00", "http_500", "HTTP 500", "https://example.com/hook", "nightly", ID):
        assert text in result.stdout


def test_no_more_are_listed_than_are_asked_for() -> None:
    letters = [dead_letter_json(f"d1~{number}") for number in range(3)]
    with ApiServer(Answer(200, page_json(*letters, after="1~2~~x"))) as server:
        result = run("list", *ACME, "--limit", "2", "--json", server=server)

    assert [letter["id"] for letter in json.loads(result.stdout)["dead_letters"]] == ["d1~0", "d1~1"]
    assert len(server.requests) == 1


@pytest.mark.parametrize(
    ("text", "instant"),
    [
        ("2h", NOON - timedelta(hours=2)),
        ("90", NOON - timedelta(seconds=90)),
        ("1d", NOON - timedelta(days=1)),
        ("2027-02-28T00:00:00+01:00", datetime(2027, 2, 27, 23, tzinfo=UTC)),
    ],
)
def test_a_time_is_read_as_it_is_or_as_how_long_ago(text: str, instant: datetime) -> None:
    assert parse_past(text, now=NOON) == instant


@pytest.mark.parametrize("text", ["yesterday", "2027-02-28T00:00:00", "9999999999d"])
def test_any_other_time_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="write"):
        parse_past(text, now=NOON)


def test_a_dead_letter_is_shown_with_its_payload() -> None:
    job = {"target": "https://example.com/hook", "retry": {"attempts": 3}}
    with ApiServer(Answer(200, dead_letter_json(payload={"invoice": [7]}, job=job))) as server:
        result = run("show", ID, server=server)

    assert result.exit_code == 0, result.output
    assert server.requests[0].path == PATH
    for text in (ID, "HTTP 500", '{"attempts": 3}', '"invoice": [', "j1~x"):
        assert text in result.stdout


def test_what_tickwheel_did_not_write_is_shown_as_it_was_received() -> None:
    with ApiServer(Answer(200, dead_letter_json(raw="[hello]", is_replayable=False))) as server:
        result = run("show", ID, server=server)

    assert "[hello]" in result.stdout
    assert "payload" not in result.stdout


def test_a_dead_letter_is_shown_as_json() -> None:
    with ApiServer(Answer(200, dead_letter_json(payload=None))) as server:
        result = run("show", ID, "--json", server=server)

    assert json.loads(result.stdout) == dead_letter_json(payload=None)


def test_dead_letters_are_replayed_by_their_ids() -> None:
    with ApiServer(REPLAYED, REPLAYED) as server:
        result = run("replay", ID, ID, server=server)

    assert result.exit_code == 0, result.output
    assert [request.path for request in server.requests] == [f"{PATH}:replay"] * 2
    assert result.stdout.splitlines() == [f"replayed {ID}: attempt 4 is due at 2027-03-01T12:00:00Z"] * 2


def test_a_dead_letter_that_was_replayed_before_is_reported_so() -> None:
    answer = {"id": ID, "job_id": "j1~x", "outcome": "already_replayed", "state": "running"}
    with ApiServer(Answer(200, answer)) as server:
        result = run("replay", ID, server=server)

    assert result.stdout == f"already replayed {ID}: its job is running\n"


def test_one_that_is_refused_does_not_hold_up_the_others() -> None:
    with ApiServer(GONE, REPLAYED) as server:
        result = run("replay", "d1~x", ID, "--json", server=server)

    answer = json.loads(result.stdout)
    assert result.exit_code == 1
    assert [each["id"] for each in answer["done"]] == [ID]
    assert [(each["id"], each["code"]) for each in answer["problems"]] == [("d1~x", "dead_letter_not_found")]


def test_a_refusal_is_reported_with_its_dead_letter() -> None:
    with ApiServer(GONE) as server:
        result = run("replay", "d1~x", server=server)

    assert result.exit_code == 1
    assert "d1~x: there is no dead letter x" in result.stderr


def test_many_are_replayed_by_a_filter_at_a_rate() -> None:
    answers = (Answer(200, part_json(after="1~2~~x")), Answer(200, part_json(already_replayed=1, replayed=1)))
    with ApiServer(*answers) as server:
        result = run("replay", *ACME, "--tag", "eu", "--rate", "10", server=server)

    assert result.exit_code == 0, result.output
    assert server.requests[0].json == {"tenant": "acme", "tag": "eu", "rate": 10}
    assert server.requests[1].json["after"] == "1~2~~x"
    assert result.stdout == "replayed 3 of 4, 1 already replayed, failed 0\n"


def test_what_failed_of_many_is_reported_and_is_an_error() -> None:
    failed = [{"id": "d1~a", "code": "payload_gone", "detail": "its payload is gone"}]
    with ApiServer(Answer(200, part_json(replayed=1, failed=failed)), Answer(200, part_json(failed=failed))) as server:
        people = run("replay", *ACME, server=server)
        script = run("replay", *ACME, "--json", server=server)

    assert (people.exit_code, script.exit_code) == (1, 1)
    assert "d1~a: its payload is gone" in people.stderr
    assert json.loads(script.stdout) == {"matched": 2, "replayed": 2, "already_replayed": 0, "failed": failed}


@pytest.mark.parametrize("verb", ["replay", "purge"])
def test_a_dry_run_counts_and_shows_and_changes_nothing(verb: str) -> None:
    with ApiServer(COUNTED, COUNTED) as server:
        people = run(verb, *ACME, "--dry-run", server=server)
        script = run(verb, *ACME, "--dry-run", "--json", server=server)

    assert all(request.json == {"tenant": "acme", "dry_run": True} for request in server.requests)
    assert len(server.requests) == 2
    assert ID in people.stdout
    assert "2 match; these are the newest 1" in people.stdout
    assert json.loads(script.stdout) == {"matched": 2, "dead_letters": [dead_letter_json()]}


def test_a_purge_asks_first_and_says_what_it_is_about() -> None:
    with ApiServer(COUNTED, MANY_PURGED) as server:
        result = run("purge", *ACME, server=server, typed="y\n")

    assert result.exit_code == 0, result.output
    assert "Purge 2 dead letters for good?" in result.stderr
    assert [request.json for request in server.requests] == [{"tenant": "acme", "dry_run": True}, {"tenant": "acme"}]
    assert result.stdout.endswith("purged 2 of 2, failed 0\n")


def test_a_purge_that_is_not_confirmed_changes_nothing() -> None:
    with ApiServer(COUNTED) as server:
        many = run("purge", *ACME, server=server, typed="n\n")
        one = run("purge", ID, server=server, typed="\n")

    assert (many.exit_code, one.exit_code) == (1, 1)
    assert [request.json for request in server.requests] == [{"tenant": "acme", "dry_run": True}]


def test_with_yes_a_purge_does_not_ask() -> None:
    with ApiServer(MANY_PURGED, PURGED) as server:
        many = run("purge", *ACME, "--yes", "--json", server=server)
        one = run("purge", ID, "--yes", server=server)

    assert json.loads(many.stdout) == {"matched": 2, "purged": 2, "failed": []}
    assert one.stdout == f"purged {ID}\n"
    assert [request.method for request in server.requests] == ["POST", "DELETE"]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["list"], "--tenant"),
        (["list", "--tenant", ""], "tenant: is required"),
        (["list", *ACME, "--since", "yesterday"], "'yesterday' is not a time"),
        (["list", *ACME, "--limit", "0"], "'--limit'"),
        (["replay"], "select dead letters by their ids, or by --tenant"),
        (["purge", "--tag", "eu"], "select dead letters by their ids, or by --tenant"),
        (["replay", ID, *ACME], "ids cannot be combined with --tenant"),
        (["replay", ID, "--error-class", "x", "--rate", "1"], "ids cannot be combined with --error-class, --rate"),
        (["replay", ID, "--dry-run"], "ids cannot be combined with --dry-run"),
        (["purge", ID, "--json"], "add --yes"),
        (["purge", *ACME, "--json"], "add --yes"),
    ],
)
def test_wrong_usage_is_reported_before_anything_is_sent(arguments: list[str], said: str) -> None:
    result = run(*arguments)

    assert result.exit_code == 2
    assert said in result.stderr
