from standin_spaces import Box, Dict, Discrete, MultiDiscrete, Space, Tuple

__all__ = ["Box", "Dict", "Discrete", "MultiDiscrete", "Space", "Tuple"]
