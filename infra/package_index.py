"""How uv reaches a package index: by the variables that are usually set for pip, and with the system's certificates.

uv reads neither pip's variables (https://docs.astral.sh/uv/pip/compatibility/#configuration-files-and-environment-variables)
nor, unless asked, the system's certificates (https://docs.astral.sh/uv/concepts/authentication/certificates/). What is set
for uv itself goes before what is set for pip.

`python infra/package_index.py PROGRAM ARGUMENT…` runs a program so. `make setup` does before anything is installed, so this
module imports nothing but the standard library.
"""

import os
import sys
from collections.abc import Mapping

_FROM_PIP = (
    # In uv, by any of these names; of pip.
    (("UV_DEFAULT_INDEX", "UV_INDEX_URL"), ("PIP_INDEX_URL",)),
    (("UV_INDEX", "UV_EXTRA_INDEX_URL"), ("PIP_EXTRA_INDEX_URL",)),
    (("UV_INSECURE_HOST",), ("PIP_TRUSTED_HOST",)),
)
_OWN_CERTIFICATES = ("SSL_CERT_FILE", "SSL_CERT_DIR")
_SYSTEM_CERTIFICATES = ("UV_SYSTEM_CERTS", "UV_NATIVE_TLS")
_CERTIFICATES_OF_PIP = ("PIP_CERT", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE")
"""In pip's order (https://pip.pypa.io/en/stable/topics/https-certificates/)."""


def environment_for_uv(given: Mapping[str, str]) -> dict[str, str]:
    """An environment, with what uv needs in addition."""
    found = dict(given)
    for ours, of_pip in _FROM_PIP:
        if not _first_of(ours, given) and (value := _first_of(of_pip, given)):
            found[ours[0]] = value
    if not _first_of(_SYSTEM_CERTIFICATES, given):
        found["UV_SYSTEM_CERTS"] = "true"
    if not _first_of(_OWN_CERTIFICATES, given) and (bundle := certificates_of(given)):
        found["SSL_CERT_DIR" if os.path.isdir(bundle) else "SSL_CERT_FILE"] = bundle  # noqa: PTH112  nothing but its kind
    return found


def certificates_of(given: Mapping[str, str]) -> str:
    """The bundle of certificates that an environment names for pip or for everything; empty for none."""
    return _first_of(("SSL_CERT_FILE", *_CERTIFICATES_OF_PIP), given)


def _first_of(names: tuple[str, ...], given: Mapping[str, str]) -> str:
    return next((given[name] for name in names if given.get(name)), "")


if __name__ == "__main__":
    program, *arguments = sys.argv[1:]
    os.execve(program, [program, *arguments], environment_for_uv(os.environ))  # noqa: S606  as make would run it
