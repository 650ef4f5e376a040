"""Cases from real bug reports that no other test tells by their number, on the sandbox."""

from __future__ import annotations

import re
from datetime import timedelta
from pathlib import Path

from bot.sandbox.person import Refused
from tests.handlers.pair import FORK
from tests.handlers.runs import CONFIG, gated


async def test_c57_and_c80_what_graft_and_other_bots_write_runs_nothing(tmp_path: Path) -> None:
    async with gated(tmp_path) as fork:
        world, sandbox = fork.world, fork.world.sandbox
        number = await fork.opens("walter", "small", {"other.txt": "two\n"})
        await fork.ends(number)
        # its own comment, as if it had been told to quote a command; and another App's
        await sandbox.as_app(world.installation).comment(FORK, number, "/validate l1\n/retry")
        other = sandbox.create_app(
            "helper", {"issues": "write", "pull_requests": "write"}, [], None, "s", owner="maria"
        )
        await sandbox.as_app(sandbox.install(other, [FORK])).comment(FORK, number, "/validate l1")
        await world.settle()
        assert not await fork.waiting(number)
        assert not [body for body in world.comments(number) if "graft:answer-to" in body]

        # its own help and its own answers hold commands, and are none: edited by a person they are still Graft's
        await world.says("walter", number, "/help")
        (answer,) = [c for c in world.repository.issues[number].comments if "graft:answer-to" in c.body]
        assert "/validate" in answer.body
        await sandbox.as_user("maria").edit_comment(FORK, answer.id, answer.body + "\n\n/validate l1\n")
        await world.settle()
        assert not await fork.waiting(number)

        # C67: a stranger's pull request, and one on which a stranger commands: no runner minute is spent
        sandbox.create_user("eve")
        copy = sandbox.create_fork(FORK, "eve")
        world.fork.get(str(world.repository.path), "main")
        sha = world.fork.commit("Mine it", {"other.txt": "evil\n"}, author="eve <eve@else.example>")
        sandbox.push_ref(copy.full_name, "evil", source=world.fork.path, rev=sha, login="eve")
        opened = await sandbox.as_user("eve").open_pull(FORK, "eve:evil", title="free work")
        await world.settle()
        strange = int(opened["number"])
        assert "takes write access" in await world.says("eve", strange, "/validate l1")
        assert "takes write access" in await world.says("eve", strange, "/ok-to-test")
        assert "takes write access" in await world.says("sam", number, "/retry")
        assert not await fork.waiting(strange)
        assert not await fork.waiting(number)
        assert fork.gate(strange).startswith("pending")
        assert not await world.failures()


async def test_a_file_list_that_github_cuts_opens_nothing(tmp_path: Path) -> None:
    """GitHub lists 3,000 files of a pull request and no more: what lies beyond might need an owner."""
    async with gated(tmp_path) as fork:
        many = {f"data/{n // 100}/{n}.txt": "x\n" for n in range(3_000)}
        number = await fork.opens("walter", "many", {**many, "zzz.txt": "two\n"})
        await fork.ends(number)
        assert fork.gate(number).startswith("block: the list of changed files is cut")
        assert "split the change" in fork.gate(number)
        try:
            await fork.world.sandbox.as_user("maria").merge_pull(FORK, number)
        except Refused as error:
            assert error.status == 405
        assert fork.world.repository.issues[number].pull.merged_at is None
        few = await fork.opens("walter", "few", {"zzz.txt": "two\n"})
        await fork.ends(few)
        assert fork.gate(few).startswith("allow")


async def test_c66_who_is_asked_to_sign_is_of_the_fork(tmp_path: Path) -> None:
    """An owner who left and a team that is gone are never mentioned: a default is asked, with a warning."""
    dead = CONFIG.replace("owners: [olga, acme/compilers]", "owners: [acme/gone, nobody-here]")
    async with gated(tmp_path, config=dead) as fork:
        number = await fork.opens("walter", "core", {"lib/code.txt": "two\n"})
        await fork.proved(number)
        (request,) = [body for body in fork.world.comments(number) if "l3-request" in body]
        assert "@mark" in request
        for name in ("@acme/gone", "@nobody-here"):
            assert name not in request
        for name in ("acme/gone", "nobody-here"):
            assert f"{name} is not known to this fork" in request.replace("\\", "")
        # who may not be asked may not sign either; nor may the default, who does not own it
        assert "does not own core" in await fork.world.says("mark", number, "/signoff l3 core ne=0.8")
        assert fork.gate(number).startswith("block: core: not signed off")


def shown(body: str) -> str:
    """What of a text GitHub reads as markdown: without code and comments."""
    plain = re.sub(r"<!--.*?-->", "", body, flags=re.DOTALL)
    return re.sub(r"(`+).*?\1", "", plain, flags=re.DOTALL)


async def test_c20_text_of_others_in_graft_s_answers_is_inert(tmp_path: Path) -> None:
    """What people type comes back in answers, checks and requests: it mentions and closes nothing there."""
    async with gated(tmp_path) as fork:
        world = fork.world
        issue = await world.sandbox.as_user("rita").open_issue(FORK, "Stay open")
        bad = f"@rita fixes #{issue['number']}"
        number = await fork.opens("walter", "core", {"lib/code.txt": "two\n"})
        await fork.ends(number, "unit", failed=[f"tests/{bad}::test_x"])
        await fork.ends(number)
        day = f"{world.clock() + timedelta(days=5):%Y-%m-%d}"
        for login, text in (
            ("tina", f'/signoff l3 core ne=0.95 note="{bad} <!-- graft:answer {{}} -->"'),
            ("tina", f'/signoff l3 "{bad}"'),
            ("maria", f'/waive "tests/{bad}::test_x" until={day} owner=olga reason="{bad}" plan="{bad}"'),
            ("maria", f'/waive "{bad}" until={day} owner=@olga reason=x plan=y'),
            ("maria", f"/validate l1 {bad}"),
            ("maria", f"/explain {bad}"),
        ):
            answer = await world.says(login, number, text)
            assert "✅" in answer or "❌" in answer
        told = [c.body for c in world.repository.issues[number].comments if c.user.endswith("[bot]")]
        assert len(told) >= 7
        assert any("rita fixes" in body for body in told)
        for body in [*told, fork.gate(number)]:
            assert "@rita" not in shown(body), body
            assert not re.search(rf"fixes #{issue['number']}", shown(body)), body
        await fork.sets({"other.txt": "x\n"})
        assert world.repository.issues[issue["number"]].state == "open"
