// What the page does with a model and a table, apart from the page: used by it and by the test.

// The views, labels and thresholds that lacuna export wrote into the model's metadata.
export function readMetadata(bytes) {
  const data = new Uint8Array(bytes), text = new TextDecoder();
  let at = 0;
  const varint = () => {
    let value = 0, factor = 1;
    for (;;) {
      const byte = data[at++];
      value += (byte & 127) * factor;
      if (byte < 128) return value;
      factor *= 128;
    }
  };
  const fields = (end, use) => {
    while (at < end) {
      const key = varint(), kind = key % 8;
      if (kind === 0) varint();
      else if (kind === 5) at += 4;
      else if (kind === 1) at += 8;
      else {
        const size = varint(), next = at + size;
        use((key - kind) / 8, next);
        at = next;
      }
    }
  };
  const notes = {};
  fields(data.length, (field, end) => {
    if (field !== 14) return;  // metadata_props of ModelProto
    const pair = ['', ''];
    fields(end, (part, stop) => { if (part <= 2) pair[part - 1] = text.decode(data.subarray(at, stop)); });
    notes[pair[0]] = pair[1];
  });
  if (!notes.views || !notes.labels) throw new Error('This ONNX file was not written by lacuna export.');
  return {views: JSON.parse(notes.views), labels: JSON.parse(notes.labels), calibrated: notes.calibrated === 'true'};
}

// Cells of a line of CSV; quotes may hold separators, and two quotes in quotes are one.
function cellsOf(line, separator) {
  const cells = [];
  let cell = '', quoted = false;
  for (let i = 0; i < line.length; ++i) {
    const c = line[i];
    if (quoted && c === '"' && line[i + 1] === '"') { cell += '"'; ++i; }
    else if (c === '"') quoted = !quoted;
    else if (c === separator && !quoted) { cells.push(cell.trim()); cell = ''; }
    else cell += c;
  }
  cells.push(cell.trim());
  return cells;
}

// Where the columns of the views are in a row, by the names of a header without its id; null: in the model's order,
// because the model knows no names or the header only counts the columns.
function orderOf(titles, views) {
  const total = views.reduce((sum, view) => sum + view.columns, 0);
  const names = views.flatMap(view => view.column_names ?? []);
  if (names.length !== total || (titles.length === total && titles.every((title, k) => title === String(k)))) return null;
  if (titles.length === total && titles.every((title, k) => title === names[k])) return null;
  const unknown = titles.filter(title => !names.includes(title)), missing = names.filter(name => !titles.includes(name));
  if (unknown.length || missing.length || titles.length !== total)
    throw new Error(`The header has ${titles.length} names, the views together have ${total} columns; unknown: ` +
                    `${unknown.slice(0, 3).join(', ') || 'none'}; missing: ${missing.slice(0, 3).join(', ') || 'none'}.`);
  if (new Set(names).size !== total)
    throw new Error('Views have columns of the same name, so that a header must be in the order of the model.');
  return names.map(name => titles.indexOf(name));
}

// The rows of a table as one float32 array a view; NaN where a view is missing. `missing` marks rows without any view.
export function readTable(text, views) {
  const lines = text.split(/\r?\n/).filter(line => line.trim() !== '');
  if (lines.length === 0) throw new Error('The file is empty.');
  const separator = ['\t', ';', ','].find(one => lines[0].includes(one)) || ',';
  const rows = lines.map(line => cellsOf(line, separator));
  const total = views.reduce((sum, view) => sum + view.columns, 0);
  const isNumber = cell => cell === '' || /^(na|nan)$/i.test(cell) || Number.isFinite(Number(cell));
  const counts = row => row.length === total && row.every((cell, k) => cell === String(k));
  const first = rows.length > 1 && (rows[0].slice(1).some(cell => !isNumber(cell)) || counts(rows[0]) ||
                                    counts(rows[0].slice(1))) ? 1 : 0;
  // One cell more than columns is an id if it cannot be a number, or if a header says so.
  const titled = first === 1 && /^id$/i.test(rows[0][0]);
  const hasIds = rows.length > first && rows[first].length === total + 1 && (titled || !isNumber(rows[first][0]));
  const order = first === 1 ? orderOf(hasIds || titled ? rows[0].slice(1) : rows[0], views) : null;
  const ids = [], missing = [], data = views.map(view => new Float32Array((rows.length - first) * view.columns));
  for (let r = first; r < rows.length; ++r) {
    if (rows[r].length !== total + (hasIds ? 1 : 0))
      throw new Error(`Line ${r + 1} has ${rows[r].length} cells, ${hasIds ? 'an id and ' : ''}the views together have ` +
                      `${total} columns. An id in front that is a number needs a header line that calls it "id".`);
    const own = hasIds ? rows[r].slice(1) : rows[r], cells = order ? order.map(k => own[k]) : own;
    ids.push(hasIds ? rows[r][0] : String(r + 1 - first));
    missing.push(cells.every(cell => cell === '' || /^(na|nan)$/i.test(cell)));
    let at = 0;
    views.forEach((view, v) => {
      const part = cells.slice(at, at += view.columns);
      const empty = part.map(cell => cell === '' || /^(na|nan)$/i.test(cell));
      const gone = empty.every(Boolean), wrong = part.findIndex((cell, j) => empty[j] || !Number.isFinite(Number(cell)));
      if (!gone && wrong >= 0)
        throw new Error(`Line ${r + 1}, view ${view.name}, column ${wrong + 1}: "${part[wrong]}" is no number. ` +
                        'Leave all cells of a view empty if it is missing.');
      for (let j = 0; j < view.columns; ++j)
        data[v][(r - first) * view.columns + j] = gone ? NaN : Number(part[j]);
    });
  }
  return {ids, rows: ids.length, data, missing};
}

// Tags of every row, best first: {id, tags: [{label, probability, decided}]}. None where nothing is known of it.
export async function predict(ort, session, about, table, top) {
  const feeds = {};
  about.views.forEach((view, v) => {
    feeds[view.name] = new ort.Tensor('float32', table.data[v], [table.rows, view.columns]);
  });
  const {probabilities, decided} = await session.run(feeds);
  const c = about.labels.length;
  return table.ids.map((id, i) => {
    const tags = about.labels.map((label, j) => ({label, probability: probabilities.data[i * c + j],
                                                  decided: Boolean(decided.data[i * c + j])}));
    tags.sort((a, b) => b.probability - a.probability);
    return {id, tags: table.missing[i] ? [] : tags.slice(0, top)};
  });
}
