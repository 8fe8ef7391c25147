"""Libraries that know nothing of us, on our arrays."""
