"""A "wheel" of ours, for tests of the helper without a cluster."""
