"""The programs whose schedules can be read, by the names that `tickwheel import --from` takes."""

from collections.abc import Mapping

from tickwheel.imports.found import Source
from tickwheel.imports.sources import crontab

SOURCES: Mapping[str, Source] = {
    "crontab": Source("the crontab of a user, and supercronic's", crontab.reader(has_users=False), (".crontab", "")),
    "system-crontab": Source(
        "/etc/crontab and /etc/cron.d, with users", crontab.reader(has_users=True), (".crontab", "")
    ),
}
