"""What lies beside a case and makes a report richer: its trace, its samples, the source it speaks of."""
