// The pages that an author reads before writing.

const POST_LINKS = '.wp-block-post-title a[href], .entry-title a[href], article h2 a[href], h2 a[href], main a[href]';

const MOST = 5;

// The first posts that the front page, which is open, links to.
export async function publicPages({ page, site }) {
  const links = await page.evaluate(
    (selector) => [...document.querySelectorAll(selector)].map((a) => a.href),
    POST_LINKS,
  );
  const posts = links.map((link) => site.resolve(link)).filter((link) => link !== null && link !== site.front);
  return [...new Set(posts)].slice(0, MOST);
}
