// Visitors read pages with all their files. Run by `plimsoll scenario visitors`, or alone:
//   PLIMSOLL_TARGET=http://127.0.0.1:8080 bin/k6 run --out json=result.json.gz scenarios/visitors.js
// docs/k6.md lists the settings.

import { check, sleep } from 'k6';
import exec from 'k6/execution';
import http from 'k6/http';
import { Trend } from 'k6/metrics';
import { accessOf } from './k6/access.js';
import { Site } from './k6/address.js';
import { filesOf, kindOf } from './k6/files.js';
import { Pages } from './k6/pages.js';
import { generator, skewed } from './k6/random.js';
import { MODELS, stages } from './k6/schedule.js';
import { readSettings, SUMMARY } from './k6/settings.js';

const AGENT = 'Mozilla/5.0 (X11; Linux x86_64) Plimsoll';
const MOST_HOPS = 5;
const CONNECTIONS = 6; // that a browser opens to one host

const settings = readSettings(open('./k6/defaults/visitors.json'));
const { model } = settings;
const site = new Site(settings.target);
if (!MODELS[model]) throw new Error(`PLIMSOLL_MODEL: must be one of ${Object.keys(MODELS).join(', ')}, not ${model}`);
const plan = MODELS[model]({ ...settings, stages: settings.stages ? stages(settings.stages) : null });
const timeout = `${settings.timeout_s}s`;
const access = accessOf(settings);
const screen = { width_px: settings.viewport_px, pixel_ratio: settings.pixel_ratio };
const listed = settings.pages ? open(settings.pages) : null;

export const options = {
  scenarios: { visitors: { executor: model, gracefulStop: '30s', ...plan.options } },
  batch: CONNECTIONS,
  batchPerHost: CONNECTIONS,
  noVUConnectionReuse: true, // the next visit is another visitor's
  userAgent: AGENT,
  insecureSkipTLSVerify: settings.insecure,
  hosts: settings.hosts,
  tlsAuth: access.tlsAuth,
  thresholds: settings.max_p999_ms ? { page_response: [`p(99.9)<${settings.max_p999_ms}`] } : {},
  summaryTrendStats: SUMMARY,
  systemTags: [
    'proto',
    'status',
    'method',
    'name',
    'group',
    'check',
    'error',
    'error_code',
    'tls_version',
    'scenario',
    'vu',
    'iter',
  ],
};

const lag = new Trend('plimsoll_lag', true);
const interval = new Trend('plimsoll_interval', true);
const bytes = new Trend('plimsoll_bytes');
const pageResponse = new Trend('page_response', true); // due → last byte of the page itself
const pageLoad = new Trend('page_load', true); // start → last byte of the last of its files

// Once, before the first visit: the list of pages, and the icon that browsers ask for where a page names none. A
// missing one does not matter, and would be an error of each visit.
export function setup() {
  letIn();
  return { pages: pagesOfSite(), usualIcon: settings.no_files ? null : usualIcon() };
}

function usualIcon() {
  const address = `${site.origin}/favicon.ico`;
  return follow(address, 'discovery', '0', { mayLeave: true }).status === 200 ? address : null;
}

function pagesOfSite() {
  if (listed !== null) {
    const lines = listed.split('\n').filter((line) => line.trim() && !line.startsWith('#'));
    const addresses = lines.map((line) => site.resolve(line));
    if (addresses.length === 0) exec.test.abort('the file of pages lists no page');
    if (addresses.includes(null))
      exec.test.abort(`the file of pages: not on the target: ${lines[addresses.indexOf(null)]}`);
    return addresses;
  }
  const pages = new Pages(site, settings.max_pages);
  pages.add(site.front);
  const front = follow(site.front, 'discovery', '0');
  if (front.status !== 200) exec.test.abort(`front page: ${unfit(front)}: ${site.front}`);
  pages.addLinks(front.body || '', front.url);
  let lists = ['sitemap.xml', 'wp-sitemap.xml', 'feed/'].map((path) => site.front + path);
  for (let read = 0; lists.length > 0 && read < 8 && !pages.full; read++) {
    const list = follow(lists.shift(), 'discovery', '0');
    if (list.status === 200) lists = lists.concat(pages.addListed(list.body || '', list.url));
  }
  if (pages.led) {
    const [origin, links] = pages.led;
    const remedy = `give that as --target, with --connect-to for its server, or name pages with --pages`;
    exec.test.abort(`${site.front} links to no further page of its own, and by ${links} links to ${origin}: ${remedy}`);
  }
  return pages.list;
}

// Why an answer is not a page.
function unfit(answer) {
  if (!answer.status) return answer.error;
  const said = `status ${answer.status}`;
  if (answer.status === 401) return `${said}: it requires a login: give one with --basic-auth-file`;
  return answer.headers.Location ? `${said}, which leads to ${answer.headers.Location}` : said;
}

let choose = null;

// Whoever visits has the site's cookies from the start; k6 empties the jar after each visit.
function letIn() {
  const jar = http.cookieJar();
  Object.entries(access.cookies).forEach(([name, value]) => jar.set(site.front, name, value, { path: '/' }));
}

// One visit: some pages, one after another, with time to think between them.
export default function ({ pages, usualIcon }) {
  const n = exec.scenario.iterationInTest;
  const late_ms = plan.due_ms ? exec.scenario.progress * plan.duration_ms - plan.due_ms(n) : 0;
  if (plan.due_ms) {
    lag.add(late_ms);
    interval.add(plan.interval_ms(n));
  }
  exec.vu.metrics.metadata.visit = String(n);
  letIn();
  choose = choose || skewed(pages.length, settings.skew);
  const chance = generator(settings.seed, n);
  const cached = new Set();
  for (let i = 0; i < settings.pages_per_visit; i++) {
    if (i > 0) sleep(thinking(chance));
    read(pages[choose(chance)], usualIcon, cached, i === 0 ? Math.max(late_ms, 0) : 0);
  }
  if (!plan.due_ms) sleep(thinking(chance)); // in a closed loop the same visitor comes again
}

// Half to one and a half times the mean.
const thinking = (chance) => settings.think_s * (0.5 + chance());

// A page with those of its files that this visitor does not have yet.
function read(address, usualIcon, cached, late_ms) {
  const started_ms = exec.instance.currentTestRunDuration;
  const name = address === site.front ? 'front page' : 'page';
  const page = follow(address, name, '0');
  pageResponse.add(late_ms + page.timings.blocked + page.timings.duration);
  if (page.status === 200) check(page, { 'page is there': () => true }, { step: name });
  else miss(address, page, 'page', { step: name });
  if (!settings.no_files && page.status === 200 && page.body) {
    fetch(filesOf(page.body, page.url, site, screen, usualIcon), page.url, cached);
  }
  pageLoad.add(exec.instance.currentTestRunDuration - started_ms, { page: name });
}

// The files that are not cached yet, and where they redirect to within the target, as the icon of WordPress does.
function fetch(files, referer, cached) {
  let slot = 0;
  for (let hop = 0, next = files; hop <= MOST_HOPS; hop++) {
    const wanted = [...new Set(next)].filter((file) => !cached.has(file));
    if (wanted.length === 0) return;
    wanted.forEach((file) => cached.add(file));
    const slots = wanted.map(() => String(++slot));
    const answers = http.batch(
      wanted.map((file, i) => [
        'GET',
        file,
        null,
        {
          redirects: 0,
          timeout,
          responseType: 'binary',
          tags: { name: kindOf(file), slot: slots[i] },
          headers: { ...access.headers, Referer: referer, 'Accept-Encoding': 'gzip, deflate, br' },
        },
      ]),
    );
    next = [];
    answers.forEach((answer, i) => {
      bytes.add(size(answer), { slot: slots[i] });
      const led = answer.status >= 300 && answer.status < 400 && answer.headers.Location;
      const file = led ? site.resolve(led, wanted[i]) : null;
      if (file !== null) next.push(file);
      if (answer.status === 0 || answer.status >= 400) {
        miss(wanted[i], answer, 'file', { step: kindOf(wanted[i]), kind: 'missing_file' });
      }
    });
  }
}

// Notes what is not there, with its address (of which the query may hold a secret): as metadata, since there may be many.
function miss(address, answer, what, tags) {
  const why = answer.status ? `status ${answer.status}` : answer.error;
  exec.vu.metrics.metadata.detail = `${address.slice(site.origin.length).split('?')[0]}: ${why}`;
  check(answer, { [`${what} is there`]: () => false }, tags);
  delete exec.vu.metrics.metadata.detail;
}

// Requests a page, and follows redirects within the target. One that leaves it is an error, unless it may.
function follow(address, name, slot, { mayLeave = false } = {}) {
  let answer = null;
  for (let hop = 0; hop <= MOST_HOPS; hop++) {
    answer = http.get(address, {
      redirects: 0,
      timeout,
      tags: { name, slot },
      headers: {
        ...access.headers,
        Accept: 'text/html,application/xhtml+xml,*/*;q=0.8',
        'Accept-Encoding': 'gzip, deflate, br',
      },
    });
    bytes.add(size(answer), { slot });
    if (answer.status < 300 || answer.status >= 400 || !answer.headers.Location) return answer;
    const next = site.resolve(answer.headers.Location, address);
    if (next === null && mayLeave) return answer;
    if (!check(next, { 'redirect stays on the target': (led) => led !== null }, { step: name })) return answer;
    address = next;
  }
  return answer;
}

// Body bytes as sent, if the server states their number; otherwise after decompression.
function size(answer) {
  const said = Number(answer.headers['Content-Length']);
  if (said >= 0) return said;
  const body = answer.body;
  return body === null || body === undefined ? 0 : body.byteLength || body.length || 0;
}
