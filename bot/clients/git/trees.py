"""Tree objects read many at once and remembered, compared, and edited by path."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from bot.clients.git import loose
from bot.clients.git.batch import Objects
from bot.clients.git.errors import ObjectMissing
from bot.clients.git.process import text

FOLDER = "40000"
Entry = tuple[str, str]
"""A mode, as trees hold it (no leading zero), and an id."""
Entries = Mapping[bytes, Entry]
Edits = Mapping[str, "Entry | None"]
Change = tuple["Entry | None", "Entry | None"]
"""What was at a path and what is: None where there is no file."""

_NOTHING: Entries = {}
_MOST = 20_000  # trees remembered


class Trees:
    """The trees of one repository: read by `objects`, written to the object directory `directory`."""

    def __init__(self, directory: Path, objects: Objects) -> None:
        self._directory = directory
        self._objects = objects
        self._known: dict[str, Entries] = {}

    def entries(self, oid: str) -> Entries:
        """What one tree holds; raises ObjectMissing."""
        found = self._known.get(oid)
        return found if found is not None else self._load([oid])[oid]

    def at(self, tree: str, path: str) -> Entry | None:
        """What stands at a path, a folder too; None where nothing does."""
        *folders, name = _split(path)
        for folder in folders:
            below = self.entries(tree).get(folder)
            if below is None or below[0] != FOLDER:
                return None
            tree = below[1]
        return self.entries(tree).get(name)

    def differences(self, pairs: Sequence[tuple[str, str]]) -> list[dict[str, Change]]:
        """For each pair of trees the files that differ, by path; no renames."""
        found: list[dict[str, Change]] = [{} for _ in pairs]
        waiting: list[tuple[int, bytes, str | None, str | None]] = [
            (index, b"", old, new) for index, (old, new) in enumerate(pairs) if old != new
        ]
        while waiting:
            self._load([oid for _, _, *both in waiting for oid in both if oid is not None])
            below: list[tuple[int, bytes, str | None, str | None]] = []
            for index, prefix, old, new in waiting:
                before = self.entries(old) if old is not None else _NOTHING
                after = self.entries(new) if new is not None else _NOTHING
                for name in {name for name, _ in before.items() ^ after.items()}:
                    was, now = before.get(name), after.get(name)
                    folders = [side[1] if side is not None and side[0] == FOLDER else None for side in (was, now)]
                    files = [None if side is None or side[0] == FOLDER else side for side in (was, now)]
                    if folders[0] is not None or folders[1] is not None:
                        below.append((index, prefix + name + b"/", folders[0], folders[1]))
                    if files[0] is not None or files[1] is not None:
                        found[index][text(prefix + name)] = (files[0], files[1])
            waiting = below
        return found

    def edit(self, root: str | None, edits: Edits) -> str | None:
        """The id of `root` with the files at `edits` set to (mode, blob id), or removed where None.

        Folders that fall empty vanish; None where nothing is left. Raises ObjectMissing where a tree can't be read.
        """
        return self._edit(root, {_split(path): value for path, value in edits.items()})

    def empty(self) -> str:
        """The id of the tree that holds nothing."""
        return loose.write(self._directory, "tree", b"")

    def _edit(self, root: str | None, edits: Mapping[tuple[bytes, ...], Entry | None]) -> str | None:
        entries = dict(self.entries(root)) if root is not None else {}
        below: dict[bytes, dict[tuple[bytes, ...], Entry | None]] = {}
        for (name, *rest), value in edits.items():
            if rest:
                below.setdefault(name, {})[tuple(rest)] = value
            elif value is None:
                entries.pop(name, None)
            else:
                entries[name] = (value[0].lstrip("0"), value[1])
        for name, inner in below.items():
            mode, oid = entries.get(name, (FOLDER, ""))
            edited = self._edit(oid if mode == FOLDER and oid else None, inner)
            if edited is not None:
                entries[name] = (FOLDER, edited)
            elif mode == FOLDER:
                entries.pop(name, None)
        if not entries:
            return None
        oid = loose.write(self._directory, "tree", _raw(entries))
        self._known[oid] = entries
        return oid

    def _load(self, oids: Iterable[str]) -> dict[str, Entries]:
        """Read those that are not remembered, all at once."""
        wanted = [oid for oid in dict.fromkeys(oids) if oid not in self._known]
        loaded: dict[str, Entries] = {}
        for oid, found in self._objects.read_many(wanted).items() if wanted else ():
            if found is None:
                raise ObjectMissing(["cat-file", oid], f"no tree {oid}", 128)
            loaded[oid] = _parsed(found[2])
        if len(self._known) > _MOST:
            self._known = {}
        self._known |= loaded
        return loaded


def _split(path: str) -> tuple[bytes, ...]:
    return tuple(path.encode("utf-8", "surrogateescape").split(b"/"))


def _parsed(raw: bytes) -> Entries:
    entries: dict[bytes, Entry] = {}
    at = 0
    while at < len(raw):
        end = raw.index(b"\0", at)
        mode, _, name = raw[at:end].partition(b" ")
        at = end + 21
        entries[name] = (mode.decode(), raw[end + 1 : at].hex())
    return entries


def _raw(entries: Entries) -> bytes:
    ordered = sorted(entries.items(), key=lambda item: item[0] + (b"/" if item[1][0] == FOLDER else b""))
    return b"".join(f"{mode} ".encode() + name + b"\0" + bytes.fromhex(oid) for name, (mode, oid) in ordered)
