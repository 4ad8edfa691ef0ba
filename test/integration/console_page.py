#!/usr/bin/env python3
# Copyright (c) 2026 The weir authors
# Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)
"""Drives the page of `weirctl serve` in Chromium: what a store has a part in, on each that weirctl was built for.

usage: console_page.py WEIRCTL FILL [--stores sqlite,redis,postgres,nats] [unittest arguments]

With WEIR_PICTURES=FOLDER in the environment it leaves pictures of the pages there.
"""

import contextlib
import http.client
import http.server
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import unittest
import urllib.parse

try:
    from selenium import webdriver
except ImportError:  # Debian's package is for Debian's interpreter, and this may be another one
    sys.path.append("/usr/lib/python3/dist-packages")
    try:
        from selenium import webdriver
    except ImportError:
        sys.exit("this test needs Selenium: apt-get install python3-selenium chromium chromium-driver")
from selenium.common.exceptions import StaleElementReferenceException, WebDriverException
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys

import weirctl
from servers import LIMIT, NatsServer, PostgresServer, RedisServer

ALL = ["--allow", "all"]
MARKUP = ("\"'><script>document.title='owned'</script><img src=x onerror=\"document.title='owned'\">"
          "<!-- ${7*7} javascript:alert(1)")
PICTURES = os.environ.get("WEIR_PICTURES")


def start_browser(home):
    options = webdriver.ChromeOptions()
    options.binary_location = shutil.which("chromium") or shutil.which("google-chrome")
    for argument in ("--headless=new", "--no-sandbox", "--disable-dev-shm-usage", "--disable-gpu", "--no-first-run",
                     f"--user-data-dir={home}/profile", "--host-resolver-rules=MAP evil.test 127.0.0.1"):
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    service = Service(executable_path=shutil.which("chromedriver"),
                                      env={**os.environ, "HOME": home, "TMPDIR": home})
    browser = webdriver.Chrome(options=options, service=service)
    browser.set_page_load_timeout(LIMIT)
    browser.set_script_timeout(LIMIT)
    return browser


class Serving:
    """`weirctl serve` on a place."""

    def __init__(self, place, *arguments):
        self.process = place.start("--json", "serve", "--listen", "127.0.0.1:0", *arguments)
        line = self.process.stdout.readline()
        self.url = json.loads(line)["url"] if line else self.process.stderr.read()
        self.audit = []
        self.reader = threading.Thread(target=lambda: self.audit.extend(self.process.stderr), daemon=True)
        self.reader.start()

    def end(self):
        """Its status, and what it said on standard error."""
        self.process.send_signal(signal.SIGTERM)
        status = self.process.wait(timeout=LIMIT)
        self.reader.join(LIMIT)
        self.process.stdout.close()
        self.process.stderr.close()
        return status, b"".join(self.audit).decode()

    def request(self, method, target, body=None, **headers):
        at = urllib.parse.urlsplit(self.url)
        connection = http.client.HTTPConnection(at.hostname, at.port, timeout=LIMIT)
        connection.request(method, target, body, {k.replace("_", "-"): v for k, v in headers.items()})
        reply = connection.getresponse()
        text = reply.read().decode()
        connection.close()
        return reply.status, text


class PageTest(weirctl.ConsoleTest):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.browser = start_browser(cls.home)

    @classmethod
    def tearDownClass(cls):
        cls.browser.quit()
        super().tearDownClass()

    @contextlib.contextmanager
    def served(self, place, *arguments):
        serving = Serving(place, *arguments)
        try:
            yield serving
            self.check_browser_log()
        finally:
            self.browser.get("about:blank")
            serving.status, serving.said = serving.end()
        self.assertEqual(serving.status, 0, serving.said)

    def check_browser_log(self):
        """No script failed, and the page's own policy refused nothing of it."""
        said = [entry["message"] for entry in self.browser.get_log("browser")
                if "favicon" not in entry["message"] and "status of 4" not in entry["message"]]
        self.assertEqual(said, [])

    def wait(self, condition, what="", limit=LIMIT):
        deadline = time.monotonic() + limit
        while time.monotonic() < deadline:
            try:
                if result := condition():
                    return result
            except (StaleElementReferenceException, WebDriverException):
                pass
            time.sleep(0.05)
        self.fail(f"never: {what}: {self.browser.current_url}: {self.text()[:2000]}")

    def text(self):
        return self.browser.find_element(By.TAG_NAME, "body").text

    def see(self, *texts):
        for text in texts:
            self.wait(lambda: text in self.text(), text)

    def go(self, serving, path, **parameters):
        query = "?" + urllib.parse.urlencode(parameters) if parameters else ""
        self.browser.get(serving.url + path + query)

    def click(self, words, within="main"):
        find = ("return [...document.querySelectorAll(arguments[0])].find(e => e.offsetParent && "
                "e.innerText.replace(/\\s+/g, ' ').trim() === arguments[1])")

        def once():
            found = self.browser.execute_script(find, f"{within} a, {within} button", words)
            if found:
                found.click()
            return found

        self.wait(once, f"click {words}")

    def confirm(self, words):
        self.click(words, "dialog[open]")

    def count(self, place, queue, name):
        rows = place.json("queues", "--under", queue)
        return next((row[name] for row in rows if row["queue"] == queue), None)  # None: not yet there


class Driving(PageTest):
    def test_filter_look_and_page(self):
        with self.served(self.states) as serving:
            self.go(serving, "")
            self.see("Overview", "Dead letters", "mail", "read-only")
            self.click("Queues", "header")
            self.see("Begins with")
            self.click("mail")
            self.see(self.ids["due"])
            self.click("dead 1")
            self.see(self.ids["dead"], "no such address")
            field = self.browser.find_element(By.NAME, "filter")
            field.send_keys("nothing", Keys.ENTER)
            self.see("No records of dead jobs here.")
            field = self.browser.find_element(By.NAME, "filter")
            field.clear()
            field.send_keys(self.ids["leased"], Keys.ENTER)  # an id leads to the job itself
            self.see("worker-7", "tenant", "acme", "3 of 10: the third page", "ann@example.com", "in 5", "attempt 1 of 25")
            self.go(serving, "workers")
            self.see("No worker is registered", "worker-7", "mail")
            self.go(serving, "limits", noun="limiter", key="gpt")
            self.see("one", "two", "Waiting")
            self.go(serving, "limits", noun="lock", key="leader")
            self.see("host-1")
            self.go(serving, "schedules")
            self.see("nightly", "30 2 * * * Europe/Berlin")
            self.go(serving, "job", queue="mail", id=self.ids["twin"])
            self.see("has the same unique key")

    def test_workers_and_why_a_job_waits_for_one(self):
        place = self.place()
        ids = place.fill("thumbs", 3)
        worker = subprocess.Popen([weirctl.FILL, place.environment["WEIR_STORE"], "work"], env=place.environment,
                                  stdout=subprocess.PIPE)
        try:
            worker.stdout.readline()  # a job runs
            with self.served(place) as serving:
                self.go(serving, "workers")
                self.see("thumbs on host 1", "/10", "yesterday's", "gone", "thumbnail", "thumbs on host 1: ")
                self.go(serving, "job", queue="thumbs", id=ids["thumb 2"])
                self.see("The concurrency limit thumbnail is reached", "Its queue is served by thumbs on host 1")
                if PICTURES:
                    self.browser.save_screenshot(f"{PICTURES}/{self.KIND}-why.png")
                    self.go(serving, "workers")
                    self.browser.save_screenshot(f"{PICTURES}/{self.KIND}-workers.png")
        finally:
            worker.terminate()
            self.assertEqual(worker.wait(weirctl.LIMIT), 0)

    def test_every_page_of_many_is_bounded(self):
        place = self.place()
        place.fill("waiting", 3000)
        with self.served(place) as serving:
            self.go(serving, "queue", queue="waiting")
            self.assertEqual(len(self.browser.find_elements(By.CSS_SELECTOR, "tbody tr")), 50)
            first = self.browser.find_element(By.CSS_SELECTOR, "tbody a").text
            self.click("Next page")
            self.wait(lambda: first not in self.text(), "another page")
            self.go(serving, "queue", queue="waiting", filter="absent")
            self.see("Looked at 1,000 records.", "Next page")

    def test_retry_cancel_purge_and_pause(self):
        place = self.place()
        ids = place.fill("states")
        with self.served(place, *ALL) as serving:
            self.go(serving, "job", queue="mail", id=ids["dead"])
            self.click("Replay")
            self.confirm("No")
            self.assertEqual(self.count(place, "mail", "dead"), 1)
            self.click("Replay")
            self.confirm("Replay")
            self.see("pending", "Timeline")
            self.wait(lambda: self.count(place, "mail", "dead") == 0, "replayed")
            self.go(serving, "job", queue="mail", id=ids["later"])
            self.click("Cancel")
            self.confirm("Cancel")
            self.wait(lambda: self.count(place, "mail", "cancelled") == 2, "cancelled")
            self.go(serving, "job", queue="mail", id=ids["completed"])
            self.click("Purge")
            self.confirm("Purge")
            self.wait(lambda: self.count(place, "mail", "completed") == 0, "purged")
            self.go(serving, "queue", queue="mail")
            self.click("Pause")
            self.confirm("Pause")
            self.wait(lambda: self.count(place, "mail", "paused"), "paused")
            self.see("paused", "Resume")
            self.click("Resume")
            self.confirm("Resume")
            self.wait(lambda: self.count(place, "mail", "paused") is False, "resumed")
            self.go(serving, "schedules")
            self.click("Run now")
            self.confirm("Run now")
            self.wait(lambda: self.count(place, "reports", "pending") == 1, "triggered")
        for line in ('replay "mail" ' + ids["dead"] + ": done", 'pause "mail": done', "trigger_schedule "):
            self.assertIn('weir: console: "somebody": ' + line, serving.said)

    def test_bulk_replay_of_10000_goes_on_by_bounded_steps(self):
        place = self.place()
        place.fill("dead", weirctl.MANY, weirctl.CONFLICTS)
        with self.served(place, *ALL) as serving:
            self.go(serving, "queue", queue="bulk", state="dead")
            self.click("Replay all")
            self.see("all 10,000 dead jobs of “bulk”")
            self.confirm("Replay")
            self.wait(lambda: "Done" in self.text() and "9,997" in self.text(), "all replayed")
            self.see("3 refused", "its unique key was taken meanwhile")
        self.assertEqual([self.count(place, "bulk", name) for name in ("dead", "pending")],
                         [weirctl.CONFLICTS, weirctl.MANY])
        steps = [int(n) for n in re.findall(r"(\d+) done, ", serving.said)]
        self.assertTrue(max(steps) <= 500 and sum(steps) == weirctl.MANY - weirctl.CONFLICTS, serving.said)

    def test_the_page_lives_by_a_stream_that_rests_when_hidden(self):
        place = self.place()
        place.fill("waiting", 3)
        with self.served(place, *ALL) as serving:
            self.go(serving, "queue", queue="waiting")
            self.see("pending 3")
            self.browser.execute_script("window.same = true")
            place.fill("waiting", 2)
            self.see("pending 5")
            self.assertTrue(self.browser.execute_script("return window.same"))
            # A page that is not to be had any more says so, above what it was.
            ids = place.fill("states")
            self.go(serving, "job", queue="mail", id=ids["leased"])
            self.see("leased")
            self.assertEqual(place.run("cancel", "mail", ids["leased"], "--running").status, 0)
            self.see("No such job")
            self.assertEqual(len(self.browser.find_elements(By.CSS_SELECTOR, "#notice[role=alert]")), 1)
            self.go(serving, "queue", queue="waiting")
            hide = ("Object.defineProperty(document, 'hidden', {configurable: true, get: () => arguments[0]});"
                    "document.dispatchEvent(new Event('visibilitychange')); return stream === null")
            self.assertTrue(self.browser.execute_script(hide.replace("arguments[0]", "true")))
            self.assertFalse(self.browser.execute_script(hide.replace("arguments[0]", "false")))
            self.click("Live", "header")
            self.assertTrue(self.browser.execute_script("return stream === null"))


class Attacking(PageTest):
    def test_nothing_can_be_done_where_nothing_is_allowed(self):
        place = self.place()
        ids = place.fill("states")
        with self.served(place, "--allow", "pause") as serving:
            self.go(serving, "job", queue="mail", id=ids["dead"])
            self.see("no such address")
            self.assertEqual(self.browser.find_elements(By.CSS_SELECTOR, "[data-confirm]"), [])
            for action in ("replay", "purge"):
                status = self.browser.execute_script(
                    "return fetch('/act?' + new URLSearchParams(arguments[0]), {method: 'POST'}).then(r => r.status)",
                    {"action": action, "queue": "mail", "id": ids["dead"]})
                self.assertEqual(status, 403)
            self.assertEqual(serving.request("GET", f"/confirm?action=replay&queue=mail&id={ids['dead']}")[0], 403)
        self.assertEqual(self.count(place, "mail", "dead"), 1)
        self.assertIn('purge "mail" ' + ids["dead"] + ": refused: not allowed", serving.said)

    def test_texts_of_strangers_are_texts(self):
        place = self.place()
        ids = place.fill("markup")
        with self.served(place, *ALL) as serving:
            for path, more in (("", {}), ("queues", {}), ("queues", {"under": MARKUP}), ("dead", {}), ("workers", {}),
                               ("schedules", {}), *(("queue", {"queue": MARKUP, "state": s})
                                                    for s in ("pending", "leased", "dead")),
                               ("queue", {"queue": MARKUP, "filter": MARKUP}),
                               *(("job", {"queue": MARKUP, "id": i}) for i in ids.values()),
                               ("limits", {"noun": "limiter", "key": MARKUP}), ("limits", {"noun": "lock", "key": MARKUP}),
                               ("confirm", {"action": "purge", "queue": MARKUP, "id": ids["dead"]}),
                               ("confirm", {"action": "purge", "queue": MARKUP, "state": "dead", "kind": MARKUP}),
                               ("confirm", {"action": "pause_schedule", "name": MARKUP})):
                self.go(serving, path, **more)
                self.see("<script>document.title='owned'</script>") if path != "queues" or not more else None
                odd = self.browser.execute_script("return document.querySelectorAll('body script, img, iframe').length")
                self.assertEqual([odd, self.browser.execute_script("return document.title == 'owned'")], [0, False], path)
            self.go(serving, "queue", queue=MARKUP, state="dead")  # and an action finds its way back to that name
            self.click("Replay all")
            self.confirm("Replay")
            self.see("Done")
        self.assertEqual(self.count(place, MARKUP, "dead"), 0)


class Page(PageTest):
    """What has nothing to do with the store, but for its name: on the one whose name is the longest."""

    def test_it_works_without_script_and_is_stopped_between_two_steps(self):
        place = self.place()
        place.fill("dead", 1200, 0)
        self.browser.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": True})
        try:
            with self.served(place, *ALL) as serving:
                self.go(serving, "queue", queue="bulk", state="dead")
                self.click("Replay all")
                self.see("Replay?")
                self.click("Replay")
                self.see("Going on", "500")
                self.click("Continue")
                self.see("1,000")
                self.click("Stop")
                self.see("dead 200")
        finally:
            self.browser.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": False})
        self.assertEqual(self.count(place, "bulk", "dead"), 200)

    def test_keys_lead_through_it(self):
        with self.served(self.states, *ALL) as serving:
            self.go(serving, "queues")
            active = self.browser.switch_to.active_element
            active.send_keys(Keys.TAB)
            self.assertEqual(self.browser.switch_to.active_element.text, "To the content")
            names = [e.text for e in self.browser.find_elements(By.CSS_SELECTOR, "tbody td.name a")]
            body = self.browser.find_element(By.TAG_NAME, "body")
            body.send_keys("j")
            self.browser.switch_to.active_element.send_keys("j")
            self.assertEqual(self.browser.switch_to.active_element.text, names[1])
            self.browser.switch_to.active_element.send_keys("/")
            self.assertEqual(self.browser.switch_to.active_element.get_attribute("name"), "under")
            # The page may put another button in its place between the two.
            self.wait(lambda: self.browser.find_element(By.LINK_TEXT, "Pause").send_keys(Keys.ENTER) is None, "Pause")
            dialog = self.wait(lambda: self.browser.find_element(By.CSS_SELECTOR, "dialog[open]"), "a dialog")
            self.assertEqual(self.browser.switch_to.active_element.text, "Pause")
            dialog.send_keys(Keys.ESCAPE)
            self.wait(lambda: not self.browser.find_elements(By.TAG_NAME, "dialog"), "no dialog")

    def test_pictures_and_no_page_is_wider_than_a_phone(self):
        place = self.place()
        ids = place.fill("states")
        place.fill("dead", 300, 2)
        pages = {"overview": "", "queues": "queues", "dead": "dead", "workers": "workers", "schedules": "schedules",
                 "pending": "queue?queue=mail", "letters": "queue?queue=mail&state=dead",
                 "leased": f"job?queue=mail&id={ids['leased']}", "limits": "limits?noun=limiter&key=gpt",
                 "confirm": "confirm?queue=bulk&state=dead&action=replay", "nothing": "nothing"}
        with self.served(place, *ALL) as serving:
            for width, height, mobile in ((1280, 800, False), (390, 844, True)):
                self.browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", {
                    "width": width, "height": height, "deviceScaleFactor": 1, "mobile": mobile})
                for scheme in ("light", "dark"):
                    self.browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {
                        "features": [{"name": "prefers-color-scheme", "value": scheme}]})
                    for name, path in pages.items():
                        self.browser.get(serving.url + path)
                        wide = self.browser.execute_script("return document.scrollingElement.scrollWidth")
                        self.assertLessEqual(wide, width, name)
                        if PICTURES:
                            self.browser.save_screenshot(f"{PICTURES}/{self.KIND}-{name}-{width}-{scheme}.png")
            self.browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})

    def test_sites_of_others_reach_nothing(self):
        place = self.place()
        place.fill("waiting", 1)
        served = {}

        class Others(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                self.send_response(200)
                self.send_header("Content-Type", "text/html")
                self.end_headers()
                self.wfile.write(served["page"].encode())

            def log_message(self, *_):
                pass

        others = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Others)
        threading.Thread(target=others.serve_forever, daemon=True).start()
        try:
            with self.served(place, *ALL) as serving:
                act = serving.url + "act?action=pause&queue=waiting"
                served["page"] = f"""<form method=post action="{act}"><button>x</button></form>
                    <iframe src="{serving.url}"></iframe><script>
                    let tried = 0;
                    for (const mode of ['no-cors', 'cors']) fetch('{act}', {{method: 'POST', mode}}).finally(() => ++tried);
                    const stream = new EventSource('{serving.url}events?view=/');
                    stream.onerror = () => ++tried;</script>"""
                for name in ("127.0.0.1", "localhost"):  # of the same site, and of another one
                    self.browser.get(f"http://{name}:{others.server_port}/")
                    self.wait(lambda: self.browser.execute_script("return tried >= 3"), "tried")
                    self.assertEqual(self.browser.execute_script("return stream.readyState"), 2)
                    frame = self.browser.find_element(By.TAG_NAME, "iframe")
                    self.browser.switch_to.frame(frame)
                    self.assertNotIn("Overview", self.browser.page_source)
                    self.browser.switch_to.default_content()
                    self.browser.find_element(By.TAG_NAME, "button").click()
                    self.see("This did not come from a page of this console.")
                # A name that leads here, of a site that changed its address.
                self.browser.get(serving.url.replace("127.0.0.1", "evil.test"))
                self.see("not called by that name")
                self.browser.get_log("browser")  # what the browser said of the others' pages
        finally:
            others.shutdown()
            others.server_close()
        self.assertFalse(self.count(place, "waiting", "paused"))
        self.assertIn('pause "": refused: This did not come', serving.said)

    def test_clients_without_a_browser(self):
        place = self.place()
        place.fill("waiting", 1)
        with self.served(place, *ALL) as serving:
            act = "/act?action=pause&queue=waiting"
            origin = serving.url.rstrip("/")
            for expected, headers in ((403, {}), (403, {"Sec_Fetch_Site": "none"}), (403, {"Sec_Fetch_Site": "same-site"}),
                                      (403, {"Origin": "null"}), (403, {"Origin": "http://127.0.0.1:1"}),
                                      (403, {"Origin": origin, "Sec_Fetch_Site": "cross-site"}),
                                      (421, {"Host": "evil.test", "Sec_Fetch_Site": "same-origin"}),
                                      (303, {"Origin": origin}), (303, {"Sec_Fetch_Site": "same-origin"})):
                self.assertEqual(serving.request("POST", act, **headers)[0], expected, headers)
            good = {"Sec_Fetch_Site": "same-origin"}
            self.assertEqual(serving.request("GET", act, **good)[0], 405)
            self.assertEqual(serving.request("POST", "/queues", **good)[0], 405)
            self.assertEqual(serving.request("POST", act, "x" * 5000, **good)[0], 413)
            self.assertEqual(serving.request("POST", act, "{}", Content_Type="application/json", **good)[0], 415)
            self.assertEqual(serving.request("GET", "/queue?queue=" + "x" * 7000)[0], 400)
            self.assertEqual(serving.request("GET", "/queue?queue=waiting&cursor=%00nonsense")[0], 400)


if __name__ == "__main__":
    weirctl.PROGRAM, weirctl.FILL = map(os.path.abspath, sys.argv[1:3])
    del sys.argv[1:3]
    stores = ["sqlite"]
    if sys.argv[1:2] == ["--stores"]:
        stores = [name for name in sys.argv[2].split(",") if name]
        del sys.argv[1:3]
    servers = {"sqlite": None, "redis": RedisServer, "postgres": PostgresServer, "nats": NatsServer}
    of_all, of_one = [Driving, Attacking], [Page]
    del Driving, Attacking, Page, PageTest
    for store in stores:
        for part in of_all + (of_one if store == max(stores, key=len) else []):
            name = f"{part.__name__}_{store}"
            globals()[name] = type(name, (part,), {"KIND": store, "SERVER": servers[store]})
    del part
    unittest.main(verbosity=2)
