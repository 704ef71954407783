import type { Agent } from 'node:http';
import type { Page, Request } from 'playwright-core';
import * as z from 'zod';
import { chromiumPath, startBrowser } from '../../e2e/lib/browser.ts';
import { type Canaries, type Canary, createCanaries, createScanner, type Scanner } from './canaries.ts';
import { pause } from './daemon.ts';
import { openEventReader } from './event-reader.ts';
import { askForCall } from './provider.ts';
import type { Random } from './random.ts';
import { rpcCall } from './rpc.ts';

interface DashboardProof {
  readonly canaries: Canaries;
  readonly random: Random;
  /** A key that a model has said, so that it is part of the history. */
  readonly said: string;
  readonly scan: Scanner['scan'];
  readonly unprovoked: string[];
  /** True reads every page. */
  readonly all: boolean;
}

interface Target {
  readonly port: number;
  readonly token: string;
  readonly agent: Agent;
}

export interface ReadDashboard {
  readonly pages: number;
  /** Texts of the owner that were looked for on the pages of somebody else. */
  readonly texts: number;
  /** Pages and answers on which they were found. */
  readonly found: readonly string[];
}

/** Pages that show what happened, and why; the whole proof reads all. */
const observing = ['inbox', 'runs', 'graphs', 'traces', 'events', 'evals', 'logs', 'audit'];
const others =
  'chat waiting conversations files knowledge memory schedule channels webhooks spend system agents tokens settings explorer agents/default agents/default/mcp';
/** Run in the page. */
const openAll = `for (const summary of document.querySelectorAll('main details:not([open]) > summary')) summary.click()`;
const shownText = `[document.documentElement.outerHTML, ...Array.from(document.querySelectorAll('input, textarea'), ({ value }) => value)].join('\\n')`;

const Minted = z.looseObject({ secret: z.string() });
const Asked = z.looseObject({ traceId: z.string(), conversationRef: z.string() });
const Spawned = z.looseObject({ runId: z.string(), rootRunId: z.string() });
const Begun = z.looseObject({ graphId: z.string() });
const Job = z.looseObject({ jobId: z.string() });
const Evaluation = z.looseObject({ evalId: z.string() });

/** What the owner's conversations, tasks and records contain, by the place where it was put, and the pages of these things. */
async function plant(target: Target, make: (place: string) => string): Promise<readonly string[]> {
  const call = (method: string, params: object) => rpcCall(target, method, params);
  const sessionKey = 'owner:private';
  const asked = Asked.parse(await call('agent.execute', { sessionKey, message: `Please note ${make('a message')}` }));
  const path = `${make('an argument of a tool')}.txt`;
  const tool = Asked.parse(await call('agent.execute', { sessionKey, message: askForCall('read', { path }) }));
  // The provider repeats what it was sent in its error.
  const failing = `Please fail by echo ${make('a question that a provider refuses')}`;
  await call('agent.execute', { sessionKey, message: failing }).catch(() => undefined);
  await call('session.feedback', { sessionKey, traceId: asked.traceId, rating: 'bad', note: make('a note about an answer') });
  const run = Spawned.parse(await call('session.spawn', { task: `Please fail by echo ${make('a task of a sub-agent')}` }));
  await call('subagent.wait', { runIds: [run.runId], timeoutMs: 20_000 });
  const nodes = [{ node_id: 'one', task: `Please fail by echo ${make('a task of a graph')}` }];
  const graph = Begun.parse(await call('graph.execute', { nodes, label: make('a label of a graph') }));
  const schedule = { kind: 'every', everyMs: 86_400_000 };
  const message = `Please fail by echo ${make('a message of a job')}`;
  const job = Job.parse(await call('cron.add', { name: `private-${target.port}`, schedule, payload: { kind: 'agent_turn', message } }));
  await call('cron.run', { jobName: job.jobId });
  const cases = [{ name: make('the name of a case'), input: `Please note ${make('the question of a case')}`, checks: { contains: 'x' } }];
  const evaluation = Evaluation.parse(await call('eval.run', { name: make('the name of an evaluation'), cases, variants: [{ agentId: 'default' }] }));
  return [
    ...[asked, tool].map(({ traceId }) => `/traces/${traceId}`),
    `/traces/${run.rootRunId}/${run.runId}`,
    `/runs/${run.runId}`,
    `/runs/${run.rootRunId}`,
    `/graphs/runs/${graph.graphId}`,
    `/schedule/${job.jobId}`,
    `/evals/${evaluation.evalId}`,
    `/conversations/${asked.conversationRef}`,
    `/chat/${asked.conversationRef}`,
  ];
}

/**
 * Reads pages of the dashboard in a browser, with all that opens on it: what is shown and what the page was sent hold no secret, and, for a
 * token of somebody else, nothing of what the owner wrote and was answered. Returns undefined where there is no browser.
 */
export async function readDashboard(
  target: Target,
  { canaries, random, said, scan, unprovoked, all }: DashboardProof,
): Promise<ReadDashboard | undefined> {
  if (chromiumPath === undefined) return undefined;
  const content = createCanaries(random);
  const pages = await plant(target, content.make);
  const { secret } = Minted.parse(await rpcCall(target, 'tokens.create', { id: `reader-${target.port}`, scopes: ['rpc'] }));
  canaries.known('a token made over RPC (reader)', secret);
  await using browser = await startBrowser();
  const url = `http://127.0.0.1:${target.port}`;
  const paths = [...[...observing, ...(all ? others.split(' ') : [])].map((name) => `/${name}`), ...pages];

  async function walk(token: string, see: (surface: string, text: string) => void): Promise<void> {
    const context = await browser.context();
    const page = await context.newPage();
    const pending = watch(page, see);
    await page.goto(`${url}/#token=${token}`);
    await page.locator('main').waitFor();
    for (const path of paths) {
      await page.goto(url + path);
      await settled(page, pending);
      await page.evaluate(openAll);
      await settled(page, pending);
      const text = String(await page.evaluate(shownText));
      see(`the page ${path.replaceAll(/[\w-]{30,}/g, '…')}`, text);
    }
    await context.close();
  }

  const shown = new Set<string>();
  await walk(target.token, (surface, text) => {
    scan(`${surface} of the owner`, text, said);
    for (const { place, value } of content.all) if (text.includes(value)) shown.add(place);
  });
  for (const { place } of content.all) if (!shown.has(place)) unprovoked.push(`no page shows its owner ${place}`);

  const foreign: readonly Canary[] = content.all;
  const stranger = createScanner(() => foreign);
  const events = openEventReader({ port: target.port, token: secret, lastEventId: 0 });
  let heard = '';
  events.socket.on('data', (piece: string) => (heard += piece));
  await walk(secret, (surface, text) => {
    scan(`${surface} of somebody else`, text.replaceAll(secret, ''));
    stranger.scan(`${surface} of somebody else`, text);
  });
  events.close();
  stranger.scan('the events of somebody else', heard);
  return { pages: 2 * paths.length, texts: content.all.length, found: [...new Set(stranger.found)] };
}

/** Passes on what the page is sent, and returns what it waits for. The streams of events and log lines never end. */
function watch(page: Page, see: (surface: string, text: string) => void): ReadonlySet<Request> {
  const pending = new Set<Request>();
  const isStream = (request: Request) => /\/api\/(?:events|logs)/.test(request.url());
  page.on('request', (request) => void (isStream(request) || pending.add(request)));
  page.on('requestfailed', (request) => void pending.delete(request));
  page.on('requestfinished', async (request) => {
    const response = await request.response().catch(() => null);
    const type = response?.headers()['content-type'] ?? '';
    if (response !== null && /json|text\/(?!javascript|css)/.test(type)) {
      const name = /"method":"([\w.]+)"/.exec(request.postData() ?? '')?.[1] ?? new URL(request.url()).pathname;
      // The document of an earlier page is gone when the next one is opened.
      see(`the answer of ${name} to a page`, await response.text().catch(() => ''));
    }
    pending.delete(request);
  });
  return pending;
}

/** Resolves when the page has received all that it asked for, and has drawn it. */
async function settled(page: Page, pending: ReadonlySet<Request>): Promise<void> {
  for (let quiet = 0, tries = 0; quiet < 3 && tries < 200; tries += 1) {
    await page.evaluate('new Promise((resolve) => requestAnimationFrame(resolve))');
    quiet = pending.size === 0 ? quiet + 1 : 0;
    if (pending.size > 0) await pause(20);
  }
}
