"""The subcommands with their options and help texts, and `main`.

A subcommand imports its own module when it runs, so that `--help` and shell completion stay quick.
"""

import tomllib
import traceback
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Literal

import typer

from cli.ending import FAILED

Job = Literal["nccl", "metaseq", "olmo", "vllm", "pretraining", "finetuning", "synthetic"]
Kubeconfig = Annotated[
    Path | None, typer.Option(metavar="FILE", help="The kubeconfig. Default: $KUBECONFIG, else ~/.kube/config.")
]
Context = Annotated[
    str | None, typer.Option(metavar="NAME", help="The context in the kubeconfig. Default: its current context.")
]
File = Annotated[Path | None, typer.Option(metavar="FILE", help="Write into this file instead of printing.")]
Team = Annotated[
    str | None,
    typer.Option(metavar="TEAM", help="The team's namespace. Default: that of the kubeconfig's context."),
]
User = Annotated[
    str | None, typer.Option("--as", metavar="USER", help="Act as this user, if you may impersonate users.")
]
Follow = Annotated[bool, typer.Option("--follow", "-f", help="Wait until the job ends, and print its output.")]
DryRun = Annotated[
    bool, typer.Option("--dry-run", help="Check the job in the cluster and print it, but do not submit it.")
]
Name = Annotated[str, typer.Argument(metavar="NAME", help="The job.", show_default=False)]
Stack = Annotated[str, typer.Option(metavar="STACK", help="The stack, as in Pulumi.<stack>.yaml.")]


def _exit(code: int) -> None:
    raise typer.Exit(code)


app = typer.Typer(
    help="Submit jobs to the ML batch platform, look at it and check it.",
    epilog="Exit codes: 0 fine, 1 found something, 2 wrong use or could not be done. Details: docs/commands.md.",
    context_settings={"help_option_names": ["-h", "--help"]},
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    result_callback=_exit,
    rich_markup_mode=None,
)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one subcommand; return its exit code, also after an unexpected exception."""
    try:
        app(arguments, prog_name="mlbatch")
    except SystemExit as end:
        return int(end.code or 0)
    except Exception:
        traceback.print_exc()
    return FAILED


def _version(wanted: bool) -> None:
    if wanted:
        project = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text())["project"]
        typer.echo(f"mlbatch {project['version']}")
        raise typer.Exit


@app.callback()
def _common(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, expose_value=False, help="Print the version.")
    ] = False,
) -> None:
    """Take the options that need no subcommand."""


@app.command()
def submit(
    job: Annotated[str, typer.Argument(metavar="FILE", help="The job's YAML file, or - for standard input.")],
    follow: Follow = False,
    dry_run: DryRun = False,
    team: Team = None,
    user: User = None,
    kubeconfig: Kubeconfig = None,
    context: Context = None,
) -> int:
    """Submit a job to your team's queue, and say whether it runs or what it waits for.

    Puts a Job, JobSet, PyTorchJob or RayCluster, and what else is in the file, into an AppWrapper. Exit code 1: the job
    failed, with --follow.
    """
    from cli import member

    return member.submit(member.Member(kubeconfig, context, team, user), job, follow=follow, dry_run=dry_run)


@app.command()
def run(
    command: Annotated[list[str], typer.Argument(metavar="COMMAND", help="The program and its arguments, after --.")],
    image: Annotated[str, typer.Option(metavar="IMAGE", help="The container image.")],
    gpus: Annotated[int, typer.Option(min=0, max=100_000, metavar="N", help="GPUs of the whole job.")] = 1,
    gpus_per_node: Annotated[
        int, typer.Option(min=1, max=64, metavar="N", help="The most GPUs of a pod. More GPUs make more pods.")
    ] = 8,
    name: Annotated[str | None, typer.Option(metavar="NAME", help="The job's name. Default: a new one.")] = None,
    cpus: Annotated[str | None, typer.Option(metavar="N", help="CPUs of each pod. Default: 8 for each GPU.")] = None,
    memory: Annotated[
        str | None, typer.Option(metavar="AMOUNT", help="Memory of each pod. Default: 64Gi for each GPU.")
    ] = None,
    env: Annotated[
        list[str] | None, typer.Option(metavar="KEY=VALUE", help="An environment variable. Can be repeated.")
    ] = None,
    volume: Annotated[
        list[str] | None, typer.Option(metavar="CLAIM:PATH", help="Mount a PersistentVolumeClaim. Can be repeated.")
    ] = None,
    priority: Annotated[Literal["low", "default", "high"] | None, typer.Option(help="Within your team.")] = None,
    follow: Follow = False,
    dry_run: DryRun = False,
    team: Team = None,
    user: User = None,
    kubeconfig: Kubeconfig = None,
    context: Context = None,
) -> int:
    """Submit a command as a job: mlbatch run --gpus 16 --image IMAGE -- torchrun train.py.

    With more GPUs than a pod has, the pods find each other: torchrun needs no options, and other programs read
    MASTER_ADDR, MASTER_PORT, WORLD_SIZE and RANK.
    """
    from cli import member

    return member.run(
        member.Member(kubeconfig, context, team, user),
        {
            "command": command,
            "image": image,
            "gpus": gpus,
            "per_node": gpus_per_node,
            "name": name,
            "cpus": cpus,
            "memory": memory,
            "priority": priority,
        },
        env or [],
        volume or [],
        follow=follow,
        dry_run=dry_run,
    )


@app.command()
def why(
    name: Annotated[str | None, typer.Argument(metavar="NAME", help="The job. Default: a table of all jobs.")] = None,
    team: Team = None,
    user: User = None,
    kubeconfig: Kubeconfig = None,
    context: Context = None,
    output: Annotated[Literal["text", "json"], typer.Option(help="The format of the answer.")] = "text",
) -> int:
    """Tell why a job of your team does not run, and what to do. Lists all jobs of your team without NAME.

    Exit code 1: the job does not run.
    """
    from cli import member

    return member.why(member.Member(kubeconfig, context, team, user), name, output)


@app.command()
def logs(
    name: Name,
    follow: Follow = False,
    rank: Annotated[int, typer.Option(min=0, metavar="N", help="The pod, by its index in the job.")] = 0,
    team: Team = None,
    user: User = None,
    kubeconfig: Kubeconfig = None,
    context: Context = None,
) -> int:
    """Print the output of a job's first pod, or of another one.

    Exit code 1: the job failed, with --follow.
    """
    from cli import member

    return member.logs(member.Member(kubeconfig, context, team, user), name, rank, follow=follow)


@app.command()
def cancel(
    name: Name, team: Team = None, user: User = None, kubeconfig: Kubeconfig = None, context: Context = None
) -> int:
    """Stop a job and delete it, with its pods."""
    from cli import member

    return member.cancel(member.Member(kubeconfig, context, team, user), name)


@app.command()
def status(
    kubeconfig: Kubeconfig = None,
    context: Context = None,
    output: Annotated[
        Literal["text", "json", "html"], typer.Option(help="html draws a page that needs no network and no script.")
    ] = "text",
    file: File = None,
) -> int:
    """Print nodes, repairs, queues, teams, workloads and webhooks that do not answer.

    Reads the cluster of the kubeconfig and does not change it.
    """
    from cli.status import run

    return run(kubeconfig, context, output, file)


@app.command()
def repair(
    action: Annotated[
        Literal["list", "start", "report", "replace", "return"],
        typer.Argument(
            metavar="ACTION",
            help="list the nodes in repair; start takes a node out of service; report prints the text for the "
            "provider; replace prints the commands for the machine; return tests the node and puts it back into "
            "service.",
        ),
    ] = "list",
    node: Annotated[str | None, typer.Argument(metavar="NODE", help="The node. Required, except by list.")] = None,
    reason: Annotated[str, typer.Option(metavar="TEXT", help="For start: the problem.")] = "",
    move: Annotated[bool, typer.Option("--move", help="For start: jobs leave the node now.")] = False,
    case: Annotated[str, typer.Option(metavar="ID", help="For report: record the provider's case.")] = "",
    untested: Annotated[bool, typer.Option("--untested", help="For return: without the health gate.")] = False,
    kubeconfig: Kubeconfig = None,
    context: Context = None,
    output: Annotated[Literal["text", "json"], typer.Option(help="The format of the list.")] = "text",
) -> int:
    """List nodes with broken GPUs, report them to the provider, and put them back into service.

    Changes the node's taint and annotation mlbatch/repair with start, report --case and return. It never changes a
    machine.
    """
    from cli.repair import run

    return run(action, node, kubeconfig, context, output, reason=reason, case=case, move=move, untested=untested)


@app.command()
def usage(
    month: Annotated[
        str | None, typer.Option(metavar="YYYY-MM", help="The month, in UTC. Default: the current one, until now.")
    ] = None,
    by: Annotated[
        Literal["team", "user", "job"], typer.Option(help="What each row is about. Only teams have quotas.")
    ] = "team",
    price: Annotated[
        list[str] | None,
        typer.Option(
            metavar="[POOL=]AMOUNT", help="The price of one GPU hour, of one pool or of all. Can be repeated."
        ),
    ] = None,
    prometheus: Annotated[
        str | None,
        typer.Option(metavar="URL", help="Ask this Prometheus. Default: the platform's, through a forwarded port."),
    ] = None,
    kubeconfig: Kubeconfig = None,
    context: Context = None,
    output: Annotated[
        Literal["text", "json", "csv", "html"], typer.Option(help="html is a page that needs no network and no script.")
    ] = "text",
    file: File = None,
) -> int:
    """Print the GPU hours that teams used in a month, and those of their quotas.

    Adds up what Prometheus recorded. Exit code 1: records are missing, and the report lists their days.
    """
    from cli.usage import run

    return run(month, by, price or (), prometheus, kubeconfig, context, output, file)


@app.command()
def ask(
    job: Annotated[
        str | None, typer.Argument(metavar="FILE", help="The job's YAML file, or - for standard input.")
    ] = None,
    team: Annotated[str, typer.Option(metavar="TEAM", help="The team that submits the job. Required.")] = "",
    user: Annotated[
        str | None, typer.Option(metavar="NAME", help="The member who submits it. Default: one of the team.")
    ] = None,
    group: Annotated[
        str | None, typer.Option(metavar="NAME", help="A group of the user, if the team has the group as a member.")
    ] = None,
    kubeconfig: Kubeconfig = None,
    context: Context = None,
    output: Annotated[Literal["text", "json"], typer.Option(help="The format of the answer.")] = "text",
    stop: Annotated[bool, typer.Option("--stop", help="Stop the replica and delete it, without a question.")] = False,
) -> int:
    """Tell whether a job would run, and if not, why. Does not submit it to the cluster.

    Runs the job on a local replica of the cluster, with the real controllers. The replica stays for the next question.
    Exit code 1: the job would wait, can never run, or would be refused.
    """
    from cli import ask

    if stop:
        return ask.stop()
    return ask.run(job, team, user, group, kubeconfig, context, output)


@app.command()
def jobs(
    job: Annotated[
        Job, typer.Argument(metavar="JOB", help="The job. synthetic prints the jobs of a trace.", show_default=False)
    ],
    stack: Stack,
    team: Annotated[
        str | None,
        typer.Option(metavar="TEAM", help="The team whose queue the job is for. Default: as in the settings."),
    ] = None,
    user: Annotated[str | None, typer.Option(metavar="NAME", help="The user to name in the job's annotation.")] = None,
    settings: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="KEY=VALUE", help="A setting of the job, such as nodes=2. Can be repeated."),
    ] = None,
) -> int:
    """Print a batch job as the stack's settings make it, as YAML for kubectl apply.

    The stack does not need to have the job enabled. Run it in the folder of the stack's file.
    """
    from cli.jobs import run

    return run(job, stack, settings or (), {"team": team, "user": user})


@app.command()
def drift(
    stack: Stack,
    kubeconfig: Kubeconfig = None,
    context: Context = None,
    fix: Annotated[bool, typer.Option("--fix", help="Write the declared values back.")] = False,
    no_values: Annotated[bool, typer.Option("--no-values", help="Name the fields without their values.")] = False,
) -> int:
    """Compare the cluster with the stack's state, and name each manual change.

    Reads the state with the Pulumi command. Changes the cluster only with --fix. Exit code 1: the cluster has drift.
    """
    from cli.drift import run

    return run(stack, kubeconfig, context, fix=fix, values=not no_values)


@app.command()
def review(
    base: Annotated[str, typer.Option(metavar="REVISION", help="The Git revision to compare with.")] = "main",
    stack: Annotated[
        list[str] | None, typer.Option(metavar="STACK", help="Only this stack. Can be repeated. Default: all.")
    ] = None,
    file: File = None,
) -> int:
    """Print what this checkout changes in each stack, as Markdown.

    Previews both revisions in a local environment. Exit code 1: a stack cannot be previewed at one revision.
    """
    from cli.review import run

    return run(base, stack or [], file)


@app.command()
def attack(
    kubeconfig: Kubeconfig = None,
    context: Context = None,
    like: Annotated[
        str | None,
        typer.Option(metavar="NAMESPACE", help="The team's namespace to copy. Default: that of the first team."),
    ] = None,
    list_only: Annotated[bool, typer.Option("--list", help="Print the attacks and try none.")] = False,
) -> int:
    """Try what a team member should not be able to do. Every attack is a dry run.

    Creates the namespace mlbatch-attack and deletes it. Exit code 1: an attack goes through.
    """
    from cli import attack

    return attack.show() if list_only else attack.run(kubeconfig, context, like)


@app.command()
def settings(
    output: Annotated[
        Literal["text", "json"], typer.Option(help="text is Markdown, json is the JSON schema for editors.")
    ] = "text",
    files: Annotated[
        Literal["check", "write"] | None,
        typer.Option(help="Check or write docs/settings.md and settings.schema.json. Prints no documentation."),
    ] = None,
) -> int:
    """Print all settings with their defaults and bounds.

    Exit code 1: --files check finds a file that is not current.
    """
    from cli.settings import run

    return run(output, files)
