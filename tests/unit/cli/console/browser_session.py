"""A headless Chromium that a test drives through its debugging port (Chrome DevTools Protocol)."""

from __future__ import annotations

import asyncio
import base64
import json
import re
import shutil
import tempfile
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from itertools import count
from typing import Any

from aiohttp import ClientSession, ClientWebSocketResponse

START_S = 30.0
POLL_S = 0.02
KEY_CODES = {"Tab": 9, "Enter": 13, "Escape": 27, "End": 35, "Home": 36}
"""The codes of the keys that have an effect of their own in a browser."""


class BrowserSession:
    """One page of the browser. `problems` are the errors and refusals that it reported, and
    `requests` the addresses that it asked for."""

    def __init__(self, socket: ClientWebSocketResponse) -> None:
        self._socket = socket
        self._ids = count(1)
        self.problems: list[str] = []
        self.requests: list[str] = []

    async def call(self, method: str, **params: Any) -> dict[str, Any]:
        """Send a command and return its result."""
        number = next(self._ids)
        await self._socket.send_json({"id": number, "method": method, "params": params})
        while True:
            message = json.loads(await self._socket.receive_str())
            if message.get("id") == number:
                assert "error" not in message, message
                result: dict[str, Any] = message["result"]
                return result
            if message.get("method") in ("Runtime.exceptionThrown", "Log.entryAdded"):
                self.problems.append(json.dumps(message["params"])[:400])
            if message.get("method") == "Network.requestWillBeSent":
                self.requests.append(message["params"]["request"]["url"])

    async def show(self, *, width: int = 1200, dark: bool = False, media: str = "screen") -> None:
        """Let the window have this width and the page these colours, on the screen or in print."""
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        await self.call("Emulation.setEmulatedMedia", media=media, features=[scheme])
        await self.call(
            "Emulation.setDeviceMetricsOverride",
            width=width, height=900, deviceScaleFactor=1, mobile=False,
        )  # fmt: skip

    async def value(self, expression: str) -> Any:
        """Return the value of a JavaScript expression, or of its promise."""
        found = await self.call(
            "Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True
        )
        assert "exceptionDetails" not in found, found
        return found["result"].get("value")

    async def until(self, expression: str) -> None:
        """Wait until the expression is true, for START_S at most."""
        deadline_s = time.monotonic() + START_S
        while not await self.value(expression):
            assert time.monotonic() < deadline_s, f"not within {START_S} s: {expression}"
            await asyncio.sleep(POLL_S)

    async def press(self, key: str) -> None:
        """Press a key, such as "/" or "ArrowRight"."""
        details: dict[str, Any] = {"key": key}
        if key in KEY_CODES:
            details["windowsVirtualKeyCode"] = KEY_CODES[key]
        text = "\r" if key == "Enter" else key if len(key) == 1 else None
        typed = {} if text is None else {"text": text}
        await self.call("Input.dispatchKeyEvent", type="keyDown", **details, **typed)
        await self.call("Input.dispatchKeyEvent", type="keyUp", **details)

    async def type(self, text: str) -> None:
        """Type a text into the focused element."""
        await self.call("Input.insertText", text=text)

    async def screenshot(self) -> bytes:
        """Return the window as PNG."""
        return base64.b64decode((await self.call("Page.captureScreenshot"))["data"])


@asynccontextmanager
async def browsing(
    browser: str, url: str, *, width: int = 1200, dark: bool = False
) -> AsyncIterator[BrowserSession]:
    """Open the URL in a new browser, which ends with the block."""
    profile = tempfile.mkdtemp()
    process = await asyncio.create_subprocess_exec(
        browser, "--headless", "--no-sandbox", "--disable-gpu", "--remote-debugging-port=0",
        f"--user-data-dir={profile}", "about:blank",
        stdin=asyncio.subprocess.DEVNULL, stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.PIPE,
    )  # fmt: skip
    try:
        assert process.stderr is not None
        async with asyncio.timeout(START_S):
            while not (found := re.search(rb"ws://(\S+?)/", await process.stderr.readline())):
                pass
        async with ClientSession() as client:
            async with client.get(f"http://{found[1].decode()}/json") as answer:
                pages = [each for each in await answer.json() if each["type"] == "page"]
            async with client.ws_connect(
                pages[0]["webSocketDebuggerUrl"], max_msg_size=64 << 20
            ) as socket:
                session = BrowserSession(socket)
                for domain in ("Runtime", "Log", "Page", "Network"):
                    await session.call(f"{domain}.enable")
                await session.show(width=width, dark=dark)
                await session.call("Page.navigate", url=url)
                yield session
    finally:
        process.kill()
        await process.communicate()
        shutil.rmtree(profile, ignore_errors=True)
