r"""RE2's syntax, parsed into a program for the matcher in `regex`.

    a(b|c)*   →   0: Chars a   1: Split 2 6   2: Split 3 4   3: Chars b …

Backreferences and lookaround are not part of RE2 and are refused, as are programs of more than
`MAX_PROGRAM` instructions (`(a{1000}){1000}`).
"""

from __future__ import annotations

import unicodedata
from collections.abc import Callable
from dataclasses import dataclass

from sardonyx.errors import RunError

__all__ = ["Assertion", "Characters", "Jump", "Program", "Split", "parse_pattern"]

MAX_PROGRAM = 20_000
MAX_REPEAT = 1000  # RE2's own limit
MAX_DEPTH = 200

Test = Callable[[str], bool]


@dataclass(frozen=True, slots=True)
class Characters:
    """Takes one character that passes the test."""

    test: Test


@dataclass(frozen=True, slots=True)
class Split:
    """Goes on at both places, given relative to here."""

    first: int
    second: int


@dataclass(frozen=True, slots=True)
class Jump:
    """Goes on elsewhere, given relative to here."""

    to: int


@dataclass(frozen=True, slots=True)
class Assertion:
    r"""Goes on if the place is right: one of `^ $ A z b B`, `m^` and `m$` for lines."""

    kind: str


Program = list["Characters | Split | Jump | Assertion"]

_PERL: dict[str, Test] = {
    "d": lambda c: "0" <= c <= "9",
    "w": lambda c: c.isascii() and (c.isalnum() or c == "_"),
    "s": lambda c: c in "\t\n\f\r ",
}
_ESCAPES = {"a": "\a", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}
_POSIX: dict[str, Test] = {
    "alnum": lambda c: c.isascii() and c.isalnum(),
    "alpha": lambda c: c.isascii() and c.isalpha(),
    "ascii": lambda c: c.isascii(),
    "blank": lambda c: c in "\t ",
    "cntrl": lambda c: c < " " or c == "\x7f",
    "digit": lambda c: "0" <= c <= "9",
    "graph": lambda c: "!" <= c <= "~",
    "lower": lambda c: "a" <= c <= "z",
    "print": lambda c: " " <= c <= "~",
    "punct": lambda c: "!" <= c <= "~" and not c.isalnum(),
    "space": lambda c: c in "\t\n\v\f\r ",
    "upper": lambda c: "A" <= c <= "Z",
    "word": lambda c: c.isascii() and (c.isalnum() or c == "_"),
    "xdigit": lambda c: c.isascii() and c.lower() in "0123456789abcdef",
}


def parse_pattern(pattern: str) -> Program:
    """The program of a pattern.

    Raises:
        RunError: the pattern is not RE2's, or its program is too long.
    """
    parser = _Parser(pattern)
    program = parser.alternatives(_Flags(), 0)
    if parser.at < len(pattern):
        raise parser.wrong("a ) without its (")
    return program


@dataclass(frozen=True)
class _Flags:
    ignore_case: bool = False
    multi_line: bool = False
    dot_all: bool = False
    ungreedy: bool = False  # decides which match is found, never whether there is one


class _Parser:
    def __init__(self, pattern: str) -> None:
        self.pattern = pattern
        self.at = 0

    def wrong(self, what: str) -> RunError:
        return RunError(
            f"pattern {self.pattern[:200]!r}: {what} at {self.at}",
            value=self.pattern[:200],
            hint="RegexFullMatch takes the syntax of RE2.",
        )

    def peek(self, text: str) -> bool:
        return self.pattern.startswith(text, self.at)

    def take(self) -> str:
        if self.at >= len(self.pattern):
            raise self.wrong("the pattern ends too early")
        self.at += 1
        return self.pattern[self.at - 1]

    def alternatives(self, flags: _Flags, depth: int) -> Program:
        if depth > MAX_DEPTH:
            raise self.wrong(f"groups nest deeper than {MAX_DEPTH}")
        program, flags = self.sequence(flags, depth)
        while self.peek("|"):
            self.at += 1
            other, flags = self.sequence(flags, depth)
            program = [Split(1, len(program) + 2), *program, Jump(len(other) + 1), *other]
            self.check(program)
        return program

    def sequence(self, flags: _Flags, depth: int) -> tuple[Program, _Flags]:
        program: Program = []
        while self.at < len(self.pattern) and not self.peek("|") and not self.peek(")"):
            if self.peek("(?") and (changed := self.inline_flags(flags)):
                flags = changed
                continue
            program += self.repeated(self.atom(flags, depth))
            self.check(program)
        return program, flags

    def check(self, program: Program) -> None:
        if len(program) > MAX_PROGRAM:
            raise self.wrong(f"the pattern needs more than {MAX_PROGRAM} instructions")

    def inline_flags(self, flags: _Flags) -> _Flags | None:
        """`(?i)` changes the rest of its group; `(?i:…)` is a group and left to `atom`."""
        end = self.pattern.find(")", self.at)
        letters = self.pattern[self.at + 2 : end]
        if end < 0 or not letters or any(letter not in "imsU-" for letter in letters):
            return None
        self.at = end + 1
        return self.changed(flags, letters)

    def changed(self, flags: _Flags, letters: str) -> _Flags:
        values = {
            "i": flags.ignore_case,
            "m": flags.multi_line,
            "s": flags.dot_all,
            "U": flags.ungreedy,
        }
        on = True
        for letter in letters:
            if letter == "-":
                on = False
            elif letter in values:
                values[letter] = on
            else:
                raise self.wrong(f"flag {letter!r} is unknown")
        return _Flags(values["i"], values["m"], values["s"], values["U"])

    def atom(self, flags: _Flags, depth: int) -> Program:
        character = self.take()
        if character == "(":
            return self.group(flags, depth)
        if character == "[":
            return [Characters(self.character_class(flags))]
        if character == ".":
            return [Characters((lambda c: True) if flags.dot_all else (lambda c: c != "\n"))]
        if character in "^$":
            return [Assertion("m" + character if flags.multi_line else character)]
        if character in "*+?":
            raise self.wrong(f"{character} repeats nothing")
        if character == "\\":
            return self.escape(flags)
        return [Characters(_literal(character, flags))]

    def group(self, flags: _Flags, depth: int) -> Program:
        if self.peek("?"):
            self.at += 1
            if self.peek("P<") or self.peek("<"):
                end = self.pattern.find(">", self.at)
                name = self.pattern[self.at : end].lstrip("P").lstrip("<")
                if end < 0 or not name.isidentifier():
                    raise self.wrong("a group that RE2 does not have (lookbehind, or no name)")
                self.at = end + 1
            else:
                end = self.pattern.find(":", self.at)
                letters = self.pattern[self.at : end] if end >= 0 else "?"
                if any(letter not in "imsU-" for letter in letters):
                    raise self.wrong("a group that RE2 does not have")
                flags = self.changed(flags, letters)
                self.at = end + 1
        program = self.alternatives(flags, depth + 1)
        if not self.peek(")"):
            raise self.wrong("a ( without its )")
        self.at += 1
        return program

    def repeated(self, program: Program) -> Program:
        while True:
            bounds = self.bounds()
            if bounds is None:
                return program
            if self.peek("?"):
                self.at += 1  # lazy: the same set of matches
            low, high = bounds
            if (len(program) + 2) * (low + 1 if high is None else high) > MAX_PROGRAM:
                raise self.wrong(f"the pattern needs more than {MAX_PROGRAM} instructions")
            if high is None:
                star: Program = [Split(1, len(program) + 2), *program, Jump(-len(program) - 1)]
                program = program * low + star
            else:
                optional: Program = []
                for _ in range(high - low):
                    optional = [Split(1, len(program) + len(optional) + 1), *program, *optional]
                program = program * low + optional
            self.check(program)

    def bounds(self) -> tuple[int, int | None] | None:
        simple = {"*": (0, None), "+": (1, None), "?": (0, 1)}
        if self.at < len(self.pattern) and self.pattern[self.at] in simple:
            return simple[self.take()]
        if not self.peek("{"):
            return None
        end = self.pattern.find("}", self.at)
        low, comma, high = self.pattern[self.at + 1 : max(end, 0)].partition(",")
        if end < 0 or not _is_number(low) or (high and not _is_number(high)):
            return None  # a brace that is no repetition is a literal
        self.at = end + 1
        least = int(low)
        most = least if not comma else int(high) if high else None
        if least > MAX_REPEAT or (most is not None and not least <= most <= MAX_REPEAT):
            raise self.wrong(f"a repetition outside 0..{MAX_REPEAT}")
        return least, most

    def escape(self, flags: _Flags) -> Program:
        character = self.take()
        if character in "AzbB":
            return [Assertion(character)]
        if character == "Q":
            end = self.pattern.find("\\E", self.at)
            text = self.pattern[self.at : end if end >= 0 else len(self.pattern)]
            self.at = len(self.pattern) if end < 0 else end + 2
            return [Characters(_literal(c, flags)) for c in text]
        test = self.class_escape(character)
        if test is not None:
            return [Characters(test)]
        return [Characters(_literal(self.escaped_character(character), flags))]

    def class_escape(self, character: str) -> Test | None:
        if character.lower() in _PERL:
            test = _PERL[character.lower()]
            return _negated(test) if character.isupper() else test
        if character in "pP":
            return self.unicode_class(character == "P")
        return None

    def unicode_class(self, negated: bool) -> Test:
        """By general category (L, Lu, Nd, …); scripts are not in Python's tables."""
        name = self.take()
        if name == "{":
            end = self.pattern.find("}", self.at)
            name, self.at = self.pattern[self.at : end], end + 1
        if name.startswith("^"):
            name, negated = name[1:], not negated
        known = {"L", "M", "N", "P", "S", "Z", "C"}
        if not name or name[0] not in known or len(name) > 2:
            raise self.wrong(f"the Unicode class {name[:20]!r} is not a general category")
        test: Test = lambda c: unicodedata.category(c).startswith(name)  # noqa: E731
        return _negated(test) if negated else test

    def escaped_character(self, character: str) -> str:
        if character in _ESCAPES:
            return _ESCAPES[character]
        if character == "x":
            return self.hexadecimal()
        if character == "0":
            digits = character
            while (
                len(digits) < 3
                and self.at < len(self.pattern)
                and self.pattern[self.at] in "01234567"
            ):
                digits += self.take()
            return chr(int(digits, 8))
        if character.isalnum():
            raise self.wrong(f"the escape \\{character} (RE2 has no backreferences)")
        return character

    def hexadecimal(self) -> str:
        if self.peek("{"):
            end = self.pattern.find("}", self.at)
            digits, self.at = self.pattern[self.at + 1 : max(end, 0)], end + 1
        else:
            digits = self.take() + self.take()
        try:
            return chr(int(digits, 16))
        except (ValueError, OverflowError) as error:
            raise self.wrong(f"{digits!r} is no character") from error

    def character_class(self, flags: _Flags) -> Test:
        negated = self.peek("^")
        self.at += negated
        tests: list[Test] = []
        first = True
        while first or not self.peek("]"):
            first = False
            tests.append(self.class_item(flags))
        self.at += 1
        union: Test = lambda c: any(test(c) for test in tests)  # noqa: E731
        return _negated(union) if negated else union

    def class_item(self, flags: _Flags) -> Test:
        if self.peek("[:"):
            end = self.pattern.find(":]", self.at)
            name = self.pattern[self.at + 2 : max(end, 0)]
            bare = name.lstrip("^")
            if bare not in _POSIX:
                raise self.wrong(f"the class [:{name[:20]}:] is unknown")
            self.at = end + 2
            return _negated(_POSIX[bare]) if name != bare else _POSIX[bare]
        low = self.take()
        if low == "\\":
            low = self.take()
            test = self.class_escape(low)
            if test is not None:
                return test
            low = self.escaped_character(low)
        high = low
        if self.peek("-") and not self.peek("-]"):
            self.at += 1
            high = self.take()
            if high == "\\":
                high = self.escaped_character(self.take())
        if high < low:
            raise self.wrong(f"the range {low}-{high} is backward")
        return _span(low, high, flags)


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) < 7


def _negated(test: Test) -> Test:
    return lambda c: not test(c)


def _literal(character: str, flags: _Flags) -> Test:
    if not flags.ignore_case:
        return lambda c: c == character
    folded = character.casefold()
    return lambda c: c.casefold() == folded


def _span(low: str, high: str, flags: _Flags) -> Test:
    if not flags.ignore_case:
        return lambda c: low <= c <= high
    return lambda c: any(low <= form <= high for form in (c, c.lower(), c.upper()))
