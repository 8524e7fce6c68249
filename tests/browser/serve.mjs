// The page of lacuna serve: pastes rows, reads what it shows, at the width of a desktop and of a phone.
// usage: node serve.mjs NODE_MODULES URL ROWS_FILE SCREENSHOT_STEM
import {readFileSync} from 'node:fs';
import {open} from './browser.mjs';

const [modules, url, rowsFile, stem] = process.argv.slice(2);
const rows = readFileSync(rowsFile, 'utf8');
const result = {};
for (const [width, height] of [[1280, 900], [390, 844]]) {
  const {browser, page, strangers, errors} = await open(modules, width, height);
  await page.goto(url);
  await page.waitForSelector('#views li');
  await page.fill('#rows', rows);
  await page.click('#go');
  await page.waitForSelector('article');
  const cards = await page.$$eval('article', all => all.map(card => ({
    title: card.querySelector('h2').textContent,
    tags: [...card.querySelectorAll('.tag')].map(tag => ({
      label: tag.querySelector('.name').textContent,
      value: tag.querySelector('.value').textContent,
      views: [...tag.querySelectorAll('.why span')].map(view => view.textContent),
    })),
    text: card.textContent,
  })));
  const overflow = await page.evaluate(() => document.documentElement.scrollWidth - window.innerWidth);
  await page.screenshot({path: `${stem}-${width}.png`, fullPage: true});
  await page.fill('#rows', '1,2\n');
  await page.click('#go');
  await page.waitForFunction(() => document.getElementById('message').textContent !== '');
  const message = await page.textContent('#message');
  const tokenShown = await page.isVisible('#token-box');
  const columns = await page.$$eval('#views li', all => all.reduce((sum, one) => sum + Number(one.textContent.split(': ')[1]), 0));
  const refusal = async text => {  // of a row that does not fit
    await page.fill('#rows', text);
    await page.click('#go');
    await page.waitForFunction(was => ![was, ''].includes(document.getElementById('message').textContent), message);
    return page.textContent('#message');
  };
  const tooMany = await refusal(Array(columns + 1).fill('0.5').join(','));
  await page.fill('#rows', 'id' + Array.from({length: columns}, (_, k) => ',c' + k).join('') + '\n17' + ',0.5'.repeat(columns));
  await page.click('#go');
  await page.waitForFunction(() => document.querySelector('h2')?.textContent === '17');
  await page.fill('#rows', Array.from({length: columns}, (_, k) => k).join(',') + '\n' + Array(columns).fill('0.5').join(','));
  await page.click('#go');  // numbers that count the columns are a header
  await page.waitForFunction(() => document.querySelector('h2')?.textContent === '2');
  const counted = await page.$$eval('article', all => all.length);
  await page.click('#random');
  await page.waitForFunction(() => [...document.querySelectorAll('h2')].some(title => title.textContent === 'random'));
  result[width] = {cards, overflow, message, tokenShown, tooMany, counted, strangers, errors};
  await browser.close();
}
console.log(JSON.stringify(result));
