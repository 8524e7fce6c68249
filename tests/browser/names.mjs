// The page of lacuna serve with a model that knows its columns: each text is pasted in turn.
// usage: node names.mjs NODE_MODULES URL TEXTS_FILE (a JSON list); prints of each text the message, or the tags shown
import {readFileSync} from 'node:fs';
import {open} from './browser.mjs';

const [modules, url, textsFile] = process.argv.slice(2);
const {browser, page, errors} = await open(modules, 1280, 900);
const seen = [];
for (const text of JSON.parse(readFileSync(textsFile, 'utf8'))) {
  await page.goto(url);
  await page.waitForSelector('#views li');
  await page.fill('#rows', text);
  await page.click('#go');
  await page.waitForFunction(() => document.querySelector('article') || document.getElementById('message').textContent !== '');
  seen.push({message: await page.textContent('#message'),
             tags: await page.$$eval('.tag', all => all.map(tag => tag.querySelector('.name').textContent + ' ' +
                                                               tag.querySelector('.value').textContent))});
}
await browser.close();
console.log(JSON.stringify({seen, errors}));
