"""Reference modules of the built-in tasks. They are data: read as text and shown to the policy as they stand."""
