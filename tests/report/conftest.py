"""A real browser without a screen, driven through its own debugging pipe, and a stand-in."""

from __future__ import annotations

import base64
import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest

FLAGS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--remote-debugging-pipe",
]


class Browser:
    """Chromium with one page, by the DevTools protocol."""

    def __init__(self, program: str, profile):
        # The browser reads from descriptor 3 and writes to 4.
        reading, self._to = os.pipe()
        self._from, writing = os.pipe()

        def arrange():
            kept = os.dup(reading), os.dup(writing)
            os.dup2(kept[0], 3)
            os.dup2(kept[1], 4)

        self._process = subprocess.Popen(
            [program, *FLAGS, f"--user-data-dir={profile}", "about:blank"],
            preexec_fn=arrange,
            pass_fds=(3, 4),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(reading)
        os.close(writing)
        self._unread, self._number, self._session = b"", 0, None
        self.events: list[dict] = []
        targets = self.call("Target.getTargets")["targetInfos"]
        page = next(target for target in targets if target["type"] == "page")
        attached = self.call("Target.attachToTarget", targetId=page["targetId"], flatten=True)
        self._session = attached["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")

    def call(self, method: str, **parameters):
        """Send a command and return what it answers; events are kept."""
        self._number += 1
        message = {"id": self._number, "method": method, "params": parameters}
        if self._session:
            message["sessionId"] = self._session
        os.write(self._to, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._read()
            if answer.get("id") == self._number:
                assert "error" not in answer, answer
                return answer["result"]
            self.events.append(answer)

    def _read(self) -> dict:
        while b"\0" not in self._unread:
            piece = os.read(self._from, 1 << 20)
            assert piece, "the browser has ended"
            self._unread += piece
        message, _, self._unread = self._unread.partition(b"\0")
        return json.loads(message)

    def open(self, path, width=1200, height=900, dark=False):
        """Show a file at a size and in a colour scheme."""
        self.events.clear()
        self.call(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=1,
            mobile=width < 600,
        )
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.call("Emulation.setEmulatedMedia", features=[scheme])
        self.call("Page.navigate", url=path.absolute().as_uri())
        while not any(event.get("method") == "Page.loadEventFired" for event in self.events):
            self.events.append(self._read())
        self.run("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")

    def run(self, code: str):
        """Return the value of an expression in the page."""
        answer = self.call(
            "Runtime.evaluate", expression=code, returnByValue=True, awaitPromise=True
        )
        assert "exceptionDetails" not in answer, answer["exceptionDetails"]
        return answer["result"].get("value")

    def press(self, key: str, code: int, text: str = ""):
        """Press and release a key."""
        for kind in ("rawKeyDown", "keyUp"):
            self.call(
                "Input.dispatchKeyEvent", type=kind, key=key, code=key, windowsVirtualKeyCode=code
            )

    def complaints(self) -> list:
        """Return errors and warnings of the page, and requests beyond the file itself."""
        found = [event for event in self.events if event.get("method") == "Runtime.exceptionThrown"]
        found += [
            event
            for event in self.events
            if event.get("method") in ("Log.entryAdded", "Runtime.consoleAPICalled")
        ]
        requests = [
            event["params"]["request"]["url"]
            for event in self.events
            if event.get("method") == "Network.requestWillBeSent"
        ]
        # The browser draws some controls, such as those of dates, with pictures of its own.
        return found + [url for url in requests if not url.startswith(("file:", "data:"))]

    def picture(self) -> bytes:
        """Return the whole page as PNG."""
        shot = self.call("Page.captureScreenshot", captureBeyondViewport=True, format="png")
        return base64.b64decode(shot["data"])

    def close(self):
        """End the browser."""
        self._process.terminate()
        self._process.wait(timeout=30)
        os.close(self._to)
        os.close(self._from)


class StandIn:
    """As much of a browser as the script of a report needs, in Node."""

    def __init__(self, program: str):
        script = Path(__file__).with_name("stand_in.js")
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
        self._process = subprocess.Popen([program, script], text=True, encoding="utf-8", **pipes)

    def _ask(self, **question):
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(question) + "\n")
        self._process.stdin.flush()
        answer = json.loads(self._process.stdout.readline())
        assert "error" not in answer, answer["error"]
        return answer.get("value")

    def open(self, path):
        """Run the script of a page."""
        self._ask(open=str(path))

    def run(self, code: str):
        """Return the value of an expression in the page."""
        return self._ask(run=code)

    def complaints(self) -> list:
        """Return errors of the page."""
        return self._ask(run="complaints")

    def close(self):
        """End the program."""
        self._process.stdin.close()
        self._process.wait(timeout=30)


def _chromium() -> str | None:
    return shutil.which("chromium") or shutil.which("chromium-browser")


@pytest.fixture(scope="session")
def page(request):
    """Return a browser or, where there is none, its stand-in; or skip."""
    if _chromium():
        yield request.getfixturevalue("browser")
        return
    program = shutil.which("node")
    if program is None:
        pytest.skip("There is neither chromium nor node on this machine to run reports in.")
    stand_in = StandIn(program)
    yield stand_in
    stand_in.close()


@pytest.fixture(scope="session")
def browser(tmp_path_factory):
    """Return a browser, or skip."""
    program = _chromium()
    if program is None:
        pytest.skip("There is no chromium on this machine to open reports in.")
    browser = Browser(program, tmp_path_factory.mktemp("profile"))
    yield browser
    browser.close()
