"""Where the measured code's lines go: nowhere."""


class SilentJournal:
    """Keeps nothing."""

    def event(self, name: str, /, **keys: object) -> None:
        """Says nothing."""

    def count(self, metric: str, amount: int = 1) -> None:
        """Counts nothing."""

    def flush(self) -> None:
        """Has nothing."""

    def observe(self, metric: str, value: float, /, **dimensions: str) -> None:
        """Observes nothing."""
