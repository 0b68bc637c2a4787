// An author's day in a real browser. Run by `plimsoll scenario browser`, or alone:
//   PLIMSOLL_TARGET=http://127.0.0.1:8080 PLIMSOLL_USER=author PLIMSOLL_PASSWORD=… bin/k6 run scenarios/browser.js
// docs/k6.md lists the settings.

import { check, sleep } from 'k6';
import { browser } from 'k6/browser';
import encoding from 'k6/encoding';
import exec from 'k6/execution';
import { Trend } from 'k6/metrics';
import { accessOf } from './k6/access.js';
import { Site } from './k6/address.js';
import { publicPages } from './k6/author.js';
import { openEditor, publish, saveAgain, write, writeOn } from './k6/editor.js';
import { requireFiles, watchFiles } from './k6/missing.js';
import { generator } from './k6/random.js';
import { readSettings, SUMMARY } from './k6/settings.js';
import { Trouble } from './k6/trouble.js';

const settings = readSettings(open('./k6/defaults/browser.json'));
const site = new Site(settings.target);
const access = accessOf(settings);
const login = `${site.front}${(settings.login_path || 'wp-login.php').replace(/^\/+/, '')}`;
const timeout = settings.timeout_s * 1000;
const IGNORED_MS = 1000;
const image = settings.image ? open(settings.image, 'b') : null;

// A number of days, or all days that begin within `duration_s`. A day that has begun is finished.
const LONGEST = '168h';
const { users, iterations, duration_s } = settings;
const until = duration_s
  ? { executor: 'constant-vus', vus: users, duration: `${duration_s * 1000}ms`, gracefulStop: LONGEST }
  : { executor: 'shared-iterations', iterations, vus: Math.min(users, iterations), maxDuration: LONGEST };

export const options = {
  scenarios: { browser: { ...until, options: { browser: { type: 'chromium' } } } },
  summaryTrendStats: SUMMARY,
  systemTags: ['proto', 'status', 'method', 'url', 'name', 'group', 'check', 'scenario', 'vu', 'iter'],
};

const trends = {};
for (const name of ['page_load', 'log_in', 'editor_ready', 'publish', 'save', 'upload']) {
  trends[name] = new Trend(name, true);
}

// Pages by the names under which their loads and web vitals are recorded.
const literal = (text) => text.replace(/[.*+?^${}()|[\]\\]/g, '\\$&');
const named = (path) => new RegExp(`^${literal(site.front)}${path}`);
const KINDS = [
  ['front page', named('$')],
  ['login', new RegExp(`^(${literal(login)}|${literal(site.front)}wp-login\\.php)`)],
  ['editor', named('wp-admin/post(-new)?\\.php')],
  ['media', named('wp-admin/(media-new|upload)\\.php')],
  ['dashboard', named('wp-admin/(index\\.php)?$')],
  ['article', named('(?!wp-)[^.?#]+$')], // however its permalinks look
];

export default async function () {
  const number_ = exec.scenario.iterationInTest;
  exec.vu.metrics.tags.iteration = String(number_);
  exec.vu.metrics.tags.client = String(exec.vu.idInTest);
  // WordPress keeps all sessions of an account in one record: of two that log in at the same instant, one may be
  // lost. So authors start some seconds apart.
  if (users > 1) sleep(5 * generator(settings.seed, number_)());
  // Only if there are some: with its own headers, even an empty list, k6 loses records of scripts' requests.
  const own = Object.keys(access.headers).length > 0 ? { extraHTTPHeaders: access.headers } : {};
  const context = await browser.newContext({
    ignoreHTTPSErrors: settings.insecure,
    viewport: { width: 1366, height: 768 },
    ...own,
  });
  const cookies = Object.entries(access.cookies).map(([name, value]) => ({ name, value, url: site.front }));
  if (cookies.length > 0) await context.addCookies(cookies);
  context.setDefaultTimeout(timeout);
  await watchFiles(context);
  const page = await context.newPage();
  page.on('metric', (metric) => KINDS.forEach(([name, url]) => metric.tag({ name, matches: [{ url }] })));
  const day = new Day(page, number_);
  try {
    await day.live();
  } finally {
    await day.leave();
    await page.close();
    await context.close();
  }
}

class Day {
  constructor(page, iteration) {
    Object.assign(this, { page, iteration, site, timeout, count: 0 });
  }

  async live() {
    let posts = [];
    let article = null;
    const steps = [
      [
        'front page',
        async () => {
          await this.go(site.front, 'front page');
          posts = await publicPages(this);
        },
      ],
      ['read an article', async () => this.readOne(posts)],
      ['log in', async () => this.logIn()],
      ['dashboard', async () => this.go(`${site.front}wp-admin/index.php`, 'dashboard')],
      ['open editor', async () => this.timed('editor_ready', () => openEditor(this))],
      [
        'write',
        async () => {
          await write(this, title(this.iteration), paragraphs(this.iteration));
          await writeOn(this, settings.think_s);
        },
      ],
      [
        'publish',
        async () =>
          this.timed('publish', async () => {
            article = await publish(this);
          }),
      ],
      [
        'save again',
        async () => {
          await writeOn(this, settings.think_s);
          await this.timed('save', () => saveAgain(this, 'One more thought, after a second look.'));
        },
      ],
      [
        'view article',
        async () => {
          if (article) await this.go(article, 'article');
        },
      ],
      ['upload', async () => this.upload()],
      ['log out', async () => this.logOut()],
    ];
    for (const [name, work] of steps) {
      if (!(await this.step(name, work))) return;
    }
  }

  // One step; what goes wrong in it is recorded under its name, with a picture, and ends the day.
  async step(name, work) {
    exec.vu.metrics.tags.step = name;
    this.count += 1;
    try {
      await work();
      await this.shoot(name, this.iteration === 0);
      return true;
    } catch (error) {
      const kind = error instanceof Trouble ? error.kind : 'check_failed';
      const words = hidden(String(error.message || error))
        .replace(/::/g, ':')
        .replace(/\s+/g, ' ')
        .slice(0, 280);
      await this.shoot(`${name} failed`, true);
      check(null, { [words]: () => false }, { kind });
      if (kind === 'login_failed' && name === 'log in') exec.test.abort(`${name}: login failed: ${words}`);
      return false;
    }
  }

  async shoot(name, wanted) {
    if (!settings.screenshots || !wanted) return;
    const file = `${this.iteration + 1}-${String(this.count).padStart(2, '0')}-${name.replace(/ /g, '-')}.png`;
    await this.page.screenshot({ path: `${settings.screenshots}/${file}` });
  }

  async timed(name, work) {
    const started = Date.now();
    const answer = await work();
    trends[name].add(Date.now() - started);
    return answer;
  }

  // A cached front page can link to a deleted post: then a reader takes the next one.
  async readOne(posts) {
    for (const [i, post] of posts.entries()) {
      try {
        await this.go(post, 'article');
        return;
      } catch (error) {
        if (error.kind !== 'http_error' || i === posts.length - 1) throw error;
      }
    }
  }

  // Opens a page of the site and records how long the browser took until its load event.
  async go(address, kind) {
    const url = site.resolve(address);
    if (url === null) throw new Trouble('check_failed', `the site leads to another host: ${address}`);
    await this.leave();
    await this.page.goto(url, { waitUntil: 'load', timeout });
    let status = await this.loaded(kind);
    if (kind !== 'login' && (await this.page.$('#loginform'))) {
      // logged out by another session: once more
      await this.logIn();
      await this.page.goto(url, { waitUntil: 'load', timeout });
      status = await this.loaded(kind);
    }
    if (status >= 400)
      throw new Trouble(status === 403 ? 'no_permission' : 'http_error', `status ${status} for ${kind}`);
  }

  // Records how long the page that is open took, and returns its status: k6 loses the responses of errors. A page that
  // lacks files has failed.
  async loaded(kind) {
    await this.page.waitForLoadState('load', { timeout });
    const [load_ms, status] = await this.page.evaluate(() => {
      const [entry] = performance.getEntriesByType('navigation');
      return entry ? [entry.loadEventStart - entry.startTime, entry.responseStatus || 0] : [0, 0];
    });
    if (status < 400) await requireFiles(this.page);
    if (load_ms > 0) trends.page_load.add(load_ms, { page: kind });
    return status;
  }

  // Web vitals are final when a page is hidden. Leaving it would hide it too late for k6 to receive them.
  async leave() {
    await this.page.evaluate(() => {
      Object.defineProperty(document, 'visibilityState', { value: 'hidden', configurable: true });
      document.dispatchEvent(new Event('visibilitychange', { bubbles: true }));
    });
  }

  // Does what leads to another page, by whichever redirects, and waits until that is there and complete.
  // `again` is what to click again if it is still clickable: then the page has ignored it.
  async through(click, again) {
    const { page } = this;
    await this.leave();
    await page.evaluate(() => {
      window.plimsollWasHere = true;
    });
    await click();
    let clicked = Date.now();
    const until = clicked + timeout;
    while (Date.now() < until) {
      try {
        const state = await page.evaluate((button) => {
          if (window.plimsollWasHere) return button && document.querySelector(button) ? 'ignored' : 'leaving';
          return document.readyState === 'complete' ? 'there' : 'coming';
        }, again || '');
        if (state === 'there') return;
        if (state === 'ignored' && Date.now() > clicked + IGNORED_MS) {
          clicked = Date.now();
          await click();
        }
      } catch {
        // the page was left while it was asked
      }
      await page.waitForTimeout(10);
    }
    throw new Trouble('timeout', 'no next page came');
  }

  async logIn() {
    const { page } = this;
    await this.go(login, 'login');
    await page.locator('#user_login').fill(settings.user);
    await page.locator('#user_pass').fill(settings.password);
    await this.timed('log_in', () => this.through(() => page.locator('#wp-submit').click()));
    const refused = await page.$('#login_error');
    if (refused) throw new Trouble('login_failed', (await refused.innerText()).trim());
  }

  async upload() {
    const { page } = this;
    if (image === null) return;
    await this.go(`${site.front}wp-admin/media-new.php`, 'media');
    const input = await page.waitForSelector('.moxie-shim input[type=file], #async-upload', {
      state: 'attached',
      timeout,
    });
    const file = {
      name: `photograph-${this.iteration + 1}-${settings.name}.jpg`,
      mimetype: 'image/jpeg',
      buffer: encoding.b64encode(image),
    };
    await this.timed('upload', async () => {
      await input.setInputFiles(file);
      await page.waitForSelector('#media-items .media-item .edit-attachment, #media-items .media-item .error-div', {
        timeout,
      });
    });
    const refused = await page.$('#media-items .media-item .error-div');
    if (refused) throw new Trouble('upload_refused', (await refused.innerText()).trim());
  }

  async logOut() {
    const link = await this.page.waitForSelector('#wp-admin-bar-logout a', { state: 'attached', timeout });
    const href = await link.getAttribute('href');
    await this.go(href, 'login');
  }
}

// A site may show what it was sent.
const hidden = (text) => settings.secrets.reduce((kept, secret) => kept.split(secret).join('REDACTED'), text);
const title = (n) => `Plimsoll's article ${n + 1} of ${settings.name}`;
const paragraphs = (n) => [
  'Before the storage moves, somebody has to sit down and write, as on any other day.',
  `This is paragraph two of article ${n + 1}. It was typed by a browser that nobody watches, key by key, while the disks were busy with something else.`,
  'Whether that can be felt is what the figures say.',
];
