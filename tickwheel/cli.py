"""The command `tickwheel`.

Exit codes: 0 done, 1 refused or failed, 2 wrong usage. Tables are for people; `--json` prints one JSON object.
"""

from importlib import import_module
from pkgutil import iter_modules

from tickwheel import commands
from tickwheel.commands.registry import commands as registered

for _module in iter_modules(commands.__path__, f"{commands.__name__}."):
    import_module(_module.name)

app = registered.app

if __name__ == "__main__":
    app()
