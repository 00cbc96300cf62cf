"""The page of a drift report in a real browser: Chromium without a screen, driven by ChromeDriver."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from bad_input import judges
from bad_input.foreign_names import LISTED
from kinds.lifecycle import EVERYTHING
from selenium.webdriver import Chrome, ChromeOptions, ChromeService
from selenium.webdriver.common.keys import Keys

import bfinfra
from bfinfra import worlds
from bfinfra.cli import main
from bfinfra.cli.screen import unit
from bfinfra.engine.graph import waits
from bfinfra.model.drift import Cause, Drifted, Report
from bfinfra.model.refs import Key
from bfinfra.render import graph
from bfinfra.render.page import Followed, page
from bfinfra.render.safe import safe
from bfinfra.render.style import Style
from bfinfra.sandbox import Running, start, stop

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


SIDEWAYS = """
const root = document.documentElement, seen = [...document.body.querySelectorAll('*')].filter(e => e.getClientRects().length && !e.closest('svg, .skip, thead'));
return [
  [root.scrollWidth, root.clientWidth],
  seen.filter(e => e.scrollWidth > e.clientWidth + 1 && getComputedStyle(e).overflowX != 'visible' || e.getBoundingClientRect().right > root.clientWidth + 1).map(e => e.outerHTML.slice(0, 200)),
  [...document.querySelectorAll('.frame svg, .listed')].filter(e => getComputedStyle(e).display != 'none').map(e => e.tagName.toLowerCase()),
];"""


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


def change_memory(sandbox: Running, vcenter: str, namespace: str) -> None:
    """Somebody else sets the memory of a namespace."""
    sandbox.change(
        {
            "address": vcenter,
            "method": "PATCH",
            "path": f"/api/vcenter/namespaces/instances/{namespace}",
            "body": {"resource_spec": {"memory_limit": 4096}},
        }
    )


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
    change_memory(sandbox, "vc.small.test:443", "team-a")
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


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The page that each command writes of the PoC, and of a chain of resources with long names."""
    folder = tmp_path_factory.mktemp("pages")
    site, state = ROOT / "specs/singapore-poc.yaml", worlds.state(folder / "world.yaml")
    shutil.copy(ROOT / "specs/worlds/singapore-poc.yaml", folder / "world.yaml")
    found = {name: folder / f"{name}.html" for name in ("plan", "apply", "drift", "watch", "graph", "chain")}
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("BFINFRA_STATE_HOME", str(folder / "state"))
        sandbox = start(folder / "world.yaml", state, pace=0)
        try:
            context = bfinfra.RunContext(sandbox=sandbox)
            words = [str(site), "--world", str(folder / "world.yaml"), "--html"]
            assert main(["plan", *words, str(found["plan"])]) == 0
            assert main(["apply", "--yes", *words, str(found["apply"])]) == 0
            change_memory(sandbox, "vcsa.aiml.local:443", "cnasg")
            assert main(["drift", *words, str(found["drift"])]) == 2
            loaded = bfinfra.load(site, sandbox=sandbox)
            report, before = bfinfra.drift(loaded, context=context), waits(loaded.resources, {})
            found["watch"].write_text(
                page(
                    report,
                    loaded.resources,
                    before,
                    Style(units=unit),
                    Followed(1e9, lost=1e9, why="x" * 300),
                )
            )
            found["graph"].write_text(graph.page(before, loaded.resources))
        finally:
            stop(state)
    chain = [Key("namespace", f"{number}-{'long-name' * 20}") for number in range(12)]
    report = bfinfra.Report(
        "chain",
        tuple(
            Drifted(key=key, cause=Cause.DRIFT, field="x" * 99, now="1" * 99, wanted="2" * 99)
            for key in chain
        ),
        0,
    )
    found["chain"].write_text(
        page(report, dict.fromkeys(chain), {key: {first: ""} for first, key in pairwise(chain)})
    )
    return found


@pytest.mark.parametrize("name", ["plan", "apply", "drift", "watch", "graph", "chain"])
@pytest.mark.parametrize("width", [1900, 1100, 400])
def test_nothing_scrolls_sideways(browser, pages, name, width):
    browser.execute_cdp_cmd(
        "Emulation.setDeviceMetricsOverride",
        {"width": width, "height": 740, "deviceScaleFactor": 1, "mobile": False},
    )
    try:
        browser.get(pages[name].as_uri())
        root, wide, drawn = browser.execute_script(SIDEWAYS)
    finally:
        browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
    assert root[0] <= root[1] <= width
    assert wide == []
    assert drawn == ["ol" if width == 400 or (name == "chain") else "svg"]


def test_a_narrow_page_is_a_table_for_a_screen_reader_too(browser, pages):
    browser.execute_cdp_cmd(
        "Emulation.setDeviceMetricsOverride",
        {"width": 400, "height": 740, "deviceScaleFactor": 1, "mobile": False},
    )
    try:
        browser.get(pages["drift"].as_uri())
        found = nodes(browser)
    finally:
        browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
    assert {name for role, name in found if role == "columnheader"} >= {"What", "Resource", "Live"}
    assert [name for role, name in found if role == "rowheader"] == ["supervisor_namespace/cnasg"]
    assert {"table", "row", "cell"} <= {role for role, _ in found}


@pytest.mark.thorough
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


ELEMENTS = """
return [...document.querySelectorAll('*')].map(e => [e.tagName.toLowerCase(), [...e.attributes].map(a => a.name).sort()]);"""


def test_hostile_names_are_words_in_the_page_and_nothing_else(browser, tmp_path):
    """All of them in one page: the browser finds the elements and attributes of the page with plain names, shows
    each name, and has nothing to say in its log.
    """
    found = {}
    for title, words in (("hostile", LISTED), ("plain", ["plain"] * len(LISTED))):
        keys = [Key("box", f"{number:03} {word}") for number, word in enumerate(words)]
        drifted = tuple(
            Drifted(key=key, cause=Cause.UNMARKED, why=word, by=word)
            for key, word in zip(keys, words, strict=True)
        )
        made = page(Report(words[0], drifted, 0), dict.fromkeys(keys), {key: {} for key in keys})
        (tmp_path / f"{title}.html").write_text(made, encoding="utf-8")
        browser.get((tmp_path / f"{title}.html").as_uri())
        elements = [(tag, names) for tag, names in browser.execute_script(ELEMENTS) if tag != "wbr"]
        assert [tag for tag, _ in elements] == [tag for tag, _ in judges.html(made) if tag]
        shown = browser.execute_script("return document.body.textContent")
        assert [word for word in words if safe(word) not in shown] == []
        found[title] = elements
    assert found["hostile"] == found["plain"]
    assert browser.get_log("browser") == []
