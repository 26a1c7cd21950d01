"""What reaches the engine of the user's environment, and what one process hands to another."""

from pathlib import Path

import pytest

from runner.environment import Environment, inherited, past_proxies

ELSEWHERE = """
ALL_PROXY HTTPS_PROXY HTTP_PROXY NO_PROXY GRPC_PROXY http_proxy https_proxy no_proxy
AWS_ACCESS_KEY_ID AWS_PROFILE AWS_SECRET_ACCESS_KEY CLOUDSDK_CONFIG GOOGLE_APPLICATION_CREDENTIALS GOOGLE_CREDENTIALS
ARM_CLIENT_ID ARM_CLIENT_SECRET ARM_ENVIRONMENT ARM_METADATA_HOSTNAME ARM_OIDC_TOKEN ARM_SUBSCRIPTION_ID ARM_TENANT_ID
AZURE_CLIENT_SECRET AZURE_CONFIG_DIR AZURE_KEYVAULT_AUTH_VIA_CLI AZURE_STORAGE_ACCOUNT AZURE_STORAGE_KEY
OS_AUTH_URL OS_CLIENT_CONFIG_FILE OS_CLOUD OS_PASSWORD SSH_AUTH_SOCK VAULT_ADDR VAULT_TOKEN
KUBECONFIG KUBERNETES_MASTER KUBERNETES_SERVICE_HOST KUBE_CONFIG_PATH KUBE_CONTEXT KUBE_TOKEN HELM_KUBECONTEXT
HELM_REPOSITORY_CONFIG MLBATCH_MIRROR LD_PRELOAD PYTHONPATH PYTHONSTARTUP
PULUMI_ACCESS_TOKEN PULUMI_API PULUMI_BACKEND_URL PULUMI_CONFIG_PASSPHRASE PULUMI_CONFIG_PASSPHRASE_FILE
PULUMI_DEBUG_PROVIDERS PULUMI_DISABLE_AUTOMATIC_PLUGIN_ACQUISITION PULUMI_HOME PULUMI_IGNORE_AMBIENT_PLUGINS
PULUMI_K8S_CLIENT_QPS PULUMI_K8S_DELETE_UNREACHABLE PULUMI_OPTION_CONFIG_FILE PULUMI_OPTION_STACK PULUMI_POLICY_PACK
"""


@pytest.mark.parametrize("name", ELSEWHERE.split())
def test_what_could_lead_elsewhere_does_not_reach_the_engine(name: str) -> None:
    assert inherited({name: "x"}) == {}


def test_what_a_terminal_and_a_program_need_does() -> None:
    needed = {"HOME": "/home/me", "TERM": "xterm", "LANG": "C.UTF-8", "LC_ALL": "C", "TMPDIR": "/tmp", "USER": "me"}
    assert inherited({**needed, "UNKNOWN": "x"}) == needed


def test_this_machine_is_not_reached_through_a_proxy() -> None:
    once = past_proxies({"NO_PROXY": "example.org,127.0.0.1", "https_proxy": "http://proxy"})
    assert once == {"NO_PROXY": "example.org,127.0.0.1,localhost", "no_proxy": "127.0.0.1,localhost"}
    assert past_proxies(once) == once


def test_an_environment_is_what_it_was_after_its_way_to_another_process() -> None:
    whole = Environment(
        kubeconfig=Path("/l/kubeconfig"),
        mirror=Path("/l/mirror"),
        providers={"kubernetes": 1, "random": 2},
        programs=(Path("/l/bin"),),
        plugins=(Path("/p"),),
        variables={"OS_AUTH_TYPE": "v3applicationcredential"},
        disposable=True,
        reads_secrets=False,
    )
    assert Environment.load(whole.dump()) == whole
    assert Environment.load(Environment(kubeconfig=Path("/k")).dump()) == Environment(kubeconfig=Path("/k"))
    assert "\n" not in whole.dump()


@pytest.mark.parametrize("text", ["", "{}", "[]", "null", "starting ..."])
def test_what_is_no_environment_is_an_error(text: str) -> None:
    with pytest.raises(ValueError):  # noqa: PT011 - JSON's own error is one
        Environment.load(text)
