import { execFile } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { startFakeProvider } from '@gatehouse/testkit';
import { freePort } from '@gatehouse/testkit/free-port';
import * as z from 'zod';
import { chromiumPath } from '../e2e/lib/browser.ts';
import { installClients } from '../e2e/lib/client-packages.ts';
import { dashboardDir, startDaemon } from './lib/daemon.ts';
import { makeHome, removeHome, writeConfig } from './lib/home.ts';
import { proofConfig } from './lib/provider.ts';
import { rpcCall } from './lib/rpc.ts';

/** What Lighthouse measures on the chat, as on a phone of the middle class with a slow line: its defaults, with simulated throttling. */
export interface ChatPageReport {
  /** The medians of the runs of each page. */
  readonly pages: Readonly<Record<string, ChatPageFigures>>;
  /** Runs that did not count, because the machine was busy. */
  readonly left: number;
  readonly wrong: readonly string[];
}

export interface ChatPageFigures {
  /** Scores are from 0 to 100. */
  readonly performance: number;
  readonly accessibility: number;
  /** Until the largest text is drawn. */
  readonly largestMs: number;
  /** What tasks take beyond 50 ms each, until the page is at rest. */
  readonly blockingMs: number;
}

export interface ChatPageOptions {
  /** Runs for each page. */
  readonly runs: number;
  /** Pages by name. */
  readonly only?: readonly PageName[];
  readonly broken?: string;
  readonly progress?: (line: string) => void;
}

const leastScore = 95;
/** The page as it opens is judged. A conversation is measured along with it, and does not reach the score on a phone. */
const judged: PageName = 'a new chat';
/**
 * The throttling is meant for computers that reach this index, and what a busy one measures is throttled as well. Lighthouse takes the index at
 * the beginning of a run.
 */
const leastIndex = 1_500;
const mostAttempts = 40;

type PageName = 'a new chat' | 'a conversation';

const answer = [
  'A **gateway** sits between clients and the services behind them. It *authenticates* each caller and records what was used.\n\n',
  '```sh\ncurl http://127.0.0.1:4766/health\n```\n\n',
  '| Route | Protocol |\n| --- | --- |\n| `/v1` | chat completions, responses |\n| `/rpc`, `/ws` | JSON-RPC 2.0 |\n',
];

const score = z.object({ score: z.number().nullable() });
const value = z.object({ numericValue: z.number() });
const Report = z.object({
  finalDisplayedUrl: z.string(),
  environment: z.object({ benchmarkIndex: z.number() }),
  configSettings: z.object({ formFactor: z.literal('mobile'), throttlingMethod: z.literal('simulate') }),
  categories: z.object({ performance: score, accessibility: score }),
  audits: z.object({ 'largest-contentful-paint': value, 'total-blocking-time': value }),
});

/** Returns why the proof can't run here, or undefined. */
export async function chatPageMissing(): Promise<string | undefined> {
  if (chromiumPath === undefined) return 'there is no Chromium';
  const installed = await installClients('lighthouse');
  return 'missing' in installed ? installed.missing : undefined;
}

export async function measureChatPage({ runs, only, broken, progress }: ChatPageOptions): Promise<ChatPageReport> {
  const installed = await installClients('lighthouse');
  if ('missing' in installed) throw new Error(installed.missing);
  await using provider = await startProvider();
  const home = await makeHome();
  const port = await freePort();
  const config = { agents: { default: { model: 'local/test-model' } }, gateway: { web: { distPath: dashboardDir() } } };
  await writeConfig(home, proofConfig(provider.url, config));
  const daemon = await startDaemon({ home, port, ...(broken !== undefined && { broken }) });
  try {
    const call = (method: string, params: unknown) => rpcCall(daemon, method, params);
    const asked = (message: string) => call('agent.execute', { message, sessionKey: 'proof:desk' });
    await asked('What is it for?');
    const { conversationRef } = z.object({ conversationRef: z.string() }).parse(await asked('What does a gateway do?'));
    const paths: Readonly<Record<PageName, string>> = { 'a new chat': '/chat', 'a conversation': `/chat/${conversationRef}` };
    const pages: Record<string, ChatPageFigures> = {};
    let left = 0;
    for (const [page, path] of Object.entries(paths)) {
      if (only?.some((name) => name === page) === false) continue;
      const counted: ChatPageFigures[] = [];
      for (let attempt = 0; counted.length < runs; attempt += 1) {
        if (attempt === mostAttempts) throw new Error(`the machine is too busy: ${counted.length} of ${attempt} runs count`);
        const run = await runLighthouse({ dir: installed.dir, home, url: `http://127.0.0.1:${port}${path}`, token: daemon.token });
        progress?.(`lighthouse: ${page}: ${JSON.stringify(run)}`);
        if (run.index >= leastIndex) counted.push(run);
        else left += 1;
      }
      const median = (of: keyof ChatPageFigures): number =>
        counted.map((figures) => figures[of]).toSorted((a, b) => a - b)[Math.floor(counted.length / 2)] ?? 0;
      pages[page] = {
        performance: median('performance'),
        accessibility: median('accessibility'),
        largestMs: median('largestMs'),
        blockingMs: median('blockingMs'),
      };
    }
    const wrong = Object.entries(pages).flatMap(([page, figures]) =>
      (['performance', 'accessibility'] as const)
        .filter((of) => figures[of] < leastScore && (of === 'accessibility' || page === judged))
        .map((of) => `${of} of ${page}: ${figures[of]}`),
    );
    return { pages, left, wrong };
  } finally {
    await daemon.kill();
    await removeHome(home);
  }
}

async function startProvider() {
  const provider = await startFakeProvider({ answer: () => ({ text: answer }) });
  return { url: provider.url, [Symbol.asyncDispose]: () => provider.close() };
}

/** Runs the command in a separate process, with a separate browser. */
async function runLighthouse({
  dir,
  home,
  url,
  token,
}: {
  readonly dir: string;
  readonly home: string;
  readonly url: string;
  readonly token: string;
}): Promise<ChatPageFigures & { readonly index: number }> {
  const path = join(home, 'lighthouse.json');
  const parameters = [
    join(dir, 'node_modules/lighthouse/cli/index.js'),
    `${url}#token=${token}`,
    '--output=json',
    `--output-path=${path}`,
    '--only-categories=performance,accessibility',
    '--throttling-method=simulate',
    '--no-enable-error-reporting',
    '--quiet',
    // The event stream stays open, so the network never rests.
    '--max-wait-for-load=10000',
    '--chrome-flags=--headless --no-sandbox --disable-gpu --disable-background-networking --disable-component-update',
  ];
  const env = { PATH: process.env['PATH'] ?? '', HOME: home, CHROME_PATH: chromiumPath ?? '' };
  await new Promise<void>((resolve, reject) => {
    execFile(process.execPath, parameters, { env, timeout: 120_000 }, (error, _stdout, stderr) =>
      error === null ? resolve() : reject(new Error(`Lighthouse failed: ${stderr.trim().slice(-500) || error.message}`)),
    );
  });
  const { audits, categories, environment, finalDisplayedUrl } = Report.parse(JSON.parse(await readFile(path, 'utf8')));
  if (finalDisplayedUrl !== url) throw new Error(`Lighthouse saw ${finalDisplayedUrl} instead of ${url}`);
  return {
    performance: Math.round((categories.performance.score ?? 0) * 100),
    accessibility: Math.round((categories.accessibility.score ?? 0) * 100),
    largestMs: Math.round(audits['largest-contentful-paint'].numericValue),
    blockingMs: Math.round(audits['total-blocking-time'].numericValue),
    index: Math.round(environment.benchmarkIndex),
  };
}
