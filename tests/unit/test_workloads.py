"""The workloads' objects: the requests of their pods, how they are submitted, and the scripts that they run."""

import base64
import os
import re
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pulumi
import pytest

from components import names
from components.azure.aks import INTERNAL_LOAD_BALANCER
from components.azure.fabric import SRIOV, fabric
from components.kubernetes.fabric import NO_RDMA, Fabric
from components.kubernetes.manifests import Document
from components.kubernetes.node_pool import GPU_TOLERATION
from components.kubernetes.placement import NodeGroup
from components.workloads import jupyterlab, metaseq, nccl, olmo
from components.workloads.interface import Exposure, Reach, Storage
from components.workloads.metaseq import SIZES, Metaseq, MetaseqArgs, Size, fewest_nodes, layout
from components.workloads.nccl import NcclArgs
from components.workloads.olmo import OlmoArgs
from components.workloads.pods import NodePods
from components.workloads.submission import Submission, SubmissionMode
from tests.unit.harness import Record, on_cluster, strings
from tests.unit.test_stack import pairs

TEAM = Submission(mode=SubmissionMode.MLBATCH, namespace="blue", user="alice", priority_class="high-priority")
VOLCANO = Submission(mode=SubmissionMode.VOLCANO, namespace="workloads", queue="research")
PLAIN = Submission(mode=SubmissionMode.NONE, namespace="workloads")
GPU_MEMORY = 80 << 30


def pods(nodes: int = 2, fabric: Fabric = SRIOV, **values: Any) -> NodePods:
    common: dict[str, Any] = {"image": "registry.example.org/nccltest:1", "gpus": 8, "cpu": "64", "memory": "1000Gi"}
    common["placement"] = NodeGroup(tolerations=[GPU_TOLERATION])
    return NodePods(
        **{**common, "nodes": nodes, "fabric": fabric, "shared_memory": "8Gi", "deadline_seconds": 3600, **values}
    )


def of(documents: list[Document], kind: str) -> Document:
    """Return the one object of a kind, also where an AppWrapper contains it."""
    wrappers = [item for item in documents if item["kind"] == "AppWrapper"]
    inner = [part["template"] for item in wrappers for part in item["spec"]["components"]]
    found = [item for item in [*documents, *inner] if item["kind"] == kind]
    assert len(found) == 1, [item["kind"] for item in documents]
    document: Document = found[0]
    return document


def pod_of(documents: list[Document], kind: str = "Job") -> Document:
    pod: Document = of(documents, kind)["spec"]["template"]["spec"]
    return pod


def environment(container: Document) -> dict[str, str]:
    return {item["name"]: item["value"] for item in container["env"] if "value" in item}


def mounts(pod: Document) -> dict[str, Document]:
    """Return the volumes of a pod's first container by path."""
    by_name = {item["name"]: item for item in pod["volumes"]}
    return {item["mountPath"]: by_name[item["name"]] for item in pod["containers"][0]["volumeMounts"]}


class TestSubmission:
    def test_app_wrapper_may_create_all_that_is_in_it(self) -> None:
        """Its ClusterRole in v1.2.2 has pods, services and jobs, and no ConfigMaps."""
        for documents in (
            nccl.documents("a", NcclArgs(submission=TEAM, pods=pods())),
            metaseq.documents("b", MetaseqArgs(submission=TEAM, pods=pods(), model=SIZES["1.3b"])),
            olmo.documents("c", OlmoArgs(submission=TEAM, pods=pods(), data="data")),
            [jupyterlab.server("d", lab(TEAM))],
        ):
            wrapper = of(documents, "AppWrapper")
            assert {part["template"]["kind"] for part in wrapper["spec"]["components"]} <= {
                "Service",
                "Job",
                "Deployment",
            }
            assert all("namespace" not in part["template"]["metadata"] for part in wrapper["spec"]["components"])

    def test_pods_in_a_queue_ask_for_nothing_that_no_queue_covers(self) -> None:
        pod = pod_of(nccl.documents("nccl", NcclArgs(submission=TEAM, pods=pods())))
        assert set(pod["containers"][0]["resources"]["requests"]) <= set(names.RESOURCES)

    def test_without_a_gang_the_job_is_its_own_and_nobody_waits_for_its_end(self) -> None:
        documents = nccl.documents("nccl", NcclArgs(submission=PLAIN, pods=pods()))
        assert [item["kind"] for item in documents] == ["ConfigMap", "Service", "Job"]
        assert {item["metadata"]["namespace"] for item in documents} == {"workloads"}
        assert of(documents, "Job")["metadata"]["annotations"] == {"pulumi.com/skipAwait": "true"}
        assert "kueue.x-k8s.io/queue-name" not in set(strings(documents))

    @pytest.mark.parametrize("submission", [TEAM, PLAIN, VOLCANO], ids=str)
    def test_a_changed_job_is_submitted_anew_after_its_files_exist(self, submission: Submission) -> None:
        args = MetaseqArgs(submission=submission, pods=pods(), model=SIZES["1.3b"])
        built = on_cluster(lambda opts: Metaseq("metaseq", args, opts))
        runs = built.of("AppWrapper" if submission is TEAM else "Job")[0]
        files = built.one("ConfigMap", "metaseq-files")
        assert set(runs.replace_on_changes) == {"metadata", "spec"}
        assert runs.delete_before_replace
        assert files.urn in runs.dependencies
        assert files.replace_on_changes == ()

    def test_a_changed_file_changes_the_pods(self) -> None:
        def annotation(size: str) -> str:
            documents = metaseq.documents("m", MetaseqArgs(submission=TEAM, pods=pods(), model=SIZES[size]))
            return str(of(documents, "Job")["spec"]["template"]["metadata"]["annotations"]["mlbatch/config-sha256"])

        assert annotation("1.3b") != annotation("6.7b")


class TestPods:
    def test_the_shared_plugin_gives_one_device_and_no_fabric_none(self) -> None:
        def requests(given: Fabric) -> Any:
            pod = pod_of(nccl.documents("nccl", NcclArgs(submission=PLAIN, pods=pods(fabric=given))))
            return pod["containers"][0]["resources"]["limits"]

        assert requests(fabric(8, SRIOV.topology, shared=True)) == {
            "cpu": "64",
            "memory": "1000Gi",
            "nvidia.com/gpu": "8",
            "rdma/rdma_shared_device_a": "1",
        }
        assert requests(NO_RDMA) == {"cpu": "64", "memory": "1000Gi", "nvidia.com/gpu": "8"}


class TestNccl:
    def test_sharp_only_when_asked_for(self) -> None:
        args = NcclArgs(submission=TEAM, pods=pods(), sharp=True)
        assert {
            "NCCL_COLLNET_ENABLE": "1",
            "NCCL_ALGO": "CollnetChain,NVLS",
            "SHARP_COLL_ENABLE_SAT": "1",
            "SHARP_SMX_UCX_INTERFACE": "mlx5_0:1",
        }.items() <= environment(pod_of(nccl.documents("nccl", args))["containers"][0]).items()
        plain = environment(pod_of(nccl.documents("nccl", NcclArgs(submission=TEAM, pods=pods())))["containers"][0])
        assert not {name for name in plain if name.startswith(("NCCL_ALGO", "NCCL_COLLNET", "SHARP"))}

    @pytest.mark.parametrize(
        ("topology", "binding", "tuning"),
        [
            ("ndv5-topo.xml", ["ppr:8:node:pe=12", "core"], {"NCCL_IB_QPS_PER_CONNECTION", "NCCL_PXN_DISABLE"}),
            ("ndv4-topo.xml", ["ppr:8:node", "numa"], set()),
            (None, ["ppr:8:node", "numa"], set()),
        ],
    )
    def test_the_tuning_is_azures_recipe_for_the_machine(
        self, topology: str | None, binding: list[str], tuning: set[str]
    ) -> None:
        args = NcclArgs(submission=TEAM, pods=pods(fabric=fabric(8, topology)))
        command = nccl.test_command(args)
        assert [command[command.index(option) + 1] for option in ("--map-by", "--bind-to")] == binding
        found = environment(pod_of(nccl.documents("nccl", args))["containers"][0])
        assert found.get("NCCL_TOPO_FILE") == (f"/workspace/{topology}" if topology else None)
        assert tuning == {"NCCL_IB_QPS_PER_CONNECTION", "NCCL_PXN_DISABLE"} & set(found)
        assert ("UCX_TLS" in found) == (topology is not None)
        assert set(args.pods.fabric.variables) <= set(command), "every rank gets them"

    def test_without_infiniband_nothing_speaks_of_it(self) -> None:
        pod = pod_of(nccl.documents("nccl", NcclArgs(submission=PLAIN, pods=pods(fabric=NO_RDMA))))
        assert set(environment(pod["containers"][0])) == {"CUDA_DEVICE_ORDER", "NCCL_SOCKET_IFNAME", "NCCL_DEBUG"}


class TestMetaseq:
    @pytest.mark.parametrize(
        ("name", "billions"),
        [("125m", 0.125), ("1.3b", 1.3), ("2.7b", 2.7), ("6.7b", 6.7), ("13b", 13), ("30b", 30), ("175b", 175)],
    )
    def test_a_model_has_about_as_many_weights_as_its_name_says(self, name: str, billions: float) -> None:
        assert SIZES[name].parameters / 1e9 == pytest.approx(billions, rel=0.05)

    @pytest.mark.parametrize("name", SIZES)
    def test_the_learning_rate_ends_at_a_tenth(self, name: str) -> None:
        size = SIZES[name]
        assert size.end_learning_rate == pytest.approx(size.learning_rate / 10)
        options = metaseq.train_options(MetaseqArgs(submission=TEAM, pods=pods(8), model=SIZES[name]))
        given = dict(option.split(" ", 1) for option in options if " " in option)
        assert float(given["--lr"]) == size.learning_rate
        assert float(given["--end-learning-rate"]) == pytest.approx(size.learning_rate / 10)
        assert float(given["--end-learning-rate"]) > 0

    @pytest.mark.parametrize(
        ("name", "gpus", "micro_batch", "accumulated"),
        [("1.3b", 8, 8, 16), ("1.3b", 512, 2, 1), ("125m", 8, 8, 8), ("13b", 16, 8, 32), ("175b", 64, 8, 16)],
    )
    def test_the_batch_of_the_table_is_what_one_update_takes(
        self, name: str, gpus: int, micro_batch: int, accumulated: int
    ) -> None:
        plan = layout(SIZES[name], gpus)
        assert (plan.micro_batch, plan.accumulated) == (micro_batch, accumulated)
        assert plan.batch == SIZES[name].batch

    def test_where_it_does_not_divide_the_batch_is_as_near_as_can_be(self) -> None:
        plan = layout(SIZES["1.3b"], 24)
        assert plan.batch == 12 * 8 * plan.accumulated * 2048
        assert abs(plan.batch - SIZES["1.3b"].batch) <= 12 * 8 * 2048 / 2

    def test_gpus_that_cannot_be_parted_or_are_too_many_are_refused(self) -> None:
        odd = Size(layers=1, embedding=64, heads=1, batch=4096, learning_rate=0.1, model_parallel=8)
        with pytest.raises(ValueError, match="12 GPUs cannot be parted into groups of 8"):
            layout(odd, 12)
        with pytest.raises(ValueError, match="3 groups of GPUs are more than the 2 sequences"):
            layout(odd, 24)

    @pytest.mark.parametrize(
        ("name", "nodes"), [("125m", 1), ("1.3b", 1), ("13b", 1), ("30b", 1), ("66b", 2), ("175b", 4)]
    )
    def test_a_model_needs_as_many_nodes_as_hold_its_weights_gradients_and_moments(self, name: str, nodes: int) -> None:
        assert fewest_nodes(SIZES[name], gpus=8, gpu_bytes=GPU_MEMORY) == nodes
        held = nodes * 8 * GPU_MEMORY * 0.8
        assert SIZES[name].parameters * 12 <= held

    @pytest.mark.parametrize(
        ("name", "gpus", "memory", "nodes"),
        [
            ("125m", 1, GPU_MEMORY, 2),
            ("1.3b", 1, GPU_MEMORY, 2),
            ("13b", 1, GPU_MEMORY, 4),
            ("13b", 3, GPU_MEMORY, 2),
            ("30b", 8, GPU_MEMORY // 2, 2),
        ],
    )
    def test_nodes_are_divided_into_whole_groups(self, name: str, gpus: int, memory: int, nodes: int) -> None:
        assert fewest_nodes(SIZES[name], gpus=gpus, gpu_bytes=memory) == nodes
        assert nodes * gpus % SIZES[name].model_parallel == 0

    def test_the_clusters_environment_is_named_only_when_asked_for(self) -> None:
        options = metaseq.train_options(MetaseqArgs(submission=TEAM, pods=pods(1), model=SIZES["1.3b"]))
        assert not [option for option in options if option.startswith("--cluster-env")], "metaseq has a default"
        named = MetaseqArgs(submission=TEAM, pods=pods(1), model=SIZES["1.3b"], cluster_env="rsc")
        assert "--cluster-env rsc" in metaseq.train_options(named)
        assert not [option for option in options if "aim" in option or "tensorboard" in option]

    def run(self, tmp_path: Path, args: MetaseqArgs, mode: str, **variables: str) -> tuple[int, list[str]]:
        """Execute the training script with a python3 that notes its arguments; return its exit code and the notes."""
        (tmp_path / "python3").write_text(
            f'#!/bin/bash\necho "$@" >> {tmp_path}/calls\n[[ "$*" != *"--distributed-rank ${{FAIL:-none}} "* ]]\n'
        )
        (tmp_path / "python3").chmod(0o755)
        (tmp_path / "hosts").write_text("metaseq-mpiworker-0.metaseq\nmetaseq-mpiworker-1.metaseq\n")
        text = metaseq.train_script(args).replace("/etc/volcano/mpiworker.host", str(tmp_path / "hosts"))
        (tmp_path / "train.sh").write_text(text)
        path = f"{tmp_path}:{os.environ['PATH']}"
        ran = subprocess.run(
            ["/bin/bash", str(tmp_path / "train.sh"), mode], env={"PATH": path, **variables}, timeout=20
        )
        return ran.returncode, (tmp_path / "calls").read_text().splitlines()

    def test_a_pod_starts_one_process_for_each_gpu(self, tmp_path: Path) -> None:
        args = MetaseqArgs(submission=TEAM, pods=pods(2), model=SIZES["1.3b"])
        code, calls = self.run(tmp_path, args, "pod", JOB_COMPLETION_INDEX="1", HEADNODE="m-0.m-service")
        assert code == 0
        words = [call.split() for call in calls]
        assert {call[call.index("--distributed-rank") + 1] for call in words} == {str(rank) for rank in range(8, 16)}
        assert {call[call.index("--device-id") + 1] for call in words} == {str(gpu) for gpu in range(8)}
        assert {call[call.index("--distributed-world-size") + 1] for call in words} == {"16"}
        assert {call[call.index("--distributed-init-method") + 1] for call in words} == {
            "barrierlesstcpr://m-0.m-service:29400"
        }
        assert all("--adam-betas (0.9, 0.95) --adam-eps" in call for call in calls)

    @pytest.mark.parametrize("rank", ["0", "3", "7"])
    def test_one_failed_process_fails_the_pod(self, tmp_path: Path, rank: str) -> None:
        args = MetaseqArgs(submission=TEAM, pods=pods(1), model=SIZES["1.3b"])
        code, _ = self.run(tmp_path, args, "pod", JOB_COMPLETION_INDEX="0", HEADNODE="m", FAIL=rank)
        assert code == 1

    def test_under_mpi_each_process_is_one_rank_and_meets_the_others_at_the_first_worker(self, tmp_path: Path) -> None:
        args = MetaseqArgs(submission=VOLCANO, pods=pods(2), model=SIZES["1.3b"])
        variables = {"OMPI_COMM_WORLD_RANK": "11", "OMPI_COMM_WORLD_LOCAL_RANK": "3"}
        code, (call,) = self.run(tmp_path, args, "mpi", **variables)
        assert code == 0
        assert "--distributed-rank 11 --device-id 3" in call
        assert "barrierlesstcpr://metaseq-mpiworker-0.metaseq:29400" in call

    @pytest.mark.parametrize("before", ["", "/usr/local/nvidia/lib"])
    def test_launcher_and_processes_find_the_libraries_of_the_published_job(self, tmp_path: Path, before: str) -> None:
        """Executed: the launcher up to mpirun, and a process as mpirun starts it."""
        for name in ("mpirun", "python3"):
            (tmp_path / name).write_text(f'#!/bin/bash\necho "$PATH" "$LD_LIBRARY_PATH" > {tmp_path}/{name}.found\n')
            (tmp_path / name).chmod(0o755)
        (tmp_path / "hosts").write_text("")
        args = MetaseqArgs(submission=VOLCANO, pods=pods(1), model=SIZES["1.3b"])
        path = f"{tmp_path}:/usr/bin:/bin"
        given = {"PATH": path, **({"LD_LIBRARY_PATH": before} if before else {})}
        tasks = {task["name"]: task for task in of(metaseq.documents("m", args), "Job")["spec"]["tasks"]}
        *shell, script = tasks["mpimaster"]["template"]["spec"]["containers"][0]["command"]
        script = script.replace("/etc/volcano/mpiworker.host", str(tmp_path / "hosts"))
        subprocess.run([*shell, script], env=given, check=True, timeout=20)
        found, libraries = (tmp_path / "mpirun.found").read_text().split()
        assert found == f"/opt/hpcx/ompi/bin:{path}"
        assert libraries == ":".join(filter(None, ["/opt/hpcx/ompi/lib", before]))
        ranks = {"OMPI_COMM_WORLD_RANK": "0", "OMPI_COMM_WORLD_LOCAL_RANK": "0", "LD_LIBRARY_PATH": libraries}
        train = metaseq.train_script(args).replace("/etc/volcano/mpiworker.host", str(tmp_path / "hosts"))
        subprocess.run(["/bin/bash", "-c", train, "train.sh", "mpi"], env={**given, **ranks}, check=True, timeout=20)
        _, libraries_of_process = (tmp_path / "python3.found").read_text().split()
        plugins = "/usr/lib/x86_64-linux-gnu/:/opt/hpcx/nccl_rdma_sharp_plugin/lib"
        assert libraries_of_process == f"{plugins}:{libraries}"


class TestOlmo:
    def args(self, **values: Any) -> OlmoArgs:
        return OlmoArgs(**{"submission": TEAM, "pods": pods(4, shared_memory="128Gi"), "data": "olmo-data", **values})

    def test_the_training_that_is_asked_for_is_run_and_the_job_ends_with_it(self, tmp_path: Path) -> None:
        for name, text in {
            "getent": "#!/bin/sh\n",
            "torchrun": f'#!/bin/sh\necho "$@" > {tmp_path}/call\nexit 5\n',
            "sleep": "#!/bin/sh\necho slept >> /dev/stderr\n",
        }.items():
            (tmp_path / name).write_text(text)
            (tmp_path / name).chmod(0o755)
        script = olmo.train_script("olmo", self.args(training="configs/official-0724/OLMo-7B.yaml", stop_at=1000))
        env = {"PATH": f"{tmp_path}:{os.environ['PATH']}", "SCRATCH_DIR": str(tmp_path / "scratch")}
        (tmp_path / "scratch" / "checkpoints" / "old").mkdir(parents=True)
        ran = subprocess.run(["/bin/bash", "-c", script], env=env, capture_output=True, text=True, timeout=20)
        assert ran.returncode == 5, "the training's own exit code"
        assert ran.stderr == "", "nothing holds the GPUs after the training"
        assert (tmp_path / "call").read_text().split() == [
            *("--nproc-per-node", "8", "--nnodes", "4", "--rdzv-backend", "c10d", "--rdzv-id", "olmo"),
            *("--rdzv-endpoint", "olmo-0.olmo-service:29500"),
            *("scripts/train.py", "configs/official-0724/OLMo-7B.yaml"),
            *(f"--save_folder={tmp_path}/scratch/checkpoints", "--stop_at=1000"),
        ]
        assert list((tmp_path / "scratch" / "checkpoints").iterdir()) == []


def lab(submission: Submission = PLAIN, **values: Any) -> jupyterlab.JupyterLabArgs:
    one = pods(1, shared_memory="128Gi")
    common = {"token": "correct-horse", "storage": Storage(storage_class="azurefile-csi-premium", size="1Ti")}
    return jupyterlab.JupyterLabArgs(**{"submission": submission, "pods": one, **common, **values})


class TestJupyterLab:
    def built(self, args: jupyterlab.JupyterLabArgs) -> Record:
        return on_cluster(lambda opts: jupyterlab.JupyterLab("jupyterlab", args, opts))

    def test_the_token_is_a_secret_and_stands_nowhere_else(self) -> None:
        built = self.built(lab(token=pulumi.Output.secret("correct-horse")))
        secret = built.one("Secret", "jupyterlab-token")
        assert "data" in secret.secrets
        assert base64.b64decode(secret.inputs["data"]["token"]) == b"correct-horse"
        others = [item.inputs for item in built.objects() if item.urn != secret.urn]
        assert not [
            text for text in strings(others) if "correct-horse" in text or secret.inputs["data"]["token"] in text
        ]
        container = pod_of([jupyterlab.server("jupyterlab", lab())], "Deployment")["containers"][0]
        assert not [word for word in container["command"] if "token" in word.lower()]
        assert {
            "name": "JUPYTER_TOKEN",
            "valueFrom": {"secretKeyRef": {"name": "jupyterlab-token", "key": "token"}},
        } in container["env"]

    def test_an_idle_server_ends_its_job(self) -> None:
        (part,) = jupyterlab.server("jupyterlab", lab(TEAM, idle_seconds=3600))["spec"]["components"]
        job = part["template"]
        assert (job["kind"], job["spec"]["template"]["spec"]["restartPolicy"]) == ("Job", "OnFailure")
        *_, start = job["spec"]["template"]["spec"]["containers"][0]["command"][-1].splitlines()
        assert set(re.findall(r"--(\w+\.\w*timeout)=3600(?= |$)", start)) == {
            "MappingKernelManager.cull_idle_timeout",
            "TerminalManager.cull_inactive_timeout",
            "ServerApp.shutdown_no_activity_timeout",
            "NotebookApp.shutdown_no_activity_timeout",
        }

    def test_a_load_balancer_takes_connections_from_given_addresses_only(self) -> None:
        inside = Reach(exposure=Exposure.INTERNAL, ranges=("10.0.0.0/8",), internal=INTERNAL_LOAD_BALANCER)
        service = self.built(lab(reach=inside)).one("Service", "jupyterlab").inputs
        assert service["spec"]["type"] == "LoadBalancer"
        assert service["spec"]["loadBalancerSourceRanges"] == ["10.0.0.0/8"]
        assert service["metadata"]["annotations"]["service.beta.kubernetes.io/azure-load-balancer-internal"] == "true"
        public = Reach(exposure=Exposure.PUBLIC, ranges=("203.0.113.0/24",))
        service = self.built(lab(reach=public)).one("Service", "jupyterlab").inputs
        assert "service.beta.kubernetes.io/azure-load-balancer-internal" not in service["metadata"]["annotations"]
        with pytest.raises(ValueError, match="address ranges"):
            Reach(exposure=Exposure.PUBLIC)
        with pytest.raises(ValueError, match="no internal load balancer"):
            Reach(exposure=Exposure.INTERNAL, ranges=("10.0.0.0/8",))

    @pytest.mark.parametrize(
        ("reach", "address", "command"),
        [
            (Reach(), "http://localhost:8888", "kubectl port-forward --namespace blue service/jupyterlab 8888:80"),
            (
                Reach(exposure=Exposure.PUBLIC, ranges=("203.0.113.0/24",)),
                "http://EXTERNAL-IP",
                "kubectl get --namespace blue service jupyterlab",
            ),
        ],
    )
    def test_the_output_says_how_it_is_opened(self, reach: Reach, address: str, command: str) -> None:
        found: dict[str, Any] = {}

        def built(opts: pulumi.ResourceOptions) -> None:
            access = jupyterlab.JupyterLab("jupyterlab", lab(TEAM, reach=reach), opts).access
            pulumi.Output.all(**access).apply(found.update)

        on_cluster(built)
        assert (found["address"], found["command"]) == (address, command)

    def test_nobody_is_let_in_without_a_load_balancer_or_a_closed_namespace(self) -> None:
        reach = Reach(exposure=Exposure.PUBLIC, ranges=("203.0.113.0/24",))
        assert self.built(lab(closed=True)).of("NetworkPolicy") == []
        assert self.built(lab(reach=reach)).of("NetworkPolicy") == []

    def test_without_scratch_space_its_nodes_need_none(self) -> None:
        without = pod_of([jupyterlab.server("jupyterlab", lab(scratch=False))], "Deployment")
        assert "nodeSelector" not in without
        assert "/scratch" not in mounts(without)
        assert "POD_UID" not in [item["name"] for item in without["containers"][0]["env"]]

    def test_programs_that_users_install_are_found_in_kernels_and_terminals(self, tmp_path: Path) -> None:
        """Executed with a server that notes its path, and with the login shell of a terminal."""
        image, home = tmp_path / "image", tmp_path / "home folder"
        for folder in (image, home):
            folder.mkdir()
        (image / "jupyter-lab").write_text('#!/bin/sh\necho "$PATH"\necho "$@"\n')
        (image / "jupyter-lab").chmod(0o755)
        command = pod_of([jupyterlab.server("jupyterlab", lab())], "Deployment")["containers"][0]["command"]
        environment = {"HOME": str(home), "PATH": f"{image}:/usr/bin:/bin"}
        ran = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
        path = f"{home}/.local/bin:{image}:/usr/bin:/bin"
        assert ran.stdout == f"{path}\n--ip=0.0.0.0 --port=8888 --no-browser\n"
        terminal = subprocess.run(
            ["sh", "-l", "-c", 'echo "$PATH"'], env=environment, capture_output=True, text=True, check=True
        )
        assert terminal.stdout == f"{path}\n"


class TestDisruption:
    @pytest.mark.parametrize(
        ("documents", "pods"),
        [
            (lambda: metaseq.documents("m", MetaseqArgs(submission=TEAM, pods=pods(2), model=SIZES["1.3b"])), 2),
            (lambda: metaseq.documents("m", MetaseqArgs(submission=VOLCANO, pods=pods(2), model=SIZES["1.3b"])), 3),
            (lambda: olmo.documents("m", OlmoArgs(submission=TEAM, pods=pods(4), data="data")), 4),
            (
                lambda: [
                    item.inputs
                    for item in on_cluster(lambda opts: jupyterlab.JupyterLab("m", lab(TEAM), opts)).objects()
                ],
                1,
            ),
        ],
        ids=["metaseq", "metaseq by Volcano", "olmo", "jupyterlab"],
    )
    def test_no_drain_ends_what_would_be_lost(self, documents: Callable[[], list[dict[str, Any]]], pods: int) -> None:
        """The budget selects the job's own pods, and asks for all of them."""
        found = documents()
        budget = of(found, "PodDisruptionBudget")
        assert budget["spec"]["minAvailable"] == pods
        assert budget["metadata"]["namespace"] in ("blue", "workloads")
        ((label, value),) = budget["spec"]["selector"]["matchLabels"].items()
        templates = [
            inner
            for document in found
            for key, inner in pairs(document)
            if key == "template" and isinstance(inner, dict) and "containers" in inner.get("spec", {})
        ]
        assert templates
        assert all(template["metadata"]["labels"][label] == value for template in templates)

    def test_a_test_of_some_minutes_may_be_repeated(self) -> None:
        kinds = {item["kind"] for item in nccl.documents("n", NcclArgs(submission=TEAM, pods=pods(2)))}
        assert "PodDisruptionBudget" not in kinds
