"""A headless browser, controlled through its protocol: content, messages and requests of a page.

Source: ChromeDevTools/devtools-protocol, json/browser_protocol.json.
"""

from __future__ import annotations

import base64
import contextlib
import json
import os
import shutil
import subprocess
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.request import Request, urlopen

import websocket

from tests.local import debian

_PROGRAMS = ("chromium", "google-chrome", "chromium-browser", "chromium-headless-shell")
_ARGUMENTS = (
    "--headless",
    "--no-sandbox",  # root has no sandbox
    "--disable-gpu",
    "--hide-scrollbars",
    "--remote-debugging-port=0",
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
)
_SECONDS = 60.0
_PAGE_EVENTS = ("Page", "Runtime", "Log", "Network")


class Browser:
    """A running browser, by the address of its protocol."""

    def __init__(self, address: str) -> None:
        self._address = address

    @contextlib.contextmanager
    def opened(self, file: Path) -> Iterator[Page]:
        """Open a file in a new tab, and yield its page when it is loaded."""
        tab = self._ask("new?about:blank", method="PUT")
        page = Page(tab["webSocketDebuggerUrl"])
        page.open(file)
        yield page
        page.close()

    def _ask(self, path: str, method: str) -> Mapping[str, Any]:
        with urlopen(Request(f"{self._address}/json/{path}", method=method), timeout=_SECONDS) as answer:
            found: Mapping[str, Any] = json.load(answer)
        return found


@dataclass
class Page:
    """An open page. said: errors and warnings in its console. asked: addresses that it requested.

    loaded: completed steps, by the protocol's name for each opened document.
    """

    address: str
    said: list[str] = field(default_factory=list)
    asked: list[str] = field(default_factory=list)
    loaded: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        # Chromium rejects clients that name an origin, like a web page.
        self._connection = websocket.create_connection(self.address, timeout=_SECONDS, suppress_origin=True)
        self._number = 0

    def open(self, file: Path) -> None:
        """Open a file and wait until it is drawn."""
        for domain in _PAGE_EVENTS:
            self._call(f"{domain}.enable")
        # Events of the tab's blank page may arrive only now.
        self._call("Page.setLifecycleEventsEnabled", enabled=True)
        document = self._call("Page.navigate", url=file.as_uri())["loaderId"]
        while document not in self.loaded:
            self._take()

    def close(self) -> None:
        """Close it; its messages and requests remain available."""
        self._call("Page.close")
        self._connection.close()

    def evaluate(self, expression: str) -> Any:
        """Return the value of a JavaScript expression on the page. The page's own policy does not apply to it."""
        return self._call("Runtime.evaluate", expression=expression, returnByValue=True)["result"].get("value")

    def picture(self, scheme: str = "light") -> bytes:
        """Return the page as a PNG in a colour scheme."""
        self._call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])
        return base64.b64decode(self._call("Page.captureScreenshot", format="png")["data"])

    def _call(self, method: str, **params: Any) -> Mapping[str, Any]:
        self._number += 1
        self._connection.send(json.dumps({"id": self._number, "method": method, "params": params}))
        while True:
            message = self._take()
            if message.get("id") == self._number:
                if "error" in message:
                    raise AssertionError(f"{method}: {message['error']}")
                found: Mapping[str, Any] = message["result"]
                return found

    def _take(self) -> Mapping[str, Any]:
        """Return the next message, and record events."""
        message: Mapping[str, Any] = json.loads(self._connection.recv())
        told = message.get("params", {})
        match message.get("method"):
            case "Page.lifecycleEvent" if told["name"] == "load":
                self.loaded.add(told["loaderId"])
            case "Network.requestWillBeSent":
                self.asked.append(told["request"]["url"])
            case "Log.entryAdded" if told["entry"]["level"] in ("warning", "error"):
                self.said.append(told["entry"]["text"])
            case "Runtime.consoleAPICalled" if told["type"] in ("warning", "error"):
                self.said.append(" ".join(str(each.get("value")) for each in told["args"]))
            case "Runtime.exceptionThrown":
                self.said.append(told["exceptionDetails"]["text"])
        return message


@contextlib.contextmanager
def started(folder: Path) -> Iterator[Browser]:
    """Run this machine's Chromium or Chrome, else Debian's. It writes its files into a folder."""
    program, environment = _program()
    command = [program, *_ARGUMENTS, f"--user-data-dir={folder}", "about:blank"]
    log = folder / "browser.log"
    with log.open("wb") as output:
        process = subprocess.Popen(command, env=environment, stdout=output, stderr=output)
    try:
        yield Browser(_address(process, folder / "DevToolsActivePort", log))
    finally:
        process.terminate()
        process.wait()


def _program() -> tuple[Path, Mapping[str, str]]:
    """Return the browser, and its environment variables."""
    for name in _PROGRAMS:
        if (program := shutil.which(name)) is not None:
            return Path(program), os.environ
    # The program reads its data, which are in the second package, from its own folder.
    folder = debian.unpacked("chromium-headless-shell", "chromium-common")
    libraries = sorted({str(found.parent) for found in folder.rglob("*.so*")})
    environment = {**os.environ, "LD_LIBRARY_PATH": ":".join(libraries)}
    return folder / "usr" / "lib" / "chromium" / "chromium-headless-shell", environment


def _address(process: subprocess.Popen[bytes], told: Path, log: Path) -> str:
    """Return the address of the browser's protocol, which it writes into a file."""
    deadline = time.monotonic() + _SECONDS
    while not (told.exists() and "\n" in told.read_text()):
        if process.poll() is not None or time.monotonic() > deadline:
            raise AssertionError(f"the browser does not start: {log.read_text(errors='replace')[-2000:]}")
        time.sleep(0.05)
    return f"http://127.0.0.1:{told.read_text().splitlines()[0]}"
