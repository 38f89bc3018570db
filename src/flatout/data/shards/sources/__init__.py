"""Sources of elements, one module per kind.

A source knows how many elements it has and how large each can become, and reads any of them by its number. `select`
gives some of them as a source of its own, which is small and can be sent to another process or machine. A pipeline
yields its elements only one after the other, and is converted by `stream.py`.
"""
