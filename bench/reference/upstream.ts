import { Agent, request, type IncomingMessage } from 'node:http';
import type { ChatBody, Usage } from './wire.ts';

/** The model call of the reference: node:http with keep-alive, the event stream read line by line. */
export interface Answer {
  readonly content: string;
  readonly finish: string;
  readonly usage: Usage | undefined;
}
export interface StreamSink {
  delta(text: string): void;
  finish(reason: string, usage: Usage | undefined): void;
}
interface WireAnswer {
  readonly choices: readonly { readonly message: { readonly content: string }; readonly finish_reason: string }[];
  readonly usage?: Usage;
}
interface WireChunk {
  readonly choices: readonly { readonly delta: { readonly content?: string }; readonly finish_reason: string | null }[];
  readonly usage?: Usage;
}

const agent = new Agent({ keepAlive: true, maxSockets: Infinity });
const url = new URL('/v1/chat/completions', process.env['UPSTREAM']);

function call(body: ChatBody, stream: boolean, onResponse: (response: IncomingMessage) => void, onError: (error: Error) => void): void {
  const text = JSON.stringify({
    model: body.model,
    messages: body.messages,
    stream,
    ...(body.temperature !== undefined && { temperature: body.temperature }),
    ...(body.max_tokens !== undefined && { max_tokens: body.max_tokens }),
    ...(stream && { stream_options: { include_usage: true } }),
  });
  const headers = { 'content-type': 'application/json', authorization: 'Bearer sk-mock', 'content-length': Buffer.byteLength(text) };
  const outgoing = request({ host: url.hostname, port: url.port, path: url.pathname, method: 'POST', agent, headers }, onResponse);
  outgoing.on('error', onError);
  outgoing.end(text);
}

export function complete(body: ChatBody): Promise<Answer> {
  const { promise, resolve, reject } = Promise.withResolvers<Answer>();
  const read = (response: IncomingMessage): void => {
    const parts: Buffer[] = [];
    response.on('data', (part: Buffer) => parts.push(part));
    response.on('error', reject);
    response.on('end', () => {
      const whole: WireAnswer = JSON.parse(Buffer.concat(parts).toString());
      const choice = whole.choices[0];
      if (choice) resolve({ content: choice.message.content, finish: choice.finish_reason, usage: whole.usage });
      else reject(new Error('answer without a choice'));
    });
  };
  call(body, false, read, reject);
  return promise;
}

export function stream(body: ChatBody, sink: StreamSink): Promise<void> {
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  const read = (response: IncomingMessage): void => {
    let finish = 'stop';
    let usage: Usage | undefined;
    const push = dataLines((data) => {
      if (data === '[DONE]') return;
      const chunk: WireChunk = JSON.parse(data);
      usage = chunk.usage ?? usage;
      const choice = chunk.choices[0];
      if (!choice) return;
      if (choice.delta.content) sink.delta(choice.delta.content);
      finish = choice.finish_reason ?? finish;
    });
    response.on('data', push);
    response.on('error', reject);
    response.on('end', () => {
      sink.finish(finish, usage);
      resolve();
    });
  };
  call(body, true, read, reject);
  return promise;
}

/** Reads on bytes and decodes only the payload of each `data:` line; a line cut by a read is joined with the next. */
function dataLines(onData: (data: string) => void): (bytes: Buffer) => void {
  let rest: Buffer | undefined;
  return (bytes) => {
    const all = rest ? Buffer.concat([rest, bytes]) : bytes;
    let start = 0;
    for (let end = all.indexOf(10, start); end !== -1; end = all.indexOf(10, start)) {
      const last = end > start && all[end - 1] === 13 ? end - 1 : end;
      if (last - start > 5 && all[start] === 0x64 && all[start + 4] === 0x3a)
        onData(all.toString('utf8', all[start + 5] === 0x20 ? start + 6 : start + 5, last));
      start = end + 1;
    }
    rest = start < all.length ? all.subarray(start) : undefined;
  };
}
