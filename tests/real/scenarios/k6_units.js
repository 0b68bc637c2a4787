// The parts of the k6 scripts that are arithmetic, tested where they run: `k6 run tests/real/scenarios/k6_units.js`.

import { fail } from 'k6';
import { Site } from '../../../plimsoll/scenarios/k6/address.js';
import { filesOf, kindOf } from '../../../plimsoll/scenarios/k6/files.js';
import { Pages } from '../../../plimsoll/scenarios/k6/pages.js';
import { generator, skewed } from '../../../plimsoll/scenarios/k6/random.js';
import { MODELS, stages } from '../../../plimsoll/scenarios/k6/schedule.js';
import { readSettings, seconds } from '../../../plimsoll/scenarios/k6/settings.js';
import { chosen, matches } from '../../../plimsoll/scenarios/k6/srcset.js';

export const options = { iterations: 1, thresholds: {} };

function same(why, found, expected) {
  if (JSON.stringify(found) !== JSON.stringify(expected)) {
    fail(`${why}: ${JSON.stringify(found)} instead of ${JSON.stringify(expected)}`);
  }
}

const site = new Site('http://Blog.example:8080/wp/');
const at = 'http://blog.example:8080/wp/2024/a-post/?x=1';
const ADDRESSES = [
  ['a whole address of the site', 'http://blog.example:8080/x?y=1#z', 'http://blog.example:8080/x?y=1'],
  ['host names have no case', 'HTTP://BLOG.EXAMPLE:8080/x', 'http://blog.example:8080/x'],
  ['another host', 'http://elsewhere.example/x', null],
  ['another port', 'http://blog.example/x', null],
  ['another scheme', 'https://blog.example:8080/x', null],
  ['a user that looks like the host', 'http://blog.example:8080@elsewhere.example/x', null],
  ['a host that begins like ours', 'http://blog.example:8080.elsewhere.example/', null],
  ['without a scheme', '//blog.example:8080/x', 'http://blog.example:8080/x'],
  ['another host without a scheme', '//elsewhere.example/x', null],
  ['a backslash, which browsers take for a slash', '/\\elsewhere.example/x', null],
  ['a path', '/x', 'http://blog.example:8080/x'],
  ['a name beside the page', 'b.css', 'http://blog.example:8080/wp/2024/a-post/b.css'],
  ['a folder up', '../../c.css', 'http://blog.example:8080/wp/c.css'],
  ['too many folders up', '../../../../../../c.css', 'http://blog.example:8080/c.css'],
  ['a dot', './d/', 'http://blog.example:8080/wp/2024/a-post/d/'],
  ['only a query', '?page=2', 'http://blog.example:8080/wp/2024/a-post/?page=2'],
  ['only a fragment', '#top', null],
  ['nothing', ' ', null],
  ['mail', 'mailto:a@blog.example', null],
  ['a script', 'javascript:alert(1)', null],
  ['data', 'data:image/gif;base64,R0lGOD', null],
  ['a line feed', '/x\ny', null],
];

const HTML = `<html><head><link rel="stylesheet" href="/a.css"><link rel="alternate" href="/feed/">
  <link rel="preload" as="font" href="/i.woff2"><script src="b.js?ver=1&amp;x=2"></script><script>1</script>
  <script src="https://cdn.example/c.js"></script></head><body><img src="/d.jpg" loading="lazy"><img src="/d.jpg">
  <img alt="none"><img src="data:image/gif;base64,R0lGOD">
  <a href="/one/">1</a><a href="/two/?replytocom=3">2</a><a href="/wp-login.php">3</a><a href="/x.zip">4</a>
  <a href="http://elsewhere.example/">5</a><a href="/one/#again">6</a><a href="three">7</a></body></html>`;

const LAPTOP = { width_px: 1366, pixel_ratio: 1 };
const PHONE = { width_px: 400, pixel_ratio: 2 };
const SIZES = '(max-width: 652px) 100vw, 652px';
const WIDE = 's 300w, m 768w, l 1024w, xl 1536w';

const FILES = [
  ['the usual icon where none is named', '<p>', LAPTOP, ['/favicon.ico']],
  [
    'the smallest icon that is large enough, and none for the home screen',
    `<link rel="icon" href="/16.png" sizes="16x16"><link rel="icon" href="/32.png" sizes="32x32">
    <link rel="shortcut icon" href="/192.png" sizes="192x192"><link rel="apple-touch-icon" href="/180.png">`,
    LAPTOP,
    ['/32.png'],
  ],
  [
    'one of another host is not asked for, and nothing in its place',
    '<link rel="icon" href="//cdn.example/a.ico">',
    LAPTOP,
    [],
  ],
  [
    'the script of emoji',
    `<script>window._wpemojiSettings = {"source":{"concatemoji":"http:\\/\\/blog.example:8080\\/wp\\/emoji.js?ver=6.1"}};</script>
    <script>x = {"concatemoji":"\\x"}</script>`,
    LAPTOP,
    ['/wp/emoji.js?ver=6.1', '/favicon.ico'],
  ],
  [
    'the first source that fits',
    `<picture><source srcset="/a.no" type="image/x-no"><source srcset="/narrow.webp" media="(max-width: 600px)">
    <source srcset="/wide.webp 1x, /fine.webp 2x" type="image/webp"><img src="/old.jpg"></picture>`,
    LAPTOP,
    ['/wide.webp', '/favicon.ico'],
  ],
  [
    'its own image where no source fits',
    '<picture><source srcset="/a.no" type="image/x-no"><img src="/old.jpg"></picture>',
    PHONE,
    ['/old.jpg', '/favicon.ico'],
  ],
  [
    'a source alone, however fine, and not beside it what older browsers get',
    '<picture><source srcset="/fine.jpg 3x"><img src="/old.jpg"></picture>',
    LAPTOP,
    ['/fine.jpg', '/favicon.ico'],
  ],
  [
    'what is to be loaded early is chosen alike',
    '<link rel="preload" as="image" imagesrcset="/s.jpg 300w, /m.jpg 900w" imagesizes="100vw">',
    PHONE,
    ['/m.jpg', '/favicon.ico'],
  ],
];

const IMAGES = [
  ['the smallest that fills its place', WIDE, SIZES, LAPTOP, 'm'],
  ['more pixels on a phone', WIDE, SIZES, PHONE, 'l'],
  ['the whole screen without sizes', WIDE, '', LAPTOP, 'xl'],
  ['the largest where none is large enough', 's 300w', SIZES, LAPTOP, 's'],
  ['sizes of lazy images, the first of which is not for us', WIDE, `auto, ${SIZES}`, LAPTOP, 'm'],
  ['a sum', WIDE, 'calc(100vw - 1000px)', LAPTOP, 'm'],
  ['what is no length is passed over', WIDE, 'min(3px, 4px), 290px', LAPTOP, 's'],
  ['densities', 'one, two 2x, three 3x', '', PHONE, 'two'],
  ['its own address counts as one pixel each', 'two 2x', '', LAPTOP, 'own'],
  ['none that can be read', 'a 3h, b -2x', '', LAPTOP, 'own'],
  ['commas in addresses', 'a,b.jpg 300w, c,d.jpg 900w', '300px', LAPTOP, 'a,b.jpg'],
];

const MEDIA = [
  ['all', true],
  ['only screen and (min-width: 600px)', true],
  ['print', false],
  ['print, (max-width: 90em)', true],
  ['(min-width: 600px) and (max-width: 781px)', false],
  ['(width <= 1366px)', true],
  ['(width < 1366px)', false],
  ['(width > 50vw)', true],
  ['(hover: none)', false],
  ['(min-width: calc(1px))', true],
];

export default function () {
  ADDRESSES.forEach(([why, link, address]) => same(why, site.resolve(link, at), address));
  same('the front page keeps its folder', site.front, 'http://blog.example:8080/wp/');
  same('a usual port is none', new Site('https://blog.example:443').front, 'https://blog.example/');

  const here = 'http://blog.example:8080';
  same(
    'the files of a page',
    filesOf(HTML, `${here}/p/`, site, LAPTOP, null),
    ['/a.css', '/i.woff2', '/p/b.js?ver=1&x=2', '/d.jpg'].map((path) => here + path),
  );
  FILES.forEach(([why, html, screen, files]) =>
    same(
      why,
      filesOf(html, `${here}/p/`, site, screen, `${here}/favicon.ico`),
      files.map((path) => here + path),
    ),
  );
  IMAGES.forEach(([why, srcset, sizes, screen, address]) => same(why, chosen(srcset, sizes, screen, 'own'), address));
  MEDIA.forEach(([query, holds]) => same(query, matches(query, LAPTOP), holds));
  const pages = new Pages(site, 10);
  pages.addLinks(HTML, `${here}/p/`);
  same('the pages of a page', pages.list, [`${here}/one/`, `${here}/p/three`]);
  const further = pages.addListed(
    `<sitemap><loc>${here}/more.xml</loc></sitemap><url><loc>
    ${here}/four/?a=1&amp;b=2</loc></url><item><link><![CDATA[${here}/five/]]></link></item><loc>http://elsewhere.example/</loc>`,
    site.front,
  );
  same('further sitemaps', further, [`${here}/more.xml`]);
  same('what is listed', pages.list.slice(2), [`${here}/four/?a=1&b=2`, `${here}/five/`]);
  const few = new Pages(site, 1);
  few.addLinks(HTML, site.front);
  same('no more than wanted', few.list.length, 1);
  same('links elsewhere, but to one page each', few.led, null);
  const alone = new Pages(site, 10);
  alone.addLinks('<a href="https://www.blog.example/1">1</a><a href="//x.example/">2</a>', site.front);
  same('no further page, and a link to the site under another name', alone.led, ['https://www.blog.example', 1]);
  const moved = new Pages(site, 10);
  [1, 2, 3, 4, 5, 5].forEach((page) => moved.add(`https://live.example/${page}`, site.front));
  same('no further page, and links to another host, each counted once', moved.led, ['https://live.example', 5]);
  moved.add('/a/');
  moved.add('/b/');
  same('further pages', moved.led, null);
  same('kinds', ['/a.css?v=1', '/a.mjs', '/b.PNG', '/c.woff2', '/d'].map(kindOf), [
    'css-js',
    'css-js',
    'image',
    'font',
    'other file',
  ]);

  const [one, again, other] = [generator(1, 5), generator(1, 5), generator(1, 6)].map((chance) => [
    chance(),
    chance(),
    chance(),
  ]);
  same('the same seed and visit', one, again);
  same('another visit', one[0] === other[0], false);
  const counts = [0, 0, 0, 0];
  const choose = skewed(4, 1);
  const chance = generator(7, 0);
  for (let i = 0; i < 12500; i++) counts[choose(chance)] += 1;
  const ratios = counts.map((count) => Math.round((counts[0] / count) * 2) / 2);
  same('page i is read in proportion to 1/i', ratios, [1, 2, 3, 4]);
  same('the ends of chance', [choose(() => 0), choose(() => 0.9999999999)], [0, 3]);

  const defaults = JSON.stringify({
    rate: { kind: 'number', value: 5 },
    insecure: { kind: 'flag', value: false },
    hosts: { kind: 'json', value: {} },
    pages: { kind: 'text', value: null },
  });
  same('the defaults of a script that runs alone', readSettings(defaults), {
    rate: 5,
    insecure: false,
    hosts: {},
    pages: null,
  });
  Object.assign(__ENV, {
    PLIMSOLL_RATE: '0.5',
    PLIMSOLL_INSECURE: 'Yes',
    PLIMSOLL_HOSTS: '{"a:80":"b:81"}',
    PLIMSOLL_PAGES: '7',
  });
  same('variables change them', readSettings(defaults), {
    rate: 0.5,
    insecure: true,
    hosts: { 'a:80': 'b:81' },
    pages: '7',
  });
  __ENV.PLIMSOLL_SETTINGS = '{"rate": 9}';
  same('a document is the whole of them', readSettings(defaults), { rate: 9 });

  same('durations', ['90', '90s', '1.5m', '2h'].map(seconds), [90, 90, 90, 7200]);
  same('stages', stages('30s:10,2m:0'), [
    { duration_s: 30, target: 10 },
    { duration_s: 120, target: 0 },
  ]);

  const settings = {
    rate: 10,
    visitors: 8,
    duration_s: 40,
    stages: null,
    pages_per_visit: 1,
    think_s: 0,
    max_visitors: null,
  };
  const constant = MODELS['constant-arrival-rate'](settings);
  same('a constant rate', [constant.options.rate, constant.options.timeUnit, constant.due_ms(25)], [10, '1s', 2500]);
  const slow = MODELS['constant-arrival-rate']({ ...settings, rate: 0.5 });
  same(
    'half a visit a second is thirty a minute',
    [slow.options.rate, slow.options.timeUnit, slow.due_ms(3)],
    [30, '1m', 6000],
  );
  const ramp = MODELS['ramping-arrival-rate'](settings); // up to 10/s in 10 s, 20 s long, down in 10 s: 50 + 200 + 50
  same(
    'a ramp',
    [0, 49, 50, 249].map((n) => Math.round(ramp.due_ms(n))),
    [1414, 10000, 10100, 30000],
  );
  same('the last visit of a ramp', Math.round(ramp.due_ms(299) / 10), 4000);
  const closed = MODELS['ramping-vus'](settings);
  same(
    'visitors',
    closed.options.stages.map((stage) => stage.target),
    [8, 8, 0],
  );
}
