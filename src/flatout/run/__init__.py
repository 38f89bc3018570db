"""`flatout run`: run a program once, observed, and say where its time goes."""
