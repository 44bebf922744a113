"""A headless Chromium to open a report in, and what one asks of it."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

from selenium import webdriver
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.remote.webelement import WebElement

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
# No sandbox, so that it runs as root too; nothing that Chromium would look up by itself.
ARGUMENTS = (
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)


def missing() -> str | None:
    """What is not installed; None where all is."""
    if not any(shutil.which(name) for name in BROWSERS):
        return "no Chromium or Chrome on the PATH"
    return None if shutil.which("chromedriver") else "no chromedriver on the PATH"


class Browser:
    """One window; `errors` and `requests` since the last page was opened."""

    def __init__(self, profile: Path) -> None:
        options = webdriver.ChromeOptions()
        options.binary_location = next(path for name in BROWSERS if (path := shutil.which(name)))
        for argument in (*ARGUMENTS, f"--user-data-dir={profile}"):
            options.add_argument(argument)
        options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
        self.driver = webdriver.Chrome(options=options, service=Service(shutil.which("chromedriver")))

    def open(self, page: Path, width: int = 1280, dark: bool = False) -> None:
        for log in ("browser", "performance"):
            self.driver.get_log(log)
        size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False}
        self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
        features = [
            {"name": "prefers-color-scheme", "value": "dark" if dark else "light"},
            {"name": "prefers-reduced-motion", "value": "reduce"},
        ]
        self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})
        self.driver.get(page.as_uri())
        # Charts are drawn once they know their width: a frame or two later.
        self.driver.execute_async_script(
            "const done = arguments[0];"
            "const frames = (n) => requestAnimationFrame(() => (n ? frames(n - 1) : done())); frames(3);"
        )

    def errors(self) -> list[str]:
        """What the console says that is more than information, of pages opened from a file: not of Chromium's own."""
        entries = [entry for entry in self.driver.get_log("browser") if entry["level"] != "INFO"]
        return [str(entry["message"]) for entry in entries if str(entry["message"]).startswith("file:")]

    def requests(self) -> list[str]:
        """Addresses of everything that a page opened from a file asked for."""
        found = []
        for entry in self.driver.get_log("performance"):
            message = json.loads(entry["message"])["message"]
            asked = message["params"]
            if message["method"] == "Network.requestWillBeSent" and asked["documentURL"].startswith("file:"):
                found.append(asked["request"]["url"])
            if message["method"] == "Network.webSocketCreated":
                found.append(asked["url"])
        return found

    def one(self, selector: str) -> WebElement:
        return self.driver.find_element(By.CSS_SELECTOR, selector)

    def all(self, selector: str) -> list[WebElement]:
        return self.driver.find_elements(By.CSS_SELECTOR, selector)

    def text(self, selector: str) -> str:
        return str(self.driver.execute_script("return document.querySelector(arguments[0]).textContent", selector))

    def script(self, text: str, *arguments: Any) -> Any:
        return self.driver.execute_script(text, *arguments)

    def focus(self, selector: str) -> None:
        self.script("document.querySelector(arguments[0]).focus()", selector)

    def press(self, *keys: str) -> None:
        """Keys go to what has the focus."""
        for key in keys:
            ActionChains(self.driver).send_keys(key).perform()

    def focused(self) -> str:
        """Tag, id and class of what has the focus."""
        return str(
            self.script(
                "const e = document.activeElement; return `${e.tagName}#${e.id}.${e.className.baseVal ?? e.className}`"
            )
        )


__all__ = ["Browser", "Keys", "missing"]
