"""The page of a drift report in a real browser: Chromium without a screen, driven by ChromeDriver."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from kinds.lifecycle import EVERYTHING
from selenium.webdriver import Chrome, ChromeOptions, ChromeService
from selenium.webdriver.common.keys import Keys

import bfinfra
from bfinfra.cli.screen import unit
from bfinfra.engine.graph import waits
from bfinfra.render.page import page
from bfinfra.render.style import Style
from bfinfra.sandbox import Running

pytestmark = pytest.mark.packages

ROOT = Path(__file__).parents[2]
SITE = """\
site: example
vcenter: {{server: vc.small.test, username: admin@small.test, password: {{env: VCENTER_PASSWORD}}, trust: {{ca_file: ca.pem}}}}
gpu_host:
  esx1.small.test: {{passthrough: [{{vendor: 0x10de, device: 0x1eb8}}], reboot: if_needed}}
supervisor_namespace:
  team-a: {{cluster: compute, limits: {{memory: 2GiB, cpu: {cpu}}}}}
"""
CONTRAST = """
const luminance = c => { const [r, g, b] = c.match(/[\\d.]+/g).slice(0, 3).map(v => { v /= 255; return v <= .03928 ? v / 12.92 : ((v + .055) / 1.055) ** 2.4; }); return .2126 * r + .7152 * g + .0722 * b; };
const paper = getComputedStyle(document.body).backgroundColor;
return [...document.querySelectorAll('h1, p, th, td, caption, code, text, time')].filter(e => e.textContent.trim()).map(e => {
  const style = getComputedStyle(e), svg = e.tagName == 'text';
  const ground = svg ? getComputedStyle(e.parentNode.querySelector('rect')).fill : paper;
  const [a, b] = [luminance(svg ? style.fill : style.color), luminance(ground)].sort((x, y) => y - x);
  return [e.textContent.trim(), (a + .05) / (b + .05)];
});"""


@pytest.fixture(scope="module")
def browser() -> Iterator[Chrome]:
    driver, chromium = shutil.which("chromedriver"), shutil.which("chromium")
    if not driver or not chromium:
        pytest.fail("no Chromium here: apt-get install chromium chromium-driver", pytrace=False)
    options = ChromeOptions()
    options.binary_location = chromium
    for word in (
        "--headless=new",
        "--no-sandbox",
        "--disable-gpu",
        "--disable-dev-shm-usage",
        "--window-size=1400,1000",
    ):
        options.add_argument(word)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    found = Chrome(options=options, service=ChromeService(driver))
    yield found
    found.quit()


@pytest.fixture
def shown(browser: Chrome, sandbox: Running, tmp_path: Path) -> Chrome:
    """A site of which the world moved one field and the file another."""
    path, context = tmp_path / "site.yaml", bfinfra.RunContext(sandbox=sandbox)
    path.write_text(SITE.format(cpu="4GHz"))
    assert (
        bfinfra.apply(
            bfinfra.load(path, sandbox=sandbox), approve=lambda _: EVERYTHING, context=context
        ).ending
        == "done"
    )
    sandbox.change(
        {
            "address": "vc.small.test:443",
            "method": "PATCH",
            "path": "/api/vcenter/namespaces/instances/team-a",
            "body": {"resource_spec": {"memory_limit": 4096}},
        }
    )
    path.write_text(SITE.format(cpu="8GHz"))
    site = bfinfra.load(path, sandbox=sandbox)
    (tmp_path / "drift.html").write_text(
        page(
            bfinfra.drift(site, context=context), site.resources, waits(site.resources, {}), Style(units=unit)
        )
    )
    browser.set_window_size(1400, 1000)
    browser.get((tmp_path / "drift.html").as_uri())
    return browser


def nodes(browser: Chrome) -> list[tuple[str, str]]:
    """What a screen reader gets: role and name."""
    tree = browser.execute_cdp_cmd("Accessibility.getFullAXTree", {})["nodes"]
    return [
        (str(node["role"]["value"]), str(node.get("name", {}).get("value", "")))
        for node in tree
        if not node["ignored"]
    ]


def test_it_loads_nothing_and_complains_of_nothing(shown):
    assert shown.execute_script("return performance.getEntriesByType('resource').length") == 0
    assert shown.get_log("browser") == []


def test_a_screen_reader_gets_all_that_is_drawn(shown):
    shown_nodes = nodes(shown)
    assert (
        "link",
        (
            "supervisor_namespace/team-a: drifted: the live state changed: limits.memory 4GiB instead of 2GiB; "
            "is not applied yet: the file changed: limits.cpu 4GHz instead of 8GHz"
        ),
    ) in shown_nodes
    assert any(
        role == "listitem" and name.startswith("gpu_host/esx1.small.test: up to date, holds GPU 10de:1eb8")
        for role, name in shown_nodes
    )
    assert {name for role, name in shown_nodes if role == "columnheader"} >= {
        "What",
        "Resource",
        "Live",
        "By the file",
    }
    assert any(
        role == "StaticText" and name.startswith("example: 1 drifted, 1 not applied")
        for role, name in shown_nodes
    )


def test_the_keyboard_reaches_every_box_and_its_description(shown):
    body, labels = shown.switch_to.active_element, []
    for _ in range(8):
        body.send_keys(Keys.TAB)
        body = shown.switch_to.active_element
        labels.append(body.get_attribute("aria-label") or body.text)
        if (body.get_attribute("aria-label") or "").startswith("supervisor_namespace"):
            body.send_keys(Keys.ENTER)
            break
    assert labels[0] == "To what drifted"
    assert any(label.startswith("gpu_host/") for label in labels)
    target = shown.execute_script(
        "const r = document.querySelector(':target'); return [r.textContent, "
        "r.getBoundingClientRect().top >= 0]"
    )
    assert "supervisor_namespace/team-a" in target[0]
    assert target[1]


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_word_can_be_read_in_the_light_and_in_the_dark(shown, scheme):
    shown.execute_cdp_cmd(
        "Emulation.setEmulatedMedia", {"features": [{"name": "prefers-color-scheme", "value": scheme}]}
    )
    paper = [
        int(part)
        for part in re.findall(
            r"\d+", str(shown.execute_script("return getComputedStyle(document.body).backgroundColor"))
        )[:3]
    ]
    assert (sum(paper) > 384) == (scheme == "light")
    contrasts: list[Any] = shown.execute_script(CONTRAST)
    assert len(contrasts) > 20
    assert [
        (words, round(ratio, 2)) for words, ratio in contrasts if ratio < 4.5 and words not in "~+≠"
    ] == []


def test_a_small_screen_scrolls_the_picture_and_not_the_page(shown):
    shown.execute_cdp_cmd(
        "Emulation.setDeviceMetricsOverride",
        {"width": 360, "height": 740, "deviceScaleFactor": 1, "mobile": True},
    )
    wide = shown.execute_script("return [document.documentElement.scrollWidth, innerWidth]")
    shown.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
    assert wide[0] <= wide[1]


def test_the_pictures_of_the_documentation_can_be_taken_anew(tmp_path):
    done = subprocess.run(
        [sys.executable, str(ROOT / "script/screenshots.py"), str(tmp_path)],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert {path.name for path in tmp_path.iterdir()} == {
        path.name for path in (ROOT / "docs/images").iterdir()
    }
    assert "drifted" in (tmp_path / "drift.svg").read_text()
    assert all(path.read_bytes().startswith(b"\x89PNG") for path in tmp_path.glob("*.png"))
