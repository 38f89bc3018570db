"""Child processes: waiting for them, ending them, what they printed last."""
