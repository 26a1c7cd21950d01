"""The certificates and keys of the local control plane, all issued by one authority."""

import ipaddress
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from runner.files import write_private

_LIFETIME = timedelta(days=3650)
_RENEW_BEFORE = timedelta(days=30)
_AUTHORITY = "mlbatch-local-ca"

NAME = "kube-apiserver"
"""Common name of the API server's certificate, also in `controlplane.yaml`. Its aggregator authenticates by it."""

_EXTENSIONS = (
    x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH]),
    x509.SubjectAlternativeName(
        [
            x509.IPAddress(ipaddress.ip_address("127.0.0.1")),
            x509.DNSName("localhost"),
            x509.DNSName("kubernetes"),
            x509.DNSName("kubernetes.default"),
            x509.DNSName("kubernetes.default.svc"),
        ]
    ),
)


def ensure(folder: Path) -> None:
    """Create the control plane's certificates in `folder`, unless valid ones exist.

    ca.crt is the authority's; apiserver.crt and apiserver.key the API server's; service-accounts.key signs the tokens
    of service accounts. The authority's key is not kept: a renewal creates all files again.
    """
    keys = [folder / name for name in ("apiserver.key", "service-accounts.key")]
    if all(key.exists() for key in keys) and _is_good(folder / "ca.crt") and _is_good(folder / "apiserver.crt"):
        return
    authority_key, serving_key, signing_key = (ec.generate_private_key(ec.SECP256R1()) for _ in range(3))
    authority = _certificate(_AUTHORITY, authority_key, authority_key, ca=True)
    serving = _certificate(NAME, serving_key, authority_key, ca=False)
    write_private(folder / "service-accounts.key", _pem(signing_key))
    write_private(folder / "apiserver.key", _pem(serving_key))
    write_private(folder / "apiserver.crt", _pem(serving))
    write_private(folder / "ca.crt", _pem(authority))


def _is_good(file: Path) -> bool:
    try:
        return x509.load_pem_x509_certificate(file.read_bytes()).not_valid_after_utc - _RENEW_BEFORE > datetime.now(UTC)
    except (OSError, ValueError):
        return False


def _certificate(
    name: str, key: ec.EllipticCurvePrivateKey, issuer_key: ec.EllipticCurvePrivateKey, *, ca: bool
) -> x509.Certificate:
    now = datetime.now(UTC)
    usage = x509.KeyUsage(
        digital_signature=True,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=ca,
        crl_sign=ca,
        encipher_only=False,
        decipher_only=False,
    )
    builder = (
        x509.CertificateBuilder()
        .subject_name(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)]))
        .issuer_name(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, _AUTHORITY)]))
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(hours=1))
        .not_valid_after(now + _LIFETIME)
        .add_extension(x509.BasicConstraints(ca=ca, path_length=0 if ca else None), critical=True)
        .add_extension(usage, critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(issuer_key.public_key()), critical=False)
    )
    for extension in () if ca else _EXTENSIONS:
        builder = builder.add_extension(extension, critical=False)
    return builder.sign(issuer_key, hashes.SHA256())


def _pem(content: x509.Certificate | ec.EllipticCurvePrivateKey) -> str:
    pem = serialization.Encoding.PEM
    if isinstance(content, x509.Certificate):
        return content.public_bytes(pem).decode()
    # The API server can also read a public key from this format.
    form = serialization.PrivateFormat.TraditionalOpenSSL
    return content.private_bytes(pem, form, serialization.NoEncryption()).decode()
