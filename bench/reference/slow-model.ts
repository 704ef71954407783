import { createServer } from 'node:http';

// A model provider that takes DELAY_MS for each answer, on PORT; GET reports how many calls it answered, holds open, and held open at most.
const delayMs = Number(process.env['DELAY_MS']);
const text = JSON.stringify({
  id: 'slow',
  object: 'chat.completion',
  created: 0,
  model: 'slow',
  choices: [{ index: 0, message: { role: 'assistant', content: 'Noted.' }, finish_reason: 'stop' }],
  usage: { prompt_tokens: 20, completion_tokens: 2, total_tokens: 22 },
});
let served = 0;
let open = 0;
let most = 0;
createServer((request, response) => {
  request.resume();
  if (request.method !== 'POST') return void response.writeHead(200).end(JSON.stringify({ served, open, most }));
  open += 1;
  most = Math.max(most, open);
  const timer = setTimeout(() => {
    served += 1;
    response.writeHead(200, { 'content-type': 'application/json', 'content-length': Buffer.byteLength(text) });
    response.end(text);
  }, delayMs);
  response.on('close', () => {
    open -= 1;
    clearTimeout(timer);
  });
}).listen(Number(process.env['PORT']), '127.0.0.1');
process.on('SIGTERM', () => process.exit(0));
