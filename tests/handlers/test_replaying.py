"""The past is judged by what landed, and decided without it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path

import pytest
from typer.testing import CliRunner

from bot.cli import build
from bot.core.risk import Trial
from bot.core.types import Verdict
from handlers.replaying import Decided, Past, Question, decide, judge
from tests.handlers.past import Joined

CODE = "int lower(int value) {\n  return value;\n}\n\n\n\nint other() {\n  return 1;\n}\n"


class Story(Joined):
    """Three picks: landed as they are, landed with the fork's own code adapted, resolved by hand."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self.picks: list[dict[str, str]] = []
        self.commit("upstream", "Begin", {"lib/a.cpp": CODE, "note.txt": "one\n"})
        self.fork_off()
        self.commit(
            "fork", "Own kernels", {"tlx/own.cpp": "int mine() {\n  return lower(1);\n}\n", "note.txt": "mine\n"}
        )
        plain = self.commit("upstream", "Far away (#11)", {"far.txt": "far\n"})
        renamed = self.commit("upstream", "Rename lower (#12)", {"lib/a.cpp": CODE.replace("lower", "lowerTile")})
        clash = self.commit("upstream", "Another note (#13)", {"note.txt": "two\n"})
        self.pick(plain, "Pick far away")
        self.pick(renamed, "Pick rename", {"tlx/own.cpp": "int mine() {\n  return lowerTile(1);\n}\n"})
        self.pick(clash, "Pick note", {"note.txt": "mine, two\n"}, landed="resolved")

    def pick(self, upstream: str, message: str, files: dict[str, str] | None = None, *, landed: str = "clean") -> None:
        parent = self.git.resolve("fork") or ""
        fork = self.land(upstream, message, dict(files or {}))
        self.picks.append({"upstream": upstream, "fork_parent": parent, "fork": fork, "landed": landed})


@pytest.fixture(scope="module")
def story(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Story]:
    made = Story(tmp_path_factory.mktemp("story") / "joined.git")
    yield made
    made.git.close()


def decided(story: Story) -> list[Decided]:
    past = Past(story.git, upstream="upstream", fork="fork")
    return list(decide(story.git, [Question(p["upstream"], p["fork_parent"]) for p in story.picks], past=past))


def test_each_pick_is_decided_and_judged(story: Story) -> None:
    found = decided(story)
    judged = [judge(story.git, d, p["fork"]) for d, p in zip(found, story.picks, strict=True)]
    assert [j.identical for j in judged] == [True, False, None]
    assert [d.verdict for d in found][::2] == [Verdict.SAFE, Verdict.CONFLICT]
    assert judged[1].differs == ("tlx/own.cpp",)
    assert "used_gone" in [s.name for s in found[1].signals]
    assert found[1].chance > found[0].chance
    assert [d.pr for d in found] == [11, 12, 13]


def test_a_question_holds_no_answer() -> None:
    assert {field.name for field in fields(Question)} == {"upstream", "fork_parent"}


def test_what_came_later_changes_no_decision(story: Story) -> None:
    before = decided(story)
    later = story.commit("fork", "Later", {"later.cpp": "int later() { return lowerTile(3); }\n"})
    assert decided(story) == before
    story.git.set_ref("refs/heads/fork", story.git.commit(later).parents[0])


def test_a_revert_takes_back_what_is_there(tmp_path: Path) -> None:
    joined = Joined(tmp_path / "joined.git")
    joined.commit("upstream", "Begin", {"a.txt": "a\n"})
    joined.fork_off()
    bad = joined.commit("upstream", "Bad idea (#21)", {"bad.txt": "bad\n"})
    revert = joined.commit("upstream", 'Revert "Bad idea" (#22)', {"bad.txt": None})
    without = joined.commit("fork", "Own", {"own.txt": "own\n"})
    landed = joined.land(bad, "Pick bad")
    past = Past(joined.git, upstream="upstream", fork="fork")
    facts = past.revert_at(revert, without, Trial("conflict", ("bad.txt",)))
    assert facts is not None
    assert facts.unlanded == (bad,)
    after = past.revert_at(revert, landed, Trial("conflict", ("bad.txt",)))
    assert after is not None
    assert after.unlanded == ()
    assert past.revert_at(bad, without, Trial("clean")) is None


def run(*arguments: str) -> tuple[int, str, str]:
    result = CliRunner().invoke(build(["replay"]), ["replay", *arguments])
    return result.exit_code, result.stdout, result.stderr


def test_the_command_prints_what_came_of_each(story: Story, tmp_path: Path) -> None:
    file = tmp_path / "picks.json"
    file.write_text(json.dumps({"picks": story.picks}))
    sides = ("--repository", str(story.git.path), "--picks", str(file), "--cache", str(tmp_path / "kept.db"))
    code, out, _ = run(*sides, "--json")
    assert code == 0
    report = json.loads(out)
    assert [set(p) >= {"upstream", "pr", "verdict", "identical", "reasons"} for p in report["picks"]] == [True] * 3
    assert [p["identical"] for p in report["picks"]] == [True, False, None]
    assert report["summary"]["shares"]["conflicts_foreseen"] == 1
    assert run(*sides, "--json")[1] == out
    code, table, _ = run(*sides, "--fit")
    assert code == 0
    assert "identical without a person" in table
    assert '"weights"' in table


def test_branches_need_not_be_there(story: Story, tmp_path: Path) -> None:
    file = tmp_path / "picks.json"
    file.write_text(json.dumps({"picks": story.picks[:1]}))
    code, out, _ = run(
        "--repository", str(story.git.path), "--picks", str(file), "--upstream", "none", "--fork", "nor", "--json"
    )
    assert code == 0
    assert json.loads(out)["picks"][0]["identical"] is True


def test_a_day_is_planned_and_held_against_what_landed(story: Story) -> None:
    day = "2023-11-14"  # of the first commits
    code, out, err = run("--repository", str(story.git.path), "--at", day, "--json")
    assert code == 0, err
    report = json.loads(out)
    assert report["summary"]["commits"] == len(report["picks"])


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ("{", "picks.json"),
        ('{"picks": []}', "picks"),
        ('{"picks": [{"upstream": "abc"}]}', "full hashes"),
    ],
)
def test_a_file_that_cannot_be_read_is_told(story: Story, tmp_path: Path, content: str, says: str) -> None:
    file = tmp_path / "picks.json"
    file.write_text(content)
    code, _, err = run("--repository", str(story.git.path), "--picks", str(file))
    assert code == 2
    assert says in err


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ((), "--picks"),
        (("--at", "yesterday"), "YYYY-MM-DD"),
        (("--at", "1999-01-01"), "before that day"),
        (("--picks", "/nowhere.json"), "/nowhere.json"),
    ],
)
def test_a_wrong_call_is_told(story: Story, arguments: tuple[str, ...], says: str) -> None:
    code, _, err = run("--repository", str(story.git.path), *arguments)
    assert code == 2
    assert says in err
    assert run("--repository", "/nowhere", *arguments)[0] == 2
