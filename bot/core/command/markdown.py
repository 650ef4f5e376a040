"""Which lines of a comment are spoken: not quoted, fenced, indented, commented out or within a code span.

Two readers must agree: one of lines and spans, made for commands, and CommonMark's own blocks. Where one of them sees
code or a comment, nothing is run: which of them GitHub agrees with does not matter then.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import defaultdict

from markdown_it import MarkdownIt

_BREAK = re.compile(r"\r\n|\n|\r")
_FENCE = re.compile(r"([ \t]*)(`{3,}|~{3,})(.*)", re.DOTALL)
_ALONE = re.compile(r"\s*$| {0,3}(>|#{1,6}(\s|$)|(-\s*){3,}$|(\*\s*){3,}$|(_\s*){3,}$)")
_ITEM = re.compile(r"[ \t]*([-*+]|\d{1,9}[.)])(\s|$)")
_HTML = re.compile(r" {0,3}<(!--|(pre|script|style|textarea)(?=[\s>]|$))", re.IGNORECASE)
_TAG_BLOCK = re.compile(
    r" {0,3}</?(address|article|aside|base|basefont|blockquote|body|caption|center|col|colgroup|dd|details|dialog|dir"
    r"|div|dl|dt|fieldset|figcaption|figure|footer|form|frame|frameset|h[1-6]|head|header|hr|html|iframe|legend|li|link"
    r"|main|menu|menuitem|nav|noframes|ol|optgroup|option|p|param|search|section|summary|table|tbody|td|tfoot|th|thead|title"
    r"|tr|track|ul)(\s|/?>|$)",
    re.IGNORECASE,
)
_PRE = re.compile(r"<(pre|script|style|textarea|code|samp)(?=[\s>]|$)", re.IGNORECASE)
_TICKS = re.compile(r"`+")
_LOWER = {code: code + 32 for code in range(65, 91)}  # str.lower would move the places of what follows
_RAW = re.compile(r"\s*<(!--|(pre|script|style|textarea)(?=[\s>]|$))", re.IGNORECASE)
_BLOCKS = MarkdownIt("commonmark")
_BLOCKS.core.ruler.enableOnly(["normalize", "block"])  # what stands within a line is the reader's
_OPENERS = re.compile(r"\\.|`+|<", re.DOTALL)


def spoken(body: str) -> list[tuple[int, str]]:
    """The lines (number from 1, text without its break) whose first character is the writer's own plain text."""
    text = body.removeprefix("\ufeff")
    quiet = _quiet(text)
    return [(number, line) for number, line in _Reader(_BREAK.split(text)).read() if number not in quiet]


def _quiet(text: str) -> set[int]:
    """The lines (from 1) of CommonMark's code blocks, comments and preformatted elements."""
    tokens = _BLOCKS.parse(text)
    quiet: set[int] = set()
    for token in tokens:
        raw = token.type == "html_block" and _RAW.match(token.content)
        if token.map and (raw or token.type in ("fence", "code_block")):
            quiet |= set(range(token.map[0] + 1, token.map[1] + 1))
    return quiet


def fenced(body: str, info: str) -> list[str]:
    """The contents of the fences whose first word after the opening marks is `info`, in order."""
    reader = _Reader(_BREAK.split(body.removeprefix("\ufeff")))
    reader.read()
    found = []
    for first, after in reader.blocks:
        opening = reader.fences[first]
        if opening is None or opening[3].split()[:1] != [info]:
            continue
        last = reader.fences[after - 1]
        closed = after - 1 > first and last is not None and _closes(last, opening[2], reader.inside[first])
        found.append("\n".join(reader.lines[first + 1 : after - closed]))
    return found


class _Reader:
    """One pass over the lines, block by block; `hidden` collects stretches of characters that are not spoken."""

    def __init__(self, lines: list[str]) -> None:
        self.lines = lines
        self.text = "\n".join(lines)
        self.lowered = self.text.translate(_LOWER)
        self.starts = [0]
        for line in lines:
            self.starts.append(self.starts[-1] + len(line) + 1)
        self.fences = [_FENCE.fullmatch(line) for line in lines]
        self.inside = _item_columns(lines)
        self.hidden: list[tuple[int, int]] = []
        self.blocks: list[tuple[int, int]] = []

    def read(self) -> list[tuple[int, str]]:
        line, place = 0, 0
        while line < len(self.lines):
            place = max(place, self.starts[line])
            after = self.fence_end(line) if place == self.starts[line] else None
            if after is not None:
                self.hidden.append((place, self.starts[after]))
                self.blocks.append((line, after))
                line = after
                continue
            ends = self.blank if _TAG_BLOCK.match(self.lines[line]) else self.starts_block
            stop = line + 1
            while stop < len(self.lines) and not ends(stop):
                stop += 1
            place = self.block(place, self.starts[stop])
            line = max(stop, bisect_left(self.starts, place + 1) - 1)
        return self.shown()

    def shown(self) -> list[tuple[int, str]]:
        kept, at, until = [], 0, -1
        hidden = sorted(self.hidden)
        for number, line in enumerate(self.lines):
            start = self.starts[number]
            while at < len(hidden) and hidden[at][0] <= start:
                until = max(until, hidden[at][1])
                at += 1
            if start >= until and not line.startswith((" ", "\t", ">")):
                kept.append((number + 1, line))
        return kept

    def blank(self, line: int) -> bool:
        """True where a line ends a block of HTML, in which Markdown is not read."""
        return not self.lines[line].strip(" \t")

    def starts_block(self, line: int) -> bool:
        """True where no code span can reach from the line before into this one."""
        here, before = self.lines[line], self.lines[line - 1]
        alone = _ALONE.match(here) or _ALONE.match(before) or _ITEM.match(here) or _HTML.match(here)
        alone = alone or _TAG_BLOCK.match(here)
        return alone is not None or self.fence_end(line) is not None

    def fence_end(self, line: int) -> int | None:
        """The line after the fence that opens here, or None where none opens.

        Within a list's item a fence is told from the item's column, and text further left ends both.
        """
        match = self.fences[line]
        if match is None or (match[2][0] == "`" and "`" in match[3]):
            return None
        column = self.inside[line]
        if _indent(self.lines[line]) - column > 3:
            return None
        for at in range(line + 1, len(self.lines)):
            if self.lines[at].strip(" \t") and _indent(self.lines[at]) < column:
                return at
            other = self.fences[at]
            if other and _closes(other, match[2], column):
                return at + 1
        return len(self.lines)

    def block(self, place: int, end: int) -> int:
        """Hide what of the block is no plain text; returns where reading goes on (past `end` if a comment does)."""
        runs: dict[int, list[int]] = defaultdict(list)
        for ticks in _TICKS.finditer(self.text, place, end):
            runs[len(ticks[0])].append(ticks.start())
        while place < end:
            opener = _OPENERS.search(self.text, place, end)
            if opener is None:
                break
            place = opener.end()
            if opener[0][0] == "`":
                later = runs[len(opener[0])]
                found = bisect_left(later, place)
                if found < len(later):
                    place = later[found] + len(opener[0])
                    self.hidden.append((opener.start(), place))
            elif opener[0] == "<":
                place = max(place, self.element(opener.start(), end))
        return max(place, end)

    def element(self, first: int, end: int) -> int:
        """Hide a comment or preformatted element that opens here; returns where reading goes on.

        At a line's start it is a block, which runs to its own end, or to that of all. Elsewhere Markdown lets a
        comment end with its paragraph: what it would hide beyond is hidden as well, and read all the same.
        """
        if self.text.startswith("<!--", first):
            mark, heavy = "-->", True
        elif element := _PRE.match(self.text, first):
            mark, heavy = f"</{element[1].lower()}>", element[1].lower() not in ("code", "samp")
        else:
            return first
        found = self.lowered.find(mark, first + 4)
        last = found + len(mark) if found >= 0 else len(self.text) + 1
        begins = heavy and _HTML.match(self.text, self.text.rfind("\n", 0, first) + 1, first + 12)
        if begins and begins.end() > first:
            self.hidden.append((first, last))
            return last
        if found >= 0:
            self.hidden.append((first, last))
        return last if mark == "-->" and last <= end else first


def _indent(line: str) -> int:
    """The column of the first character that is no space or tab; tabs stop at each fourth column."""
    return len(line[: len(line) - len(line.lstrip(" \t"))].expandtabs(4))


def _closes(fence: re.Match[str], opened: str, column: int) -> bool:
    """True where this line closes a fence: as long, nothing after it, and not indented like code."""
    told = fence[2][0] == opened[0] and len(fence[2]) >= len(opened) and not fence[3].strip(" \t")
    return told and _indent(fence[0]) - column < 4


def _item_columns(lines: list[str]) -> list[int]:
    """For each line the column at which the content of the innermost list item around it begins; 0 outside of lists.

    A line further left ends the item, unless it goes on with a paragraph.
    """
    columns, open_items, paragraph = [], [0], False
    for line in lines:
        starts = _ALONE.match(line) or _ITEM.match(line) or _HTML.match(line) or _FENCE.fullmatch(line)
        if line.strip(" \t") and not (paragraph and starts is None):
            while _indent(line) < open_items[-1]:
                open_items.pop()
        columns.append(open_items[-1])
        item = _ITEM.match(line)
        if item and _indent(line) - open_items[-1] < 4:
            rest = line[item.end(1) :]
            pad = _indent(rest) if rest.strip() and _indent(rest) < 5 else 1
            open_items.append(len(line[: item.end(1)].expandtabs(4)) + pad)
        paragraph = starts is None or (item is not None and bool(line[item.end(1) :].strip()))
    return columns
