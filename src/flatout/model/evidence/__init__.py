"""Evidence: one class for each kind, in modules by subject.

`program` (what the program did once, what it used of the machine), `steps` (what Python did, step after step),
`graphs` (what the traced graphs hold), `pipelines` (tf.data), `devices` (what a trace shows of them) and `outcomes`
(what the commands themselves report). Import a class from its module: the modules are many, and a command needs few.
"""

from flatout.model.evidence.base import Evidence, Measurement, OtherEvidence, Value

__all__ = ["Evidence", "Measurement", "OtherEvidence", "Value"]
