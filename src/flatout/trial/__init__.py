"""One run of the user's program under control: cures injected, probes installed, files shielded, held at a gate."""
