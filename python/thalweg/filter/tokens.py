"""Words of a filter with their positions, and errors that name a position."""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass

from ..errors import QuestionError

MAX_LENGTH = 65_536
"""The maximum length of a filter, in characters."""

_MAX_QUOTED = 40
"""The longest part of a word that a message quotes, in characters."""

_BLANKS = r" \t\n\r\x0b\x0c"
_QUOTED = r"\"[^\"\n]*\"\*?|'[^'\n]*'\*?"
_PLAIN = rf"[^{_BLANKS}<>=!()\[\],&|#\"'][^{_BLANKS}<>=!()\[\],&|#]*"
_WORD = re.compile(rf"[{_BLANKS}]+|#[^\n]*|(?P<word>&&|\|\||[<>=!]=|[<>=!()\[\],]|{_QUOTED}|{_PLAIN})")


class FilterError(QuestionError):
    """An invalid filter."""


class FilterSyntaxError(FilterError):
    """A syntax error: what was expected, and where.

    `kind` is one of character, expected, too_large, empty_list, too_deep, too_long, not_known_here.
    """

    def __init__(self, text: str, start: int, kind: str, message: str) -> None:
        """`start` is the position in `text`, counted from 0."""
        self.kind = kind
        self.message = message
        line_start = text.rfind("\n", 0, start) + 1
        line = text[line_start:].partition("\n")[0]
        self.column = start - line_start + 1
        self.line = text.count("\n", 0, start) + 1
        place = f"column {self.column}" if "\n" not in text else f"line {self.line}, column {self.column}"
        pointer = " " * (self.column - 1) + "^"
        super().__init__(f"filter, {place}: {message}\n  {line}\n  {pointer}")


@dataclass(frozen=True, slots=True)
class Token:
    """A word; the empty word is the end."""

    text: str
    start: int

    @property
    def key(self) -> str:
        """Returns the word in lower case, if it is ASCII: the language ignores case."""
        return self.text.lower() if self.text.isascii() else self.text

    @property
    def quoted(self) -> str:
        """Returns the word in quotes, or `the end`."""
        return f"'{shown(self.text)}'" if self.text else "the end"


def shown(word: str) -> str:
    """Returns a word as messages show it: without control characters, cut after 40 characters."""
    plain = "".join("?" if unicodedata.category(character) == "Cc" else character for character in word[:_MAX_QUOTED])
    return plain + ("..." if len(word) > _MAX_QUOTED else "")


def tokens(text: str) -> list[Token]:
    """Splits `text` into words, followed by the end.

    Raises:
        FilterSyntaxError: If the text is too long, or has a character that starts no word.
    """
    if len(text) > MAX_LENGTH:
        raise FilterSyntaxError(text, 0, "too_long", f"the filter is longer than {MAX_LENGTH} characters")
    found = []
    position = 0
    while position < len(text):
        match = _WORD.match(text, position)
        if match is None:
            raise FilterSyntaxError(text, position, "character", f"unexpected '{text[position]}'")
        if match["word"]:
            found.append(Token(match["word"], position))
        position = match.end()
    return [*found, Token("", len(text))]
