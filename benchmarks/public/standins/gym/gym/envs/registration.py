from standin_environments import register

__all__ = ["register"]
