"""Words of a filter with their positions, and errors that name a position."""

from __future__ import annotations

import re
from dataclasses import dataclass

from ..errors import QuestionError

_WORD = re.compile(r"\s+|#[^\n]*|(?P<word>&&|\|\||[<>=!]=|[<>=!()\[\],]|[^\s<>=!()\[\],&|#]+)")


class FilterError(QuestionError):
    """An invalid filter."""


class FilterSyntaxError(FilterError):
    """A syntax error: what was expected, and where."""

    def __init__(self, text: str, start: int, message: str) -> None:
        """`start` is the position in `text`, counted from 0."""
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
        """Returns the word in lower case: the language ignores case."""
        return self.text.lower()


def tokens(text: str) -> list[Token]:
    """Splits `text` into words, followed by the end.

    Raises:
        FilterSyntaxError: If there is a character that begins no word.
    """
    found = []
    position = 0
    while position < len(text):
        match = _WORD.match(text, position)
        if match is None:
            raise FilterSyntaxError(text, position, f"unexpected '{text[position]}'")
        if match["word"]:
            found.append(Token(match["word"], position))
        position = match.end()
    return [*found, Token("", len(text))]
