import * as ort from './ort/ort.wasm.min.mjs';
import {predict, readMetadata, readTable} from './predict.mjs';

const $ = id => document.getElementById(id);
ort.env.wasm.wasmPaths = new URL('./ort/', import.meta.url).href;
ort.env.wasm.numThreads = 1;  // more need headers that plain file servers do not send

const bytes = await (await fetch('model.onnx')).arrayBuffer();
const about = readMetadata(bytes);
const session = await ort.InferenceSession.create(new Uint8Array(bytes));
$('about').textContent = 'Views: ' + about.views.map(view => `${view.name} (${view.columns})`).join(', ') + '. ' +
                         about.labels.length + ' labels.';

function element(name, text, kind = '') {
  const one = document.createElement(name);
  one.textContent = text;
  one.className = kind;
  return one;
}
async function show(file) {
  $('message').textContent = '';
  try {
    const items = await predict(ort, session, about, readTable(await file.text(), about.views), 5);
    const table = element('table', '');
    for (const item of items) {
      const row = element('tr', ''), tags = element('td', '');
      item.tags.forEach((tag, k) => tags.append(element('span', `${tag.label} ${(100 * tag.probability).toFixed(1)} %`,
                                                        tag.decided ? 'decided' : ''),
                                                k + 1 < item.tags.length ? ', ' : ''));
      row.append(element('th', item.id), tags);
      table.append(row);
    }
    $('result').replaceChildren(table);
  } catch (error) {
    $('result').replaceChildren();
    $('message').textContent = error.message;
  }
}
$('file').addEventListener('change', () => $('file').files.length && show($('file').files[0]));
for (const name of ['dragover', 'dragleave', 'drop'])
  $('drop').addEventListener(name, event => {
    event.preventDefault();
    $('drop').classList.toggle('over', name === 'dragover');
    if (name === 'drop' && event.dataTransfer.files.length) show(event.dataTransfer.files[0]);
  });
document.body.dataset.ready = 'yes';
