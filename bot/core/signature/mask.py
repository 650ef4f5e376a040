"""What differs between two reports of one cause, replaced: addresses, numbers, paths, hosts, shapes, hashes, times."""

from __future__ import annotations

import re

LONGEST = 300

_STEPS: tuple[tuple[re.Pattern[str], str], ...] = (
    (re.compile(r"[‘’`´]"), "'"),
    (re.compile(r"[“”]"), '"'),
    (re.compile(r"\b[a-z][a-z0-9+.-]{1,9}://[^\s'\"<>)\]]+"), "<url>"),
    (re.compile(r"\b(?:[0-9a-f]{4}:)[0-9a-f]{2}:[0-9a-f]{2}(?:\.[0-9a-f])?\b"), "#"),
    (re.compile(r"\b0[xX][0-9a-fA-F]+\b"), "#"),
    (re.compile(r"(?<![0-9a-zA-Z])[0-9a-fA-F]{8}-(?:[0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}(?![0-9a-zA-Z])"), "<id>"),
    (re.compile(r"\bsha256:[0-9a-f]{12,64}\b"), "<id>"),
    (re.compile(r"\b(?=[0-9a-f]{0,63}[0-9])(?=[0-9a-f]{0,63}[a-f])[0-9a-f]{7,64}\b"), "<id>"),
)
# a path: its last name is kept, a name made up at random is not
_PATH = re.compile(r"(?<![\w.@+~/\\-])(?:[A-Za-z]:[/\\])?(?:(?:[\w.@+~=-]|<id>)*[/\\])+(?:[\w.@+~=-]|<id>)*")
_RANDOM = re.compile(
    r"^(?:tmp[\w-]{4,}?|file(?=\w*[A-Z0-9])\w{6}|c[a-z2-7]{6,60}|cc[A-Za-z0-9]{6}"
    r"|(?=\w*\d)[a-z0-9_]{8})(?P<suffix>(?:\.[A-Za-z]\w*)*)$"
)
_BARE_TMP = re.compile(r"\btmp(?=\w*[\d_])\w{6,10}\b")
_PLACE = re.compile(r"(?<=[\w>\")]):\d+(?::\d+)?(?=[\s:,;.)\]'\"]|$)")
_LATER: tuple[tuple[re.Pattern[str], str], ...] = (
    (re.compile(r"\b(test\w*)\[[^\]\s]*\]*"), r"\1"),
    (re.compile(r"\b[\w-]+(?:\.[\w-]+)*\.(?:com|net|org|io|internal|local|dev|ai|corp|cloud)\b(?::\d+)?"), "<host>"),
    (
        re.compile(r"\b(host|node|runner|agent|pod|machine|worker)([-_ ])'?(?=[\w.-]{0,80}\d)[\w.-]+'?", re.I),
        r"\1\2<host>",
    ),
    (re.compile(r"\bip-\d+(?:-\d+)+\b"), "<host>"),
    (re.compile(r"\bgw\d+\b"), "gw#"),
    (re.compile(r"\b(sm|compute|gfx)_?\d+[a-z]?\b"), r"\1#"),
    (re.compile(r"\bpython[ -]?\d[\d.]*t?\b", re.I), "python#"),
    (re.compile(r"(?<![\w.])(?:\d+x)+(?=[a-z!])"), "*x"),
    (re.compile(r"%[A-Za-z_]*\d+\b"), "%#"),
    (re.compile(r"#([a-z_]+?)\d+\b"), r"#\1"),
    (re.compile(r"(?<![A-Za-z_$0-9])[-+]?\d[\d_]*(?:\.\d+)*(?:[eE][-+]?\d+)?"), "#"),
    (re.compile(r"(?:_\d+)+\b"), "_#"),
    (re.compile(r"\b(?:nan|inf)\b"), "#"),
    (re.compile(r"#(?:\s?[,:./x*-]\s?[-+]?#(?![a-z]))+"), "#"),
    (re.compile(r"\(#,?\)|\[#,?\]"), "#"),
    (re.compile(r"\s+"), " "),
)
_WORD = re.compile(r"[A-Za-z]{3,}")
_MARK = re.compile(r"<(?:url|id|host|tmp)>")


def _last(found: re.Match[str]) -> str:
    parts = re.split(r"[/\\]", found.group().rstrip("/\\"))
    name = parts[-1]
    made_up = _RANDOM.match(name)
    if made_up and (name.startswith("tmp") or any(part in ("tmp", "T") or "inductor" in part for part in parts)):
        return "<tmp>" + made_up["suffix"]
    return name


def mask(text: str) -> str:
    """`text` as one line of what stays the same, at most `LONGEST` characters."""
    for pattern, put in _STEPS:
        text = pattern.sub(put, text)
    text = _PATH.sub(_last, text)
    text = _BARE_TMP.sub("<tmp>", text)
    text = _PLACE.sub("", text)
    for pattern, put in _LATER:
        text = pattern.sub(put, text)
    return text.strip(" \t.,;:!-")[:LONGEST]


def words(masked: str) -> int:
    """How many words a masked text has: with few of them it says little of its cause."""
    return len(_WORD.findall(_MARK.sub("", masked)))
