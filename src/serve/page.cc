#include "serve/page.h"

namespace lacuna::serve {

const std::string& page_headers() {
  static const std::string headers =
      "Content-Security-Policy: default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; "
      "connect-src 'self'; img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'\r\n"
      "X-Content-Type-Options: nosniff\r\nReferrer-Policy: no-referrer\r\nCache-Control: no-cache\r\n";
  return headers;
}

const std::string& page() {
  static const std::string text = R"html(<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Lacuna: suggest tags</title>
<link rel="icon" href="data:,">
<style>
:root { --ink: #1b1f24; --soft: #5b6570; --line: #d5dae0; --back: #fff; --panel: #f5f7f9; --mark: #1f6feb; --up: #1a7f5a;
        --down: #b4452f; }
@media (prefers-color-scheme: dark) {
  :root { --ink: #e6e9ed; --soft: #9aa5b1; --line: #39424d; --back: #14181d; --panel: #1c2229; --mark: #5b9bff;
          --up: #4cc38a; --down: #f08a72; }
}
* { box-sizing: border-box; }
[hidden] { display: none !important; }
body { margin: 0 auto; max-width: 60rem; padding: 1.25rem; color: var(--ink); background: var(--back);
       font: 16px/1.5 system-ui, sans-serif; }
h1 { font-size: 1.4rem; margin: 0 0 .25rem; }
p { margin: .25rem 0 .75rem; }
.soft { color: var(--soft); font-size: .9rem; }
.row { display: flex; flex-wrap: wrap; gap: .5rem .75rem; align-items: end; margin: .75rem 0; }
label { display: grid; gap: .2rem; font-size: .85rem; color: var(--soft); }
select, input, textarea, button { font: inherit; color: inherit; background: var(--back); border: 1px solid var(--line);
                                  border-radius: .4rem; padding: .4rem .6rem; max-width: 100%; }
input[type=number] { width: 5rem; }
textarea { width: 100%; min-height: 8rem; font: 13px/1.4 ui-monospace, monospace; resize: vertical; }
textarea.over { outline: 3px solid var(--mark); }
button { cursor: pointer; }
button.main { background: var(--mark); border-color: var(--mark); color: #fff; font-weight: 600; }
button:disabled { opacity: .5; cursor: default; }
:focus-visible { outline: 2px solid var(--mark); outline-offset: 1px; }
#views { display: flex; flex-wrap: wrap; gap: .35rem; padding: 0; margin: .5rem 0; list-style: none; }
#views li { background: var(--panel); border: 1px solid var(--line); border-radius: 1rem; padding: .05rem .65rem;
            font-size: .85rem; }
#message { color: var(--down); white-space: pre-wrap; overflow-wrap: anywhere; min-height: 1.5em; }
article { border: 1px solid var(--line); border-radius: .6rem; padding: .75rem 1rem; margin: .75rem 0; }
article h2 { font-size: 1rem; margin: 0 0 .5rem; overflow-wrap: anywhere; }
.tag { display: grid; grid-template-columns: minmax(6rem, 12rem) 1fr 3.5rem; gap: .25rem .75rem; align-items: center;
       margin: .35rem 0; }
.tag .name { overflow-wrap: anywhere; }
.tag .name.decided { font-weight: 700; }
.bar { height: .8rem; background: var(--panel); border-radius: .4rem; overflow: hidden; }
.bar i { display: block; height: 100%; background: var(--mark); opacity: .55; }
.decided + .bar i { opacity: 1; }
.value { text-align: right; font-variant-numeric: tabular-nums; }
.why { grid-column: 1 / -1; display: flex; flex-wrap: wrap; gap: .1rem .9rem; font-size: .82rem; color: var(--soft); }
.why b { font-weight: 600; font-variant-numeric: tabular-nums; }
.why .up { color: var(--up); } .why .down { color: var(--down); }
@media (max-width: 30rem) {
  body { padding: .9rem; }
  .tag { grid-template-columns: 1fr 3.5rem; }
  .tag .bar { grid-column: 1 / -1; grid-row: 2; }
}
</style>
</head>
<body>
<h1>Suggest tags</h1>
<p class="soft">Rows stay between this page and this server. A view that is left out is a missing view.</p>
<div class="row">
  <label>Model <select id="model"></select></label>
  <label>Columns of a row <select id="layout"></select></label>
  <label>Tags <input id="top" type="number" min="1" max="1000" value="5"></label>
  <label id="token-box" hidden>Token <input id="token" type="password" autocomplete="off"></label>
</div>
<ul id="views" aria-label="Views of the model"></ul>
<label for="rows">Rows: numbers separated by commas, semicolons, tabs or blanks, an id in front if you like;
or lines of JSON. Drop a file here.</label>
<textarea id="rows" spellcheck="false" placeholder='{"id": "a", "views": {"NAME": [0.1, 0.2, ...]}}'></textarea>
<div class="row">
  <button class="main" id="go">Suggest</button>
  <button id="random">A random row</button>
  <span class="soft" id="said" role="status"></span>
</div>
<p id="message" role="alert"></p>
<section id="results" aria-label="Suggestions"></section>
<script>
'use strict';
const $ = id => document.getElementById(id);
const kMost = 64;  // items explained at once
let described = null;

function headers() {
  const token = $('token').value.trim();
  return token ? {Authorization: 'Bearer ' + token} : {};
}
async function ask(path, body) {
  const answer = await fetch(path, {method: body === undefined ? 'GET' : 'POST', headers: headers(), body});
  const text = await answer.text();
  if (answer.status === 401) { $('token-box').hidden = false; $('token').focus(); }
  if (!answer.ok) {
    let detail = text;
    try { detail = JSON.parse(text).detail || text; } catch (e) { /* plain text then */ }
    throw new Error(detail);
  }
  return text;
}
function option(select, value, text) {
  const one = document.createElement('option');
  one.value = value;
  one.textContent = text;
  select.append(one);
}
async function start() {
  try {
    const models = JSON.parse(await ask('/v2/models')).models;
    $('model').replaceChildren();
    for (const model of models) option($('model'), model.name, model.name);
    await describe();
    $('message').textContent = '';
  } catch (error) { $('message').textContent = error.message; }
}
async function describe() {
  described = JSON.parse(await ask('/v2/models/' + encodeURIComponent($('model').value)));
  $('views').replaceChildren(...described.inputs.map(view => {
    const item = document.createElement('li');
    item.textContent = view.name + ': ' + view.shape[1];
    return item;
  }));
  $('layout').replaceChildren();
  const total = described.inputs.reduce((sum, view) => sum + view.shape[1], 0);
  option($('layout'), '', 'all views in this order (' + total + ')');
  if (described.inputs.length > 1)
    for (const view of described.inputs) option($('layout'), view.name, view.name + ' alone (' + view.shape[1] + ')');
}
const isNumber = cell => cell.trim() !== '' && Number.isFinite(Number(cell));
const isEmpty = cell => cell.trim() === '' || /^(na|nan|null)$/i.test(cell.trim());
const cellsOf = line => (/[,;\t]/.test(line) ? line.split(/[,;\t]/) : line.trim().split(/ +/)).map(cell => cell.trim());
const chosenViews = () => described.inputs.filter(view => ['', view.name].includes($('layout').value));
const some = names => names.slice(0, 3).join(', ') + (names.length > 3 ? ', ...' : '');
// What the first line says if it is a header: whether an id is in front, and where the columns of the views are, by
// their names. Numbers that count the columns are a header without names; null: the line is a row.
function header(line) {
  const titles = cellsOf(line).map(title => title.replace(/^"(.*)"$/, '$1'));
  const views = chosenViews();
  const total = views.reduce((sum, view) => sum + view.shape[1], 0);
  const names = views.flatMap(view => view.parameters?.columns ?? []);
  const named = names.length === total;
  const id = /^(id)?$/i.test(titles[0]) || (titles.length === total + 1 && !names.includes(titles[0]));
  const own = id ? titles.slice(1) : titles;
  const isWord = cell => !isEmpty(cell) && !isNumber(cell);
  const asLearned = own.length === total && (own.every((title, k) => title === String(k)) ||
                                             own.every((title, k) => title === names[k]));
  if (!asLearned && !titles.slice(1).some(isWord) && !(isWord(titles[0]) && names.includes(titles[0]))) return null;
  if (asLearned || !named) return {id};
  const twice = [own, names].map(all => all.find((name, k) => all.indexOf(name) !== k)).find(name => name !== undefined);
  const unknown = own.filter(name => !names.includes(name)), missing = names.filter(name => !own.includes(name));
  if (twice === undefined && !unknown.length && !missing.length) return {id, order: names.map(name => own.indexOf(name))};
  throw new Error('The header has ' + own.length + ' names, the model has ' + total + ' columns here: ' +
                  [unknown.length && 'unknown to it: ' + some(unknown), missing.length && 'missing: ' + some(missing),
                   twice !== undefined && '"' + twice + '" is there twice, so names cannot be matched; choose one view, ' +
                   'or keep the order of the model'].filter(part => part).join('; ') + '.');
}
// A row of numbers as an item; cells that are empty or say NaN are left out, a view of such cells alone is missing. One
// cell more than columns is an id if it cannot be a number, or if a header says so.
function item(line, number, title) {
  const chosen = $('layout').value;
  const views = chosenViews();
  const total = views.reduce((sum, view) => sum + view.shape[1], 0);
  let cells = cellsOf(line);
  let id = String(number);
  if (cells.length === total + 1 && (title?.id || !(isNumber(cells[0]) || isEmpty(cells[0])))) id = cells.shift();
  if (cells.length !== total)
    throw new Error('Line ' + number + ' has ' + cells.length + ' cells, ' +
                    (chosen === '' ? 'the views together have ' : 'view ' + chosen + ' has ') + total + ' columns' +
                    (cells.length === total + 1 ? '; an id in front that is a number needs a header line that calls it "id".'
                                                : '.'));
  if (title?.order) cells = title.order.map(k => cells[k]);
  const result = {id, views: {}};
  for (const view of views) {
    const part = cells.splice(0, view.shape[1]);
    const empty = part.filter(isEmpty).length;
    if (empty === part.length) continue;
    const numbers = part.map(Number);
    const wrong = part.findIndex(cell => !isNumber(cell));
    if (wrong >= 0)
      throw new Error('Line ' + number + ', view ' + view.name + ', column ' + (wrong + 1) + ': "' + part[wrong] +
                      '" is no number. Leave a whole view empty if it is missing.');
    result.views[view.name] = numbers;
  }
  return JSON.stringify(result);
}
function lines() {
  const all = $('rows').value.split(/\r?\n/).filter(line => line.trim() !== '');
  if (all.length === 0) throw new Error('There are no rows yet: paste some, or drop a file.');
  if (all[0].trim()[0] === '{') return all;
  const title = all.length > 1 ? header(all[0]) : null, first = title ? 1 : 0;
  return all.slice(first).map((line, k) => item(line, k + first + 1, title));
}
function element(name, kind, text) {
  const one = document.createElement(name);
  if (kind) one.className = kind;
  if (text !== undefined) one.textContent = text;
  return one;
}
function show(result, number) {
  const card = element('article');
  card.append(element('h2', '', result.id === undefined ? 'Item ' + number : result.id));
  if (result.error) { card.append(element('p', '', result.error)); return card; }
  if (!result.tags) { card.append(element('p', 'soft', 'No view is there, so there is nothing to suggest.')); return card; }
  for (const tag of result.tags) {
    const row = element('div', 'tag');
    const bar = element('div', 'bar'), fill = element('i');
    fill.style.width = (100 * tag.probability).toFixed(1) + '%';
    bar.append(fill);
    row.append(element('span', tag.decided ? 'name decided' : 'name', tag.label), bar,
               element('span', 'value', (100 * tag.probability).toFixed(1) + ' %'));
    const why = element('div', 'why');
    const views = Object.entries(tag.views || {}).sort((a, b) => Math.abs(b[1]) - Math.abs(a[1]));
    for (const [name, value] of views) {
      const part = element('span', '', name + ' ');
      part.append(element('b', value >= 0 ? 'up' : 'down', (value >= 0 ? '+' : '\u2212') + Math.abs(value).toFixed(2)));
      why.append(part);
    }
    if (views.length) row.append(why);
    card.append(row);
  }
  if (result.base)
    card.append(element('p', 'soft', 'Views are counted from ' + (result.base === 'prior' ?
                        'each tag\u2019s share in training.' : 'the model\u2019s output without views.')));
  return card;
}
async function suggest() {
  $('message').textContent = '';
  $('go').disabled = true;
  try {
    const all = lines(), begun = performance.now();
    const query = '?explain=true&top=' + encodeURIComponent($('top').value || 5) + '&model=' +
                  encodeURIComponent($('model').value);
    const text = await ask('/v1/suggest-batch' + query, all.slice(0, kMost).join('\n'));
    const results = text.trim().split('\n').map(line => JSON.parse(line));
    $('results').replaceChildren(...results.map((result, k) => show(result, k + 1)));
    const more = all.length > kMost ? ', the first ' + kMost + ' of ' + all.length : '';
    $('said').textContent = results.length + (results.length === 1 ? ' row' : ' rows') + more + ', ' +
                            Math.round(performance.now() - begun) +
                            ' ms. Bold: decided. Numbers: what a view adds to the tag, in log-odds.';
  } catch (error) { $('message').textContent = error.message; }
  $('go').disabled = false;
}
$('go').addEventListener('click', suggest);
$('model').addEventListener('change', () => describe().catch(error => { $('message').textContent = error.message; }));
$('token').addEventListener('change', start);
$('random').addEventListener('click', () => {
  if (!described) return;
  const views = {};
  for (const view of described.inputs)
    views[view.name] = Array.from({length: view.shape[1]}, () => Number((2 * Math.random() - 1).toFixed(3)));
  $('rows').value = JSON.stringify({id: 'random', views});
  suggest();
});
for (const name of ['dragover', 'dragleave', 'drop'])
  $('rows').addEventListener(name, event => {
    event.preventDefault();
    $('rows').classList.toggle('over', name === 'dragover');
    if (name === 'drop' && event.dataTransfer.files.length)
      event.dataTransfer.files[0].text().then(text => { $('rows').value = text; suggest(); });
    else if (name === 'drop') $('rows').value = event.dataTransfer.getData('text');
  });
start();
</script>
</body>
</html>
)html";
  return text;
}

}  // namespace lacuna::serve
