"""Whether a pull request can be merged, what stands in the way, and the commit that a merge would make."""

from __future__ import annotations

from dataclasses import dataclass

from bot.sandbox import checks
from bot.sandbox.accounts import at_least
from bot.sandbox.bare import EMPTY_TREE, CommitData, FileDiff, Signature
from bot.sandbox.model import Issue, Pull, Repository, Trial
from bot.sandbox.world import World

REMEMBERED = 256  # differences that are kept
MESSAGES = {
    "draft": "Pull Request is still a draft",
    "conflict": "Pull Request has merge conflicts",
    "queue": "Changes must be made through the merge queue",
    "behind": "Head branch is out of date. Review and try the merge again.",
}


@dataclass(frozen=True, slots=True)
class Changes:
    """What a pull request brings: its commits, oldest first, and the files that differ."""

    base: str
    commits: tuple[CommitData, ...]
    files: tuple[FileDiff, ...]


@dataclass(frozen=True, slots=True)
class Blocker:
    """One thing that stands in the way; `message` as the REST API says it."""

    kind: str
    message: str


def changes(world: World, repo: Repository, pull: Pull) -> Changes:
    """The pull request's commits and files, three dots: against where it left its base."""
    store = world.store(repo)
    tip = pull.base_sha if pull.merged_at else store.ref(f"refs/heads/{pull.base_ref}") or pull.base_sha
    key = (repo.full_name, tip, pull.head_sha)
    if key not in world.changes:
        while len(world.changes) >= REMEMBERED:
            world.changes.pop(next(iter(world.changes)))
        base = store.merge_base(tip, pull.head_sha)
        span = [f"^{base}"] if base else []
        commits = store.commits("--reverse", "--topo-order", pull.head_sha, *span)
        world.changes[key] = Changes(
            base or EMPTY_TREE, tuple(commits), tuple(store.diff(base or EMPTY_TREE, pull.head_sha))
        )
    found: Changes = world.changes[key]
    return found


def signature(world: World, login: str) -> Signature:
    """A user as author of a commit made now."""
    user = world.known_user(login)
    email = user.email or f"{user.id}+{user.login}@users.noreply.github.com"
    return Signature(user.name or user.login, email, world.now().isoformat())


def web_flow(world: World) -> Signature:
    """The committer of what the site itself commits."""
    return Signature("GitHub", "noreply@github.com", world.now().isoformat())


def trial(world: World, repo: Repository, item: Issue) -> Trial | None:
    """The trial merge of head into base, made when either moved; None where the base is gone."""
    pull = item.pull
    assert pull is not None
    store = world.store(repo)
    base = store.ref(f"refs/heads/{pull.base_ref}")
    if base is None:
        return None
    if pull.trial is None or (pull.trial.base, pull.trial.head) != (base, pull.head_sha):
        tree, conflicts = store.merge_tree(base, pull.head_sha)
        merge = None
        if tree is not None:
            me = web_flow(world)
            merge = store.write_commit(tree, [base, pull.head_sha], f"Merge {pull.head_sha} into {base}", me, me)
            store.set_ref(f"refs/pull/{item.number}/merge", merge)
        pull.trial = Trial(base, pull.head_sha, merge, conflicts, announced=not world.lazy_mergeability)
    return pull.trial


def merge_commit(pull: Pull) -> str | None:
    """`merge_commit_sha`: of the merge, or of the last trial merge."""
    if pull.merge_commit_sha is not None:
        return pull.merge_commit_sha
    return pull.trial.merge if pull.trial is not None else None


def blockers(world: World, repo: Repository, item: Issue, login: str | None = None) -> list[Blocker]:
    """All that stands in the way of merging; with `login` less what an admin may pass by."""
    pull = item.pull
    assert pull is not None
    found = []
    if pull.draft:
        found.append(Blocker("draft", MESSAGES["draft"]))
    tried = trial(world, repo, item)
    if tried is None or tried.merge is None:
        found.append(Blocker("conflict", MESSAGES["conflict"]))
    rule = world.protection(repo, pull.base_ref)
    admin = login is not None and at_least(world.role(login, repo), "admin")
    if rule is None or (admin and not rule.enforce_admins):
        return found
    if rule.required_reviews:
        words = approvals(world, repo, item)
        if "CHANGES_REQUESTED" in words:
            found.append(Blocker("reviews", "Changes have been requested on this pull request"))
        approved = words.count("APPROVED")
        if approved < rule.required_reviews:
            plural = "review is" if rule.required_reviews == 1 else "reviews are"
            found.append(
                Blocker(
                    "reviews",
                    f"At least {rule.required_reviews} approving {plural} required by reviewers with write access.",
                )
            )
    for need in checks.requirements(repo, rule, pull.head_sha):
        if need.state == "missing":
            found.append(Blocker("check", f'Required status check "{need.context}" is expected.'))
        elif need.state == "pending":
            found.append(Blocker("check", f'Required status check "{need.context}" is in progress.'))
        elif need.state == "failed":
            found.append(Blocker("check", f'Required status check "{need.context}" is failing.'))
    if rule.strict and tried is not None and not world.store(repo).is_ancestor(tried.base, pull.head_sha):
        found.append(Blocker("behind", MESSAGES["behind"]))
    return found


def approvals(world: World, repo: Repository, item: Issue) -> list[str]:
    """The last opinion of each reviewer who may write: APPROVED or CHANGES_REQUESTED."""
    assert item.pull is not None
    last: dict[str, str] = {}
    for review in item.pull.reviews:
        if review.state in ("APPROVED", "CHANGES_REQUESTED", "DISMISSED") and at_least(
            world.role(review.user, repo), "write"
        ):
            last[review.user] = review.state
    return [state for state in last.values() if state != "DISMISSED"]


def mergeability(world: World, repo: Repository, item: Issue, *, asked: bool = False) -> tuple[bool | None, str]:
    """`mergeable` and `mergeable_state`, in the API's words; a lazy one only from the second time `asked`."""
    pull = item.pull
    assert pull is not None
    if item.state == "closed":
        return None, "unknown"
    tried = trial(world, repo, item)
    if tried is None:
        return None, "unknown"
    if not tried.announced:
        tried.announced = asked
        return None, "unknown"
    if tried.merge is None:
        return False, "dirty"
    if pull.draft:
        return True, "draft"
    kinds = {blocker.kind for blocker in blockers(world, repo, item)}
    if kinds - {"behind"}:
        return True, "blocked"
    if kinds:
        return True, "behind"
    runs = checks.latest_runs(repo, pull.head_sha)
    statuses = checks.latest_statuses(repo, pull.head_sha)
    bad = any(run.conclusion not in checks.GOOD for run in runs) or any(one.state != "success" for one in statuses)
    return True, "unstable" if bad else "clean"


def build(
    world: World, repo: Repository, item: Issue, *, method: str, login: str, title: str | None, message: str | None
) -> str | None:
    """The commit that the base branch gets: by merge, squash or rebase; None on conflict."""
    pull = item.pull
    assert pull is not None
    tried = trial(world, repo, item)
    if tried is None or tried.merge is None:
        return None
    store = world.store(repo)
    committer = web_flow(world)
    if method == "rebase":
        tip: str | None = tried.base
        for data in changes(world, repo, pull).commits:
            if len(data.parents) == 1 and tip is not None:
                tip = store.pick(data.sha, tip, committer)
        return tip
    tree = store.commit(tried.merge).tree
    if method == "merge":
        head = f"Merge pull request #{item.number} from {pull.head_owner}/{pull.head_ref}"
        text = f"{title or head}\n\n{message if message is not None else item.title}".rstrip()
        return store.write_commit(tree, [tried.base, pull.head_sha], text, signature(world, login), committer)
    author = signature(world, item.user)
    default_title, default_body = _squash_message(item, changes(world, repo, pull).commits, author)
    text = f"{title or default_title}\n\n{message if message is not None else default_body}".rstrip()
    return store.write_commit(tree, [tried.base], text, author, committer)


def _squash_message(item: Issue, commits: tuple[CommitData, ...], author: Signature) -> tuple[str, str]:
    if len(commits) == 1:
        subject, _, body = commits[0].message.partition("\n")
        body = body.strip()
        title = f"{subject} (#{item.number})"
    else:
        title = f"{item.title} (#{item.number})"
        body = "\n\n".join(f"* {data.message.strip()}" for data in commits)
    others = dict.fromkeys(
        f"Co-authored-by: {data.author.name} <{data.author.email}>"
        for data in commits
        if data.author.email != author.email
    )
    missing = [line for line in others if line not in body]
    return title, "\n\n".join(part for part in (body, "\n".join(missing)) if part)
