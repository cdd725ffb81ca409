"""Words of a filter, each with its place; and the errors that points there."""

from __future__ import annotations

import re
from dataclasses import dataclass

from ..errors import QuestionError

_WORD = re.compile(r"\s+|#[^\n]*|(?P<word>&&|\|\||[<>=!]=|[<>=!()\[\],]|[^\s<>=!()\[\],&|#]+)")


class FilterError(QuestionError):
    """A filter that cannot be used."""


class FilterSyntaxError(FilterError):
    """A filter that is not in the language: what was expected, and where."""

    def __init__(self, text: str, start: int, message: str) -> None:
        """`start` is the place in `text`, counted from 0."""
        line_start = text.rfind("\n", 0, start) + 1
        line = text[line_start:].partition("\n")[0]
        self.column = start - line_start + 1
        self.line = text.count("\n", 0, start) + 1
        place = f"column {self.column}" if "\n" not in text else f"line {self.line}, column {self.column}"
        pointer = " " * (self.column - 1) + "^"
        super().__init__(f"filter, {place}: {message}\n  {line}\n  {pointer}")


@dataclass(frozen=True, slots=True)
class Token:
    """A word; the empty one is the end."""

    text: str
    start: int

    @property
    def key(self) -> str:
        """The word in lower case: the language does not tell case apart."""
        return self.text.lower()


def tokens(text: str) -> list[Token]:
    """The words of `text`, and the end behind them.

    Raises:
        FilterSyntaxError: If there is a character that begins no word.
    """
    found = []
    position = 0
    while position < len(text):
        match = _WORD.match(text, position)
        if match is None:
            raise FilterSyntaxError(text, position, f"'{text[position]}' means nothing here")
        if match["word"]:
            found.append(Token(match["word"], position))
        position = match.end()
    return [*found, Token("", len(text))]
