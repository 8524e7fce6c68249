// The example page with an exported model: drops a CSV on it and prints the tags that it shows.
// usage: node example.mjs NODE_MODULES SITE CSV SCREENSHOT
import {readFileSync} from 'node:fs';
import {createServer} from 'node:http';
import {extname, join, normalize} from 'node:path';
import {pathToFileURL} from 'node:url';
import {open} from './browser.mjs';

const [modules, site, csv, screenshot] = process.argv.slice(2);
const types = {'.html': 'text/html', '.mjs': 'text/javascript', '.wasm': 'application/wasm'};
const posts = [];
const server = createServer((request, response) => {
  if (request.method !== 'GET') posts.push(request.method + ' ' + request.url);
  try {
    const name = normalize(new URL(request.url, 'http://x').pathname).replace(/^\/$/, '/index.html');
    const bytes = readFileSync(join(site, name));
    response.writeHead(200, {'Content-Type': types[extname(name)] || 'application/octet-stream'});
    response.end(bytes);
  } catch (error) {
    response.writeHead(404);
    response.end();
  }
});
await new Promise(done => server.listen(0, '127.0.0.1', done));
const {browser, page, strangers, errors} = await open(modules, 1280, 900);
await page.goto(`http://127.0.0.1:${server.address().port}/`);
await page.waitForSelector('body[data-ready=yes]', {timeout: 300000});
const text = readFileSync(csv, 'utf8');
await page.evaluate(content => {  // a real drop event with a file in it
  const transfer = new DataTransfer();
  transfer.items.add(new File([content], 'rows.csv', {type: 'text/csv'}));
  document.getElementById('drop').dispatchEvent(new DragEvent('drop', {dataTransfer: transfer, bubbles: true, cancelable: true}));
}, text);
await page.waitForSelector('table tr', {timeout: 300000});
const rows = await page.$$eval('table tr', all => all.map(row => ({
  id: row.querySelector('th').textContent,
  tags: [...row.querySelectorAll('span')].map(tag => ({text: tag.textContent, decided: tag.className === 'decided'})),
})));
await page.screenshot({path: screenshot});
await page.evaluate(() => {
  const transfer = new DataTransfer();
  transfer.items.add(new File(['1,2,3\n'], 'short.csv'));
  document.getElementById('drop').dispatchEvent(new DragEvent('drop', {dataTransfer: transfer, cancelable: true}));
});
await page.waitForFunction(() => document.getElementById('message').textContent !== '');
const message = await page.textContent('#message');
await browser.close();
server.close();
// The same module without a page: what is a row with a cell too many, what an id.
const {readTable} = await import(pathToFileURL(join(site, 'predict.mjs')));
const views = [{name: 'a', columns: 2}, {name: 'b', columns: 1}];
let tooMany = '';
try { readTable('1,2,3,4\n', views); } catch (error) { tooMany = error.message; }
const titled = readTable('id,x,y,z\n7,1,2,3\n8,,,\n', views);
// Columns by their names, which lacuna export wrote.
const named = [{name: 'a', columns: 2, column_names: ['x', 'y']}, {name: 'b', columns: 1, column_names: ['z']}];
const turned = readTable('id,z,y,x\n7,3,2,1\n', named).data.map(part => [...part]);
const counted = readTable('0,1,2\n4,5,6\n', named).data.map(part => [...part]);
let strange = '';
try { readTable('id,x,y,other\n7,1,2,3\n', named); } catch (error) { strange = error.message; }
const {readMetadata} = await import(pathToFileURL(join(site, 'predict.mjs')));
const written = readMetadata(readFileSync(join(site, 'model.onnx'))).views.map(view => view.column_names ?? null);
console.log(JSON.stringify({turned, counted, strange, written, rows, message, tooMany, ids: titled.ids, missing: titled.missing, strangers, errors, posts}));
