"""The pages: each takes what it shows and returns markup; `frame.py` is what stands around them all."""
