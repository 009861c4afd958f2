"""Write the vocabulary of the log into docs/events.md: `python -m scripts.list_events`. A test compares them."""

from pathlib import Path

from functions.domain.events import EVENTS, KEYS

PAGE = Path(__file__).resolve().parent.parent / "docs" / "events.md"
BEGIN = "<!-- written by scripts/list_events.py -->\n"
END = "<!-- to here -->\n"


def tables() -> str:
    """The events with their keys, and the keys with what they say."""
    rows = ["| event | meaning | keys |", "|---|---|---|"]
    for name, shape in EVENTS.items():
        keys = [f"`{key}`" for key in shape.keys] + [f"`{key}` where there is one" for key in shape.optional]
        rows.append(f"| `{name}` | {shape.meaning} | {', '.join(keys)} |")
    rows += ["", "| key | meaning |", "|---|---|"]
    rows += [f"| `{key}` | {meaning} |" for key, meaning in KEYS.items()]
    return "\n".join(rows) + "\n"


def main() -> None:
    """Replace what stands between the marks."""
    before, _, rest = PAGE.read_text().partition(BEGIN)
    PAGE.write_text(before + BEGIN + "\n" + tables() + "\n" + END + rest.partition(END)[2])


if __name__ == "__main__":
    main()
