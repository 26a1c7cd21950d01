"""From a stack's configuration to checked inputs: files, secrets, sections, errors."""
