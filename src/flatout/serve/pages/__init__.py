"""The pages: each takes the values that it shows and returns markup. `layout.py` is common to all."""
