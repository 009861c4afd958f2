"""The master keys of signatures, in Secrets Manager."""

from __future__ import annotations

import secrets
from datetime import timedelta
from typing import TYPE_CHECKING

from botocore.exceptions import ClientError

from functions.domain.targets.webhooks import WebhookKey, name_to_make, new_master_keys, parse_master_keys
from functions.ports.clock import Clock

if TYPE_CHECKING:
    from mypy_boto3_secretsmanager import SecretsManagerClient

KEPT = timedelta(minutes=5)
"""How long keys are used before they are read again."""

_KEPT_AFTER_FAILURE = timedelta(seconds=30)

_MASTER_BYTES = 32


class SecretsManagerWebhookKeys:
    """One secret, `{"current_id", "current", "previous_id", "previous"}`, the last two only during a rotation."""

    def __init__(self, client: SecretsManagerClient, secret: str, *, clock: Clock) -> None:
        self._client = client
        self._secret = secret
        self._clock = clock
        self._keys: tuple[WebhookKey, ...] = ()
        self._read_again_at = 0.0

    def masters(self) -> tuple[WebhookKey, ...]:
        """As of the last five minutes; while the secret cannot be read, as it last was."""
        if self._keys and self._clock.monotonic() < self._read_again_at:
            return self._keys
        try:
            return self.read()
        except Exception:
            # Old keys are better than no calls. Raised where there are none: nothing is sent unsigned.
            if not self._keys:
                raise
            self._read_again_at = self._clock.monotonic() + _KEPT_AFTER_FAILURE.total_seconds()
            return self._keys

    def read(self) -> tuple[WebhookKey, ...]:
        """As of now; made before, where nobody has needed them yet. Raises MalformedWebhookSecret, and what the client raises."""
        self._keys = parse_master_keys(self._text())
        self._read_again_at = self._clock.monotonic() + KEPT.total_seconds()
        return self._keys

    def _text(self) -> str:
        try:
            return self._client.get_secret_value(SecretId=self._secret)["SecretString"]
        except ClientError as error:
            name = name_to_make(self._secret)
            # One that waits for its deletion is another error: it can be restored, and must not be replaced.
            if name is None or _code(error) != "ResourceNotFoundException":
                raise
        try:
            self._client.create_secret(
                Name=name,
                Description="Master keys of the signatures of HTTP targets; docs/targets.md says how to rotate them",
                SecretString=new_master_keys(secrets.token_hex(_MASTER_BYTES)),
            )
        except ClientError as error:
            if _code(error) != "ResourceExistsException":
                raise
        # What stands there, whoever made it: of two at once, one has lost.
        return self._client.get_secret_value(SecretId=self._secret)["SecretString"]


def _code(error: ClientError) -> str:
    return error.response.get("Error", {}).get("Code", "")
