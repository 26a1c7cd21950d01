"""Submit and follow jobs with the rights of a team member: `mlbatch submit`, `run`, `why`, `logs` and `cancel`.

It reads and writes only in the team's namespace. It needs the packages typer, PyYAML and kubernetes.
"""
