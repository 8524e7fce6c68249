// Headless Chromium for tests. Requests to anywhere but 127.0.0.1 are noted as strangers and cut off.
import {createRequire} from 'node:module';
import {join} from 'node:path';

export async function open(modules, width, height) {
  const {chromium} = createRequire(join(modules, 'x.js'))('playwright-core');
  const browser = await chromium.launch({
    executablePath: process.env.CHROMIUM || '/usr/bin/chromium',
    args: ['--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run', '--disable-background-networking',
           '--disable-component-update', '--disable-sync'],
    timeout: 300000,  // a machine that does other work as well is slow, not broken
  });
  const page = await browser.newPage({viewport: {width, height}});
  page.setDefaultTimeout(300000);
  const strangers = [], errors = [];
  await page.route('**', route => {
    const url = new URL(route.request().url());
    if (url.hostname === '127.0.0.1' || url.protocol === 'data:' || url.protocol === 'blob:') return route.continue();
    strangers.push(url.href);
    return route.abort();
  });
  page.on('pageerror', error => errors.push(String(error)));
  page.on('console', message => { if (message.type() === 'error') errors.push(message.text()); });
  return {browser, page, strangers, errors};
}
