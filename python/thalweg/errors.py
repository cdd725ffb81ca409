"""Errors in a request, as opposed to failures while it is processed."""


class QuestionError(ValueError):
    """An invalid request: it names something missing, or cannot be parsed."""
