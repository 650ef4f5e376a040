"""`graft ledger` on real repositories."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest
from typer.main import get_command
from typer.testing import CliRunner

from bot.cli import build
from bot.cli.ledger import app

RUNNER = CliRunner()


class Repo:
    """A repository with a work tree; each commit a second later than the one before."""

    def __init__(self, path: Path, clone_of: Path | None = None) -> None:
        self.path, self.time = path, 1_700_000_000
        self.git("clone", "-q", str(clone_of), str(path), at=path.parent) if clone_of else self.git(
            "init", "-q", "-b", "main", str(path), at=path.parent
        )

    def git(self, *arguments: str, at: Path | None = None) -> str:
        day = f"@{self.__dict__.get('time', 0)} +0000"
        identity = {f"GIT_{who}_{what}": value for who in ("AUTHOR", "COMMITTER")
                    for what, value in (("NAME", "Ann"), ("EMAIL", "a@x.org"), ("DATE", day))}  # fmt: skip
        done = subprocess.run(
            ["git", *arguments],
            cwd=at or self.path,
            env=os.environ | identity,
            check=True,
            capture_output=True,
            text=True,
        )
        return done.stdout.strip()

    def commit(self, name: str, message: str, text: str = "x\n") -> str:
        self.time += 86400
        (self.path / name).write_text(text)
        self.git("add", name)
        self.git("commit", "-q", "-m", message)
        return self.git("rev-parse", "HEAD")

    def pick(self, sha: str) -> str:
        self.time += 60
        self.git("cherry-pick", "-x", sha)
        return self.git("rev-parse", "HEAD")


@pytest.fixture
def pair(tmp_path: Path) -> tuple[Repo, Repo, list[str]]:
    upstream = Repo(tmp_path / "upstream")
    upstream.commit("readme", "Start")
    fork = Repo(tmp_path / "fork", upstream.path)
    shas = [upstream.commit(f"f{n}", f"Change {n} (#{n})") for n in range(1, 6)]
    fork.time = upstream.time
    fork.git("fetch", "-q", "origin")
    return upstream, fork, shas


def call(command: str, upstream: Path, fork: Path, *more: str) -> tuple[int, str, str]:
    result = RUNNER.invoke(app, [command, "--upstream", str(upstream), "--fork", str(fork), *more])
    return result.exit_code, result.stdout, result.stderr


def test_show(pair: tuple[Repo, Repo, list[str]]) -> None:
    upstream, fork, shas = pair
    fork.pick(shas[0])
    fork.pick(shas[1])
    fork.pick(shas[4])
    fork.commit("note", f"Leave one\n\nGraft-Deferred: {shas[2][:12]} owner=octocat needs LLVM")
    code, out, _ = call("show", upstream.path, fork.path, "--now", str(upstream.time))
    assert code == 0
    assert "5 upstream commits: 3 picked, 1 deferred, 1 pending" in out
    assert f"Frontier              {shas[2]}" in out
    assert "Days Behind Upstream  2.0" in out
    assert "octocat" in out
    code, out, _ = call("show", upstream.path, fork.path, "--json", "--now", str(upstream.time))
    ledger = json.loads(out)
    assert ledger["pin"] == shas[1]
    assert ledger["metrics"] == {"days_behind": 2.0, "backlog": 1, "stale_since": None}
    assert [entry["disposition"] for entry in ledger["entries"]] == [
        "picked",
        "picked",
        "deferred",
        "pending",
        "picked",
    ]
    assert ledger["holes"][0]["age_days"] == 2.0


def test_markers_come_from_the_forks_file_and_from_the_command_line(pair: tuple[Repo, Repo, list[str]]) -> None:
    upstream, fork, shas = pair
    fork.commit("a", f"Old way\n\nTaken: {shas[0]}\nOlder: {shas[1]}")
    (fork.path / ".github").mkdir()
    fork.commit(
        ".github/graft.yml",
        "Set up",
        "upstream: {repository: o/r}\ningest: {picked_markers: ['Taken: (?P<sha>[0-9a-f]{40})']}\n",
    )
    code, out, _ = call("show", upstream.path, fork.path)
    assert (code, "1 picked" in out) == (0, True)
    code, out, _ = call("show", upstream.path, fork.path, "--marker", "Older: (?P<sha>[0-9a-f]{40})")
    assert (code, "2 picked" in out) == (0, True)
    code, _, err = call("show", upstream.path, fork.path, "--marker", "Older: [0-9a-f]{40}")
    assert code == 2
    assert "no group named sha" in err


def test_verify_finds_nothing_in_a_sound_history(pair: tuple[Repo, Repo, list[str]], tmp_path: Path) -> None:
    upstream, fork, shas = pair
    fork.pick(shas[0])
    code, out, _ = call("show", upstream.path, fork.path, "--json")
    earlier = tmp_path / "earlier.json"
    earlier.write_text(out)
    fork.git("revert", "--no-edit", "HEAD")
    code, out, _ = call("verify", upstream.path, fork.path, "--against", str(earlier))
    assert (code, out) == (0, "0 found in 5 upstream commits\n")


def test_verify_says_what_cant_be_right(pair: tuple[Repo, Repo, list[str]], tmp_path: Path) -> None:
    upstream, fork, shas = pair
    first = fork.pick(shas[0])
    code, out, _ = call("show", upstream.path, fork.path, "--json")
    earlier = tmp_path / "earlier.json"
    earlier.write_text(out)
    fork.git("commit", "--amend", "-q", "-m", "Change 1, trailer dropped")
    fork.commit("b", f"Twice\n\n(cherry picked from commit {shas[1]})")
    fork.commit("c", f"Twice\n\n(cherry picked from commit {shas[1]})\n(cherry picked from commit {first})")
    fork.commit("d", "Revert that thing")
    code, out, _ = call("verify", upstream.path, fork.path, "--against", str(earlier), "--json")
    problems = json.loads(out)["problems"]
    assert code == 1
    assert len(problems) == 6
    for part in (
        f"{shas[1][:12]} is carried twice",
        f"records {first[:12]}, which is no upstream commit",
        "names nothing that can be found",
        f"{shas[0][:12]} was picked and is pending",
        f"the pin moved back from {shas[0][:12]} to none",
    ):
        assert any(part in problem for problem in problems), part


@pytest.mark.parametrize(
    ("more", "why"),
    [
        (["--fork-ref", "nope"], "has no commit 'nope'"),
        (["--config", "missing.yml"], "missing.yml"),
    ],
)
def test_bad_input_is_named(pair: tuple[Repo, Repo, list[str]], more: list[str], why: str) -> None:
    code, _, err = call("show", pair[0].path, pair[1].path, *more)
    assert code == 2
    assert why in err


def test_paths_that_are_no_repository(pair: tuple[Repo, Repo, list[str]], tmp_path: Path) -> None:
    code, _, err = call("show", tmp_path, pair[1].path)
    assert (code, "give --upstream the path of a clone" in err) == (2, True)
    shallow = tmp_path / "shallow"
    pair[0].git("clone", "-q", "--depth", "1", f"file://{pair[0].path}", str(shallow), at=tmp_path)
    code, _, err = call("show", shallow, pair[1].path)
    assert (code, "git fetch --unshallow" in err) == (2, True)
    linked = tmp_path / "linked"
    pair[1].git("worktree", "add", "-q", "--detach", str(linked))
    assert call("show", pair[0].path, linked)[0] == 0


def test_plan_and_ledger_ask_for_the_two_sides_in_the_same_words() -> None:
    commands = [get_command(build(arguments)) for arguments in (["plan"], ["ledger"])]
    plan, ledger = (graft.commands[name] for graft, name in zip(commands, ("plan", "ledger"), strict=True))  # type: ignore[attr-defined]
    told = [
        {option.name: (option.opts, option.help) for option in command.params}
        for command in (plan, ledger.commands["show"], ledger.commands["verify"])
    ]
    for name in ("upstream", "fork", "upstream_ref", "fork_ref", "config", "marker"):
        assert told[0][name] == told[1][name] == told[2][name]


def test_a_side_may_be_a_url(
    pair: tuple[Repo, Repo, list[str]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    sides = ("--upstream", f"file://{pair[0].path}", "--fork", str(pair[1].path), "--json")
    done = RUNNER.invoke(app, ["show", *sides])
    assert done.exit_code == 0, done.output
    assert len(json.loads(done.stdout)["entries"]) == len(pair[2])
