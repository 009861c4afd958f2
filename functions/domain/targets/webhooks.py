"""Signatures of requests: Standard Webhooks 1.0.0, symmetric (https://www.standardwebhooks.com).

A stage has master keys, a tenant the keys derived from them: who verifies the requests of one tenant cannot sign for
another.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from functions.domain.errors import MalformedWebhookSecret
from functions.domain.instants import to_seconds

ID = "webhook-id"
TIMESTAMP = "webhook-timestamp"
SIGNATURE = "webhook-signature"
KEY_IDS = "Tickwheel-Key-Ids"

_KEY_ID = re.compile(r"[A-Za-z0-9_-]{1,32}", re.ASCII)
_SHORTEST_MASTER = 32

_FIRST_USE = re.compile(r"Tickwheel-[a-z0-9]{1,10}-WebhookKeys", re.ASCII)


@dataclass(frozen=True, slots=True)
class WebhookKey:
    """A key and the name it is known by. The secret is in no text that is made of this, but for `shown`."""

    id: str
    secret: bytes = field(repr=False)

    @property
    def shown(self) -> str:
        """As libraries that verify take it."""
        return "whsec_" + base64.b64encode(self.secret).decode()


def first_use_name(stage: str) -> str:
    """The name of the secret of a stage whose secret is made by the first function that needs it."""
    return f"Tickwheel-{stage}-WebhookKeys"


def name_to_make(secret: str) -> str | None:
    """Under which name a secret that is not there may be made; None for one that came with its stage, and must not be replaced.

    secret: its name, or its ARN. One that Secrets Manager gave has six characters behind the name.
    """
    name = secret.rpartition(":")[2]
    return name if _FIRST_USE.fullmatch(name) else None


def new_master_keys(key: str) -> str:
    """The text of a new secret. key: random, 32 characters at least."""
    return json.dumps({"current_id": "k1", "current": key})


def parse_master_keys(text: str) -> tuple[WebhookKey, ...]:
    """The master keys of a stage, the current one first.

    text: `{"current_id":"k2","current":"…","previous_id":"k1","previous":"…"}`, the last two only during a rotation.
    Raises MalformedWebhookSecret, which repeats nothing of it.
    """
    try:
        fields: Any = json.loads(text)
    except (ValueError, RecursionError):
        raise MalformedWebhookSecret("is not JSON") from None
    if not isinstance(fields, dict):
        raise MalformedWebhookSecret("is not a JSON object")
    keys = [_master(fields, "current")]
    if "previous" in fields or "previous_id" in fields:
        keys.append(_master(fields, "previous"))
    if len({key.id for key in keys}) < len(keys):
        raise MalformedWebhookSecret("has the same id for its current and its previous key")
    return tuple(keys)


def _master(fields: dict[str, Any], name: str) -> WebhookKey:
    key_id, secret = fields.get(f"{name}_id"), fields.get(name)
    if not isinstance(key_id, str) or not _KEY_ID.fullmatch(key_id):
        raise MalformedWebhookSecret(f"has no {name}_id that matches {_KEY_ID.pattern}")
    if not isinstance(secret, str) or len(secret) < _SHORTEST_MASTER:
        raise MalformedWebhookSecret(f"has no {name} of at least {_SHORTEST_MASTER} characters")
    return WebhookKey(key_id, secret.encode(errors="surrogatepass"))


def keys_of(tenant: str, masters: Sequence[WebhookKey]) -> tuple[WebhookKey, ...]:
    """A tenant's keys, in the order of the master keys."""
    return tuple(
        WebhookKey(master.id, _mac(master.secret, f"tickwheel webhook {tenant}".encode())) for master in masters
    )


def signed_headers(keys: Sequence[WebhookKey], *, idempotency_key: str, body: bytes, at: datetime) -> dict[str, str]:
    """The headers that prove who sent this body, and when. Every key signs, so that receivers change keys in peace."""
    message_id = message_id_of(idempotency_key)
    timestamp = str(to_seconds(at))
    content = f"{message_id}.{timestamp}.".encode() + body
    signatures = [f"v1,{base64.b64encode(_mac(key.secret, content)).decode()}" for key in keys]
    return {
        ID: message_id,
        TIMESTAMP: timestamp,
        SIGNATURE: " ".join(signatures),
        KEY_IDS: " ".join(key.id for key in keys),
    }


def message_id_of(idempotency_key: str) -> str:
    """The idempotency key with its dots as `%2E`.

    A dot ends the id in what is signed, and tenants choose theirs: with dots in it, one signature would fit two requests.
    """
    return idempotency_key.replace(".", "%2E")


def _mac(secret: bytes, content: bytes) -> bytes:
    return hmac.digest(secret, content, hashlib.sha256)
