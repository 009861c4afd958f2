"""Files of a source as what is found in them: a file that cannot be read is left out by name, and the others are read."""

from collections.abc import Iterator
from pathlib import Path

from tickwheel.imports.documents import files_of, read_bytes
from tickwheel.imports.fields import Unreadable
from tickwheel.imports.found import Found, LeftOut, Place, Source

MOST_FOUND = 100_000


def read_files(paths: list[Path], source: Source) -> Iterator[Found]:
    """What is in files, and in the files of folders."""
    count = 0
    try:
        files = files_of(paths, source.suffixes)
    except Unreadable as problem:
        yield LeftOut(place=Place(str(paths[0])), name="", written="", reason=str(problem))
        return
    for file in files:
        try:
            for found in source.read(str(file), read_bytes(file)):
                count += 1
                yield found
                if count == MOST_FOUND:
                    reason = f"has more than the {MOST_FOUND:,} schedules of one import: import fewer files at once"
                    yield LeftOut(place=found.place, name="", written="", reason=reason)
                    return
        except Unreadable as problem:
            yield LeftOut(place=Place(str(file)), name="", written="", reason=str(problem))
