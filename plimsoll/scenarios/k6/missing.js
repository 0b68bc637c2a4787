// Files that a page names and that did not load. The browser's own list of files shows them: status 0 means no answer.
// k6 says nothing of them, and a page that lacks a script may wait for it forever.

import { Trouble } from './trouble.js';

const LONGEST_PATH = 60; // of 280 characters that an event keeps
const elsewhere = new Set(); // addresses that redirect to another host

// Before the first page: the list is to have room for all files, and what the page itself forbids does not count.
export async function watchFiles(context) {
  await context.addInitScript(`(${watch})()`); // as text: k6 1.4 gives a function arguments that are not there
}

function watch() {
  performance.setResourceTimingBufferSize(10000);
  window.plimsollForbidden = new Set();
  document.addEventListener('securitypolicyviolation', (event) => window.plimsollForbidden.add(event.blockedURI));
}

// Fails where files of the open page, from its own host, did not load.
export async function requireFiles(page) {
  const [missing, redirected] = await page.evaluate(missingFiles, [...elsewhere].join(' '));
  for (const name of redirected) elsewhere.add(name);
  if (missing.length === 0) return;
  const files = missing.length === 1 ? '1 file of the page' : `${missing.length} files of the page`;
  const [first] = missing;
  const path = first.length > LONGEST_PATH ? `…${first.slice(1 - LONGEST_PATH)}` : first;
  throw new Trouble(
    'closed_early',
    `${files} did not load, first ${path}: the server closed the connection, or a network interface of this machine ` +
      'came or went (a container or a virtual machine began or ended): run the browser where none does',
  );
}

// The paths of such files, and the addresses that redirect to another host; runs in the browser. Other hosts have status
// 0 always, and so has what a script of the page gave up itself: its own requests, an image that it changed, a frame, a
// prefetch that nobody waits for.
async function missingFiles(known) {
  const elsewhere = (known || '').split(' '); // k6 gives nothing for an empty text
  const early = [...document.querySelectorAll('link[rel~="prefetch" i], link[rel~="prerender" i]')];
  const broken = [...document.images].filter((image) => image.complete && image.naturalWidth === 0);
  const wanted = {
    script: () => true,
    css: () => true,
    link: (name) => !early.some((link) => link.href === name),
    img: (name) => broken.some((image) => image.currentSrc === name),
  };
  const names = performance
    .getEntriesByType('resource')
    .filter((entry) => entry.responseStatus === 0 && entry.name.startsWith(`${location.origin}/`))
    .filter((entry) => Object.hasOwn(wanted, entry.initiatorType) && wanted[entry.initiatorType](entry.name))
    .map((entry) => entry.name)
    .filter((name) => !window.plimsollForbidden.has(name) && !elsewhere.includes(name));
  // A redirect to another host leaves status 0, too: only a request shows which.
  const redirects = async (name) => {
    const options = { method: 'HEAD', redirect: 'manual', signal: AbortSignal.timeout(2000) };
    const answer = await fetch(name, options).catch(() => null);
    return answer !== null && answer.type === 'opaqueredirect';
  };
  const asked = await Promise.all([...new Set(names)].map(async (name) => [name, await redirects(name)]));
  return [
    asked.filter(([, redirected]) => !redirected).map(([name]) => new URL(name).pathname),
    asked.filter(([, redirected]) => redirected).map(([name]) => name),
  ];
}
