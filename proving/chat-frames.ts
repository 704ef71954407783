import { cpus, loadavg } from 'node:os';
import { startFakeProvider } from '@gatehouse/testkit';
import { freePort } from '@gatehouse/testkit/free-port';
import { startBrowser } from '../e2e/lib/browser.ts';
import { longestTask } from '../e2e/lib/main-thread.ts';
import { dashboardDir, startDaemon } from './lib/daemon.ts';
import { makeHome, removeHome, writeConfig } from './lib/home.ts';
import { proofConfig } from './lib/provider.ts';

/** Measures the chat in Chromium while an answer arrives at 200 tokens a second. */
export interface ChatFramesReport {
  readonly tokens: number;
  /** Time from the arrival of the first token in the page to the frame that shows it. */
  readonly firstTokenMs: number;
  /** Time between two frames that 99 of 100 do not exceed. */
  readonly frameMs: { readonly streaming: number; readonly empty: number };
  /** Processor time, because other work on the machine is not a task of the page. */
  readonly longestTaskMs: number;
  /** Processes that wanted a processor in the minute before. */
  readonly load: number;
  readonly wrong: readonly string[];
}

const mostMs = 50;

export async function measureChatFrames({ tokens }: { readonly tokens: number }): Promise<ChatFramesReport> {
  // Where others wait for the processors as well, only the processor time of tasks says what the page takes.
  const load = loadavg()[0] ?? 0;
  const isLoaded = load > cpus().length;
  // Paragraphs with emphasis and code, as models write them.
  const text = Array.from(
    { length: tokens },
    (_, at) => `token${at}${at % 40 === 39 ? '.\n\n' : at % 10 === 9 ? ' **and** ' : at % 10 === 4 ? ' `or` ' : ' '}`,
  );
  const provider = await startFakeProvider({ answer: () => ({ text, paceMs: 5 }) });
  const home = await makeHome();
  const port = await freePort();
  const config = { agents: { default: { model: 'local/test-model' } }, gateway: { web: { distPath: dashboardDir() } } };
  await writeConfig(home, proofConfig(provider.url, config));
  const daemon = await startDaemon({ home, port });
  const browser = await startBrowser();
  try {
    const context = await browser.context();
    const page = await context.newPage();
    await page.addInitScript({ content: watchInPage });
    await page.goto(`http://127.0.0.1:${port}/chat#token=${daemon.token}`);
    const field = page.getByRole('textbox', { name: 'Message' });
    await field.waitFor();
    // The pages that are loaded ahead are not part of it.
    await page.waitForLoadState('load');
    await page.waitForTimeout(8_000);
    const frames = async (run: () => Promise<unknown>): Promise<number> => {
      await page.evaluate('watch.frames = []');
      await run();
      const found = (await page.evaluate<readonly number[]>('watch.frames')).toSorted((a, b) => a - b);
      return Math.round(found[Math.ceil(found.length * 0.99) - 1] ?? Number.POSITIVE_INFINITY);
    };
    const empty = await frames(() => page.waitForTimeout(tokens * 5));
    await field.fill('Count the tokens');
    let streaming = 0;
    const { longestMs } = await longestTask(context, page, async () => {
      streaming = await frames(async () => {
        await field.press('Enter');
        await page
          .getByText(`token${tokens - 1}`)
          .first()
          .waitFor({ timeout: tokens * 5 + 60_000 });
      });
    });
    const firstTokenMs = Math.round(Number(await page.evaluate('watch.paintedMs - watch.arrivedMs')));
    const longestTaskMs = Math.round(longestMs);
    const wrong = [
      ...(isLoaded || firstTokenMs <= mostMs ? [] : [`the first token is shown ${firstTokenMs} ms after its arrival`]),
      ...(isLoaded || streaming <= Math.max(mostMs, empty) ? [] : [`a frame in a hundred is ${streaming} ms late, ${empty} ms on an empty page`]),
      ...(longestTaskMs <= mostMs ? [] : [`a task takes ${longestTaskMs} ms`]),
    ];
    return { tokens, firstTokenMs, frameMs: { streaming, empty }, longestTaskMs, load, wrong };
  } finally {
    await browser[Symbol.asyncDispose]();
    await daemon.kill();
    await provider.close();
    await removeHome(home);
  }
}

/** Script of the page: notes when frames are drawn, and when the first token arrives and is shown. */
const watchInPage = `{
  const watch = { frames: [], arrivedMs: 0, paintedMs: 0 };
  Object.assign(globalThis, { watch });
  let lastMs = 0;
  const onFrame = (atMs) => {
    if (lastMs > 0) watch.frames.push(atMs - lastMs);
    lastMs = atMs;
    requestAnimationFrame(onFrame);
  };
  requestAnimationFrame(onFrame);
  const { read } = ReadableStreamDefaultReader.prototype;
  const decoder = new TextDecoder();
  ReadableStreamDefaultReader.prototype.read = async function () {
    const found = await Reflect.apply(read, this, []);
    const text = found.value instanceof Uint8Array ? decoder.decode(found.value) : String(found.value ?? '');
    if (watch.arrivedMs === 0 && text.includes('token0')) watch.arrivedMs = performance.now();
    return found;
  };
  const observer = new MutationObserver(() => {
    if (watch.paintedMs > 0 || watch.arrivedMs === 0) return;
    if (document.querySelector('article.assistant')?.textContent.includes('token0') !== true) return;
    observer.disconnect();
    // The task after a frame begins when it is drawn.
    requestAnimationFrame(() => setTimeout(() => (watch.paintedMs = performance.now())));
  });
  observer.observe(document, { childList: true, characterData: true, subtree: true });
}`;
