"""Masks secrets before anything is stored: keys, tokens, passwords, e-mail addresses, names of people and machines.

The forms of tokens are those of detect-secrets (Yelp; `pip install tracejury[redact]`), with the newer ones of model
providers added. Only fixed forms are masked: entropy would take span ids for secrets.
"""

from __future__ import annotations

import importlib
import pkgutil
import re
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass, replace
from functools import lru_cache, partial
from typing import Any, NamedTuple, TypeVar, cast

from tracejury.ingest.trace import IngestError, LooseLogs, Rejected, Source, Trace

_T = TypeVar("_T")

_LEFT_OUT = frozenset({
    "IPPublicDetector",  # an address is no secret
    "NpmDetector", "JwtTokenDetector", "PrivateKeyDetector", "ArtifactoryDetector",  # slow or half masked: see below
    "CloudantDetector", "IbmCloudIamDetector", "IbmCosHmacDetector", "SoftlayerDetector",  # "password" takes them
})  # fmt: skip
_HINTS = {
    "MailchimpDetector": "-us", "StripeDetector": "_live_", "GitHubTokenDetector": "gh",
    "SendGridDetector": "SG.", "PypiTokenDetector": "pypi-", "SquareOAuthDetector": "sq0csp",
    "OpenAIDetector": "T3Blbk", "AzureStorageKeyDetector": "AccountKey=", "BasicAuthDetector": "://",
}  # fmt: skip
"""Text without which a form cannot match: most traces are spared most forms."""
_TEXT = (b"{", b"[", b"\xef\xbb\xbf")
_OWN: tuple[tuple[str, str, str], ...] = (
    # what it is called, a text that must be there for it to be tried, its form (group 1 is masked if there is one)
    (
        "private key", "PRIVATE KEY",
        r"-----BEGIN [A-Z0-9 ]{0,30}PRIVATE KEY[^-]{0,20}-----[^-]{1,20000}(?:-----END [A-Z0-9 ]{0,30}-----)?",
    ),
    ("API key", "sk-", r"\bsk-(?:[a-z]{2,8}-)?[A-Za-z0-9_\-]{20,200}"),
    ("API key", "AIza", r"\bAIza[0-9A-Za-z_\-]{35}"),
    ("API key", "hf_", r"\bhf_[A-Za-z0-9]{30,60}"),
    ("API key", "gsk_", r"\bgsk_[A-Za-z0-9]{40,80}"),
    (
        "JSON Web Token", "eyJ",
        r"\beyJ[A-Za-z0-9_=\-]{8,4000}\.[A-Za-z0-9_=\-]{4,8000}(?:\.[A-Za-z0-9_.+/=\-]{0,4000})?",
    ),
    ("token", "npm_", r"\bnpm_[A-Za-z0-9]{36}"),
    ("token", "github_pat_", r"\bgithub_pat_[A-Za-z0-9_]{50,120}"),
    ("token", "earer", r"\b[Bb]earer\s{1,4}([A-Za-z0-9._~+/\-]{16,4000}={0,2})"),
    ("credentials", "AKC", r"\bAKC[a-zA-Z0-9]{10,200}\b"),
    (
        "password", "",
        r"(?i)\b(?:api[_-]?key|secret(?:[_-]?key)?|passw(?:or)?d|pwd|auth[_-]?token|access[_-]?token|client[_-]?secret)"
        r"\\*[\"']?\s{0,4}[:=]\s{0,4}\\*[\"']?((?=[^\s\"'\\]{0,200}\d)[^\s\"'\\,;(){}\[\]<>]{8,200})",
    ),
    ("e-mail address", "@", r"[A-Za-z0-9._%+\-]{1,64}@(?:[A-Za-z0-9\-]{1,63}\.){1,5}[A-Za-z]{2,24}\b"),
    ("user name", "", r"(?:/home/|/Users/|\b[A-Za-z]:\\{1,4}Users\\{1,4})(?!\[)([^/\\\s\"':,;)]{1,64})"),
)  # fmt: skip
_MACHINE_KEYS = frozenset({
    "hostname", "host.name", "host.id", "host.ip", "user.name", "username", "process.owner", "process.command_line",
    "process.command_args", "environ", "env_vars", "environment_variables", "os.environ",
})  # fmt: skip


class _Form(NamedTuple):
    name: str
    hint: str
    pattern: re.Pattern[str]
    own: bool


class Redactor:
    """Masks what it finds with `[redacted: <what>]` and counts it.

    Raises `IngestError` where detect-secrets is not installed: a trace must not be stored half masked.
    """

    def __init__(self) -> None:
        self._forms = _forms()
        self._last: tuple[bytes, bytes] = (b"", b"")

    def text(self, text: str, counts: Counter[str] | None = None) -> str:
        """The text with every secret masked; `counts` counts them by kind."""
        for form in self._forms:
            if form.hint in text:
                text = form.pattern.sub(partial(_masked, form=form, counts=counts), text)
        return text

    def apply(self, item: Trace | Rejected) -> Trace | Rejected:
        """The trace (or the rejection's words) with every secret masked, its kept source bytes too.

        Source bytes that are no text, or too many to be held, are not masked and not kept; a warning says which.
        """
        counts: Counter[str] = Counter()
        if isinstance(item, LooseLogs):
            masked = tuple((trace_id, self.text(body.decode(), counts).encode()) for trace_id, body in item.requests)
            item = replace(item, requests=masked)
        if isinstance(item, Rejected):
            return replace(item, reason=self.text(item.reason, counts), place=self.text(item.place, counts))
        clean: Trace = self._deep(replace(item, source=Source(file="", place=""), trace_id=""), counts)
        data = self._bytes(item.source.data)
        warnings = list(clean.warnings)
        if counts:
            summary = ", ".join(f"{count} {name}" for name, count in sorted(counts.items()))
            warnings.append(f"redacted: masked before it was stored: {summary}")
        if item.source.data and not data:
            warnings.append("source_not_kept: its source is not text and may hold what was masked")
        if item.source.path:
            warnings.append("source_not_kept: its source is too long to be masked")
        source = replace(item.source, data=data, path="", size=0)
        return replace(clean, source=source, trace_id=item.trace_id, warnings=tuple(warnings))

    def _bytes(self, data: bytes) -> bytes:
        if not data or not data.lstrip()[:3].startswith(_TEXT):
            return b""
        if self._last[0] is not data:
            try:
                self._last = (data, self.text(data.decode("utf-8")).encode())
            except UnicodeDecodeError:
                self._last = (data, b"")
        return self._last[1]

    def _deep(self, value: _T, counts: Counter[str]) -> _T:
        """Any value of a trace, masked throughout; ids stay, for they join spans."""
        return cast("_T", _mapped(value, lambda text: self.text(text, counts), counts))


def _mapped(value: Any, text: Callable[[str], str], counts: Counter[str]) -> Any:
    if isinstance(value, str):
        return text(value)
    if isinstance(value, Mapping):
        return {key: _mapped_item(key, item, text, counts) for key, item in value.items()}
    if is_dataclass(value) and not isinstance(value, type):
        changed = {
            field.name: _mapped(getattr(value, field.name), text, counts)
            for field in fields(value)
            if field.name not in ("span_id", "parent_span_id", "trace_id")
        }
        return replace(value, **changed)
    if isinstance(value, (list, tuple)):
        items = [_mapped(item, text, counts) for item in value]
        return items if isinstance(value, list) else tuple(items)
    return value


def _mapped_item(key: str, value: Any, text: Callable[[str], str], counts: Counter[str]) -> Any:
    if key.lower() in _MACHINE_KEYS and value not in (None, "", {}, []):
        counts["machine"] += 1
        return "[redacted: machine]"
    return _mapped(value, text, counts)


def _masked(match: re.Match[str], form: _Form, counts: Counter[str] | None) -> str:
    """The match with its secret masked: group 1 of our forms, a long group of others, else all but outer quotes."""
    whole = match.group()
    if counts is not None:
        counts[form.name] += 1
    groups = [group for group in match.groups() if group and (form.own or len(group) >= 16)]
    secret = max(groups, key=len) if groups else whole.strip("\"' \t=:|")
    start = whole.rfind(secret)
    return f"{whole[:start]}[redacted: {form.name}]{whole[start + len(secret) :]}"


@lru_cache(maxsize=1)
def _forms() -> tuple[_Form, ...]:
    own = [_Form(name, hint, re.compile(pattern), True) for name, hint, pattern in _OWN]
    return (*own[:-3], *_of_detect_secrets(), *own[-3:])


def _of_detect_secrets() -> list[_Form]:
    try:
        plugins = importlib.import_module("detect_secrets.plugins")
        base = importlib.import_module("detect_secrets.plugins.base").RegexBasedDetector
    except ImportError as error:
        raise IngestError(
            "redaction needs detect-secrets, which is not installed", remedy="pip install 'tracejury[redact]'"
        ) from error
    forms: dict[str, _Form] = {}
    for module in pkgutil.iter_modules(plugins.__path__):
        for name, kind in vars(importlib.import_module(f"{plugins.__name__}.{module.name}")).items():
            if isinstance(kind, type) and issubclass(kind, base) and kind is not base and name not in _LEFT_OUT:
                for pattern in getattr(kind, "denylist", ()):
                    forms[pattern.pattern] = _Form(
                        str(getattr(kind, "secret_type", name)), _HINTS.get(name, ""), pattern, False
                    )
    return list(forms.values())
