import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setTimeout as wait } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import type * as fetchEventSourceLibrary from '@microsoft/fetch-event-source';
import { build } from 'esbuild';
import { EventSource } from 'eventsource';
import { createParser } from 'eventsource-parser';
import type { Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import * as z from 'zod';
import { bearer } from '../proving/lib/http.ts';
import { type Browser, chromiumPath, complaintsOf, startBrowser } from './lib/browser.ts';
import { type CutProxy, startCutProxy } from './lib/cut-proxy.ts';
import { type Product, scopedTokens, startProduct, tokenOf } from './lib/product.ts';

/** An event as delivered by a client. */
interface Heard {
  readonly kind: string;
  readonly id: string;
  readonly data: string;
}

/** Listens to `url` with a third-party client and passes on its events until the signal aborts. */
type Listen = (url: string, hear: (event: Heard) => void, signal: AbortSignal) => Promise<void>;

declare global {
  /** Globals of the test page. */
  var library: typeof fetchEventSourceLibrary;
  var hear: (event: Heard) => void;
}

const token = tokenOf('rpc');
const noBrowser = chromiumPath === undefined;
const whySkipped = noBrowser ? ' (skipped: there is no Chromium on this machine)' : '';
let product: Product;
let page: Awaited<ReturnType<typeof startPage>>;
let browser: Browser;
beforeAll(async () => {
  page = await startPage();
  product = await startProduct({ config: { gateway: { tokens: scopedTokens, corsOrigins: [page.origin] } } });
  if (!noBrowser) browser = await startBrowser();
});
afterAll(async () => {
  await browser?.[Symbol.asyncDispose]();
  await product?.[Symbol.asyncDispose]();
  await page?.[Symbol.asyncDispose]();
});

/** Serves a page from another origin than the gateway's, with the library in it. */
async function startPage() {
  const { outputFiles } = await build({
    entryPoints: [fileURLToPath(import.meta.resolve('@microsoft/fetch-event-source'))],
    bundle: true,
    write: false,
    format: 'iife',
    globalName: 'library',
  });
  const script = outputFiles[0]?.text ?? '';
  const server = createServer((incoming, outgoing) => {
    const [type, body] = incoming.url === '/library.js' ? ['text/javascript', script] : ['text/html', '<script src="/library.js"></script>'];
    outgoing.writeHead(200, { 'content-type': type }).end(body);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    origin: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

const kinds = '/api/events?kinds=agent:hot_added';

const withEventSource: Listen = async (url, hear, signal) => {
  const source = new EventSource(url, { fetch: (to, init) => fetch(to, { ...init, headers: { ...init.headers, ...bearer(token) } }) });
  signal.addEventListener('abort', () => source.close());
  for (const kind of ['agent:hot_added', 'gap', 'bye'])
    source.addEventListener(kind, (event) => hear({ kind, id: event.lastEventId, data: String(event.data) }));
  await new Promise((resolve) => source.addEventListener('open', resolve, { once: true }));
};

/** Reads a stream with the parser, which makes no connections: its users write this code around it. */
const withParser: Listen = async (url, hear, signal) => {
  let lastEventId: string | undefined;
  let retryMs = 0;
  const opened = Promise.withResolvers<void>();
  async function run(): Promise<void> {
    while (!signal.aborted) {
      const parser = createParser({
        onEvent: ({ event = 'message', id = '', data }) => hear({ kind: event, id, data }),
        onId: (id) => (lastEventId = id),
        onRetry: (ms) => (retryMs = ms),
      });
      try {
        const headers = { ...bearer(token), ...(lastEventId !== undefined && { 'last-event-id': lastEventId }) };
        const response = await fetch(url, { headers, signal });
        opened.resolve();
        for await (const text of response.body?.pipeThrough(new TextDecoderStream()) ?? []) parser.feed(text);
      } catch {
        // The connection broke; continue as after an end.
      }
      await wait(retryMs, undefined, { signal }).catch(() => undefined);
    }
  }
  void run();
  await opened.promise;
};

/** Runs in the page: the documented pattern, where an unexpected end is an error, after which the library reconnects. */
function listenInPage(browserPage: Page, openWhenHidden: boolean): Listen {
  return async (url, hear) => {
    await browserPage.exposeFunction('hear', hear);
    await browserPage.evaluate(
      ({ address, authorization, whenHidden }) =>
        new Promise<void>((opened) => {
          void library.fetchEventSource(address, {
            headers: { authorization },
            openWhenHidden: whenHidden,
            async onopen(response) {
              if (response.ok) opened();
            },
            onmessage: ({ event, id, data }) => {
              // The library also delivers the opening event, which has an id and no data.
              if (event !== '' && event !== 'ping') globalThis.hear({ kind: event, id, data });
            },
            onclose() {
              throw new Error('The stream ended');
            },
          });
        }),
      { address: url, authorization: bearer(token).authorization, whenHidden: openWhenHidden },
    );
  };
}

const Made = z.strictObject({ agentId: z.string(), timestamp: z.int() });
let groups = 0;

/** Filters the agents of one listener from those of the others. */
function createGroup(gateway: Product = product) {
  groups += 1;
  const prefix = `group-${groups}-`;
  const heard: Heard[] = [];
  return {
    heard,
    hear: (event: Heard): void => {
      if (event.kind !== 'agent:hot_added' || event.data.includes(prefix)) heard.push(event);
    },
    async make(...names: string[]): Promise<void> {
      for (const name of names) await gateway.call('agents.create', { agentId: prefix + name, config: {} });
    },
    names: () => heard.map(({ kind, data }) => (kind === 'agent:hot_added' ? Made.parse(JSON.parse(data)).agentId.slice(prefix.length) : kind)),
    areInOrder: () => heard.every(({ id }, at) => at === 0 || Number(id) > Number(heard[at - 1]?.id)),
  };
}

/** Checks that a client reconnects three seconds after a cut, as `retry` says, and has missed nothing. */
async function survivesCuts(proxy: CutProxy, listen: Listen, expected: typeof expect): Promise<void> {
  const leaving = new AbortController();
  const group = createGroup();
  await listen(proxy.url + kinds, group.hear, leaving.signal);
  await group.make('live');
  await expected.poll(group.names).toEqual(['live']);
  proxy.cut('reset');
  await group.make('missed-1', 'missed-2');
  expected(group.names()).toEqual(['live']);
  await expected.poll(group.names).toEqual(['live', 'missed-1', 'missed-2']);
  await group.make('live-again');
  await expected.poll(group.names).toEqual(['live', 'missed-1', 'missed-2', 'live-again']);
  proxy.cut('end');
  await group.make('missed-3');
  await expected.poll(group.names).toEqual(['live', 'missed-1', 'missed-2', 'live-again', 'missed-3']);
  expected(group.areInOrder()).toBe(true);
  leaving.abort();
}

/** Opens the page of the other origin. */
async function openPage() {
  const context = await browser.context();
  const opened = await context.newPage();
  const complaints = complaintsOf(opened);
  await opened.goto(page.origin);
  return { opened, complaints, [Symbol.asyncDispose]: () => context.close() };
}

// Each waits for the three seconds of `retry` several times.
describe.concurrent('an interrupted stream', () => {
  for (const [name, listen] of [
    ['eventsource', withEventSource],
    ['eventsource-parser over fetch', withParser],
  ] as const)
    test(`${name} continues without loss`, async ({ expect: expected }) => {
      await using proxy = await startCutProxy(product.port);
      await survivesCuts(proxy, listen, expected);
    });

  test.skipIf(noBrowser)(
    `fetch-event-source in Chromium continues without loss, from a page of a listed origin${whySkipped}`,
    async ({ expect: expected }) => {
      await using proxy = await startCutProxy(product.port);
      await using tab = await openPage();
      await survivesCuts(proxy, listenInPage(tab.opened, true), expected);
      expected(tab.complaints.filter((text) => !/net::ERR_|The stream ended/.test(text))).toEqual([]);
    },
  );

  test('eventsource receives the end of a stopped daemon, and continues with the next one', async ({ expect: expected }) => {
    await using own = await startProduct({ config: { gateway: { tokens: scopedTokens } } });
    const leaving = new AbortController();
    const group = createGroup(own);
    await withEventSource(own.url + kinds, group.hear, leaving.signal);
    await group.make('before');
    await expected.poll(group.names).toEqual(['before']);
    await own.restart();
    await group.make('after');
    await expected.poll(group.names).toEqual(['before', 'bye', 'after']);
    leaving.abort();
  });
});

test('a token in the address is ignored, and a wrong one ends the client for good', async () => {
  const failures: (number | undefined)[] = [];
  const sources = [
    new EventSource(`${product.url}/api/events?token=${token}`),
    new EventSource(`${product.url}/api/events`, { fetch: (to, init) => fetch(to, { ...init, headers: { ...init.headers, ...bearer('nobody') } }) }),
  ];
  for (const source of sources) source.addEventListener('error', (event) => failures.push(event.code));
  await expect.poll(() => failures).toEqual([401, 401]);
  expect(sources.map((source) => source.readyState)).toEqual([EventSource.CLOSED, EventSource.CLOSED]);
});

describe.skipIf(noBrowser)(`fetch-event-source in Chromium${whySkipped}`, () => {
  /** Simulates that another tab covers the page; the browser of a test shows all its pages. */
  const show = (shown: Page, hidden: boolean) =>
    shown.evaluate((value) => {
      Object.defineProperty(document, 'hidden', { value, configurable: true });
      document.dispatchEvent(new Event('visibilitychange'));
    }, hidden);

  test('a hidden page closes its stream, and catches up when it is visible again', async () => {
    await using proxy = await startCutProxy(product.port);
    await using tab = await openPage();
    const group = createGroup();
    await listenInPage(tab.opened, false)(proxy.url + kinds, group.hear, new AbortController().signal);
    await group.make('seen');
    await expect.poll(group.names).toEqual(['seen']);
    await show(tab.opened, true);
    await expect.poll(() => proxy.open).toBe(0);
    await group.make('hidden-1', 'hidden-2');
    expect(group.names()).toEqual(['seen']);
    await show(tab.opened, false);
    await expect.poll(group.names).toEqual(['seen', 'hidden-1', 'hidden-2']);
    expect(group.areInOrder()).toBe(true);
    expect(tab.complaints).toEqual([]);
  });

  test('with openWhenHidden the stream stays', async () => {
    await using tab = await openPage();
    const group = createGroup();
    await listenInPage(tab.opened, true)(product.url + kinds, group.hear, new AbortController().signal);
    await show(tab.opened, true);
    await group.make('hidden');
    await expect.poll(group.names).toEqual(['hidden']);
    expect(tab.complaints).toEqual([]);
  });

  test('a page of another origin receives nothing', async () => {
    await using other = await startPage();
    const context = await browser.context();
    const opened = await context.newPage();
    await opened.goto(other.origin);
    const answer = await opened.evaluate(
      ({ address, authorization }) =>
        new Promise<string>((resolve) => {
          void library
            .fetchEventSource(address, {
              headers: { authorization },
              onmessage: () => resolve('heard'),
              onerror: (error: unknown) => {
                resolve(String(error));
                throw error;
              },
            })
            .catch(() => undefined);
        }),
      { address: product.url + kinds, authorization: bearer(token).authorization },
    );
    expect(answer).toMatch(/^TypeError: Failed to fetch/);
    await context.close();
  });
});
