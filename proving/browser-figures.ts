import { readdirSync, readFileSync } from 'node:fs';
import { cpus, loadavg } from 'node:os';
import { servePages, startTestServer } from '@gatehouse/testkit';
import { openShop } from './lib/shop.ts';

/** Measures what a browser costs: a snapshot of a page of 10,000 nodes, and the memory of all processes with a page of the shop. */
export interface BrowserFigures {
  readonly nodes: number;
  /** Median of the snapshots, as a caller sees them. */
  readonly snapshotMs: number;
  /** Processor time of one snapshot, in all processes: what it takes on a machine that does something else at the same time. */
  readonly snapshotCpuMs: number;
  /** Processes that wanted a processor in the minute before. */
  readonly load: number;
  /** Proportional set size of all processes of the browser. */
  readonly shopMb: number;
  readonly wrong: readonly string[];
}

const maxSnapshotMs = 300;
const maxShopMb = 400;

export async function measureBrowser({ snapshots }: { readonly snapshots: number }): Promise<BrowserFigures> {
  // Where others wait for the processors as well, only the processor time says what a snapshot takes.
  const load = loadavg()[0] ?? 0;
  const isLoaded = load > cpus().length;
  const shopMb = await memoryWithShop();
  const { nodes, snapshotMs, snapshotCpuMs } = await timeSnapshots(snapshots);
  const wrong = [
    ...((isLoaded ? snapshotCpuMs : snapshotMs) > maxSnapshotMs
      ? [`a snapshot took ${snapshotMs} ms, ${snapshotCpuMs} of them of processor time`]
      : []),
    ...(shopMb > maxShopMb ? [`the browser had ${shopMb} MB`] : []),
  ];
  return { nodes, snapshotMs, snapshotCpuMs, load, shopMb, wrong };
}

async function memoryWithShop(): Promise<number> {
  await using shop = await openShop();
  await using server = await startTestServer({ egress: shop.dial });
  await server.client.call('browser.navigate', { url: shop.url('/') }, { timeoutMs: 120_000 });
  await server.client.call('browser.snapshot', {}, { timeoutMs: 60_000 });
  return Math.round(setSizeOf(server.homeDir) / 1024);
}

async function timeSnapshots(count: number): Promise<Pick<BrowserFigures, 'nodes' | 'snapshotMs' | 'snapshotCpuMs'>> {
  // A row has four elements and as many texts.
  const rows = Array.from({ length: 1_250 }, (_, at) => `<li><a href="/${at}">Item ${at}</a> <b>${at} euros</b> <i>in stock</i></li>`);
  await using pages = await servePages({
    '/': (_request, response) =>
      void response.writeHead(200, { 'content-type': 'text/html' }).end(`<!doctype html><title>Long</title><ul>${rows.join('')}</ul>`),
  });
  await using server = await startTestServer({ egress: pages.dial });
  await server.client.call('browser.navigate', { url: pages.url('/') }, { timeoutMs: 120_000 });
  const times: number[] = [];
  let cpuMs = 0;
  for (let at = 0; at <= count; at += 1) {
    // The first one loads what the others use.
    if (at === 1) cpuMs = cpuOf(server.homeDir);
    const startedAt = performance.now();
    await server.client.call('browser.snapshot', {}, { timeoutMs: 60_000 });
    if (at > 0) times.push(performance.now() - startedAt);
  }
  const snapshotCpuMs = Math.round((cpuOf(server.homeDir) - cpuMs) / count);
  return { nodes: rows.length * 8, snapshotMs: Math.round(times.toSorted((a, b) => a - b)[Math.floor(times.length / 2)] ?? 0), snapshotCpuMs };
}

/** Returns the processor time of this process, which is the daemon, and of all processes of the browser. */
function cpuOf(home: string): number {
  const { user, system } = process.cpuUsage();
  let ms = (user + system) / 1_000;
  for (const pid of processesOf(home)) {
    try {
      // After the name, which may contain spaces: the 14th and 15th field, in hundredths of a second.
      const fields = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ').at(-1)?.split(' ') ?? [];
      ms += (Number(fields[11]) + Number(fields[12])) * 10;
    } catch {
      // It has ended meanwhile.
    }
  }
  return ms;
}

/** Returns the kilobytes of all processes whose mounts lead into a home: pages that they share count once. */
function setSizeOf(home: string): number {
  let sum = 0;
  for (const pid of processesOf(home)) {
    try {
      sum += Number(/^Pss:\s+(\d+) kB/m.exec(readFileSync(`/proc/${pid}/smaps_rollup`, 'utf8'))?.[1] ?? 0);
    } catch {
      // It has ended meanwhile.
    }
  }
  return sum;
}

function processesOf(home: string): readonly string[] {
  return readdirSync('/proc').filter((pid) => {
    try {
      return /^\d+$/.test(pid) && Number(pid) !== process.pid && readFileSync(`/proc/${pid}/mountinfo`, 'utf8').includes(home);
    } catch {
      return false;
    }
  });
}
