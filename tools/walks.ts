import { createServer, type ServerResponse } from 'node:http';
import { Session } from 'node:inspector/promises';
import type { AddressInfo } from 'node:net';
import { join, relative } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { parseArgs } from 'node:util';
import * as z from 'zod';

/**
 * Counts the modules that take part in a whole answer of `/v1/chat/completions`, in one token of its stream, and in one occurrence of a job: those
 * of which V8 has run a function, in all threads. Modules of tests, of Node and of other packages do not count. `--root` names another checkout
 * (its tests need its packages installed), `--list` prints the modules.
 */
const { values } = parseArgs({
  options: { root: { type: 'string', default: join(import.meta.dirname, '..') }, list: { type: 'boolean', default: false } },
});
const root = values.root;
const { createStepClock, startTestServer }: typeof import('@gatehouse/testkit') = await import(
  pathToFileURL(join(root, 'packages/testkit/src/index.ts')).href
);

const Coverage = z.looseObject({
  result: z.array(z.looseObject({ url: z.string(), functions: z.array(z.looseObject({ ranges: z.array(z.looseObject({ count: z.number() })) })) })),
});

/** Precise coverage of this thread and of its workers, which all answer over the session of this one. */
class Threads {
  readonly #session = new Session();
  readonly #workers = new Set<string>();
  readonly #answers = new Map<string, (result: unknown) => void>();
  #calls = 0;

  async start(): Promise<void> {
    const session = this.#session;
    session.connect();
    session.on('NodeWorker.attachedToWorker', ({ params }) => {
      this.#workers.add(params.sessionId);
      void this.#startOne((method, given) => this.#ask(params.sessionId, method, given));
    });
    session.on('NodeWorker.detachedFromWorker', ({ params }) => void this.#workers.delete(params.sessionId));
    session.on('NodeWorker.receivedMessageFromWorker', ({ params }) => {
      const { id, result } = z.looseObject({ id: z.number().optional(), result: z.unknown() }).parse(JSON.parse(params.message));
      const key = `${params.sessionId} ${id}`;
      this.#answers.get(key)?.(result);
      this.#answers.delete(key);
    });
    await this.#startOne((method, given) => this.#own(method, given));
    await session.post('NodeWorker.enable', { waitForDebuggerOnStart: false });
  }

  /** Returns the modules of which a function was run since the last call. */
  async take(): Promise<ReadonlySet<string>> {
    const results = await Promise.all([
      this.#own('Profiler.takePreciseCoverage'),
      ...[...this.#workers].map((worker) => this.#ask(worker, 'Profiler.takePreciseCoverage')),
    ]);
    const modules = new Set<string>();
    for (const result of results)
      for (const { url, functions } of Coverage.parse(result).result)
        // The first one is the module itself, which runs when it is loaded.
        if (functions.slice(1).some(({ ranges }) => (ranges[0]?.count ?? 0) > 0)) {
          const file = url.startsWith('file:') ? relative(root, fileURLToPath(url)).replaceAll('\\', '/') : '';
          if (/^packages\/(server|contract)\/src\//.test(file) && !/\.test\.ts$|\/testing(\/|\.ts$)/.test(file)) modules.add(file);
        }
    return modules;
  }

  async #startOne(ask: (method: string, params?: object) => Promise<unknown>): Promise<void> {
    await ask('Profiler.enable');
    await ask('Profiler.startPreciseCoverage', { callCount: true, detailed: false });
  }

  #own(method: string, params?: object): Promise<unknown> {
    // The types list the methods one by one.
    return (this.#session.post as (name: string, given?: object) => Promise<unknown>).call(this.#session, method, params);
  }

  #ask(sessionId: string, method: string, params?: object): Promise<unknown> {
    const id = (this.#calls += 1);
    const { promise, resolve } = Promise.withResolvers<unknown>();
    this.#answers.set(`${sessionId} ${id}`, resolve);
    void this.#session.post('NodeWorker.sendMessageToWorker', { sessionId, message: JSON.stringify({ id, method, params }) });
    return promise;
  }
}

/** A provider; while `hold` is set, its streams send a delta for each call of `next`. */
async function startProvider() {
  let stream: ServerResponse | undefined;
  let isHeld = false;
  const usage = { prompt_tokens: 5, completion_tokens: 2, total_tokens: 7 };
  const chunk = (choice: object, more: object = {}) =>
    `data: ${JSON.stringify({ id: 'c', object: 'chat.completion.chunk', created: 1, model: 'walk', choices: [{ index: 0, finish_reason: null, ...choice }], ...more })}\n\n`;
  const server = createServer((request, response) => {
    let text = '';
    request.on('data', (part: Buffer) => (text += part.toString()));
    request.on('end', () => {
      if (!text.includes('"stream":true')) {
        const message = { role: 'assistant', content: 'A whole answer.' };
        response.setHeader('content-type', 'application/json');
        response.end(
          JSON.stringify({
            id: 'c',
            object: 'chat.completion',
            created: 1,
            model: 'walk',
            choices: [{ index: 0, message, finish_reason: 'stop' }],
            usage,
          }),
        );
        return;
      }
      response.setHeader('content-type', 'text/event-stream');
      response.write(chunk({ delta: { role: 'assistant', content: '' } }));
      stream = response;
      if (!isHeld) finish('A whole answer.');
    });
  });
  const finish = (content: string): void => {
    stream?.end(`${chunk({ delta: { content } })}${chunk({ delta: {}, finish_reason: 'stop' })}${chunk({}, { usage })}data: [DONE]\n\n`);
    stream = undefined;
  };
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`,
    isStreaming: () => stream !== undefined,
    next: (content: string) => void stream?.write(chunk({ delta: { content } })),
    hold: (held: boolean) => void (isHeld = held),
    end: () => finish('the last'),
    close: () => {
      server.closeAllConnections();
      server.close();
    },
  };
}

const pause = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));
async function until(isTrue: () => boolean | Promise<boolean>): Promise<void> {
  while (!(await isTrue())) await pause(5);
}

const threads = new Threads();
await threads.start();
const provider = await startProvider();
const clock = createStepClock();
const server = await startTestServer({
  clock,
  config: {
    providers: {
      mock: { type: 'openai-compatible', baseUrl: provider.url, apiKey: 'key', models: [{ id: 'mock-fast' }] },
    },
  },
});
const chat = (stream: boolean) =>
  fetch(`${server.url}/v1/chat/completions`, {
    method: 'POST',
    headers: { authorization: `Bearer ${server.token}`, 'content-type': 'application/json' },
    body: JSON.stringify({ model: 'agent/default', stream, messages: [{ role: 'user', content: 'Hello' }] }),
  });
const counts = new Map<string, ReadonlySet<string>>();

/** What is done for the first time, and what ends shortly after the answer, belongs to no walk. */
async function settle(): Promise<void> {
  await pause(300);
  await threads.take();
}

const answer = async (): Promise<void> => void (await (await chat(false)).json());
await answer();
await answer();
await settle();
await answer();
await pause(100);
counts.set('chat message', await threads.take());

provider.hold(true);
const body = (async () => {
  const response = await chat(true);
  const reader = response.body?.pipeThrough(new TextDecoderStream()).getReader();
  let text = '';
  return {
    async read(part: string) {
      while (!text.includes(part)) text += (await reader?.read())?.value ?? '';
    },
  };
})();
await until(() => provider.isStreaming());
provider.next('first ');
const reader = await body;
await reader.read('first');
provider.next('second ');
await reader.read('second');
await settle();
provider.next('third ');
await reader.read('third');
counts.set('stream token', await threads.take());
provider.end();
provider.hold(false);
await reader.read('[DONE]');

const ended = server.heard('scheduler:cron_execution_terminal');
// So short that nothing else is due meanwhile.
const everyMs = 2_000;
const { jobId } = await server.client.call('cron.add', {
  name: 'walk',
  schedule: { kind: 'every', everyMs, anchorMs: clock.now() + everyMs },
  payload: { kind: 'agent_turn', message: 'Hello' },
});
const occurrence = async (count: number): Promise<void> => {
  clock.advance(everyMs);
  await until(() => (clock.advance(10), ended.filter(({ jobId: of }) => of === jobId).length >= count));
};
for (let n = 1; n <= 5; n += 1) await occurrence(n);
await settle();
await occurrence(6);
await pause(100);
counts.set('job occurrence', await threads.take());

await server[Symbol.asyncDispose]();
provider.close();
for (const [walk, modules] of counts) {
  console.log(`${walk}: ${modules.size} modules`);
  if (values.list) for (const module of [...modules].toSorted()) console.log(`  ${module}`);
}
process.exit(0);
