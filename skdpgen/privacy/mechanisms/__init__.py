"""What can be released."""
