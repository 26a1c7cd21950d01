"""Certificate authorities, certificates and keys of the local control plane."""

from __future__ import annotations

import ipaddress
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from emulator.cluster.layout import write_private

_LIFETIME = timedelta(days=3650)
_RENEW_BEFORE = timedelta(days=30)

FRONT_PROXY_USER = "front-proxy-client"
"""Common name with which the API server's aggregator signs in to extension API servers."""

_SERVING_NAMES: tuple[x509.GeneralName, ...] = (
    x509.IPAddress(ipaddress.ip_address("127.0.0.1")),
    x509.DNSName("localhost"),
    x509.DNSName("kubernetes"),
    x509.DNSName("kubernetes.default"),
    x509.DNSName("kubernetes.default.svc"),
)


@dataclass(frozen=True)
class _Pair:
    """A certificate and its key, as files `<name>.crt` and `<name>.key` of one folder."""

    folder: Path
    name: str

    @property
    def certificate_path(self) -> Path:
        return self.folder / f"{self.name}.crt"

    @property
    def key_path(self) -> Path:
        return self.folder / f"{self.name}.key"

    def load(self) -> tuple[x509.Certificate, ec.EllipticCurvePrivateKey] | None:
        """Return the pair, or None when it is absent, damaged, mismatched or soon to expire."""
        try:
            certificate = x509.load_pem_x509_certificate(self.certificate_path.read_bytes())
            key = serialization.load_pem_private_key(self.key_path.read_bytes(), password=None)
        except (OSError, ValueError):
            return None
        if not isinstance(key, ec.EllipticCurvePrivateKey) or certificate.public_key() != key.public_key():
            return None
        if certificate.not_valid_after_utc - _RENEW_BEFORE < datetime.now(UTC):
            return None
        return certificate, key

    def save(self, certificate: x509.Certificate, key: ec.EllipticCurvePrivateKey) -> None:
        write_private(self.key_path, _key_pem(key))
        write_private(self.certificate_path, certificate.public_bytes(serialization.Encoding.PEM))


def ensure(folder: Path) -> None:
    """Make what the control plane needs in `folder`, keeping what is there and still valid.

    ca.crt/.key, front-proxy-ca.crt/.key, serving.crt/.key (127.0.0.1), front-proxy-client.crt/.key and the key that
    signs service account tokens, service-account.key (PEM, PKCS 8) with service-account.pub.
    """
    authority, renewed = _ensure_authority(_Pair(folder, "ca"), "mlbatch-local-ca")
    front_proxy, front_proxy_renewed = _ensure_authority(
        _Pair(folder, "front-proxy-ca"), "mlbatch-local-front-proxy-ca"
    )
    serving = _Pair(folder, "serving")
    if renewed or serving.load() is None:
        serving.save(*_issue(authority, "kube-apiserver", ExtendedKeyUsageOID.SERVER_AUTH, _SERVING_NAMES))
    client = _Pair(folder, "front-proxy-client")
    if front_proxy_renewed or client.load() is None:
        client.save(*_issue(front_proxy, FRONT_PROXY_USER, ExtendedKeyUsageOID.CLIENT_AUTH, ()))
    _ensure_signing_key(folder / "service-account.key", folder / "service-account.pub")


_Authority = tuple[x509.Certificate, ec.EllipticCurvePrivateKey]


def _ensure_authority(pair: _Pair, name: str) -> tuple[_Authority, bool]:
    found = pair.load()
    if found is not None:
        return found, False
    key = ec.generate_private_key(ec.SECP256R1())
    subject = _name(name)
    certificate = (
        _builder(subject, subject, key.public_key())
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(_key_usage(certificate_sign=True), critical=True)
        .sign(key, hashes.SHA256())
    )
    pair.save(certificate, key)
    return (certificate, key), True


def _issue(
    authority: _Authority, name: str, usage: x509.ObjectIdentifier, alternatives: Sequence[x509.GeneralName]
) -> tuple[x509.Certificate, ec.EllipticCurvePrivateKey]:
    issuer, issuer_key = authority
    key = ec.generate_private_key(ec.SECP256R1())
    builder = (
        _builder(_name(name), issuer.subject, key.public_key())
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(_key_usage(certificate_sign=False), critical=True)
        .add_extension(x509.ExtendedKeyUsage([usage]), critical=False)
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(issuer_key.public_key()), critical=False)
    )
    if alternatives:
        builder = builder.add_extension(x509.SubjectAlternativeName(alternatives), critical=False)
    return builder.sign(issuer_key, hashes.SHA256()), key


def _ensure_signing_key(private: Path, public: Path) -> None:
    try:
        key = serialization.load_pem_private_key(private.read_bytes(), password=None)
    except (OSError, ValueError):
        key = ec.generate_private_key(ec.SECP256R1())
        write_private(private, _key_pem(key))
    encoding, form = serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
    write_private(public, key.public_key().public_bytes(encoding, form))


def _builder(subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePublicKey) -> x509.CertificateBuilder:
    now = datetime.now(UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(hours=1))
        .not_valid_after(now + _LIFETIME)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key), critical=False)
    )


def _name(common_name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common_name)])


def _key_usage(*, certificate_sign: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=True,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=certificate_sign,
        crl_sign=certificate_sign,
        encipher_only=False,
        decipher_only=False,
    )


def _key_pem(key: ec.EllipticCurvePrivateKey) -> bytes:
    return key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
