"""`flatout data`: what each stage of a tf.data pipeline costs, a faster pipeline, record shards, a data service."""
