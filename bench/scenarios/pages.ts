import { setTimeout as sleep } from 'node:timers/promises';
import type { BrowserContext, Page } from 'playwright-core';
import * as z from 'zod';
import { type Browser, chromiumPath, complaintsOf, startBrowser } from '../../e2e/lib/browser.ts';
import { longestTask } from '../../e2e/lib/main-thread.ts';
import { crowd, startCrowd, type CrowdServer } from '../lib/crowd.ts';
import type { Measures } from '../lib/measures.ts';

/** The dashboard while two hundred sub-agents work in twenty graphs. */
export interface PageSample {
  readonly page: 'Runs' | 'Graphs';
  readonly tasks: number;
  /** The longest task of the main thread, milliseconds of processor time. */
  readonly taskMs: number;
  /** The same in wall time, which includes other load on the machine. */
  readonly taskWallMs: number;
  readonly inputs: number;
  /** Wall time from an input to the next frame that shows its effect. */
  readonly inputMs: number;
}

export interface PageOptions {
  readonly upstreamUrl: string;
  readonly rounds: number;
  readonly delayMs: number;
  /** Script loaded in each page before the dashboard: makes a broken build. */
  readonly script?: string;
}

/** Wall durations, milliseconds: of inputs until the frame that shows their effect, and of tasks beyond 50. */
const Seen = z.object({ inputs: z.array(z.number()), tasks: z.array(z.number()) });
/** Runs in the page, whose types are not those of this process. */
const observe = `
  globalThis.seen = { inputs: [], tasks: [] };
  for (const [type, to] of [['event', seen.inputs], ['longtask', seen.tasks]])
    new PerformanceObserver((list) => to.push(...list.getEntries().map(({ duration }) => duration))).observe({ type, durationThreshold: 16 });
`;

/** Measures how quickly the pages of runs and graphs respond; nothing without Chromium. */
export async function runPages(options: PageOptions, measures: Measures): Promise<PageSample[]> {
  if (chromiumPath === undefined) return [];
  await using server = await startCrowd(options.upstreamUrl, options);
  await using browser = await startBrowser();
  // Something is shown, and everything is compiled.
  await server.run();
  const samples: PageSample[] = [];
  for (let round = 0; round < options.rounds; round += 1) {
    for (const [name, use] of [['Runs', useRuns] as const, ['Graphs', useGraphs] as const]) {
      const sample = { page: name, ...(await watch(browser, server, options, name, use)) };
      measures.add('pages task', sample.taskMs);
      measures.add('pages input', sample.inputMs);
      samples.push(sample);
    }
  }
  return samples;
}

async function watch(
  browser: Browser,
  server: CrowdServer,
  { script }: PageOptions,
  name: PageSample['page'],
  use: (page: Page, until: () => boolean) => Promise<void>,
): Promise<Omit<PageSample, 'page'>> {
  await using session = await open(browser, server, name, script);
  const { page, context, complaints } = session;
  let isOver = false;
  const { longestMs, tasks } = await longestTask(context, page, async () => {
    await Promise.all([server.run().finally(() => (isOver = true)), use(page, () => isOver)]);
    // The last changes are drawn.
    await sleep(1_000);
  });
  const seen = Seen.parse(await page.evaluate('seen'));
  if (complaints.length > 0) throw new Error(`the page complained: ${complaints.join('; ').slice(0, 500)}`);
  if (seen.inputs.length < 5) throw new Error(`${seen.inputs.length} inputs were seen`);
  return {
    tasks,
    taskMs: longestMs,
    taskWallMs: Math.max(0, ...seen.tasks),
    inputs: seen.inputs.length,
    inputMs: Math.max(...seen.inputs),
  };
}

async function open(browser: Browser, { target, secret }: CrowdServer, name: PageSample['page'], script: string | undefined) {
  const context: BrowserContext = await browser.context();
  if (script !== undefined) await context.addInitScript(script);
  const page = await context.newPage();
  const complaints = complaintsOf(page);
  await page.goto(`${target.url}/#token=${secret}`);
  await page.getByRole('textbox', { name: 'Message' }).waitFor();
  await page.getByRole('navigation', { name: 'Pages' }).getByRole('link', { name }).click();
  await page.getByRole('heading', { level: 1, name }).waitFor();
  await page.evaluate(observe);
  return { page, context, complaints, [Symbol.asyncDispose]: () => context.close() };
}

// Uses fast selectors: searching roles and names in hundreds of rows would count as work of the page.
async function useRuns(page: Page, isOver: () => boolean): Promise<void> {
  const [active, all, start] = await Promise.all(
    ['Active', 'All', 'Start a sub-agent'].map((name) => page.getByRole('button', { name, exact: true }).elementHandle()),
  );
  for (let at = 0; !isOver(); at += 1) {
    await (at % 2 === 0 ? active : all)?.click();
    const twist = await page.$(`.run-root:nth-of-type(${1 + (at % crowd.graphs)}) .run-twist`);
    // An element that is being redrawn cannot be clicked.
    await twist?.click({ timeout: 2_000 }).catch(() => undefined);
    await start?.click();
    await page.locator('dialog[open] textarea').first().pressSequentially('Typed while others work', { delay: 15 });
    await page.keyboard.press('Escape');
  }
}

async function useGraphs(page: Page, isOver: () => boolean): Promise<void> {
  for (let at = 0; !isOver(); at += 1) {
    await page
      .getByRole('link', { name: `Crowd ${at % crowd.graphs}`, exact: true })
      .first()
      .click();
    await page
      .getByRole('navigation', { name: 'Nodes' })
      .getByRole('button', { name: /^part-3/ })
      .first()
      .click();
    await page.locator('.react-flow__node').first().click();
    await page.locator('a[href$="/graphs"]', { hasText: 'All graphs' }).click();
  }
}
