"""Crontabs: of a user, of a system (with a column of users), and of supercronic (with seconds and years)."""

import hashlib
import re
from collections import Counter
from collections.abc import Callable, Iterator
from datetime import timedelta
from functools import partial

from tickwheel.imports.cron import FIELDS, MACROS, parse_fields
from tickwheel.imports.dialects import CRONTAB
from tickwheel.imports.documents import text_of
from tickwheel.imports.fields import Unreadable
from tickwheel.imports.found import Entry, Found, LeftOut, OfClock, OfInterval, Place, Rule

_SETTING = re.compile(r"\s*(?:\"([^\"]+)\"|'([^']+)'|([A-Za-z_][A-Za-z0-9_]*))\s*=\s*(.*?)\s*", re.DOTALL)
_RANDOM = re.compile(r"([0-9]{0,2})~([0-9]{0,2})", re.ASCII)
_FIELD = re.compile(r"[0-9*?,/~a-zA-Z#-]+", re.ASCII)
_MORE_FIELD = re.compile(r"(?=.*[0-9*])[0-9*,/-]+", re.ASCII)
_SECONDS_OF_ALL = re.compile(r"\*(?:/([0-9]{1,2}))?", re.ASCII)
_PROGRAM = re.compile(r"[A-Za-z0-9_.-]+", re.ASCII)
_USERS = re.compile(r"[a-z_][a-z0-9_-]*\$?", re.ASCII)


_SHELL_WORDS = {"test", "cd", "source", "sh", "bash", "exec", "if", "env", "root", "bin", "usr", "sudo", "su"}


def read_crontab(file: str, data: bytes, *, has_users: bool) -> Iterator[Found]:
    """The lines of a crontab that are jobs."""
    settings: dict[str, str] = {}
    seen: Counter[str] = Counter()
    for number, line in enumerate(text_of(data).splitlines(), start=1):
        text = line.strip()
        if not text or text.startswith("#"):
            continue
        setting = _SETTING.fullmatch(text)
        if setting is not None:
            settings[setting[1] or setting[2] or setting[3]] = setting[4].strip("\"'")
            continue
        yield _line(Place(file, number), text, settings, seen, has_users=has_users)


def _line(place: Place, text: str, settings: dict[str, str], seen: Counter[str], *, has_users: bool) -> Found:
    try:
        fields, rest = _cut(text)
        user, command = _user(rest) if has_users else ("", rest)
        _check(command)
        written = " ".join(fields)
        rule, spread, remarks = _rule(fields, settings)
    except Unreadable as problem:
        return LeftOut(place=place, name=text[:60], written=text[:200], reason=str(problem))
    command, stdin = _unescaped(command)
    base = f"{_program(command)}-{hashlib.sha256(f'{user} {command}'.encode()).hexdigest()[:8]}"
    seen[base] += 1
    payload = {"command": command, **({"stdin": stdin} if stdin else {}), **({"user": user} if user else {})}
    kept = {name: value for name, value in settings.items() if name not in {"CRON_TZ", "MAILTO"}}
    if settings.get("MAILTO"):
        remarks += ("what it prints is not mailed to MAILTO: `job.on_failure` tells a target of failures",)
    if not has_users and command.split()[0] in {"root", "www-data", "nobody"}:
        remarks += (f"its command begins with {command.split()[0]}: is it a user, and the file a system-crontab?",)
    return Entry(
        place=place,
        name=base if seen[base] == 1 else f"{base}-{seen[base]}",
        written=written,
        rule=rule,
        payload=payload,
        fields={"spread": spread.total_seconds()} if spread else {},
        environment=kept,
        remarks=remarks,
    )


def _check(command: str) -> None:
    if not command:
        raise Unreadable("has no command")


def _cut(text: str) -> tuple[list[str], str]:
    """The fields of a line, and what follows them."""
    if text.startswith("-"):
        text = text[1:].lstrip()  # cronie: without a line in its log
    words = text.split(None, 1)
    if text.startswith("@"):
        return words[:1], words[1].strip() if len(words) > 1 else ""
    count = FIELDS
    parts = text.split(None, 7)
    if len(parts) < FIELDS or not all(_FIELD.fullmatch(part) for part in parts[:FIELDS]):
        raise Unreadable("is no line of a crontab: it has no five fields")
    while count < min(7, len(parts)) and _MORE_FIELD.fullmatch(parts[count]):
        count += 1
    pieces = text.split(None, count)
    return pieces[:count], pieces[count].strip() if len(pieces) > count else ""


def _user(rest: str) -> tuple[str, str]:
    user, command = [*rest.split(None, 1), "", ""][:2]
    if not _USERS.fullmatch(user):
        raise Unreadable(f"has {user[:40]!r} where a system crontab has a user: is it the crontab of a user?")
    return user, command.strip()


def _rule(fields: list[str], settings: dict[str, str]) -> tuple[Rule, timedelta | None, tuple[str, ...]]:
    zone = settings.get("CRON_TZ")
    first = fields[0].lower()
    if first.startswith("@"):
        if first == "@every_minute":
            return OfClock(expression=parse_fields(["*"] * FIELDS, CRONTAB), timezone=zone), None, ()
        if first[1:].isdigit():
            begins = "the end of the run before it (FreeBSD)"
            return OfInterval(interval=timedelta(seconds=int(first[1:])), begins=begins), None, ()
        if first not in MACROS:
            reason = (
                "there is no machine here whose start it could mean" if first == "@reboot" else "is no macro of cron"
            )
            raise Unreadable(f"{first}: {reason}")
        return OfClock(expression=parse_fields(MACROS[first].split(), CRONTAB), timezone=zone), None, ()
    if len(fields) == 7:  # noqa: PLR2004
        return _with_seconds(fields, zone)
    if len(fields) > FIELDS:
        raise Unreadable(
            "has six fields before its command, which programs read in two ways: the sixth as years, or the first as seconds"
        )
    fields, spread, remarks = _random(fields)
    return OfClock(expression=parse_fields(fields, CRONTAB), timezone=zone), spread, remarks


def _with_seconds(fields: list[str], zone: str | None) -> tuple[Rule, timedelta | None, tuple[str, ...]]:
    """Supercronic's: seconds first, years last."""
    seconds, *five, years = fields
    remark = "read as seconds, five fields and years, as supercronic has them"
    if years != "*":
        raise Unreadable("names years: put it with `start` and `end`")
    if re.fullmatch("0{1,2}", seconds):
        return OfClock(expression=parse_fields(five, CRONTAB), timezone=zone), None, (remark,)
    match = _SECONDS_OF_ALL.fullmatch(seconds)
    step = int(match[1] or 1) if match else 0
    if not step or 60 % step or any(field != "*" for field in five):
        raise Unreadable(
            "names seconds, but a cron here fires on the minute; only each n-th second of all can be said, as `every`"
        )
    return OfInterval(interval=timedelta(seconds=step), begins="each full minute"), None, (remark,)


def _random(fields: list[str]) -> tuple[list[str], timedelta | None, tuple[str, ...]]:
    """`~`: cron chooses a number when it reads the file. Here it is a spread, which is chosen by the schedule's name."""
    if not any("~" in field for field in fields):
        return fields, None, ()
    ranges = [_RANDOM.fullmatch(field) for field in fields[:2]]
    if ranges[0] is None or any("~" in field for field in fields[2:]):
        raise Unreadable(
            "has a choice by chance (~) in a field of days or in a list; write a number, or minutes such as 0~59"
        )
    low, high = int(ranges[0][1] or 0), int(ranges[0][2] or 59)
    if ranges[1] is None and "~" in fields[1]:
        raise Unreadable("has a choice by chance (~) in a list of hours")
    first, last = (int(ranges[1][1] or 0), int(ranges[1][2] or 23)) if ranges[1] else (0, 0)
    if not (low <= high < 60 and first <= last < 24) or (ranges[1] and (low, high) != (0, 59)):  # noqa: PLR2004
        raise Unreadable("has a choice by chance (~) that no spread can say")
    hour = str(first) if ranges[1] else fields[1]
    spread = timedelta(hours=last - first, minutes=high - low + 1)
    remark = f"cron chooses a time by chance whenever it reads the file; here the delay within {spread} is constant"
    return [str(low), hour, *fields[2:]], spread, (remark,)


def _unescaped(command: str) -> tuple[str, str]:
    r"""The command and what it reads: an unescaped % ends it, and is a line break in the rest."""
    parts = re.split(r"(?<!\\)%", command)
    plain = [part.replace(r"\%", "%") for part in parts]
    return plain[0].strip(), "\n".join(plain[1:])


def _program(command: str) -> str:
    for word in command.split():
        name = word.rstrip(";").rpartition("/")[2].strip(".-_")
        if _PROGRAM.fullmatch(name) and len(name) > 1 and name not in _SHELL_WORDS:
            return name[:40]
    return "command"


def reader(*, has_users: bool) -> Callable[[str, bytes], Iterator[Found]]:
    """Reads crontabs with or without users."""
    return partial(read_crontab, has_users=has_users)
