"""What is wrong with a question, as opposed to what goes wrong while it is answered."""


class QuestionError(ValueError):
    """A question that cannot be asked: it names what is not there, or cannot be read."""
