// driver.mjs - Debian's Chromium, led by lines of JSON on stdin; one line of answer each.
//
//   {"do": "open", "url": …, "width": 1280, "height": 800, "dark": false}   a fresh page
//   {"do": "goto" | "reload" | "hash", …}   {"do": "eval", "js": "expression"}
//   {"do": "wait", "js": "expression that becomes true", "ms": 10000}
//   {"do": "click" | "fill" | "press" | "focus", "selector": …, "text": …}
//   {"do": "shot", "path": …, "full": true}   {"do": "axe"}   {"do": "errors"}
//
// Answers are {"ok": value} or {"error": text}.
import { createInterface } from "node:readline";
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { chromium } from "playwright-core";

const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
const browser = await chromium.launch({
  executablePath: process.env.WARMQ_CHROMIUM || "/usr/bin/chromium",
  args: ["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--force-color-profile=srgb"],
});
let context = null, page = null, errors = [];

const does = {
  async open({ url, width = 1280, height = 860, dark = false }) {
    if (context) await context.close();
    errors = [];
    context = await browser.newContext({ viewport: { width, height }, colorScheme: dark ? "dark" : "light", locale: "en-GB", timezoneId: "UTC", reducedMotion: "reduce" });
    context.setDefaultTimeout(240000);
    page = await context.newPage();
    page.on("pageerror", (error) => errors.push(String(error)));
    page.on("console", (message) => {
      // What the page handles is told by the browser all the same: a 404, a server that ends.
      if (message.type() === "error" && !/status of (4\d\d|503)|net::ERR_/.test(message.text())) errors.push(message.text());
    });
    await page.goto(url, { waitUntil: "commit" });
  },
  goto: ({ url }) => page.goto(url, { waitUntil: "commit" }).then(() => null),
  reload: () => page.reload().then(() => null),
  hash: ({ hash }) => page.evaluate((value) => { location.hash = value; }, hash),
  eval: ({ js }) => page.evaluate(js),
  async wait({ js, ms = 60000 }) { // the page's policy forbids what waitForFunction does
    for (const end = Date.now() + ms; ;) {
      if (await page.evaluate(js).catch(() => false)) return true;
      if (Date.now() > end) throw new Error(`not within ${ms} ms: ${js}`);
      await new Promise((resolve) => { setTimeout(resolve, 50); });
    }
  },
  click: ({ selector }) => page.click(selector, { timeout: 240000 }),
  fill: ({ selector, text }) => page.fill(selector, text, { timeout: 240000 }),
  press: ({ text }) => page.keyboard.press(text),
  size: ({ width, height }) => page.setViewportSize({ width, height }),
  media: ({ dark }) => page.emulateMedia({ colorScheme: dark ? "dark" : "light" }),
  shot: ({ path, full = false }) => page.screenshot({ path, fullPage: full }).then(() => path),
  async axe() {
    // The policy of the page forbids foreign scripts; the protocol of the browser does not.
    await page.evaluate(axe);
    const found = await page.evaluate(() => window.axe.run(document, { resultTypes: ["violations"] }));
    return found.violations.map((one) => ({ id: one.id, impact: one.impact, help: one.help, nodes: one.nodes.slice(0, 3).map((node) => node.html.slice(0, 200)) }));
  },
  errors: async () => errors,
};

process.stdout.write('{"ok": "ready"}\n');
for await (const line of createInterface({ input: process.stdin })) {
  let answer;
  try {
    const command = JSON.parse(line);
    answer = { ok: (await does[command.do](command)) ?? null };
  } catch (error) {
    answer = { error: String(error) };
  }
  process.stdout.write(`${JSON.stringify(answer)}\n`);
}
await browser.close();
