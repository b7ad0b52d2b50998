"""What is fitted to releases. Learners see no private row."""

__all__ = []
