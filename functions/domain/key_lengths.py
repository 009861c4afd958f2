"""How long anything may be that becomes a part of a key of a store: whoever takes a text in asks here.

In bytes of UTF-8, as DynamoDB counts them: a partition key has 1 to 2,048, a sort key 1 to 1,024
(https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/Constraints.html). A longer one is a ValidationException,
which says nothing of whose mistake it is: so a caller's is found here, before a store is asked, and what a store then
still calls invalid is a fault of Tickwheel's own.
"""

from __future__ import annotations

SORT_KEY = 1_024

TENANT = 64
SCHEDULE_ID = 128
IDENTITY = 200
"""The identity of a job that Tickwheel named."""

FLOW = 64
"""The key of a flow."""

COLLECTION = 64
"""The key of a collection, which no key of a store has: a digest of it stands there."""

DEAD_LETTER_IDENTITY = SORT_KEY - len("2027-01-31T09:00:00.000Z#")
"""The identity of a dead letter: what Tickwheel did not write may have any name, as long as its key has room for it."""

DESTINATION = SORT_KEY - len("breaker#")
"""The destination of a breaker. There are longer targets, and they have none."""


def fits(text: str, limit: int) -> bool:
    """Whether a text can be this part of a key: not empty, at most so long, and no half of a surrogate pair in it."""
    try:
        return 0 < len(text.encode()) <= limit
    except UnicodeEncodeError:
        return False


def cut(text: str, limit: int) -> str:
    """As much of the beginning of a text as fits."""
    return text.encode(errors="replace")[:limit].decode(errors="ignore")
