"""What one look at trunk needs of GitHub for the issues of its breakages, asked at most once."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from bot.context import Breakage, Forbidden, Gone, Issue, NotFound
from bot.core.batches import key_of
from bot.core.owners import Codeowners, People
from bot.core.render.breakage import LABEL
from handlers.codeowners import own_people, read_codeowners
from handlers.fork import Fork
from handlers.people import people


@dataclass
class Desk:
    """What one job needs for the issues: asked of GitHub at most once."""

    fork: Fork
    open_issues: Mapping[int, Issue] = field(default_factory=dict)
    rows: dict[str, Breakage] = field(default_factory=dict)  # by signature
    keys: set[str] = field(default_factory=set)  # of all rows, those of causes that are signed otherwise now too
    silent: bool = False  # the mode lets Graft write no issue
    _people: People | None = None
    _codeowners: Codeowners | None = None
    _own: dict[tuple[str, ...], People] = field(default_factory=dict)
    _labels: set[str] = field(default_factory=set)

    async def people(self) -> People:
        """Who may be mentioned here."""
        if self._people is None:
            self._people = await people(self.fork, self.fork.config.triage.escalate_to)
        return self._people

    async def codeowners(self) -> Codeowners:
        """The fork's CODEOWNERS."""
        if self._codeowners is None:
            self._codeowners = await read_codeowners(self.fork)
        return self._codeowners

    async def own(self, named: tuple[str, ...]) -> People:
        """Those whom CODEOWNERS names, as far as they are the fork's."""
        if named not in self._own:
            self._own[named] = await own_people(self.fork, named)
        return self._own[named]

    async def label(self, *names: str) -> None:
        """See to it that the labels are there."""
        for name in names:
            if name not in self._labels:
                await self.fork.github.ensure_label(name, "b60205" if name == LABEL else "c5def5")
                self._labels.add(name)

    def key(self, signature: str) -> str:
        """The key of a cause that has no breakage yet: that of its signature, where no other one has it, whose cause
        was signed so by older rules.
        """
        key, more = key_of(self.fork.name, signature), 1
        while key in self.keys:
            more += 1
            key = key_of(self.fork.name, signature, str(more))
        return key

    async def issue(self, number: int) -> Issue | None:
        """The issue; None where there is none any more: deleted, or made a discussion. Not asked of the open ones."""
        if number in self.open_issues:
            return self.open_issues[number]
        try:
            return await self.fork.github.issue(number)
        except (NotFound, Gone):
            return None

    async def switched_off(self) -> bool:
        """Whether the repository has no issues at all: then none is written, and none was taken away."""
        self.silent = self.silent or not (await self.fork.github.info()).has_issues
        return self.silent

    async def comment(self, number: int, hidden: str, text: str) -> None:
        """Once, where GitHub lets Graft speak: on a locked issue the body says it all the same."""
        try:
            await self.fork.github.upsert_comment(number, hidden, text)
        except Forbidden as error:
            self.fork.ctx.log.warning("a breakage's issue takes no comment", issue=number, error=str(error))
