"""The plan: each undecided upstream commit into a bundle, a chain, what is held, or what is settled. Pure.

Commits are taken in upstream order. One that stands on what stays out, by lines, by names or as its revert, goes with
it; one that is risky of itself begins a chain, a toolchain bump a lane; what stands on a lane is held until that lands;
the rest is safe to land before all of these, and goes into bundles.
"""

from __future__ import annotations

from collections.abc import Collection, Container, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum

from bot.core import risk
from bot.core.bundles import cut
from bot.core.candidates import Candidate, Draft, Surroundings, skipped_by_rule
from bot.core.chains import Groups, Tie, Unlanded, chain_of, gather, kin, rules_met
from bot.core.config import Ingest, RiskRule
from bot.core.footprint import Footprint
from bot.core.owners import areas_of
from bot.core.risk import RevertFacts, Trial
from bot.core.signals import Signal, signals
from bot.core.trailers import pull_number
from bot.core.types import PlannedCommit, Reason, ReasonKind, Verdict

_OUT = 0.9
_STRONG = 0.5
_NEAR = 0.06
"""What is near those that stay out weighs this: shown, never summed up."""


@dataclass(frozen=True, slots=True)
class _Need:
    """Why a commit needs one before it ({} stands for that), and how closely they belong together."""

    why: str
    tie: Tie


class _Place(Enum):
    BUNDLE = "bundle"
    CHAIN = "chain"
    LANE = "lane"
    HELD = "held"
    SETTLED = "settled"


def draft(candidates: Sequence[Candidate], surroundings: Surroundings) -> Draft:
    """The partition of candidates given in upstream order."""
    planner = _Planner(candidates, surroundings)
    for candidate in candidates:
        planner.take(candidate)
    return planner.finish()


@dataclass(frozen=True, slots=True)
class _Either(Container[str]):
    """What is in one of two sets."""

    first: Container[str]
    second: Container[str]

    def __contains__(self, name: object) -> bool:
        return name in self.first or name in self.second


class _Planner:
    def __init__(self, candidates: Sequence[Candidate], around: Surroundings) -> None:
        self.around = around
        self.ingest = around.config.ingest if around.config is not None else Ingest()
        self.candidates = {candidate.commit.sha: candidate for candidate in candidates}
        self.order = {sha: index for index, sha in enumerate(self.candidates)}
        self.place: dict[str, _Place] = {}
        self.planned: dict[str, PlannedCommit] = {}
        self.rules: dict[str, tuple[RiskRule, ...]] = {}
        self.needs: dict[str, frozenset[str]] = {}
        self.groups = Groups()
        self.own_files: dict[str, list[str]] = {}
        for path in sorted(path for path, file in around.divergence.files.items() if file.own):
            self.own_files.setdefault(_folder(path), []).append(path)
        self.out = Unlanded()
        self.bundled = Unlanded()
        self.landing: set[str] = set()
        self.known = _Either(around.divergence.words, self.landing)
        self.families = kin(around.links, self.order)
        for sha in sorted(around.absent):
            self._stays(around.absent[sha])

    def take(self, candidate: Candidate) -> None:
        """Decide of the next commit."""
        sha = candidate.commit.sha
        self.rules[sha] = rules_met(candidate.footprint, self.ingest.risk)
        settled = self._settled(candidate)
        if settled is not None:
            self._put(candidate, _Place.SETTLED, *settled)
            return
        if candidate.trial.kind == "empty":
            candidate = replace(candidate, trial=Trial("clean"))
        needs = self._needs(candidate)
        self.needs[sha] = frozenset(needs)
        reasons = self._reasons(candidate, needs)
        verdict = _verdict(reasons, candidate.trial)
        out = [need for need in needs if self.place.get(need) is not _Place.BUNDLE]
        mates = {need: needs[need].tie for need in out if self.place.get(need) is _Place.CHAIN}
        moved = self.around.moved.get(sha)
        if moved is not None:
            late = [mate for mate in moved[1] if self.place.get(mate) is _Place.CHAIN]
            mates = {**dict.fromkeys(late, Tie.LEANS), **mates}
            self.needs[sha] |= frozenset(late)
        series = self._series(sha)
        lane = any(reason.kind is ReasonKind.TOOLCHAIN for reason in reasons)
        if lane:
            lanes = (need for need in out if self.place.get(need) is _Place.LANE)
            self._chain(candidate, _Place.LANE, dict.fromkeys(lanes, Tie.FAMILY), reasons)
        elif mates or series or moved is not None or self._barred(candidate, verdict, out):
            self._chain(candidate, _Place.CHAIN, mates, reasons)
        elif out:
            self._put(candidate, _Place.HELD, _barred(verdict), reasons)
            self._stays(candidate.footprint)
        else:
            self._put(candidate, _Place.BUNDLE, verdict, reasons)
            self.bundled.add(candidate.footprint, self.known)
            self.landing |= candidate.footprint.referred | candidate.footprint.defined

    def finish(self) -> Draft:
        """The partition of all that was taken."""
        chosen = [planned for sha, planned in self.planned.items() if self.place[sha] is _Place.BUNDLE]
        chains = [
            chain_of(
                [self.planned[sha] for sha in sorted(group, key=self.order.__getitem__)],
                self.rules,
                lane=self.place[group[0]] is _Place.LANE,
            )
            for group in self.groups.members()
        ]
        return Draft(
            bundles=cut(
                chosen,
                together={planned.sha: self._together(planned) for planned in chosen},
                paths={planned.sha: self.candidates[planned.sha].footprint.paths for planned in chosen},
                caps=self.ingest.bundle,
            ),
            chains=tuple(chains),
            held=self._at(_Place.HELD),
            settled=self._at(_Place.SETTLED),
        )

    def _together(self, planned: PlannedCommit) -> frozenset[str]:
        tied = self.around.tied.get(planned.sha, frozenset())
        return frozenset(planned.waits_for) | self._family(planned.sha) | tied

    def _settled(self, candidate: Candidate) -> tuple[Verdict, tuple[Reason, ...]] | None:
        paths = candidate.footprint.paths
        if skipped_by_rule(paths, self.ingest):
            text = "touches only what the fork's file says to skip"
            return Verdict.SKIPPED, (Reason(ReasonKind.SKIP_RULE, text, tuple(sorted(paths))),)
        if candidate.trial.kind != "empty":
            return None
        if candidate.kept_deleted:
            text = "changes only files that the fork deleted"
            return Verdict.EMPTY, (Reason(ReasonKind.NO_EFFECT, text, candidate.kept_deleted),)
        if not paths:
            return Verdict.EMPTY, (Reason(ReasonKind.NO_EFFECT, "changes nothing"),)
        if missing := self._missing(candidate.commit.sha):
            if not missing <= frozenset(self.around.given_up):
                return None  # it takes back what is still to come, and has to come after that
            text = "takes back what the fork will not port, so that there is nothing to take back"
            return Verdict.EMPTY, (Reason(ReasonKind.REVERT, text, tuple(sorted(missing))),)
        return Verdict.EMPTY, (Reason(ReasonKind.ALREADY_THERE, "the fork holds this change already"),)

    def _needs(self, candidate: Candidate) -> dict[str, _Need]:
        """The commits not in the fork that this one stands on, each with why."""
        sha = candidate.commit.sha
        needs: dict[str, _Need] = {}
        for below in candidate.below.touches:
            if self._is_out(below) and not self._free_of(candidate, below):
                tie = Tie.REPLACES if below in candidate.below.replaces else Tie.LEANS
                needs[below] = _Need("touches lines that {} wrote", tie)
        for origin, why in self.bundled.under(candidate.footprint, self.around.divergence.words):
            needs.setdefault(origin, _Need(why, Tie.LEANS))
        for origin, why in self.out.under(candidate.footprint, self.known):
            needs.setdefault(origin, _Need(why, Tie.LEANS))
        for origin, name in self.out.shared(candidate.footprint):
            if origin in candidate.below.near and not self._free_of(candidate, origin):
                needs.setdefault(origin, _Need(f"changes {name} near where {{}} does", Tie.NEAR))
        absent = [mate for mate in self._missing(sha) if mate in self.around.absent]
        for mate in sorted({*self._family(sha), *absent}):
            if self.order.get(mate, -1) < self.order[sha] and self._is_out(mate):
                why = needs[mate].why if mate in needs else "takes back, or brings in again, {}"
                needs[mate] = _Need(why, Tie.FAMILY)
        known = {need: why for need, why in needs.items() if need != sha}
        return dict(sorted(known.items(), key=lambda item: self.order.get(item[0], -1)))

    def _free_of(self, candidate: Candidate, below: str) -> bool:
        """True where the trial pick has shown that this text merges without that commit, which was not in its tip."""
        other = self.candidates.get(below)
        return candidate.trial.kind == "clean" and (other is None or other.trial.kind == "conflict")

    def _is_out(self, sha: str) -> bool:
        return sha in self.around.absent or self.place.get(sha, _Place.SETTLED) is not _Place.SETTLED

    def _reasons(self, candidate: Candidate, needs: Mapping[str, _Need]) -> tuple[Reason, ...]:
        sha = candidate.commit.sha
        out = [need for need in needs if self.place.get(need) is not _Place.BUNDLE]
        found = risk.assess(
            footprint=candidate.footprint,
            divergence=self.around.divergence,
            trial=candidate.trial,
            ingest=self.ingest,
            unlanded=risk.Unlanded(self.out.symbols, self.out.signatures, self.out.paths),
            revert=self._revert(sha),
            upstream_words=self.around.upstream_words,
            known=self._signals(candidate),
        )
        extra = [
            Reason(ReasonKind.CORRELATED, f"{_told(needs[need].why, need)}; the fork lacks that", (need,), _OUT)
            for need in out
        ]
        extra += self._near(candidate, needs)
        if self._series(sha):
            text = f"one of {len(self._family(sha)) + 1} that take each other back and bring each other in again"
            extra.append(Reason(ReasonKind.REVERT, text, tuple(sorted(self._family(sha))), 0.8))
        if sha in self.around.moved:
            extra.append(self.around.moved[sha][0])
        if candidate.error is not None:
            extra.append(Reason(ReasonKind.UNPARSABLE, f"git could not try it: {candidate.error[:300]}", (), 1.0))
        if stragglers := self._stragglers(candidate.footprint):
            text = "moves a folder in which the fork has files of its own, which stay behind"
            extra.append(Reason(ReasonKind.FORKED_FILE, text, stragglers[:12], _NEAR))
        if candidate.kept_deleted:
            # plain git calls this a conflict: what it means beside the rest is for a person to see
            text = "also changes files that the fork deleted, which stay deleted"
            extra.append(Reason(ReasonKind.FORKED_FILE, text, candidate.kept_deleted, _STRONG))
        if not extra:
            return found
        kept = [reason for reason in found if reason.kind is not ReasonKind.INDEPENDENT]
        return tuple(sorted([*kept, *extra], key=lambda reason: (-reason.weight, reason.kind.value, reason.evidence)))

    def _signals(self, candidate: Candidate) -> tuple[Signal, ...]:
        sha, known = candidate.commit.sha, self.around.signals
        if sha not in known:
            known[sha] = signals(candidate.footprint, self.around.divergence)
        return known[sha]

    def _stragglers(self, footprint: Footprint) -> tuple[str, ...]:
        """The fork's own files in folders from which this commit moves files away."""
        left = {_folder(file.old_path) for file in footprint.files if file.status == "R" and file.old_path}
        left -= {_folder(file.path) for file in footprint.files}
        return tuple(path for folder in sorted(left - {""}) for path in self.own_files.get(folder, ()))

    def _near(self, candidate: Candidate, needs: Collection[str]) -> Iterator[Reason]:
        """What brings a commit near one that stays out, though it stands without it: one reason of each kind."""
        shared = {
            name: origin
            for origin, name in self.out.shared(candidate.footprint)
            if origin in candidate.below.near and origin not in needs
        }
        for text, found in (
            ("changes close to where commits do that are not in the fork", shared),
            ("refers to what commits that are not in the fork give another signature", self._resigned(candidate)),
        ):
            if found:
                evidence = tuple(f"{name} ({origin[:12]})" for name, origin in sorted(found.items()))
                yield Reason(ReasonKind.CORRELATED, text, evidence, _NEAR)

    def _resigned(self, candidate: Candidate) -> dict[str, str]:
        return {name: origin for origin, name in self.out.resigned(candidate.footprint)}

    def _revert(self, sha: str) -> RevertFacts | None:
        link = self.around.links.get(sha)
        if link is None:
            return None
        missing = tuple(target for target in link.targets if target in self._missing(sha))
        return RevertFacts(link.targets, missing, known=bool(link.targets), partial=link.partial, kind=link.kind)

    def _missing(self, sha: str) -> frozenset[str]:
        """What this commit takes back (or brings in again) that the fork does not have."""
        link = self.around.links.get(sha)
        targets = link.targets if link is not None else ()
        return frozenset(target for target in targets if target in self.around.absent or self._stays_out(target))

    def _stays_out(self, sha: str) -> bool:
        return self.place.get(sha) in {_Place.CHAIN, _Place.LANE, _Place.HELD}

    def _barred(self, candidate: Candidate, verdict: Verdict, out: Sequence[str]) -> bool:
        return verdict in {Verdict.RISKY, Verdict.CONFLICT} and not self._only_held(candidate, out)

    def _only_held(self, candidate: Candidate, out: Sequence[str]) -> bool:
        """True where nothing but what it waits for makes this commit risky: it is held, not made a chain of its own."""
        waits = [
            need for need in out if self.place.get(need) in {_Place.LANE, _Place.HELD} or need in self.around.absent
        ]
        if not waits or len(waits) != len(out):
            return False
        alone = risk.assess(
            footprint=candidate.footprint,
            divergence=self.around.divergence,
            trial=Trial("clean"),
            ingest=self.ingest,
            known=self._signals(candidate),
        )
        return _verdict(alone, Trial("clean")) not in {Verdict.RISKY, Verdict.CONFLICT}

    def _family(self, sha: str) -> frozenset[str]:
        return self.families.get(sha, frozenset())

    def _stays(self, footprint: Footprint) -> None:
        self.out.add(footprint, self.known)

    def _series(self, sha: str) -> bool:
        return len(self._family(sha)) > 1

    def _chain(
        self, candidate: Candidate, place: _Place, mates: Mapping[str, Tie], reasons: tuple[Reason, ...]
    ) -> None:
        self._put(candidate, place, _barred(_verdict(reasons, candidate.trial)), reasons)
        gather(self.groups, candidate.commit.sha, mates, self.order, longest=self.ingest.chain.max_links)
        self._stays(candidate.footprint)

    def _put(self, candidate: Candidate, place: _Place, verdict: Verdict, reasons: tuple[Reason, ...]) -> None:
        commit, sha = candidate.commit, candidate.commit.sha
        config = self.around.config
        self.place[sha] = place
        self.planned[sha] = PlannedCommit(
            sha=sha,
            subject=commit.subject,
            verdict=verdict,
            reasons=reasons,
            pr=pull_number(commit.message),
            waits_for=tuple(sorted(self.needs.get(sha, ()), key=lambda need: self.order.get(need, -1))),
            areas=areas_of(sorted(candidate.footprint.paths), config) if config is not None else (),
        )

    def _at(self, place: _Place) -> tuple[PlannedCommit, ...]:
        return tuple(planned for sha, planned in self.planned.items() if self.place[sha] is place)


def _told(why: str, sha: str) -> str:
    return sha[:12].join(why.rsplit("{}", 1))


def _folder(path: str) -> str:
    return path.rpartition("/")[0]


def _verdict(reasons: Sequence[Reason], trial: Trial) -> Verdict:
    """What the reasons come to. Mere nearness to what stays out makes a commit worth watching, and never more."""
    counted = [reason for reason in reasons if reason.weight != _NEAR]
    verdict = risk.verdict(counted, trial)
    return Verdict.WATCH if verdict is Verdict.SAFE and len(counted) < len(reasons) else verdict


def _barred(verdict: Verdict) -> Verdict:
    """What may not land early is risky, whatever speaks for it otherwise."""
    return verdict if verdict is Verdict.CONFLICT else Verdict.RISKY
