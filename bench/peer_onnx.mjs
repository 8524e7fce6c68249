// The peer of lacuna serve: an exported model in onnxruntime behind node's own http server. Takes the same requests (Open
// Inference Protocol, JSON or binary tensors) and gives the same output, scores.
// usage: node peer_onnx.mjs NODE_MODULES MODEL.onnx      prints its port
import {createServer} from 'node:http';
import {createRequire} from 'node:module';
import {availableParallelism} from 'node:os';
import {join} from 'node:path';

const [modules, model] = process.argv.slice(2);
const ort = createRequire(join(modules, 'x.js'))('onnxruntime-node');
// By itself it would count the machine's cores, not those that it may run on.
const session = await ort.InferenceSession.create(model, {intraOpNumThreads: availableParallelism()});
const server = createServer((request, response) => {
  const parts = [];
  request.on('data', part => parts.push(part));
  request.on('end', async () => {
    try {
      const body = Buffer.concat(parts);
      const size = request.headers['inference-header-content-length'];
      const json = JSON.parse(body.subarray(0, size === undefined ? body.length : Number(size)).toString());
      let at = Number(size);
      const feeds = {};
      for (const input of json.inputs) {
        const bytes = input.parameters && input.parameters.binary_data_size;
        let data;
        if (bytes === undefined) data = Float32Array.from(input.data);
        else {
          data = new Float32Array(body.buffer.slice(body.byteOffset + at, body.byteOffset + at + bytes));
          at += bytes;
        }
        feeds[input.name] = new ort.Tensor('float32', data, input.shape);
      }
      const {scores} = await session.run(feeds, ['scores']);
      const binary = json.parameters && json.parameters.binary_data_output;
      const output = {name: 'scores', datatype: 'FP32', shape: scores.dims};
      if (binary) output.parameters = {binary_data_size: scores.data.byteLength};
      else output.data = Array.from(scores.data);
      const head = Buffer.from(JSON.stringify({model_name: 'm', outputs: [output]}));
      const all = binary ? Buffer.concat([head, Buffer.from(scores.data.buffer, scores.data.byteOffset, scores.data.byteLength)]) : head;
      const headers = {'Content-Type': binary ? 'application/octet-stream' : 'application/json', 'Content-Length': all.length};
      if (binary) headers['Inference-Header-Content-Length'] = head.length;
      response.writeHead(200, headers);
      response.end(all);
    } catch (error) {
      response.writeHead(500);
      response.end(String(error));
    }
  });
});
server.listen(0, '127.0.0.1', () => console.log(server.address().port));
