// Runs exported models with onnxruntime and compares with what lacuna predict said.
// usage: node judge.mjs NODE_MODULES CASE...
// A case is a folder with model.onnx, case.json {rows, labels, views: [{name, columns, file}]}, the views as raw float32
// files (rows of NaN are missing views), and scores, probabilities (float32) and decided (bytes) as expected;
// NaN, and bytes above 1, where lacuna predict gives nothing.
// Prints one JSON document: the largest difference of every case.
import {readFileSync} from 'node:fs';
import {createRequire} from 'node:module';
import {join} from 'node:path';

const [modules, ...cases] = process.argv.slice(2);
const ort = createRequire(join(modules, 'x.js'))('onnxruntime-node');

const floats = path => {
  const bytes = readFileSync(path);
  return new Float32Array(bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.byteLength));
};

async function judge(folder) {
  const about = JSON.parse(readFileSync(join(folder, 'case.json'), 'utf8'));
  const session = await ort.InferenceSession.create(join(folder, 'model.onnx'), {intraOpNumThreads: 1});
  const views = about.views.map(view => ({...view, data: floats(join(folder, view.file))}));
  const expected = {
    scores: floats(join(folder, 'scores')),
    probabilities: floats(join(folder, 'probabilities')),
    decided: new Uint8Array(readFileSync(join(folder, 'decided'))),
  };
  const run = async (begin, count) => {
    const feeds = {};
    for (const view of views)
      feeds[view.name] = new ort.Tensor('float32', view.data.slice(begin * view.columns, (begin + count) * view.columns),
                                        [count, view.columns]);
    return session.run(feeds);
  };
  const result = {inputs: session.inputNames, outputs: session.outputNames, scores: 0, probabilities: 0, decided: 0, compared: 0};
  const compare = (outputs, begin, count) => {
    for (const name of ['scores', 'probabilities'])
      for (let i = 0; i < count * about.labels; ++i) {
        const got = outputs[name].data[i], wanted = expected[name][begin * about.labels + i];
        // lacuna predict gives no scores to an item without views; the graph gives those of its bare network.
        const difference = Number.isNaN(wanted) ? 0 : Math.abs(got - wanted);
        result[name] = Number.isFinite(got) && Number.isFinite(difference) ? Math.max(result[name], difference) : 1e30;
        if (!Number.isNaN(wanted)) ++result.compared;
      }
    for (let i = 0; i < count * about.labels; ++i)
      if (expected.decided[begin * about.labels + i] < 2 &&
          Number(outputs.decided.data[i]) !== expected.decided[begin * about.labels + i]) ++result.decided;
  };
  compare(await run(0, about.rows), 0, about.rows);
  for (const [begin, count] of [[0, 1], [about.rows >> 1, 1], [1, Math.min(7, about.rows - 1)]])
    compare(await run(begin, count), begin, count);
  return result;
}

const all = {};
for (const folder of cases) all[folder] = await judge(folder);
console.log(JSON.stringify(all));
