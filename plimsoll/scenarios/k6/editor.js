// Writing in WordPress: in the block editor or in the classic one, whichever the site has.

import { Trouble } from './trouble.js';

const TITLE = '.editor-post-title__input';
const SAVE = '#publish:not(.disabled)'; // the editor ignores its button while it saves a draft of its own accord
const WORDS_EACH_MS = 2000;
const CLASSIC_TITLE = '#titlewrap #title';

// Opens the editor and waits until one could type.
export async function openEditor(day) {
  const { page, timeout } = day;
  await day.go(`${day.site.front}wp-admin/post-new.php`, 'editor');
  if (await page.$('#login_error, #loginform')) throw new Trouble('login_failed', 'the session is over');
  day.classic = (await page.$(CLASSIC_TITLE)) !== null;
  if (day.classic) return;
  await page.waitForFunction(
    () => window.wp && wp.data && wp.data.select('core/editor') && wp.data.select('core/editor').getCurrentPostId(),
    { timeout },
  );
  await page.evaluate(() => {
    // what greets a new author, and would lie over the page
    for (const scope of ['core', 'core/edit-post'])
      wp.data.dispatch('core/preferences').set(scope, 'welcomeGuide', false);
    wp.data.dispatch('core/preferences').set('core', 'enableChoosePatternModal', false);
  });
  day.titleField = await titleField(page, timeout);
}

// The title is in the page itself, or (since WordPress 6.3, where all blocks allow it) in a frame of it.
async function titleField(page, timeout) {
  const until = Date.now() + timeout;
  while (Date.now() < until) {
    const here = await page.$(TITLE);
    if (here) return here;
    const canvas = await page.$('iframe[name="editor-canvas"]');
    const frame = canvas && (await canvas.contentFrame());
    const inside = frame && (await frame.$(TITLE));
    if (inside) return inside;
    await page.waitForTimeout(50);
  }
  throw new Trouble('check_failed', 'the editor shows no field for the title');
}

export async function write(day, title, paragraphs) {
  const { page } = day;
  if (day.classic) {
    await page.locator(CLASSIC_TITLE).fill(title);
    const plain = await page.$('#content-html');
    if (plain) await plain.click();
    await page.locator('#content').fill(paragraphs.join('\n\n'));
    return;
  }
  await day.titleField.click();
  await page.keyboard.type(title);
  for (const paragraph of paragraphs) {
    await page.keyboard.press('Enter');
    await page.keyboard.type(paragraph);
  }
}

// Goes on writing for some seconds, a few words at a time.
export async function writeOn({ page, classic }, seconds) {
  const until = Date.now() + seconds * 1000;
  while (Date.now() < until) {
    await page.evaluate((inForm) => {
      if (inForm) {
        document.querySelector('#content').value += ' And so on.';
        return;
      }
      const last = wp.data.select('core/block-editor').getBlocks().pop();
      const content = `${last.attributes.content} And so on.`;
      wp.data.dispatch('core/block-editor').updateBlockAttributes(last.clientId, { content });
    }, classic);
    await page.waitForTimeout(Math.min(WORDS_EACH_MS, Math.max(until - Date.now(), 0)));
  }
}

// Publishes, waits until the site has said that it is done, and returns the article's address.
export async function publish(day) {
  const { page, timeout } = day;
  if (day.classic) return classicSave(day, '#sample-permalink a, #message a');
  await page.locator('.editor-post-publish-panel__toggle, .editor-post-publish-button__button').first().click();
  await page.waitForSelector('.editor-post-publish-panel .editor-post-publish-button:not([aria-disabled="true"])', {
    timeout,
  });
  await page.locator('.editor-post-publish-panel .editor-post-publish-button').click();
  await saved(page, timeout);
  return page.evaluate(() => wp.data.select('core/editor').getPermalink());
}

export async function saveAgain(day, sentence) {
  const { page, timeout } = day;
  if (day.classic) {
    const before = await page.locator('#content').inputValue();
    await page.locator('#content').fill(`${before}\n\n${sentence}`);
    await classicSave(day, '#message a');
    return;
  }
  const close = await page.$('.editor-post-publish-panel__header button[aria-label="Close panel"]');
  if (close) await close.click();
  await page.evaluate(
    (text) =>
      wp.data.dispatch('core/block-editor').insertBlocks(wp.blocks.createBlock('core/paragraph', { content: text })),
    sentence,
  );
  await page.waitForFunction(() => wp.data.select('core/editor').isEditedPostDirty(), { timeout });
  await page.locator('.editor-post-publish-button').first().click();
  await saved(page, timeout);
}

// There is something to save when this is called, or it is not published: so nothing of before can be mistaken for it.
async function saved(page, timeout) {
  await page.waitForFunction(
    () => {
      const editor = wp.data.select('core/editor');
      if (editor.isSavingPost()) return false;
      return editor.didPostSaveRequestFail() || (editor.isCurrentPostPublished() && !editor.isEditedPostDirty());
    },
    { timeout },
  );
  const failed = await page.evaluate(
    () =>
      wp.data.select('core/editor').didPostSaveRequestFail() &&
      wp.data
        .select('core/notices')
        .getNotices()
        .map((notice) => notice.content)
        .join(' '),
  );
  if (failed !== false) throw new Trouble('check_failed', `the article was not saved: ${failed}`);
}

async function classicSave(day, link) {
  const { page } = day;
  await day.through(() => page.locator(SAVE).click(), SAVE);
  await day.loaded('editor');
  const message = await page.$('#message.updated, #message.notice-success');
  if (!message) throw new Trouble('check_failed', 'the editor did not say that the article was saved');
  const shown = await page.$(link);
  return shown ? shown.getAttribute('href') : null;
}
