"""The command `tickwheel`.

Exit codes: 0 done, 1 refused or failed, 2 wrong usage. Tables are for people; `--json` prints one JSON object.
"""

from tickwheel.commands.submit import app

__all__ = ["app"]

if __name__ == "__main__":
    app()
