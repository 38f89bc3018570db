"""What runs inside the user's program and watches it, and what turns its recording into a Case.

The probes run in the child and only observe; `reading/` runs in the parent and never imports TensorFlow.
"""
