"""Files that are kept with a case and enrich its report: the trace, the samples, the recording, the source."""
