"""Bridges to trainers and servers; each needs an extra of its own and is imported only when asked for."""
