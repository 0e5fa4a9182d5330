"""Transfer: a session leaves a store as a stream of records and arrives in another: bundles, dictionaries, replay logs, copies."""
