"""Reading user source without running it: names, scopes, loops, datasets, what is traced."""
