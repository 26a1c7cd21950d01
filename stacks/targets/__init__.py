"""The targets: each folder has the settings, facts, rules and deployment of one."""
