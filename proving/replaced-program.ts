import { createHmac } from 'node:crypto';
import { readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { freePort } from '@gatehouse/testkit/free-port';
import * as z from 'zod';
import { copyBundle, type Daemon, pause, startDaemon } from './lib/daemon.ts';
import { makeHome, removeHome, writeConfig } from './lib/home.ts';
import { bearer, http } from './lib/http.ts';
import { askWith, nonceOf, proofConfig, startReviewingProvider } from './lib/provider.ts';
import { rpcCall } from './lib/rpc.ts';

/**
 * The bundle is removed under a daemon that has loaded only a part of it: each request is answered as always or with the reason, nothing
 * else is blamed, work waits for the restart and then runs once.
 */
export interface ReplacedProgramReport {
  readonly asked: number;
  /** Answered with the reason. */
  readonly lacking: number;
  readonly wrong: readonly string[];
}

const hookToken = 'hook-token-of-the-proving-suite-0123456789';
const reason = /A file of the program is missing.*restart it/;
const Health = z.looseObject({ status: z.string(), checks: z.record(z.string(), z.looseObject({ detail: z.string().optional() })) });
/** The daemon checks every ten seconds. */
const noticedMs = 15_000;

export async function proveReplacedProgram(options: { readonly jobs: boolean; readonly broken?: true }): Promise<ReplacedProgramReport> {
  const provider = await startReviewingProvider({ journal: 1_000 });
  const [home, dist] = [await makeHome(), await makeHome()];
  const wrong: string[] = [];
  let daemon: Daemon | undefined;
  const start = async (): Promise<Daemon> => {
    const program = await copyBundle(dist);
    if (options.broken === true) await breakBundle(dist);
    return startDaemon({ home, port: await freePort(), program });
  };
  const [held, late] = [nonceOf(['held']), nonceOf(['late'])];
  const timesAsked = (nonce: string): number => provider.requests.filter(({ body }) => JSON.stringify(body).includes(nonce)).length;
  try {
    const mappings = [{ id: 'hook', messageTemplate: '{{text}}', sessionKey: '{{text}}' }];
    await writeConfig(home, { ...proofConfig(provider.url), webhooks: { token: hookToken, mappings } });
    daemon = await start();
    await rm(dist, { recursive: true });
    const answers = await askEverything(daemon);
    for (const [name, { status, text }] of answers)
      if (status >= 500 ? status !== 503 && !reason.test(text) : !knownAnswers.test(`${name} ${status}`))
        wrong.push(`${name}: ${status} ${text.slice(0, 200)}`);
    const lacking = answers.filter(([, { text }]) => reason.test(text)).length;
    if (lacking === 0) wrong.push('no request needed a part that was not loaded');
    if (options.jobs) {
      await addJob(daemon, held);
      if (!(await isNoticed(daemon))) wrong.push('/health does not say that the program is gone');
      await addJob(daemon, late);
      await pause(3_000);
      for (const nonce of [held, late]) if (timesAsked(nonce) > 1) wrong.push(`a job asked the model ${timesAsked(nonce)} times`);
      const before = timesAsked(late);
      await daemon.stop();
      daemon = await start();
      for (const until = performance.now() + 20_000; timesAsked(late) === before && performance.now() < until;) await pause(100);
      await pause(1_000);
      for (const nonce of [held, late]) if (timesAsked(nonce) !== 1) wrong.push(`a job ran ${timesAsked(nonce)} times after the restart`);
    }
    return { asked: answers.length, lacking, wrong };
  } finally {
    await daemon?.kill();
    await provider.close();
    await removeHome(home);
    await removeHome(dist);
  }
}

/** Expected answers other than success on a home like this one. */
const knownAnswers = / 20\d$|^page 404$/;

type Answer = { readonly status: number; readonly text: string };

/** One request of each family of routes; a method call counts as 500 when it fails. */
async function askEverything(daemon: Daemon): Promise<readonly (readonly [string, Answer])[]> {
  const { port, token } = daemon;
  const messages = [{ role: 'user', content: 'hello' }];
  const model = 'local/test-model';
  const web = (path: string, body?: unknown) => () => http({ port, path, headers: bearer(token), ...(body !== undefined && { body }) });
  // So large that a thread reads it.
  const delivery = JSON.stringify({ text: 'one', padding: 'x'.repeat(600_000) });
  const signature = createHmac('sha256', hookToken).update(delivery).digest('hex');
  const rpc = (method: string, params: object) => async (): Promise<Answer> =>
    rpcCall({ port, token }, method, params).then(
      (result) => ({ status: reason.test(JSON.stringify(result)) ? 503 : 200, text: JSON.stringify(result) }),
      (error: unknown) => ({ status: 500, text: String(error) }),
    );
  const asks: Readonly<Record<string, () => Promise<Answer>>> = {
    page: web('/'),
    health: web('/health'),
    metrics: web('/metrics'),
    openapi: web('/openapi.json'),
    asyncapi: web('/asyncapi.json'),
    search: rpc('memory.search', { query: 'hello' }),
    sessions: rpc('session.search', { query: 'hello' }),
    token: rpc('tokens.create', { scopes: ['rpc'] }),
    turn: rpc('agent.execute', { message: 'hello', sessionKey: 'a:b' }),
    chat: web('/v1/chat/completions', { model, messages }),
    responses: web('/v1/responses', { model, input: 'hello' }),
    messages: web('/v1/messages', { model, max_tokens: 100, messages }),
    'large webhook': () => http({ port, path: '/hooks/hook', headers: { 'x-webhook-signature': signature }, body: delivery }),
  };
  return Promise.all(Object.entries(asks).map(async ([name, ask]) => [name, await ask()] as const));
}

function addJob(daemon: Daemon, nonce: string): Promise<unknown> {
  const payload = { kind: 'agent_turn', message: askWith(nonce) };
  return rpcCall(daemon, 'cron.add', { name: nonce, schedule: { kind: 'in', seconds: 1 }, payload });
}

async function isNoticed({ port }: Daemon): Promise<boolean> {
  for (const until = performance.now() + noticedMs; performance.now() < until; await pause(200)) {
    const { status, checks } = Health.parse(JSON.parse((await http({ port, path: '/health' })).text));
    if (status === 'degraded' && checks['program']?.detail?.includes('restart') === true) return true;
  }
  return false;
}

/** The bundle has no modules to replace: the function that detects a missing file, and the check of the files, are cut out of its text. */
async function breakBundle(dist: string): Promise<void> {
  let cuts = 0;
  for (const name of await readdir(dist)) {
    if (!/^main-.*\.js$/.test(name)) continue;
    const text = await readFile(join(dist, name), 'utf8');
    const cut = text
      .replace(/function isMissingPart\(\w+\)\{/, (found) => `${found}return!1;`)
      .replace(/function isMissing\d*\(\w+\)\{return\(0,\w+\.access\)/, (found) => found.replace('{', '{return Promise.resolve(!1);'));
    if (cut === text) continue;
    cuts += 1;
    await writeFile(join(dist, name), cut);
  }
  if (cuts !== 2) throw new Error('the bundle has no such functions: adapt this broken build');
}
